"""What a study answers first of planted judges, from their files to the sentence."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from judge.report.studies import report_page
from judge.studies.gates import FIRST, LONGEST, MIN_ITEMS, OPENINGS, UNTESTED
from judge.studies.one_judge import JudgeStudy
from judge.studies.options import StudyOptions
from tests.judge.studies.planted import Planted


def judged(planted: Planted, folder: Path) -> JudgeStudy:
    (study,) = planted.study(folder).judges
    return study


def test_a_judge_that_is_always_right_may_stand_in(tmp_path: Path) -> None:
    studied = judged(Planted("perfect"), tmp_path)
    assert studied.first_answer.verdict == "yes"
    test = studied.evidence.alternative
    assert test is not None
    assert (test.winning_rate, test.coin, test.people_tested) == (1, 0, 5)
    text = " ".join(studied.first_answer.reasons)
    assert "non-inferior to a person) is 100% of 5 people; that of a random choice is 0%" in text
    assert f"On {100 * test.advantage:.0f}% of a person's items" in text
    assert "The margin, 10% of a person's items, is that for crowd workers" in text
    assert "Not estimated: bias of format (it needs texts" in " ".join(studied.missing())


@pytest.mark.sampled(3)
@pytest.mark.parametrize("right", [0.6, 0.8, 1.0])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_coin_may_never_stand_in(tmp_path: Path, right: float, seed: int) -> None:
    studied = judged(Planted("coin", right=right, seed=seed), tmp_path).first_answer
    assert studied.verdict in ("no", "inconclusive")
    assert "choosing at random" in " ".join(studied.reasons)


def test_a_coin_beside_people_who_hardly_agree_may_not_stand_in(tmp_path: Path) -> None:
    """Right in .6 of cases, taken for experts: there a coin passes the test of annotators."""
    study = Planted("coin", right=0.6, n_prompts=900, n_people=3).study(tmp_path, raters="expert")
    (judge,) = study.judges
    assert judge.evidence.alternative is not None
    assert judge.evidence.alternative.winning_rate == judge.evidence.alternative.coin == 1
    assert judge.first_answer.headline == (
        "Inconclusive. We do not find that the judge does better than choosing at random."
    )


def test_a_judge_of_the_longer_answer_is_exposed(tmp_path: Path) -> None:
    studied = judged(Planted("longest"), tmp_path)
    answer = studied.first_answer
    assert answer.verdict == "no"
    assert answer.headline == "No. The judge does no better than choosing the longer answer."
    assert answer.reasons[1].startswith("100% of its verdicts equal choosing the longer")
    assert studied.evidence.alternative is not None
    assert studied.evidence.alternative.longest == studied.evidence.alternative.winning_rate


def test_a_rule_with_few_cases_is_not_mentioned(tmp_path: Path) -> None:
    """Of 600 cases 3 were asked in one order, and there the judge took the first."""
    studied = judged(Planted("first", n_prompts=600, single=3), tmp_path)
    answer = studied.first_answer
    assert FIRST not in {rule.name for rule in studied.evidence.rules}
    assert "shown first" not in " ".join(answer.reasons)
    assert answer.verdict == "yes"


def test_a_rule_with_many_cases_is_and_on_these_alone(tmp_path: Path) -> None:
    studied = judged(Planted("first", n_prompts=600, single=250), tmp_path)
    rule = next(rule for rule in studied.evidence.rules if rule.name == FIRST)
    assert rule.followed is not None
    assert (rule.followed.value, rule.lead.value) == (1, 0)
    assert studied.first_answer.headline == (
        "No. The judge does no better than always choosing the answer shown first."
    )


def test_six_unanimous_items_are_no_yes(tmp_path: Path) -> None:
    studied = judged(Planted("perfect", right=1.0, n_prompts=6, n_people=3), tmp_path)
    assert studied.first_answer.verdict == "inconclusive"
    assert studied.first_answer.headline.endswith("6 prompts; a verdict needs at least 20.")
    own = studied.agreement.judge.without_ties
    assert own.value == 1
    assert own.lower == pytest.approx(0.025 ** (1 / 6))
    assert studied.evidence.rules == ()


def test_unanimous_items_give_no_test_of_favouritism_and_so_no_yes(tmp_path: Path) -> None:
    studied = judged(Planted("perfect", right=1.0, n_prompts=100, n_people=3), tmp_path)
    assert studied.first_answer.headline == f"Inconclusive. {UNTESTED}"
    assert "do not vary enough" in " ".join(studied.first_answer.reasons)
    assert studied.evidence.alternative is not None
    assert studied.evidence.alternative.decides_at == MIN_ITEMS


def test_fewer_than_three_people_are_no_yes(tmp_path: Path) -> None:
    studied = judged(Planted("perfect", n_people=2, each=2), tmp_path)
    assert studied.evidence.alternative is None
    assert studied.first_answer.verdict == "inconclusive"
    assert studied.first_answer.reasons[0].startswith(
        "The alternative-annotator test needs at least 3"
    )


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", ["perfect", "coin", "longest", "person"])
def test_another_name_changes_no_answer(tmp_path: Path, kind: str) -> None:
    planted = Planted(kind)  # type: ignore[arg-type]
    one, other = (
        judged(replace(planted, name=name), tmp_path).first_answer for name in ("owl", "a0")
    )
    assert one == other


def test_files_and_arrays_give_the_same_answer(tmp_path: Path) -> None:
    planted = Planted("person", n_prompts=60)
    studied = planted.judged(StudyOptions(rounds=200))
    assert studied.first_answer == judged(planted, tmp_path).first_answer


def test_the_page_says_what_the_figures_say(tmp_path: Path) -> None:
    study = Planted("longest").study(tmp_path, raters="skilled")
    page = report_page(study, date(2026, 5, 3))
    (answer,) = page.answers
    result = study.judges[0].first_answer
    assert (answer.tone, answer.headline) == ("poor", f"{OPENINGS['no']} {result.reasons[0]}")
    assert answer.sentences == result.reasons[1:]
    assert study.to_dict()["first_answer"] == {"verdict": "no", "reasons": list(result.reasons)}
    assert "--raters skilled" in page.sections[-1].code
    assert any("is that for skilled raters" in point for s in page.sections for point in s.points)
    table = next(one for one in page.first.aside if one.head[0] == "Alternative-annotator test")
    text = {row[0]: row[1] for row in table.rows}
    assert text["Winning rate of the judge"] == text["Winning rate of choosing the longer answer"]
    assert text["People tested"] == "5"
    assert "(margin 15% of their items, for skilled raters)" in table.note
    assert LONGEST in {row[0] for row in page.first.table.rows}  # type: ignore[union-attr]
