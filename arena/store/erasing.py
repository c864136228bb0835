"""Erasure: the texts of a voter, at their wish, and what is older than the settings keep it.

`erase` deletes the texts of a voter in every row that contains them; `expire` deletes texts that
are too old, and whole battles without a vote. A vote binds each text by its hash behind a nonce.
Text and nonce go together, so that nobody can guess the text by what is left, and the chain still
verifies. Votes go by `take_out` alone, which leaves their hashes and adds a deletion record.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, bindparam, case, delete, func, insert, literal, select, update
from sqlmodel import Session, col

from arena.domain.battle import BattleState
from arena.domain.people import INVITES, Erased, Perishable
from arena.errors import ERASED, UnknownBattleError, UnknownPersonError
from arena.store import blocks, chain, kept_boards
from arena.store.battles import interrupt_battles
from arena.store.chain import TAKEN_OUT, text_hash
from arena.store.engine import alone
from arena.store.people import devices_of, note
from arena.store.store import Store
from arena.store.tables import (
    OWNER,
    RUNNING,
    ActRow,
    AnswerRow,
    BattleRow,
    ExclusionRow,
    FlagRow,
    InvitationRow,
    JudgementRow,
    LinkRow,
    PersonRow,
    PromptLabelRow,
    SourcePairRow,
    StudyAssignmentRow,
    StudyRaterRow,
    StudyRatingRow,
    TopicReleaseRow,
    TurnRow,
    UtcDateTime,
    VerdictRow,
    VoteRemarkRow,
    VoteRow,
    VoterRow,
    VoteStyleRow,
    columns_of,
)
from arena.store.voting import LEAST_ID

ERASE, EXPIRE, CLEAR = "erase words", "expire", "clear space"
"""Acts: words went, for their owner or with time, and the files were written again."""
BATCH = 500
"""Rows in one statement."""
PIECE = 24
"""Characters of a piece by which a text is known again in what a judge was sent."""
MOST_PIECES = 64
"""Pieces of a text that are looked for."""

_OF_THESE: Any = bindparam("battles", expanding=True)
_LOCK = (
    select(col(BattleRow.id))
    .where(col(BattleRow.id).in_(_OF_THESE))
    .order_by(col(BattleRow.id))  # as all do who lock several
    .with_for_update()
)
_TURNS: Any = select(col(TurnRow.id), col(TurnRow.prompt).label("text"), col(TurnRow.nonce)).where(
    col(TurnRow.battle_id).in_(_OF_THESE), col(TurnRow.nonce).is_not(None)
)
_ANSWERS = select(
    col(AnswerRow.id), col(AnswerRow.text), col(AnswerRow.reasoning), col(AnswerRow.nonce)
).where(col(AnswerRow.battle_id).in_(_OF_THESE), col(AnswerRow.nonce).is_not(None))
_EMPTY_TURN = (
    update(TurnRow)
    .where(col(TurnRow.id) == bindparam("key"))
    .values(prompt="", nonce=None, text_hash=bindparam("left"))
)
_EMPTY_ANSWER = (
    update(AnswerRow)
    .where(col(AnswerRow.id) == bindparam("key"))
    .values(
        text="",
        nonce=None,
        text_hash=bindparam("left"),
        reasoning="",
        error_detail=None,
        request_id=None,
        needs=None,
        erased_chars=bindparam("characters"),
    )
)
_VOTED = select(col(VoteRow.id)).where(col(VoteRow.battle_id).in_(_OF_THESE))
_DROP_REMARKS, _DROP_STYLES = (
    delete(row).where(col(row.vote_id).in_(_VOTED)) for row in (VoteRemarkRow, VoteStyleRow)
)
_OF_LINK = ("link", "content", "previous_hash", "hash")
_VOTES: Any = select(*columns_of(VoteRow, *_OF_LINK)).where(col(VoteRow.battle_id).in_(_OF_THESE))
_N_VOTES = select(func.count()).select_from(VoteRow).where(col(VoteRow.battle_id).in_(_OF_THESE))
_ON_THESE = col(ExclusionRow.vote_id).in_(_VOTED)
_EXCLUSIONS: Any = select(*columns_of(ExclusionRow, *_OF_LINK)).where(_ON_THESE)
_DROP_EXCLUSIONS = delete(ExclusionRow).where(_ON_THESE)
_DROP_VOTES = delete(VoteRow).where(col(VoteRow.battle_id).in_(_OF_THESE))
_NO_VOTE = (
    update(BattleRow)
    .where(
        col(BattleRow.id).in_(_OF_THESE),
        col(BattleRow.state).in_((BattleState.VOTED, BattleState.SKIPPED)),
    )
    .values(state=BattleState.STOPPED)
)
_MARK = update(BattleRow).where(col(BattleRow.id).in_(_OF_THESE))
_CLOSE = (
    update(BattleRow)
    .where(
        col(BattleRow.id).in_(_OF_THESE), col(BattleRow.id).not_in(select(col(VoteRow.battle_id)))
    )
    .values(
        prompt_id=None,
        state=case(
            (col(BattleRow.state) == BattleState.READY, BattleState.STOPPED),
            else_=col(BattleRow.state),
        ),
    )
)
"""Of battles without a vote, which nothing binds: one that waited for its vote gets none."""


def voters_of(session: Session, wanted: str) -> list[str]:
    """Return all voter ids of a voter, that of their person first if there is one.

    Parameters
    ----------
    wanted : str
        Id of a person or of any of their voters, or at least 8 characters with which it begins.

    Raises
    ------
    UnknownPersonError
        If no id begins so, those of several people do, or it is too short to tell.
    """
    if whole := session.get(VoterRow, wanted):
        return devices_of(session, whole.person or whole.id)
    if len(wanted) < LEAST_ID:
        msg = f"{wanted!r} is too short: give {LEAST_ID} characters of the id, or all of it."
        raise UnknownPersonError(msg)
    begins = col(VoterRow.id).startswith(wanted, autoescape=True)
    owners = sorted(set(session.scalars(select(OWNER).where(begins))))
    if not owners:
        msg = f"No voter has the id {wanted!r}, or one that begins so: see arena people list."
        raise UnknownPersonError(msg)
    if len(owners) > 1:
        msg = f"{len(owners)} people have ids that begin with {wanted!r}: give more of it."
        raise UnknownPersonError(msg)
    return devices_of(session, owners[0])


def battles_of(session: Session, voters: Collection[str]) -> list[int]:
    """Give the keys of all battles of voters."""
    query = select(col(BattleRow.id)).where(col(BattleRow.owner).in_(voters))
    return list(session.scalars(query.order_by(col(BattleRow.id))))


def extent(session: Session, voters: Collection[str]) -> tuple[list[str], Erased]:
    """Count what would be deleted for a voter; every judgement is read.

    Gives the hashes of the questions to judges that quote them, and how much there is, with the
    votes on their battles, which a deletion record would take out.
    """
    battles = battles_of(session, voters)
    texts = _texts_of(session, battles)
    judgements = quoting(session, texts)
    votes = sum(
        session.connection().execute(_N_VOTES, {"battles": some}).scalar_one()
        for some in _parts(battles)
    )
    ratings = _ratings_of(session, voters)
    return judgements, Erased(
        battles=len(battles),
        texts=len(texts),
        judgements=len(judgements),
        votes=votes,
        comments=sum(bool(rating.comment) for rating in ratings),
        ratings=len(ratings),
    )


def _texts_of(session: Session, battles: Sequence[int]) -> list[str]:
    """Read what was asked and answered in battles, as far as it is there."""
    connection = session.connection()
    return [
        row.text
        for some in _parts(battles)
        for query in (_TURNS, _ANSWERS)
        for row in connection.execute(query, {"battles": some})
        if row.text
    ]


def quoting(session: Session, texts: Iterable[str]) -> list[str]:
    """Find the judgements that quote one of these texts, by their hashes.

    What was made harmless in a text before a judge read it does not hide it: half of its pieces
    are enough. A text too short for pieces is known as a whole line. Every judgement is read.
    """
    pieces = [_pieces(text) for text in dict.fromkeys(texts)]
    of_piece: dict[str, list[int]] = {}
    for place, some in enumerate(pieces):
        for piece in some:
            of_piece.setdefault(piece, []).append(place)
    if not of_piece:
        return []
    rows = session.connection().execute(
        select(col(JudgementRow.hash), col(JudgementRow.request)).execution_options(yield_per=100)
    )
    return [
        key
        for key, request in rows
        if _quotes(" \n ".join(turn[1] for turn in request["messages"]), pieces, of_piece)
    ]


def erase_words(
    session: Session, battles: Sequence[int], judgements: Sequence[str], now: datetime
) -> Erased:
    """Erase the words of battles, end those that run, and forget what judges were sent of them.

    Parameters
    ----------
    judgements : sequence of str
        Hashes of those that go, as `quoting` finds them.
    """
    texts = sum(_erase_some(session, some, now) for some in _parts(battles))
    gone = sum(_drop_judgements(session.connection(), some) for some in _parts(judgements))
    if battles:
        _drop_open_topics(session, battles[0])
    return Erased(battles=len(battles), texts=texts, judgements=gone)


def take_out(session: Session, battles: Sequence[int], now: datetime) -> int:
    """Take the votes on battles out of the record, and what excluded them; gives how many votes.

    Of each the hashes stay, and a deletion record names its link: the chain holds, and shows that
    something is gone. What boards were made of them is made again.
    """
    return sum(_take_some_out(session, some, now) for some in _parts(battles))


def _forget_person(session: Session, voter: str) -> int:
    """Delete who a person is, and their name wherever it was written; gives in how many rows.

    Their devices stay one voter. Signing in again creates a new user.
    """
    person = session.get(PersonRow, voter)
    if person is None:
        return 0
    devices = delete(InvitationRow).where(col(InvitationRow.person) == voter)
    rows = session.connection().execute(devices).rowcount
    if person.issuer == INVITES:
        link = session.get(InvitationRow, int(person.subject.partition(":")[0]))
        if link is not None and link.uses == 1:
            link.name, rows = "", rows + 1
    for act in session.scalars(select(ActRow)):
        if person.name in (act.subject, *act.detail.values()):
            act.subject = "" if act.subject == person.name else act.subject
            act.detail = {k: "" if v == person.name else v for k, v in act.detail.items()}
            rows += 1
    session.delete(person)
    return rows + 1


def erase(
    session: Session,
    voters: Sequence[str],
    judgements: Sequence[str],
    by: str,
    now: datetime,
    *,
    forget: bool,
    tombstone: bool = False,
) -> Erased:
    """Delete all texts of a voter, and log the deletion without texts or names.

    Parameters
    ----------
    voters : sequence of str
        Their ids, as `voters_of` gives them.
    judgements : sequence of str
        Hashes of those that quote them, as `extent` finds them; of battles begun since then,
        the words go, too.
    forget : bool
        Whether the arena also forgets who they are.
    tombstone : bool
        Whether their votes go, too: see `take_out`.
    """
    battles = battles_of(session, voters)
    votes = take_out(session, battles, now) if tombstone else 0
    gone = erase_words(session, battles, judgements, now)
    comments, ratings = _erase_ratings(session, voters, forget=forget, drop=tombstone)
    names = _forget_person(session, voters[0]) if forget else 0
    detail = {"battles": gone.battles, "texts": gone.texts, "judgements": gone.judgements}
    counted = {"votes": votes, "comments": comments, "ratings": ratings}
    if any((gone.texts, gone.judgements, names, *counted.values())):
        also = {"names": names} | {name: n for name, n in counted.items() if n}
        note(session, by, ERASE, voters[0], detail | also, now)
    return Erased(**detail, names=names, **counted)


def _ratings_of(session: Session, voters: Collection[str]) -> list[StudyRatingRow]:
    """Read the ratings of voters in studies."""
    query = (
        select(StudyRatingRow)
        .join(StudyAssignmentRow, col(StudyAssignmentRow.id) == col(StudyRatingRow.assignment_id))
        .join(StudyRaterRow, col(StudyRaterRow.id) == col(StudyAssignmentRow.rater_id))
        .where(col(StudyRaterRow.voter_id).in_(voters))
    )
    return list(session.scalars(query))


def _erase_ratings(
    session: Session, voters: Collection[str], *, forget: bool, drop: bool
) -> tuple[int, int]:
    """Erase the comments of voters in studies, and forget whose ratings these are, or drop them.

    Gives how many comments went, and how many ratings went or are nobody's from here on.
    """
    ratings = _ratings_of(session, voters)
    comments = sum(bool(rating.comment) for rating in ratings)
    for rating in ratings:
        rating.comment = ""
    session.flush()
    raters = select(col(StudyRaterRow.id)).where(col(StudyRaterRow.voter_id).in_(voters))
    connection = session.connection()
    if drop:
        theirs = select(col(StudyAssignmentRow.id)).where(
            col(StudyAssignmentRow.rater_id).in_(raters)
        )
        connection.execute(
            delete(StudyRatingRow).where(col(StudyRatingRow.assignment_id).in_(theirs))
        )
        connection.execute(
            delete(StudyAssignmentRow).where(col(StudyAssignmentRow.rater_id).in_(raters))
        )
    if forget:
        mine = update(StudyRaterRow).where(col(StudyRaterRow.voter_id).in_(voters))
        connection.execute(mine.values(voter_id=None))
    session.expire_all()
    return comments, len(ratings) if forget or drop else 0


def clear_space(store: Store, by: str, now: datetime) -> None:
    """Write the files again in which erased words may still lie, and write down that it was done.

    Raises
    ------
    StoreError
        If the database is in use for so long that it cannot be done; nothing is lost then.
    """
    store.clear_space()
    store.write(note, by, CLEAR, "", {}, now)


def is_to_clear(session: Session) -> bool:
    """Return whether words were erased since the files were last written again."""
    newest = select(col(ActRow.act)).where(col(ActRow.act).in_((ERASE, EXPIRE, CLEAR)))
    last = session.scalars(newest.order_by(col(ActRow.id).desc()).limit(1)).first()
    return last in (ERASE, EXPIRE)


def hide(session: Session, battle_id: str, owner: str, hidden: datetime | None) -> None:
    """Hide a battle from all but its owner, or show it again; its vote counts either way.

    Raises
    ------
    UnknownBattleError
        If there is none, or it is another user's.
    """
    theirs = select(col(BattleRow.id)).where(
        col(BattleRow.public_id) == battle_id, col(BattleRow.owner).in_(devices_of(session, owner))
    )
    key = session.scalars(theirs).one_or_none()
    if key is None:
        raise UnknownBattleError
    session.connection().execute(_MARK.values(hidden=hidden), {"battles": [key]})


def _take_some_out(session: Session, battles: list[int], now: datetime) -> int:
    connection, these = session.connection(), {"battles": battles}
    connection.execute(_LOCK, these).all()
    chain.hold_end(connection)
    votes = connection.execute(_VOTES, these).all()
    if not votes:
        return 0
    exclusions = connection.execute(_EXCLUSIONS, these).all()
    rows = [
        {**row._asdict(), "kind": kind, "reason": TAKEN_OUT, "bound": None}
        for kind, some in (("vote", votes), ("exclusion", exclusions))
        for row in some
    ]
    for statement in (_DROP_EXCLUSIONS, _DROP_REMARKS, _DROP_STYLES, _DROP_VOTES, _NO_VOTE):
        connection.execute(statement, these)
    connection.execute(insert(LinkRow), rows)
    bound = {"links": sorted(row["link"] for row in rows), "ts": chain.plain(now)}
    link = chain.extend(connection, "tombstone", chain.tombstone_content(bound))
    named = {"kind": "tombstone", "reason": "", "bound": bound}
    connection.execute(insert(LinkRow), {**named, **link})
    blocks.drop_from(session, min(row.link for row in votes))
    kept_boards.drop(session)
    return len(votes)


def _erase_some(session: Session, battles: list[int], now: datetime) -> int:
    connection, these = session.connection(), {"battles": battles}
    connection.execute(_LOCK, these).all()  # left half read, it would keep SQLite's log in use
    interrupt_battles(session, battles, ERASED)
    turns = [{"key": row.id, "left": _left(row)} for row in connection.execute(_TURNS, these)]
    answers = [
        {"key": row.id, "left": _left(row), "characters": len(row.text) + len(row.reasoning)}
        for row in connection.execute(_ANSWERS, these)
    ]
    for statement, rows in ((_EMPTY_TURN, turns), (_EMPTY_ANSWER, answers)):
        if rows:
            connection.execute(statement, rows)
    for effect in (_DROP_REMARKS, _DROP_STYLES, _CLOSE):
        connection.execute(effect, these)
    since = func.coalesce(col(BattleRow.erased), literal(now, UtcDateTime()))
    connection.execute(_MARK.values(erased=since, message=ERASED), these)
    return len(turns) + len(answers)


def _left(row: Any) -> str:
    """Give what is left of a text; nothing of one that was imported, which no vote binds."""
    return text_hash(row.nonce, row.text) if row.nonce else ""


def _drop_judgements(connection: Connection, hashes: list[str]) -> int:
    read = delete(VerdictRow).where(col(VerdictRow.judgement_hash).in_(hashes))
    connection.execute(read)
    return connection.execute(
        delete(JudgementRow).where(col(JudgementRow.hash).in_(hashes))
    ).rowcount


def _drop_open_topics(session: Session, first: int) -> None:
    """Drop releases that name topics in words of anybody's; the next is made of what is left."""
    began = select(col(BattleRow.created)).where(col(BattleRow.id) == first).scalar_subquery()
    session.connection().execute(
        delete(TopicReleaseRow).where(
            col(TopicReleaseRow.private).is_(False), col(TopicReleaseRow.created) >= began
        )
    )


def _pieces(text: str) -> frozenset[str]:
    """Give pieces of a text, evenly over all of it; of a short one the text as a line."""
    plain = " ".join(text.split())
    if len(plain) < PIECE:
        return frozenset({f" \n {plain} \n "} if plain else ())
    starts = range(0, len(plain) - PIECE + 1)
    step = max(1, len(starts) // MOST_PIECES)
    return frozenset(plain[start : start + PIECE] for start in starts[::step])


def _quotes(sent: str, pieces: Sequence[Collection[str]], of_piece: dict[str, list[int]]) -> bool:
    """Return whether half the pieces of any text stand in what was sent."""
    plain = " ".join(sent.split())
    windows = {plain[start : start + PIECE] for start in range(len(plain) - PIECE + 1)}
    lines = {f" \n {' '.join(line.split())} \n " for line in sent.splitlines()}
    seen = Counter(
        place for piece in (windows | lines) & of_piece.keys() for place in of_piece[piece]
    )
    return any(2 * n >= len(pieces[place]) for place, n in seen.items())


def _parts(values: Sequence[Any]) -> Iterable[list[Any]]:
    return (list(values[start : start + BATCH]) for start in range(0, len(values), BATCH))


# Retention


def expire(store: Store, kind: Perishable, days: int, by: str, now: datetime) -> int:
    """Let some of what is too old go, and write down how much; gives the battles, 0 at the end.

    Replicas wait for one another: what one of them took is no longer there for the next.
    """
    before = now - timedelta(days=days)
    with store.reading() as session:
        old = _due(session, kind, before)
        judgements = quoting(session, _texts_of(session, old))
    if not old:
        return 0
    with store.writing() as session:
        alone(session.connection())
        still = [battle for battle in _due(session, kind, before) if battle in set(old)]
        gone = erase_words(session, still, judgements, now)
        if kind is Perishable.UNVOTED:
            turns = select(col(TurnRow.id)).where(col(TurnRow.battle_id).in_(still))
            for rows in (
                delete(PromptLabelRow).where(col(PromptLabelRow.turn_id).in_(turns)),
                delete(FlagRow).where(col(FlagRow.battle_id).in_(still)),
                delete(SourcePairRow).where(col(SourcePairRow.battle_id).in_(still)),
                delete(AnswerRow).where(col(AnswerRow.battle_id).in_(still)),
                delete(TurnRow).where(col(TurnRow.battle_id).in_(still)),
                delete(BattleRow).where(col(BattleRow.id).in_(still)),
            ):
                session.connection().execute(rows)
        if still:
            detail = {"battles": gone.battles, "days": days, "judgements": gone.judgements}
            note(session, by, EXPIRE, kind, detail, now)
    return len(old)


def gone(session: Session) -> dict[Perishable, tuple[int, datetime]]:
    """Describe how many battles were kept long enough so far, and when the last of them went."""
    acts = select(col(ActRow.subject), col(ActRow.detail), col(ActRow.created)).where(
        col(ActRow.act) == EXPIRE
    )
    so_far: dict[Perishable, tuple[int, datetime]] = {}
    for subject, detail, created in session.connection().execute(acts.order_by(col(ActRow.id))):
        kind = Perishable(subject)
        before = so_far[kind][0] if kind in so_far else 0
        so_far[kind] = before + detail["battles"], created
    return so_far


def _due(session: Session, kind: Perishable, before: datetime) -> list[int]:
    key = col(BattleRow.id)
    which = [col(BattleRow.erased).is_(None)]
    if kind is Perishable.UNVOTED:
        later = select(col(BattleRow.continues)).where(col(BattleRow.continues).is_not(None))
        which = [key.not_in(select(col(VoteRow.battle_id))), key.not_in(later)]
    over = (col(BattleRow.created) < before, col(BattleRow.state).not_in(RUNNING))
    return list(session.scalars(select(key).where(*over, *which).order_by(key).limit(BATCH)))
