"""What the links of the chain bind, read from the tables: see `arena.store.chain`."""

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import BindParameter, Connection, Row, Select, bindparam, select
from sqlmodel import col

from arena.store.chain import canonical, plain, text_hash
from arena.store.tables import (
    AnswerRow,
    BattleRow,
    ExclusionRow,
    MarkRow,
    TurnRow,
    VoteRow,
    VoterRow,
)

AnyRow = Row[*tuple[Any, ...]]
BATCH = 500
"""Votes that are read at a time."""

OF_BATTLE: tuple[Any, ...] = (
    col(BattleRow.public_id).label("battle_id"),
    col(BattleRow.prompt_set),
    col(BattleRow.prompt_id),
    col(BattleRow.mode),
    col(BattleRow.model_a),
    col(BattleRow.model_b),
    col(BattleRow.sampler),
    col(BattleRow.sampler_version),
    col(BattleRow.pair_probability),
    col(BattleRow.repicks),
    col(BattleRow.pacing),
)
"""Columns of a battle that its vote binds, by their names in `arena.store.chain.BOUND`."""

_VOTES = (
    select(
        col(VoteRow.id),
        col(BattleRow.id).label("battle"),
        *OF_BATTLE,
        col(VoteRow.fingerprint_a),
        col(VoteRow.fingerprint_b),
        col(VoteRow.turn),
        col(VoteRow.attempt_a),
        col(VoteRow.attempt_b),
        col(VoteRow.order_shown),
        col(VoteRow.outcome).label("winner"),
        col(VoteRow.voter_id).label("voter"),
        col(VoterRow.kind).label("voter_kind"),
        col(VoteRow.created).label("ts"),
        col(VoteRow.seconds_to_vote),
        col(VoteRow.key),
        col(VoteRow.link),
        col(VoteRow.content),
        col(VoteRow.previous_hash),
        col(VoteRow.hash),
    )
    .join(BattleRow, col(BattleRow.id) == col(VoteRow.battle_id))
    .join(VoterRow, col(VoterRow.id) == col(VoteRow.voter_id))
    .where(col(VoteRow.link) > bindparam("after"))
    .order_by(col(VoteRow.link))
    .limit(BATCH)
)
EXCLUSIONS: Select[*tuple[Any, ...]] = (
    select(
        col(ExclusionRow.id),
        col(VoteRow.link).label("vote"),
        col(ExclusionRow.policy),
        col(ExclusionRow.rule),
        col(ExclusionRow.version),
        col(ExclusionRow.reason),
        col(ExclusionRow.created).label("ts"),
        col(ExclusionRow.link),
        col(ExclusionRow.content),
        col(ExclusionRow.previous_hash),
        col(ExclusionRow.hash),
    )
    .join(VoteRow, col(VoteRow.id) == col(ExclusionRow.vote_id))
    .order_by(col(ExclusionRow.link), col(ExclusionRow.id))
)
OF_EXCLUSION = ("vote", "policy", "rule", "version", "reason", "ts")
"""What an exclusion binds; ``vote`` is the link of its vote."""

MARK = select(
    col(MarkRow.link), col(MarkRow.content), col(MarkRow.previous_hash), col(MarkRow.hash)
)

_OF_THESE: BindParameter[Any] = bindparam("battles", expanding=True)
_TURNS: Select[*tuple[Any, ...]] = (
    select(
        col(TurnRow.battle_id),
        col(TurnRow.turn),
        col(TurnRow.prompt).label("text"),
        col(TurnRow.nonce),
        col(TurnRow.text_hash),
    )
    .where(col(TurnRow.battle_id).in_(_OF_THESE))
    .order_by(col(TurnRow.turn))
)
FIGURES = (
    "turn",
    "side",
    "attempt",
    "model_id",
    "status",
    "error_class",
    "finish_reason",
    "first_token_s",
    "duration_s",
    "tokens_in",
    "tokens_out",
    "cost",
)
"""What a vote binds of each answer of its battle, besides the words."""
_ANSWERS = (
    select(
        col(AnswerRow.battle_id),
        *(col(getattr(AnswerRow, name)) for name in FIGURES),
        col(AnswerRow.text),
        col(AnswerRow.nonce),
        col(AnswerRow.text_hash),
    )
    .where(col(AnswerRow.battle_id).in_(_OF_THESE))
    .order_by(col(AnswerRow.turn), col(AnswerRow.attempt), col(AnswerRow.side))
)


@dataclass(frozen=True, slots=True)
class Transcript:
    """All that was asked and answered in a battle.

    Attributes
    ----------
    hash : str
        SHA-256 of it, with each text behind its nonce.
    newest : mapping
        Turn and attempt of the last answer of each side.
    erased : int
        Texts that are gone, of which the hash alone is left.
    """

    hash: str
    newest: Mapping[str, tuple[int, int]]
    erased: int


def transcripts(connection: Connection, battles: Collection[int]) -> dict[int, Transcript]:
    """Read what was asked and answered in these battles."""
    turns, answers = defaultdict(list), defaultdict(list)
    for row in connection.execute(_TURNS, {"battles": list(battles)}):
        turns[row.battle_id].append(row)
    for row in connection.execute(_ANSWERS, {"battles": list(battles)}):
        answers[row.battle_id].append(row)
    return {battle: _transcript(turns[battle], answers[battle]) for battle in battles}


def votes(connection: Connection) -> Iterator[list[tuple[AnyRow, Transcript]]]:
    """Read the votes in the order of the chain, some at a time, with their transcripts.

    A row has what `arena.store.chain.vote_content` binds, but for the transcript's hash.
    """
    after = 0
    while rows := connection.execute(_VOTES, {"after": after}).all():
        read = transcripts(connection, [row.battle for row in rows])
        yield [(row, read[row.battle]) for row in rows]
        after = rows[-1].link


def of_exclusion(row: AnyRow) -> dict[str, object]:
    """Give what an exclusion binds."""
    return {name: getattr(row, name) for name in OF_EXCLUSION}


def _transcript(turns: list[AnyRow], answers: list[AnyRow]) -> Transcript:
    asked = [[row.turn, _words(row)] for row in turns]
    answered = [[*(plain(getattr(row, n)) for n in FIGURES), _words(row)] for row in answers]
    return Transcript(
        hash=hashlib.sha256(canonical([asked, answered]).encode()).hexdigest(),
        newest={row.side: (row.turn, row.attempt) for row in answers},
        erased=sum(row.nonce is None for row in [*turns, *answers]),
    )


def _words(row: AnyRow) -> str | None:
    """Hash of a text: as it is, or as it was before it was erased together with its nonce."""
    if row.nonce is None and not row.text:
        return str(row.text_hash)
    return text_hash(row.nonce or "", row.text)
