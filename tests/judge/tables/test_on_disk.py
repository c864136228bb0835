"""Cases wait on disk, files are read in pieces, and a run holds a hundred bytes a call."""

import gc
import json
import tracemalloc
from collections.abc import Collection, Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.calls import Key
from judge.case import Case, Message
from judge.completion import Reply, Request
from judge.errors import FailureClass
from judge.grammar import Reading
from judge.methods import method
from judge.tables import annotations
from judge.tables.cases import NamedCase, bare, each_pair, on_disk, read_cases
from judge.verdict import by_case
from rating.errors import DataError
from tests.judge.runs import judge
from tests.judge.scripted import MemoryJournal, case, cases, judged

TEXT = st.text()
CASE = st.builds(
    Case,
    st.lists(st.builds(Message, st.sampled_from(["system", "assistant"]), TEXT), max_size=2).map(
        lambda turns: (*turns, Message("user", "?"))
    ),
    TEXT,
    st.none() | TEXT,
    reference=st.none() | TEXT,
)
NAMED = st.builds(
    NamedCase,
    TEXT,
    TEXT,
    TEXT,
    st.none() | TEXT,
    CASE,
    st.none() | TEXT,
    st.lists(TEXT).map(tuple),
)


class Forgetful(MemoryJournal):
    """A journal that keeps nothing, so that what a run holds is the run's own."""

    async def keep(self, key: Key, request: Request, reply: Reply) -> None:
        await self.release([key])

    async def note(self, parser: str, readings: Mapping[Key, Reading | FailureClass]) -> None:
        pass

    async def claim(self, keys: Collection[Key]) -> frozenset[Key]:
        return frozenset(keys)


@given(st.lists(NAMED, max_size=5))
@settings(deadline=None)
def test_cases_come_back_from_disk_as_they_were(some: list[NamedCase]) -> None:
    stored = on_disk(iter(some))
    assert [*stored] == some
    assert [*bare(stored)] == [named.case for named in some]
    assert stored[-2:] == some[-2:]
    assert [stored[-1 - at] for at in range(len(some))] == some[::-1]


def pairs_file(folder: Path, n: int, ending: str, *last: dict[str, object]) -> Path:
    rows: list[dict[str, object]] = [
        {"prompt": f"{i}?", "response_a": f"{i}.", "response_b": "No."} for i in range(n)
    ]
    path = folder / f"pairs.{ending}"
    rows += last
    if ending == "csv":
        lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
        path.write_text("\n".join(lines), encoding="utf-8")
    else:
        path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_file_gives_the_same_cases_in_pieces_and_names_the_row_that_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    path = pairs_file(tmp_path, 7, ending)
    whole = read_cases([path])
    monkeypatch.setattr(annotations, "PIECE", 3)
    in_pieces = [*each_pair([path])]
    assert in_pieces == whole
    assert [one.case.response_a for one in in_pieces] == [f"{i}." for i in range(7)]


def test_a_value_in_a_later_piece_is_quoted_with_its_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(annotations, "PIECE", 3)
    bad: dict[str, object] = {"prompt": "x?", "response_a": 5, "response_b": "No."}
    path = pairs_file(tmp_path, 7, "jsonl", bad)
    with pytest.raises(DataError, match=r"Row 8 of .* has response_a 5: give a text"):
        [*each_pair([path])]
    path.write_text('{"prompt": "a?", "response_a": "b"}\n{"prompt"', encoding="utf-8")
    with pytest.raises(DataError, match="Line 2"):
        [*each_pair([path])]
    path.write_bytes(b'{"prompt": "a?"}\n{"prompt": "\xff"}\n')
    with pytest.raises(DataError, match=r"Line 2 .* is not UTF-8 \(byte 0xff\)"):
        [*each_pair([path])]


async def held(n: int) -> int:
    stored = on_disk(NamedCase("b", "p", "basalt", "flint", one) for one in cases(n))
    tracemalloc.start()
    run = await judged(
        bare(stored),
        method("pairwise"),
        judge(latency_s=0.001),
        Forgetful(),
        progress=lambda _: None,
    )
    gc.collect()  # cycles go by themselves, 50,000 objects at a time
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(run.judged) == 2 * n
    assert {row.status for row in run.judged} == {"read"}
    assert all(len(row.keys) == 1 for row in run.judged)
    return size


@pytest.mark.slow
async def test_what_a_run_holds_grows_by_a_hundred_bytes_a_call() -> None:
    await held(50)  # what is loaded at the first
    few, many = await held(200), await held(1200)
    assert (many - few) / 2000 < 150


async def test_a_case_that_comes_twice_is_asked_once_and_stands_in_both_rows() -> None:
    asked = [case(1), case(2), case(1)]
    run = await judged(asked, method("pairwise"), judge(), MemoryJournal())
    assert [len(rows) for rows in by_case(run.judged)] == [2, 2]
    assert run.judged[-1] == run.judged[3]
    with pytest.raises(IndexError):
        run.judged[4]
