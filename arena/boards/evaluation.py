"""The card of how this arena evaluates, filled from its log, its board and its settings."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any

import arena
import judge
import rating
from arena.boards.background import keep_looking
from arena.domain.battle import VOTE_WITHIN
from arena.domain.board_view import Board
from arena.domain.evaluation import (
    CallLimits,
    Calls,
    EvaluationCard,
    Inputs,
    Interpretation,
    ModelCall,
    Outputs,
    Statements,
    VoteFacts,
    empty_sections,
)
from arena.domain.vote import Policy
from arena.store import evaluation
from arena.store.evaluation import Asked, Logged
from arena.store.store import Store

HARMLESS = frozenset(
    {
        "frequency_penalty",
        "max_completion_tokens",
        "max_tokens",
        "min_p",
        "n",
        "presence_penalty",
        "reasoning_effort",
        "repetition_penalty",
        "seed",
        "stop",
        "temperature",
        "thinking",
        "top_k",
        "top_p",
        "verbosity",
    }
)
"""Parameters of decoding whose values anybody may read; of others the name alone is shown."""
LONGEST = 200
"""Characters of a value that is shown."""
NO_SYSTEM_PROMPT = sha256().hexdigest()

REST_S = 10.0
REST = 20
"""Between two looks at the log pass at least `REST_S`, and `REST` times as long as one took."""


class Evaluation:
    """Keeps the card of a policy's board; who reads it waits for the first one alone.

    Parameters
    ----------
    board : callable
        The board as it stands.
    now : callable
        Time now, in UTC.
    vote_within : timedelta
        How long a battle takes a vote after its models were last asked.
    """

    def __init__(
        self,
        store: Store,
        policy: Policy,
        board: Callable[[], Board],
        statements: Statements,
        limits: CallLimits,
        now: Callable[[], datetime],
        vote_within: timedelta = VOTE_WITHIN,
    ) -> None:
        self._store = store
        self._policy = policy
        self._board = board
        self._statements = statements
        self._limits = limits
        self._now = now
        self._vote_within = vote_within
        self._card: EvaluationCard | None = None
        self._version = ""
        self._turn = Lock()

    def read(self) -> EvaluationCard:
        """Give the card as it was last made, or make the first.

        Raises
        ------
        StoreError
            If there is none, and the log cannot be read.
        """
        with self._turn:
            return self._card or self._anew(self._board())

    async def keep_on(self) -> None:
        """Make the card, rest, and look whether the board is another, until cancelled."""
        await keep_looking(self.look, "How the arena evaluates", REST_S, REST)

    def look(self) -> None:
        """Make the card anew if the board is another.

        Raises
        ------
        StoreError
            If the log cannot be read.
        """
        board = self._board()
        if board.version != self._version:
            self._anew(board)

    def _anew(self, board: Board) -> EvaluationCard:
        models = [row.model for row in board.rows]
        asked_since = self._now() - self._vote_within
        logged = self._store.read(evaluation.read, self._policy, models, asked_since)
        card = card_of(board, logged, self._policy, self._statements, self._limits)
        self._card, self._version = card, board.version
        return card


def card_of(
    board: Board, logged: Logged, policy: Policy, statements: Statements, limits: CallLimits
) -> EvaluationCard:
    """Make the card of a board of a log, by the code that runs."""
    return make_card(
        statements,
        logged.facts,
        board,
        calls_of(logged.asked, board),
        limits,
        tagger=" ".join(policy.tagger),
        code=code_hash(),
        chain_head=logged.head,
        chain_links=logged.links,
    )


def make_card(
    statements: Statements,
    facts: VoteFacts,
    board: Board,
    calls: Mapping[str, ModelCall],
    limits: CallLimits,
    *,
    tagger: str,
    code: str,
    chain_head: str,
    chain_links: int,
) -> EvaluationCard:
    """Put the card together.

    Parameters
    ----------
    calls : mapping of str to ModelCall
        How models are asked, by id.
    tagger, code, chain_head, chain_links
        See `arena.domain.evaluation.Inputs` and `arena.domain.evaluation.Interpretation`.
    """
    models = tuple(
        replace(
            calls[row.model],
            name=row.name,
            kind=row.kind,
            versions=facts.versions.get(row.model, 0),
        )
        for row in board.rows
    )
    return EvaluationCard(
        statements=statements,
        inputs=Inputs(
            sources=facts.sources,
            prompts=facts.prompts,
            repeated=facts.repeated,
            categories=facts.categories,
            languages=facts.languages,
            tagger=tagger,
            first_vote=facts.first,
            last_vote=facts.last,
        ),
        calls=Calls(
            models=models,
            samplers=facts.samplers,
            pacing=facts.pacing,
            turns=facts.turns,
            limits=limits,
        ),
        outputs=Outputs(
            votes=facts.votes,
            choices=facts.choices,
            left_out=board.left_out,
            voters=board.voters,
            voter_kinds=facts.voter_kinds,
            effective_voters=board.effective_voters,
            top_voter_share=board.top_voter_share,
        ),
        interpretation=Interpretation(
            method=board.method,
            level=board.level,
            anchor_mean=board.anchor_mean,
            policy=board.policy,
            policy_rules=board.policy_rules,
            rated=len(board.rows),
            ranks_claimed=board.ranks_claimed,
            warnings=board.all_warnings,
            data_hash=board.data_hash,
            version=board.version,
            code=code,
            chain_head=chain_head,
            chain_links=chain_links,
        ),
        missing=(*empty_sections(facts, models, len(board.rows)), *statements.missing),
    )


def calls_of(asked: Mapping[str, Asked], board: Board) -> dict[str, ModelCall]:
    """Say how the rated models are asked, without what is nobody else's business."""
    return {
        row.model: ModelCall(
            id=row.model,
            name=row.name,
            kind=row.kind,
            versions=0,
            **_call(asked.get(row.model)),
        )
        for row in board.rows
    }


def _call(asked: Asked | None) -> dict[str, Any]:
    if asked is None:
        return {"system_prompt": None, "decoding": {}, "tools": ()}
    has_none = NO_SYSTEM_PROMPT.startswith(asked.system_prompt)
    parameters = {name: asked.decoding[name] for name in sorted(asked.decoding)}
    tools = parameters.pop("tools", ())
    return {
        "system_prompt": "" if has_none else asked.system_prompt,
        "decoding": {name: _parameter(name, value) for name, value in parameters.items()},
        "tools": tuple(map(_tool, tools if isinstance(tools, list) else ())),
    }


def _parameter(name: str, value: object) -> str:
    return json.dumps(value, ensure_ascii=False)[:LONGEST] if name in HARMLESS else ""


def _tool(tool: object) -> str:
    match tool:
        case {"function": {"name": str(name)}} | {"name": str(name)} | {"type": str(name)}:
            return name[:LONGEST]
    return "?"


@cache
def code_hash() -> str:
    """SHA-256 of the program's code: of every module's path and text, in order."""
    whole = sha256()
    for package in (arena, judge, rating):
        folder = Path(package.__path__[0])
        for file in sorted(folder.rglob("*.py")):
            whole.update(file.relative_to(folder.parent).as_posix().encode() + b"\0")
            whole.update(file.read_bytes() + b"\0")
    return whole.hexdigest()
