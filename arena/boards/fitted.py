"""The votes of the log as fits: the numbers of `arena rate`, on which boards and studies rest.

`fit_log` fits the votes that count, and `History` the same at past dates. After these come what a
board says of models as models: retired ones, variants and shares of organisations. `votes_of`
reads the log of any database; `RaceWatch` and `Valuation` work in the background, so that nobody
who asks waits for them.
"""

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from datetime import time as clock_time
from typing import TYPE_CHECKING, TypeVar

import numpy as np

import rating
from arena.domain.board_view import (
    NO_VOTES,
    BoardRow,
    ModelRecord,
    Moment,
    OrganisationShare,
    PastRating,
    Valued,
)
from arena.domain.model import Entrant, Release, Stage
from arena.domain.room_view import RaceStanding
from arena.domain.vote import DEFAULT, Policy
from arena.errors import StoreError
from arena.store import blocks, chain, labels, log, people, voting
from arena.store.engine import reading_existing
from arena.store.store import Store
from judge.labels.taggers import CATEGORIES, REFUSAL
from rating import (
    Comparisons,
    Fit,
    Inference,
    RateOptions,
    Report,
    __version__,
    connectivity,
    gini,
    project_on_order,
    selection_inflation,
    standard_error_apart,
    to_points,
)
from rating.board import report_of
from rating.comparisons import Votes
from rating.contrasts import Spread, spread
from rating.decide import run_race
from rating.errors import DataError, NotIdentifiedError
from rating.ranks import RankRanges, joint_rank_ranges
from rating.report import ModelRating
from rating.sentences import Sentence
from rating.tables.coding import LOGGED_SIDES, LoggedVotes, microseconds
from rating.tables.columns import Reading
from rating.tables.counts import count_votes, read_figures, read_rows
from rating.typing import Bools, Floats, Ints
from rating.value import Value, value
from rating.variants import POINTS_PER_NAT

if TYPE_CHECKING:
    from judge.labels.safety import SafetyTable


# Fits

OPTIONS = RateOptions()
"""The defaults of `arena rate`. The seed is among them: the same votes give the same board."""

NEWCOMER_SHARE = 0.05
"""Models that the votes do not connect are excluded while they hold no more of the votes."""

MOST_MOMENTS = 6

LEAST_DAYS = 3
"""Votes of fewer days have no history."""

DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """Votes that identify ratings.

    Attributes
    ----------
    votes : Votes
        Those behind them, without those of new models.
    spread : Spread
        How far each strength may be off.
    newcomers : tuple of str
        Models whose few votes do not connect them yet, excluded with those votes.
    """

    votes: Votes
    fit: Fit
    spread: Spread
    newcomers: tuple[str, ...]

    @property
    def data(self) -> Comparisons:
        """The votes as the estimators take them."""
        return self.votes.data

    @property
    def inference(self) -> Inference:
        """How sure any contrast of the strengths is."""
        assert self.spread.inference is not None
        return self.spread.inference

    def report(self) -> Report:
        """Rate as `arena rate` does, with ranks and warnings."""
        options = OPTIONS.resolved(self.data)
        rng = np.random.default_rng([options.seed, 1])
        return report_of(self.fit, self.votes, self.spread, options, rng)

    def rank_ranges(self) -> RankRanges:
        """Bound the ranks as `report` does, with what each claim is."""
        rng = np.random.default_rng([OPTIONS.seed, 1])
        return joint_rank_ranges(self.inference, rng=rng, level=OPTIONS.level)

    def among_voters(self) -> tuple[ModelRating, ...]:
        """Rate for these voters alone, where they are few and that claims ranks; else nothing.

        How they would rate with endless votes, see `rating.RateOptions`.
        """
        if not any(kind.cluster == "voter" and kind.is_small for kind in self.inference.kinds):
            return ()
        options = replace(OPTIONS, claims="these-voters").resolved(self.data)
        rng = np.random.default_rng([OPTIONS.seed, 2])
        off = spread(self.fit, self.data, options, rng)
        ratings = report_of(self.fit, Votes(self.data), off, options, rng).ratings
        return ratings if any(row.rank_low for row in ratings) else ()

    def voter_points(self) -> dict[str, float]:
        """Give each model's rating if every voter had the same weight in all."""
        assert self.data.voter is not None
        each = np.bincount(self.data.voter, self.data.votes, self.data.n_voters)
        share = 1 / each[self.data.voter]
        votes = self.data.votes
        even = replace(self.data, weight=votes * share, weight_sq=votes * share**2)
        fit = rating.fit(even)
        return dict(zip(fit.models, to_points(fit.theta).tolist(), strict=True))


READING = Reading.of(OPTIONS)
"""How a board reads the log."""


def fit_log(log: LoggedVotes, votes: Votes | None = None) -> Fitted:
    """Fit the votes that count, without the new models that would leave the others without one.

    Parameters
    ----------
    votes : Votes, optional
        Those of the log, where they have been counted.

    Raises
    ------
    rating.NotIdentifiedError
        If the votes identify no rating.
    """
    votes = votes or count_votes(log, READING)
    try:
        return _fitted(votes, ())
    except NotIdentifiedError as error:
        newcomers = newcomers_of(votes.data, error)
        if not newcomers:
            raise
    votes = count_votes(log.without(newcomers), READING)
    return _fitted(votes, tuple(sorted(newcomers)))


def _fitted(votes: Votes, newcomers: tuple[str, ...]) -> Fitted:
    data = votes.data
    fit = rating.fit(data)
    off = spread(fit, data, OPTIONS.resolved(data), np.random.default_rng(OPTIONS.seed))
    return Fitted(votes, fit, off, newcomers)


def newcomers_of(data: Comparisons, error: NotIdentifiedError) -> frozenset[str]:
    """Name the models outside the largest group, if they are few enough to excluded."""
    core = frozenset(error.groups[0] if error.groups else ())
    inside = np.array([model in core for model in data.models], dtype=bool)
    outside = ~inside[data.pairs].all(axis=1)
    few = data.votes[outside].sum() <= NEWCOMER_SHARE * data.n_votes
    if len(core) < 2 or not few:
        return frozenset()
    met = np.unique(data.pairs[outside])
    return frozenset(data.models[i] for i in met) - core


def moments(first: datetime, now: datetime) -> tuple[datetime, ...]:
    """Choose past midnights, evenly apart from the first vote on: at most `MOST_MOMENTS`.

    They stay the same for as long as the votes have no more days than these can show, so that
    what was computed for them can be kept.

    Examples
    --------
    >>> from datetime import UTC
    >>> start = datetime(2026, 5, 3, 9, tzinfo=UTC)
    >>> [when.day for when in moments(start, start + 7 * DAY)]
    [5, 7, 9]
    """
    start = datetime.combine(first.date(), clock_time(), first.tzinfo)
    days = (now - start) // DAY
    if days < LEAST_DAYS:
        return ()
    step = -(-days // MOST_MOMENTS) * DAY
    return tuple(start + i * step for i in range(1, MOST_MOMENTS + 1) if start + i * step < now)


class History:
    """Keeps what was computed for a past date for as long as its votes are the same."""

    def __init__(self) -> None:
        self._known: dict[tuple[datetime, int], Moment] = {}

    def know(self, past: Iterable[Moment]) -> None:
        """Take over what another process has computed."""
        self._known |= {(moment.when, moment.votes): moment for moment in past}

    def read(self, log: LoggedVotes, now: datetime) -> Iterator[tuple[Moment, ...]]:
        """Give the board at some past dates: those that are known at once, then one more a time.

        Parameters
        ----------
        log : LoggedVotes
            In the order of the log: votes are only ever added to it, or excluded.
        """
        created = log.created[log.counted]
        chosen = moments(moment_of(created.min()), now) if created.size else ()
        keys = [(when, int((created < microseconds(when)).sum())) for when in chosen]
        self._known = {key: self._known[key] for key in keys if key in self._known}
        yield tuple(self._known.values())
        for key in keys:
            if key not in self._known:
                self._known[key] = _made(log, *key)
                yield tuple(self._known[key] for key in keys if key in self._known)


def moment_of(created: int) -> datetime:
    """Give the moment this many microseconds after 1970, in UTC."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(created))


def _made(log: LoggedVotes, when: datetime, votes: int) -> Moment:
    try:
        ratings = _ratings(fit_log(log.before(when)))
    except NotIdentifiedError:
        ratings = ()
    return Moment(when=when, votes=votes, ratings=ratings)


def _ratings(fitted: Fitted) -> tuple[PastRating, ...]:
    nats = (fitted.fit.theta, fitted.spread.low, fitted.spread.high)
    rows = zip(fitted.fit.models, *(to_points(x).tolist() for x in nats), strict=True)
    ratings = [
        PastRating(model=model, rating=points, lower=lower, upper=upper)
        for model, points, lower, upper in rows
    ]
    return tuple(sorted(ratings, key=lambda past: (-past.rating, past.model)))


# Models on a board

MOST_AGAINST_RETIRED = 0.5
"""Share of a model's votes against retired models beyond which the board says so."""


def on_retired(
    data: Comparisons, entrants: Mapping[str, Entrant], records: Sequence[ModelRecord]
) -> tuple[str, ...]:
    """Return which ratings rest on models that have left.

    Parameters
    ----------
    data : Comparisons
        All counted votes.
    """
    left = np.array([entrants.get(m, Entrant()).retired for m in data.models], dtype=bool)
    apart = _apart(data, left)
    names = {record.id: record.name for record in records}
    warnings = []
    if apart:
        warnings.append(
            Sentence(
                "Only votes on models that have retired connect %(names)s with the other models: "
                "none of them has met one of those.",
                names=_joined(apart, names),
            )
        )
    if mostly := [model for model in _mostly_against(data, left) if model not in apart]:
        warnings.append(
            Sentence(
                "Most votes on these models are against models that have retired: %(names)s.",
                names=_joined(mostly, names),
            )
        )
    return tuple(warnings)


def _apart(data: Comparisons, left: Bools) -> list[str]:
    """Name the models outside the largest group, of those that stay, except retired ones."""
    if not left.any():
        return []
    stay = {model for model, gone in zip(data.models, left, strict=True) if not gone}
    met_one: Bools = np.asarray(left[data.pairs].any(axis=1))
    direct = data.subset(~met_one)
    groups = [group for group in connectivity(direct).connected if stay.issuperset(group)]
    largest, *others = groups or [()]
    joined = next((set(g) for g in connectivity(data).connected if {*largest} & {*g}), set())
    return sorted(model for group in others for model in group if model in joined)


def _mostly_against(data: Comparisons, left: Bools) -> list[str]:
    """Name the models that stay with more than `MOST_AGAINST_RETIRED` against retired ones."""
    votes = data.table(data.votes).sum(axis=-1)
    votes = votes + votes.T
    against, of = votes[:, left].sum(axis=1), votes.sum(axis=1)
    mostly = ~left & (against > MOST_AGAINST_RETIRED * of)
    return sorted(data.models[i] for i in np.flatnonzero(mostly))


def _joined(models: Iterable[str], names: Mapping[str, str]) -> str:
    return ", ".join(names.get(model, model) for model in models)


def stages_of(
    columns: LoggedVotes, entrants: Mapping[str, Entrant], models: Iterable[str], enough: int
) -> dict[str, Stage]:
    """Describe how far each model has come; votes from before a pre-release was named are none."""
    votes: dict[str, int] = defaultdict(int)
    for side in map(columns.texts.__getitem__, LOGGED_SIDES):
        counts = np.bincount(side.codes[columns.counted] + 1, minlength=len(side.names) + 1)
        for name, n in zip(side.names, counts[1:].tolist(), strict=True):
            votes[name] += n
    for model, one in entrants.items():
        if one.released:
            votes[model] = _votes_between(columns, model, one.released)
    return {model: entrants.get(model, Entrant()).stage(votes[model], enough) for model in models}


def votes_otherwise(columns: LoggedVotes, entrants: Mapping[str, Entrant]) -> dict[str, int]:
    """Count the votes on what answered otherwise under the same id, where there are any."""
    counts = {
        model: sum(_votes_between(columns, model, *span) for span in one.otherwise)
        for model, one in entrants.items()
    }
    return {model: n for model, n in counts.items() if n}


def _votes_between(
    columns: LoggedVotes, model: str, since: datetime, until: datetime | None = None
) -> int:
    """Count the votes on a model from one moment to before another, or to the last."""
    during = columns.counted & (columns.created >= microseconds(since))
    if until is not None:
        during &= columns.created < microseconds(until)
    return int((during & columns.on({model})).sum())


def on_otherwise(
    otherwise: Mapping[str, int], data: Comparisons, records: Sequence[ModelRecord]
) -> tuple[str, ...]:
    """Say whose ratings mix answers of what was changed under one id."""
    names = {record.id: record.name for record in records}
    votes = dict(zip(data.models, data.votes_per_model().tolist(), strict=True))
    return tuple(
        Sentence(
            "%(name)s was changed under the same id: %(n)s of the %(of)s votes on it are on what "
            "answered otherwise. Its rating mixes both; the changed model needs a new id.",
            name=names.get(model, model),
            n=n,
            of=votes.get(model, n),
        )
        for model, n in sorted(otherwise.items())
    )


def with_families(
    rows: Sequence[BoardRow],
    entrants: Mapping[str, Entrant],
    data: Comparisons,
    inference: Inference,
) -> tuple[BoardRow, ...]:
    """Say of each rated model of which producer's variants it is, and what that does to it.

    Parameters
    ----------
    data : Comparisons
        All counted votes: a variant was tested if it is on a side of one.
    """
    tested = defaultdict(list)
    for model, votes in zip(data.models, data.votes_per_model().tolist(), strict=True):
        family = entrants.get(model, Entrant()).family
        if family and votes:
            tested[family].append(model)
    marked = {row.model: row for row in rows}
    for family, models in tested.items():
        named = [model for model in models if entrants[model].release is Release.RELEASED]
        rated = [marked[model] for model in named if model in marked]
        if not rated:
            continue
        n, covariance = len(models), _covariance(inference, [row.model for row in rated])
        best = max(rated, key=lambda row: (row.stage is not Stage.RETIRED, row.rating))
        best_of = None
        if n > 1 and np.isfinite(covariance).all():
            taken = selection_inflation(standard_error_apart(covariance), n)
            best_of = best.rating - POINTS_PER_NAT * taken
        declared = _declared(rated, entrants, covariance)
        for row in rated:
            marked[row.model] = replace(
                row,
                family=family,
                variants=n,
                best_of=best_of if row is best else None,
                declared=declared.get(row.model),
            )
    return tuple(marked[row.model] for row in rows)


def _declared(
    rated: Sequence[BoardRow], entrants: Mapping[str, Entrant], covariance: Floats
) -> dict[str, float]:
    """Put the variants that have a declared place into that order, in points."""
    places = [entrants[row.model].declared_order for row in rated]
    known = np.array([place is not None for place in places], dtype=bool)
    if known.sum() < 2 or not np.isfinite(covariance).all():
        return {}
    points = np.array([row.rating for row in rated])[known]
    order: Ints = np.array([place for place in places if place is not None])
    # Places from two files may be the same: they then stand as the votes have them.
    order = np.lexsort((-points, order)).argsort()
    moved = project_on_order(points / POINTS_PER_NAT, covariance[np.ix_(known, known)], order)
    names = [row.model for row, one in zip(rated, known, strict=True) if one]
    return dict(zip(names, (moved * POINTS_PER_NAT).tolist(), strict=True))


def _covariance(inference: Inference, models: Sequence[str]) -> Floats:
    """Give the covariance of some ratings: of two, from the variances of both and of the gap."""
    index = {model: i for i, model in enumerate(inference.fit.models)}
    k, some = inference.fit.n_models, [index[model] for model in models]
    ratings = np.eye(k, len(inference.fit.x))[some]
    ratings[:, :k] -= inference.founded / inference.founded.sum()
    first, second = np.triu_indices(len(some), k=1)
    each = inference.of(ratings).variance
    covariance = np.diag(each)
    gaps = inference.of(ratings[first] - ratings[second]).variance
    covariance[first, second] = (each[first] + each[second] - gaps) / 2
    covariance[second, first] = covariance[first, second]
    return covariance


def shares_of(data: Comparisons, records: Sequence[ModelRecord]) -> tuple[OrganisationShare, ...]:
    """Count whose models the votes are about, largest first; none without votes."""
    known = {record.id: record for record in records}
    votes: dict[str, list[int]] = defaultdict(list)
    for model, n in zip(data.models, data.votes_per_model().tolist(), strict=True):
        if n and model in known:
            votes[known[model].organisation or known[model].name].append(n)
    total = sum(map(sum, votes.values()))
    shares = [
        OrganisationShare(organisation=name, models=len(n), votes=sum(n), share=sum(n) / total)
        for name, n in votes.items()
    ]
    return tuple(sorted(shares, key=lambda share: (-share.votes, share.organisation)))


def gini_of(shares: Sequence[OrganisationShare]) -> float | None:
    """Describe how unequal they are; None without two organisations."""
    if len(shares) < 2:
        return None
    return gini(np.array([share.votes for share in shares], dtype=np.float64))


# Votes of a database

T = TypeVar("T")

PARTS = ("category", "language", "intent", "hard", "instructions", *CATEGORIES, "turns", REFUSAL)
"""Labels by which votes can be parted."""
REMARKS = ("voter_intent", "reasons_a", "reasons_b")
"""What voters remarked, beside the labels: by the first votes can be parted, too."""


def votes_of(url: str, tagger: str | None = None, policy: Policy = DEFAULT) -> LoggedVotes:
    """Read the votes of the log in a database; a policy states which of them count.

    With the labels of their prompts by one tagger, and what was measured on the answers, which
    are read once they are asked for: there are a dozen a vote.

    Parameters
    ----------
    tagger : str, optional
        As `arena.store.labels.tagger_named` takes it; that of the policy if not given.

    Raises
    ------
    DataError
        If there are no labels by such a tagger, or several have the name.
    StoreError
        If the database cannot be read.
    """
    with reading_existing(url) as session:
        by = labels.tagger_named(session, tagger)
        votes = blocks.columns(session, policy, url)
    battles = votes.values("battle")

    def labels_of(name: str) -> Mapping[str, list[str | None]]:
        with reading_existing(url) as session:
            if name not in REMARKS:
                known = labels.of_votes(session, by, [name])
                return {name: [known.get(battle, {}).get(name) for battle in battles]}
            beside = voting.of_battles(session)
        return {n: [beside.get(battle, {}).get(n) for battle in battles] for n in REMARKS}

    def figures_of(_: str) -> Mapping[str, list[float | None]]:
        with reading_existing(url) as session:
            return _in_columns(battles, log.figures(session, DEFAULT.tagger))

    return replace(
        votes,
        labels=_Beside((*PARTS, *REMARKS), labels_of),
        figures=_Beside(log.Figures._fields, figures_of),
    )


class _Beside(Mapping[str, list[T]]):
    """Columns beside votes, each read once it is asked for, perhaps with others."""

    def __init__(self, names: Sequence[str], read: Callable[[str], Mapping[str, list[T]]]) -> None:
        self._names = names
        self._reader = read
        self._read: dict[str, list[T]] = {}

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __getitem__(self, name: str) -> list[T]:
        if name not in self:
            raise KeyError(name)
        if name not in self._read:
            self._read |= self._reader(name)
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def of_newest(after: int, votes: int) -> tuple[Sentence, ...]:
    """Say that only the newest votes are counted, where the ones before were left unparsed."""
    if not after:
        return ()
    return (
        Sentence(
            "Only the newest %(n)s votes are counted here; the leaderboard counts all.", n=votes
        ),
    )


def _in_columns(
    battles: Sequence[str], figures: Mapping[str, log.Figures]
) -> dict[str, list[float | None]]:
    names = log.Figures._fields
    nothing = log.Figures(*[None] * len(names))
    rows = [figures.get(battle, nothing) for battle in battles]
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}


# Races and quality versus cost, in the background

logger = logging.getLogger(__name__)

RACE_S, VALUE_S = 10.0, 30.0
"""Seconds between two looks, at least."""
RACE_REST, VALUE_REST = 20, 50
"""Between two looks pass this many times as long as the last one took, at least."""
LEVEL = 0.95


async def keep_looking(look: Callable[[], None], what: str, least_s: float, rest: float) -> None:
    """Look in a thread, rest, and look again, until cancelled; a fault ends one look only.

    Parameters
    ----------
    look : callable
        Works something out, if votes were added.
    what : str
        Names it at the beginning of a sentence of the log.
    least_s, rest : float
        Between two looks pass at least ``least_s``, and ``rest`` times as long as the last took.
    """
    while True:
        began = time.monotonic()
        try:
            await asyncio.to_thread(look)
        except StoreError as error:
            logger.warning("%s could not be read: %s", what, error)
        except Exception:
            logger.exception("%s ended in a fault of ours", what)
        await asyncio.sleep(max(least_s, rest * (time.monotonic() - began)))


def standing_of(votes: LoggedVotes, between: tuple[str, str]) -> RaceStanding:
    """Run a race over the votes that count; before both have any, nothing is known of it."""
    try:
        reading = Reading(prompts=True, ordered=True)
        race = run_race(read_rows(votes, reading), between, level=LEVEL)
    except DataError:  # no votes, or none on one of the two
        return RaceStanding(between, LEVEL)
    look = race.looks[-1] if race.looks else None
    if look is None:
        return RaceStanding(between, LEVEL, race.votes, race.voters)
    return RaceStanding(
        between,
        LEVEL,
        look.votes,
        look.voters,
        look.lead,
        look.lower,
        look.upper,
        separated=race.separated is not None,
    )


class RaceWatch:
    """Keeps how a race stands; nobody who asks waits for it."""

    def __init__(self, store: Store, between: tuple[str, str]) -> None:
        self._store = store
        self._between = between
        self._head: str | None = None
        self._standing = RaceStanding(between, LEVEL)

    def read(self) -> RaceStanding:
        """Give what was worked out last."""
        return self._standing

    def look(self) -> None:
        """Work it out now, if votes were added."""
        with self._store.reading() as session:
            head = chain.head(session)
            if head == self._head:
                return
            votes = blocks.columns(session, DEFAULT, after=log.newest(session))
        self._standing, self._head = standing_of(votes, self._between), head

    async def keep_on(self) -> None:
        """Work it out, rest, and look whether votes were added, until cancelled."""
        await keep_looking(self.look, "The race", RACE_S, RACE_REST)


class Valuation:
    """Keeps what a policy's votes say of quality and cost; nobody who asks waits for it.

    Parameters
    ----------
    now : callable
        Time now, in UTC.
    safety : SafetyTable, optional
        What models refuse.
    """

    def __init__(
        self,
        store: Store,
        policy: Policy,
        now: Callable[[], datetime],
        safety: "SafetyTable | None" = None,
    ) -> None:
        self._store = store
        self._safety = safety
        self._policy = policy
        self._now = now
        self._valued: Valued | None = None

    def read(self) -> Valued | None:
        """Give what was worked out last; None before the first time."""
        return self._valued

    async def keep_on(self) -> None:
        """Work it out, rest, and look whether votes were added, until cancelled."""
        await keep_looking(self.look, "Quality and cost", VALUE_S, VALUE_REST)

    def look(self) -> None:
        """Work it out now, if votes were added."""
        with self._store.reading() as session:
            known = people.adopted(session)
            head = chain.head(session)[:12] or "empty"
            version = f"{head}-{known}-{__version__}"
            if self._valued is not None and self._valued.version == version:
                return
            after = log.newest(session)
            votes = blocks.columns(session, self._policy, after=after)
            figures = log.figures(session, self._policy.tagger, after=after)
            votes = replace(votes, figures=_in_columns(votes.values("battle"), figures))
            records = log.models(session, self._policy.kinds)
        board, reason = _worked_out(votes)
        if board:
            only = of_newest(after, len(votes))
            board = replace(board, warnings=(*only, *board.warnings))
        self._valued = Valued(
            policy=self._policy.name,
            version=version,
            updated=self._now(),
            names={record.id: record.name for record in records},
            value=board,
            reason=reason,
            safety=self._safety,
        )


def _worked_out(votes: LoggedVotes) -> tuple[Value | None, str | None]:
    if not votes.counted.any():
        return None, NO_VOTES
    try:
        newcomers = frozenset(fit_log(votes).newcomers)
        return value(*read_figures(votes.without(newcomers), READING), OPTIONS), None
    except (DataError, NotIdentifiedError) as error:
        return None, error.args[0]
