"""The `arena` command: a table of commands, each loaded when it is run."""

import ast
import gc
import os
import sys
import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from signal import SIGINT

from cyclopts import App, CycloptsError, Group

from arena.commands.arguments import EVERY
from arena.errors import ArenaError, BrokenRecordError
from arena.terminal import say
from judge.case import CallError
from rating import __version__
from rating.errors import ConvergenceError, LayoutError, NotIdentifiedError, RatingError
from rating.tables.files import in_shell

UNDETERMINED = (NotIdentifiedError, ConvergenceError, BrokenRecordError)
"""The input can be read, but does not give what was asked: exit 3; everything else is 2."""

_FILE = tomllib.loads((Path(__file__).parent / "commands.toml").read_text("utf-8"))
GROUPS, SECTIONS, COMMANDS = _FILE["groups"], _FILE["sections"], _FILE["commands"]
RENAMED = {"newcomer": "cold-start", "judge watch": "judge drift", "--licence": "--certificate"}
"""Commands and options by their names in 0.1, which work with a warning."""


def main(words: Sequence[str] | None = None) -> None:
    """Run the command; what goes wrong is said in one line, with a non-zero exit."""
    gc.set_threshold(10_000)  # each collection looks through all that was imported, and keeps it
    words = list(sys.argv[1:] if words is None else words)
    if words[:1] == ["rate"]:  # it uses one thread, and to start the others takes .1 s
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # noqa: TID251 - no setting of ours
    for old, new in RENAMED.items():
        n, before = len(old.split()), words
        if " ".join(words[:n]) == old:
            words = [*new.split(), *words[n:]]
        elif old.startswith("--") and words[:1] != ["export"]:  # which has a --licence of its own
            words = [
                new + word[len(old) :] if word.split("=")[0] == old else word for word in words
            ]
        if words != before:
            say(f"arena: {old} is now {new}; the old name works for one more release.", error=True)
    try:
        application(words)(words)
    except CycloptsError as error:
        say(f"arena: {error}", error=True)
        sys.exit(2)
    except (ArenaError, CallError, RatingError) as error:
        if isinstance(error, LayoutError):
            at = words.index("--") if "--" in words else len(words)
            command = application(words).parse_commands(words)[1][-1]
            taken = {name for a in command.assemble_argument_collection() for name in a.names}
            commands = [
                " ".join(map(in_shell, ["arena", *words[:at], *more, *words[at:]]))
                for more in (error.options, error.other)
                if more and taken.issuperset(more[::2])
            ]
            then = "Then run:\n  " + "\nor:\n  ".join(commands) if commands else "Rename columns."
            say(f"arena: {error}\n{then}", error=True, keep="\n")
        else:
            say(f"arena: {error}", error=True)
        sys.exit(3 if isinstance(error, UNDETERMINED) else 2)
    except KeyboardInterrupt:  # before a command could handle it, such as while it is loaded
        sys.exit(128 + SIGINT)
    except BrokenPipeError:  # nobody reads on, as after `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    if not words or " ".join(words) in GROUPS:  # help was printed, and nothing done
        sys.exit(2)


def application(words: Sequence[str]) -> App:
    """Lay out the commands; none is imported but the one that the words name."""
    helps = "--help" in words or len(words) < 2
    app = App(
        name="arena",
        help="Compare language models by blind human votes and LLM judges.",
        help_flags="--help",
        version=f"arena {__version__}",
        version_flags="--version",
        help_format="markdown",
        default_parameter=EVERY,
        result_action="return_value",
        exit_on_error=False,
        print_error=False,
    )
    section: dict[str, Group] = {}
    for title, commands in SECTIONS.items():
        section |= dict.fromkeys(commands.split(), Group.create_ordered(title))
    groups = {"": app}
    for name, text in GROUPS.items():
        groups[name] = App(name=name, help=text, group=section[name])
        app.command(groups[name])
    for line, path in COMMANDS.items():
        group, _, name = line.rpartition(" ")
        if group not in groups:  # a command with a command of its own
            if words[:1] != [group]:
                continue
            groups[group] = app[group]
        about = _documented(path) if helps else {}
        place = section.get(name) if not group else None
        groups[group].command(f"arena.commands.{path}", name=name, group=place, **about)
    return app


def _documented(path: str) -> dict[str, str]:
    """Give a command's docstring, and the examples in it, without importing the command."""
    module, _, function = path.partition(":")
    docstring = _docstrings(module)[function]
    lines = docstring.partition("Examples\n--------\n")[2].splitlines()
    examples = "\n\n".join(f"`{line}`" for line in lines)
    return {"help": docstring, "help_epilogue": f"**Examples**\n\n{examples}"}


@cache
def _docstrings(module: str) -> dict[str, str]:
    file = Path(__file__).parent / "commands" / f"{module}.py"
    tree = ast.parse(file.read_text(encoding="utf-8"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {node.name: ast.get_docstring(node) or "" for node in functions}
