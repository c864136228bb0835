"""A log of votes as boards read it, made by hand."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import numpy as np

from arena.domain.board_view import ModelRecord
from arena.domain.model import Kind
from arena.domain.vote import Choice, VoterKind
from arena.store import chain
from arena.store.chain import LoggedLink
from arena.store.kept_boards import State
from rating.tables.coding import LoggedVotes, coded_list, microseconds

NOW = datetime(2026, 11, 20, tzinfo=UTC)


EMPTY = State("", {}, 0, {})
"""What a board is made of beside the votes of no log."""


@dataclass(frozen=True)
class Vote:
    """A vote of the log; ``left_out`` is why the policy does not count it."""

    a: str
    b: str
    outcome: Choice
    voter: str = "ada"
    prompt: str | None = None
    left_out: str | None = None
    created: datetime = NOW - timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class LoggedVote:
    """A vote as an export writes it; ``exclusions`` are the reasons logged against it."""

    battle_id: str
    prompt_id: str = "p"
    model_a: str
    model_b: str
    outcome: Choice
    voter: str
    voter_kind: VoterKind = VoterKind.ANONYMOUS
    created: datetime
    pair_probability: float = 1.0
    repicks: int = 0
    exclusions: tuple[str, ...] = ()


def vote(
    a: str,
    b: str,
    outcome: Choice,
    voter: str = "ada",
    kind: VoterKind = VoterKind.ANONYMOUS,
    exclusions: tuple[str, ...] = (),
) -> LoggedVote:
    """A vote as an export reads it."""
    return LoggedVote(
        battle_id=f"{a}-{b}",
        model_a=a,
        model_b=b,
        outcome=outcome,
        voter=voter,
        voter_kind=kind,
        created=NOW - timedelta(days=1),
        exclusions=exclusions,
    )


def linked(votes: Sequence[LoggedVote]) -> list[LoggedLink]:
    """Votes as links of a chain."""
    links: list[LoggedLink] = []
    for place, one in enumerate(votes, 1):
        bound: dict[str, object] = dict.fromkeys(chain.BOUND, "-") | {
            "battle_id": f"{one.battle_id}-{place}",
            "prompt_id": one.prompt_id,
            "model_a": one.model_a,
            "model_b": one.model_b,
            "pair_probability": one.pair_probability,
            "repicks": one.repicks,
            "pacing": "paced",
            "turn": 1,
            "attempt_a": 1,
            "attempt_b": 1,
            "winner": one.outcome.value,
            "voter": one.voter,
            "person": one.voter,
            "voter_kind": one.voter_kind.value,
            "ts": one.created,
            "seconds_to_vote": 5.0,
        }
        content = chain.vote_content(bound)
        links.append(
            LoggedLink(
                kind="vote",
                link=place,
                content=content,
                hash=chain.link_hash(links[-1].hash if links else "", place, "vote", content),
                bound=bound,
                exclusions=one.exclusions,
            )
        )
    return links


def endless_links(n: int) -> Iterator[LoggedLink]:
    """Links of votes that are alike, made as they are asked for; their hashes prove nothing."""
    (one,) = linked([vote("basalt", "quartz", Choice.A)])
    for link in range(1, n + 1):
        bound = {**one.bound} | {"battle_id": f"b{link}", "transcript_hash": f"{link:064x}"}
        yield replace(one, link=link, hash=f"{link:064x}", bound=bound)


def logged(votes: Sequence[Vote]) -> LoggedVotes:
    """Give votes as the log's columns, with battles of their own."""
    texts: dict[str, Sequence[str | None]] = {
        "model_a": [v.a for v in votes],
        "model_b": [v.b for v in votes],
        "winner": [v.outcome.value for v in votes],
        "voter": [v.voter for v in votes],
        "prompt": [v.prompt for v in votes],
        "battle": [str(i) for i in range(len(votes))],
        "left_out": [v.left_out for v in votes],
    }
    return LoggedVotes(
        texts={role: coded_list(values) for role, values in texts.items()},
        created=np.array([microseconds(v.created) for v in votes], dtype=np.int64),
    )


def records(models: Sequence[str]) -> list[ModelRecord]:
    return [
        ModelRecord(
            id=m,
            name=m.title(),
            organisation="",
            kind=Kind.MODEL,
            battles=10,
            failed=1,
            abandoned=2,
            price_per_1000=None,
            median_s=float(place),
        )
        for place, m in enumerate(models, 1)
    ]


def many(n: int = 60) -> list[Vote]:
    """Votes of twenty voters: m0 is best, m2 is worst, each now and then beaten."""
    pairs = (("m0", "m1"), ("m1", "m2"), ("m2", "m0"))
    better = {("m0", "m1"): Choice.A, ("m1", "m2"): Choice.A, ("m2", "m0"): Choice.B}
    votes = []
    for i in range(n):
        pair = pairs[i % 3]
        outcome = better[pair] if i % 7 else Choice.TIE if i % 2 else Choice.A
        votes.append(Vote(*pair, outcome, voter=f"v{i % 20}"))
    return votes
