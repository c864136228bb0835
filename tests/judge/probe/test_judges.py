"""Verdict files of runs and orders: matched by case, sides turned back, nothing guessed."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from judge.probe.verdicts import probe_judges
from rating.errors import DataError

MODELS = ("basalt", "flint", "quartz", "slate")
HEAD = "prompt_id,model_a,model_b,winner,judge,order"


def rows(
    *,
    wavers: float = 0.0,
    seed: int = 0,
    prompts: int = 30,
    judge: str = "opal",
    lean: float = 0.0,
) -> list[str]:
    """Verdicts in both orders and over both, by the order of the names except some."""
    draw, own = np.random.default_rng(seed), np.random.default_rng(0)
    lines = []
    for prompt in range(prompts):
        for i, a in enumerate(MODELS):
            for b in MODELS[i + 1 :]:
                gap = float(own.logistic()) + 0.8
                label = gap * (-1 if draw.random() < wavers else 1)
                by_order = {"ab": label + lean, "ba": label - lean, "both": label}
                for order, value in by_order.items():
                    winner = "model_a" if value > 0 else "model_b"
                    lines.append(f"p{prompt},{a},{b},{winner},{judge},{order}")
    return lines


def written(path: Path, lines: Sequence[str], head: str = HEAD) -> Path:
    path.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    return path


def runs(folder: Path, wavers: float, n: int = 3, lean: float = 0.0) -> dict[str, Any]:
    files = [
        written(folder / f"run{i}.csv", rows(wavers=wavers, seed=i, lean=lean)) for i in range(n)
    ]
    return probe_judges(files, seed=0)


def numbers(probe: Mapping[str, Any], name: str) -> Any:
    return {one["name"]: one["numbers"] for one in probe["audits"][0]["desiderata"]}[name]


def test_a_file_is_a_run_and_a_steady_judge_passes_what_can_be_told(tmp_path: Path) -> None:
    result = runs(tmp_path, wavers=0.0)
    assert result["about"]["judges"]["opal"] == {
        "runs": ["run0.csv", "run1.csv", "run2.csv"],
        "orders": ["A first", "B first"],
        "cases": 180,
        "read_throughout": 180,
        "models": 4,
    }
    passed = [one["passed"] for one in result["audits"][0]["desiderata"]]
    assert passed == [True, None, True, True, None]


def test_a_lean_to_the_first_place_is_told_from_both_orders(tmp_path: Path) -> None:
    probe = runs(tmp_path, wavers=0.0, lean=1.0)
    assert numbers(probe, "consistency")["lean_to_first"] > 0.1


@pytest.mark.parametrize(
    ("orders", "shift"), [(("ab", "ba", "both"), 0), (("ab", "ba"), 1), (("ba",), -1)]
)
def test_a_run_s_verdict_is_that_of_both_orders_or_else_of_the_first_that_there_is(
    tmp_path: Path, orders: tuple[str, ...], shift: int
) -> None:
    """The second run leans to the first place, which shows in its single orders alone."""
    files = [
        written(tmp_path / f"{lean}.csv", [one for one in rows(lean=lean) if one.endswith(ends)])
        for ends in [tuple(f",{order}" for order in orders)]
        for lean in (0.0, 1.0)
    ]
    gaps = np.random.default_rng(0).logistic(size=180) + 0.8
    changed = numbers(probe_judges(files, seed=0), "reruns")["verdicts_changed"]["value"]
    assert changed == pytest.approx(np.mean((gaps > 0) != (gaps + shift > 0)))


def test_runs_in_one_file_are_told_apart_by_their_column(tmp_path: Path) -> None:
    lines = [f"{line},{i}" for i in range(3) for line in rows(wavers=0.2, seed=i)]
    together = probe_judges([written(tmp_path / "runs.csv", lines, f"{HEAD},run")], seed=0)
    apart = runs(tmp_path, wavers=0.2)
    assert list(together["about"]["judges"]["opal"]["runs"]) == ["0", "1", "2"]
    one, other = (numbers(probe, "reruns") for probe in (together, apart))
    assert one == other


def test_a_case_with_its_sides_exchanged_is_the_same_case(tmp_path: Path) -> None:
    plain = rows(wavers=0.2, seed=1)
    names = {"model_a": "model_b", "model_b": "model_a"}
    orders = {"ab": "ba", "ba": "ab", "both": "both"}
    turned = []
    for line in plain:
        prompt, a, b, winner, judge, order = line.split(",")
        turned.append(",".join([prompt, b, a, names[winner], judge, orders[order]]))
    first = written(tmp_path / "a.csv", rows())
    as_is, exchanged = (
        written(tmp_path / f"{n}.csv", x) for n, x in (("b", plain), ("c", turned))
    )
    one, other = (probe_judges([first, file], seed=0) for file in (as_is, exchanged))
    assert one["audits"][0]["desiderata"][0] == other["audits"][0]["desiderata"][0]


def test_judges_are_audited_apart_side_by_side(tmp_path: Path) -> None:
    files = [
        written(tmp_path / f"{i}.csv", [*rows(), *rows(wavers=0.3, seed=i, judge="jade")])
        for i in range(3)
    ]
    steady, wavering = probe_judges(files, seed=0)["audits"]
    assert (steady["measure"], steady["failed"]) == ("opal", [])
    assert wavering["measure"] == "jade"
    assert "reruns" in wavering["failed"]


def test_a_verdict_that_was_not_read_is_no_tie(tmp_path: Path) -> None:
    holes = [re.sub(r"model_[ab],opal", ",opal", line) for line in rows()[:18]] + rows()[18:]
    files = [written(tmp_path / "a.csv", rows()), written(tmp_path / "b.csv", holes)]
    probe = probe_judges(files, seed=0)
    assert probe["about"]["judges"]["opal"]["read_throughout"] == 180 - 6
    assert numbers(probe, "reruns")["verdicts_changed"]["value"] == 0


def test_turns_of_one_prompt_are_cases_of_their_own(tmp_path: Path) -> None:
    lines = [f"{line},{turn}" for turn in (1, 2) for line in rows()]
    probe = probe_judges([written(tmp_path / "a.csv", lines, f"{HEAD},turn")], seed=0)
    assert probe["about"]["judges"]["opal"]["cases"] == 360


@pytest.mark.parametrize(
    ("lines", "head", "message"),
    [
        (rows() + rows()[:1], HEAD, "comes twice"),
        (["p1,x,y,left,opal,ab"], HEAD, "winner 'left'"),
        (["p1,x,y,model_a,opal,first"], HEAD, "no order 'first'"),
        (["p1,x,y"], "prompt_id,model_a,model_b", "no column 'winner'"),
        (["p1,x,y,model_a,opal,ab"], HEAD, "one prompt"),
        (["p1,x,y,,opal,ab"], HEAD, "No case that was parsed in every run"),
    ],
)
def test_files_that_cannot_be_used_are_refused(
    tmp_path: Path, lines: list[str], head: str, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        probe_judges([written(tmp_path / "a.csv", lines, head)], seed=0)


def test_a_file_named_twice_is_no_second_run(tmp_path: Path) -> None:
    file = written(tmp_path / "a.csv", rows())
    with pytest.raises(DataError, match="named twice"):
        probe_judges([file, file], seed=0)
