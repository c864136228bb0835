"""The card of an exported file: what is in it, what is not, and why."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from arena.domain.vote import SIMULATED, Policy
from judge.labels import personal
from rating import __version__
from rating.tables.escaping import in_markdown
from rating.tables.formats import write_text
from rating.tables.writing import described

UNKNOWN_LICENCE = "other"
"""What Hugging Face calls a licence that none of its names stands for."""
SIZES = ("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M", "100M<n<1B")
ABOUT = {
    "votes": (
        "Votes on blind battles between language models, one row a vote, with the "
        "hashes by which `arena verify` holds them to be the record. It holds no texts."
    ),
    "battles": (
        "Blind battles between language models, one row a battle, with prompts, both answers, "
        "what was measured on them, and the vote."
    ),
    "answers": (
        "Answers of language models in blind battles, one row an answer, with how each ended, "
        "its times and its cost."
    ),
    "models": "Models that answered in blind battles, one row a model, by names and licences.",
    "ratings": "Ratings of language models from blind votes, one row a model, with intervals.",
}
"""What is in a file, by what was exported."""
SIMULATION = "The votes are those of a program with planted tastes, not of people."


@dataclass(slots=True)
class Written:
    """What an export wrote.

    Attributes
    ----------
    rows : int
    votes : Counter of str or None
        Votes, or battles, by why they do not count; None of those that do.
    first, last : datetime or None
        When the oldest and the newest of the votes that were read were cast.
    scrubbed : Counter of str or None
        Personal pieces by kind; None where there are no texts, or they were left whole.
    method : str
        How ratings were made; empty of anything else.
    unfit : Counter of str
        Votes that count and have no row, by why the layout has none for them.
    lacks : str
        What the layout has no columns for, as a sentence; empty of our own.
    of : str
        What an export of votes is of, as a sentence; empty of anything else.
    """

    rows: int = 0
    votes: Counter[str | None] = field(default_factory=Counter)
    first: datetime | None = None
    last: datetime | None = None
    scrubbed: Counter[str] | None = None
    method: str = ""
    unfit: Counter[str] = field(default_factory=Counter)
    lacks: str = ""
    of: str = ""

    def count(self, reason: str | None, cast: datetime | None) -> None:
        """Count a vote, or a battle without one."""
        self.votes[reason] += 1
        if cast is not None:
            self.first = min(self.first or cast, cast)
            self.last = max(self.last or cast, cast)


def card_of(path: Path) -> Path:
    """Name the card of a file, or of a folder of shards, which is the README above it."""
    return path.with_name("README.md" if path.is_dir() else f"{path.name}.card.md")


def write_card(path: Path, what: str, written: Written, policy: Policy, licence: str) -> None:
    """Write the card beside a file or a folder; raises `DataError` if it cannot be written.

    Parameters
    ----------
    what : {"votes", "battles", "answers", "models", "ratings"}
    licence : str
        As Hugging Face names it.
    """
    parts = [
        _front_matter(path, what, written, licence),
        f"# {what.capitalize()} of an arena\n\n{_about(what, written, policy)}\n",
        _facts(path, written, policy, licence),
        _left_out(written),
        _texts(what, written),
    ]
    write_text("\n".join(filter(None, parts)), card_of(path))


def _about(what: str, written: Written, policy: Policy) -> str:
    simulated = SIMULATION if policy.name == SIMULATED.name else ""
    return " ".join(filter(None, [ABOUT[what], written.lacks, simulated]))


def _front_matter(path: Path, what: str, written: Written, licence: str) -> str:
    size = SIZES[min(max(len(str(written.rows)) - 3, 0), len(SIZES) - 1)]
    values = {
        "pretty_name": f"{what.capitalize()} of an arena",
        "license": licence,
        "tags": ["human-feedback", "preference", "llm-evaluation", "arena"],
        "size_categories": [size],
        **(_shards(path) if path.is_dir() else _one_file(path)),
    }
    lines = (
        f"{name}: {json.dumps(value, ensure_ascii=False)}\n" for name, value in values.items()
    )
    return f"---\n{''.join(lines)}---\n"


def _one_file(path: Path) -> dict[str, object]:
    return {"configs": [{"config_name": "default", "data_files": path.name}]}


def _shards(folder: Path) -> dict[str, object]:
    """Say what the shards of a folder hold, in the words of Hugging Face."""
    data = [{"split": "train", "path": f"{folder.name}/train-*"}]
    return {
        "dataset_info": described(sorted(folder.iterdir())),
        "configs": [{"config_name": "default", "data_files": data}],
    }


def _facts(path: Path, written: Written, policy: Policy, licence: str) -> str:
    facts = {
        "File": f"{_file_name(path)}, {written.rows:,} rows",
        "Votes cast": _dates(written),
        "Policy": f"{policy.name}. {' '.join(policy.rules)}",
        **({"Export": written.of} if written.of else {}),
        "Ratings": written.method or "none in this file",
        "Licence": (
            "not named: say under which licence others may use this file"
            if licence == UNKNOWN_LICENCE
            else licence
        ),
        "Written by": f"arena {__version__}",
    }
    return _table(("", ""), facts.items())


def _file_name(path: Path) -> str:
    if not path.is_dir():
        return path.name
    n = len([*path.iterdir()])
    return f"{path.name}/, {n:,} shard{'s' if n > 1 else ''}"


def _dates(written: Written) -> str:
    if written.first is None or written.last is None:
        return "none"
    return f"{written.first:%Y-%m-%d} to {written.last:%Y-%m-%d}, UTC"


def _left_out(written: Written) -> str:
    why = {reason: n for reason, n in written.votes.most_common() if reason is not None}
    counted = f"{written.votes[None]:,} of {written.votes.total():,} count under the policy."
    why |= {f"counts, but {reason}": n for reason, n in written.unfit.most_common()}
    if not why:
        return f"## Left out\n\nNothing: {counted}\n"
    rows = ((reason, f"{n:,}") for reason, n in why.items())
    return f"## Left out\n\n{counted}\n\n{_table(('why', 'number'), rows)}"


def _texts(what: str, written: Written) -> str:
    if what not in ("battles", "answers"):
        return ""
    if written.scrubbed is None:
        words = "Texts are whole: mail, phone numbers, keys and addresses are still in them."
        return f"## Personal data\n\n{words}\n"
    words = (
        f"Replaced in prompts and answers by rules (version {personal.VERSION}), which miss some "
        "and know no names of people; the column `scrubbed` marks the rows:"
    )
    counts: Mapping[str, int] = {kind: written.scrubbed[kind] for kind in personal.KINDS}
    rows = ((f"[{kind}]", f"{n:,}") for kind, n in counts.items())
    return f"## Personal data\n\n{words}\n\n{_table(('kind', 'pieces'), rows)}"


def _table(head: tuple[str, str], rows: Iterable[tuple[str, str]]) -> str:
    return "".join(_lines(head, rows))


def _lines(head: tuple[str, str], rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |\n| --- | --- |\n"
    for name, value in rows:
        yield f"| {in_markdown(name)} | {in_markdown(value)} |\n"
