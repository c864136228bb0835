"""Difficulties and gamed baselines: ours, AlpacaEval's own files, and under a bench's names."""

import hashlib
import math
from pathlib import Path

import pytest

from judge.case import Message
from judge.tables.items import Item, of_items, read_difficulties, read_regularisation
from rating.errors import DataError

ITEMS = [
    Item(id=f"i{n}", prompt=(Message("user", text),))
    for n, text in enumerate(["What is lava?", "Who was first?", "Say it in verse."])
]


def written(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def sha(n: int) -> str:
    return hashlib.sha256(ITEMS[n].text.encode()).hexdigest()[:16]


def test_alpaca_evals_own_files_are_read_as_they_are(tmp_path: Path) -> None:
    difficulties = written(tmp_path / "d.csv", "index,instruction_difficulty", "0,-1.5", "1,0.25")
    table = read_difficulties(difficulties)
    assert table.texts("idx") == ["0", "1"]
    assert table.numbers("difficulty").tolist() == [-1.5, 0.25]
    gamed = written(
        tmp_path / "g.csv",
        "preference,index,std_delta_len,instruction_difficulty,not_gamed_baseline,model",
        "0.75,1,-0.5,0.25,False,verbose",
    )
    block = read_regularisation(gamed)
    row = {name: block.numbers(name)[0] for name in ("pseudo_y", "x_len", "weight")}
    assert row == {"pseudo_y": 0.75, "x_len": pytest.approx(math.tanh(-0.5)), "weight": 0.1}


@pytest.mark.parametrize(
    "lines",
    [
        ["idx,difficulty,instruction", *(f"{n},{n},{one.text}" for n, one in enumerate(ITEMS))],
        ["difficulty,instruction", *(f"{n},{one.text}" for n, one in enumerate(ITEMS))],
        ["idx,difficulty,instruction_sha256", *(f"9{n},{n},{sha(n)}" for n in range(3))],
        ["idx,difficulty", *(f"{one.id},{n}" for n, one in enumerate(ITEMS))],
        ["index,instruction_difficulty", *(f"{n},{n}" for n in range(3))],
    ],
)  # fmt: skip
def test_instructions_are_known_by_text_hash_name_or_place(
    tmp_path: Path, lines: list[str]
) -> None:
    table, block = of_items(read_difficulties(written(tmp_path / "d.csv", *lines)), None, ITEMS)
    assert dict(zip(table.texts("idx"), table.numbers("difficulty"), strict=True)) == {
        "i0": 0.0,
        "i1": 1.0,
        "i2": 2.0,
    }
    assert block is None


def test_gamed_rows_go_by_the_names_that_difficulties_get(tmp_path: Path) -> None:
    lines = [f"{n},{n},{one.text}" for n, one in enumerate(ITEMS)]
    more = written(tmp_path / "d.csv", "idx,difficulty,instruction", *lines, "3,3,Another one.")
    gamed = written(tmp_path / "g.csv", "idx,x_len,pseudo_y,weight", "2,0,1,1", "3,0,1,1")
    table, block = of_items(read_difficulties(more), read_regularisation(gamed), ITEMS)
    assert block is not None
    assert block.texts("idx") == ["i2", "3"], "an instruction that no item has holds its own"
    assert table.texts("idx")[-1] == "3"


def test_a_place_is_none_where_not_every_item_has_a_row(tmp_path: Path) -> None:
    """Of 805 difficulties, those of a handful of instructions would go to the wrong ones."""
    lines = ["index,instruction_difficulty", *(f"{n},{n}" for n in range(805))]
    file = read_difficulties(written(tmp_path / "d.csv", *lines))
    with pytest.raises(DataError, match="difficulty of none of the 3 items"):
        of_items(file, None, ITEMS)
