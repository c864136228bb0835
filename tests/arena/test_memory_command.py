"""`arena probe memory` of the toys, and of a model behind an endpoint that echoes prompts."""

import csv
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from judge.labels.files import BETWEEN, NGrams
from tests.command import Command, refused
from tests.faulty_server import Behaviour, faulty_server
from tests.serving import write_roster
from tests.sqlite import new_sqlite


def echoing(toy: NGrams, body: Mapping[str, Any]) -> Behaviour:
    """Answer as vLLM does: the prompt's tokens, here two halves, and one that was written."""
    assert body["echo"]
    text = body["prompt"]
    likely = toy.log_likelihood(text)
    logprobs = {
        "tokens": [text[0], text[1:9], text[9:], " and"],
        "token_logprobs": [None, likely / 4, 3 * likely / 4, -1.5],
        "text_offset": [0, 1, 9, len(text)],
    }
    return Behaviour(body={"choices": [{"text": text + " and", "logprobs": logprobs}]})


def test_a_model_behind_an_endpoint_is_seen_to_know_the_order(
    command: Command, tmp_path: Path
) -> None:
    rng = np.random.default_rng(1)
    words = [f"w{i}" for i in range(60)]
    items = [" ".join(rng.choice(words, 6)) for _ in range(40)]
    with (tmp_path / "bench.csv").open("w", newline="") as out:
        csv.writer(out).writerows([("question",), *((item,) for item in items)])
    toys = {"knows": NGrams([BETWEEN.join(items)]), "new": NGrams(items)}
    server_of = {name: lambda body, toy=toy: echoing(toy, body) for name, toy in toys.items()}
    database = new_sqlite(tmp_path)
    with faulty_server(server_of) as server:
        roster = write_roster(tmp_path / "roster.toml", server, "knows", "new")
        options = ("--roster", str(roster), "--database", database, "--format", "json")
        sizes = ("--shards", "8", "--permutations", "19")
        results = {}
        for name in toys:
            words_of = ("probe", "memory", "bench.csv", "--model", f"id-{name}", *sizes)
            ran = command(*words_of, *options)
            assert ran.returncode == 0, ran.stderr
            (results[name],) = json.loads(ran.stdout)["models"]
        asked = len(server.requests)
        assert asked <= 2 * 8 * 20
        again = command("probe", "memory", "bench.csv", "--model", "id-new", *sizes, *options)
        assert json.loads(again.stdout)["models"] == [results["new"]]
        again = command("probe", "memory", "bench.csv", "--model", "id-new", *sizes, *options[:4])
        assert len(server.requests) == asked
    cells = "│ {p:.3f} │ {p_shards:.2g} │ {gain:+.2f} ({lower:+.2f} to {upper:+.2f}) │"
    assert cells.format(**results["new"]) in " ".join(again.stdout.split())
    assert again.stdout.startswith("8 shards, each in its own order and in 19 others.")
    assert results["knows"]["p"] == 0.05
    assert results["knows"]["p_shards"] < 0.001
    assert results["new"]["p"] > 0.05
    assert math.isfinite(results["new"]["gain"])


def test_the_toys_show_the_test(command: Command) -> None:
    shown = command("probe", "memory", "--planted").stdout
    assert shown.startswith("20 shards, each in its own order and in 19 others.")
    assert "the model was trained on" in shown
    assert "0.050" in shown


def test_an_endpoint_that_echoes_nothing_is_refused_in_words(
    command: Command, tmp_path: Path
) -> None:
    (tmp_path / "bench.csv").write_text("question\n" + "What now?\n" * 12)
    with faulty_server({"x": Behaviour(text="Hello")}) as server:
        roster = write_roster(tmp_path / "roster.toml", server, "x", "y")
        words = ("probe", "memory", "bench.csv", "--model", "id-x", "--roster", str(roster))
        ran = command(*words, "--database", new_sqlite(tmp_path), "--shards", "2")
    assert ran.returncode != 0
    assert "does not echo" in ran.stderr
    refused(command("probe", "memory"), "--planted alone")
    refused(command(*words[:4], "gone", "--shards", "2"), "no model 'gone'")
