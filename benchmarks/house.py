"""How large the house is, and how many of its rooms a journey runs through.

``python -m benchmarks.house`` prints a table: files and lines, what `arena rate` and `arena judge
run` run through, chains of imports, names that stand twice, and processor time. ``--json`` prints
the same for other programs. It is also run on other commits: it asks nothing of the product but
its commands.
"""

import argparse
import ast
import json
import os
import random
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import tokenize
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType

import grimp

HOUSES = ("rating", "judge", "arena")
ROOT = Path(__file__).resolve().parent.parent
RUNS = 5
"""How often a command is run for its processor time."""

VOTES = 5000
MODELS = ("ada", "bob", "cleo", "dora")
PAIRS = (
    "id,prompt,model_a,model_b,response_a,response_b\n"
    "1,What is 2 + 2?,ada,bob,It is 4.,It is 5.\n"
    "2,Name a colour.,bob,ada,Red.,Green is a colour.\n"
)


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of Python by what stands on them; a line with code and a comment is code."""

    files: int
    code: int
    docstrings: int
    comments: int
    blank: int

    @property
    def all(self) -> int:
        return self.code + self.docstrings + self.comments + self.blank


@dataclass(frozen=True, slots=True)
class Journey:
    """What a command runs through once everything is imported.

    Attributes
    ----------
    functions : int
        Those that have a name.
    moves : int
        Calls of one file's functions by another's, straight or through a library.
    """

    files: int
    functions: int
    moves: int


def count_lines(files: Sequence[Path]) -> Lines:
    """Count the lines of some files."""
    code = docs = comments = blank = 0
    for path in files:
        text = path.read_text(encoding="utf-8")
        documented = set(_docstring_lines(ast.parse(text)))
        coded = set(_code_lines(path)) - documented
        for number, line in enumerate(text.splitlines(), 1):
            docs += number in documented
            code += number in coded
            if number not in documented | coded:
                blank, comments = blank + (not line.strip()), comments + bool(line.strip())
    return Lines(len(files), code, docs, comments, blank)


def _docstring_lines(tree: ast.Module) -> Iterator[int]:
    """Give the lines of every string that stands alone: docstrings of attributes with them."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _code_lines(path: Path) -> Iterator[int]:
    silent = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    with tokenize.open(path) as file:
        for token in tokenize.generate_tokens(file.readline):
            if token.type not in silent and token.type != tokenize.ENDMARKER:
                yield from range(token.start[0], token.end[0] + 1)


def product_files(root: Path) -> list[Path]:
    return sorted(path for house in HOUSES for path in (root / house).rglob("*.py"))


def longest_chain(root: Path) -> tuple[str, ...]:
    """Give a longest chain of modules in which each imports the next."""
    sys.path.insert(0, str(root))
    graph = grimp.build_graph(*HOUSES, cache_dir=None)

    @cache
    def chain(module: str) -> tuple[str, ...]:
        below = map(chain, sorted(graph.find_modules_directly_imported_by(module)))
        return (module, *max(below, key=len, default=()))

    return max(map(chain, sorted(graph.modules)), key=len)


def shared_names(files: Sequence[Path]) -> tuple[int, int]:
    """Count the files that have a name in common with another, and those names."""
    names = Counter(path.name for path in files if path.name != "__init__.py")
    shared = [count for count in names.values() if count > 1]
    return sum(shared), len(shared)


def array_aliases(files: Sequence[Path]) -> int:
    """Count the files that give a type of arrays a name of their own."""
    alias = re.compile(r"^\w+(: TypeAlias)? = (np\.|npt\.)?(ndarray|NDArray)\[", re.MULTILINE)
    return sum(bool(alias.search(path.read_text(encoding="utf-8"))) for path in files)


class Tracer:
    """Notes which functions of the product call which, also through libraries and threads."""

    def __init__(self, root: Path) -> None:
        self._prefixes = tuple(f"{root / house}{os.sep}" for house in HOUSES)
        self._functions: set[CodeType] = set()
        self._moves = 0

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event != "call" or not self._is_ours(code):
            return
        self._functions.add(code)
        caller = frame.f_back
        while caller is not None and not self._is_ours(caller.f_code):
            caller = caller.f_back
        self._moves += caller is not None and caller.f_code.co_filename != code.co_filename

    def _is_ours(self, code: CodeType) -> bool:
        return bool(code.co_flags & CO_OPTIMIZED) and code.co_filename.startswith(self._prefixes)

    def journey(self) -> Journey:
        files = {code.co_filename for code in self._functions}
        named = [code for code in self._functions if not code.co_name.startswith("<")]
        return Journey(len(files), len(named), self._moves)


def run_traced(commands: Sequence[Sequence[str]]) -> Journey:
    """Run commands in this process, and trace the last one: those before it import everything."""
    from arena.cli import main as arena

    tracer = Tracer(ROOT)
    for number, words in enumerate(commands, 1):
        sys.argv = ["arena", *words]
        if number == len(commands):
            threading.setprofile(tracer)
            sys.setprofile(tracer)
        try:
            arena()
        except SystemExit as end:
            if end.code:
                raise
    sys.setprofile(None)
    return tracer.journey()


def trace(folder: Path, *commands: Sequence[str]) -> Journey:
    """Trace the last of some commands in a process of its own."""
    asked = json.dumps([list(map(str, words)) for words in commands])
    traced = subprocess.run(
        [sys.executable, "-m", "benchmarks.house", "--trace", asked],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return Journey(**json.loads(traced.stdout.splitlines()[-1]))


def processor_s(folder: Path, *words: str) -> float:
    """Measure the processor time of a command, user and system: the median of some runs."""
    times = []
    for _ in range(RUNS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *words], cwd=folder, stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(times)


def write_votes(path: Path) -> None:
    """Write votes of which each side wins as often as a seed says."""
    rng = random.Random(1)
    rows = ["model_a,model_b,winner,voter"]
    for n in range(VOTES):
        a, b = rng.sample(MODELS, 2)
        rows.append(f"{a},{b},{rng.choice(['model_a', 'model_b', 'tie'])},voter {n % 100}")
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")


def measure() -> dict[str, str]:
    """Measure the house; gives the rows of the table."""
    product, tests = product_files(ROOT), sorted((ROOT / "tests").rglob("*.py"))
    lines, tested = count_lines(product), count_lines(tests)
    files, names = shared_names(product)
    chain = longest_chain(ROOT)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_votes(folder / "votes.csv")
        (folder / "pairs.csv").write_text(PAIRS, encoding="utf-8")
        rate = trace(folder, ["rate", "votes.csv"], ["rate", "votes.csv"])
        judge = trace(folder, _judged("first"), _judged("second"))
        arena = ["-c", "from arena.cli import main; main()"]
        seconds = {
            "`arena --help`": processor_s(folder, *arena, "--help"),
            f"`arena rate` of {VOTES:,} votes": processor_s(folder, *arena, "rate", "votes.csv"),
            "`import rating`": processor_s(folder, "-c", "import rating"),
            "`import judge`": processor_s(folder, "-c", "import judge"),
        }
    return {
        "product files": f"{lines.files:,}",
        "lines of code": f"{lines.code:,}",
        "lines of docstrings": f"{lines.docstrings:,}",
        "comments and blank lines": f"{lines.comments + lines.blank:,}",
        "all lines": f"{lines.all:,}",
        "test files": f"{tested.files:,}",
        "lines of tests, code": f"{tested.code:,}",
        "lines of tests, all": f"{tested.all:,}",
        "files (functions, moves) of `arena rate`": _shown(rate),
        "files (functions, moves) of `arena judge run`": _shown(judge),
        "longest chain of imports": f"{len(chain)}: {', '.join(chain)}",
        "files that share their name": f"{files} ({names} names)",
        "files with array aliases": f"{array_aliases(product)}",
        **{f"processor time, {what}": f"{s:.2f} s" for what, s in seconds.items()},
    }


def _judged(name: str) -> list[str]:
    asked = ["judge", "run", "--method", "pairwise", "--judge", "pocket-judge"]
    out = ["--out", f"{name}.csv", "--database", f"sqlite:///{name}.db"]
    return [*asked, "--cases", "pairs.csv", *out]


def _shown(journey: Journey) -> str:
    return f"{journey.files} ({journey.functions}, {journey.moves})"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--trace", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.trace:
        print("\n" + json.dumps(asdict(run_traced(json.loads(options.trace)))))
        return
    rows = measure()
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    print("| measure | |\n|---|---|")
    print("\n".join(f"| {name} | {value} |" for name, value in rows.items()))


if __name__ == "__main__":
    main()
