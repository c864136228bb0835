"""Labels what was voted on: of new votes while the arena is served, or of a whole database."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial

from arena.domain.vote import NAMING, Tagger
from arena.errors import StoreError
from arena.store import labels, roster
from arena.store.labels import NewLabel, VotedTurn
from arena.store.store import Store
from judge.labels.refusals import REFUSAL, refusal
from judge.labels.self_naming import self_naming
from judge.labels.taggers import TAGGER, VERSION, Label, tag

logger = logging.getLogger(__name__)

TAGGING = Tagger(TAGGER, VERSION)
"""Who labels here; a policy may read the labels of another version, or of a model."""
REST_S = 60.0
"""Between two looks for votes without labels."""
PAUSE_S = 0.005
"""After each turn others work for so long, where an arena is served."""


def label_votes(
    store: Store,
    now: Callable[[], datetime],
    progress: Callable[[int, int], None] | None = None,
    pause_s: float = 0.0,
) -> int:
    """Label every turn that was voted on and has no label yet by rules; gives how many there were.

    What is labelled is stored some hundred turns at a time, so that it can be broken off.
    """
    total = store.read(labels.count_unlabelled, TAGGING) if progress else 0
    done = 0
    for turns in unlabelled_turns(store, TAGGING):
        new = [label for turn in turns for label in labels_of(turn, pause_s)]
        with store.writing() as session:
            labels.add(session, new, TAGGING, now())
        done += len(turns)
        if progress:
            progress(done, max(done, total))
    return done


def label_self_naming(store: Store, now: Callable[[], datetime], pause_s: float = 0.0) -> int:
    """Label which answers of voted turns name a model as their author; returns how many turns.

    Names of the log and the roster count besides the known ones.
    """
    names, done = store.read(roster.names), 0
    for turns in unlabelled_turns(store, NAMING):
        new = []
        for turn in turns:
            naming = (self_naming(answer, names) for answer in turn.answers)
            a, b = (one is not None and one.kind == "self" for one in naming)
            value = "both" if a and b else "a" if a else "b" if b else "none"
            new.append(NewLabel(turn.id, NAMING.name, value, None))
            time.sleep(pause_s)
        with store.writing() as session:
            labels.add(session, new, NAMING, now())
        done += len(turns)
    return done


def unlabelled_turns(store: Store, tagger: Tagger) -> Iterator[list[VotedTurn]]:
    """Read what was voted on and a tagger has not labelled, some hundred turns at a time."""
    last = 0
    while turns := store.read(labels.unlabelled, tagger, last):
        yield turns
        last = turns[-1].id


def store_labels(
    store: Store,
    turns: Sequence[VotedTurn],
    given: Sequence[Mapping[str, Label] | None],
    tagger: Tagger,
    now: datetime,
) -> None:
    """Store what a tagger says of turns, by facet; a turn with None stays unlabelled."""
    for start in range(0, len(turns), labels.BATCH):
        part = slice(start, start + labels.BATCH)
        new = [
            label
            for turn, by_facet in zip(turns[part], given[part], strict=True)
            for label in _rows(turn, by_facet or {})
        ]
        with store.writing() as session:
            labels.add(session, new, tagger, now)


async def keep_labelling(store: Store, now: Callable[[], datetime]) -> None:
    """Label new votes, rest, and look again, until cancelled."""
    while True:
        try:
            await asyncio.to_thread(partial(label_votes, store, now, pause_s=PAUSE_S))
            await asyncio.to_thread(label_self_naming, store, now, PAUSE_S)
        except StoreError as error:
            logger.warning("Votes could not be labelled: %s", error)
        except Exception:
            logger.exception("Labelling votes ended in a fault of ours")
        await asyncio.sleep(REST_S)


def labels_of(turn: VotedTurn, pause_s: float) -> Iterator[NewLabel]:
    """Label a turn by rules, and let others work for a while."""
    yield from _rows(turn, tag(turn.prompts) | {REFUSAL: refusal(turn.answers)})
    if pause_s:
        time.sleep(pause_s)


def _rows(turn: VotedTurn, by_facet: Mapping[str, Label]) -> Iterator[NewLabel]:
    for facet, label in by_facet.items():
        yield NewLabel(turn.id, facet, label.value, label.score)
