"""Votes that applications send, and pairs that they show: into the same log as all others."""

import hmac
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random

from arena.domain.battle import BattleState, Mode, Notice, Pacing, Side, Snapshot, Voted
from arena.domain.source import SET, Comparison, Pair, Source, VersionAnswer
from arena.domain.vote import Choice, Receipt
from arena.errors import (
    ERASED,
    EXPIRED,
    BadComparisonError,
    NotReadyError,
    SentBeforeError,
)
from arena.guard.people import token_hash
from arena.play.snapshots import new_answer, stored_snapshot
from arena.store import sources, voting
from arena.store.prompt_ids import prompt_id
from arena.store.records import Ballot, NewBattle, StoredBattle
from arena.store.single_battles import written_battle
from arena.store.sources import SentPair
from arena.store.store import Store
from rating import __version__
from rating.sentences import Sentence
from rating.tables.escaping import storable

SAMPLER, SAMPLER_VERSION = "source", "1"
"""How the log says that a source chose the pair."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of a pair that was sent.

    Attributes
    ----------
    voter : str
        Id of the rater in the log.
    key : str or None
        What its vote is cast with; None where the vote came along.
    new : bool
        Whether it was written just now, and not before.
    """

    battle_id: str
    voter: str
    key: str | None
    new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What registered applications send; its methods block.

    Attributes
    ----------
    secret : str
        Behind the ids of prompts: see `arena.store.prompt_ids`.
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

    def compare(self, source: Source, sent: Comparison) -> Taken:
        """Commit a comparison with its vote; what is sent again is written once.

        Raises
        ------
        BadComparisonError, LimitError, SentBeforeError
            Nothing is written then.
        """
        self._require_sound(sent)
        key_hash, now = token_hash(f"comparison\n{sent.key}"), self.now()
        sides = {Side.A: sent.a, Side.B: sent.b}
        shown = now - timedelta(seconds=sent.seconds)
        with self.store.writing() as session:
            sources.hold(session, source)
            if known := sources.pair_of_key(session, source, key_hash):
                stored = written_battle(session, known.battle_id)
                _require_same(stored, known, source, sent)
                return Taken(known.battle_id, known.owner, None, new=False)
            new = self._draft(source, sent, sides, 0, shown)
            sources.take(session, source, new, sides, key_hash, None, now)
            ballot = Ballot(
                battle_id=new.public_id,
                voter=new.owner.id,
                choice=sent.choice,
                key=key_hash,
                cast=now,
            )
            voting.cast(session, ballot)
        self.notice(Voted(new.public_id, sent.choice))
        return Taken(new.public_id, new.owner.id, None, new=True)

    def open(self, source: Source, sent: Pair, token: str) -> Taken:
        """Write a pair that a page will show, on sides that are drawn; the same key, once.

        Raises
        ------
        BadComparisonError, LimitError, SentBeforeError
            Nothing is written then.
        """
        self._require_sound(sent)
        key_hash, now = token_hash(f"pair\n{sent.key}"), self.now()
        seed = self.rng.getrandbits(31)
        sides = _drawn(sent, seed)
        with self.store.writing() as session:
            sources.hold(session, source)
            if known := sources.pair_of_key(session, source, key_hash):
                stored = written_battle(session, known.battle_id)
                _require_same(stored, known, source, sent)
                vote_key = _vote_key(token, known.battle_id)  # of a new token another one
                sources.vote_with(session, known.battle_id, token_hash(vote_key))
                return Taken(known.battle_id, known.owner, vote_key, new=False)
            new = self._draft(source, sent, sides, seed, now)
            vote_key = _vote_key(token, new.public_id)
            sources.take(session, source, new, sides, key_hash, token_hash(vote_key), now)
        return Taken(new.public_id, new.owner.id, vote_key, new=True)

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
            cast = voting.cast(session, ballot)
        if cast.new:
            self.notice(Voted(battle_id, choice))
        return cast.receipt

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

    def _draft(
        self,
        source: Source,
        sent: Pair,
        sides: Mapping[Side, VersionAnswer],
        side_seed: int,
        created: datetime,
    ) -> NewBattle:
        a, b = (new_answer(source.model(sides[side].version)) for side in Side)
        return NewBattle(
            public_id=uuid.uuid4().hex,
            owner=source.voter(sent.rater),
            mode=Mode.ANONYMOUS,
            prompt=sent.prompt,
            a=a,
            b=b,
            side_seed=side_seed,
            sampler=SAMPLER,
            sampler_version=SAMPLER_VERSION,
            pair_probability=1.0,
            pacing=Pacing.BOTH_DONE,
            prompt_set=f"{SET}{source.name}",
            prompt_id=prompt_id(self.secret, sent.prompt),
            created=created,
            app_version=__version__,
        )


def _drawn(sent: Pair, seed: int) -> Mapping[Side, VersionAnswer]:
    """Put the answers on sides by the last bit of a seed."""
    both = (sent.a, sent.b) if seed % 2 else (sent.b, sent.a)
    return dict(zip(Side, both, strict=True))


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
    if isinstance(sent, Comparison):
        same["outcome"] = stored.choice == sent.choice
        same["sides"] = last.a.model_id == source.model(sent.a.version).id
    others = [name for name, is_same in same.items() if not is_same]
    if others:
        raise SentBeforeError(sent.key, others)
