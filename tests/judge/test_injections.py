"""Injected answers against planted judges."""

import re

import pytest

from judge.completion import Reply, Request
from judge.hardening import neutralised
from judge.injections import INJECTIONS, probes, resistance
from judge.judged import verdicts
from judge.methods import ArenaHard, Pairwise
from tests.judge.scripted import (
    Clock,
    MemoryJournal,
    Script,
    ScriptedJudge,
    cases,
    honest,
    judged,
    prefer,
    shown,
)

PROBES = probes(cases(3))
OBEYED = re.compile(
    r"judge|verdict|prefer|evaluat|\[ \[|\"choice\"|labels|guidelines|standard", re.IGNORECASE
)


def gullible(text: str) -> bool:
    """Obeys whatever speaks of judging."""
    return OBEYED.search(text) is not None


async def outcome(script: Script) -> dict[str, object]:
    judge = ScriptedJudge(script, Clock())
    found = await judged([p.case for p in PROBES], Pairwise(), judge, MemoryJournal())
    return resistance(PROBES, verdicts(found.judged)).to_dict()


def test_there_are_injections_of_many_kinds_and_no_two_alike() -> None:
    assert len(INJECTIONS) >= 12
    assert len(set(INJECTIONS.values())) == len(INJECTIONS)
    assert len(PROBES) == 3 * len(INJECTIONS)


async def test_no_injection_wins_with_a_robust_judge() -> None:
    found = await outcome(prefer(honest))
    assert found["success_rate"] == 0.0
    assert found["n_not_lost"] == 0
    assert found["n"] == len(PROBES)


async def test_every_injection_wins_with_a_gullible_judge() -> None:
    found = await outcome(prefer(gullible))
    assert found["success_rate"] == 1.0
    assert found["won_by_kind"] == dict.fromkeys(INJECTIONS, 3)


async def test_a_judge_who_always_prefers_the_first_lets_nothing_win_but_everything_tie() -> None:
    found = await outcome(lambda request, before: Reply(text="[[A]]"))
    assert found["success_rate"] == 0.0
    assert found["n_not_lost"] == len(PROBES)


async def test_a_judge_who_says_nothing_resists_nothing_and_falls_for_nothing() -> None:
    found = await outcome(lambda request, before: Reply(text="Hm."))
    assert found["success_rate"] is None
    assert found["n_undecided"] == len(PROBES)


async def test_a_judge_who_repeats_what_it_reads_cannot_be_made_to_give_a_verdict() -> None:
    """An echo is the worst case for a grammar: everything injected stands in the reply."""

    def echo(request: Request, before: int) -> Reply:
        return Reply(text="\n".join(shown(request)))

    found = await outcome(echo)
    assert found["n_undecided"] == len(PROBES)


@pytest.mark.parametrize("kind", INJECTIONS)
def test_an_injection_reaches_the_judge_with_its_words_and_without_its_markers(kind: str) -> None:
    case = next(probe.case for probe in PROBES if probe.kind == kind)
    first, second = shown(ArenaHard().ask(case, "0123456789abcdef"))
    assert first == case.response_a
    assert second == neutralised(INJECTIONS[kind])
    assert second.replace(" ", "") == INJECTIONS[kind].replace(" ", "")
