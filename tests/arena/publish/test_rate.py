"""`arena rate`: the contract key by key, published boards, and what is refused."""

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest
from typer.testing import CliRunner

from arena import __version__
from arena.cli import cli
from arena.domain.vote import Choice
from arena.errors import DataError, NotRatedError, SchemaError, StoreError
from arena.publish.compare import APART, SAME, compare, read_board
from arena.publish.formats import COLUMNS
from arena.publish.plan import plan_source
from arena.publish.rate import Groups, rate_source
from arena.publish.summary import summary
from arena.store.store import Store
from rating import RateOptions, Report
from rating.scale import POINTS_PER_NAT
from tests.arena.store.test_store import MODELS, NOW, ballot, ready
from tests.rating.builders import golden

PAIRS = "model_a,model_b,n_model_a,n_model_b,n_tie\nx,y,30,10,0\nx,x,1,0,0\n"
CONTRACT = Path(__file__).parents[2] / "golden" / "rate_contract.json"
METHOD = {
    *("ties", "both_bad", "interval", "cluster", "ridge", "order_effect", "style", "weights"),
    *("rounds", "seed", "level", "scale", "mean", "anchor", "reference", "by"),
    *("version", "data_hash"),
}

PICTURES = [
    f"{name}{ending}"
    for name in ("intervals", "votes", "win-rates")
    for ending in (".html", ".png", ".svg")
]

Write = Callable[[str], str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a file of votes, and give its path."""

    def written(text: str) -> str:
        path = tmp_path / "votes.csv"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return written


def crowd(n_voters: int = 30, **columns: Callable[[int], object]) -> str:
    """Votes among three models, of every outcome; each voter votes on every pair."""
    models, outcomes = ["x", "y", "z"], ["model_a", "model_a", "model_b", "tie", "both_bad"]
    lines = [",".join(["model_a", "model_b", "winner", "voter", "prompt_id", *columns])]
    for i in range(3 * n_voters):
        a, b = models[i % 3], models[(i + 1) % 3]
        row = [a, b, outcomes[(i + i // 7) % 5], f"v{i // 3}", f"p{i % 40}"]
        lines.append(",".join([*row, *(str(value(i)) for value in columns.values())]))
    return "\n".join(lines) + "\n"


def rated(source: str, **options: Any) -> dict[str, Any]:
    found = rate_source(source, RateOptions(**options))
    assert isinstance(found, Report)
    plain = found.to_dict()
    json.dumps(plain, allow_nan=False)
    return plain


def column(board: dict[str, Any], name: str) -> dict[str, Any]:
    return {row["model"]: row[name] for row in board["ratings"]}


def refused(source: str, words: Sequence[str], **options: Any) -> None:
    with pytest.raises(DataError) as error:
        rate_source(source, RateOptions(**options))
    assert [word for word in words if word not in str(error.value)] == []


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


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"ties": "davidson"}, {"ties": "davidson"}),
        ({"ties": "rao-kupper"}, {"ties": "rao-kupper"}),
        (
            {"ties": "grounded", "both_bad": "outcome"},
            {"ties": "grounded", "both_bad": "outcome"},
        ),
        ({"both_bad": "drop"}, {"both_bad": "drop"}),
        ({"interval": "hessian"}, {"interval": "hessian", "cluster": "none"}),
        ({"interval": "bootstrap", "rounds": 20}, {"rounds": 20, "cluster": "voter"}),
        ({"interval": "profile"}, {"interval": "profile", "cluster": "none"}),
        ({"interval": "none"}, {"interval": "none"}),
        ({}, {"interval": "sandwich", "cluster": "voter"}),
        ({"cluster": "prompt"}, {"cluster": "prompt"}),
        ({"cluster": "both"}, {"cluster": "both"}),
        ({"cluster": "none"}, {"cluster": "none"}),
        ({"ridge": 0.5}, {"ridge": 0.5}),
        ({"order_effect": True}, {"order_effect": True}),
        ({"style": ("length",)}, {"style": ["length"]}),
        ({"weights": "times"}, {"weights": "times"}),
        ({"weights": "sampling"}, {"weights": "sampling"}),
        ({"seed": 3}, {"seed": 3}),
        ({"level": 0.9}, {"level": 0.9}),
        ({"scale": 100.0, "mean": 0.0}, {"scale": 100.0, "mean": 0.0}),
        ({"anchor": ("y", 1200.0)}, {"anchor": {"y": 1200.0}, "mean": None}),
        ({"reference": "y"}, {"reference": "y"}),
    ],
    ids=str,
)
def test_every_option_is_reflected_in_the_method(
    write: Write, options: dict[str, Any], said: dict[str, Any]
) -> None:
    text = crowd(
        length=lambda i: (i * 7) % 11,
        times=lambda i: 1 + i % 2,
        pair_probability=lambda i: 0.25 + 0.5 * (i % 2),
    )
    board = rated(write(text), **options)
    assert board["method"].keys() == METHOD
    assert {name: board["method"][name] for name in said} == said
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
    assert at["x"]["lower"] < at["x"]["rating"] < at["x"]["upper"]
    bare = rated(source, interval="none")
    for name in ("se", "quasi_se", "lower", "upper", "rank_low", "rank_high"):
        assert set(column(bare, name).values()) == {None}
    assert set(rated(source, order_effect=True)["parameters"]) == {"order_effect"}
    styled = rated(source, style=("length",))
    assert set(styled["parameters"]) == {"style:length"}
    assert styled["deviance"] is None
    tied = rated(source, ties="davidson")["parameters"]["nu"]
    assert tied["lower"] < tied["value"] < tied["upper"]
    assert math.log(tied["upper"] / tied["value"]) > 1.96 * tied["se"]
    assert rated(source, both_bad="drop")["votes"]["dropped"] == {"both bad": 18}


def test_few_voters_claim_no_rank_and_few_points_are_profiled(write: Write) -> None:
    few = rated(write(crowd(n_voters=12)))
    assert set(column(few, "rank_low").values()) == {1}
    assert set(column(few, "rank_high").values()) == {3}
    assert any("12 voters" in text and "too few" in text for text in few["warnings"])
    rare = rated(write("model_a,model_b,n_model_a,n_model_b,n_tie\nx,y,9,1,0\n"))
    assert any("profile likelihood" in text for text in rare["warnings"])
    gap = [2 * (row["lower"] - 1000) / POINTS_PER_NAT for row in rare["ratings"]]
    assert gap[0] == pytest.approx(0.525, abs=1e-3)  # as in the example of profile_intervals


def test_an_end_at_infinity_is_null_and_named(write: Write) -> None:
    rows = "x,y,9,1,0\ny,z,20,19,0\n"
    source = write(f"model_a,model_b,n_model_a,n_model_b,n_tie\n{rows}")
    board = rated(source, interval="bootstrap", rounds=200)
    assert column(board, "upper")["x"] is None
    assert column(board, "se")["x"] is None
    assert any("no finite end for" in text and "x" in text for text in board["warnings"])
    assert set(column(board, "rank_high").values()) == {3}


def test_the_same_votes_give_the_same_report(write: Write) -> None:
    head, *rows = crowd().splitlines()
    board = rated(write(crowd()), interval="bootstrap", rounds=30)
    again = rated(write("\n".join([head, *reversed(rows)])), interval="bootstrap", rounds=30)
    assert again == board


def test_groups_are_rated_apart_and_a_group_without_a_rating_is_said(write: Write) -> None:
    source = write(crowd(topic=lambda i: "law" if i == 0 else ["art", "code"][i // 3 % 2]))
    found = rate_source(source, RateOptions(by="topic"))
    assert isinstance(found, Groups)
    plain = found.to_dict()
    assert list(plain) == ["groups", "not_rated"]
    assert list(plain["groups"]) == ["art", "code"]
    assert plain["groups"]["art"].keys() == rated(source).keys()
    assert plain["groups"]["art"]["method"]["by"] == "topic"
    assert list(plain["not_rated"]) == ["law"]
    with pytest.raises(NotRatedError, match="No group of 'one' can be rated"):
        rate_source(write("model_a,model_b,winner,one\nx,y,model_a,1\n"), RateOptions(by="one"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"reference": "w"}, ["reference 'w'", "'x', 'y', 'z'"]),
        ({"anchor": ("w", 1.0)}, ["anchor 'w'", "'x', 'y', 'z'"]),
        ({"by": "topic"}, ["no column 'topic'", "'winner'"]),
        ({"style": ("length",)}, ["no column 'length'"]),
        ({"weights": "times"}, ["no column 'times'"]),
        ({"weights": "sampling"}, ["'pair_probability'"]),
    ],
    ids=str,
)
def test_what_the_votes_do_not_hold_is_refused(
    write: Write, options: dict[str, Any], words: list[str]
) -> None:
    refused(write(crowd()), words, **options)


def test_clusters_that_are_not_there_are_refused(write: Write) -> None:
    for kind in ("voter", "prompt"):
        refused(write(PAIRS), [f"Clusters by {kind}", "cluster none"], cluster=kind)


def stored(url: str, choices: Sequence[Choice]) -> None:
    store = Store(url)
    store.hold_lease()
    store.register(MODELS, NOW)
    for i, choice in enumerate(choices):
        store.cast(ballot(ready(store, f"b{i}"), choice))
    store.close()


def test_a_database_is_rated_and_left_as_it_is(database_url: str) -> None:
    stored(database_url, [Choice.A, Choice.A, Choice.B, Choice.SKIP])
    board = rated(database_url)
    assert board["votes"]["used"] == 3
    assert board["votes"]["dropped"] == {"skipped": 1}
    assert board["votes"]["voters"] == 1
    assert any("One voter" in text for text in board["warnings"])
    refused(database_url, ["no column 'topic'", "export"], by="topic")


def test_a_database_that_cannot_be_rated_is_said_and_not_made(tmp_path: Path) -> None:
    missing = tmp_path / "gone.db"
    with pytest.raises(StoreError, match=r"gone\.db.*no such database"):
        rated(f"sqlite:///{missing}")
    assert not missing.exists()
    other = tmp_path / "other.db"
    other.touch()
    with pytest.raises(SchemaError, match="holds no arena"):
        rated(f"sqlite:///{other}")
    url = f"sqlite:///{tmp_path}/arena.db"
    stored(url, [Choice.SKIP])
    refused(url, ["No votes to count", "1 skipped"])


def test_a_plan_says_what_separates_neighbours(write: Write) -> None:
    found = plan_source(write(crowd()), RateOptions()).to_dict()
    assert [len(found["neighbours"]), found["votes"]] == [2, 90]
    assert found["leads"][50] > 382  # without ties it is 382: see votes_to_separate
    first = found["neighbours"][0]
    assert first["met"] == 30
    assert first["separated"] == (first["more_votes"] == 0)
    with pytest.raises(DataError, match="'bootstrap'"):
        plan_source(write(crowd()), RateOptions(interval="bootstrap"))


def test_a_comparison_says_who_moved(write: Write, tmp_path: Path) -> None:
    old = rated(write(PAIRS))
    new = rated(write(PAIRS.replace("x,y,30,10", "x,y,60,30")))
    found = compare(old, new)
    move = {row["model"]: row for row in found["moved"]}["x"]
    assert move["moved"] == pytest.approx(POINTS_PER_NAT * (math.log(2) - math.log(3)) / 2)
    assert move["lower"] < move["moved"] < move["upper"]
    assert found["note"] == APART
    assert compare(old, old)["note"] == SAME
    assert compare(old, old)["moved"][0]["lower"] is None
    with pytest.raises(DataError, match=r"ties was 'half', and is 'davidson'"):
        compare(old, rated(write(PAIRS), ties="davidson"))
    file = tmp_path / "old.json"
    for text, word in [("[]", "something else"), ("{", "Expecting"), ('{"groups": {}}', "groups")]:
        file.write_text(text, encoding="utf-8")
        with pytest.raises(DataError, match=word):
            read_board(file)


@pytest.mark.parametrize("ending", ["json", "csv", "md", "tex", "parquet", "txt"])
def test_every_format_holds_the_board(write: Write, tmp_path: Path, ending: str) -> None:
    source = write(PAIRS.replace("x,", "x_1,"))
    out = tmp_path / f"board.{ending}"
    form = ["--format", "table"] if ending == "txt" else []
    told = CliRunner().invoke(cli, ["rate", source, "--out", str(out), *form])
    assert told.exit_code == 0, told.output
    if ending in ("parquet", "csv"):
        read = duckdb.read_parquet if ending == "parquet" else duckdb.read_csv
        rows = read(str(out))
        assert rows.columns == ["model", *(n for n in COLUMNS if n in rows.columns)]
        assert rows.fetchall()[0][:2] == ("x_1", pytest.approx(1095.424, abs=1e-3))
        return
    text = out.read_text(encoding="utf-8")
    assert {"tex": r"x\_1"}.get(ending, "x_1") in text
    assert "1095" in text
    assert "Voters are not known" in text


def test_every_error_of_the_command_is_an_arena_error(write: Write, tmp_path: Path) -> None:
    source = write(PAIRS)
    for words, said in [
        (["--ties", "win"], "not 'win'"),
        (["--both-bad", "win"], "not 'win'"),
        (["--interval", "wide"], "not 'wide'"),
        (["--cluster", "team"], "not 'team'"),
        (["--ties", "grounded"], "not both_bad 'tie'"),
        (["--ridge", "-1"], "not -1.0"),
        (["--rounds", "0"], "not 0"),
        (["--seed", "-1"], "not -1"),
        (["--level", "95"], "not 95.0"),
        (["--scale", "0"], "not 0.0"),
        (["--mean", "nan"], "not nan"),
        (["--anchor", "x"], "'x'"),
        (["--anchor", "x=1", "--mean", "2"], "--mean 2"),
        (["--interval", "hessian", "--cluster", "voter"], "'voter'"),
        (["--interval", "bootstrap", "--cluster", "both"], "'both'"),
        (["--interval", "profile", "--reference", "x"], "'x'"),
        (["--format", "xml"], "'xml'"),
        (["--format", "parquet"], "--out"),
        (["--out", "board.doc"], "'board.doc'"),
        (["--out", str(tmp_path / "no" / "b.json")], "folder does not exist"),
        (["--compare", "old.json"], "'old.json'"),
        (["--compare", source], "Cannot read the board"),
    ]:
        told = CliRunner().invoke(cli, ["rate", source, *words])
        assert isinstance(told.exception, DataError), (words, told.output)
        assert said in str(told.exception), words


def board_of(file: Path, **options: Any) -> dict[str, Any]:
    return rated(str(file), **options)


def published(file: Path, name: str, value: str, where: str = "true") -> dict[str, float]:
    query = f"select {name}, {value} from read_csv(?) where {where}"
    return {str(n): float(v) for n, v in duckdb.execute(query, [str(file)]).fetchall()}


@pytest.mark.published
def test_llmfao_gives_the_expected_scores_with_intervals_by_voter(published_data: Path) -> None:
    folder = published_data / "votes" / "llmfao"
    board = board_of(folder / "votes.parquet")
    scores = published(
        folder / "expected_scores.csv", "item", "ln(score)", "algorithm = 'bradley_terry'"
    )
    mean = sum(scores.values()) / len(scores)
    expected = {name: score - mean for name, score in scores.items()}
    assert column(board, "strength") == pytest.approx(expected, abs=1e-6)
    assert board["method"]["cluster"] == "voter"
    assert board["votes"]["voters"] == 124
    assert 30 < board["votes"]["effective_voters"] < 59
    assert set(column(board, "rank_high").values()) == {59}
    assert column(board, "quasi_se")["GPT 4"] is None
    assert board["quasi_se_error"] > 0.1


@pytest.mark.published
def test_mtbench_claims_ranks(published_data: Path) -> None:
    board = board_of(published_data / "votes" / "mtbench" / "votes.parquet")
    ranks = {row["model"]: (row["rank_low"], row["rank_high"]) for row in board["ratings"]}
    assert ranks["gpt-4"] == (1, 1)
    assert ranks["llama-13b"] == (6, 6)
    assert board["votes"]["used"] == 3355
    assert board["votes"]["voters"] == 65


@pytest.mark.published
def test_agent_arena_gives_the_published_board(published_data: Path) -> None:
    folder = published_data / "votes" / "agent_arena"
    board = board_of(folder / "votes_models.parquet")
    expected = published(folder / "published_bt.csv", "name", "published_elo", "kind = 'model'")
    assert column(board, "rating") == pytest.approx(expected, abs=0.006)
    assert board["votes"]["self"] == 304
    assert board["votes"]["used"] == 2058 - 304


@pytest.mark.published
def test_the_embedding_arena_is_reached_with_a_ridge(published_data: Path) -> None:
    folder = published_data / "votes" / "mteb_arena"
    board = board_of(folder / "votes_retrieval.parquet", ridge=0.0943)
    name = '"Arena Elo rating (anony)"'
    expected = published(folder / "published_leaderboard.csv", "key", name)
    assert column(board, "rating") == pytest.approx(expected, abs=0.06)


@pytest.mark.published
def test_baseball_gives_the_published_estimates_and_errors(published_data: Path) -> None:
    expected = golden("bradley_terry_baseball")["expected"]
    file = published_data / "votes" / "classic" / "baseball.pair_counts.csv"
    board = board_of(file, interval="hessian", reference="Baltimore")
    for name, strength in expected["theta"].items():
        assert column(board, "strength")[name] == pytest.approx(strength, abs=5e-5)
        error = column(board, "se")[name] / POINTS_PER_NAT
        assert error == pytest.approx(expected["se"][name], abs=5e-5)
    assert column(board, "se")["Baltimore"] == 0
    assert board["deviance"] == pytest.approx(expected["deviance"], abs=5e-4)
    home = board_of(file, interval="hessian", reference="Baltimore", order_effect=True)
    effect = home["parameters"]["order_effect"]
    assert effect["value"] == pytest.approx(expected["home"]["effect"], abs=5e-5)
    assert effect["se"] == pytest.approx(expected["home"]["se"], abs=5e-5)
    assert home["deviance"] == pytest.approx(expected["home"]["deviance"], abs=5e-4)


@pytest.mark.published
def test_the_puddings_give_davidson_s_parameter(published_data: Path) -> None:
    expected = golden("ties_puddings")["expected"]["davidson"]
    file = published_data / "votes" / "classic" / "pudding.pair_counts.csv"
    board = board_of(file, ties="davidson", interval="hessian")
    nu = board["parameters"]["nu"]
    assert nu["value"] == pytest.approx(expected["parameter"], abs=1e-6)
    assert nu["se"] == pytest.approx(expected["se_log"], abs=5e-5)


def test_plots_of_a_board_are_drawn_beside_it(write: Write, tmp_path: Path) -> None:
    words = ["rate", write(crowd()), "--plots", str(tmp_path / "plots"), "--format", "json"]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
    assert sorted(file.name for file in (tmp_path / "plots").iterdir()) == PICTURES
    svg = (tmp_path / "plots" / "win-rates.svg").read_text(encoding="utf-8")
    assert "90 votes by 30 voters" in svg


def test_plots_of_several_boards_are_refused(write: Write, tmp_path: Path) -> None:
    words = ["rate", write(crowd(lang=lambda i: "en" if i % 2 else "fr")), "--by", "lang"]
    done = CliRunner().invoke(cli, [*words, "--plots", str(tmp_path / "plots")])
    assert isinstance(done.exception, DataError)
    assert "--plots draws one board" in str(done.exception)
