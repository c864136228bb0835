"""Studies of recorded runs of agents: as they are made, rated blind, revealed and exported."""

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from judge.tables.inspect_logs import runs_of
from tests import agent_runs, inspect_samples
from tests.agent_runs import ATTACK, HOSTILE, MODELS, SECRETS, SYSTEMS, run, task, write_runs
from tests.arena.test_study_pages import in_form
from tests.command import invoke
from tests.serving import Served, Visitor, quick_arena


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with quick_arena(tmp_path_factory.mktemp("runs")) as served:
        yield served


def create(served: Served, name: str, runs: Path, *words: str) -> str:
    line = ["study", "create", name, "--runs", str(runs), "--raters-per-item", "1", *words]
    done = invoke([*line, "--database", served.database])
    return done.stdout + done.stderr


def rate(rater: Visitor, name: str, choice: str = "a") -> tuple[str, str] | None:
    """Rate what is next; gives the page before and the page after, None at the end."""
    before = rater.get(f"/studies/{name}/rate").text
    if not (token := in_form(before, "token")):
        return None
    body = {"token": token, "key": in_form(before, "key"), "choice": choice}
    address = rater.post(f"/studies/{name}/rate", data=body).headers["location"]
    after = rater.get(address).text
    assert rater.post(address, data={}).status_code == 303
    return before, after


def every_page(served: Served, name: str) -> list[tuple[str, str]]:
    pages = []
    with served.visitor() as ada:
        while (pair := rate(ada, name)) is not None:
            pages.append(pair)
    return pages


def texts(page: str) -> str:
    """Give what a page says, without its marks."""
    return html.unescape(re.sub(r"<[^>]+>", " ", page))


def test_before_the_rating_no_byte_of_twenty_pairs_names_a_system_or_what_it_took(
    arena: Served, tmp_path: Path
) -> None:
    words = create(arena, "blind", write_runs(tmp_path / "runs.jsonl"), "--reveal")
    assert "has 20 items with 1 rating each" in words
    pages = every_page(arena, "blind")
    assert len(pages) == agent_runs.ITEMS
    for before, after in pages:
        seen = before.replace(in_form(before, "key"), "")  # drawn at random
        assert [word for word in SECRETS if re.search(rf"(?<!\d){re.escape(word)}", seen)] == []
        assert "task-" not in before
        revealed = [" · ".join(one) for one in SYSTEMS if " · ".join(one) in after]
        assert len(revealed) == 2
        assert "$0.04" in after or "$0.01" in after
        assert "83\u00a0s" in after or "22\u00a0s" in after
        assert "0.4\u00a0s" not in before
        assert after.count("0.4\u00a0s") == 2  # the first tool call of each
        assert [mark for mark in agent_runs.MARKS if mark in after] == []


def test_gold_runs_are_strewn_among_the_others_and_scored(arena: Served, tmp_path: Path) -> None:
    known = [run(90, model, "loopback") for model in MODELS]
    gold = write_runs(tmp_path / "gold.jsonl", [known[0] | {"better": True}, known[1]])
    runs = [one for one in agent_runs.recorded() if one["item"] in ("task-0", "task-1")]
    create(arena, "gold", write_runs(tmp_path / "runs.jsonl", runs), "--gold", str(gold))
    with arena.visitor() as ada:
        while (page := ada.get("/studies/gold/rate").text) and (token := in_form(page, "token")):
            a = page.split('<article class="card')[1]
            choice = "a" if "All four tests pass" in a else "b"
            body = {"token": token, "key": in_form(page, "key"), "choice": choice}
            assert ada.post("/studies/gold/rate", data=body).status_code == 303
    line = ["study", "status", "gold", "--format", "json", "--database", arena.database]
    (rater,) = json.loads(invoke(line).stdout)["raters"]
    assert (rater["done"], rater["gold_asked"], rater["gold"]) == (2, 1, 1.0)


def test_without_reveal_names_and_costs_are_hidden_to_the_end(
    arena: Served, tmp_path: Path
) -> None:
    create(arena, "sealed", write_runs(tmp_path / "runs.jsonl"))
    for _, after in every_page(arena, "sealed"):
        assert [word for word in SECRETS[:4] if word in after] == []
        assert "$0.0" not in after


def test_the_outcome_comes_first_and_the_first_difference_is_marked_on_both_sides(
    arena: Served, tmp_path: Path
) -> None:
    create(arena, "marked", write_runs(tmp_path / "runs.jsonl"))
    for before, _ in every_page(arena, "marked"):
        cards = re.findall(r'<article class="card answer.*?</article>', before, re.DOTALL)
        assert len(cards) == 2
        marked = []
        for card in cards:
            assert card.index('class="rendered"') < card.index('class="steps"')
            items = re.findall(r"<li.*?</li>", card, re.DOTALL)
            places = [n for n, one in enumerate(items) if "first difference" in one]
            assert len(places) == 1
            assert items[places[0]].count(" open>") <= 1
            marked += places
            assert '<details class="steps">' in card  # folded
        assert marked[0] == marked[1]


def test_samples_of_inspect_are_shown_blind_in_their_steps(arena: Served, tmp_path: Path) -> None:
    samples = [inspect_samples.sample(n, f"It is {7 * n}.") for n in range(1, 4)]
    logs = [inspect_samples.log(f"lab/{model}", samples) for model in MODELS]
    runs = [entry for _, entry in runs_of([(Path("x.eval"), one) for one in logs]).entries]
    create(arena, "logged", write_runs(tmp_path / "logged.jsonl", runs), "--reveal")
    pages = every_page(arena, "logged")
    assert len(pages) == 3
    for before, after in pages:
        seen = before.replace(in_form(before, "key"), "")
        hidden = (*MODELS, "lab/", "0.75", "12.5", "match", "Seven is odd")
        assert [word for word in hidden if word in seen] == []
        assert "<script>taken" not in before
        assert before.count("It is locked.") == 4  # at the head of a step, and in it
        assert "lab/quartz-8b · react" in after
        assert "$0.75" in after


def test_runs_with_the_same_steps_say_so(arena: Served, tmp_path: Path) -> None:
    runs = [run(0, "quartz-8b", "loopback") | {"model": model} for model in ("m", "n")]
    create(arena, "same", write_runs(tmp_path / "same.jsonl", runs))
    ((before, _),) = every_page(arena, "same")
    assert before.count("All steps are the same on both sides.") == 2
    assert "first difference" not in before


def test_a_run_that_ends_where_the_other_goes_on_says_so(arena: Served, tmp_path: Path) -> None:
    longer = run(0, "quartz-8b", "loopback")
    shorter = longer | {"model": "n", "steps": longer["steps"][:2]}
    create(arena, "shorter", write_runs(tmp_path / "shorter.jsonl", [longer, shorter]))
    ((before, _),) = every_page(arena, "shorter")
    assert before.count("ends here; the other goes on.") == 1
    assert before.count("first difference") == 2


def test_hostile_steps_are_shown_as_what_they_are_and_all_of_them(
    arena: Served, tmp_path: Path
) -> None:
    runs = [one for one in agent_runs.recorded() if one["item"] == f"task-{HOSTILE}"]
    create(arena, "hostile", write_runs(tmp_path / "hostile.jsonl", runs))
    ((before, _),) = every_page(arena, "hostile")
    assert "<script>document" not in before
    assert "<img" not in before
    assert "onerror=" not in re.sub(r">[^<]*<", "><", before)
    assert "\x1b" not in before
    assert "\u202e" not in before
    assert 'href="javascript' not in before
    assert before.count("</details></script>") == 0
    assert texts(before).count("document.title = 'taken'") >= 6
    assert "Show the other" in before
    long = ATTACK.replace("\x1b", "\ufffd").replace("\u202e", "\ufffd").replace("\u202c", "\ufffd")
    whole = re.findall(r'<pre class="of-step"[^>]*>(.*?)</pre>', before, re.DOTALL)
    joined = html.unescape("".join(whole))
    assert joined.count(long + " and so on") == 2
    assert joined.count(" and so on") == 2 * 2_000


def test_messages_are_markdown_on_both_sides_or_on_none(arena: Served, tmp_path: Path) -> None:
    for name, n, marked in (("short", 20_000, 2), ("long", 20_001, 0)):
        long = {"kind": "message", "text": "*mark* " + "[" * (n - 7)}
        short = {"kind": "message", "text": "*mark* " + "x" * 19_993}
        runs = [run(0, MODELS[i], "loopback") | {"steps": [(long, short)[i]]} for i in (0, 1)]
        create(arena, name, write_runs(tmp_path / "runs.jsonl", runs))
        ((before, _),) = every_page(arena, name)
        assert before.count("<em>mark</em>") == marked


def test_names_in_runs_are_listed_and_refused_unless_they_are_allowed(
    arena: Served, tmp_path: Path
) -> None:
    steps = [{"kind": "tool_call", "name": "openai_search", "arguments": {"q": "x"}}]
    runs = [run(0, model, "loopback") | {"steps": steps} for model in ("quartz-8b", "m")]
    file = write_runs(tmp_path / "named.jsonl", runs)
    line = ["study", "create", "named", "--runs", str(file), "--raters-per-item", "1"]
    refused = invoke([*line, "--database", arena.database])
    assert "task-0, quartz-8b · loopback, step 1, name of a tool: 'openai'" in refused.stderr
    assert "pass --allow-names" in refused.stderr
    assert "has 1 item" in create(arena, "named", file, "--allow-names")


@pytest.mark.parametrize(
    ("words", "said_so"),
    [
        (["--reveal", "--repeats", ".1"], "omit one of them"),
        (["--outputs", "x.csv"], "omit --outputs, --prompts and --models"),
        (["--items", "x.csv"], "give one of --items FILE and --runs FILE"),
    ],
)
def test_what_does_not_go_together_is_refused(
    arena: Served, tmp_path: Path, words: list[str], said_so: str
) -> None:
    file = write_runs(tmp_path / "runs.jsonl")
    line = ["study", "create", "odd", "--runs", str(file), "--raters-per-item", "1", *words]
    assert said_so in invoke([*line, "--database", arena.database]).stderr


def test_the_export_says_what_systems_are_made_of_and_took_in_the_sides_of_the_item(
    arena: Served, tmp_path: Path
) -> None:
    create(arena, "out", write_runs(tmp_path / "runs.jsonl"))
    pages = every_page(arena, "out")
    assert len(pages) == agent_runs.ITEMS
    to = tmp_path / "out.parquet"
    invoke(["study", "export", "out", "--to", str(to), "--database", arena.database])
    relation = duckdb.read_parquet(str(to))
    rows = [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]
    for row in rows:
        for side in "ab":
            base, scaffold = row[f"base_model_{side}"], row[f"scaffold_{side}"]
            assert row[f"model_{side}"] == f"{base} · {scaffold}"
            assert row[f"cost_{side}"] == (0.0417 if base == "basalt-large" else 0.0123)
            assert row[f"seconds_{side}"] == (83.25 if base == "basalt-large" else 21.5)
            marks = '{"hidden_tests": 0.8125}' if base == "basalt-large" else None
            assert row[f"marks_{side}"] == marks
    assert {row["sides"] for row in rows} == {"ab", "ba"}
    assert {row["prompt_id"] for row in rows} == {f"task-{n}" for n in range(agent_runs.ITEMS)}


@pytest.mark.slow
def test_factors_of_an_export_are_those_of_the_sides_on_the_page(
    arena: Served, tmp_path: Path
) -> None:
    """A rater who always takes the model that tests, wherever it stands, ties otherwise."""
    runs = [run(n, *system) | {"item": f"i{n}"} for n in range(12) for system in SYSTEMS]
    create(arena, "parts", write_runs(tmp_path / "parts.jsonl", runs))
    with arena.visitor() as ada:
        n = 0
        while True:
            n += 1
            page = ada.get("/studies/parts/rate").text
            if not (token := in_form(page, "token")):
                break
            cards = page.split('<article class="card')
            tests = ["All four tests pass" in one for one in cards[1:]]
            better = {(True, False): "a", (False, True): "b"}.get((tests[0], tests[1]), "tie")
            choice = better if n % 4 else "tie"
            body = {"token": token, "key": in_form(page, "key"), "choice": choice}
            assert ada.post("/studies/parts/rate", data=body).status_code == 303
    to = tmp_path / "parts.parquet"
    invoke(["study", "export", "parts", "--to", str(to), "--database", arena.database])
    shown = invoke(["factors", str(to), "--by", "base_model,scaffold", "--format", "json"])
    report: dict[str, Any] = json.loads(shown.stdout)
    best = report["factors"]["base_model"][0]
    assert best["level"] == "basalt-large"
    assert best["points"] > 100
    scaffold = {one["level"]: one["points"] for one in report["factors"]["scaffold"]}
    assert abs(scaffold["loopback"]) < 40
    assert report["systems"]["ratings"][0]["model"].startswith("basalt-large")


def test_a_study_of_answers_has_no_steps(arena: Served, tmp_path: Path) -> None:
    row = {"item_id": "i", "prompt": task(0), "model_a": "m", "response_a": "x"}
    row |= {"model_b": "n", "response_b": "y"}
    file = tmp_path / "items.jsonl"
    file.write_text(json.dumps(row), encoding="utf-8")
    line = ["study", "create", "plain", "--items", str(file), "--raters-per-item", "1"]
    invoke([*line, "--reveal", "--database", arena.database])
    ((before, after),) = every_page(arena, "plain")
    assert 'class="steps"' not in before + after
    assert 'class="who"' not in before
    assert after.count('class="who"') == 2
