"""Boards of prompts of one kind, and of a mix of kinds: fitted beside the requests for them."""

import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from itertools import compress

import numpy as np

from arena.boards.fitted import OPTIONS, newcomers_of, of_newest
from arena.domain.board_view import Effect, LabelBoard, LabelCount, LabelRow, Labels, ModelRecord
from arena.domain.vote import Policy
from arena.store import blocks, chain, labels, log, people
from arena.store.store import Store
from judge.labels.accuracy import accuracy_of
from rating import RateOptions, __version__
from rating.comparisons import Votes
from rating.errors import ConvergenceError, DataError, NotIdentifiedError
from rating.leave_out import quantile
from rating.mix import (
    Mix,
    MixBoard,
    PooledFit,
    PooledRating,
    RankReach,
    board_of_mix,
    cluster_of,
    contrast,
    envelope,
    pooled_fit,
    pooling_of,
    report_of_mix,
    whole_of,
)
from rating.pooling import Categorised, Unseen, on_unseen_prompts
from rating.sentences import Sentence
from rating.tables.coding import LOGGED_SIDES, LoggedVotes
from rating.tables.columns import UNLABELLED, Reading
from rating.tables.counts import read_groups
from rating.variants import POINTS_PER_NAT

logger = logging.getLogger(__name__)

STANDING = ("category", "language", "intent")
"""Labels by which there are always boards."""
ON_REQUEST = ("hard", "instructions", "refusal")
"""Labels whose boards are made on request."""
FACETS = (*STANDING, *ON_REQUEST)
AND = "&"
"""Between two labels, and between their values, on prompts that have both."""
FEWEST_OF_BOTH = 30
"""Votes on prompts of two labels from which there is a board of both."""
KAPPA = 2.0
"""How many times its share a kind may have in the mixes beside a board: see `envelope`."""
CATEGORY = "category"
"""The one of mixes."""
RARE = "rare"
"""Values with so few votes that they share one board, where models times values are too many."""
MOST_STRENGTHS = 2000
MOST_MIXES = 100
"""Boards of mixes that are kept until votes or labels have grown."""
LOOK = timedelta(seconds=5)
"""Between two looks for new votes and labels."""

METHODS = {
    "voter": Sentence(
        "Bradley-Terry, ties half, categories partially pooled; 95% intervals clustered by "
        "voter (CR3 jackknife), including the uncertainty of pooling"
    ),
    "none": Sentence(
        "Bradley-Terry, ties half, kinds of prompts pooled; 95% intervals that take votes as "
        "independent, with what pooling leaves open"
    ),
}
METHODS |= {"both": METHODS["voter"], "prompt": METHODS["none"]}
NO_LABELS = Sentence("No counted vote has a label yet. New votes are labelled within minutes.")
ONE_KIND = Sentence(
    "All votes so far are on prompts of one kind: the board of all prompts is theirs."
)


@dataclass(frozen=True, eq=False)
class _FittedFacet:
    """The boards of one facet, pooled.

    Attributes
    ----------
    name : str
        A label's, or those of two with `AND` between them.
    groups : mapping of str to Votes
        By value.
    fit : PooledFit or None
    reason : str or None
        Why there is no fit.
    newcomers : frozenset of str
        Models that the votes do not connect yet.
    unseen : Unseen or None
    """

    name: str
    groups: Mapping[str, Votes]
    fit: PooledFit | None = None
    reason: str | None = None
    newcomers: frozenset[str] = frozenset()
    unseen: Unseen | None = None

    @property
    def options(self) -> RateOptions:
        """How it is rated."""
        return replace(OPTIONS, by=self.name, pool=True)

    @property
    def counts(self) -> tuple[LabelCount, ...]:
        """Counted votes by value, the most frequent first."""
        votes = {value: group.data.n_votes for value, group in self.groups.items()}
        total = sum(votes.values())
        ordered = sorted(votes.items(), key=lambda item: (-item[1], item[0]))
        return tuple(LabelCount(value, n, n / total) for value, n in ordered if n)

    @cached_property
    def reach(self) -> Mapping[str, RankReach]:
        """Ranks of each model over mixes of the values, by its id; none without a fit."""
        if self.fit is None:
            return {}
        votes = self.fit.votes
        reached = envelope(votes.data.models, self.fit.best.strengths, votes.votes, (KAPPA,))
        return {one.model: one for one in reached}


@dataclass(frozen=True, eq=False)
class Snapshot:
    """All that was made of the votes and labels: at one moment, except what was asked for later.

    Attributes
    ----------
    facets : mapping of str to FittedFacet
        The `STANDING` ones, and those that were asked for before.
    only : tuple of Sentence
        That only the newest votes are in it, where that is so.
    later : mapping of str to Snapshot
        By facet that was asked for since: what it was made in, of the votes by then.
    """

    policy: str
    version: str
    updated: datetime
    facets: Mapping[str, _FittedFacet]
    records: Mapping[str, ModelRecord]
    only: tuple[Sentence, ...] = ()
    later: Mapping[str, "Snapshot"] = field(default_factory=dict)
    _boards: dict[tuple[str, str], LabelBoard] = field(default_factory=dict)
    _mixes: dict[object, MixBoard] = field(default_factory=dict)
    _one_at_a_time: threading.Lock = field(default_factory=threading.Lock)

    @property
    def labels(self) -> Labels:
        """The labels there always are, by facet."""
        return {name: self.facets[name].counts for name in STANDING if name in self.facets}

    @property
    def voted(self) -> int:
        """Counted votes with a category."""
        return sum(count.votes for count in self.facets[CATEGORY].counts)

    def facet(self, name: str) -> _FittedFacet | None:
        """Return the boards of a facet; None before the first request."""
        return self.facets.get(name) or (
            self.later[name].facet(name) if name in self.later else None
        )

    def has(self, facet: str, value: str) -> bool:
        """Tell whether there is a board of a value."""
        made = self.facet(facet)
        return made is not None and made.fit is not None and value in made.fit.votes.categories

    def has_both(self, facet: str, value: str) -> bool:
        """Tell whether enough votes are on prompts of two labels for a board of them."""
        made = self.facet(facet)
        if made is None or not self.has(facet, value):
            return False
        return made.groups[value].data.n_votes >= FEWEST_OF_BOTH

    def board(self, facet: str, value: str) -> LabelBoard:
        """Give the board of a value that has votes, of a facet with a fit; made once."""
        if facet in self.later:
            return self.later[facet].board(facet, value)
        made = self._boards.get((facet, value))
        if made is None:
            made = self._boards[facet, value] = self._made(self.facets[facet], value)
        return made

    def mix(self, mix: Mix) -> MixBoard:
        """Rate the models on a mix of categories; of many at once, one after the other.

        Raises
        ------
        DataError
            If the mix holds a category without votes, or there is no fit yet: it gives the reason.
        """
        facet = self.facets[CATEGORY]
        if facet.fit is None:
            raise DataError(facet.reason or NO_LABELS)
        key = (tuple(sorted(mix.shares.items())), mix.prompts)
        with self._one_at_a_time:
            if key not in self._mixes:
                whole = whole_of(facet.groups, facet.fit)
                made = board_of_mix(facet.fit, whole, mix, facet.options)
                self._mixes[key] = made
                while len(self._mixes) > MOST_MIXES:
                    del self._mixes[next(iter(self._mixes))]
            return self._mixes[key]

    def _made(self, facet: _FittedFacet, value: str) -> LabelBoard:
        fit, options = facet.fit, facet.options
        assert fit is not None
        place = fit.votes.categories.index(value)
        alone = np.eye(len(fit.votes.categories))[place]
        report = report_of_mix(fit, facet.groups[value], alone, options)
        effects = _effects(fit, place, facet.name, value)
        rows = tuple(
            self._row(row, facet.reach.get(row.model), *effects[row.model])
            for row in report.ratings
            if isinstance(row, PooledRating)
        )
        names = (self.records[model].name for model in sorted(facet.newcomers))
        return LabelBoard(
            facet=facet.name,
            value=value,
            policy=self.policy,
            version=self.version,
            data_hash=report.provenance.data_hash,
            updated=self.updated,
            votes=report.votes.used,
            voters=len(facet.groups[value].voters),
            of=sum(count.votes for count in facet.counts),
            method=METHODS[cluster_of(fit)],
            level=options.level,
            anchor_mean=options.mean,
            rows=rows,
            newcomers=tuple(names),
            warnings=(*self.only, *report.warnings),
            pooling=pooling_of(fit, options),
            labelled=accuracy_of(facet.name, value).rows,
            unseen=facet.unseen,
        )

    def _row(
        self, row: PooledRating, reach: RankReach | None, effect: Effect, corrected: Effect | None
    ) -> LabelRow:
        record = self.records[row.model]
        values = {name: getattr(row, name) for name in PooledRating.__dataclass_fields__}
        return LabelRow(
            **values,
            name=record.name,
            organisation=record.organisation,
            kind=record.kind,
            other_mixes=reach,
            effect=effect,
            corrected=corrected,
        )


def _effects(
    fit: PooledFit, place: int, facet: str, value: str
) -> dict[str, tuple[Effect, Effect | None]]:
    """Compare each model on a category with itself on all others: raw, and without tagger errors.

    The categories' strengths each sum to zero, so this is a gain on the average model.
    """
    votes = fit.votes.votes
    others = np.delete(np.arange(len(votes)), place)
    weights = np.zeros(len(votes))
    weights[place], weights[others] = 1.0, -votes[others] / votes[others].sum()
    tagger, tagged = accuracy_of(facet, value), float(votes[place] / votes.sum())
    df = fit.df
    reach = quantile(OPTIONS.level, df)
    each = {}
    nats = (POINTS_PER_NAT * x for x in contrast(fit, weights))
    for model, points, se in zip(fit.votes.data.models, *(x.tolist() for x in nats), strict=True):
        raw = Effect(points, points - reach * se, points + reach * se)
        freed = tagger.unattenuated(points, se, tagged=tagged, df=df, level=OPTIONS.level)
        each[model] = raw, _effect_of(freed.value, freed.lower, freed.upper) if freed else None
    return each


def _effect_of(value: float | None, lower: float | None, upper: float | None) -> Effect:
    value, lower, upper = (math.nan if x is None else x for x in (value, lower, upper))
    return Effect(value, lower, upper)


def fit_facet(columns: LoggedVotes, name: str) -> _FittedFacet:
    """Fit the boards of one facet; where that cannot be, the reason is given in words."""
    columns = replace(columns, labels={name: _with_rare(columns, name)})
    facet = _FittedFacet(name, {})
    if not any(columns.labels[name]):
        return replace(facet, reason=NO_LABELS)
    facet = replace(facet, groups=_groups(columns, facet.options))
    try:
        return _fitted(facet)
    except NotIdentifiedError as error:
        newcomers = newcomers_of(Categorised.of(facet.groups).data, error)
        if not newcomers:
            return replace(facet, reason=str(error))
    except (DataError, ConvergenceError) as error:
        return replace(facet, reason=str(error))
    facet = replace(facet, groups=_groups(columns.without(newcomers), facet.options))
    try:
        return _fitted(replace(facet, newcomers=newcomers))
    except (NotIdentifiedError, DataError, ConvergenceError) as error:
        return replace(facet, reason=str(error))


def _fitted(facet: _FittedFacet) -> _FittedFacet:
    if len(facet.counts) < 2:
        return replace(facet, reason=ONE_KIND if facet.counts else NO_LABELS)
    fit = pooled_fit(facet.groups, facet.options)
    unseen = on_unseen_prompts(fit.best, fit.votes, np.random.default_rng(OPTIONS.seed))
    return replace(facet, fit=fit, unseen=unseen)


def _groups(columns: LoggedVotes, options: RateOptions) -> dict[str, Votes]:
    groups = read_groups(columns, Reading.of(options))
    return {value: votes for value, votes in groups.items() if value != UNLABELLED}


def _with_rare(columns: LoggedVotes, name: str) -> Sequence[str | None]:
    """Give the labels, those with the fewest votes as one if there are too many to pool."""
    values = columns.labels[name]
    counted = Counter(filter(None, compress(values, columns.counted)))
    models = {model for side in LOGGED_SIDES for model in columns.texts[side].names}
    most = max(2, MOST_STRENGTHS // max(1, len(models)))
    if len(counted) <= most:
        return values
    stays = {value for value, _ in counted.most_common(most - 1)}
    return [value if value in stays or value is None else RARE for value in values]


SLOW_S = 2.0
REST = 20
"""Boards that take more than `SLOW_S` of computing stay for this many times as long."""


class LabelBoards:
    """Keeps the boards by label of a policy: a thread of its own makes them again.

    They are made on request, if votes or labels were added; a slow board rests for
    `REST` times as long. Boards by a label that is not `STANDING`, or by two, are made at their
    first request. A request gets the newest board that is ready.

    Parameters
    ----------
    now : callable
        Time now, in UTC.
    worked : callable
        Seconds of computing so far, of the thread that calls.
    """

    def __init__(
        self,
        store: Store,
        policy: Policy,
        now: Callable[[], datetime],
        worked: Callable[[], float] = time.thread_time,
    ) -> None:
        self._store = store
        self._policy = policy
        self._now = now
        self._worked = worked
        self._lock = threading.Lock()
        self._worker = ThreadPoolExecutor(1, "boards-by-label")
        self._closing = False
        self._snapshot: Snapshot | None = None
        self._asked: set[str] = set()
        self._work: Future[None] | None = None
        self._begun = time.monotonic()
        self._looks_again = now()

    def read(self, patience_s: float = 0.0, facet: str = CATEGORY) -> Snapshot | None:
        """Give what there is; before a first with that facet, wait a while for it.

        Parameters
        ----------
        patience_s : float
            Seconds since it was begun after which nobody waits any longer.
        facet : str
            What is asked for: one of `FACETS`, or two with `AND` between them. Those not
            `STANDING` are made now, and again with the others only if asked for since.

        Returns
        -------
        Snapshot or None
            None before the first; the facet may not be there yet.

        Raises
        ------
        StoreError
            If the log could not be read, and what is asked for is not there.
        """
        with self._lock:
            if facet not in STANDING:
                self._asked.add(facet)
            idle = (self._work is None or self._work.done()) and not self._closing
            lacks = self._snapshot is None or self._snapshot.facet(facet) is None
            is_time = self._now() >= self._looks_again
            if idle and (is_time or (lacks and self._snapshot is not None)):
                self._work = self._worker.submit(self._look, is_time)
                self._begun = time.monotonic()
            work, waited_s = self._work, time.monotonic() - self._begun
        if lacks and work and wait([work], max(0.0, patience_s - waited_s)).done:
            work.result()
        return self._snapshot

    @property
    def latest(self) -> Snapshot | None:
        """What there is; makes nothing again."""
        return self._snapshot

    def close(self) -> None:
        """Break off what is under way, and wait for that."""
        with self._lock:
            self._closing = True
        self._worker.shutdown(cancel_futures=True)

    def _look(self, is_time: bool) -> None:
        """Make all again, if votes or labels have grown and it is time; then what was asked."""
        began = self._worked()
        with self._lock:
            asked, self._asked = self._asked, set()
        try:
            made = self._renewed(asked) if is_time or not self._snapshot else self._snapshot
            if lacking := {name for name in asked if made.facet(name) is None}:
                since = dict.fromkeys(lacking, self._read(lacking))
                made = replace(made, later={**made.later, **since})
            self._snapshot = made
        except CancelledError:
            return
        except Exception:
            logger.exception("Boards by label could not be made")
            raise
        finally:
            took = self._worked() - began
            rest = timedelta(seconds=REST * took) if took > SLOW_S else LOOK
            self._looks_again = max(self._looks_again, self._now() + rest)

    def _renewed(self, asked: Collection[str]) -> Snapshot:
        known, tagger = self._snapshot, self._policy.tagger
        if known:
            with self._store.reading() as session:
                head, newest = chain.head(session), labels.newest(session, tagger)
                version = _version(head, newest, people.adopted(session))
            if version == known.version:
                return known
        return self._read((*STANDING, *asked))

    def _read(self, names: Collection[str]) -> Snapshot:
        """Make the boards of some facets from the log as it is."""
        tagger = self._policy.tagger
        single = {part for name in names for part in name.split(AND)}
        with self._store.reading() as session:
            head, newest = chain.head(session), labels.newest(session, tagger)
            version = _version(head, newest, people.adopted(session))
            after = log.newest(session)
            columns = blocks.columns(session, self._policy, after=after)
            by_battle = labels.of_votes(session, tagger, single, after=after)
            records = log.models(session, self._policy.kinds)
        of_vote = [by_battle.get(battle, {}) for battle in columns.values("battle")]
        values = {name: [_joint(each, name) for each in of_vote] for name in names}
        columns = replace(columns, labels=values)
        return Snapshot(
            policy=self._policy.name,
            version=version,
            updated=self._now(),
            facets={name: self._facet(columns, name) for name in names},
            records={record.id: record for record in records},
            only=of_newest(after, len(columns)),
        )

    def _facet(self, columns: LoggedVotes, name: str) -> _FittedFacet:
        if self._closing:
            raise CancelledError
        return fit_facet(columns, name)


def _version(head: str, newest: int, adopted: int) -> str:
    return f"{head[:12] or 'empty'}-{newest}-{adopted}-{__version__}"


def _joint(of_vote: Mapping[str, str], name: str) -> str | None:
    """Give the value of a facet, or of two; None unless each is known.

    Examples
    --------
    >>> _joint({"category": "code", "language": "fr"}, "category&language")
    'code&fr'
    """
    values = [of_vote.get(part) for part in name.split(AND)]
    return AND.join(value for value in values if value) if all(values) else None
