"""`arena study create`, `open`, `status` and `export`, as a user runs them."""

import csv
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from arena.boards.evaluation import COLUMNS, read_status
from arena.domain.study import APART, RubricItem, StudyPlan
from arena.domain.vote import Voter
from arena.store import studies
from arena.store.store import Store
from judge.studies.raters import study_raters
from tests.arena.store.test_studies import rate_all
from tests.command import invoke
from tests.sqlite import new_sqlite

PAIR = {
    "item_id": "i0",
    "prompt_id": "p0",
    "prompt": "Why is basalt black?",
    "model_a": "quartz",
    "response_a": "Iron.",
    "model_b": "flint",
    "response_b": "It is **old**.",
}


def pairs(n: int, **more: object) -> list[dict[str, object]]:
    return [PAIR | {"item_id": f"i{k}", "prompt_id": f"p{k % 24}"} | more for k in range(n)]


def write(file: Path, rows: list[dict[str, Any]]) -> str:
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return str(file)


@pytest.fixture
def database(tmp_path: Path) -> str:
    return new_sqlite(tmp_path)


@pytest.fixture
def rated(tmp_path: Path, database: str) -> Iterator[Store]:
    """A study of which three people have rated all, with gold, repeats, skips and a tie."""
    items = write(tmp_path / "items.jsonl", pairs(30))
    gold = write(
        tmp_path / "gold.jsonl", [PAIR | {"item_id": f"g{k}", "gold": "model_b"} for k in range(3)]
    )
    words = ["--items", items, "--raters-per-item", "3", "--gold", gold, "--repeats", ".1"]
    invoke(["study", "create", "s", *words, "--until", ".05", "--database", database])
    with closing(Store(database)) as store:
        for n, who in enumerate(("ada", "bob", "eve")):
            choices = iter([["a", "a", "b", "tie", "skip"][(n + 2 * k) % 5] for k in range(99)])
            rate_all(store, who, lambda shown, choices=choices: next(choices))  # type: ignore[misc]
        yield store


def test_a_study_is_created_rated_and_exported(
    rated: Store, tmp_path: Path, database: str
) -> None:
    shown = invoke(["study", "status", "s", "--format", "json", "--database", database])
    status = json.loads(shown.stdout)
    assert (status["items"], status["done"], status["ratings"]) == (30, 30, 90)
    assert [one["rater"] for one in status["raters"]] == ["r01", "r02", "r03"]
    assert all(one["done"] == 30 and one["gold_asked"] <= 3 for one in status["raters"])
    assert set(status["agreement"]["alpha"]) == {"value", "lower", "upper", "n"}
    assert status["stop"]["reached"] is False
    wanted = "± {half_width:.3f}: about {more:,} more ratings.".format(**status["stop"])
    shown = invoke(["study", "status", "s", "--database", database], columns=120)
    table = " ".join(shown.stdout.replace("│", " ").split())
    for one in read_status(rated, "s").raters:
        right, alike = (one.gold_right, one.gold_asked), (one.same, one.repeated)
        of = " ".join(f"{n} of {m}" if m else "–" for n, m in (right, alike))
        assert f"{one.code} {one.done} {one.skipped} {of} –" in table
    assert wanted in table
    for ending in ("csv", "parquet", "jsonl"):
        to = tmp_path / f"s.{ending}"
        done = invoke(["study", "export", "s", "--to", str(to), "--database", database])
        assert done.stdout == f"{to} has 108 ratings.\n"
    with (tmp_path / "s.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == list(COLUMNS)
    repeats = Counter({"shown": 0, "same": 0, "close": 0})
    for one in status["raters"]:
        own = [row for row in rows if row["rater"] == one["rater"]]
        first = {row["item"]: n for n, row in enumerate(own) if row["repeat"] == "0"}
        again = [(n, first[own[n]["item"]]) for n in range(len(own)) if own[n]["repeat"] == "1"]
        for n, before in again:
            assert {own[n]["sides"], own[before]["sides"]} == {"ab", "ba"}
            assert n - before > APART or {row["repeat"] for row in own[n:]} == {"1"}
        answers = [row for row in own if row["choice"] != "skip"]
        gold = [row["choice"] == row["gold"] for row in answers if row["gold"]]
        both = [{own[place]["choice"] for place in pair} for pair in again]
        twice = [len(choices) == 1 for choices in both if "skip" not in choices]
        skipped = 30 - sum(row["kind"] == "item" and row["repeat"] == "0" for row in answers)
        share = sum(gold) / len(gold) if gold else None
        assert (one["gold"], one["gold_asked"]) == (share, len(gold))
        counted = (one["repeats"], one["repeats_same"], one["skipped"])
        assert counted == (len(twice), sum(twice), skipped)
        close = sum(n - before <= APART for n, before in again)
        repeats.update(shown=len(twice), same=sum(twice), close=close)
    assert status["repeats"] == repeats
    note = f"{repeats['close']} repeats came with fewer than 20 other items between"
    assert repeats["close"] > 1
    assert any(note in warning for warning in status["warnings"])


def test_an_export_goes_straight_into_the_study_of_a_judge(
    rated: Store, tmp_path: Path, database: str
) -> None:
    to = tmp_path / "s.parquet"
    invoke(["study", "export", "s", "--to", str(to), "--database", database])
    verdicts = [
        {"item_id": f"i{k}", "prompt_id": f"p{k % 24}", "model_a": "quartz", "model_b": "flint"}
        | {"judge": "owl", "winner": ["model_a", "model_b", "tie"][k % 3]}
        for k in range(30)
    ]
    file = write(tmp_path / "verdicts.jsonl", verdicts)
    done = invoke(["study", "judge", str(to), file, "--format", "json"])
    study = json.loads(done.stdout)
    status = read_status(rated, "s")
    assert study["alpha"] == status.agreement.alpha.to_dict()
    assert study["ac1"] == status.agreement.ac1.to_dict()
    assert status.agreement.alpha.lower is not None
    assert "ratings of arena study export; rows excluded: 9 gold, 9 second showings" in done.stderr


def test_a_study_is_as_it_was_typed_and_its_pilot_is_opened_once(
    tmp_path: Path, database: str
) -> None:
    items = write(tmp_path / "items.jsonl", pairs(3))
    first = write(tmp_path / "first.jsonl", [PAIR | {"item_id": "t", "gold": "tie"}])
    guide, rubric = tmp_path / "guide.md", tmp_path / "rubric.toml"
    guide.write_text("Be *fair*.")
    rubric.write_text('[[item]]\nname = "safe"\nquestion = "Safe?"\nanswers = ["yes", "no"]\n')
    also = ["--database", database]
    words = ["--items", items, "--raters-per-item", "2", "--pilot", "1", "--repeats", "0.1"]
    words += ["--qualification", first, "--pass", "0.5", "--until", "0.05"]
    words += ["--guidelines", str(guide), "--rubric", str(rubric)]
    assert invoke(["study", "create", "s", *words, *also]).returncode == 0
    with closing(Store(database)) as store:
        kinds = [kind for _, kind in store.read(studies.items, "s")]
        assert kinds == ["pilot", "item", "item", "qualification"]
        assert store.read(studies.plan_of, "s") == StudyPlan(
            name="s",
            raters_per_item=2,
            repeats=0.1,
            guidelines="Be *fair*.",
            pilot=1,
            pass_share=0.5,
            until=0.05,
            rubric=(RubricItem("safe", "Safe?", ("yes", "no")),),
        )
        for who in ("ada", "bob"):
            rate_all(store, who, lambda shown: "tie")
    assert "waits for arena study open" in invoke(["study", "status", "s", *also]).stdout
    assert invoke(["study", "open", "s", *also]).stdout == "All items of 's' can be rated now.\n"
    assert "could be rated before" in invoke(["study", "open", "s", *also]).stdout
    with closing(Store(database)) as store:
        rate_all(store, "ada", lambda shown: "tie")
        status = read_status(store, "s")
    assert (status.items, status.done, status.ratings, status.agreement.alpha.n) == (3, 1, 4, 0)


def test_what_cannot_be_told_is_null_with_a_warning(tmp_path: Path, database: str) -> None:
    items = write(tmp_path / "items.jsonl", pairs(3))
    words = ["--items", items, "--raters-per-item", "1", "--database", database]
    invoke(["study", "create", "s", *words])
    shown = invoke(["study", "status", "s", "--format", "json", "--database", database])
    status = json.loads(shown.stdout)
    nothing = {"value": None, "lower": None, "upper": None, "n": 0}
    assert status["agreement"] == {"alpha": nothing, "ac1": nothing}
    assert status["warnings"] == [
        "No item with two answers has ratings by two people yet: alpha and AC1 are not estimated."
    ]


SEND = {"judge": "owl", "verdict_row": 3, "prompt_id": "p", "model_a": "x", "model_b": "y"}


def test_what_a_study_of_a_judge_sends_to_people_is_rated_once_its_texts_are_named(
    tmp_path: Path, database: str
) -> None:
    sent = [SEND, SEND | {"judge": "hawk"}, SEND | {"prompt_id": "q", "model_a": "z"}]
    items = write(tmp_path / "send.jsonl", [row | {"overall": 0.5} for row in sent])
    answers = [
        {"prompt_id": prompt, "model": model, "output": f"{model} on {prompt}"}
        for prompt in "pq"
        for model in "xyz"
    ]
    asked = [{"prompt_id": prompt, "prompt": f"What is {prompt}?"} for prompt in "pq"]
    outputs, prompts = write(tmp_path / "o.jsonl", answers), write(tmp_path / "p.jsonl", asked)
    words = ["study", "create", "s", "--items", items, "--raters-per-item", "1"]
    words += ["--database", database, "--outputs"]
    bare = write(tmp_path / "few.jsonl", answers[:1])
    assert f"'{bare}' holds no answer of 'z' to 'q'" in invoke([*words, bare]).stderr
    assert "names prompts and has no texts of them" in invoke([*words, outputs]).stderr
    own = write(tmp_path / "own.jsonl", [PAIR | {"prompt_id": "p"}])
    has_own = [own if word == items else word for word in words]
    assert "has answers of its own, in 'response_a'" in invoke([*has_own, outputs]).stderr
    assert invoke([*words, outputs, "--prompts", prompts]).returncode == 0
    with closing(Store(database)) as store, store.writing() as session:
        _, shown = studies.give(session, "s", Voter("ada"), datetime.now(UTC))
        assert len(studies.items(session, "s")) == 2
    assert shown is not None
    assert [one["content"] for one in shown.messages] == ["What is p?"]
    assert {one[0]["content"] for one in shown.answers} == {"x on p", "y on p"}


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (
            [PAIR, PAIR],
            "Row 2 of '{file}' has item_id 'i0': give each item an id of its own: row 1",
        ),
        ([PAIR | {"response_b": None}], "Row 1 of '{file}' has no response_b: give a text"),
        ([PAIR | {"model_b": "quartz"}], "has model_b 'quartz': give another model than model_a"),
        ([PAIR | {"prompt": ""}], "has prompt '': give what the answers answer"),
        (
            [PAIR | {"prompt": None, "messages": [{"role": "boss", "content": "x"}]}],
            "has messages [{'role': 'boss', 'content': 'x'}]: give a text, or a list",
        ),
        ([PAIR | {"responses": [{"model": "x", "text": "y"}]}], "give a list of 2 to 12"),
        (
            [PAIR | {"prompt": None, "conversation": ["Hi", "So?"], "response_a": ["x", "y"]}],
            "has response_b 'It is **old**.': give as many answers as response_a has, 2.",
        ),
        ([PAIR | {"response_a": ["x", None]}], "has response_a ['x', None]: give a text, or a"),
        ([{"item_id": "i", "prompt": "x"}], "There are no answers in '{file}'"),
        ([SEND | {"overall": 0.5}], "names items to send to people"),
        ([PAIR | {"response_a": "x" * 100_001}], "give an item of 100,000 characters at the most"),
    ],
)
def test_a_bad_row_is_quoted_and_nothing_is_written(
    tmp_path: Path, database: str, rows: list[dict[str, Any]], words: str
) -> None:
    file = write(tmp_path / "items.jsonl", rows)
    also = ["--items", file, "--raters-per-item", "2", "--database", database]
    done = invoke(["study", "create", "s", *also])
    assert done.returncode == 2
    assert words.replace("{file}", file) in done.stderr
    with closing(Store(database)) as store:
        assert store.read(studies.names) == []


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--repeats", ".9"], "--repeats 0.9 is not from 0 to 0.5"),
        (["--pilot", "3"], "--pilot 3 leaves none of 3 items"),
        (["--until", "2"], "--until 2 is not a half-width"),
        (["--pass", ".5"], "give both --qualification and --pass"),
        (["--gold", "{items}"], "There is no column 'gold'"),
        (["--gold", "{gold}"], "twice: give each an id of its own"),
    ],
)
def test_options_that_cannot_be_are_refused(
    tmp_path: Path, database: str, more: list[str], words: str
) -> None:
    items = write(tmp_path / "items.jsonl", pairs(3))
    gold = write(tmp_path / "gold.jsonl", pairs(1, gold="tie"))
    also = [word.format(items=items, gold=gold) for word in more]
    required = ["--items", items, "--raters-per-item", "1", "--database", database]
    done = invoke(["study", "create", "s", *required, *also])
    assert (done.returncode, words in done.stderr) == (2, True), done.stderr


def test_names_are_plain_and_new(tmp_path: Path, database: str) -> None:
    items = write(tmp_path / "items.jsonl", pairs(1))
    also = ["--items", items, "--raters-per-item", "1", "--database", database]
    assert "'../x' is not a name for a study" in invoke(["study", "create", "../x", *also]).stderr
    invoke(["study", "create", "s", *also])
    assert "There is a study 's' already" in invoke(["study", "create", "s", *also]).stderr
    shown = invoke(["study", "status", "t", "--database", database])
    assert "There is no study 't'; there are 's'." in shown.stderr


def of_model(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


def test_dialogues_and_rankings_are_items(tmp_path: Path, database: str) -> None:
    turn = {"role": "user", "content": "Hi"}
    own = [[turn, of_model(f"Hi, {n}"), turn, of_model(f"And {n}")] for n in "xy"]
    rows: list[dict[str, Any]] = [
        {"item_id": "d", "model_a": "x", "model_b": "y"}
        | {"conversation_a": own[0], "conversation_b": own[1]}
    ]
    file = write(tmp_path / "dialogues.jsonl", rows)
    also = ["--raters-per-item", "1", "--database", database]
    done = invoke(["study", "create", "dialogues", "--items", file, *also])
    assert done.returncode == 0, done.stderr
    three = [{"model": name, "text": f"By {name}"} for name in "xyz"]
    ranked = write(
        tmp_path / "ranked.jsonl",
        [{"item_id": f"r{k}", "prompt": "Hi", "responses": three} for k in range(4)],
    )
    also = ["--raters-per-item", "2", "--database", database]
    invoke(["study", "create", "ranked", "--items", ranked, *also])
    with closing(Store(database)) as store:
        with store.writing() as session:
            _, shown = studies.give(session, "dialogues", Voter("ada"), datetime.now(UTC))
            assert shown is not None
            assert [one["content"] for one in shown.messages] == ["Hi"]
            assert [len(answer) for answer in shown.answers] == [3, 3]
        for who in ("ada", "bob"):
            for minute in range(4):
                now = datetime.now(UTC) + timedelta(minutes=minute)
                with store.writing() as session:
                    _, shown = studies.give(session, "ranked", Voter(who), now)
                    assert shown is not None
                    best = [a[0]["content"] for a in shown.answers].index("By x")
                    rest = [place for place in range(3) if place != best]
                    order = [[best], rest] if minute else [[rest[0]], [best], [rest[1]]]
                    studies.rate(session, "ranked", who, shown.token, f"key-{minute}", order, now)
    to = tmp_path / "ranked.parquet"
    invoke(["study", "export", "ranked", "--to", str(to), "--database", database])
    ranked_by = ["rank", str(to), "--level", "0.8", "--format", "json"]
    board = json.loads(invoke(ranked_by).stdout)
    assert board["level"] == 0.8
    assert board["models"][0]["model"] == "x"
    assert board["rankings"] == 8
    status = invoke(["study", "status", "ranked", "--format", "json", "--database", database])
    assert json.loads(status.stdout)["rankings"] == 8


def test_who_goes_by_the_side_is_named_as_the_raters_of_the_export_are(
    tmp_path: Path, database: str
) -> None:
    items = write(tmp_path / "items.jsonl", pairs(40))
    words = ["--items", items, "--raters-per-item", "3", "--repeats", ".3", "--until", ".9"]
    invoke(["study", "create", "s", *words, "--database", database])
    with closing(Store(database)) as store:
        rate_all(store, "ada", lambda shown: "a")
        for n, who in enumerate(("bob", "eve")):
            choices = iter([["a", "b", "tie"][(n + k) % 3] for k in range(99)])
            rate_all(store, who, lambda shown, choices=choices: next(choices))  # type: ignore[misc]
        status = read_status(store, "s")
    (warning,) = status.side_warnings
    assert (warning.rater, warning.kind, warning.share.value) == ("r01", "side", 1.0)
    shown = invoke(["study", "status", "s", "--format", "json", "--database", database])
    assert json.loads(shown.stdout)["side_warnings"] == [warning.to_dict()]
    assert ": reached." in invoke(["study", "status", "s", "--database", database]).stdout
    to = tmp_path / "s.csv"
    invoke(["study", "export", "s", "--to", str(to), "--database", database])
    of_export = study_raters(to)
    assert of_export.side_warnings == status.side_warnings
    assert str(warning.sentence) in of_export.warnings
    assert of_export.alpha == status.agreement.alpha
