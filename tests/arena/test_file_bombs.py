"""Small files that unpack to gigabytes: a command refuses each in a sentence, in little memory."""

from pathlib import Path

import pytest

from tests import file_bombs
from tests.file_bombs import OTHERS, READ_OTHERS, READ_TABLES, RECORDS, TABLES, VERIFY, WITHIN

MOST_MB = 400


def held_small(folder: Path, what: str, words: tuple[str, ...], *, refuses: bool = True) -> None:
    name, make = (TABLES | WITHIN | RECORDS | OTHERS)[what]
    file_bombs.given(folder, name, make)
    ended = file_bombs.measured(folder, *(word.format(name) for word in words))
    lines = [line for line in ended.stderr.splitlines() if line.startswith("arena: ")]
    assert ended.peak_mb < MOST_MB, (words, ended)
    assert "Traceback" not in ended.stderr, (words, ended)
    if refuses:
        assert (ended.code, len(lines)) == (2, 1), (words, ended)
        assert name in lines[0], (words, ended)
        assert len(lines[0]) < 500, (words, ended)


QUICK = {
    "an export, a text of 1 MB in 13,000 rows": VERIFY[0],
    "an export, a list of 2^28 values": VERIFY[0],
    "Parquet, a name of 1 MB in 13,000 rows": READ_TABLES[0],
    "Parquet, a billion rows": READ_TABLES[0],
    "Parquet, a list of 13,000 texts of 1 MB": READ_TABLES[1],
    "Parquet, lists of 2^28 values": READ_TABLES[1],
    "Parquet, a text of 1 MB in 13,000 rows": READ_TABLES[3],
    "Parquet, 20,000 columns": READ_TABLES[0],
    "JSON in gzip, 64 MB of empty lists": READ_TABLES[0],
    "JSON lines, 900 lists deep": READ_TABLES[1],
    "CSV in gzip, 2,000 lines of 1 MB": READ_TABLES[0],
    "Inspect's log, a header of 1 GB": READ_TABLES[1],
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("what", QUICK)
def test_a_command_refuses_a_bomb_in_a_sentence_and_little_memory(
    tmp_path: Path, what: str
) -> None:
    held_small(tmp_path, what, QUICK[what])


@pytest.mark.slow
@pytest.mark.parametrize("words", READ_TABLES, ids=lambda words: " ".join(words[:2]))
@pytest.mark.parametrize("what", [*TABLES, *WITHIN])
def test_no_table_beyond_or_just_within_the_limits_exhausts_a_command_that_reads_one(
    tmp_path: Path, what: str, words: tuple[str, ...]
) -> None:
    held_small(tmp_path, what, words, refuses=what in TABLES and words == READ_TABLES[1])


@pytest.mark.slow
@pytest.mark.parametrize("what", RECORDS)
def test_no_export_exhausts_arena_verify(tmp_path: Path, what: str) -> None:
    held_small(tmp_path, what, VERIFY[0])


@pytest.mark.sampled(6)
@pytest.mark.parametrize("words", READ_OTHERS, ids=lambda words: " ".join(words[:2]))
@pytest.mark.parametrize("what", OTHERS)
def test_no_roster_method_or_board_exhausts_a_command(
    tmp_path: Path, what: str, words: tuple[str, ...]
) -> None:
    held_small(tmp_path, what, words)
