"""A second judge: which cases it gets, whose each row is, and what hangs on it."""

from dataclasses import replace

import pytest

from judge.calls import Key
from judge.case import Case, FailureClass, Message, Order
from judge.grammar import Preference
from judge.report.page import fallback_of
from judge.runs import handed_over, reasons, together
from judge.tables.cases import NamedCase
from judge.verdict import Judged, Run, Stop

CASES = [
    NamedCase(f"b{n}", f"p{n}", ("basalt", "flint"), Case((Message("user", f"{n}?"),), "a", "b"))
    for n in range(4)
]
READ = Preference(1.0)


def row(n: int, order: Order, end: Preference | FailureClass | None, cost: float = 1.0) -> Judged:
    read = end if isinstance(end, Preference) else None
    failure = end if isinstance(end, FailureClass) else None
    keys = (Key(f"{n}{order}"),) if read else ()
    return Judged(
        case_id=CASES[n].case.id,
        order=order,
        reading=read,
        failure=failure,
        keys=keys,
        cost_usd=cost,
    )


def run(*ends: tuple[Preference | FailureClass | None, ...], stopped: Stop | None = None) -> Run:
    judged = [
        row(n, order, end)
        for n, both in enumerate(ends)
        for order, end in zip(Order, both, strict=True)
    ]
    return Run(
        judged=judged,
        stopped=stopped,
        why="it stopped" if stopped else "",
        n_asked=len(judged),
        n_recalled=0,
        n_estimated=0,
        faults={},
        spent_usd=float(len(judged)),
    )


def names(cases: list[NamedCase]) -> list[str]:
    return [named.battle_id for named in cases]


def test_a_case_goes_over_whole_where_either_order_was_refused_or_had_no_reply() -> None:
    refused, down = FailureClass.REFUSAL, FailureClass.OVERLOADED
    first = run((READ, READ), (READ, refused), (down, READ), (READ, FailureClass.UNPARSED))
    first = replace(first, checklists={CASES[1].case.prompt_id: ("Is it so?",)})
    assert names(theirs := handed_over(CASES, first)) == ["b1", "b2"], "what is unparsed stands"
    assert [one.checklist for one in theirs] == [("Is it so?",), ()], "written by the first"
    assert reasons(first) == {"refusal": 1, "overloaded": 1}
    over = {failure for failure in FailureClass if handed_over(CASES, run((READ, failure)))}
    assert {*FailureClass} - over == {"unparsed", "truncated", "no_logprobs"}


@pytest.mark.parametrize(
    ("stop", "theirs"),
    [
        (Stop.ALIKE, ["b1", "b2"]),
        (Stop.DENIED, ["b1", "b2"]),
        (Stop.BUDGET, []),
        (Stop.NO_LOGPROBS, []),
        (None, ["b1"]),
    ],
)
def test_what_is_pending_goes_over_where_the_endpoint_is_out(
    stop: Stop | None, theirs: list[str]
) -> None:
    first = run((READ, READ), (FailureClass.REJECTED, None), (READ, None), stopped=stop)
    assert names(handed_over(CASES[:3], first)) == theirs
    if stop in (Stop.ALIKE, Stop.DENIED):
        assert reasons(first) == {"rejected": 1, "pending": 1}


def test_both_runs_are_one_and_each_row_says_whose_it_is() -> None:
    first = run((READ, READ), (READ, FailureClass.REFUSAL), stopped=Stop.ALIKE)
    theirs = [replace(one, cost_usd=0.5) for one in first.judged[2:]]
    second = replace(run(), judged=[replace(one, reading=READ, failure=None) for one in theirs])
    first, second = replace(first, lessons=("no", "low")), replace(second, lessons=("low", "so"))
    both = together(first, second, "owl")
    assert both.lessons == ("no", "low", "so")
    assert [(one.case_id, one.judge) for one in both.judged] == [
        *[(CASES[0].case.id, "")] * 2,
        *[(CASES[1].case.id, "owl")] * 2,
    ]
    assert sum(one.cost_usd or 0 for one in both.judged) == 4 + 2 * 0.5, "the refusal was paid for"
    assert (both.stopped, both.n_asked, both.spent_usd) == (None, 4, 4.0)


def verdict(
    n: int, a: str, b: str, winner: str | None, *, second: bool = False
) -> dict[str, str | None]:
    place = "wren" if second else None
    return {"battle_id": f"b{n}", "model_a": a, "model_b": b, "winner": winner} | {
        "fallback_for": place
    }


def test_whether_the_order_of_models_hangs_on_the_second_judge_by_hand() -> None:
    # By all: x has 2 of 3, y 1 of 2, z 0 of 1; without the second's two rows x 1 of 2, y 1 of 2.
    rows = [
        verdict(1, "x", "y", "model_b"),
        verdict(2, "x", "z", "model_a"),
        verdict(3, "x", "y", "model_a", second=True),
        verdict(4, "y", "z", None, second=True),
    ]
    result = fallback_of("wren", "owl", {"refusal": 2}, rows)
    assert result["n"] == 1
    assert (result["order"], result["order_without"]) == (["x", "y", "z"], ["y", "x", "z"])
    assert result["sentence"] == (
        "1 of 3 verdicts are by 'owl' in place of 'wren' (2 refusal). The order of the "
        "models depends on them: without them it is 'y', 'x', 'z'."
    )
    same = fallback_of("wren", "owl", {"refusal": 1}, [*rows[:2], rows[0] | {"battle_id": "b5"}])
    assert same["sentence"].startswith("0 of 3 verdicts are by 'owl'")
    alone = fallback_of("wren", "owl", {"pending": 2}, [rows[1], rows[2]])
    assert alone["sentence"].endswith("without them, there is no verdict on 'y'.")
    assert fallback_of("wren", "owl", {}, rows)["sentence"] == ""


def test_marks_are_ordered_by_their_mean() -> None:
    rows = [
        {"battle_id": str(n), "model": model, "score": score, "fallback_for": place}
        for n, (model, score, place) in enumerate(
            [("x", 4.0, None), ("y", 5.0, None), ("y", None, None), ("x", 8.0, "wren")]
        )
    ]
    result = fallback_of("wren", "owl", {"denied": 1}, rows)
    assert (result["order"], result["order_without"]) == (["x", "y"], ["y", "x"])
    assert result["n"] == 1
