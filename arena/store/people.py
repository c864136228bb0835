"""Users: who comes in as whom, what they may do, and who changed that."""

import uuid
from collections.abc import Collection, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, func, or_
from sqlalchemy import select as sa_select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import aliased
from sqlmodel import Session, col, select, update

from arena.domain.people import INVITES, Entrance, Invitation, Pending, Person, Role
from arena.domain.vote import VoterKind
from arena.errors import UnknownPersonError
from arena.store.engine import alone
from arena.store.tables import OWNER, ActRow, InvitationRow, PersonRow, VoteRow, VoterRow

TERMINAL = "terminal"
"""The actor of a command: anyone with write access to the database."""
SIGN_OUT = "sign out"
PAGE = 50
"""Acts read at a time."""


def person(session: Session, voter_id: str) -> Person | None:
    """Read the person that a voter is, or turned out to be; None of the anonymous."""
    their_own = col(PersonRow.voter_id) == OWNER
    query = select(PersonRow).join(VoterRow, their_own).where(VoterRow.id == voter_id)
    row = session.exec(query).one_or_none()
    return None if row is None else _person(row)


def is_anybody_known(session: Session) -> bool:
    """Tell whether there is a person at all, and not only anonymous voters."""
    return session.exec(select(PersonRow.voter_id).limit(1)).first() is not None


def is_in(session: Session, person: Person) -> bool:
    """Tell whether a person is still as signed in as they were; so they stay to the commit."""
    row = session.get(PersonRow, person.id, with_for_update=True)
    return row is not None and not row.blocked and row.sessions == person.sessions


def entered(session: Session, entrance: Entrance, before: str | None) -> Person | None:
    """Read whom an issuer vouches for; None where `enter` would write something."""
    row = _known(session, entrance)
    if row is None or entrance.after(Role(row.role)) != row.role:
        return None
    unclaimed = session.exec(select(VoterRow.id).where(_unclaimed(before))).first()
    return None if unclaimed else _person(row)


def enter(session: Session, entrance: Entrance, before: str | None, now: datetime) -> Person:
    """Let in whom an issuer vouches for, as the voter that they are, or as a new one.

    Parameters
    ----------
    before : str or None
        Voter that their browser was until now, whose battles become theirs.
    """
    row = _known(session, entrance) or _first(session, entrance, now)
    row.role = entrance.after(Role(row.role))
    _adopt(session, before, row.voter_id)
    return _person(row)


def invite(
    session: Session,
    invitation: Invitation,
    token_hash: str,
    expires: datetime,
    now: datetime,
    by: str,
) -> None:
    """Write down a link that lets people in until it expires; one that is there stays as it is.

    That holds also where the same link is written down twice at one instant.

    Raises
    ------
    UnknownPersonError
        If the link was written down before, and lets nobody in any more.
    """
    alone(session.connection())
    known = select(InvitationRow.id).where(InvitationRow.token_hash == token_hash)
    if session.exec(known).first() is not None:
        if _open_invitation(session, token_hash, now) is None:
            raise UnknownPersonError(invitation.name)
        return
    times: dict[str, Any] = {"expires": expires, "created": now}
    session.add(InvitationRow(**asdict(invitation), token_hash=token_hash, used=0, **times))
    detail = {"role": invitation.role, "uses": invitation.uses, "device": invitation.person}
    note(session, by, "invite", invitation.name, detail, now)


def invitation(session: Session, token_hash: str, now: datetime) -> Invitation | None:
    """Read what a link gives; None if there is none, or it is used up or has expired."""
    row = _open_invitation(session, token_hash, now)
    if row is None:
        return None
    return Invitation(Role(row.role), row.name, row.uses - row.used, row.person)


def pending(session: Session, now: datetime) -> list[Pending]:
    """Read the invitations that still admit a user, newest first."""
    query = select(InvitationRow).where(_is_open(now)).order_by(col(InvitationRow.id).desc())
    return [_pending(row) for row in session.exec(query)]


def change_invitation(
    session: Session, id: int, by: str, now: datetime, *, role: Role | None = None
) -> Pending:
    """Let an invitation give another role, or without one revoke it.

    Raises
    ------
    UnknownPersonError
        If it lets nobody in any more, or is for a device of a user, who has a role.
    """
    query = select(InvitationRow).where(InvitationRow.id == id, _is_open(now)).with_for_update()
    row = session.exec(query).one_or_none()
    if row is None or (role and row.person):
        raise UnknownPersonError(str(id))
    before = _pending(row)
    if role is None:
        row.expires = now
        note(session, by, "revoke invitation", row.name, {"role": row.role}, now)
    else:
        detail = {"before": row.role, "after": role}
        row.role = role
        note(session, by, "change invitation", row.name, detail, now)
    return before if role is None else _pending(row)


def accept(session: Session, token_hash: str, before: str | None, now: datetime) -> Person | None:
    """Sign in by a link, and count its use; None if the link is no longer valid.

    Parameters
    ----------
    before : str or None
        Voter that their browser was until now, whose battles become theirs.
    """
    row = _open_invitation(session, token_hash, now)
    if row is None:
        return None
    row.used += 1
    if row.person is not None:
        entered = session.get_one(PersonRow, row.person)
    else:
        name = row.name if row.uses == 1 else f"{row.name} {row.used}"
        entrance = Entrance(INVITES, f"{row.id}:{row.used}", name, Role(row.role))
        entered = _new_person(session, entrance, VoterKind.INVITED, now)
    if entered.blocked:
        return None
    _adopt(session, before, entered.voter_id)
    return _person(entered)


def change(
    session: Session,
    voter_id: str,
    by: str,
    now: datetime,
    *,
    role: Role | None = None,
    blocked: bool | None = None,
    sign_out: bool = False,
) -> Person:
    """Give a person another role, keep them out or let them in again, or sign their devices out.

    Raises
    ------
    UnknownPersonError
        If the arena knows nobody of this id.

    Notes
    -----
    Links for further devices expire with the devices: one may be in the hands of those who are
    to be signed out.
    """
    row = session.get(PersonRow, voter_id, with_for_update=True)
    if row is None:
        raise UnknownPersonError(voter_id)
    before = {"role": row.role, "blocked": row.blocked}
    row.role = row.role if role is None else role
    row.blocked = row.blocked if blocked is None else blocked
    row.sessions += sign_out
    if sign_out or row.blocked:
        of_devices = (col(InvitationRow.person) == voter_id, col(InvitationRow.expires) > now)
        session.exec(update(InvitationRow).where(*of_devices).values(expires=now))
    after = {"role": row.role, "blocked": row.blocked}
    detail = {"before": before, "after": after, "signed_out": sign_out}
    note(session, by, "change person", voter_id, detail, now)
    return _person(row)


def is_signed_out(session: Session, ended: str) -> bool:
    """Tell whether a session was ended."""
    same = col(ActRow.act) == SIGN_OUT, col(ActRow.subject) == ended
    return session.exec(select(ActRow.id).where(*same)).first() is not None


def matching(session: Session, wanted: str) -> list[tuple[Person, str, int, datetime]]:
    """Read the people whose id begins so, or who have this name; all of them for an empty word.

    Each with who let them in, the votes of all their devices, and since when.
    """
    same = col(PersonRow.voter_id) == OWNER
    votes = (
        select(func.count(col(VoteRow.id)))
        .join(VoterRow, col(VoterRow.id) == col(VoteRow.voter_id))
        .where(same)
        .scalar_subquery()
    )
    begins = col(PersonRow.voter_id).startswith(wanted, autoescape=True)
    named = or_(begins, col(PersonRow.name) == wanted)
    query = select(PersonRow, votes).where(named).order_by(col(PersonRow.created))
    rows = session.exec(query)
    return [(_person(row), row.issuer, cast, row.created) for row, cast in rows]


def names(session: Session, voters: Collection[str]) -> dict[str, str]:
    """Give the names of those among some voters who are users."""
    known = select(PersonRow.voter_id, PersonRow.name).where(col(PersonRow.voter_id).in_(voters))
    return dict(session.exec(known).all())


def devices_of(session: Session, owner: str) -> list[str]:
    """Return the id of a user or of another voter, and those of their other devices."""
    theirs = select(col(VoterRow.id)).where(col(VoterRow.person) == owner)
    return [owner, *sorted(session.scalars(theirs))]


def note(
    session: Session, by: str, act: str, subject: str, detail: Mapping[str, Any], now: datetime
) -> None:
    """Write down what an administrator did."""
    session.add(ActRow(by=by, act=act, subject=subject, detail=dict(detail), created=now))


def adopted(session: Session) -> int:
    """Count the voters who turned out to be users."""
    known = select(func.count()).select_from(VoterRow).where(col(VoterRow.person).is_not(None))
    return session.exec(known).one()


def acts(
    session: Session, before: int | None = None, most: int = PAGE
) -> tuple[tuple[Any, ...], int | None]:
    """Read what those who run the arena did, newest first.

    Parameters
    ----------
    before : int or None
        Only acts at lower places.

    Returns
    -------
    acts : tuple of row
        With ``by``, the id of a person, or ``terminal``; ``name``, that person's, None for the
        terminal; ``act``, ``subject``, ``person``, the name of the user who is the subject;
        ``detail``, what the act consists in, and ``created``.
    older_than : int or None
        Place before which the next page begins; None if there are no older ones.
    """
    person = aliased(PersonRow)
    columns = map(col, (ActRow.act, ActRow.subject, ActRow.detail, ActRow.created, ActRow.id))
    query: Any = (
        sa_select(col(ActRow.by), col(PersonRow.name), col(person.name).label("person"), *columns)
        .join(PersonRow, col(PersonRow.voter_id) == col(ActRow.by), isouter=True)
        .join(person, col(person.voter_id) == col(ActRow.subject), isouter=True)
        .order_by(col(ActRow.id).desc())
        .limit(most + 1)
    )
    if before is not None:
        query = query.where(col(ActRow.id) < before)
    rows = session.connection().execute(query).all()
    return tuple(rows[:most]), rows[most - 1].id if len(rows) > most else None


def _open_invitation(session: Session, token_hash: str, now: datetime) -> InvitationRow | None:
    with_it = InvitationRow.token_hash == token_hash
    query = select(InvitationRow).where(with_it, _is_open(now)).with_for_update()
    return session.exec(query).one_or_none()


def _is_open(now: datetime) -> ColumnElement[bool]:
    """Say, in a query on invitations, whether one admits a user."""
    return and_(
        col(InvitationRow.used) < col(InvitationRow.uses), col(InvitationRow.expires) > now
    )


def _pending(row: InvitationRow) -> Pending:
    assert row.id is not None
    invitation = Invitation(Role(row.role), row.name, row.uses, row.person)
    return Pending(row.id, invitation, row.used, row.created, row.expires)


def _known(session: Session, entrance: Entrance) -> PersonRow | None:
    query = select(PersonRow).where(
        PersonRow.issuer == entrance.issuer, PersonRow.subject == entrance.subject
    )
    return session.exec(query).one_or_none()


def _first(session: Session, entrance: Entrance, now: datetime) -> PersonRow:
    """Write down whom an issuer vouches for, unless that was done by another just now."""
    try:
        with session.begin_nested():
            return _new_person(session, entrance, VoterKind.LOGIN, now)
    except IntegrityError:
        if (row := _known(session, entrance)) is None:
            raise
        return row


def _new_person(session: Session, entrance: Entrance, kind: VoterKind, now: datetime) -> PersonRow:
    voter = VoterRow(id=uuid.uuid4().hex, kind=kind, created=now)
    session.add(voter)
    session.flush()
    row = PersonRow(**asdict(entrance), voter_id=voter.id, sessions=1, blocked=False, created=now)
    session.add(row)
    session.flush()
    return row


def _adopt(session: Session, before: str | None, voter_id: str) -> None:
    """Let an anonymous voter be a person from now on; who is a person already stays their own."""
    session.exec(update(VoterRow).where(_unclaimed(before)).values(person=voter_id))


def _unclaimed(before: str | None) -> ColumnElement[bool]:
    """Select the voter that a browser was, if nobody is them yet."""
    return and_(
        col(VoterRow.id) == before,
        col(VoterRow.kind) == VoterKind.ANONYMOUS,
        col(VoterRow.person).is_(None),
    )


def _person(row: PersonRow) -> Person:
    return Person(
        id=row.voter_id,
        name=row.name,
        role=Role(row.role),
        kind=VoterKind.LOGIN if row.issuer != INVITES else VoterKind.INVITED,
        sessions=row.sessions,
        blocked=row.blocked,
    )
