"""Several judges in one run: what they say together, one that fails, and a kill in the middle."""

import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from judge.report.judges import jury
from judge.studies.panel import equivalent
from tests.arena.benches import EACH_USD, asked, judged, long_and_short
from tests.arena.test_fallback_judge_command import DENIES, OUT, RUN, N, refuses
from tests.command import Command, csv_rows, endpoint_roster, json_lines, refused, report
from tests.faulty_server import Behaviour, FaultyServer, faulty_server, last_message
from tests.process import Process, until
from tests.sqlite import new_sqlite

JURY = ("wren", "owl", "slate")
ASK = (*RUN, "--judge", ",".join(JURY), "--out", "found.csv")


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with faulty_server(dict.fromkeys((*JURY, "jay"), judged)) as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path, server: FaultyServer) -> Path:
    new_sqlite(tmp_path)
    endpoint_roster(tmp_path, server.url, *JURY, "jay")
    json_lines(tmp_path / "pairs.jsonl", long_and_short(N))
    return tmp_path


def other_way(body: Mapping[str, Any]) -> Behaviour:
    """Prefer the shorter answer."""
    text = last_message(body)
    longer_first = text.find("Long answer") < text.find("Short ")
    return Behaviour(text="[[B]]" if longer_first else "[[A]]", usage=(7, 11))


def of(folder: Path, judge: str) -> list[dict[str, str]]:
    return [row for row in csv_rows(folder) if row["judge"] == judge]


def test_three_judges_give_their_own_verdicts_and_two_together(
    command: Command, folder: Path, server: FaultyServer
) -> None:
    server.behaviours["slate"] = other_way
    take_turns(folder)
    result = command(*ASK, "--format", "json")
    assert (result.returncode, result.stderr) == (0, "")
    outcome = report(result)
    assert asked(server) == dict.fromkeys(JURY, 2 * N)
    assert outcome["spent_usd"] == pytest.approx(3 * 2 * N * EACH_USD)
    assert outcome["majority"] == outcome["weighted"] == {"decided": N, "tied": 0}
    assert (outcome["unanimous"], outcome["no_quorum"]) == (0.0, 0)
    right = outcome["accuracies"]
    assert right["wren"] == right["owl"] > 0.9 > 0.3 > right["slate"]
    assert outcome["n_eff"]["value"] == pytest.approx(9 / 5)  # two are one, the third its inverse
    for together in ("majority", "weighted"):
        verdicts = of(folder, together)
        assert [row["winner"] for row in verdicts] == ["model_a", "model_b"] * (N // 2)
        assert {row["order"] for row in verdicts} == {"both"}
        assert {row["cost"] for row in verdicts} == {""}
    shares = Counter(row["preference"][:4] for row in of(folder, "majority"))
    assert shares == {"0.66": N // 2, "0.33": N // 2}


def edited(file: Path, before: str, after: str) -> None:
    file.write_text(file.read_text(encoding="utf-8").replace(before, after), encoding="utf-8")


def take_turns(folder: Path) -> None:
    """Let either model be the one whose answers are longer."""
    file = folder / "pairs.jsonl"
    pairs = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    for one in pairs[1::2]:
        one["response_a"], one["response_b"] = one["response_b"], one["response_a"]
    json_lines(file, pairs)


def given(judge: str, winners: Iterable[str]) -> list[dict[str, Any]]:
    case = {"battle_id": None, "model_a": "basalt", "model_b": "flint", "judge": judge}
    return [case | {"prompt_id": f"p{n}", "winner": one} for n, one in enumerate(winners)]


def test_no_error_rates_make_a_jury_worth_less_than_its_lower_bound() -> None:
    """All shares, in fourths, of cases on which both, either or neither errs: A is right."""
    sharp = 0
    for counts in product(range(0, 25, 4), repeat=4):
        if sum(counts) != N:
            continue
        wrong = np.repeat([[1, 1], [1, 0], [0, 1], [0, 0]], counts, axis=0)
        said_by = np.array(["model_a", "model_b"])[wrong]
        _, outcome = jury({name: given(name, said_by[:, j]) for j, name in enumerate("xy")})
        if 0 < wrong[:, 0].sum() < N and 0 < wrong[:, 1].sum() < N:
            worth = equivalent(np.corrcoef(wrong.T)[0, 1], 2)
            assert outcome["n_eff"]["value"] <= worth + 1e-9, counts
            sharp += outcome["n_eff"]["value"] == pytest.approx(worth)
    assert sharp > 4


def test_three_judges_have_weights_from_twenty_cases_on() -> None:
    for n in (19, 20):
        winners = [("model_a", "model_b")[case % 2] for case in range(n)]
        _, outcome = jury({name: given(name, winners) for name in "xyz"})
        assert ("weighted" in outcome) == (n == 20)


def test_models_of_equal_scores_have_no_order_and_a_share_has_its_base() -> None:
    sides = ["model_a", "model_b"] * 2
    _, outcome = jury({"x": given("x", sides), "y": given("y", [*sides, "tie"])})
    assert (outcome["stable"], outcome["orders"]["x"]) == (False, ["basalt", "flint"])
    assert (outcome["complete"], outcome["unanimous"]) == (4, 1.0)
    shown = " ".join(outcome["sentences"])
    assert "100% of the 4 cases with all verdicts" in shown
    assert "do not agree on one order" in shown
    assert "By majority: basalt = flint." in shown


@pytest.mark.parametrize(
    ("name", "reply"), [("wren", "[[D]]"), ("owl", "[[D]]"), ("wren", "[[A]]")]
)
def test_a_judge_that_says_nothing_or_always_the_same_has_no_weight(
    command: Command, folder: Path, server: FaultyServer, name: str, reply: str
) -> None:
    server.behaviours[name] = Behaviour(text=reply, usage=(7, 11))
    take_turns(folder)
    asks = " ".join((*ASK, "--format", "json", "--max-unparsed", "1"))
    outcome = report(command(*asks.split()))
    assert outcome["accuracies"] is None
    assert outcome["majority"]["decided"] == N
    assert of(folder, "weighted") == []
    server.behaviours["jay"] = judged
    asked_too = asks.replace("wren,owl,slate", "wren,owl,slate,jay").split()
    assert set(report(command(*asked_too))["accuracies"]) == {*JURY, "jay"} - {name}


def test_the_order_of_the_models_under_each_judge_is_compared(
    command: Command, folder: Path, server: FaultyServer
) -> None:
    shown = " ".join(command(*ASK).stdout.split())
    assert "By mean score, every judge gives the same order: basalt, flint." in shown
    assert f"All judges give the same verdict on 100% of the {N} cases with all verdicts." in shown
    assert "The jury equals at least 1.0 independent judges of 3, if each sometimes errs" in shown
    server.behaviours["slate"] = other_way
    again = " ".join(command(*ASK, "--again", "unparsed").stdout.split())
    assert again.count("0 new replies"), "replies that are stored stand"
    edited(folder / "pairs.jsonl", "Number", "Figure")
    other = " ".join(command(*ASK).stdout.split())
    assert "By majority: basalt, flint." in other
    assert "By slate: flint, basalt." in other


def test_where_one_fails_for_good_the_others_decide_and_it_is_counted(
    command: Command, folder: Path, server: FaultyServer
) -> None:
    server.behaviours["slate"] = DENIES
    result = command(*ASK)
    shown = " ".join(result.stdout.split())
    assert (result.returncode, result.stderr) == (0, "")
    assert f"slate has no verdict on {N} cases" in shown
    assert {row["winner"] for row in of(folder, "majority")} == {"model_a"}


def test_a_warning_that_concerns_several_judges_is_given_once_with_their_names(
    command: Command, folder: Path, server: FaultyServer
) -> None:
    edited(folder / "pairs.jsonl", '"prompt"', '"reference": "One.", "prompt"')
    server.behaviours["slate"] = Behaviour(text="[[A]]", usage=(7, 11))
    outcome = report(command(*ASK, "--format", "json"))
    unused = "The method 'pairwise' does not use the column 'reference' of the cases."
    warned = [text for text in outcome["warnings"] if unused in text]
    assert warned == [f"wren, owl, slate: {unused}"]
    assert [text[:7] for text in outcome["warnings"] if "the same answer" in text] == ["slate: "]


@pytest.mark.parametrize("jury", ["wren,slate", "wren,owl,slate"])
def test_one_left_of_two_or_three_is_no_quorum(
    command: Command, folder: Path, server: FaultyServer, jury: str
) -> None:
    server.behaviours["slate"] = server.behaviours["owl"] = DENIES
    result = command(*RUN, "--judge", jury, "--out", "found.csv")
    assert result.returncode == 1
    assert f"{N} cases without a verdict of more than half of the judges." in result.stdout
    ends = {(row["winner"], row["status"]) for row in of(folder, "majority")}
    assert ends == {("", "no_quorum")}


def test_a_second_judge_replaces_all_that_fail_and_counts_once(
    command: Command, folder: Path, server: FaultyServer
) -> None:
    server.behaviours["slate"], server.behaviours["owl"] = OUT, refuses(3, 5)
    server.behaviours["jay"] = other_way
    result = command(*ASK, "--fallback-judge", "jay", "--format", "json")
    assert (result.returncode, result.stderr) == (0, "")
    outcome = report(result)
    assert outcome["judges"]["owl"]["failed"] == {"refusal": 2}
    assert sum(outcome["judges"]["slate"]["failed"].values()) == N
    assert asked(server)["jay"] == 2 * N, "asked once about a case, whoever failed"
    winners = {row["prompt_id"]: row["winner"] for row in of(folder, "majority")}
    assert Counter(winners.values()) == {"model_a": N - 2, "tie": 2}
    assert outcome["majority"] == {"decided": N, "tied": 2}
    shown = " ".join(command(*ASK, "--fallback-judge", "jay").stdout.split())
    assert "owl has no verdict on 2 cases (2 refusal): 'jay' judges them in its place." in shown


def test_a_group_of_the_roster_is_a_jury(
    command: Command, folder: Path, server: FaultyServer
) -> None:
    for name in JURY:
        model = f'model = "{name}"\n'
        edited(folder / "roster.toml", model, model + 'judging = { group = "birds" }\n')
    plan = command(*RUN, "--judge", "birds", "--dry-run")
    assert [line.split(":")[0] for line in plan.stdout.splitlines()] == [*JURY]
    assert command(*RUN, "--judge", "birds", "--out", "found.csv").returncode == 0
    assert asked(server) == dict.fromkeys(JURY, 2 * N)


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("--judge", "wren,wren"), ("'wren' is named twice",)),
        (("--judge", "wren,,"), ("--judge 'wren,,' has an empty name",)),
        (("--judge", "wren,gone"), ("'gone'", "--judge")),
        (("--judge", "wren,owl", "--fallback-judge", "owl"), ("'owl' is named twice",)),
        (("--judge", "wren,owl", "--method", "mt_bench"), ("'mt_bench' marks one",)),
        (("--judge", "wren,owl", "--fallback", "sampled"), ("--fallback sampled is for one",)),
    ],
)
def test_what_a_jury_cannot_do_is_one_sentence(
    command: Command, folder: Path, words: tuple[str, ...], parts: tuple[str, ...]
) -> None:
    given = ("judge", "run", "--cases", "pairs.jsonl", "--roster", "roster.toml", "--out", "f.csv")
    method = () if "--method" in words else ("--method", "pairwise")
    refused(command(*given, *method, *words), *parts)


def test_a_budget_is_of_all_judges_together(
    command: Command, folder: Path, server: FaultyServer
) -> None:
    result = command(*ASK, "--budget", str(3 * N * EACH_USD), "--concurrency", "1")
    assert result.returncode == 1
    assert asked(server)["slate"] == 0
    assert sum(asked(server).values()) * EACH_USD <= 3 * N * EACH_USD
    command(*RUN, "--judge", "wren", "--out", "one.csv")
    result = command(*ASK, "--budget", str(EACH_USD))
    assert "Not asked: slate." in " ".join(result.stdout.split())
    assert {row["status"] for row in of(folder, "majority")} == {"no_quorum"}


def test_after_a_kill_no_stored_reply_is_paid_for_again(
    command: Command, folder: Path, server: FaultyServer
) -> None:
    def slow(body: Mapping[str, Any]) -> Behaviour:
        time.sleep(0.03)
        return judged(body)

    server.behaviours["owl"] = slow
    with Process([*ASK, "--concurrency", "4"], folder) as process:
        until(lambda: asked(server)["owl"] >= 9)
        process.kill()
        process.wait()
    result = command(*ASK, "--concurrency", "4", "--format", "json")
    assert (result.returncode, result.stderr) == (0, "")
    every = asked(server)
    assert (every["wren"], every["slate"]) == (2 * N, 2 * N)
    assert 2 * N <= every["owl"] <= 2 * N + 4
    assert report(result)["judges"]["wren"]["n_asked"] == 0
