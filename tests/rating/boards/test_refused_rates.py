"""`arena rate`: what is refused, with the value and what to do."""

from pathlib import Path
from typing import Any

import pytest

from tests.command import invoke
from tests.command import refused as is_one_line
from tests.rating.boards.rated import PAIRS, Write, crowd, refused


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"reference": "w"}, ["reference 'w'", "'x', 'y', 'z'"]),
        ({"anchor": ("w", 1.0)}, ["anchor 'w'", "'x', 'y', 'z'"]),
        ({"by": "topic"}, ["no column 'topic'", "'winner'"]),
        ({"style": ("length",)}, ["no column 'length'"]),
        ({"weights": "times"}, ["no column 'times'"]),
        ({"weights": "sampling"}, ["'pair_probability'"]),
        ({"style": ("log2:length",)}, ["no column 'length_a'"]),
        ({"half_life": 7.0}, ["No column 'ts'", "--column time=NAME"]),
        ({"columns": (("voter", "who"),)}, ["no column 'who'"]),
        ({"columns": (("judge", "who"),)}, ["no role 'judge'", "voter, prompt, time"]),
        ({"columns": (("voter", "a"), ("voter", "b"))}, ["voter is named twice", "'a' and 'b'"]),
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


def test_every_error_of_the_command_is_one_clear_line(write: Write, tmp_path: Path) -> None:
    source = write(PAIRS)
    for words, reason in [
        (["--ties", "win"], '"win" for --ties'),
        (["--both-bad", "win"], '"win" for --both-bad'),
        (["--interval", "wide"], '"wide" for --interval'),
        (["--cluster", "team"], '"team" for --cluster'),
        (["--ties", "grounded"], "not both_bad 'tie'"), (["--ridge", "-1"], "not -1.0"),
        (["--rounds", "0"], "not 0"),
        (["--interval", "bootstrap", "--rounds", "99"], "100 or more for an interval, not 99"),
        (["--seed", "-1"], "not -1"), (["--level", "95"], "not 95.0"),
        (["--scale", "0"], "not 0.0"),
        (["--mean", "nan"], "--mean: 'nan' is no finite number"),
        (["--anchor", "x"], "'x'"), (["--rounds", "1.5"], "--rounds: '1.5'"),
        (["--level", "high"], 'unable to convert "high"'),
        (["--half-life", "none"], 'unable to convert "none"'),
        (["--no-order-effect"], "Unknown option: --no-order-effect"),
        (["--since", "noon"], "--since: cannot read 'noon'"),
        (["--until", "2026-02-30"], "--until: cannot read '2026-02-30'"),
        (["--since", "2026-02-01", "--until", "2026-02-01"], "since must lie before until"),
        (["--half-life", "0"], "not 0.0"),
        (["--half-life", "7", "--interval", "hessian"], "half_life 7"),
        (["--weights", "sampling", "--interval", "profile"], "weights sampling"),
        (["--column", "voter"], "'voter'"), (["--column", "=who"], "'=who'"),
        (["--anchor", "x=1", "--mean", "2"], "mean 2"),
        (["--interval", "hessian", "--cluster", "voter"], "'voter'"),
        (["--interval", "bootstrap", "--cluster", "both"], "'both'"),
        (["--interval", "profile", "--reference", "x"], "'x'"),
        (["--format", "xml"], '"xml" for --format'), (["--format", "parquet"], "--out"),
        (["--out", "board.doc"], "'board.doc'"),
        (["--out", str(tmp_path / "no" / "b.json")], "folder does not exist"),
        (["--compare", "old.json"], "'old.json'"), (["--compare", source], "is not JSON"),
    ]:  # fmt: skip
        is_one_line(invoke(["rate", source, *words]), reason)
