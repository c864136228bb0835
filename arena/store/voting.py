"""The transactions of a vote: casting it, remarks beside it, its exclusion and its reinstatement.

`cast` and `exclude` extend the hash chain; both write nothing unless every check passes. Remarks
are rows of their own, which no link binds. Exclusions are only added: `readmit` adds a counter
row, and the newest row on a vote decides. Statements of `cast` are built once, as people wait for
a vote.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, Float, bindparam, func, insert, or_, select, type_coerce, update
from sqlmodel import Session, col

from arena.domain.battle import BattleState, Intent, Mode, Remarks, Side, current_state, in_order
from arena.domain.model import is_gold
from arena.domain.vote import DEFAULT, READMITTED, Choice, Receipt, Reveal, RevealedModel, cut_of
from arena.errors import ERASED, EXPIRED, AlreadyVotedError, NotReadyError, UnknownBattleError
from arena.store import chain
from arena.store.chain import Ballot
from arena.store.tables import (
    BOTH_MODELS,
    LAST_ASKED,
    OWNER,
    AnswerRow,
    BattleRow,
    ExclusionRow,
    FlagRow,
    ModelRow,
    PersonRow,
    VoteRemarkRow,
    VoteRow,
    VoterRow,
    columns_of,
    is_newest,
    is_standing,
)
from arena.store.tables import is_gold as is_gold_row
from rating.outcome import SHOWN_FIRST, SIDES, of_sides
from rating.sentences import Sentence

# Remarks

VOTE_BEFORE_REASONS = Sentence("Vote first. Then you can give reasons.")
NOT_ASKED = Sentence("This arena does not ask for reasons.")
REMARKED = ("reasons_a", "reasons_b", "comment", "confidence", "intent", "before_reveal")
"""Columns of what was remarked, by their names in an export."""

_ON: Any = (
    select(
        OWNER.label("owner"),
        col(BattleRow.erased),
        col(VoteRow.id).label("vote"),
        col(VoteRow.outcome),
    )
    .join(VoterRow, col(VoterRow.id) == col(BattleRow.owner))
    .outerjoin(VoteRow, col(VoteRow.battle_id) == col(BattleRow.id))
    .where(col(BattleRow.public_id) == bindparam("public_id"))
    .with_for_update(of=BattleRow)
)
_BESIDE = select(*columns_of(VoteRemarkRow, *REMARKED, "updated", "vote_id")).where(
    col(VoteRemarkRow.vote_id).in_(bindparam("votes", expanding=True))
)
_ADD = insert(VoteRemarkRow)
_CHANGE = update(VoteRemarkRow).where(col(VoteRemarkRow.vote_id) == bindparam("vote"))


def remark(
    session: Session,
    battle_id: str,
    owner: str,
    remarks: Remarks,
    now: datetime,
    *,
    asked: bool = True,
) -> None:
    """Write what was remarked beside a vote in the place of what was; the vote stays as it is.

    Parameters
    ----------
    asked : bool
        Whether the arena asks; where it does not, only withheld names can be asked for.

    Raises
    ------
    UnknownBattleError, NotReadyError
        Nothing is written then.
    """
    connection = session.connection()
    on = connection.execute(_ON, {"public_id": battle_id}).one_or_none()
    if on is None or on.owner != owner:
        raise UnknownBattleError
    if on.erased is not None:
        raise NotReadyError(ERASED)
    if on.outcome in (None, Choice.SKIP):
        raise NotReadyError(VOTE_BEFORE_REASONS)
    there = connection.execute(_BESIDE, {"votes": [on.vote]}).one_or_none()
    if not asked and (there is None or there.updated is not None):
        raise NotReadyError(NOT_ASKED)
    values = _values(replace(remarks, before_reveal=_before_reveal(there, remarks)), now)
    if there is None:
        connection.execute(_ADD, {"vote_id": on.vote, **values})
    else:
        connection.execute(_CHANGE.values(**values), {"vote": on.vote})


def of_votes(session: Session, votes: Collection[int]) -> dict[int, Any]:
    """Give the rows of what was remarked beside votes, by the votes' keys."""
    rows = session.connection().execute(_BESIDE, {"votes": list(votes)})
    return {row.vote_id: row for row in rows if row.updated is not None}


def of_battles(session: Session) -> dict[str, dict[str, Any]]:
    """Give what was remarked beside all votes, by public battle id, as an export has it."""
    query = (
        select(col(BattleRow.public_id), *columns_of(VoteRemarkRow, *REMARKED, "updated"))
        .join(VoteRow, col(VoteRow.id) == col(VoteRemarkRow.vote_id))
        .join(BattleRow, col(BattleRow.id) == col(VoteRow.battle_id))
        .where(col(VoteRemarkRow.updated).is_not(None))
    )
    return {row.public_id: exported(row) for row in session.connection().execute(query)}


def exported(row: Any) -> dict[str, Any]:
    """Give a row by the names of columns of an export of votes."""
    return {
        "reasons_a": ",".join(row.reasons_a),
        "reasons_b": ",".join(row.reasons_b),
        "confidence": row.confidence,
        "voter_intent": row.intent,
        "before_reveal": int(row.before_reveal),
        "remarked": row.updated,
    }


def remarks_of(row: Any) -> Remarks:
    """Give what a row says."""
    return Remarks(
        reasons_a=in_order(row.reasons_a),
        reasons_b=in_order(row.reasons_b),
        comment=row.comment,
        confidence=row.confidence,
        intent=Intent(row.intent) if row.intent else None,
        before_reveal=row.before_reveal,
    )


def _before_reveal(there: Any, remarks: Remarks) -> bool:
    """Return whether what is to be written was, except the intent, given before the reveal."""
    if there is None or not there.before_reveal:
        return False
    was = remarks_of(there)
    return there.updated is None or replace(was, intent=remarks.intent) == replace(
        remarks, before_reveal=True
    )


def _values(remarks: Remarks, now: datetime | None) -> dict[str, Any]:
    reasons = {"reasons_a": list(remarks.reasons_a), "reasons_b": list(remarks.reasons_b)}
    return asdict(remarks) | reasons | {"updated": now}


# Votes


def _of_model(column: Any, model: Any) -> Any:
    """Read a model beside its battle: a join would lose a battle whose model changed meanwhile."""
    read = select(col(column)).where(col(ModelRow.id) == col(model))
    return read.correlate(BattleRow).scalar_subquery()


_BATTLE = (
    select(
        *columns_of(BattleRow, "id", "owner", "state", "ready", "erased"),
        LAST_ASKED.label("asked"),
        *chain.OF_BATTLE,
        col(VoterRow.kind).label("voter_kind"),
        col(VoterRow.person),
        *(
            _of_model(known, model).label(label)
            for known, name in ((ModelRow.fingerprint, "fingerprint"), (ModelRow.name, "name"))
            for model, label in zip(BOTH_MODELS, of_sides(name), strict=True)
        ),
    )
    .join(VoterRow, col(VoterRow.id) == col(BattleRow.owner))
    .where(col(BattleRow.public_id) == bindparam("public_id"))
    .with_for_update(of=BattleRow)
)
_VOTE = select(col(VoteRow.id), col(VoteRow.key), col(VoteRow.outcome)).where(
    col(VoteRow.battle_id) == bindparam("battle")
)
_WAITS = select(col(VoteRemarkRow.vote_id)).where(
    col(VoteRemarkRow.vote_id) == bindparam("vote"), col(VoteRemarkRow.updated).is_(None)
)
_APPEND = insert(VoteRow)
_EXCLUDE = insert(ExclusionRow)
_VOTE_ON = (
    select(col(VoteRow.id), col(VoteRow.link))
    .join(BattleRow, col(BattleRow.id) == col(VoteRow.battle_id))
    .where(col(BattleRow.public_id) == bindparam("public_id"))
)
_CLOSE = update(BattleRow).where(col(BattleRow.id) == bindparam("battle"))


def cast(session: Session, ballot: Ballot) -> tuple[Receipt, bool]:
    """Write a vote, and read whom it reveals; the same key with the same choice is written once.

    Gives the receipt, and whether the vote was written just now.

    Whom it reveals stays out of the receipt while it is withheld.

    Raises
    ------
    UnknownBattleError, NotReadyError, AlreadyVotedError
        Nothing is written then.
    """
    connection = session.connection()
    battle = connection.execute(_BATTLE, {"public_id": ballot.battle_id}).one_or_none()
    if battle is None or ballot.voter != (battle.person or battle.owner):
        raise UnknownBattleError
    ready = battle.state == BattleState.READY
    vote = None if ready else connection.execute(_VOTE, {"battle": battle.id}).one_or_none()
    if vote is None:
        _require_ready(battle, ballot.asked_since)
    elif (vote.key, vote.outcome) != (ballot.key, ballot.choice):
        raise AlreadyVotedError(Choice(vote.outcome))
    transcript = chain.transcripts(connection, [battle.id])[battle.id]
    if vote is None:
        key = _append(connection, battle, transcript, ballot)
        withheld = ballot.withhold and ballot.choice is not Choice.SKIP
        if withheld:
            session.connection().execute(
                _ADD, {"vote_id": key, **_values(Remarks(before_reveal=True), None)}
            )
    else:
        withheld = connection.execute(_WAITS, {"vote": vote.id}).first() is not None
    a, b = (transcript.last[side] for side in Side)
    reveal = Reveal(_revealed(battle.name_a, a), _revealed(battle.name_b, b))
    gold = is_gold(battle.prompt_set)
    return Receipt.of(ballot.choice, reveal, gold=gold, withheld=withheld), vote is None


def exclude(
    session: Session,
    battle_id: str,
    *,
    policy: str,
    rule: str,
    version: str,
    reason: str,
    now: datetime,
) -> None:
    """Let a policy exclude the vote on a battle from here on.

    Raises
    ------
    UnknownBattleError
        If the battle has no vote.
    """
    connection = session.connection()
    vote = connection.execute(_VOTE_ON, {"public_id": battle_id}).one_or_none()
    if vote is None:
        raise UnknownBattleError
    why = {"policy": policy, "rule": rule, "version": version, "reason": reason}
    content = chain.exclusion_content(why | {"vote": vote.link, "ts": now})
    link = chain.extend(connection, "exclusion", content)
    connection.execute(_EXCLUDE, why | link | {"vote_id": vote.id, "created": now})


def _require_ready(battle: chain.AnyRow, asked_since: datetime | None) -> None:
    if battle.mode != Mode.ANONYMOUS:
        raise NotReadyError(Sentence("This battle goes on after its vote. It is not counted."))
    if battle.erased is not None:
        raise NotReadyError(ERASED)
    if asked_since is not None:
        state = current_state(
            BattleState(battle.state), Mode(battle.mode), battle.asked, asked_since
        )
        if state is BattleState.EXPIRED:
            raise NotReadyError(EXPIRED)
    if battle.state != BattleState.READY or battle.ready is None:
        msg = Sentence("Both answers must be complete before you can vote on this battle.")
        raise NotReadyError(msg)


def _revealed(name: str, last: chain.AnyRow) -> RevealedModel:
    figures = (last.first_token_s, last.tokens_out, last.cost)
    return RevealedModel(last.model_id, name, *figures, cut_of(last.finish_reason))


def _append(
    connection: Connection, battle: chain.AnyRow, transcript: chain.Transcript, ballot: Ballot
) -> int:
    """Append the vote to the chain, and close its battle; gives the vote's key."""
    a, b = (transcript.last[side] for side in Side)
    vote = {
        "turn": a.turn,
        "attempt_a": a.attempt,
        "attempt_b": b.attempt,
        "order_shown": SHOWN_FIRST[0],
        "fingerprint_a": battle.fingerprint_a,
        "fingerprint_b": battle.fingerprint_b,
        "seconds_to_vote": max(0.0, (ballot.cast - battle.ready).total_seconds()),
    }
    broken = chain.is_broken(vote, transcript.answers)
    choice = {"winner": ballot.choice, "voter": battle.owner, "ts": ballot.cast}
    whole = battle._asdict() | vote | choice | {"transcript_hash": transcript.hash}
    link = chain.extend(connection, "vote", chain.vote_content(whole))
    rest = {
        "battle_id": battle.id,
        "voter_id": battle.owner,
        "outcome": ballot.choice,
        "key": ballot.key,
        "created": ballot.cast,
        "broken": broken,
    }
    appended = connection.execute(_APPEND, vote | rest | link)
    skipped = ballot.choice is Choice.SKIP
    state = BattleState.SKIPPED if skipped else BattleState.VOTED
    connection.execute(_CLOSE, {"battle": battle.id, "state": state})
    (key,) = appended.inserted_primary_key or (0,)
    return int(key)


# Exclusions

HELD = "held"
APPLIED = "applied"
LEAST_ID = 8
"""Characters of an id that name a voter."""


@dataclass(frozen=True, slots=True)
class Grounds:
    """Why votes are excluded, or reinstated.

    Attributes
    ----------
    version : str
        Of the rule.
    reason : str
        For people; leaderboards count the votes that are excluded by it.
    """

    rule: str
    version: str
    reason: str


class _VotedAnswer(NamedTuple):
    """An answer of a battle with a vote."""

    key: int | None
    battle: str
    model: str
    text: str


def meant(session: Session, target: str) -> tuple[str, list[str], list[str]]:
    """Give the whole id of a voter or battle, the battles of its votes, and users of that name.

    A name that one user alone has stands for their id; they are not looked for where an id has
    votes.
    """
    # The id of the one voter whose id begins so; a whole id, or another, as it is.
    ids = (col(VoterRow.id), col(VoterRow.person))
    begins = or_(*(one.startswith(target, autoescape=True) for one in ids))
    query = select(OWNER, col(VoterRow.id)).where(begins)
    known = session.connection().execute(query).all() if len(target) >= LEAST_ID else []
    owners = {owner for owner, _ in known}
    is_whole = target in owners | {one for _, one in known}
    whole = target if is_whole or len(owners) != 1 else str(owners.pop())
    battles = _battles_meant(session, whole)
    if battles:
        return whole, battles, []
    named = list(
        session.scalars(select(col(PersonRow.voter_id)).where(col(PersonRow.name) == target))
    )
    if len(named) == 1:
        whole, battles = named[0], _battles_meant(session, named[0])
    return (whole if battles else target), battles, named


def busiest(session: Session, most: int) -> Sequence[chain.AnyRow]:
    """Count the votes of those who voted most here, whether they count or not.

    Rows with ``voter``, ``votes``, and ``last``, when they voted last.
    """
    voter, votes = OWNER.label("voter"), func.count().label("votes")
    query = (
        select(voter, votes, func.max(col(VoteRow.created)).label("last"))
        .join(VoteRow, col(VoteRow.voter_id) == col(VoterRow.id))
        .where(col(VoterRow.kind).in_(DEFAULT.kinds))
        .group_by(voter)
        .order_by(votes.desc(), voter)
        .limit(most)
    )
    return session.connection().execute(query).all()


def _battles_meant(session: Session, target: str) -> list[str]:
    """Give the battles whose votes a voter's id stands for, or a battle's; none if unknown.

    A person's id stands for what they cast before they signed in, too.
    """
    ids = (VoterRow.id, VoterRow.person, BattleRow.public_id)
    query = (
        select(col(BattleRow.public_id))
        .join(VoteRow, col(VoteRow.battle_id) == col(BattleRow.id))
        .join(VoterRow, col(VoterRow.id) == col(VoteRow.voter_id))
        .where(or_(*(col(one) == target for one in ids)))
        .order_by(col(VoteRow.link))
    )
    return list(session.connection().scalars(query))


def rules(session: Session, policy: str) -> dict[str, str]:
    """Give the rule of the newest row on each vote that has any, by battle."""
    query = (
        select(col(BattleRow.public_id), col(ExclusionRow.rule))
        .join(VoteRow, col(VoteRow.battle_id) == col(BattleRow.id))
        .join(ExclusionRow, col(ExclusionRow.vote_id) == col(VoteRow.id))
        .where(is_newest(policy))
    )
    return dict(session.connection().execute(query).all())


def exclude_votes(
    session: Session, policy: str, battles: Collection[str], grounds: Grounds, now: datetime
) -> int:
    """Exclude the votes on battles, but those that are out already; gives how many.

    Raises
    ------
    UnknownBattleError
        If a battle has no vote.
    """
    known = rules(session, policy)
    fresh = [one for one in battles if known.get(one, READMITTED) == READMITTED]
    for battle in fresh:
        exclude(session, battle, policy=policy, **asdict(grounds), now=now)
    return len(fresh)


def readmit(
    session: Session,
    policy: str,
    battles: Collection[str],
    *,
    version: str,
    reason: str,
    now: datetime,
) -> int:
    """Reinstate the votes on battles, those that are out; gives how many."""
    known = rules(session, policy)
    out = [one for one in battles if known.get(one, READMITTED) != READMITTED]
    counter = asdict(Grounds(READMITTED, version, reason))
    for battle in out:
        exclude(session, battle, policy=policy, **counter, now=now)
    return len(out)


def flag(
    session: Session,
    grounds: Grounds,
    now: datetime,
    *,
    voter: str | None = None,
    battle: int | None = None,
    score: float | None = None,
) -> None:
    """Mark a voter or a battle, by its key; else a rule as a whole, with the share it is about."""
    row = FlagRow(voter_id=voter, battle_id=battle, score=score, created=now, **asdict(grounds))
    session.add(row)


def answers(session: Session) -> Iterator[_VotedAnswer]:
    """Give the answers of battles up to the turn that was voted on, in the order of the votes."""
    query = (
        select(
            *columns_of(BattleRow, "id", "public_id"), *columns_of(AnswerRow, "model_id", "text")
        )
        .join(VoteRow, col(VoteRow.battle_id) == col(BattleRow.id))
        .join(AnswerRow, col(AnswerRow.battle_id) == col(BattleRow.id))
        .where(col(AnswerRow.turn) <= col(VoteRow.turn), col(AnswerRow.nonce).is_not(None))
        .where(~is_gold_row())
        .order_by(col(VoteRow.link), col(AnswerRow.id))
    )
    for row in session.connection().execute(query.execution_options(yield_per=500)):
        yield _VotedAnswer(*row)


def flagged_battles(session: Session, rule: str, version: str) -> set[int]:
    """Give the keys of battles that a version of a rule has marked."""
    query = select(col(FlagRow.battle_id)).where(
        col(FlagRow.rule) == rule,
        col(FlagRow.version) == version,
        col(FlagRow.battle_id).is_not(None),
    )
    return {key for key in session.connection().scalars(query) if key is not None}


def left_out(session: Session, policy: str, most: int) -> Sequence[chain.AnyRow]:
    """Count the votes that are excluded by voter, rule and reason; those of most votes first.

    Rows with ``voter``, ``rule``, ``reason`` and ``votes``.
    """
    voter, votes = OWNER.label("voter"), func.count().label("votes")
    grounds = (col(ExclusionRow.rule), col(ExclusionRow.reason))
    query = (
        select(voter, *grounds, votes)
        .join(VoteRow, col(VoteRow.voter_id) == col(VoterRow.id))
        .join(ExclusionRow, col(ExclusionRow.vote_id) == col(VoteRow.id))
        .where(is_standing(policy))
        .group_by(voter, *grounds)
        .order_by(votes.desc(), voter)
        .limit(most)
    )
    return session.connection().execute(query).all()


def flagged(session: Session, policy: str, most: int) -> Sequence[chain.AnyRow]:
    """Give the battles that rules have marked, the last marked first.

    Rows with ``battle``, its models ``a`` and ``b``, ``rule``, ``reason``, ``created``, and
    ``counts``, whether no exclusion stands on its vote.
    """
    out = select(col(ExclusionRow.vote_id)).where(is_standing(policy))
    query: Any = (
        select(
            col(BattleRow.public_id).label("battle"),
            *(one.label(side) for one, side in zip(BOTH_MODELS, SIDES, strict=True)),
            *map(col, (FlagRow.rule, FlagRow.reason, FlagRow.created)),
            col(VoteRow.id).not_in(out).label("counts"),
        )
        .join(FlagRow, col(FlagRow.battle_id) == col(BattleRow.id))
        .join(VoteRow, col(VoteRow.battle_id) == col(BattleRow.id))
        .order_by(col(FlagRow.id).desc())
        .limit(most)
    )
    return session.connection().execute(query).all()


def held(session: Session) -> dict[str, float]:
    """Give the rules that were held when last applied, with the share they would exclude."""
    of_rules = col(FlagRow.voter_id).is_(None) & col(FlagRow.battle_id).is_(None)
    newest = select(func.max(col(FlagRow.id))).where(of_rules).group_by(col(FlagRow.rule))
    query = (
        select(col(FlagRow.rule), type_coerce(col(FlagRow.score), Float))
        .where(col(FlagRow.id).in_(newest), col(FlagRow.reason) == HELD)
        .order_by(col(FlagRow.rule))
    )
    return dict(session.connection().execute(query).all())
