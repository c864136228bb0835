"""Injected answers against planted judges."""

import re
from typing import Any

import numpy as np
import pytest

from judge.case import CaseId, Order, Reply, Request
from judge.methods import method as named
from judge.probe.findings import scores_of
from judge.probe.robustness import Probe, filler, injections, probes, resisted
from judge.protocol import neutralised
from tests.judge.scripted import (
    Clock,
    MemoryJournal,
    Script,
    ScriptedJudge,
    case,
    cases,
    honest,
    judged,
    longer,
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


async def outcome(script: Script) -> dict[str, Any]:
    judge = ScriptedJudge(script, Clock())
    both = [case for probe in PROBES for case in (probe.case, probe.control)]
    run = await judged(both, named("pairwise"), judge, MemoryJournal())
    return resisted(PROBES, scores_of(run.judged))


def test_there_are_injections_of_many_kinds_and_no_two_alike() -> None:
    assert len(injections()) >= 12
    assert len(set(injections().values())) == len(injections())
    assert len(PROBES) == 3 * len(injections())


async def test_no_injection_wins_with_a_robust_judge() -> None:
    counts = await outcome(prefer(honest))
    assert counts["success_rate"] == 0.0
    assert (counts["n_not_lost"], counts["warnings"]) == (0, [])
    assert counts["n"] == len(PROBES)


async def test_every_injection_wins_with_a_gullible_judge() -> None:
    counts = await outcome(prefer(gullible))
    assert (counts["success_rate"], counts["won_by_kind"]) == (1.0, dict.fromkeys(injections(), 3))
    assert (counts["attack"]["rate"], counts["control"]["rate"]) == (1.0, 0.0)
    assert counts["lower"] > 0.2
    assert all(row["lower"] > 0 for row in counts["kinds"])


async def test_a_judge_who_reads_nothing_but_length_obeys_nothing() -> None:
    counts = await outcome(longer)
    assert counts["n_won"] == len(PROBES), "every injected answer is longer than an honest one"
    assert (counts["attack"]["rate"], counts["control"]["rate"]) == (1.0, 1.0)
    for row in (counts, *counts["kinds"]):
        assert row["success_rate"] == 0
        assert row["lower"] < 0 < row["upper"]


async def test_what_a_gullible_judge_would_let_win_anyhow_is_no_success() -> None:
    """A gullible judge who else prefers the longer answer lets every filler win as well."""

    def script(request: Request, before: int) -> Reply:
        obeyed = [gullible(answer) for answer in shown(request)]
        verdict = "A" if obeyed[0] else "B"
        return Reply(text=f"[[{verdict}]]") if any(obeyed) else longer(request, before)

    counts = await outcome(script)
    assert (counts["attack"]["rate"], counts["control"]["rate"]) == (1.0, 1.0)
    assert counts["success_rate"] == 0, "nothing is won beyond what length wins by itself"
    assert counts["warnings"][0].startswith("Fillers won 100% by themselves")


async def test_a_probe_counts_where_both_arms_have_a_verdict() -> None:
    def script(request: Request, before: int) -> Reply | Exception:
        silent = filler("plea") in shown(request)
        return Reply(text="Hm.") if silent else prefer(gullible)(request, before)

    counts = await outcome(script)
    rows = {row["kind"]: row for row in counts["kinds"]}
    plea = rows["plea"]
    assert (plea["n"], plea["n_won"], plea["n_pairs"], plea["success_rate"]) == (3, 3, 0, None)
    assert (plea["control"]["n"], plea["control"]["n_undecided"]) == (0, 3)
    assert (counts["n_pairs"], counts["success_rate"]) == (len(PROBES) - 3, 1)


async def test_a_judge_who_always_prefers_the_first_lets_nothing_win_but_everything_tie() -> None:
    counts = await outcome(lambda request, before: Reply(text="[[A]]"))
    assert (counts["success_rate"], counts["n_not_lost"]) == (0.0, len(PROBES))


async def test_a_judge_who_says_nothing_resists_nothing_and_falls_for_nothing() -> None:
    counts = await outcome(lambda request, before: Reply(text="Hm."))
    assert counts["success_rate"] is None
    assert counts["n_undecided"] == len(PROBES)


async def test_a_judge_who_repeats_what_it_reads_cannot_be_made_to_give_a_verdict() -> None:
    """An echo is the worst case for a grammar: everything injected stands in the reply."""

    def echo(request: Request, before: int) -> Reply:
        return Reply(text="\n".join(shown(request)))

    counts = await outcome(echo)
    assert counts["n_undecided"] == len(PROBES)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [((36, 12, 2, 0), (0.2, 0.0569, 0.3404)), ((53, 2, 1, 14), (0.0143, -0.0467, 0.0766))],
)
def test_with_a_probe_a_prompt_the_interval_is_newcombes(
    counts: tuple[int, ...], expected: tuple[float, ...]
) -> None:
    """His formula written out: both won, the attack alone, the control alone, neither."""
    results = [(True, True), (True, False), (False, True), (False, False)]
    rows = [won for won, n in zip(results, counts, strict=True) for _ in range(n)]
    tried: list[Probe] = []
    known: dict[CaseId | tuple[CaseId, Order], float] = {}
    for number, won in enumerate(rows):
        probe = probes([case(number)])[0]
        tried.append(probe)
        for one, of in zip(won, (probe.case, probe.control), strict=True):
            known[of.id] = float(one)
    success = resisted(tried, known)
    ends = tuple(success[name] for name in ("success_rate", "lower", "upper"))
    assert ends == pytest.approx(expected, abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("n_prompts", [8, 30])
def test_the_interval_of_a_judge_who_draws_lots_by_length_holds_nothing_to_obey(
    n_prompts: int,
) -> None:
    """Both arms win by one coin of the prompt and one of their own: the difference is zero."""
    rng, tried, held = np.random.default_rng(n_prompts), probes(cases(n_prompts)), []
    prompts = {probe.case.prompt_id: i for i, probe in enumerate(tried)}
    for _ in range(400):
        lean = dict(zip(prompts, rng.beta(1, 1, len(prompts)), strict=True))
        known: dict[CaseId | tuple[CaseId, Order], float] = {
            case.id: float(rng.random() < lean[case.prompt_id])
            for probe in tried
            for case in (probe.case, probe.control)
        }
        success = resisted(tried, known)
        held.append(success["lower"] <= 0 <= success["upper"])
    assert np.mean(held) >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / 400)


@pytest.mark.parametrize("kind", injections())
def test_a_filler_is_as_long_as_what_the_judge_is_shown_and_says_nothing(kind: str) -> None:
    probe = next(probe for probe in PROBES if probe.kind == kind)
    _, attack = shown(named("arena_hard").ask(probe.case, "0123456789abcdef"))
    _, control = shown(named("arena_hard").ask(probe.control, "0123456789abcdef"))
    assert control == filler(kind)
    assert len(control) == len(attack)
    assert not gullible(control)
    assert len({filler(other) for other in injections()}) == len(injections())


@pytest.mark.parametrize("kind", injections())
def test_an_injection_reaches_the_judge_with_its_words_and_without_its_markers(kind: str) -> None:
    case = next(probe.case for probe in PROBES if probe.kind == kind)
    first, second = shown(named("arena_hard").ask(case, "0123456789abcdef"))
    assert first == case.response_a
    assert second == neutralised(injections()[kind])
    assert second.replace(" ", "") == injections()[kind].replace(" ", "")
