"""`arena judge methods`."""

from collections.abc import Iterator
from typing import Annotated, Any

from cyclopts import Parameter

from arena.commands.arguments import TableOrJson
from arena.terminal import plain, show, table, write, write_json
from judge.methods import PUBLISHED, FileMethod, method_file, published


def methods(
    name: Annotated[str | None, Parameter(metavar="METHOD")] = None,
    /,
    *,
    form: TableOrJson = "table",
) -> None:
    """List the methods of judging, with their sources and what each changes; or print one's file.

    A method is a file: what is shown of a case, in which words, and how the reply is read. Print
    one, change it, and give its path to --method of `arena judge run`, work or probe. A file of
    your own is checked as it is printed. Exit code 2: there is no such method, or it is malformed.

    Parameters
    ----------
    name
        A published method, or the path of a file of your own.
    form
        How to write it.

    Examples
    --------
    arena judge methods
    arena judge methods pairwise
    arena judge methods pairwise --format json
    """
    if name is None:
        every = [published(each) for each in PUBLISHED]
        if form == "json":
            write_json({"methods": [_row(one) for one in every]})
        else:
            _show(every)
        return
    chosen = method_file(name)
    if form == "json":
        write_json(chosen.to_dict())
    else:
        write(chosen.text)


def _row(method: FileMethod) -> dict[str, Any]:
    return {
        "name": method.name,
        "responses": 1 + method.pairwise,
        "about": method.about,
        "source": method.description.source,
        "score": method.score,
        "template": method.template.hash,
        "changes": list(method.changes),
    }


def _show(every: list[FileMethod]) -> None:
    rows = [(one.name, f"{1 + one.pairwise}", one.score or "–") for one in every]
    show(
        table(("Method", "Responses", "Score"), rows, right=(1,)),
        *(plain(text) for one in every for text in _in_words(one)),
        plain("\nifeval asks nobody: instructions are checked by code."),
        plain("To start a method of your own: arena judge methods pairwise > mine.toml"),
    )


def _in_words(method: FileMethod) -> Iterator[str]:
    yield f"\n{method.name}: {method.about}."
    yield f"  After {method.description.source}."
    yield from (f"  - {text}" for text in method.changes)
