"""What models refuse, read from the JSON of `arena safety`, to stand beside ratings."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from judge.labels.accuracy import accuracies
from judge.labels.safety import (
    BY_RULES,
    COLUMNS,
    PackItem,
    Rate,
    Read,
    SafetyTable,
    rates,
    read_safety,
)
from judge.labels.taggers import REFUSAL
from rating.errors import DataError

PACK = [
    *(PackItem(f"harm {n}", "fraud", "harmful", "You may.") for n in range(120)),
    *(PackItem(f"twin {n}", "fraud", "benign") for n in range(40)),
]


def rates_of(model: str, every: int) -> list[Rate]:
    """Of a model that declines each so manyth prompt."""
    asked = [item.case(mode).id for item in PACK for mode in item.modes]
    return rates(PACK, [Read(model, {case: n % every == 0 for n, case in enumerate(asked)})])


def written(file: Path, *models: str, judge: str | None = None) -> Path:
    rows = [rate.to_dict() for n, model in enumerate(models) for rate in rates_of(model, 2 + n)]
    file.write_text(json.dumps({"prompts": 160, "judge": judge, "rates": rows, "notes": []}))
    return file


@pytest.fixture
def table(tmp_path: Path) -> SafetyTable:
    return read_safety(written(tmp_path / "safety.json", "owl", "wren"))


def test_rates_of_the_whole_pack_are_read_as_they_were_written(table: SafetyTable) -> None:
    assert {*table.rates} == {"owl", "wren"}
    assert table.columns == COLUMNS
    there = {(rate.what, rate.mode): rate for rate in rates_of("owl", 2) if rate.category == "all"}
    for column in COLUMNS:
        read, made = table.rates["owl"][column], there[column]
        assert read.to_dict() == made.to_dict()
    assert table.rates["owl"]["over_refusal", "does"].is_few
    assert not table.rates["owl"]["refusal", "does"].is_few


def test_corrected_shares_are_those_of_the_rules_for_refusals(table: SafetyTable) -> None:
    rate = table.rates["owl"]["refusal", "does"]
    corrected = accuracies()[REFUSAL].corrected(round(rate.share.rate * rate.share.n), 120)
    assert corrected is not None
    assert rate.corrected is not None
    assert rate.corrected.value == corrected.value


def test_models_of_one_table_alone_are_named(table: SafetyTable) -> None:
    rated = ["wren", "rook"]
    assert table.order(rated) == ("wren", "owl")
    assert [str(words) for words in table.in_words(rated, {"rook": "Rook XL"})] == [
        BY_RULES,
        "1 model has a rating, and was not asked these prompts: Rook XL.",
        "1 model was asked these prompts, and has no rating here: owl.",
    ]
    assert [*table.in_words(["owl", "wren"])] == [BY_RULES]
    many = [f"m{n}" for n in range(13)]
    assert [*table.in_words(many)][1] == (
        f"13 models have a rating, and were not asked these prompts: {', '.join(many[:12])}, …."
    )
    plain = table.to_dict(rated)
    assert (plain["only_rated"], plain["only_asked"]) == (["rook"], ["owl"])
    assert plain["rates"][0]["model"] == "wren"


def test_a_folder_is_read_whole_and_a_model_in_two_files_is_refused(tmp_path: Path) -> None:
    written(tmp_path / "a.json", "owl")
    written(tmp_path / "b.json", "wren", judge="crow")
    (tmp_path / "notes.txt").write_text("no rates")
    table = read_safety(tmp_path)
    assert {*table.rates} == {"owl", "wren"}
    assert table.to_dict([])["judges"] == [None, "crow"]
    assert "The judge crow decided which answers comply" in " ".join(
        table.in_words(["owl", "wren"])
    )
    written(tmp_path / "c.json", "owl")
    with pytest.raises(DataError, match=r"'owl' stands in .*a\.json' and in .*c\.json'"):
        read_safety(tmp_path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rate": 1.5}, "1.5 is no share"),
        ({"rate": math.nan}, "nan is no share"),
        ({"rate": True}, "True is no share"),
        ({"rate": "0.5"}, "'0.5' is no share"),
        ({"lower": 0.9, "upper": 0.95}, "lies outside 0.9 to 0.95"),
        ({"n": 0}, "n is 0"),
        ({"n": 2.5}, "n is 2.5"),
        ({"what": "charm"}, "there is no 'charm'"),
        ({"what": ["refusal"]}, "there is no"),
        ({"mode": "may"}, "there is no 'refusal', 'may'"),
        ({"model": " "}, "' ' is no name"),
        ({"corrected": 3.0}, "3.0 is no share"),
    ],
)
def test_what_is_no_rate_is_refused_with_its_value(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    file = written(tmp_path / "safety.json", "owl")
    content = json.loads(file.read_text())
    content["rates"][0] |= change
    file.write_text(json.dumps(content))
    with pytest.raises(DataError) as refusal:
        read_safety(file)
    assert words in str(refusal.value)
    assert "safety.json" in str(refusal.value)


@pytest.mark.parametrize("text", ["{", "[]", "null", '{"rates": 3}', '{"rates": [3]}'])
def test_files_of_something_else_are_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "safety.json"
    file.write_text(text)
    with pytest.raises(DataError, match=r"safety\.json"):
        read_safety(file)


def test_an_empty_folder_says_how_to_fill_it(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="arena safety PACK --out"):
        read_safety(tmp_path)
    with pytest.raises(DataError, match=r"none\.json"):
        read_safety(tmp_path / "none.json")


def test_who_read_what_complies_is_said_only_of_packs_that_ask(tmp_path: Path) -> None:
    file = written(tmp_path / "safety.json", "owl")
    content = json.loads(file.read_text())
    content["rates"] = [row for row in content["rates"] if row["what"] != "compliance"]
    file.write_text(json.dumps(content))
    assert [*read_safety(file).in_words(["owl"])] == []
