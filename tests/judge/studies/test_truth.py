"""Judges on truth sets: planted ones, JudgeBench's pairs, and LLMBar's published figures."""

import json
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from judge.report.judges import truth_page
from judge.studies.options import StudyOptions
from judge.studies.truth import TruthStudy, study_truth
from judge.tables.cases import read_cases
from rating.errors import DataError
from rating.tables.files import Files
from tests.judge.studies.labels import held

QUICK = StudyOptions(rounds=100)
Says = Callable[[int, str, str], str]
"""From the number of a case, its label and the order to a winner; nothing where unread."""
SIDES = {"A>B": "model_a", "B>A": "model_b"}
OTHER = {"A>B": "model_b", "B>A": "model_a"}


def truth_set(folder: Path, n: int = 60, each: int = 1) -> Path:
    """Pairs with a label, some of a prompt."""
    rows = [
        {
            "prompt": f"Question {i // each}?",
            "response_a": f"One {i}.",
            "response_b": f"Other {i}.",
        }
        | {"label": "A>B" if i % 3 else "B>A", "source": "maths" if i % 2 else "law"}
        for i in range(n)
    ]
    path = folder / "pairs.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


UNANSWERED = ("pending", "rate_limit", "overloaded", "transport", "rejected", "denied")


def perfect(i: int, label: str, order: str) -> str:
    return SIDES[label]


def first(i: int, label: str, order: str) -> str:
    """Name what stands first, whatever it is."""
    return "model_a" if order == "ab" else "model_b"


def studied(pairs: Path, judges: Mapping[str, Says], options: StudyOptions = QUICK) -> TruthStudy:
    """Write what judges say of the pairs, in both orders, and study it."""
    labels = [json.loads(line)["label"] for line in pairs.read_text("utf-8").splitlines()]
    rows = ["battle_id,judge,order,winner,status"]
    for name, says in judges.items():
        for i, (named, label) in enumerate(zip(read_cases([pairs]), labels, strict=True)):
            for order in ("ab", "ba"):
                winner = says(i, label, order)
                status = winner if winner in UNANSWERED else "read" if winner else "unparsed"
                winner = "" if winner in UNANSWERED else winner
                if winner != "not asked":
                    rows.append(f"{named.battle_id},{name},{order},{winner},{status}")
            rows.append(f"{named.battle_id},{name},both,,read")
    verdicts = pairs.parent / "verdicts.csv"
    verdicts.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return study_truth([Files((str(verdicts),))], Files((str(pairs),)), options)


def test_a_perfect_judge_is_always_right_and_one_of_the_first_place_half_of_the_time(
    tmp_path: Path,
) -> None:
    study = studied(truth_set(tmp_path), {"crow": first, "owl": perfect})
    crow, owl = study.whole
    assert (owl.right.value, owl.right_in_both.value, study.shown["owl"]) == (1.0, 1.0, 1)
    assert owl.right.lower is not None
    assert owl.right.lower < 1
    assert crow.right.value == pytest.approx(0.5)
    assert (crow.right_in_both.value, study.shown["crow"]) == (0.0, 0)
    assert crow.scores is not None
    assert (crow.scores["n_first"], crow.scores["n_second"]) == (60, 0)
    by_order = crow.to_dict()  # the label is for the first response of 40 of the 60 pairs
    assert (by_order["right_as_is"], by_order["right_swapped"]) == pytest.approx((2 / 3, 1 / 3))
    both = "60 times the answer shown first in each, 0 times the second."
    assert both in study.sentences(crow)[1]
    assert study.sentences(crow)[0].endswith(
        "We do not find that it is right more often than choosing at random (50%)."
    )
    assert study.sentences(owl)[0] == (
        "The judge names the right side in 100% (94–100) of its verdicts, on 60 cases "
        "in both orders. This is more often than choosing at random (50%)."
    )
    assert study.comparisons[0].startswith("crow is right less often than owl: −50 (")


def test_a_judge_that_is_always_wrong_is_said_to_be(tmp_path: Path) -> None:
    study = studied(truth_set(tmp_path), {"crow": lambda i, label, order: OTHER[label]})
    assert study.shown == {"crow": -1}
    assert "This is less often than choosing at random" in study.sentences(study.whole[0])[0]
    assert study.whole[0].to_dict()["wrong_in_both"] == 1.0


def test_ties_and_what_was_not_read_are_not_right_and_are_counted(tmp_path: Path) -> None:
    def says(i: int, label: str, order: str) -> str:
        return "tie" if i < 6 else "" if i < 10 and order == "ab" else SIDES[label]

    study = studied(truth_set(tmp_path), {"owl": says})
    (one,) = study.whole
    assert one.to_dict()["n_tied"] == 12
    assert one.to_dict()["n_unread"] == 4
    assert one.right.value == pytest.approx((120 - 16) / 120)
    table = truth_page(study, date(2026, 1, 1)).first.table
    assert table is not None
    cells = [cell.split(" (")[0] for cell in table.rows[0]]
    assert cells == ["owl", "87%", "83%", "60", "12", "4"], "right in both orders in 50 of 60"
    assert study.sentences(one)[-1] == (
        "Of 120 verdicts, 12 are ties and 4 were not parsed: neither counts as right, "
        "because every case has a right side."
    )


def test_what_was_never_answered_or_asked_in_one_order_is_in_no_figure(tmp_path: Path) -> None:
    """Ten verdicts have no reply, and five cases were asked in one order alone, all wrong."""

    def says(i: int, label: str, order: str) -> str:
        if i < 5:
            return UNANSWERED[(i + (order == "ba")) % len(UNANSWERED)]
        if i < 10:
            return OTHER[label] if order == "ab" else "not asked"
        return SIDES[label]

    study = studied(truth_set(tmp_path), {"owl": says})
    (one,) = study.whole
    assert (one.right.value, one.right_in_both.n, one.n_single) == (1.0, 50, 5)
    assert study.n_without_reply == 10
    assert study.warnings[1:] == (
        "5 cases judged in one order only: excluded.",
        "10 verdicts without a reply: excluded, because there is no verdict.",
    )


def test_few_single_orders_make_no_claim(tmp_path: Path) -> None:
    study = studied(
        truth_set(tmp_path, 12),
        {"crow": lambda i, label, order: OTHER[label] if order == "ab" else "not asked"},
    )
    assert study.shown == {"crow": 0}
    assert study.sentences(study.whole[0]) == (
        "No case was judged in both orders: accuracy is not estimated.",
    )
    assert studied(truth_set(tmp_path, 20), {"owl": perfect}).shown == {"owl": 1}
    few = studied(truth_set(tmp_path, 19), {"owl": perfect})
    untested = "Whether this differs from choosing at random is not tested with 19 prompts."
    assert untested in few.sentences(few.whole[0])[0]


def test_a_judge_under_two_names_is_right_alike(tmp_path: Path) -> None:
    def wavering(i: int, label: str, order: str) -> str:
        return SIDES[label] if (i + (order == "ab")) % 3 else OTHER[label]

    study = studied(truth_set(tmp_path), {"owl": wavering, "barn owl": wavering})
    one, other = (each.to_dict() | {"judge": ""} for each in study.whole)
    assert one == other
    assert (study.leads[0].gap.value, study.leads[0].certain) == (0.0, False)


def test_parts_are_by_a_column_of_the_labels_and_intervals_by_prompt(tmp_path: Path) -> None:
    options = StudyOptions(rounds=100, by="source")

    def says(i: int, label: str, order: str) -> str:
        return (SIDES if i % 2 else OTHER)[label]

    study = studied(truth_set(tmp_path, each=3), {"owl": says}, options)
    parts = [(one.part, one.right.value, one.right.n) for one in study.parts]
    assert parts == [("law", 0.0, 60), ("maths", 1.0, 60)]
    assert (study.whole[0].n_prompts, study.n_cases) == (20, 60)


def test_of_many_judges_the_pairs_with_the_best_are_compared(tmp_path: Path) -> None:
    judges = {"crow": first, "jay": first, "owl": perfect, "wren": first}
    study = studied(truth_set(tmp_path), judges)
    pairs = [(lead.first, lead.second, lead.gap.value) for lead in study.leads]
    assert pairs == [("crow", "owl", -0.5), ("jay", "owl", -0.5), ("owl", "wren", 0.5)]
    assert study.comparisons[2].startswith("owl is right more often than wren: +50 (")


def test_judges_without_a_case_in_common_are_not_compared(tmp_path: Path) -> None:
    def half(of: int) -> Says:
        return lambda i, label, order: SIDES[label] if i % 2 == of else "not asked"

    study = studied(truth_set(tmp_path), {"crow": half(0), "owl": half(1)})
    assert [one.right.n for one in study.whole] == [60, 60]
    assert study.comparisons == (
        "crow and owl have no case in common that both judged in both orders.",
    )


def test_labels_of_neither_side_and_verdicts_on_no_label_are_counted(tmp_path: Path) -> None:
    pairs = truth_set(tmp_path)
    studied(pairs, {"owl": perfect})
    rows = [json.loads(line) for line in pairs.read_text("utf-8").splitlines()]
    rows[0]["label"] = "A=B"
    pairs.write_text("\n".join(map(json.dumps, rows[:50])), encoding="utf-8")
    study = study_truth([Files((f"{tmp_path}/verdicts.csv",))], Files((str(pairs),)), QUICK)
    assert study.n_cases == 49
    assert study.warnings[1:] == (
        "1 label for neither side: excluded.",
        "22 verdicts on cases without a label: excluded.",
    )


def test_the_words_are_of_labels_and_not_of_people(tmp_path: Path) -> None:
    study = studied(truth_set(tmp_path), {"owl": perfect, "crow": first})
    page = truth_page(study, date(2026, 1, 1))
    spoken = [*page.answers[0].sentences, page.answers[0].headline, page.opening, page.title]
    assert not any(word in text for text in spoken for word in ("people", "person", "vote"))
    assert study.warnings[0].startswith("The labels are taken as the truth: a wrong label")
    assert "nothing here describes people's preferences" in study.warnings[0]
    assert page.answers[0].tone == "fair"
    assert page.answers[1].tone == "good"


@pytest.mark.parametrize("name", ["item_id", "battle_id", "prompt_id", "question_id"])
def test_verdicts_are_matched_to_labels_by_any_id_and_in_the_sides_of_their_case(
    tmp_path: Path, name: str
) -> None:
    pairs, n = truth_set(tmp_path), range(60)
    lines = pairs.read_text("utf-8").splitlines()
    rows = [json.loads(line) | {"model_a": "x", "model_b": "y"} for line in lines]
    named = [row | {name.replace("question", "prompt"): f"i{i}"} for i, row in enumerate(rows)]
    pairs.write_text("\n".join(map(json.dumps, named)), encoding="utf-8")
    verdicts = tmp_path / "verdicts.csv"
    lines = [f"{name},model_a,model_b,judge,order,winner"]
    for i in n:
        sides = "y,x" if i % 2 else "x,y"
        right = SIDES[rows[i]["label"]] if i % 2 == 0 else OTHER[rows[i]["label"]]
        lines += [f"i{i},{sides},owl,ab,{right}", f"i{i},{sides},owl,ba,tie"]
    verdicts.write_text("\n".join(lines), encoding="utf-8")
    study = study_truth([Files((str(verdicts),))], Files((str(pairs),)), QUICK)
    scores = study.whole[0].to_dict()
    assert (scores["right"]["value"], scores["right_as_is"], scores["n"]) == (0.5, 0.5, 60)


def test_labels_may_stand_beside_the_verdicts(tmp_path: Path) -> None:
    rows = ["battle_id,prompt_id,judge,order,winner,label"]
    rows += [f"b{i},p{i},owl,{order},model_a,1" for i in range(30) for order in ("ab", "ba")]
    path = tmp_path / "verdicts.csv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    study = study_truth([Files((str(path),))], None, QUICK)
    assert study.whole[0].right.value == 1.0


def test_what_cannot_be_held_against_labels_is_refused(tmp_path: Path) -> None:
    pairs = truth_set(tmp_path, 4)
    other = tmp_path / "other.csv"
    other.write_text("battle_id,judge,order,winner\nb1,owl,ab,model_a\n", encoding="utf-8")
    with pytest.raises(DataError, match="No verdict is on a case with a label"):
        study_truth([Files((str(other),))], Files((str(pairs),)), QUICK)
    with pytest.raises(DataError, match="no column 'label'"):
        study_truth([Files((str(other),))], None, QUICK)
    pairs.write_text(pairs.read_text("utf-8").replace("A>B", "left"), encoding="utf-8")
    with pytest.raises(DataError, match="label 'left'"):
        study_truth([Files((str(other),))], Files((str(pairs),)), QUICK)


@pytest.mark.published
def test_judgebench_has_its_620_labels(published_data: Path, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_bytes((published_data / "gold" / "judgebench_pairs.jsonl").read_bytes())
    study = studied(pairs, {"owl": perfect, "crow": first}, StudyOptions(rounds=100, by="source"))
    assert (study.n_cases, study.whole[0].n_prompts) == (620, 528)
    assert [one.right.value for one in study.whole] == pytest.approx([0.5, 1.0])
    assert len({one.part for one in study.parts}) == 17


@pytest.mark.published
def test_llmbar_has_its_published_accuracy_by_subset(published_data: Path) -> None:
    folder = published_data / "judge"
    files = Files((str(folder / "llmbar_swap.parquet"),), (), "strategy IN ('CoT', 'Vanilla')")
    study = study_truth([files], None, StudyOptions(rounds=100))
    names = "llm, strategy, subset, correct_average, correct_both"
    table = duckdb.read_csv(str(folder / "llmbar_published.csv"))
    published = table.filter("strategy IN ('CoT', 'Vanilla')").project(names).fetchall()
    ours = {(one.judge, one.part): one for one in study.parts}
    assert len(ours) == len(published) > 20
    for llm, strategy, subset, mean, both in published:
        one = ours[f"{llm}, {strategy}", subset]
        assert 100 * (one.right.value or 0) == pytest.approx(mean, abs=1e-9)
        assert 100 * (one.right_in_both.value or 0) == pytest.approx(both, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["coin", "one coin for both", "first half of the time"])
def test_who_reads_nothing_is_seldom_said_to_be_right_or_wrong(tmp_path: Path, kind: str) -> None:
    """A coin in each order, one for both, or a coin and the first place by turns."""
    rng, pairs, rounds, claims, coverage = np.random.default_rng(1), truth_set(tmp_path), 150, 0, 0
    for _ in range(rounds):
        coins = rng.choice(["model_a", "model_b"], (60, 2))

        def says(i: int, label: str, order: str, coins: Any = coins) -> str:
            if kind == "first half of the time" and i % 2:
                return first(i, label, order)
            return str(coins[i, 0 if kind == "one coin for both" else int(order == "ab")])

        study = studied(pairs, {"crow": says})
        claims += study.shown["crow"] != 0
        coverage += held(study.whole[0].right, 0.5)
    assert claims / rounds <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / rounds)
    assert coverage / rounds >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / rounds)
