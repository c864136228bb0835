"""`arena rate`: the contract key by key, its options, and what they change."""

import json
import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from rating import RateOptions, __version__
from rating.errors import NotIdentifiedError
from rating.tables.counts import Groups, rate_source
from rating.tables.formats import pooling_caption, summary
from rating.variants import POINTS_PER_NAT
from tests.command import invoke
from tests.rating.boards.rated import PAIRS, Write, column, crowd, planned, rated, refused

CONTRACT = Path(__file__).parents[2] / "golden" / "rate_contract.json"
METHOD = json.loads(CONTRACT.read_text(encoding="utf-8"))["expected"]["method"].keys()


def test_the_contract_holds_key_by_key(write: Write) -> None:
    expected = json.loads(CONTRACT.read_text(encoding="utf-8"))["expected"]
    board = rated(write(PAIRS))
    expected["method"]["version"] = __version__
    assert list(board) == list(expected)
    for name in ("method", "votes", "parameters", "warnings"):
        assert board[name] == expected[name], name
    for name in ("log_loss", "deviance", "quasi_se_error"):
        assert board[name] == pytest.approx(expected[name], abs=1e-9), name
    for row, wanted in zip(board["ratings"], expected["ratings"], strict=True):
        assert list(row) == list(wanted)
        assert row == pytest.approx(wanted, abs=1e-6)


def test_the_golden_board_follows_from_thirty_wins_to_ten() -> None:
    first = json.loads(CONTRACT.read_text(encoding="utf-8"))["expected"]["ratings"][0]
    strength, error = math.log(3) / 2, math.sqrt(1 / 30 + 1 / 10) / 2
    assert first["strength"] == pytest.approx(strength)
    assert first["rating"] == pytest.approx(1000 + POINTS_PER_NAT * strength)
    assert first["se"] == pytest.approx(POINTS_PER_NAT * error)
    assert first["upper"] - first["rating"] == pytest.approx(1.959964 * first["se"], rel=1e-6)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({"ties": "davidson"}, {"ties": "davidson"}),
        ({"ties": "rao-kupper"}, {"ties": "rao-kupper"}),
        ({"ties": "grounded", "both_bad": "outcome"}, {"ties": "grounded", "both_bad": "outcome"}),
        ({"both_bad": "drop"}, {"both_bad": "drop"}),
        ({"interval": "hessian", "weights": "times"}, {"interval": "hessian", "cluster": "none"}),
        ({"interval": "bootstrap", "rounds": 100}, {"rounds": 100, "cluster": "voter"}),
        ({"interval": "profile"}, {"interval": "profile", "cluster": "none"}),
        ({"interval": "none"}, {"interval": "none"}),
        ({}, {"interval": "sandwich", "cluster": "both", "claims": "population"}),
        ({"cluster": "prompt"}, {"cluster": "prompt"}),
        ({"cluster": "both"}, {"cluster": "both"}),
        ({"cluster": "none"}, {"cluster": "none"}),
        ({"cluster": "voter"}, {"cluster": "voter"}),
        ({"claims": "these-voters"}, {"claims": "these-voters", "cluster": "prompt"}),
        ({"ridge": 0.5}, {"ridge": 0.5}),
        ({"order_effect": True}, {"order_effect": True}),
        ({"style": ("length",)}, {"style": ["length"]}),
        ({"weights": "times"}, {"weights": "times"}),
        ({"style": ("log2:size",)}, {"style": ["log2:size"], "style_sd": {"log2:size": 1.0}}),
        ({"weights": "sampling"}, {"weights": "sampling"}),
        ({"half_life": 7.0}, {"half_life": 7.0, "cluster": "both"}),
        (
            {
                "since": datetime(2026, 1, 2, tzinfo=UTC),
                "until": datetime.fromisoformat("2026-01-09T12:00"),
            },
            {"since": "2026-01-02T00:00:00+00:00", "until": "2026-01-09T12:00:00"},
        ),
        ({"columns": (("voter", "who"),)}, {"columns": {"voter": "who"}}),
        ({"seed": 3}, {"seed": 3}),
        ({"level": 0.9}, {"level": 0.9}),
        ({"scale": 100.0, "mean": 0.0}, {"scale": 100.0, "mean": 0.0}),
        ({"anchor": ("y", 1200.0)}, {"anchor": {"y": 1200.0}, "mean": None}),
        ({"reference": "y"}, {"reference": "y"}),
    ],
    ids=str,
)
def test_every_option_is_reflected_in_the_method(
    write: Write, options: dict[str, Any], shown: dict[str, Any]
) -> None:
    text = crowd(
        length=lambda i: (i * 7) % 11,
        times=lambda i: 1 + i % 2,
        pair_probability=lambda i: 0.25 + 0.5 * (i % 2),
        size_a=lambda i: 100 * 2 ** (i * 5 % 4),
        size_b=lambda i: 100 * 2 ** (i * 7 % 3),
        ts=lambda i: f"2026-01-{1 + i % 10:02d}",
        who=lambda i: f"w{i // 5}",
    )
    board = rated(write(text), **options)
    assert board["method"].keys() == METHOD
    assert {name: board["method"][name] for name in shown} == shown
    assert summary(board)


def test_the_options_change_what_they_should(write: Write) -> None:
    source = write(crowd(length=lambda i: (i * 7) % 11))
    plain = rated(source)
    shifted = rated(source, scale=100.0, anchor=("y", 0.0))
    assert column(shifted, "rating")["y"] == pytest.approx(0)
    for name, error in column(plain, "se").items():
        assert column(shifted, "se")[name] == pytest.approx(error / 4)
    against = rated(source, reference="y")
    at = {row["model"]: row for row in against["ratings"]}
    assert at["y"]["se"] == at["y"]["strength"] == 0
    assert at["y"]["lower"] == at["y"]["upper"] == at["y"]["rating"]
    assert at["y"]["df"] is None is not at["x"]["df"]
    assert at["x"]["lower"] < at["x"]["rating"] < at["x"]["upper"]
    bare = rated(source, interval="none")
    for name in ("se", "quasi_se", "lower", "upper", "rank_low", "rank_high"):
        assert set(column(bare, name).values()) == {None}
    effect = rated(source, order_effect=True, cluster="none", level=0.9)["parameters"]
    assert set(effect) == {"order_effect"}
    value, se, lower, upper = effect["order_effect"].values()
    assert [lower, upper] == pytest.approx([value - 1.644854 * se, value + 1.644854 * se])
    styled = rated(source, style=("length",))
    assert set(styled["parameters"]) == {"style:length"}
    assert styled["deviance"] is None
    for ties, name in (("davidson", "nu"), ("rao-kupper", "theta")):
        tied = rated(source, ties=ties, cluster="none", level=0.9)["parameters"][name]
        ends = [math.log(tied[end] / tied["value"]) / tied["se"] for end in ("lower", "upper")]
        assert ends == pytest.approx([-1.644854, 1.644854], rel=1e-6)
    assert rated(source, both_bad="drop")["votes"]["dropped"] == {"both bad": 18}
    zero = rated(source, ties="grounded", both_bad="outcome")
    assert sum(column(zero, "strength").values()) != pytest.approx(0)
    for row in zero["ratings"]:
        assert row["rating"] == pytest.approx(1000 + POINTS_PER_NAT * row["strength"])


def test_a_ridge_and_a_profile_are_those_of_thirty_wins_to_ten(write: Write) -> None:
    held = column(rated(write(PAIRS), ridge=5.0), "strength")["x"]
    assert 30 - 40 / (1 + math.exp(-2 * held)) == pytest.approx(5 * held)
    plan = planned(write(PAIRS), ridge=5.0)
    assert plan.neighbours[0].lead == pytest.approx(2 * POINTS_PER_NAT * held)
    row = rated(write(PAIRS), interval="profile", level=0.9)["ratings"][0]
    for end in ("lower", "upper"):
        p = 1 / (1 + math.exp(-2 * (row[end] - 1000) / POINTS_PER_NAT))
        ratio = 2 * (30 * math.log(0.75 / p) + 10 * math.log(0.25 / (1 - p)))
        assert ratio == pytest.approx(1.644854**2, rel=1e-5)


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ({"ties": "rao-kupper"}, "Bradley-Terry with Rao and Kupper's ties;"),
        ({"ties": "grounded"}, "grounded Rao-Kupper, both bad below a zero;"),
        ({"interval": "hessian"}, "likelihood (Hessian), votes taken as independent;"),
        ({"interval": "profile", "level": 0.9}, "90% intervals: profile likelihood, votes taken"),
        ({"cluster": "prompt"}, "sandwich, clustered by prompt;"),
        ({"reference": "y"}, "95% intervals of the difference from y: sandwich"),
        ({"until": "2026-01-31T12:00:00+00:00"}, ", until 2026-01-31T12:00:00; 95%"),
        ({"scale": 100.0}, "independent; 100 points are odds of ten to one."),
    ],
)
def test_the_line_above_a_board_names_what_it_was_made_with(
    method: dict[str, Any], words: str
) -> None:
    used: dict[str, Any] = {
        "used": 1,
        "voters": 1,
        "effective_voters": None,
        "self": 0,
        "dropped": {},
    }
    plain = {"ties": "half", "interval": "sandwich", "cluster": "none", "scale": 400.0}
    line = summary({"votes": used, "method": plain | method})
    assert line.startswith("1 vote by 1 voter. ")
    assert words in line


def test_pooled_categories_without_an_upper_limit_say_so() -> None:
    pooling = {"tau": 51.4, "lower": 35.7, "upper": None, "tau_prompt": 12.6}
    assert pooling_caption(pooling) == (
        "Pooled: the standard deviation between categories is 51 points (at least 36, no upper "
        "limit); between prompts, it is 13."
    )
    none = pooling_caption(pooling | {"tau": 0.0})
    assert "is found (no upper limit could be estimated); between" in none


def test_few_voters_claim_no_rank_and_few_points_are_profiled(write: Write) -> None:
    few = rated(write(crowd(n_voters=12)))
    assert set(column(few, "rank_low").values()) == {None}
    assert set(column(few, "rank_high").values()) == {None}
    assert any(text.startswith("Few data for 3 models: 12 voters") for text in few["warnings"])
    source = write("model_a,model_b,winner,n\n" + "x,y,model_a,1\n" * 9 + "x,y,model_b,1\n")
    rare = rated(source, level=0.9)
    others = rated(source, reference="y"), rated(source, weights="n")
    assert ["profile" in str(one["warnings"]) for one in (rare, *others)] == [True, False, False]
    row = rare["ratings"][0]
    assert row["lower"] < row["rating"] < row["upper"]
    for end in ("lower", "upper"):
        p = 1 / (1 + math.exp(-2 * (row[end] - 1000) / POINTS_PER_NAT))
        ratio = 2 * (9 * math.log(0.9 / p) + math.log(0.1 / (1 - p)))
        assert ratio == pytest.approx(1.644854**2, rel=1e-5)


def test_an_end_at_infinity_is_null_and_named(write: Write) -> None:
    rows = "x,y,9,1,0\ny,z,20,19,0\n"
    source = write(f"model_a,model_b,n_model_a,n_model_b,n_tie\n{rows}")
    board = rated(source, interval="bootstrap", rounds=200)
    assert column(board, "upper")["x"] is None
    assert column(board, "se")["x"] is None
    assert any("no finite end for" in text and "x" in text for text in board["warnings"])
    assert any("of 200 bootstrap rounds identify no rating" in text for text in board["warnings"])
    assert set(column(board, "rank_high").values()) == {None}


def test_the_same_votes_give_the_same_report(write: Write) -> None:
    head, *rows = crowd().splitlines()
    board = rated(write(crowd()), interval="bootstrap", rounds=100)
    again = rated(write("\n".join([head, *reversed(rows)])), interval="bootstrap", rounds=100)
    assert again == board


def test_groups_are_rated_apart_and_a_group_without_a_rating_is_said(write: Write) -> None:
    source = write(crowd(topic=lambda i: "law" if i == 0 else ["art", "code"][i // 3 % 2]))
    report = rate_source(source, RateOptions(by="topic"))
    assert isinstance(report, Groups)
    plain = report.to_dict()
    assert list(plain) == ["groups", "warnings", "not_rated"]
    (alone,) = plain["warnings"]
    assert alone.startswith("Each of the 2 boards is by itself: its intervals and ranks are clai")
    assert alone.endswith("over all boards together (Bonferroni): --level 0.975.")
    assert list(plain["groups"]) == ["art", "code"]
    assert plain["groups"]["art"].keys() == rated(source).keys()
    assert plain["groups"]["art"]["method"]["by"] == "topic"
    [(law, why)] = plain["not_rated"].items()
    words = ["rate", source, "--by", "topic"]
    assert f"! {law}: {why}" in " ".join(invoke(words, 100).stdout.split())
    assert invoke([*words, "--format", "csv"]).stderr == f"arena: topic 'law' is excluded. {why}\n"
    with pytest.raises(NotIdentifiedError, match="No group of 'one' can be rated"):
        rate_source(write("model_a,model_b,winner,one\nx,y,model_a,1\n"), RateOptions(by="one"))


def test_columns_of_other_names_are_read_for_what_they_are_named(write: Write) -> None:
    text = crowd(ts=lambda i: f"2026-01-{1 + i % 10:02d}")
    names = {"model_a": "left", "model_b": "right", "winner": "choice", "voter": "who", "ts": "at"}
    head, *rows = text.splitlines()
    other = "\n".join([",".join(names.get(name, name) for name in head.split(",")), *rows])
    want = rated(write(text), half_life=5.0)
    pairs = tuple(("time" if name == "ts" else name, own) for name, own in names.items())
    report = rated(write(other), half_life=5.0, columns=pairs)
    assert report | {"method": want["method"]} == want
    assert report["method"]["data_hash"] == want["method"]["data_hash"]


def test_voters_are_not_read_where_no_interval_is_asked_for(write: Write) -> None:
    head, first, *others = crowd().splitlines()
    source = write("\n".join([head, first.replace(",v0,", ",,"), *others]) + "\n")
    refused(source, ["The voter is missing or blank in 1 vote"])
    board = rated(source, interval="none")
    assert board["votes"]["voters"] is None
    assert board["votes"]["used"] == len(others) + 1
    refused(source, ["voter is missing"], interval="none", cluster="voter")
