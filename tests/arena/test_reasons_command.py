"""`arena reasons`, as it is typed."""

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest

from arena.domain.battle import BattleState, Intent, Reason, Remarks
from arena.domain.vote import Choice, Voter
from arena.store.store import Store
from tests.arena.store.battles import A1, B1, MODELS, NOW, ballot, complete, new_battle
from tests.command import Command, examples, refused
from tests.rating.test_remarks import explained
from tests.sqlite import new_sqlite


def votes(folder: Path) -> None:
    """Write votes of four models in which the useful wins."""
    drawn = explained(np.random.default_rng(4), 0.8, n=1500)
    lines = ["model_a,model_b,winner,voter,reasons_a,reasons_b,voter_intent,before_reveal"]
    for at in range(len(drawn.a)):
        a, b = drawn.models[drawn.a[at]], drawn.models[drawn.b[at]]
        winner = "model_a" if drawn.score[at] else "model_b"
        given_a, given_b, intent = (
            drawn.names[role][drawn.groups[role][at]]
            for role in ("reasons_a", "reasons_b", "voter_intent")
        )
        voter = drawn.voter[at]
        lines.append(f'{a},{b},{winner},v{voter},"{given_a}","{given_b}",{intent},{at % 2}')
    (folder / "votes.csv").write_text("\n".join(lines) + "\n")
    duckdb.sql(f"COPY (FROM '{folder / 'votes.csv'}') TO '{folder / 'votes.parquet'}'")


def arena_with_remarks(folder: Path) -> str:
    """Keep an arena of ten voters who vote on six battles each, and say why."""
    url = new_sqlite(folder)
    with closing(Store(url)) as store:
        store.hold_lease()
        store.register(MODELS, NOW)
        for at in range(60):
            name, voter = f"b{at}", Voter(f"v{at % 10}" * 8)
            store.open_battle(replace(new_battle(name, voter), prompt="Why?"))
            ends = {A1: complete("This."), B1: complete("That.")}
            store.close_answers(name, BattleState.READY, ends, message=None, now=NOW)
            choice = (Choice.A, Choice.B, Choice.TIE)[at % 3]
            store.cast(ballot(name, choice, voter=voter.id))
            why = Remarks(reasons_a=(Reason.USEFUL,), intent=[*Intent][at % 2])
            store.remark(name, voter.id, why, NOW, asked=True)
    return url


def test_the_json_has_shares_with_intervals_effects_and_the_interaction(
    command: Command, tmp_path: Path
) -> None:
    votes(tmp_path)
    report = json.loads(command("reasons", "votes.parquet", "--format", "json").stdout)
    assert (report["votes"], len(report["shares"])) == (1500, 8)
    for row in report["shares"]:
        assert 0 < row["lower"] < row["share"] < row["upper"] < 1
    effects = {row["reason"]: row for row in report["winning"]}
    assert effects["useful"]["lower"] > 0
    assert effects["incorrect"]["lower"] < 0 < effects["incorrect"]["upper"]
    by = report["intent"]
    shown = " ".join(command("reasons", "votes.parquet", COLUMNS="200").stdout.split())
    assert f"{report['explained']:,} with a reason." in shown
    row = "│ {reason} │ {log_odds:+z.2f} │ {lower:+z.2f} to {upper:+z.2f} │ {given:,} │"
    ordered = sorted(effects.values(), key=lambda effect: -effect["log_odds"])
    assert " ".join(row.format(**effect) for effect in ordered) in shown
    assert f"{100 * by['size']:.1f} points of preference share, {by['points']:.0f} points" in shown
    first, second = (100 * by["models"][0][name] for name in ("first", "second"))
    assert f"│ {first:.1f}% │ {second:.1f}% │ {first - second:+z.1f} │" in shown
    assert (by["first"], by["second"], by["df"]) == ("quizzing", "asking", 3)
    assert len(by["models"]) == 4
    words = ("--where", "before_reveal = 1", "--intents", "asking", "quizzing", "--level", "0.5")
    half = json.loads(command("reasons", "votes.csv", *words, "--format", "json").stdout)
    assert (half["votes"], half["level"], half["intent"]["first"]) == (750, 0.5, "asking")
    for row in half["intent"]["models"]:
        assert row["difference"] == pytest.approx(row["first"] - row["second"])
    swap = ("votes.parquet", "--intents", "asking", "quizzing", "--format", "json")
    turned = json.loads(command("reasons", *swap).stdout)["intent"]
    assert turned["first_votes"] == by["second_votes"]
    for wide, narrow in zip(report["shares"], half["shares"], strict=True):
        assert narrow["upper"] - narrow["lower"] < wide["upper"] - wide["lower"]


def test_a_database_says_the_same_as_its_export(command: Command, tmp_path: Path) -> None:
    url = arena_with_remarks(tmp_path)
    command("export", "votes", "--to", "votes.parquet", "--database", url)
    of_log, of_file = (
        json.loads(command("reasons", source, "--format", "json").stdout)
        for source in (url, "votes.parquet")
    )
    assert of_log == of_file
    assert (of_log["votes"], of_log["explained"]) == (60, 60)
    assert of_log["intents"] == {"asking": 30, "quizzing": 30}
    boards = json.loads(command("rate", url, "--by", "voter_intent", "--format", "json").stdout)
    assert {*boards["groups"], *boards.get("not_rated", {})} >= {"asking"}


def test_the_export_of_a_study_says_the_same_as_votes(command: Command, tmp_path: Path) -> None:
    drawn = explained(np.random.default_rng(6), 0.8, n=400)
    votes, rated = [], []
    for at in range(len(drawn.a)):
        a, b = drawn.models[drawn.a[at]], drawn.models[drawn.b[at]]
        winner = "model_a" if drawn.score[at] else "model_b"
        codes = {side: drawn.groups[f"reasons_{side}"][at] for side in "ab"}
        texts = {side: drawn.names[f"reasons_{side}"][code] for side, code in codes.items()}
        given = {side: text.split(", ") for side, text in texts.items() if text}
        sides = {"model_a": a, "model_b": b}
        vote = sides | {"winner": winner, "voter": f"r{drawn.voter[at]}", "prompt_id": f"p{at}"}
        votes.append(vote | {f"reasons_{side}": text for side, text in texts.items()})
        row = {
            "study": "s",
            "item": f"i{at}",
            "kind": "item",
            "rater": f"r{drawn.voter[at]}",
            "prompt_id": f"p{at}",
            "sides": "ba" if at % 2 else "ab",
            "choice": winner,
            "reasons": json.dumps(given) if given else None,
            "intent": None,
            "repeat": 0,
        }
        rated.append(row | sides)
        if at % 10 == 0:
            other = {"repeat": 1} if at % 20 else {"kind": "gold", "item": f"g{at}"}
            rated.append(rated[-1] | {"choice": "tie"} | other)
    for file, rows in (("votes.jsonl", votes), ("study.jsonl", rated)):
        (tmp_path / file).write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    duckdb.sql(f"COPY (FROM '{tmp_path}/study.jsonl') TO '{tmp_path}/study.parquet'")
    of_votes, *of_study = (
        json.loads(command("reasons", file, "--format", "json").stdout)
        for file in ("votes.jsonl", "study.jsonl", "study.parquet")
    )
    assert [of_votes[name] for name in ("votes", "prompts")] == [400, 400]
    for report in of_study:
        assert {**report, "winning": None} == {**of_votes, "winning": None}
        for ours, theirs in zip(report["winning"], of_votes["winning"], strict=True):
            assert ours["reason"] == theirs["reason"]
            for name in ("log_odds", "lower", "upper"):
                assert abs(ours[name] - theirs[name]) < 1e-9


def test_votes_without_remarks_are_refused_in_words(command: Command, tmp_path: Path) -> None:
    (tmp_path / "plain.csv").write_text("model_a,model_b,winner,voter\nx,y,tie,ann\n")
    done = command("reasons", "plain.csv")
    refused(done, "holds no remarks")


def test_the_examples_of_the_help_run(command: Command, tmp_path: Path) -> None:
    votes(tmp_path)
    url = arena_with_remarks(tmp_path)
    (tmp_path / url.rpartition("/")[2]).rename(tmp_path / "arena.db")
    for words in examples("reasons"):
        assert command(*words).returncode == 0, words
