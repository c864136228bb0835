"""What the battle page shows, as plain data: no Gradio in here, so it is tested as data."""

import json
import logging
import secrets
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractContextManager, aclosing
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from arena.domain.battle import AnswerStatus, ShownAnswer, Side, Snapshot
from arena.domain.vote import Voter
from arena.errors import PlayError, UnknownBattleError
from arena.ui.markdown import escape, quote, tame

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

    async def reply(self, battle_id: str, voter: Voter, prompt: str) -> Snapshot:
        """Begin the next turn of a battle; raises a `PlayError` if it takes none."""

    async def go_on(self, battle_id: str, voter: Voter, prompt: str) -> Snapshot:
        """Go on with two revealed models; raises a `PlayError` if that cannot be."""

    def reading(self, voter: Voter, /) -> AbstractContextManager[object]:
        """Hold a place while a battle is watched; raises a `PlayError` to refuse it."""

    def watch(self, battle_id: str, voter: Voter) -> AsyncGenerator[Snapshot]:
        """Show a battle to its owner until it has ended; raises `UnknownBattleError`."""


class Intent(StrEnum):
    """What a visitor means by a prompt, as the page says it: `Battles` decides what may be."""

    NEW = "new"
    TURN = "turn"
    CONTINUE = "continue"


@dataclass(frozen=True, slots=True)
class PageView:
    """What one update writes into the page; None leaves a part as it stands.

    Attributes
    ----------
    news : str
        State for the script, as JSON in a Markdown code span. Never a model's name.
    history_a, history_b : str or None
        The turns before the latest one, as Markdown: see `_history`.
    asked : str or None
        The latest prompt, escaped.
    answer_a, answer_b : str or None
        Tamed Markdown.
    """

    news: str
    history_a: str | None = None
    history_b: str | None = None
    asked: str | None = None
    answer_a: str | None = None
    answer_b: str | None = None


def view_of(snapshot: Snapshot, written: int = 0) -> PageView:
    """Show everything that the owner of a battle may see of it now.

    Parameters
    ----------
    written : int
        The turn that the page showed last: its history stands, so it is not made again.
    """
    shown = snapshot.turns[-1]
    fresh = snapshot.turn != written
    return PageView(
        news=_news(
            battle=snapshot.battle_id,
            turn=snapshot.turn,
            attempt=shown.attempt,
            counted=snapshot.models is None or snapshot.receipt is not None,
            state=snapshot.state,
            message=snapshot.message,
            a=_progress(shown.a),
            b=_progress(shown.b),
        ),
        history_a=_history(snapshot, Side.A) if fresh else None,
        history_b=_history(snapshot, Side.B) if fresh else None,
        asked=escape(shown.prompt),
        answer_a=_markdown(shown.a),
        answer_b=_markdown(shown.b),
    )


def empty_view(message: str | None = None) -> PageView:
    """Show no battle; with a message, say why the one asked for cannot be shown."""
    state = "missing" if message else "empty"
    return PageView(_news(battle=None, state=state, message=message), "", "", "", "", "")


def notice(words: str) -> PageView:
    """Say something and leave the rest as it stands: a refused prompt, or trouble of ours."""
    return PageView(_news(notice=words, nonce=secrets.token_hex(4)))


async def ask(
    battles: Battles,
    who: Callable[[], Voter],
    prompt: str,
    intent: str = Intent.NEW,
    battle_id: str = "",
) -> AsyncGenerator[PageView]:
    """Ask in a new battle, or go on in one, and show it until it has ended.

    Parameters
    ----------
    intent : str
        An `Intent`; anything else asks for a new battle.
    battle_id : str
        The battle to go on in; not read for a new one.
    """
    try:
        voter = who()
        with battles.reading(voter):  # before a battle begins that nobody could watch
            begun = await _begin(battles, voter, prompt, intent, battle_id)
            yield view_of(begun)
            written = begun.turn
            async with aclosing(battles.watch(begun.battle_id, voter)) as snapshots:
                async for snapshot in snapshots:
                    yield view_of(snapshot, written)
                    written = snapshot.turn
    except PlayError as refused:
        yield notice(str(refused))
    except Exception:
        log.exception("A prompt could not be asked, or its battle not shown")
        yield notice(TROUBLE)


async def attach(
    battles: Battles, who: Callable[[], Voter], battle_id: str
) -> AsyncGenerator[PageView]:
    """Show a battle again, from where it stands until it has ended."""
    try:
        voter, written = who(), 0
        with battles.reading(voter):
            async with aclosing(battles.watch(battle_id, voter)) as snapshots:
                async for snapshot in snapshots:
                    yield view_of(snapshot, written)
                    written = snapshot.turn
    except UnknownBattleError as unknown:
        yield empty_view(str(unknown))
    except PlayError as refused:
        yield notice(str(refused))
    except Exception:
        log.exception("A battle could not be shown again")
        yield notice(TROUBLE)


async def _begin(
    battles: Battles, voter: Voter, prompt: str, intent: str, battle_id: str
) -> Snapshot:
    match intent:
        case Intent.TURN:
            return await battles.reply(battle_id, voter, prompt)
        case Intent.CONTINUE:
            return await battles.go_on(battle_id, voter, prompt)
        case _:
            return await battles.open(voter, prompt)


def _history(snapshot: Snapshot, side: Side) -> str:
    """Give the finished turns of one side: each prompt a paragraph, each answer a quotation.

    The stylesheet goes by that, for no answer gets out of its quotation, and no prompt is
    more than a paragraph.
    """
    return "\n\n".join(
        f"{escape(turn.prompt)}\n\n{quote(_markdown(turn.a if side is Side.A else turn.b))}"
        for turn in snapshot.turns[:-1]
    )


def _markdown(answer: ShownAnswer) -> str:
    """Give an answer's Markdown, without a raw end while it is unfinished."""
    return tame(answer.text, live=answer.status is not AnswerStatus.COMPLETE)


def _progress(answer: ShownAnswer) -> dict[str, object]:
    """Tell the script how far a side is; it compares the length with the API's text."""
    return {"status": answer.status, "length": len(answer.text)}


def _news(**fields: object) -> str:
    """Put JSON in a code span, where no character of it means anything to Markdown."""
    return "`" + json.dumps(fields).replace("`", "\\u0060") + "`"
