"""Methods of judging, each a file: how it asks, and how it reads."""

from pathlib import Path

from judge.methods.file import (
    ENDING,
    FileMethod,
    margined,
    published,
    read_method,
    unanswered,
    written,
)
from rating.errors import DataError

__all__ = [
    "PAIRS",
    "PUBLISHED",
    "SINGLES",
    "WRITER",
    "FileMethod",
    "margined",
    "method",
    "method_file",
    "published",
    "unanswered",
    "written",
]

PAIRS = (
    "pairwise",
    "alpaca_eval",
    "alpaca_eval_sampled",
    "alpaca_eval_verbal",
    "arena_hard",
    "wildbench_reward",
    "mt_bench_pairs",
)
"""Published methods that compare two responses."""
SINGLES = ("wildbench_score", "rubric", "checklist", "mt_bench")
"""Those that look at one."""
PUBLISHED = (*PAIRS, *SINGLES)
WRITER = "checklist_writer"
"""Writes the checklist of a prompt.

Give it `unanswered` cases: those of one prompt are one case, so its checklist is written and paid
for once, and recalled from the journal ever after.
"""


def method_file(name: str) -> FileMethod:
    """Return a method as its file says it, before any rubric.

    Parameters
    ----------
    name : str
        One of `PAIRS` and `SINGLES`; or a path that ends in ``.toml``.

    Raises
    ------
    DataError
        If there is no such method, or its file is malformed.
    """
    if name.endswith(ENDING):
        return read_method(Path(name), (*PUBLISHED, WRITER))
    if name in PUBLISHED:
        return published(name)
    raise DataError(
        f"There is no method {name!r} to run: choose one of {', '.join(PUBLISHED)}, or give a "
        f"file of your own that ends in {ENDING}."
    )


def method(
    name: str, *, rubric: str | None = None, scale: tuple[int, int] | None = None
) -> FileMethod:
    """Return a published method by name, or a method file by path.

    Parameters
    ----------
    name : str
        As `method_file` takes it.
    rubric : str or None
        What the marks stand for, with methods that show it.
    scale : (int, int) or None
        Lowest and highest mark in place of the file's, with methods that show it.

    Raises
    ------
    DataError
        If there is no such method, its file is malformed, or a rubric is missing or has no use.
    """
    chosen = method_file(name)
    if rubric is None and "rubric" in chosen.fields:
        msg = f"The method {chosen.name} needs a rubric: state what the marks stand for."
        raise DataError(msg)
    return chosen.with_rubric(rubric, scale)
