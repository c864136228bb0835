"""`arena models lint` and `reproduce`: can they be compared, and how is one asked."""

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from arena.commands.arguments import Database, RosterFile
from arena.domain.comparability import Card, card_of, card_of_board, differences
from arena.domain.model import Model, Standing
from arena.errors import SettingsError
from arena.terminal import say, show, table

if TYPE_CHECKING:
    from arena.settings import Settings

PROMPT = "Why is the sky blue?"


def lint(*names: str, roster: RosterFile = None, database: Database = None) -> None:
    """Name the conditions in which models differ: their ratings compare these, too.

    System prompt, temperature, top-p, max tokens, tools, template, turns and all else that is
    sent. Exit code 1: they differ.

    Parameters
    ----------
    names
        Ids of two models or more, or two files of boards as JSON (/leaderboard.json): these by
        tie rule, policy, intervals and judge. Without any, all that have not retired.

    Examples
    --------
    arena models lint --roster roster.toml
    arena models lint basalt-large quartz-recorded
    arena models lint ours.json theirs.json
    """
    boards = bool(names) and all(name.endswith(".json") for name in names)
    cards = _boards(names) if boards else _entrants(names, roster, database)
    if len(cards) < 2:
        raise SettingsError(f"To compare takes two, and there is {len(cards)}: name another.")
    rows = [
        (one.condition if place == 0 else "", value, ", ".join(whose))
        for one in differences(cards)
        for place, (value, whose) in enumerate(one.values)
    ]
    if not rows:
        say(f"The {len(cards)} {'boards' if boards else 'models'} do not differ in a condition.")
        return
    show(table(("Condition", "Value", "Of"), rows, right=()))
    sys.exit(1)


def reproduce(
    model: str,
    /,
    *,
    prompt: Annotated[str, Parameter(help="What it is asked.")] = PROMPT,
    roster: RosterFile = None,
    database: Database = None,
) -> None:
    """Print the call that asks a model as a battle does, for curl; without the key.

    Parameters
    ----------
    model
        Its id in the roster.

    Examples
    --------
    arena models reproduce basalt-large
    arena models reproduce basalt-large --prompt "Why is the sky blue?" --roster roster.toml
    """
    from arena.endpoints.address import CHAT, url_of
    from arena.endpoints.chat import request_body
    from judge.case import Message

    (asked,) = _chosen([model], roster, database)
    if not asked.endpoint.startswith(("http://", "https://")):
        raise SettingsError(f"{asked.id!r} answers within the arena ({asked.endpoint}): no call.")
    body = json.dumps(request_body(asked, [Message("user", prompt)], {"stream": False}))
    words = ["curl", url_of(asked.endpoint, CHAT)]
    words += ["-H", "Content-Type: application/json", "-d", body]
    name = asked.api_key_env
    header = f"{asked.api_key_header}:" if asked.api_key_header else "Authorization: Bearer"
    key = f' -H "{header} ${name}"' if name and _is_variable(name) else ""
    say(f"{shlex.join(words)}{key}")


def _is_variable(name: str) -> bool:
    """Tell a name that a shell looks up from one that it would run."""
    return name.isidentifier() and name.isascii()


def _boards(files: Sequence[str]) -> dict[str, Card]:
    from rating.tables.files import parsed, read_text

    cards = {}
    for file in files:
        content = parsed(read_text(Path(file), SettingsError), file, SettingsError)
        if not isinstance(content, Mapping) or "method" not in content:
            msg = f'{file} is no board: it has no "method". Take a /leaderboard.json.'
            raise SettingsError(msg)
        cards[file] = card_of_board(content)
    return cards


def _entrants(names: Sequence[str], roster: Path | None, database: str | None) -> dict[str, Card]:
    return {model.id: card_of(model) for model in _chosen(names, roster, database)}


def _chosen(names: Sequence[str], roster: Path | None, database: str | None) -> list[Model]:
    """Give the models of these ids, or all, of the roster file or else of the database's."""
    from arena.settings import read_roster, read_settings

    settings = read_settings(roster=roster, database=database)
    of_file = read_roster(settings.roster, to_battle=False) if settings.roster else ()
    models = {model.id: model for model in of_file} or _stored(settings)
    if unknown := [name for name in names if name not in models]:
        known = ", ".join(models) or "none: name a file with --roster"
        msg = f"There is no model {unknown[0][:100]!r} in the roster. There are {known}."
        raise SettingsError(msg)
    return [models[name] for name in dict.fromkeys(names or models)]


def _stored(settings: "Settings") -> dict[str, Model]:
    from arena.store import roster
    from arena.store.store import existing

    with existing(settings.database) as store:
        entries = store.read(roster.entries)
    staying = (one.model for one in entries if one.standing is not Standing.RETIRED)
    return {model.id: model for model in staying}
