"""How large the product is, and how many of its files a task runs through.

``python -m benchmarks.structure`` prints a table, each measure with the rule by which it is
counted. ``--json`` prints the same for other programs; ``--quick`` omits what runs commands.
``--check`` compares the counts with `LIMITS` and exits with 1 where one is above its limit.
It can also measure another checkout (``--root``), as far as nothing is run.
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
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType

import grimp

VOTES = 5000
MODELS = ("ada", "bob", "cleo", "dora")
ITEMS = 42
LOGGED = 60
BOARD = "leaderboard"
PACKAGES = ("rating", "judge", "arena")
LIMITS = {
    "product code lines": 72_014,
    "product files": 240,
    "dataclasses": 499,
    "public names": 2_251,
    "public, used by no other module": 395,
    "public, used by one other module": 1_086,
    "private helpers called once": 1_552,
    "class names that occur 2 to 5 times": 57,
    "file names that occur more than once": 19,
    "types that hold rows of votes": 6,
    "files with model_a": 14,
    "files with the orders ab and ba": 3,
    "import contracts": 10,
    "modules in import cycles": 0,
    "longest chain of imports": 31,
    "test code lines": 81_653,
}
"""The most of each: what comes in is paid for by what goes out. Lower them with the counts."""
WANTED = {
    "product code lines": (
        "66,000",
        "copies, wrappers and dead code are gone, rules are in TOML; a further cut ends a feature",
    ),
    "dataclasses per 1,000 lines": ("7", ""),
    "public names per 1,000 lines": (
        "26",
        "bodies and handlers of HTTP, commands, and result types of the Python API are public",
    ),
    "public, used by no other module": (
        "150",
        "entry points: commands, HTTP bodies, Python API, and functions with tests of their own",
    ),
    "public, used by one other module": (
        "600",
        "a step of a pipeline has one caller; merged files would be longer, not simpler",
    ),
    "private helpers called once": (
        "900",
        "a helper that names a step stays where a comment would have to take its place",
    ),
    "class names that occur 2 to 5 times": (
        "15",
        "bodies of HTTP and private result types, each in the module that its name belongs to",
    ),
    "file names that occur more than once": (
        "12",
        "one concept in several packages: arena/api/battles.py, arena/store/battles.py",
    ),
    "test code lines": ("58,000", "every fault that was planted and not caught has a test now"),
    f"`arena rate` of {VOTES:,} votes": ("22 files, 120 moves", "one call for each stage"),
    "`arena judge run`, moves per reply": (
        "20",
        "a row is made again at each access, so that a million fit in memory",
    ),
    f"`arena study judge` of {ITEMS} items": ("35 files, 600 moves", "one call for each figure"),
    f"leaderboard made at vote {LOGGED}": ("28 files, 600 moves", "one call for each stage"),
    f"processor time, `arena rate` of {VOTES:,} votes": ("0.45 s", ""),
}
"""Of some measures what was wanted, and where it is not reached, why the value stays."""
ROOT = Path(__file__).resolve().parent.parent
MODEL_A = re.compile(r"model_a\b")
RUNS = 5
"""How often a command is run for its processor time."""


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

    def __str__(self) -> str:
        return f"{self.files}; {self.functions}; {self.moves:,}"


class Module:
    """A file of Python: its syntax, and its lines by what is on them."""

    def __init__(self, path: Path) -> None:
        text = path.read_text(encoding="utf-8")
        self.path, self.lines = path, text.splitlines()
        self.tree = ast.parse(text)
        self.nodes = [*ast.walk(self.tree)]
        self.documented = {
            line
            for node in self.nodes
            if isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
        }
        silent = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT}
        silent |= {tokenize.DEDENT, tokenize.ENDMARKER}
        tokens = tokenize.generate_tokens(iter([f"{line}\n" for line in self.lines]).__next__)
        spans = [(one.start[0], one.end[0]) for one in tokens if one.type not in silent]
        coded = {line for begin, end in spans for line in range(begin, end + 1)}
        self.coded = coded - self.documented

    @property
    def code(self) -> str:
        """The file without docstrings, comments and blank lines."""
        return "\n".join(self.lines[line - 1] for line in sorted(self.coded))


def product_files(root: Path) -> list[Path]:
    return sorted(path for name in PACKAGES for path in (root / name).rglob("*.py"))


class Imports:
    """The graph of imports between the product's modules."""

    def __init__(self, root: Path) -> None:
        sys.path.insert(0, str(root))
        self._graph = graph = grimp.build_graph(*PACKAGES, cache_dir=None)
        below = {one: graph.find_modules_directly_imported_by(one) for one in graph.modules}
        reached = {one: graph.find_upstream_modules(one) for one in graph.modules}
        self.in_cycles = {a for a, direct in below.items() if any(a in reached[b] for b in direct)}
        """Modules that reach themselves by imports."""

    def longest(self) -> tuple[str, ...]:
        """Give a longest chain of modules in which each imports the next; a cycle ends one."""

        @cache
        def chain(module: str) -> tuple[str, ...]:
            if module in self.in_cycles:
                return (module,)
            below = map(chain, sorted(self._graph.find_modules_directly_imported_by(module)))
            return (module, *max(below, key=len, default=()))

        return max(map(chain, sorted(self._graph.modules)), key=len)


class Source:
    """The product's modules, and which of their names others use."""

    def __init__(self, root: Path) -> None:
        self.modules: dict[str, Module] = {}
        for path in product_files(root):
            parts = path.relative_to(root).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            self.modules[name] = Module(path)
        self._exported: dict[tuple[str, str], tuple[str, str]] = {}
        for package in PACKAGES:
            stub = root / package / "__init__.pyi"
            nodes = Module(stub).nodes if stub.exists() else []
            bound = self._imported(nodes, package).items()
            self._exported |= {(package, local): (m, n) for local, (m, n) in bound if n}

    def _imported(self, nodes: Sequence[ast.AST], own: str) -> dict[str, tuple[str, str]]:
        """Give the names that imports bind in a module: a module, and its name if it is of one."""
        bound: dict[str, tuple[str, str]] = {}
        for node in nodes:
            match node:
                case ast.Import(names=names):
                    bound |= {one.asname or one.name: (one.name, "") for one in names}
                case ast.ImportFrom(module=module, names=names, level=level):
                    base = ".".join(filter(None, (own if level else "", module)))
                    for one in names:
                        whole = f"{base}.{one.name}"
                        known = (whole, "") if whole in self.modules else (base, one.name)
                        bound[one.asname or one.name] = known
        return bound

    def classes(self) -> list[ast.ClassDef]:
        nodes = (node for module in self.modules.values() for node in module.nodes)
        return [node for node in nodes if isinstance(node, ast.ClassDef)]

    def public(self) -> list[tuple[str, str]]:
        """Give the public functions and classes at the top level of modules."""
        return [
            (name, node.name)
            for name, module in self.modules.items()
            for node in module.tree.body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            and not node.name.startswith("_")
        ]

    def users(self) -> Counter[tuple[str, str]]:
        """Count, for each name of a module, the other modules that use it."""
        users = Counter[tuple[str, str]]()
        for own, module in self.modules.items():
            bound, used = self._imported(module.nodes, own), set[tuple[str, str]]()
            for node in (*module.nodes, *quoted(module.nodes)):
                match node:
                    case ast.Name(id=name) if name in bound and bound[name][1]:
                        used.add(bound[name])
                    case ast.Attribute(value=value, attr=attr):
                        whole = bound.get(dotted(value))
                        if whole is not None and not whole[1]:
                            used.add((whole[0], attr))
            users.update({self._exported.get(one, one) for one in used if one[0] != own})
        return users


def quoted(nodes: Sequence[ast.AST]) -> list[ast.AST]:
    """Give the nodes of annotations that are whole in quotes."""
    return [
        inner
        for node in nodes
        for annotation in (getattr(node, "annotation", None), getattr(node, "returns", None))
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str)
        for inner in ast.walk(ast.parse(annotation.value, mode="eval"))
    ]


def dotted(node: ast.expr) -> str:
    """Give a name with its dots; empty if it is none."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attr):
            base = dotted(value)
            return base and f"{base}.{attr}"
    return ""


def called_once(nodes: Sequence[ast.AST]) -> int:
    """Count the private functions and methods that their module names once more."""
    names = {n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)}
    private = {name for name in names if name.startswith("_") and not name.endswith("__")}
    uses = Counter(n.id for n in nodes if isinstance(n, ast.Name))
    uses.update(n.attr for n in nodes if isinstance(n, ast.Attribute))
    return sum(uses[name] == 1 for name in private)


COLUMNS_OF_VOTES = {
    "model_a", "model_b", "models", "winner", "winners", "outcome", "outcomes", "voter",
    "voters", "judge", "judges", "prompt", "prompts", "prompt_id", "item", "items", "first",
    "second", "order", "orders", "scores", "weights", "weight", "rows", "columns", "votes",
    "battle_id", "a", "b", "cells", "features", "total", "codes",
}  # fmt: skip
_MANY = re.compile(r"ndarray|NDArray|Floats|Ints|Bools|Sequence|tuple\[|list\[|Mapping|Array")


def holds_rows(node: ast.ClassDef) -> bool:
    """Tell whether three attributes of a class are many values, named like columns of votes."""
    attributes = [one for one in node.body if isinstance(one, ast.AnnAssign)]
    many = {ast.unparse(x.target) for x in attributes if _MANY.search(ast.unparse(x.annotation))}
    return len(many & COLUMNS_OF_VOTES) >= 3


def structure(root: Path) -> dict[str, tuple[float, str]]:
    """Measure what the source tells: for each measure its value and its rule."""
    source, imports = Source(root), Imports(root)
    modules, classes = source.modules.values(), source.classes()
    code = sum(len(module.coded) for module in modules)
    public, users = source.public(), source.users()
    data = sum(any("dataclass" in ast.unparse(d) for d in one.decorator_list) for one in classes)
    class_names = Counter(one.name for one in classes)
    file_names = Counter(one.path.name for one in modules if one.path.name != "__init__.py")
    texts = [module.code for module in modules]
    settings = (root / "pyproject.toml").read_text(encoding="utf-8")
    return {
        "product code lines": (code, "without docstrings, comments and blank lines"),
        "product files": (len(modules), "Python in arena, judge and rating"),
        "dataclasses": (data, "classes with a decorator that has dataclass in its name"),
        "dataclasses per 1,000 lines": (round(1000 * data / code, 1), ""),
        "public names": (
            len(public),
            "functions and classes at the top level of a module, without an underscore",
        ),
        "public names per 1,000 lines": (round(1000 * len(public) / code, 1), ""),
        "public, used by no other module": (
            sum(not users[one] for one in public),
            "functions and classes at the top level; to import a name is not to use it",
        ),
        "public, used by one other module": (sum(users[one] == 1 for one in public), "the same"),
        "private helpers called once": (
            sum(called_once(module.nodes) for module in modules),
            "functions and methods with an underscore that their module names once more",
        ),
        "class names that occur 2 to 5 times": (
            sum(2 <= n <= 5 for n in class_names.values()),
            "",
        ),
        "file names that occur more than once": (
            sum(n > 1 for n in file_names.values()),
            "but __init__.py",
        ),
        "types that hold rows of votes": (
            sum(map(holds_rows, classes)),
            "classes with three attributes of many values that are named like columns of votes",
        ),
        "files with model_a": (sum(bool(MODEL_A.search(text)) for text in texts), "in code"),
        "files with the orders ab and ba": (
            sum(bool(re.search(r"""["'](ab|ba)["']""", text)) for text in texts),
            "as a text of their own in code",
        ),
        "import contracts": (settings.count("[[tool.importlinter.contracts]]"), "import-linter"),
        "modules in import cycles": (len(imports.in_cycles), "imports anywhere in a file"),
        "longest chain of imports": (len(imports.longest()), "modules"),
        "test code lines": (
            sum(len(Module(path).coded) for path in sorted((root / "tests").rglob("*.py"))),
            "as product code lines",
        ),
    }


class Tracer:
    """Notes which functions of the product call which, also through libraries and threads."""

    def __init__(self, root: Path) -> None:
        self._prefixes = tuple(f"{root / name}{os.sep}" for name in PACKAGES)
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


def traced(tasks: Sequence[Callable[[], object]]) -> Journey:
    """Run tasks in this process, and trace the last one: those before it import everything."""
    *before, last = tasks
    for task in before:
        task()
    tracer = Tracer(ROOT)
    threading.setprofile(tracer)
    sys.setprofile(tracer)
    last()
    sys.setprofile(None)
    return tracer.journey()


def command(words: Sequence[str]) -> None:
    """Run a command of the product in this process."""
    from arena.cli import main as arena

    sys.argv = ["arena", *words]
    try:
        arena()
    except SystemExit as end:
        if end.code:
            raise


def refreshes(folder: Path) -> list[Callable[[], object]]:
    """Make leaderboards of a log of votes: of all but the last, and then of all."""
    from arena.boards.leaderboard import Leaderboard
    from arena.domain.battle import BattleState
    from arena.domain.vote import DEFAULT, Choice, Voter
    from arena.store.store import Store
    from tests.arena.store.battles import A1, B1, MODELS, NOW, ballot, complete, new_battle

    store = Store(f"sqlite:///{folder}/arena.db")
    store.hold_lease()
    store.register(MODELS, NOW)
    board = Leaderboard(store, DEFAULT, lambda: NOW)

    def vote(n: int) -> None:
        store.open_battle(new_battle(f"b{n}", Voter(f"v{n % 9}")))
        answers = {A1: complete("One."), B1: complete("Two.")}
        store.close_answers(f"b{n}", BattleState.READY, answers, message=None, now=NOW)
        store.cast(ballot(f"b{n}", (Choice.A, Choice.B, Choice.TIE)[n % 3], voter=f"v{n % 9}"))

    def first() -> None:
        for n in range(LOGGED - 1):
            vote(n)
        board.refresh()
        vote(LOGGED - 1)

    return [first, board.refresh]


def trace(folder: Path, *tasks: Sequence[str]) -> Journey:
    """Trace the last of some commands, or of two leaderboards, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.structure", "--trace", json.dumps(tasks)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return Journey(**json.loads(done.stdout.splitlines()[-1]))


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


def write_items(folder: Path) -> None:
    """Write pairs of answers for a judge, and what people say of them."""
    head = "prompt_id,prompt,model_a,model_b,response_a,response_b\n"
    rows = [
        f"{n},What is {n} + {n}?,ada,bob,It is {2 * n}.,It is {n}{n} surely.\n"
        for n in range(ITEMS)
    ]
    (folder / "few.csv").write_text(head + "".join(rows[:2]), encoding="utf-8")
    (folder / "many.csv").write_text(head + "".join(rows), encoding="utf-8")
    votes = [
        f"{n},ada,bob,{('model_a', 'model_b', 'tie')[(n + m) % 3]},voter {m}\n"
        for n in range(ITEMS)
        for m in range(3)
    ]
    text = "prompt_id,model_a,model_b,winner,voter\n" + "".join(votes)
    (folder / "people.csv").write_text(text, encoding="utf-8")


def judged(cases: str, name: str) -> list[str]:
    """Give the command that judges pairs, each time with replies of its own."""
    asked = ["judge", "run", "--method", "pairwise", "--judge", "pocket-judge", "--cases", cases]
    return [*asked, "--out", f"{name}.csv", "--database", f"sqlite:///{name}.db"]


def journeys(folder: Path) -> dict[str, tuple[str, str]]:
    """Run the tasks that people have; gives what each runs through, and its rule."""
    write_votes(folder / "votes.csv")
    write_items(folder)
    rate = trace(folder, ["rate", "votes.csv"], ["rate", "votes.csv"])
    few = trace(folder, judged("few.csv", "1"), judged("few.csv", "2"))
    many = trace(folder, judged("few.csv", "3"), judged("many.csv", "4"))
    study = ["study", "judge", "people.csv", "4.csv", "--rounds", "100", "--out"]
    studied = trace(folder, [*study, "one"], [*study, "two"])
    per_reply = (many.moves - few.moves) / (2 * (ITEMS - 2))
    return {
        f"`arena rate` of {VOTES:,} votes": (str(rate), "; ".join(Journey.__annotations__)),
        "`arena judge run` of 2 pairs": (str(few), "the same"),
        "`arena judge run`, moves per reply": (f"{per_reply:.0f}", f"from 2 pairs to {ITEMS}"),
        f"`arena study judge` of {ITEMS} items": (str(studied), "the same"),
        f"leaderboard made at vote {LOGGED}": (str(trace(folder, [BOARD])), "the same"),
    }


def seconds(folder: Path) -> dict[str, tuple[str, str]]:
    """Measure the processor time of what everybody runs first."""
    arena = ["-c", "from arena.cli import main; main()"]
    times = {
        "`arena --help`": processor_s(folder, *arena, "--help"),
        f"`arena rate` of {VOTES:,} votes": processor_s(folder, *arena, "rate", "votes.csv"),
        "`import rating`": processor_s(folder, "-c", "import rating"),
        "`import judge`": processor_s(folder, "-c", "import judge"),
    }
    rule = f"user and system, median of {RUNS} runs"
    return {f"processor time, {what}": (f"{time:.2f} s", rule) for what, time in times.items()}


def over(root: Path) -> list[str]:
    """List the counts that are above their limits."""
    counts = {name: value for name, (value, _rule) in structure(root).items()}
    return [
        f"{name}: {counts[name]:,}, limit {most:,}"
        for name, most in LIMITS.items()
        if counts[name] > most
    ]


def main() -> None:
    """Print the table, or check it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--quick", action="store_true", help="run no commands")
    parser.add_argument("--check", action="store_true", help="compare with the limits")
    parser.add_argument("--root", type=Path, default=ROOT, help="a checkout, which is not run")
    parser.add_argument("--trace", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.trace:
        asked = json.loads(options.trace)
        is_board = asked == [[BOARD]]
        tasks = refreshes(Path.cwd()) if is_board else [partial(command, one) for one in asked]
        print("\n" + json.dumps(asdict(traced(tasks))))
        return
    if options.check:
        above = over(options.root)
        print("\n".join([*above, "Remove as much elsewhere." if above else "Within the limits."]))
        sys.exit(bool(above))
    rows = {name: (f"{value:,}", rule) for name, (value, rule) in structure(options.root).items()}
    if not options.quick and options.root == ROOT:
        with tempfile.TemporaryDirectory() as name:
            rows |= journeys(Path(name)) | seconds(Path(name))
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    print("| measure | value | wanted | rule | why it stays |\n|---|---|---|---|---|")
    for name, (value, rule) in rows.items():
        wanted, reason = WANTED.get(name, ("", ""))
        print(f"| {name} | {value} | {wanted} | {rule} | {reason} |")


if __name__ == "__main__":
    main()
