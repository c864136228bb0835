"""The `arena` command: a table of commands, each loaded when it is run."""

import ast
import os
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from cyclopts import App, CycloptsError

from arena.commands.arguments import EVERY
from arena.errors import ArenaError, BrokenRecordError
from arena.terminal import say
from judge.case import CallError
from rating import __version__
from rating.errors import ConvergenceError, LayoutError, NotIdentifiedError, RatingError
from rating.tables.files import in_shell

UNDETERMINED = (NotIdentifiedError, ConvergenceError, BrokenRecordError)
"""The input can be read, but does not give what was asked: exit 3; everything else is 2."""

GROUPS = {
    "export": "Write what the arena holds to files.",
    "people": "Whom the arena knows, and who may do what.",
    "sources": "Applications that send votes of their own.",
    "judge": "Scores and verdicts of models that judge.",
    "study": "People rate given items; what raters are like, and how judges agree with them.",
    "probe": "Is the measure itself any good: cards to read.",
}
COMMANDS = {
    "serve": "serve:serve",
    "demo": "serve:demo",
    "simulate": "serve:simulate",
    "models": "serve:models",
    "models check": "serve:check_models",
    "models add": "serve:add",
    "models enable": "serve:enable",
    "models disable": "serve:disable",
    "models retire": "serve:retire",
    "models weight": "serve:weight",
    "models pre-release": "serve:pre_release",
    "models release": "serve:release",
    "export battles": "exports:battles",
    "export answers": "exports:answers",
    "export votes": "exports:votes",
    "export models": "exports:models",
    "export ratings": "exports:ratings",
    "people list": "people:roll",
    "people invite": "people:invite",
    "people change": "people:change",
    "sources add": "people:add",
    "sources list": "people:overview",
    "sources change": "people:change_source",
    "sources revoke": "people:revoke",
    "erase": "people:erase",
    "status": "serve:status",
    "publish": "serve:publish",
    "verify": "serve:verify",
    "migrate": "serve:migrate",
    "backup": "serve:backup",
    "restore": "serve:restore",
    "rate": "rate:rate",
    "mix": "rate:mix",
    "value": "rate:value",
    "factors": "rate:factors",
    "plan": "rate:plan",
    "voters": "rate:voters",
    "gold": "probe:gold",
    "safety": "label:safety",
    "attack": "probe:attack",
    "exclude": "probe:exclude",
    "readmit": "probe:readmit",
    "label": "label:label",
    "overlap": "label:overlap",
    "topics": "label:topics",
    "reasons": "rate:reasons",
    "bench": "bench:bench",
    "judge run": "judge_run:run",
    "judge work": "judge_run:work",
    "judge score": "judge:score",
    "judge probe": "judge:probe",
    "judge methods": "judge:methods",
    "judge watch": "judge:watch",
    "study create": "study:create",
    "study open": "study:open_rest",
    "study status": "study:status",
    "study export": "study:export",
    "study judge": "study:judge",
    "study panel": "study:panel",
    "study truth": "study:truth",
    "study scores": "study:scores",
    "study raters": "study:raters",
    "newcomer": "study:newcomer",
    "race": "decide:race",
    "gate": "decide:gate",
    "rank": "rate:rank",
    "probe similarity": "probe:similarity",
    "probe judge": "probe:judge",
    "probe board": "probe:board",
    "probe prompts": "probe:prompts",
    "probe blindness": "probe:blindness",
    "probe duplicates": "label:duplicates",
    "probe memory": "probe:memory",
    "probe names": "probe:names",
    "probe words": "probe:words",
}
"""The words of a command, and the function in `arena.commands` that does it."""


def main(words: Sequence[str] | None = None) -> None:
    """Run the command; what goes wrong is said in one line, with a non-zero exit."""
    words = sys.argv[1:] if words is None else list(words)
    try:
        application(words)(words)
    except CycloptsError as error:
        say(f"arena: {error}", error=True)
        sys.exit(2)
    except (ArenaError, CallError, RatingError) as error:
        if isinstance(error, LayoutError):
            at = words.index("--") if "--" in words else len(words)
            commands = [
                " ".join(map(in_shell, ["arena", *words[:at], *more, *words[at:]]))
                for more in (error.options, error.other)
                if more
            ]
            text = f"arena: {error}\nThen run:\n  " + "\nor:\n  ".join(commands)
            say(text, error=True, keep="\n")
        else:
            say(f"arena: {error}", error=True)
        sys.exit(3 if isinstance(error, UNDETERMINED) else 2)
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
        help="Blind battles between language models, votes, and ratings with honest intervals.",
        help_flags="--help",
        version=f"arena {__version__}",
        version_flags="--version",
        help_format="markdown",
        default_parameter=EVERY,
        result_action="return_value",
        exit_on_error=False,
        print_error=False,
    )
    groups = {"": app}
    for name, about in GROUPS.items():
        groups[name] = App(name=name, help=about)
        app.command(groups[name])
    for line, path in COMMANDS.items():
        group, _, name = line.rpartition(" ")
        if group not in groups:  # a command with a command of its own
            if words[:1] != [group]:
                continue
            groups[group] = app[group]
        groups[group].command(
            f"arena.commands.{path}", name=name, **(_documented(path) if helps else {})
        )
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
