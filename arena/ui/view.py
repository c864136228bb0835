"""What the battle page shows, as plain data: no Gradio in here, so it is tested as data."""

import json
import logging
import secrets
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol

from arena.domain.battle import AnswerStatus, ShownAnswer, Snapshot
from arena.domain.voter import Voter
from arena.errors import PlayError, UnknownBattleError
from arena.ui.markdown import escape, tame

log = logging.getLogger(__name__)

TROUBLE = (
    "Something went wrong on our side. Nothing was counted. Try again, or come back in a minute."
)


class Battles(Protocol):
    """What the page needs of `arena.play.battles.Battles`."""

    @property
    def prompts(self) -> tuple[str, ...] | None:
        """Prompts that can be answered when only recordings battle; None for any prompt."""

    async def open(self, voter: Voter, prompt: str) -> Snapshot:
        """Open a battle; raises a `PlayError` before one exists."""

    def watch(self, battle_id: str, voter: Voter) -> AsyncGenerator[Snapshot]:
        """Show a battle to its owner until it has ended; raises `UnknownBattleError`."""


@dataclass(frozen=True, slots=True)
class PageView:
    """What one update writes into the page; None leaves a part as it stands.

    Attributes
    ----------
    news : str
        State for the script, as JSON in a Markdown code span. Never a model's name.
    asked : str or None
        The prompt, escaped.
    answer_a, answer_b : str or None
        Tamed Markdown.
    """

    news: str
    asked: str | None = None
    answer_a: str | None = None
    answer_b: str | None = None


def view_of(snapshot: Snapshot) -> PageView:
    """Show everything that the owner of a battle may see of it now."""
    shown = snapshot.turns[-1]
    return PageView(
        news=_news(
            battle=snapshot.battle_id,
            state=snapshot.state,
            message=snapshot.message,
            a=_progress(shown.a),
            b=_progress(shown.b),
        ),
        asked=escape(shown.prompt),
        answer_a=_markdown(shown.a),
        answer_b=_markdown(shown.b),
    )


def empty_view(message: str | None = None) -> PageView:
    """Show no battle; with a message, say why the one asked for cannot be shown."""
    state = "missing" if message else "empty"
    return PageView(_news(battle=None, state=state, message=message), "", "", "")


def notice(words: str) -> PageView:
    """Say something and leave the rest as it stands: a refused prompt, or trouble of ours."""
    return PageView(_news(notice=words, nonce=secrets.token_hex(4)))


async def ask(battles: Battles, who: Callable[[], Voter], prompt: str) -> AsyncGenerator[PageView]:
    """Open a battle and show it until it has ended."""
    try:
        voter = who()
        opened = await battles.open(voter, prompt)
        yield view_of(opened)
        async with aclosing(battles.watch(opened.battle_id, voter)) as snapshots:
            async for snapshot in snapshots:
                yield view_of(snapshot)
    except PlayError as refused:
        yield notice(str(refused))
    except Exception:
        log.exception("A battle could not be opened or shown")
        yield notice(TROUBLE)


async def attach(
    battles: Battles, who: Callable[[], Voter], battle_id: str
) -> AsyncGenerator[PageView]:
    """Show a battle again, from where it stands until it has ended."""
    try:
        async with aclosing(battles.watch(battle_id, who())) as snapshots:
            async for snapshot in snapshots:
                yield view_of(snapshot)
    except UnknownBattleError as unknown:
        yield empty_view(str(unknown))
    except Exception:
        log.exception("A battle could not be shown again")
        yield notice(TROUBLE)


def _markdown(answer: ShownAnswer) -> str:
    """Give an answer's Markdown, without a raw end while it is unfinished."""
    return tame(answer.text, live=answer.status is not AnswerStatus.COMPLETE)


def _progress(answer: ShownAnswer) -> dict[str, object]:
    """Tell the script how far a side is; it compares the length with the API's text."""
    return {"status": answer.status, "length": len(answer.text)}


def _news(**said: object) -> str:
    """Put JSON in a code span, where no character of it means anything to Markdown."""
    return "`" + json.dumps(said).replace("`", "\\u0060") + "`"
