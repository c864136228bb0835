"""Labels of prompts: which turns lack them, and those of the votes on a board."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, and_, bindparam, exists, func, select
from sqlalchemy.dialects import postgresql
from sqlmodel import Session, col

from arena.domain.board_view import SelfNaming
from arena.domain.vote import DEFAULT, NAMING, Policy, Tagger
from arena.store.tables import (
    BOTH_MODELS,
    NAMES_ITSELF,
    AnswerRow,
    BattleRow,
    PromptLabelRow,
    TurnRow,
    VoteRow,
    columns_of,
    is_counted,
    select_votes,
)
from rating.errors import DataError

BATCH = 500
"""Turns that are read at a time."""
BEGINNING = 1000
"""Characters of an answer that are read."""


_KEEP = postgresql.insert(PromptLabelRow).on_conflict_do_nothing()
"""SQLite writes it in the same words."""


NewLabel = tuple[int, str, str, float | None]
"""A label about to be stored: id of the turn, facet, value and score."""


class VotedTurn(NamedTuple):
    """The turn of a battle that was voted on, or skipped.

    Attributes
    ----------
    id : int
    prompts : list of str
        Of the battle up to this turn, oldest first.
    answers : list of str
        The two that were on screen, side A first.
    """

    id: int
    prompts: list[str]
    answers: list[str]


def unlabelled(session: Session, tagger: Tagger, after: int) -> list[VotedTurn]:
    """Read some of the turns that were voted on and that a tagger has not labelled, by their ids.

    Turns whose words were erased are excluded.

    Parameters
    ----------
    after : int
        Id of the last one that was read; 0 before the first.
    """
    rows = session.connection().execute(_lacking(tagger).limit(BATCH), {"after": after}).all()
    if not rows:
        return []
    battles = [row.battle_id for row in rows]
    asked, answered = _prompts(session, battles), _answers(session, battles)
    return [
        VotedTurn(
            id=row.id,
            prompts=[text for turn, text in asked[row.battle_id] if turn <= row.turn],
            answers=[
                answered.get((row.battle_id, row.turn, side, attempt), "")
                for side, attempt in (("a", row.attempt_a), ("b", row.attempt_b))
            ],
        )
        for row in rows
    ]


def count_unlabelled(session: Session, tagger: Tagger) -> int:
    """Count the turns that `unlabelled` reads."""
    turns = _lacking(tagger).order_by(None).subquery()
    query = select(func.count()).select_from(turns)
    return session.connection().execute(query, {"after": 0}).scalar_one()


def add(session: Session, labels: Iterable[NewLabel], tagger: Tagger, now: datetime) -> None:
    """Store labels of turns; those that are there stay, as two processes may label at once."""
    names = ("turn_id", "facet", "value", "score")
    by = {"tagger": tagger.name, "tagger_version": tagger.version, "created": now}
    rows = [dict(zip(names, label, strict=True)) | by for label in labels]
    if rows:
        session.connection().execute(_KEEP, rows)


def of_votes(
    session: Session,
    tagger: Tagger,
    facets: Collection[str],
    battles: Collection[int] | None = None,
    *,
    after: int = 0,
) -> dict[str, dict[str, str]]:
    """Give the labels of what was voted on, by a battle's public id and by facet.

    Parameters
    ----------
    battles : collection of int or None
        Keys of battles; None for all.
    after : int
        Link of a vote after which votes are read.
    """
    query = (
        select(col(BattleRow.public_id), col(PromptLabelRow.facet), col(PromptLabelRow.value))
        .join(TurnRow, col(TurnRow.id) == col(PromptLabelRow.turn_id))
        .join(VoteRow, voted_on())
        .join(BattleRow, col(BattleRow.id) == col(TurnRow.battle_id))
        .where(is_by(tagger), col(PromptLabelRow.facet).in_(facets), col(VoteRow.link) > after)
    )
    if battles is not None:
        query = query.where(col(BattleRow.id).in_(battles))
    labels: dict[str, dict[str, str]] = defaultdict(dict)
    for battle, facet, value in session.connection().execute(query):
        labels[battle][facet] = value
    return labels


def newest(session: Session, tagger: Tagger) -> int:
    """Give a number that grows with every label of a tagger; 0 before the first."""
    query = select(func.max(col(PromptLabelRow.id))).where(is_by(tagger))
    return session.connection().execute(query).scalar_one() or 0


def self_naming(session: Session, policy: Policy) -> SelfNaming:
    """Count the votes that a policy counts on an answer that names a model as its author."""
    side = col(PromptLabelRow.value)
    query = (
        select_votes(*BOTH_MODELS, side, func.count())
        .join(TurnRow, voted_on())
        .join(PromptLabelRow, col(PromptLabelRow.turn_id) == col(TurnRow.id))
        .where(NAMES_ITSELF, col(PromptLabelRow.tagger_version) == NAMING.version)
        .where(is_counted(policy))
        .group_by(*BOTH_MODELS, side)
    )
    votes, by_model = 0, Counter[str]()
    for a, b, value, n in session.connection().execute(query):
        votes += n
        by_model.update({a: n} if value in ("a", "both") else {})
        by_model.update({b: n} if value in ("b", "both") else {})
    return SelfNaming(votes, dict(by_model))


def taggers(session: Session) -> list[Tagger]:
    """Give the taggers of prompts that there are labels of, each with its version."""
    query = (
        select(col(PromptLabelRow.tagger), col(PromptLabelRow.tagger_version))
        .where(col(PromptLabelRow.tagger) != NAMING.name)
        .distinct()
    )
    return sorted(Tagger(name, version) for name, version in session.connection().execute(query))


def tagger_named(session: Session, name: str | None) -> Tagger:
    """Give the one tagger of a name whose labels are there; without a name that of the policy.

    Parameters
    ----------
    name : str or None
        A tagger's, or with its version or the beginning of that, such as ``quartz@2b7e``.

    Raises
    ------
    DataError
        If there is none, or several.
    """
    if name is None:
        return DEFAULT.tagger
    there = taggers(session)
    named = [tagger for tagger in there if _is_called(tagger, name)]
    if len(named) == 1:
        return named[0]
    names = ", ".join("@".join(tagger) for tagger in named or there) or "nobody"
    if named:
        raise DataError(f"--tagger {name!r} is several, and no board mixes two: name {names}.")
    raise DataError(
        f"--tagger {name!r}: there are no labels by it, but by {names}. "
        "Label the votes first: arena label DATABASE, with --judge for a model."
    )


def counts(session: Session, tagger: Tagger) -> dict[tuple[str, str], int]:
    """Count the labels of a tagger, by facet and value."""
    query = (
        select(col(PromptLabelRow.facet), col(PromptLabelRow.value), func.count())
        .where(is_by(tagger))
        .group_by(col(PromptLabelRow.facet), col(PromptLabelRow.value))
    )
    return {(facet, value): n for facet, value, n in session.connection().execute(query)}


def prompts(session: Session) -> list[tuple[str, datetime]]:
    """Give every prompt whose words are there, oldest first, and when it was written."""
    query = select(col(TurnRow.prompt), col(TurnRow.created)).where(
        col(TurnRow.nonce).is_not(None)
    )
    rows = session.connection().execute(query.order_by(col(TurnRow.id)))
    return [(text, created) for text, created in rows]


def prompts_of_votes(session: Session) -> dict[str, list[str]]:
    """Give the prompts of battles up to the turn voted on, by public id; not those erased."""
    query = (
        select(col(BattleRow.public_id), col(TurnRow.prompt))
        .join(VoteRow, col(VoteRow.battle_id) == col(BattleRow.id))
        .join(TurnRow, col(TurnRow.battle_id) == col(BattleRow.id))
        .where(col(TurnRow.turn) <= col(VoteRow.turn), col(TurnRow.nonce).is_not(None))
        .order_by(col(TurnRow.id))
    )
    asked: dict[str, list[str]] = defaultdict(list)
    for battle, text in session.connection().execute(query):
        asked[battle].append(text)
    return asked


def _is_called(tagger: Tagger, name: str) -> bool:
    whole = "@".join(tagger)
    return name == tagger.name or (name.startswith(f"{tagger.name}@") and whole.startswith(name))


def is_by(tagger: Tagger) -> ColumnElement[bool]:
    """Say, in a query on labels, whether one is of a tagger in its version."""
    return and_(
        col(PromptLabelRow.tagger) == tagger.name,
        col(PromptLabelRow.tagger_version) == tagger.version,
    )


def voted_on() -> ColumnElement[bool]:
    """Say, in a query on votes and turns, whether a turn is the one that was voted on."""
    return and_(
        col(VoteRow.battle_id) == col(TurnRow.battle_id), col(VoteRow.turn) == col(TurnRow.turn)
    )


def _lacking(tagger: Tagger) -> Select[*tuple[Any, ...]]:
    labelled = exists().where(col(PromptLabelRow.turn_id) == col(TurnRow.id), is_by(tagger))
    return (
        select(
            *columns_of(TurnRow, "id", "battle_id", "turn"),
            *columns_of(VoteRow, "attempt_a", "attempt_b"),
        )
        .join(VoteRow, voted_on())
        .where(col(TurnRow.id) > bindparam("after"), col(TurnRow.nonce).is_not(None), ~labelled)
        .order_by(col(TurnRow.id))
    )


def _prompts(session: Session, battles: Collection[int]) -> dict[int, list[tuple[int, str]]]:
    asked: dict[int, list[tuple[int, str]]] = defaultdict(list)
    query = select(col(TurnRow.battle_id), col(TurnRow.turn), col(TurnRow.prompt)).where(
        col(TurnRow.battle_id).in_(battles)
    )
    for battle, turn, text in session.connection().execute(query.order_by(col(TurnRow.turn))):
        asked[battle].append((turn, text))
    return asked


def _answers(session: Session, battles: Collection[int]) -> dict[tuple[int, int, str, int], str]:
    """Give how answers begin, by battle, turn, side and attempt."""
    query: Select[*tuple[Any, ...]] = select(
        *columns_of(AnswerRow, "battle_id", "turn", "side", "attempt"),
        func.substr(col(AnswerRow.text), 1, BEGINNING),
    ).where(col(AnswerRow.battle_id).in_(battles))
    return {(b, t, s, n): text for b, t, s, n, text in session.connection().execute(query)}
