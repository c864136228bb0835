"""What each command says of each peer's format: docs/reference/formats.md has it in a table."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from judge.probe.cards import read_material
from judge.probe.verdicts import probe_judges
from judge.scoring.annotated import METHODS, judge_score
from judge.studies.rows import read_rows
from judge.tables.cases import read_cases, read_responses
from rating.errors import RatingError
from rating.tables.counts import read_votes
from rating.tables.peers import noticing
from tests.command import Command
from tests.rating.tables.peer_rows import ARENA, FILES, REFUSED, Row, of_bench, written

DOCUMENT = Path(__file__).parents[2] / "docs" / "reference" / "formats.md"
BENCH = [{**of_bench("x", "y", "tie", 1, "gpt-4"), "question_id": question} for question in (1, 2)]
ROWS: Mapping[str, tuple[str, Sequence[Row]]] = {
    **{known: (name, rows) for name, (known, rows, _, _) in FILES.items()},
    **{known: (name, [row]) for name, (known, row) in REFUSED.items()},
    "MT-bench judgements": ("bench.jsonl", BENCH),
}
COMMANDS: Mapping[str, Mapping[str, Callable[[Path], object]]] = {
    "rate": {"": read_votes},
    "judge score": {
        f"`--method {method}`": partial(judge_score, method=method) for method in METHODS
    },
    "judge run": {
        "pairs": lambda path: read_cases([path]),
        "single answers": lambda path: read_responses([path]),
    },
    "study": {"": lambda path: read_rows(str(path), unparsed=True)},
    "probe": {
        "`probe board`": read_votes,
        "`probe judge`": lambda path: probe_judges([path], seed=0),
        "`probe similarity`": lambda path: read_material([path]),
    },
}
"""What reads a file for each command, by how it is asked to."""


def cell(ways: Mapping[str, Callable[[Path], object]], known: str, path: Path) -> str:
    """Say as what a file is read, and in which ways; or the last refusal."""
    words: list[str] = []
    takes, refusal = [], ""
    for way, read in ways.items():
        try:
            with noticing(words.append):
                read(path)
            takes.append(way)
        except RatingError as error:
            refusal = str(error)
    if not takes:
        start = f"{str(path)!r} is in the format {known}, "
        assert refusal.startswith(start)
        return f"refused: {refusal.removeprefix(start)}"
    lines = [line for line in words if " is read as " in line]
    assert {line.split(" is read as ")[1].split(";")[0] for line in lines} <= {known}
    return f"read as {known}" + (f": {', '.join(takes)}" if any(takes) else "")


def page(folder: Path) -> str:
    text = DOCUMENT.read_text(encoding="utf-8")
    lines = [text.split("\n| format |")[0].rstrip(), ""]
    lines += ["| format | " + " | ".join(f"`{name}`" for name in COMMANDS) + " |"]
    lines += ["|---" * (len(COMMANDS) + 1) + "|"]
    for known, (name, rows) in ROWS.items():
        path = written(folder, name, rows)
        cells = [cell(ways, known, path) for ways in COMMANDS.values()]
        lines.append(f"| {known} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def test_the_document_says_what_the_commands_do(tmp_path: Path) -> None:
    """Write the table again where it differs: what changed is then seen in the document."""
    now, before = page(tmp_path), DOCUMENT.read_text(encoding="utf-8")
    if now != before:
        DOCUMENT.write_text(now, encoding="utf-8")
    assert now == before


def test_the_first_line_of_a_rating_says_as_what_the_file_is_read(
    tmp_path: Path, command: Command
) -> None:
    written(tmp_path, "arena.json", [*ARENA, *ARENA])
    done = command("rate", "arena.json", "--format", "json")
    assert done.returncode == 0
    first, repeats = done.stderr.splitlines()
    assert first == "arena: arena.json is read as Chatbot Arena; rows excluded: 2 not anonymous"
    assert repeats.startswith("arena: arena.json: 3 rows repeat an earlier one in question_id, ")


def test_a_score_and_a_study_say_as_what_their_files_are_read(
    tmp_path: Path, command: Command
) -> None:
    bench = "is read as MT-bench judgements; rows excluded: none"
    for name in ("people.jsonl", "judge.jsonl"):
        written(tmp_path, name, FILES["bench.jsonl"][1])
    study = command("study", "judge", "people.jsonl", "judge.jsonl", "--out", "report")
    assert study.stderr.splitlines() == [
        f"arena: {n} {bench}" for n in ("people.jsonl", "judge.jsonl")
    ]
    score = command("judge", "score", "judge.jsonl", "--method", "pairwise")
    assert score.stderr.splitlines() == [f"arena: judge.jsonl {bench}"]
