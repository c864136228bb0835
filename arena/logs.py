"""Logs: a JSON object a line, or plain lines on a terminal; nobody's words are in them."""

import logging
import traceback
from collections.abc import Iterator
from typing import TextIO

import structlog
from structlog.typing import EventDict, Processor

from arena.domain.battle import Asked, Ended, Notice, Replaced, Voted
from arena.errors import ArenaError
from rating.errors import RatingError

QUIET = ("alembic", "httpx", "httpcore", "uvicorn.access")
"""Libraries whose lines would name addresses, or say nothing to an operator."""

battles = logging.getLogger("arena.battles")


def set_up(level: str, stream: TextIO) -> None:
    """Let all loggers of the process write to one stream.

    Parameters
    ----------
    level : str
        ``debug``, ``info``, ``warning`` or ``error``.
    """
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _describe_exception,
    ]
    render: Processor = (
        structlog.dev.ConsoleRenderer()
        if stream.isatty()
        else structlog.processors.JSONRenderer(ensure_ascii=False)
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, render],
        )
    )
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for library in QUIET:
        logging.getLogger(library).setLevel(logging.WARNING)


def log_notice(notice: Notice) -> None:
    """Write down what happened in a battle."""
    match notice:
        case Asked(battle_id):
            battles.info("Models asked", extra={"battle": battle_id})
        case Replaced(battle_id, failure):
            battles.warning("Answer replaced", extra={"battle": battle_id, "failure": failure})
        case Ended(battle_id, state, failures):
            extra = {"battle": battle_id, "state": state, "failures": failures}
            battles.info("Answers ended", extra=extra)
        case Voted(battle_id, choice):
            battles.info("Voted", extra={"battle": battle_id, "choice": choice})


def _describe_exception(_logger: object, _method: str, event: EventDict) -> EventDict:
    """Put an exception into lines: where it was raised, and its words only if they are ours.

    Other libraries quote what they could not read, and that may be a prompt or an answer.
    """
    info = event.pop("exc_info", None)
    if info and isinstance(info, tuple) and info[1]:
        event["exception"] = "\n".join(_lines(info[1]))
    return event


def _lines(error: BaseException) -> Iterator[str]:
    for frame in traceback.extract_tb(error.__traceback__):
        yield f"{frame.filename}:{frame.lineno} in {frame.name}"
    kind = type(error).__qualname__
    yield f"{kind}: {error}" if isinstance(error, ArenaError | RatingError | OSError) else kind
    if (earlier := error.__cause__ or error.__context__) is not None:
        yield "which came of"
        yield from _lines(earlier)
