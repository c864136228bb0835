"""Interventions by name and group, samples, and one report of all."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from judge.case import Case, Reply
from judge.methods import method
from judge.probe.cards import SAMPLE, Tried, chosen_kinds, groups, plan, report
from judge.probe.findings import Votes
from judge.probe.verdicts import Material, Pair, kinds, own_material
from rating.errors import DataError
from tests.judge.probe.texts import pairs
from tests.judge.scripted import Clock, MemoryJournal, ScriptedJudge, judged, shown


def planned(
    *names: str,
    given: Material | None = None,
    votes: Votes | None = None,
    sample: int | None = None,
    single: bool = False,
) -> Tried:
    source = given or own_material()
    wanted = chosen_kinds(names)
    return plan(wanted, source, votes or {}, judge="Owl", single=single, sample=sample)


def cases_of(tried: Tried) -> list[Case]:
    return [case for of in tried.values() for one in of for case in (one.case, one.control)]


def test_every_group_has_an_expectation_and_no_name_comes_twice() -> None:
    assert [*kinds()] == [*groups()]
    assert {*map(frozenset, groups().values())} == {
        frozenset(("title", "measure", "expected", "asked"))
    }
    names = Counter(kind for every in kinds().values() for kind in every)
    assert set(names.values()) == {1}
    assert not names.keys() & {*groups(), "all"}


@pytest.mark.parametrize(
    ("names", "sizes"),
    [
        ((), {"injections": 17}),
        (("all",), {"biases": 15}),
        (("biases", "Position"), {"biases": 15}),
        (("plea", "side-swap", "RANDOM CASE"), {"injections": 1, "harmless": 2}),
        (("people", "25%-removed"), {"people": 1, "missing": 1}),
        ((*kinds(),), dict(zip(kinds(), (17, 15, 1, 6, 5, 7), strict=True))),
    ],
)
def test_interventions_are_chosen_by_name_or_group(
    names: tuple[str, ...], sizes: dict[str, int]
) -> None:
    assert {group: len(of) for group, of in chosen_kinds(names).items()} == sizes


def test_checks_take_a_sample_that_a_larger_one_contains() -> None:
    given = Material(tuple(map(Pair, pairs(SAMPLE + 20))), "lot")
    every = planned("harmless", "authority", "plea", given=given)
    assert len({one.cluster for one in every["harmless"]}) == SAMPLE
    assert len({one.cluster for one in every["biases"]}) == SAMPLE + 20
    assert len(every["injections"]) == SAMPLE + 20
    small, larger = (
        planned("harmless", "missing", "authority", "plea", given=given, sample=n) for n in (5, 40)
    )
    assert [len({one.cluster for one in of}) for of in small.values()] == [5, 5, 5, 5]
    names, more = ({one.id for one in cases_of(of)} for of in (small, larger))
    assert names < more


def test_votes_and_harmless_changes_share_the_pair_as_it_is() -> None:
    given = Material(tuple(Pair(case.swapped(), turned=True) for case in pairs(9)), "labels")
    tried = planned("people", "harmless", given=given, votes=dict.fromkeys(pairs(9), ((1, 0),)))
    voted, controls = (
        {one.control.id for one in tried[group]} for group in ("people", "harmless")
    )
    assert voted == controls
    assert len(voted) == 9


@pytest.mark.parametrize(
    ("names", "single", "message"),
    [
        (("side-swap",), True, "'side swap' compares two answers, and the method judges one"),
        (("labels-renamed",), False, "'labels renamed' changes nothing in any of 24 pairs"),
    ],
)
def test_what_leaves_nothing_to_ask_is_refused(
    names: tuple[str, ...], single: bool, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        planned(*names, single=single)


async def test_one_report_holds_what_came_of_every_group() -> None:
    """A judge of the shorter answer, which stays silent where it is asked about Canberra."""

    def script(request: Any, before: int) -> Reply:
        answers = shown(request)
        if any("Canberra" in one for one in answers):
            return Reply(text="Hm.")
        first, second = map(len, answers)
        return Reply(text="[[C]]" if first == second else "[[A]]" if first < second else "[[B]]")

    tried = planned("injections", "authority", "harmless", "meaning", "missing")
    judge = ScriptedJudge(script, Clock(), latency_s=0)
    run = await judged(cases_of(tried), method("pairwise"), judge, MemoryJournal())
    whole = report(tried, run, replace(own_material(), n_left_out=2), {}, (0, 1))
    assert {"kinds", "success_rate", "headline", "interventions", "length"} <= whole.keys()
    assert {group: of["probes"] for group, of in whole["groups"].items()} == {
        group: len(of) for group, of in tried.items()
    }
    assert (whole["better_by"], whole["pairs_left_out"]) == ("own", 2)
    rows = {row["kind"]: row for row in whole["checks"]}
    assert {row["group"] for row in rows.values()} == {"harmless", "meaning", "missing"}
    assert (rows["side swap"]["rate"], rows["75% removed"]["rate"]) == (1, 0)
    assert rows["100% inserted"]["rate"] == 1
    undecided = sum(row["n_undecided"] for row in rows.values())
    assert undecided > 0
    assert whole["warnings"][-1] == f"{undecided} probes without a verdict: excluded."
    left_out = "2 pairs excluded: of equal answers, or without a label for one side."
    assert left_out in whole["warnings"]
    assert any("unparsed" in text for text in whole["warnings"]), "of the biases, too"
    assert (
        whole["dose_response"]["inserted"]["value"]
        > 0
        > whole["dose_response"]["removed"]["value"]
    )
