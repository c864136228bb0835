"""Judges against each other: planted ones, one under two names, and one that costs."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from judge.report.studies import report_page
from judge.studies.boards import preferences
from judge.studies.data import JudgeVerdicts, StudyData, read_study
from judge.studies.estimates import Estimate
from judge.studies.one_judge import SideBySide, _few_people, _lead, side_by_side, study_judges
from judge.studies.options import StudyOptions
from tests.judge.studies.labels import ends, held
from tests.judge.studies.planted import MODELS, VERDICTS, VOTES, Planted

OPTIONS = StudyOptions(rounds=200)


def planted(n_prompts: int, seed: int, *judges: tuple[str, float]) -> StudyData:
    """People who are right in .8, and judges that are right by themselves as often as it says."""
    rng = np.random.default_rng(seed)
    data = Planted("person", n_prompts=n_prompts, seed=seed).data()
    better = Planted("perfect", n_prompts=n_prompts, seed=seed).data().judges[0].verdicts
    verdicts = [
        JudgeVerdicts(name, one, one, 0)
        for name, right in judges
        for flip in [np.where(rng.random(better.n // 2) < right, 1, -1)[better.item]]
        for one in [replace(better, label=(better.label * flip).astype(np.int8))]
    ]
    return replace(data, judges=tuple(verdicts))


def compared(data: StudyData, options: StudyOptions = OPTIONS) -> SideBySide:
    result = side_by_side(data, options, preferences(data.items, data.people))
    assert result is not None
    return result


def test_a_judge_that_is_right_more_often_leads_and_the_sentence_says_by_how_much() -> None:
    result = compared(planted(300, 1, ("crow", 0.6), ("owl", 0.9)))
    (lead,) = result.leads
    assert lead.certain
    assert held(lead.without_ties, 0.6 * (0.6 - 0.9))
    assert (lead.items, lead.prompts, lead.usd_per_point) == (300, 300, None)
    assert result.sentences[0].startswith("owl agrees with people more often than crow: by +")
    assert result.sentences[0].endswith("percentage points on 300 shared items.")


def test_one_judge_under_two_names_leads_nowhere() -> None:
    data = planted(100, 2, ("owl", 0.8))
    twice = replace(data, judges=(*data.judges, replace(data.judges[0], name="barn owl")))
    (lead,) = compared(twice).leads
    assert (lead.without_ties.value, lead.certain) == (0.0, False)
    assert ends(lead.without_ties)[0] < 0
    assert compared(twice).sentences[0].startswith("We do not find a difference between owl and")


def test_the_order_of_the_judges_turns_the_lead_and_no_claim() -> None:
    data = planted(200, 3, ("crow", 0.6), ("owl", 0.9))
    one, other = compared(data), compared(replace(data, judges=data.judges[::-1]))
    assert one.sentences == other.sentences
    assert one.leads[0].without_ties.value == -(other.leads[0].without_ties.value or 0)


def test_of_many_judges_the_pairs_with_the_best_are_spoken_of() -> None:
    names = ("crow", 0.6), ("jay", 0.7), ("owl", 0.95), ("wren", 0.65)
    result = compared(planted(200, 9, *names))
    assert len(result.leads) == 6
    assert len(result.sentences) == 3
    assert all(text.startswith("owl agrees with people") for text in result.sentences)


def test_a_lead_is_certain_at_a_level_over_all_pairs_of_judges() -> None:
    data = planted(100, 5, ("crow", 0.65), ("owl", 0.8))
    crow, owl = data.judges
    costs = dict.fromkeys(("crow", "owl"))
    certain = [_lead(data, (crow, owl), OPTIONS, n, costs).certain for n in (1, 1000)]
    assert certain == [True, False]


def test_votes_of_two_people_are_warned_of_and_those_of_three_are_not() -> None:
    data = planted(40, 10, ("owl", 0.8))
    for n, warned in ((2, ["The votes are by too few people"]), (3, [])):
        cast = data.people.only(data.people.rater < n)
        assert [text[:31] for text in _few_people(replace(data, people=cast))] == warned


def test_few_prompts_make_no_claim() -> None:
    result = compared(planted(19, 4, ("crow", 0.0), ("owl", 1.0)))
    assert not result.leads[0].certain
    assert result.sentences[0].endswith("on 19 shared items, of 19 prompts.")
    assert {one.value for part in result.parts for one in part.agreement.values()} == {None}
    enough = compared(planted(20, 4, ("crow", 0.0), ("owl", 1.0)))
    assert enough.leads[0].certain
    assert enough.parts[0].agreement["owl"].value is not None


def test_only_items_that_both_have_read_are_compared() -> None:
    data = planted(200, 5, ("crow", 0.7), ("owl", 0.7))
    crow, owl = data.judges
    half = crow.verdicts.only(crow.verdicts.item < 120)
    result = compared(replace(data, judges=(replace(crow, verdicts=half, in_orders=half), owl)))
    assert (result.leads[0].items, result.parts[0].items) == (120, 120)


def test_a_judge_that_reads_length_alone_shows_in_the_parts_by_length() -> None:
    data = planted(400, 6, ("owl", 0.9))
    longest = Planted("longest", n_prompts=400, seed=6).data().judges[0]
    near = np.where(np.arange(400) % 2, data.items.gaps["length"], 0.1)
    gaps = {**data.items.gaps, "length": near}
    data = replace(data, items=replace(data.items, gaps=gaps))
    result = compared(replace(data, judges=(*data.judges, replace(longest, name="crow"))))
    parts = {part.part: part for part in result.parts}
    assert parts["Lengths differ by at most a fifth"].items == 200
    assert parts["One is more than twice as long"].items == 200
    assert sum(part.items for part in result.parts if part.by == "difficulty") == 400
    crow = result.parts[0].agreement["crow"]
    assert held(crow, 0.5)
    assert result.price("crow") is None


def test_what_agreement_costs_is_told_where_it_is_known() -> None:
    data = planted(300, 7, ("crow", 0.6), ("owl", 0.9))
    crow, owl = data.judges
    result = compared(replace(data, judges=(replace(crow, cost=0.001), replace(owl, cost=0.004))))
    gap = 100 * abs(result.leads[0].without_ties.value or 0)
    assert result.leads[0].usd_per_point == pytest.approx(3 / gap)
    assert "and each of these points costs $" in result.sentences[0]
    agreed = result.parts[0].agreement["owl"].value or 0
    assert result.price("owl") == pytest.approx(4 / (100 * (agreed - 0.5)))
    cheap = compared(replace(data, judges=(replace(crow, cost=0.004), replace(owl, cost=0.004))))
    assert cheap.sentences[0].endswith("shared items, and costs no more.")
    whole = result.parts[0]
    for lower, price in ((0.5, None), (0.51, pytest.approx(0.4))):
        part = replace(whole, agreement={"owl": Estimate(0.6, lower, 0.7, 9)})
        assert replace(result, parts=(part,)).price("owl") == price


def files(folder: Path) -> tuple[str, str]:
    """Votes, and verdicts of two judges with what each order cost."""
    rng = np.random.default_rng(8)
    votes, verdicts = [VOTES + ",category"], [VERDICTS + ",cost"]
    for k in range(90):
        a, b = (MODELS[i] for i in rng.choice(len(MODELS), 2, replace=False))
        better = int(rng.choice([-1, 1]))
        sides = {1: "model_a", -1: "model_b"}
        for who in range(3):
            side = better if rng.random() < 0.8 else -better
            kind = "code" if k % 2 else "prose"
            votes.append(f"p{k},{a},{b},{sides[side]},v{who},400,100,{kind}")
        for judge, right, cost in (("owl", 0.95, "0.002"), ("crow", 0.55, "0.0005")):
            side = better if rng.random() < right else -better
            for order in ("ab", "ba"):
                verdicts.append(f"p{k},{a},{b},{sides[side]},{judge},{order},{cost}")
            verdicts.append(f"p{k},{a},{b},{sides[side]},{judge},both,")
    for name, rows in (("votes.csv", votes), ("verdicts.csv", verdicts)):
        (folder / name).write_text("\n".join(rows) + "\n", encoding="utf-8")
    return str(folder / "votes.csv"), str(folder / "verdicts.csv")


def test_costs_are_summed_over_the_orders_of_an_item(tmp_path: Path) -> None:
    data = read_study(*files(tmp_path))
    assert {judge.name: judge.cost for judge in data.judges} == {
        "crow": pytest.approx(0.001),
        "owl": pytest.approx(0.004),
    }


def test_the_report_and_the_json_of_two_judges_hold_them_against_each_other(
    tmp_path: Path,
) -> None:
    options = StudyOptions(rounds=100, by="category")
    study = study_judges(*files(tmp_path), options)
    result = study.to_dict()["against_each_other"]
    assert [(one["first"], one["second"]) for one in result["pairs"]] == [("crow", "owl")]
    assert [part["part"] for part in result["parts"] if part["by"] == "category"] == [
        "code",
        "prose",
    ]
    page = report_page(study, date(2026, 1, 1))
    assert "crow minus owl" in [row[0] for row in page.first.aside[-1].rows]
    section = next(one for one in page.sections if one.title == "Comparison of judges")
    assert section.paragraphs == (" ".join(result["sentences"]),)
    assert section.more[0].rows[0] == ("Dollars per thousand items", "1", "4")


@pytest.mark.slow
@pytest.mark.parametrize("n_prompts", [20, 100])
def test_judges_that_are_equally_good_are_seldom_told_apart(n_prompts: int) -> None:
    """Three of them, each with errors of its own: any claim among three pairs is a false one."""
    rounds = 200
    judges, claims = (("crow", 0.75), ("jay", 0.75), ("owl", 0.75)), []
    for seed in range(rounds):
        result = side_by_side(planted(n_prompts, seed, *judges), OPTIONS, None)
        assert result is not None
        claims.append(any(lead.certain for lead in result.leads))
    assert np.mean(claims) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / rounds)
