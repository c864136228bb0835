"""What the counted votes of a log say of themselves, and how the models in it were asked."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, String, case, cast, func, select
from sqlmodel import Session, col

from arena.domain.evaluation import TYPED, VoteFacts, in_order
from arena.domain.vote import Policy
from arena.store import labels
from arena.store.counted import is_counted, is_over
from arena.store.tables import (
    BOTH_MODELS,
    AnswerRow,
    BattleRow,
    ChainRow,
    PromptLabelRow,
    TurnRow,
    VoteRow,
    VoterRow,
)

_COUNTED: Mapping[str, Any] = {
    "sources": func.coalesce(col(BattleRow.prompt_set), TYPED),
    "samplers": col(BattleRow.sampler) + " " + col(BattleRow.sampler_version),
    "pacing": col(BattleRow.pacing),
    "turns": cast(col(VoteRow.turn), String),
    "choices": col(VoteRow.outcome),
    "voter_kinds": col(VoterRow.kind),
}
"""By what votes are counted, as `arena.domain.evaluation.COUNTED` names it, but for labels."""
_LABELS = {"category": "categories", "language": "languages"}
_OF_ALL = (
    func.count(),
    func.count(func.distinct(col(BattleRow.prompt_id))),
    func.count(col(BattleRow.prompt_id)),
    func.min(col(VoteRow.created)),
    func.max(col(VoteRow.created)),
)
_SYSTEM_PROMPT = case(
    (col(AnswerRow.side) == "a", col(BattleRow.system_prompt_hash_a)),
    else_=col(BattleRow.system_prompt_hash_b),
)
_ITS_MODEL = case((col(AnswerRow.side) == "a", BOTH_MODELS[0]), else_=BOTH_MODELS[1])
_END = select(col(ChainRow.head), col(ChainRow.links))


class Asked(NamedTuple):
    """How a model was asked last: beginning of its system prompt's SHA-256, and what was sent."""

    system_prompt: str
    decoding: Mapping[str, Any]


class Logged(NamedTuple):
    """What a card takes from the log.

    Attributes
    ----------
    asked : mapping of str to Asked
        How models were asked, by id; what was never asked is missing.
    head : str
        Hash of the chain's newest link; empty before the first.
    links : int
        How many links there are.
    """

    facts: VoteFacts
    asked: Mapping[str, Asked]
    head: str
    links: int


def read(session: Session, policy: Policy, models: Iterable[str], asked_since: datetime) -> Logged:
    """Read what the log says of the votes that a policy counts, and of models, by their ids.

    Parameters
    ----------
    asked_since : datetime
        How models were asked is read of battles that are over: see `arena.store.counted.is_over`.
    """
    connection = session.connection()
    over = is_over(asked_since)
    rows = {model: connection.execute(_newest(model, over)).one_or_none() for model in models}
    asked = {model: Asked(*row) for model, row in rows.items() if row is not None}
    head, links = connection.execute(_END).one()
    return Logged(vote_facts(session, policy), asked, head, links)


def vote_facts(session: Session, policy: Policy) -> VoteFacts:
    """Count the votes that a policy counts."""
    connection = session.connection()
    votes, prompts, on_prompts, first, last = connection.execute(_counted(policy, *_OF_ALL)).one()
    counts: dict[str, Counter[str]] = {name: Counter() for name in (*_COUNTED, *_LABELS.values())}
    by = tuple(_COUNTED.values())
    for *values, n in connection.execute(_counted(policy, *by, func.count()).group_by(*by)):
        for name, value in zip(_COUNTED, values, strict=True):
            counts[name][value] += n
    for facet, value, n in connection.execute(_labels(policy)):
        counts[_LABELS[facet]][value] = n
    return VoteFacts(
        votes=votes,
        prompts=prompts,
        repeated=on_prompts - prompts,
        first=first,
        last=last,
        versions=_versions(session, policy),
        **{name: in_order(by) for name, by in counts.items()},
    )


def _counted(policy: Policy, *columns: Any) -> Select[*tuple[Any, ...]]:
    return (
        select(*columns)
        .select_from(VoteRow)
        .join(BattleRow, col(BattleRow.id) == col(VoteRow.battle_id))
        .join(VoterRow, col(VoterRow.id) == col(VoteRow.voter_id))
        .where(is_counted(policy))
    )


def _labels(policy: Policy) -> Select[*tuple[Any, ...]]:
    columns = (col(PromptLabelRow.facet), col(PromptLabelRow.value))
    return (
        _counted(policy, *columns, func.count())
        .join(TurnRow, labels.voted_on())
        .join(PromptLabelRow, col(PromptLabelRow.turn_id) == col(TurnRow.id))
        .where(
            col(PromptLabelRow.tagger) == policy.tagger.name,
            col(PromptLabelRow.tagger_version) == policy.tagger.version,
            col(PromptLabelRow.facet).in_(_LABELS),
        )
        .group_by(*columns)
    )


def _versions(session: Session, policy: Policy) -> dict[str, int]:
    sides = (*BOTH_MODELS, col(VoteRow.fingerprint_a), col(VoteRow.fingerprint_b))
    known = defaultdict(set)
    for a, b, of_a, of_b in session.connection().execute(_counted(policy, *sides).distinct()):
        known[a].add(of_a)
        known[b].add(of_b)
    return {model: len(versions) for model, versions in sorted(known.items())}


def _newest(model: str, over: ColumnElement[bool]) -> Select[*tuple[Any, ...]]:
    """Select the newest answer of a model, in some battles, that nothing took the place of."""
    return (
        select(_SYSTEM_PROMPT, col(AnswerRow.decoding))
        .join(BattleRow, col(BattleRow.id) == col(AnswerRow.battle_id))
        .where(col(AnswerRow.model_id) == model, _ITS_MODEL.in_([model]), over)
        .order_by(col(AnswerRow.id).desc())
        .limit(1)
    )
