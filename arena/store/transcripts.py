"""Battles with all that was asked and answered in them, some at a time, as exports read them."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, bindparam, func, select
from sqlmodel import Session, col

from arena.domain.vote import EVER, Days, Policy
from arena.store import counted, labels, remarks
from arena.store.chain import BATCH, OF_BATTLE, AnyRow
from arena.store.tables import AnswerRow, BattleRow, TurnRow, VoteRow, VoterRow

LABELS = ("category", "language", "intent", "hard")
"""Facets that an export of battles has; it counts turns and characters itself."""

_BATTLES: Select[*tuple[Any, ...]] = (
    select(
        col(BattleRow.id),
        *OF_BATTLE,
        *(col(getattr(BattleRow, name)) for name in ("state", "created")),
        func.coalesce(VoterRow.person, VoterRow.id).label("voter"),
        col(VoterRow.kind).label("voter_kind"),
        col(VoteRow.id).label("vote"),
        col(VoteRow.outcome).label("winner"),
        col(VoteRow.created).label("ts"),
        *(
            col(getattr(VoteRow, name))
            for name in ("turn", "attempt_a", "attempt_b", "seconds_to_vote", "broken")
        ),
    )
    .join(VoterRow, col(VoterRow.id) == col(BattleRow.owner))
    .join(VoteRow, col(VoteRow.battle_id) == col(BattleRow.id), isouter=True)
    .where(col(BattleRow.id) > bindparam("after"), col(BattleRow.hidden).is_(None))
    .order_by(col(BattleRow.id))
    .limit(BATCH)
)
_TURNS: Select[*tuple[Any, ...]] = select(
    *(col(getattr(TurnRow, name)) for name in ("battle_id", "turn", "prompt", "nonce"))
).order_by(col(TurnRow.battle_id), col(TurnRow.turn))
_ANSWERS: Select[*tuple[Any, ...]] = select(
    *(
        col(getattr(AnswerRow, name))
        for name in (
            *("battle_id", "turn", "side", "attempt", "model_id", "status", "error_class"),
            *("finish_reason", "first_token_s", "duration_s", "tokens_in", "tokens_out"),
            *("price_input", "price_output", "cost", "created", "text", "nonce"),
        )
    )
).order_by(col(AnswerRow.battle_id), col(AnswerRow.turn), col(AnswerRow.attempt), "side")


@dataclass(frozen=True, slots=True)
class LoggedBattle:
    """A battle as the log has it, with its vote if there is one.

    Attributes
    ----------
    row : row
        The battle, and of its vote what an export shows; None there without one.
    turns, answers : sequence of row
        In their order.
    exclusions : tuple of str
        Reasons logged against its vote under the policy that was asked for.
    labels : mapping
        Of the turn that was voted on, by facet.
    remarks : row or None
        What was remarked beside its vote.
    """

    row: AnyRow
    turns: Sequence[AnyRow]
    answers: Sequence[AnyRow]
    exclusions: tuple[str, ...]
    labels: Mapping[str, str]
    remarks: AnyRow | None


def battles(
    session: Session, policy: Policy, *, voted: bool, days: Days = EVER
) -> Iterator[LoggedBattle]:
    """Give battles in the order in which they began, read some at a time.

    Parameters
    ----------
    voted : bool
        Only those with a vote.
    """
    query = _BATTLES.where(col(VoteRow.id).is_not(None)) if voted else _BATTLES
    connection, after = session.connection(), 0
    while rows := connection.execute(query, {"after": after}).all():
        within = [row for row in rows if days.cover(row.ts or row.created)]
        yield from _whole(session, policy, within)
        after = rows[-1].id


def count_battles(session: Session, *, voted: bool) -> int:
    """Count what `battles` gives."""
    query = select(func.count()).select_from(VoteRow if voted else BattleRow)
    return session.connection().execute(query).scalar_one()


def _whole(session: Session, policy: Policy, rows: Sequence[AnyRow]) -> Iterator[LoggedBattle]:
    keys = [row.id for row in rows]
    turns = _by_battle(session, _TURNS.where(col(TurnRow.battle_id).in_(keys)))
    answers = _by_battle(session, _ANSWERS.where(col(AnswerRow.battle_id).in_(keys)))
    votes = [row.vote for row in rows if row.vote is not None]
    reasons = counted.reasons_on(session, policy.name, votes)
    known = labels.of_votes(session, policy.tagger, LABELS, keys)
    beside = remarks.of_votes(session, votes)
    for row in rows:
        yield LoggedBattle(
            row=row,
            turns=turns[row.id],
            answers=answers[row.id],
            exclusions=(reasons[row.vote],) if row.vote in reasons else (),
            labels=known.get(row.battle_id, {}),
            remarks=beside.get(row.vote),
        )


def _by_battle(session: Session, query: Select[Any]) -> Mapping[int, list[AnyRow]]:
    rows: dict[int, list[AnyRow]] = defaultdict(list)
    for row in session.connection().execute(query):
        rows[row.battle_id].append(row)
    return rows


def shown(battle: LoggedBattle) -> list[tuple[AnyRow, Mapping[str, AnyRow]]]:
    """Give the turns up to the vote, each with its answers by side: the last of each attempt.

    On the turn that was voted on they are those that the vote is about.
    """
    row, by_turn = battle.row, defaultdict[int, dict[str, AnyRow]](dict)
    voted = {"a": row.attempt_a, "b": row.attempt_b}
    for answer in battle.answers:
        if answer.turn != row.turn or answer.attempt == voted[answer.side]:
            by_turn[answer.turn][answer.side] = answer
    return [(t, by_turn[t.turn]) for t in battle.turns if row.turn is None or t.turn <= row.turn]


def is_erased(row: AnyRow) -> bool:
    """Whether the words of a turn or an answer were erased."""
    return row.nonce is None


def texts_erased(rows: Collection[AnyRow]) -> int:
    """Count the texts that were erased."""
    return sum(map(is_erased, rows))
