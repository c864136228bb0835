"""What runs beside battles: background tasks of a server, and votes that applications send.

The tasks hold the lease (`keep_up`), delete what is too old (`keep_clear`), verify the vote log
(`RecordVerifier`), follow the roster in the database (`LiveRoster`) and label new votes
(`keep_labelling`). Each works in threads until it is cancelled. `Sources` writes what applications
send into the same log as all other votes.
"""

import asyncio
import hmac
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from random import Random

from arena.domain.battle import BattleState, Notice, Pacing, Side, Snapshot
from arena.domain.board_view import RecordCheck
from arena.domain.model import SET, Entry, Pair, Source
from arena.domain.people import Perishable
from arena.domain.vote import FAILURES, NAMING, Choice, Receipt, Tagger, attributes
from arena.errors import (
    ERASED,
    EXPIRED,
    ArenaError,
    BadComparisonError,
    NotReadyError,
    RoomError,
    SentBeforeError,
    StoreError,
)
from arena.guard.access import token_hash
from arena.play.live import stored_snapshot
from arena.play.matchmaking import INTERRUPTED
from arena.store import blocks, erasing, kept_boards, labels, roster, sources, voting
from arena.store.battles import written_battle
from arena.store.chain import Ballot, NewBattle, StoredBattle
from arena.store.engine import PATIENCE, PULSE_S
from arena.store.labels import NewLabel, VotedTurn
from arena.store.roster import prompt_id
from arena.store.sources import SentPair
from arena.store.store import Store
from arena.store.verify import verify
from judge.labels.accuracy import self_naming
from judge.labels.taggers import REFUSAL, TAGGER, VERSION, Label, refusal, tag
from rating.sentences import Sentence
from rating.tables.files import storable

logger = logging.getLogger(__name__)


# Lease, retention and verification

UPKEEP = "upkeep"
"""Who acts where a server did so by itself."""
CLEAR_S = 3600.0
"""Between two looks for what is too old, and for erased words in the database's files."""
AT_ONCE = 100
PAUSE_S = 0.02
"""After this many links the check of the record lets others work for so long."""
REST_S = 60.0
REST = 50
"""Between two checks pass at least `REST_S`, and `REST` times as long as the last one took."""


def pulse(store: Store, looks: int) -> None:
    """Take or keep the lease, and mark the battles of processes that died as interrupted.

    Parameters
    ----------
    looks : int
        Calls in a row that must have found a process without a lease: 1 for an arena that
        begins, and may have been killed while it was answering.
    """
    store.hold_lease()
    if interrupted := store.interrupt_running(INTERRUPTED, looks=looks):
        logger.warning("Marked %d unfinished battles as interrupted", interrupted)


async def keep_up(store: Store) -> None:
    """Call `pulse` every `PULSE_S` seconds until cancelled."""
    while True:
        await asyncio.sleep(PULSE_S)
        try:
            await asyncio.to_thread(pulse, store, PATIENCE)
        except StoreError as error:
            logger.warning("Not sure of this process's lease: %s", error)


def clear_out(store: Store, days: Mapping[Perishable, int | None], now: datetime) -> None:
    """Delete what is too old, and write the files again if anything went since the last time."""
    for kind, most in days.items():
        while most and erasing.expire(store, kind, most, UPKEEP, now):
            time.sleep(PAUSE_S)
    if store.read(erasing.is_to_clear):
        erasing.clear_space(store, UPKEEP, now)


async def keep_clear(
    store: Store, days: Mapping[Perishable, int | None], now: Callable[[], datetime]
) -> None:
    """Call `clear_out` a minute after the start, and then each hour, until cancelled."""
    await asyncio.sleep(REST_S)
    while True:
        try:
            await asyncio.to_thread(clear_out, store, days, now())
        except StoreError as error:
            logger.warning("Erased words may still lie in the database: %s", error)
        except Exception:
            logger.exception("Letting go of what is too old ended in a fault of ours")
        await asyncio.sleep(CLEAR_S)


class RecordVerifier:
    """Verifies the vote log again and again, so that boards can state whether it holds."""

    def __init__(self, store: Store, now: Callable[[], datetime]) -> None:
        self._store = store
        self._now = now
        self._closing = False
        self.check: RecordCheck | None = None
        """The last one."""

    def close(self) -> None:
        """Break off a check that is under way: nobody is to wait for it."""
        self._closing = True

    async def keep_on(self) -> None:
        """Check, rest, and check again, until cancelled."""
        while not self._closing:
            began = time.monotonic()
            try:
                await asyncio.to_thread(self.look)
            except StoreError as error:
                logger.warning("The vote log could not be read to verify it: %s", error)
            except _Closing:
                return
            except Exception:
                logger.exception("The check of the record ended in a fault of ours")
            await asyncio.sleep(max(REST_S, REST * (time.monotonic() - began)))

    def look(self) -> None:
        """Check now."""
        verified = self._store.read(verify, progress=self._pace)
        if verified.problem:
            logger.error("The vote log could not be verified: %s", verified.problem)
        if verified.counts:
            logger.error("They are made again. %s", verified.counts)
            with self._store.writing() as session:
                blocks.drop(session)
                kept_boards.drop(session)
        self.check = RecordCheck(
            at=self._now(),
            **attributes(verified, "links", "head", "votes", "hashes_only", "deleted", "problem"),
        )

    def _pace(self, done: int, _total: int) -> None:
        if self._closing:
            raise _Closing
        if done % AT_ONCE == 0:
            time.sleep(PAUSE_S)


class _Closing(Exception):
    """A check of the record is broken off."""


# Votes of applications

SAMPLER, SAMPLER_VERSION = "source", "1"
"""How the log says that a source chose the pair."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What registered applications send; its methods block.

    Attributes
    ----------
    secret : str
        Behind the ids of prompts: see `arena.store.roster`.
    longest_prompt, longest_answer : int
        Characters that each may have.
    rng : Random
        Draws the sides of pairs.
    vote_within : timedelta
        How long a pair takes a vote after it was sent.
    now : callable
        Time now, in UTC.
    notice : callable
        Is told of votes.
    """

    store: Store
    secret: str
    longest_prompt: int
    longest_answer: int
    rng: Random
    vote_within: timedelta
    now: Callable[[], datetime]
    notice: Callable[[Notice], None]

    def of_token(self, token: str) -> Source:
        """Give the source that has a token; raises `UnknownSourceError` if none has."""
        return self.store.read(sources.of_token, token_hash(token))

    def take(self, source: Source, sent: Pair, token: str) -> tuple[str, str, str, bool]:
        """Write what a source sends under a key of its own; what is sent again is written once.

        A pair with a choice is committed with its vote, on the sides on which it was shown. One
        without is for a page to show, on sides that are drawn.

        Returns
        -------
        tuple
            Id of the battle and of the rater in the log; what its vote is cast with, empty where
            the vote came along; and whether it was written just now, and not before.

        Raises
        ------
        BadComparisonError, LimitError, SentBeforeError
            Nothing is written then.
        """
        self._require_sound(sent)
        choice, now, sides, seed = sent.choice, self.now(), {Side.A: sent.a, Side.B: sent.b}, 0
        if choice is None:
            seed = self.rng.getrandbits(31)
            sides = dict(
                zip(Side, (sent.a, sent.b) if seed % 2 else (sent.b, sent.a), strict=True)
            )
        kind = "pair" if choice is None else "comparison"
        key_hash = token_hash(f"{kind}\n{sent.key}")
        with self.store.writing() as session:
            sources.hold(session, source)
            if known := sources.pair_of_key(session, source, key_hash):
                _require_same(written_battle(session, known.battle_id), known, source, sent)
                vote_key = ""
                if choice is None:
                    vote_key = _vote_key(token, known.battle_id)  # of a new token another one
                    sources.vote_with(session, known.battle_id, token_hash(vote_key))
                return known.battle_id, known.owner, vote_key, False
            new = NewBattle(
                owner=source.voter(sent.rater),
                prompt=sent.prompt,
                a=source.model(sides[Side.A].version),
                b=source.model(sides[Side.B].version),
                side_seed=seed,
                sampler=SAMPLER,
                sampler_version=SAMPLER_VERSION,
                pacing=Pacing.BOTH_DONE,
                prompt_set=f"{SET}{source.name}",
                prompt_id=prompt_id(self.secret, sent.prompt),
                created=now - timedelta(seconds=sent.seconds),
            )
            vote_key = _vote_key(token, new.public_id) if choice is None else ""
            vote_key_hash = token_hash(vote_key) if vote_key else None
            sources.take(session, source, new, sides, key_hash, vote_key_hash, now)
            if choice is not None:
                ballot = Ballot(
                    battle_id=new.public_id,
                    voter=new.owner.id,
                    choice=choice,
                    key=key_hash,
                    cast=now,
                )
                voting.cast(session, ballot)
        if choice is not None:
            self.notice(Notice("voted", new.public_id, choice=choice))
        return new.public_id, new.owner.id, vote_key, True

    def is_shown_at(self, battle_id: str, origin: str) -> bool:
        """Tell whether pages of an origin may show a pair."""
        pair = self.store.read(sources.pair_called, storable(battle_id))
        if pair is None or pair.source.revoked or pair.source.paused:
            return False
        return origin in pair.source.origins

    def look(self, battle_id: str, vote_key: str) -> Snapshot:
        """Give a pair to its page.

        Raises
        ------
        UnknownBattleError
            If there is no such pair, or its key is another.
        NotReadyError
            If its words were erased, or it has expired.
        """
        with self.store.reading() as session:
            pair = sources.pair_to_vote_on(session, battle_id, token_hash(vote_key))
            stored = written_battle(session, battle_id)
        if pair.erased:
            raise NotReadyError(ERASED)
        snapshot = stored_snapshot(stored, self.now() - self.vote_within)
        if snapshot.state is BattleState.EXPIRED:
            raise NotReadyError(EXPIRED)
        return snapshot

    def vote(self, battle_id: str, vote_key: str, choice: Choice) -> Receipt:
        """Commit the vote on a pair, once: see `arena.play.battles.Battles.vote`.

        Raises
        ------
        UnknownBattleError, NotReadyError, AlreadyVotedError
            Nothing is written then.
        """
        now = self.now()
        with self.store.writing() as session:
            pair = sources.pair_to_vote_on(session, battle_id, token_hash(vote_key))
            ballot = Ballot(
                battle_id=battle_id,
                voter=pair.owner,
                choice=choice,
                key=token_hash(vote_key),
                cast=now,
                asked_since=now - self.vote_within,
            )
            receipt, is_new = voting.cast(session, ballot)
        if is_new:
            self.notice(Notice("voted", battle_id, choice=choice))
        return receipt

    def _require_sound(self, sent: Pair) -> None:
        texts = {
            "prompt": (sent.prompt, self.longest_prompt),
            f"answer of {sent.a.version!r}": (sent.a.text, self.longest_answer),
            f"answer of {sent.b.version!r}": (sent.b.text, self.longest_answer),
        }
        for name, (text, most) in texts.items():
            if not text.strip():
                msg = Sentence("The %(name)s is empty: there is nothing to compare.", name=name)
                raise BadComparisonError(msg)
            if len(text) > most:
                msg = Sentence(
                    "The %(name)s has %(length)s characters; up to %(limit)s can be sent.",
                    name=name,
                    length=len(text),
                    limit=most,
                )
                raise BadComparisonError(msg)
        if sent.a.version == sent.b.version:
            msg = Sentence(
                "Both answers are of the version %(version)s: compare two.",
                version=repr(sent.a.version),
            )
            raise BadComparisonError(msg)


def _vote_key(token: str, battle_id: str) -> str:
    """Give what the vote on a pair is cast with: the same whenever the pair is sent again."""
    return hmac.new(token.encode(), battle_id.encode(), "sha256").hexdigest()


def _require_same(stored: StoredBattle, known: SentPair, source: Source, sent: Pair) -> None:
    """Refuse another pair under a key that was sent before; the arena draws sides of its own."""
    if known.erased:
        raise NotReadyError(ERASED)
    by_version = {source.model(one.version).id: one.text for one in (sent.a, sent.b)}
    last = stored.turns[-1]
    same = {
        "prompt": last.prompt == sent.prompt,
        "answers": {one.model_id: one.text for one in (last.a, last.b)} == by_version,
        "rater": known.owner == source.voter(sent.rater).id,
    }
    if sent.choice is not None:
        same["outcome"] = stored.choice == sent.choice
        same["sides"] = last.a.model_id == source.model(sent.a.version).id
    others = [name for name, is_same in same.items() if not is_same]
    if others:
        raise SentBeforeError(sent.key, others)


# Roster

LOOK_S = 2.0
"""How often each process looks whether the roster has changed."""


class LiveRoster:
    """Puts the roster to use whenever it has changed.

    Parameters
    ----------
    use : callable
        Called with all entries; may block, and raise an `ArenaError`: those before then stay.
    failing : callable
        Gives the models that have just failed: who fails too often is disabled.
    now : callable
        Time now, in UTC.
    """

    def __init__(
        self,
        store: Store,
        use: Callable[[Sequence[Entry]], None],
        failing: Callable[[], Iterable[str]],
        now: Callable[[], datetime],
    ) -> None:
        self._store = store
        self._use = use
        self._failing = failing
        self._now = now
        self._needed: set[str] = set()
        self._version = 0
        self._failed = 0

    def look(self) -> None:
        """Read the roster, and put it to use, if it has changed; may block."""
        for model in self._failing():
            self._pause(model)
        with self._store.reading() as session:
            version = roster.version(session)
            if version in (self._version, self._failed):
                return
            entries = roster.entries(session)
            problems = roster.unusable(session)
        for problem in problems.values():
            logger.error("%s", problem)
        try:
            self._use(entries)
        except ArenaError as error:
            logger.error("The changed roster cannot be used: %s", error)  # noqa: TRY400 - for people
            self._failed = version
        else:
            self._version = version
            logger.info("The roster has changed: version %d, %d entries", version, len(entries))

    def _pause(self, model: str) -> None:
        """Disable a model that has failed too often; nothing is logged that names it."""
        if not self._store.read(roster.failing, model):
            return
        try:
            failure = self._store.write(roster.pause, model, self._now())
        except RoomError:
            if model not in self._needed:
                logger.error(  # noqa: TRY400 - no fault of ours
                    "A model has failed %d times in a row. It is still drawn, as a battle needs "
                    "two. /admin and arena status show which model.",
                    roster.FAILED_IN_A_ROW,
                )
            self._needed.add(model)
            return
        if failure:
            logger.error(
                "A model has failed %d times in a row (%s) and is paused. /admin and arena status "
                "show which model, and /admin resumes it.",
                roster.FAILED_IN_A_ROW,
                FAILURES[failure],
            )

    async def keep_up(self) -> None:
        """Look every few seconds, off the event loop, until cancelled."""
        while True:
            try:
                await asyncio.to_thread(self.look)
            except ArenaError as error:
                logger.warning("The roster could not be read: %s", error)
            except Exception:
                logger.exception("A change of the roster ended in a fault of ours")
            await asyncio.sleep(LOOK_S)


# Labels

TAGGING = Tagger(TAGGER, VERSION)
"""Who labels here; a policy may read the labels of another version, or of a model."""
LABELS_PAUSE_S = 0.005
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
        store.write(labels.add, new, TAGGING, now())
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
        new: list[NewLabel] = []
        for turn in turns:
            naming = (self_naming(answer, names) for answer in turn.answers)
            a, b = (one is not None and one.kind == "self" for one in naming)
            value = "both" if a and b else "a" if a else "b" if b else "none"
            new.append((turn.id, NAMING.name, value, None))
            time.sleep(pause_s)
        store.write(labels.add, new, NAMING, now())
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
        store.write(labels.add, new, tagger, now)


async def keep_labelling(store: Store, now: Callable[[], datetime]) -> None:
    """Label new votes, rest, and look again, until cancelled."""
    while True:
        try:
            await asyncio.to_thread(partial(label_votes, store, now, pause_s=LABELS_PAUSE_S))
            await asyncio.to_thread(label_self_naming, store, now, LABELS_PAUSE_S)
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
        yield turn.id, facet, label.value, label.score
