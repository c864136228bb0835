"""No interval of a study is without a width: that no draw moves a figure is not certainty."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judge.studies.one_judge import study_judges
from judge.studies.options import StudyOptions

MODELS = ("basalt", "flint", "quartz", "slate")
HEAD = "prompt_id,model_a,model_b,winner,len_a,len_b"
Row = tuple[int, int, int, str, int]

winners = st.sampled_from(["model_a", "model_b", "tie"])
rows = st.lists(
    st.tuples(
        st.integers(0, 5),
        st.integers(0, 2),
        st.integers(1, 3),
        st.one_of(winners, st.just("model_a")),
        st.integers(0, 2),
    ),
    min_size=1,
    max_size=40,
)


def lines(head: str, rows: list[Row], who: list[str]) -> str:
    text = [
        f"p{prompt},{MODELS[a]},{MODELS[(a + step) % 4]},{winner},{10 + prompt},{20 * a + 1},"
        f"{who[number]}"
        for prompt, a, step, winner, number in rows
    ]
    return "\n".join([head, *text]) + "\n"


def studied(votes: list[Row], verdicts: list[Row]) -> dict[str, Any]:
    """Study votes and verdicts through their files."""
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder, "votes.csv"), Path(folder, "verdicts.csv")
        files[0].write_text(lines(f"{HEAD},voter", votes, ["v0", "v1", "v2"]), encoding="utf-8")
        orders = ["ab", "ba", "ab"]
        files[1].write_text(lines(f"{HEAD},order", verdicts, orders), encoding="utf-8")
        return study_judges(str(files[0]), str(files[1]), StudyOptions(rounds=100)).to_dict()


def intervals(plain: object, name: str = "") -> Iterator[tuple[str, float, float]]:
    """Every interval with two ends, by where it stands."""
    if isinstance(plain, list):
        for number, one in enumerate(plain):
            yield from intervals(one, f"{name}.{number}")
    elif isinstance(plain, dict):
        lower, upper = plain.get("lower"), plain.get("upper")
        if isinstance(lower, float | int) and isinstance(upper, float | int):
            yield name, lower, upper
        for key, one in plain.items():
            yield from intervals(one, f"{name}.{key}")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows, rows)
def test_no_interval_of_a_small_study_is_without_a_width(
    votes: list[Row], verdicts: list[Row]
) -> None:
    verdicts = [(*votes[0][:3], verdicts[0][3], 0), *verdicts]  # one on an item with a vote
    flat = [one for one in intervals(studied(votes, verdicts)) if one[2] - one[1] < 1e-9]
    assert flat == []


def test_a_few_votes_that_the_length_foretells_are_no_crash() -> None:
    votes = [
        (0, 0, 2, "model_a", 2), (0, 0, 2, "tie", 2), (0, 1, 2, "model_a", 1),
        (0, 1, 3, "model_b", 2), (0, 0, 3, "model_a", 0), (0, 2, 1, "model_b", 2),
    ]  # fmt: skip
    study = studied(votes, [(0, 0, 2, "model_a", 0), *votes])
    assert "foretells the votes without fail" in " ".join(study["warnings"])


def test_prompts_that_are_split_evenly_leave_no_rating_without_a_doubt() -> None:
    both = ("model_a", "model_b")
    votes = [(k, 0, step, both[v], v) for k in range(6) for step in (1, 2) for v in (0, 1)]
    study = studied(votes, votes)
    assert study["agreement"]["with_ties"]["rate"] == 0.5
    assert [one for one in intervals(study) if one[2] - one[1] < 1e-9] == []


@pytest.mark.parametrize("n", [2, 6, 25])
def test_items_of_one_mind_leave_a_doubt_or_no_interval(n: int) -> None:
    one = [(k, 0, 1, "model_a", v) for k in range(n) for v in range(3)]
    study = studied(one, [(k, 0, 1, "model_a", 0) for k in range(n)])
    away = 0.025 ** (1 / n)
    for whose in ("agreement", "human_agreement"):
        assert study[whose]["with_ties"]["rate"] == study[whose]["with_ties"]["upper"] == 1
        assert study[whose]["with_ties"]["lower"] == pytest.approx(away)
    assert study["ceiling"]["value"] == study["ac1"]["value"] == 1
    for name in ("ceiling", "ac1"):
        assert (study[name]["lower"], study[name]["upper"]) == (None, None)
    assert study["first_answer"]["verdict"] == "cannot_tell"
