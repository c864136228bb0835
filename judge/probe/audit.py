"""The audit of a way to rate: reruns, truth, discriminability, consistency, more votes."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from judge.probe.people import MEASURES, Rated, World, WorldMeasure
from judge.probe.ranking import (
    Desideratum,
    Simulated,
    on_consistency,
    on_discriminability,
    on_monotone,
    on_reruns,
    on_validity,
    signal_to_noise,
    unknown,
    variance_shares,
)
from judge.probe.robustness import consistency, rerun_noise, spearman
from rating import RateOptions
from rating.errors import DataError, RatingError
from rating.rows import VoteRows
from rating.tables.columns import Reading
from rating.tables.counts import read_votes
from rating.typing import Floats

Progress = Callable[[int, int], None]
T = TypeVar("T")

ARENAS = 200
FEWEST_ARENAS = 12
RERUNS = 5
SEEDS = 3
PARTS = (9, 6, 4)
"""How finely the votes are divided, each rated by itself: the first that can be rated."""
MORE = np.array([0.25, 0.5, 1.0])
"""Shares of the votes over which a measure should come nearer to the truth."""


@dataclass(frozen=True, slots=True)
class Audit:
    """Whether a measure can be relied on.

    Attributes
    ----------
    measure : str
    desiderata : tuple of Desideratum
        In the order of `judge.probe.ranking.NAMES`.
    """

    measure: str
    desiderata: tuple[Desideratum, ...]

    @property
    def failed(self) -> tuple[str, ...]:
        """What was asked and not met."""
        return tuple(one.name for one in self.desiderata if one.passed is False)

    def __getitem__(self, name: str) -> Desideratum:
        """Return a desideratum by name."""
        return next(one for one in self.desiderata if one.name == name)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "measure": self.measure,
            "failed": list(self.failed),
            "desiderata": [one.to_dict() for one in self.desiderata],
        }


def audit(
    measure: WorldMeasure,
    world: World,
    *,
    votes: VoteRows | None = None,
    arenas: int = ARENAS,
    rng: np.random.Generator,
    progress: Progress = lambda *_: None,
) -> Audit:
    """Audit a way to rate on an arena whose truth is known.

    Validity is seen on ``arenas`` casts of votes in ``world``; the controls with permuted results,
    and the gain from more votes, on half as many. Reruns, discriminability and consistency
    need no truth: they are seen on ``votes``, rated again with other seeds and in other orders,
    in parts, and with other choices.

    Parameters
    ----------
    votes : VoteRows, optional
        Of the same models; a cast of the world by default.
    arenas : int
        At least `FEWEST_ARENAS`.
    progress : callable
        Called with the simulated arenas done so far and in all.

    Raises
    ------
    DataError
        For too few arenas.
    RatingError
        If ``votes`` give no rating.

    References
    ----------
    .. [1] D. Chanin, "Measuring what sparse autoencoder benchmarks measure", arXiv 2605.18229,
       whose questions these are; the thresholds of validity, consistency and reruns are ours.
    """
    if arenas < FEWEST_ARENAS:
        raise DataError(f"{arenas} simulated arenas are too few: ask for {FEWEST_ARENAS} or more.")
    seen = world.cast(rng) if votes is None else votes
    work = _Work(measure, world, rng, progress, total=arenas + 2 * (arenas // 2))
    cast = work.each(arenas, measure.rate)
    return Audit(
        measure.name,
        (
            _reruns(work, seen, cast),
            _validity(work, cast, arenas),
            _discriminability(work, seen),
            _consistency(work, seen),
            _monotone(work, arenas // 2),
        ),
    )


@dataclass(slots=True)
class _Work:
    """What every part of an audit needs, and the count of arenas done."""

    measure: WorldMeasure
    world: World
    rng: np.random.Generator
    progress: Progress
    total: int
    done: int = 0
    truth: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.truth = self.world.truth()

    def tell(self) -> None:
        """Count an arena."""
        self.done += 1
        self.progress(self.done, self.total)

    def tried(
        self, rate: Callable[[VoteRows, np.random.Generator], T], votes: VoteRows
    ) -> T | None:
        """Rate votes of a simulated arena; None where they give no rating."""
        try:
            return rate(votes, self.rng)
        except RatingError:
            return None

    def each(
        self,
        arenas: int,
        rate: Callable[[VoteRows, np.random.Generator], T],
        *,
        permuted: bool = False,
    ) -> list[T]:
        """Rate casts of votes, perhaps of permuted results, without those that give no rating."""
        rated = []
        for _ in range(arenas):
            votes = self.world.cast(self.rng)
            rated.append(self.tried(rate, votes.permuted(self.rng) if permuted else votes))
            self.tell()
        return [one for one in rated if one is not None]

    def correlation(self, theta: Floats) -> float:
        """Return the rank correlation with the truth; zero for a flat board: it has no order."""
        return float(np.nan_to_num(spearman(theta, self.truth)))


def _reruns(work: _Work, seen: VoteRows, cast: Sequence[Rated]) -> Desideratum:
    runs = [work.measure.theta(seen.shuffled(work.rng), work.rng) for _ in range(RERUNS)]
    if len(cast) < 2:
        return unknown("reruns", f"{len(cast)} simulated arena gave ratings: no error to compare.")
    se = np.sqrt(np.var([one.theta for one in cast], axis=0, ddof=1).mean())
    noise = rerun_noise(np.column_stack(runs))
    ends = noise.over_interval(float(se), len(cast) - 1)
    return on_reruns(noise, float(se), ends, sample=_sample(seen))


def _validity(work: _Work, cast: Sequence[Rated], arenas: int) -> Desideratum:
    permuted = work.each(arenas // 2, work.measure.theta, permuted=True)
    oracle = work.tried(work.measure.theta, work.world.oracle())
    if min(len(cast), len(permuted)) < 2 or oracle is None:
        return unknown("validity", f"Votes of {arenas - len(cast)} of {arenas} arenas gave none.")
    errors = np.array([one.theta for one in cast]) - work.truth
    halves = [one.half for one in cast if one.half is not None]
    covered = (np.abs(errors) <= np.array(halves)).mean(axis=1) if halves else None
    return on_validity(
        spearman=Simulated.of(np.array([work.correlation(one.theta) for one in cast])),
        rmse=float(np.sqrt((errors**2).mean())),
        covered=None if covered is None else Simulated.of(covered),
        permuted=Simulated.of(np.array([work.correlation(one) for one in permuted])),
        oracle=work.correlation(oracle),
        failed=arenas - len(cast),
    )


def _discriminability(work: _Work, seen: VoteRows) -> Desideratum:
    votes = seen.shuffled(work.rng)
    why = f"A subset of 1 in {PARTS[-1]} of the {seen.n} votes gives no rating."
    looks = (_looks(work, votes, parts) for parts in PARTS)
    return discriminability(looks, why, _sample(seen), work.rng)


def discriminability(
    looks: Iterable[Floats | None], why: str, sample: str, rng: np.random.Generator
) -> Desideratum:
    """Ask whether models show a difference, by the first looks that can be had.

    Parameters
    ----------
    looks : iterable of ndarray of shape (n_entrants, n_reruns, n_parts), or None
        Scores over ever fewer parts; None where a part gives none.
    why : str
        What to say where none can be had.
    """
    scores = next((look for look in looks if look is not None), None)
    if scores is None:
        return unknown("discriminability", why)
    try:
        shares = variance_shares(scores, rng=rng)
        ratio = signal_to_noise(scores[:, 0], averaged=scores.shape[2])
    except DataError as error:
        return unknown("discriminability", str(error))
    return on_discriminability(ratio, shares, sample=sample)


def _looks(work: _Work, votes: VoteRows, parts: int) -> Floats | None:
    """Rate each part of the votes several times; None where one gives no rating."""
    scores = np.empty((len(votes.models), SEEDS, parts))
    for moment in range(parts):
        part = votes.taken(slice(moment, None, parts))
        for seed in range(SEEDS):
            theta = work.tried(work.measure.theta, part.shuffled(work.rng))
            if theta is None:
                return None
            scores[:, seed, moment] = theta
    return scores


def _consistency(work: _Work, seen: VoteRows) -> Desideratum:
    boards = {}
    for choice, rate in ({"as shown": work.measure.rate} | dict(work.measure.knobs)).items():
        try:
            boards[choice] = rate(seen, work.rng)
        except RatingError as error:
            return unknown("consistency", f"No rating with {choice}: {error}")
    theta, above = ([getattr(one, name) for one in boards.values()] for name in ("theta", "above"))
    agreement = consistency(tuple(boards), np.array(theta), np.array(above))
    return on_consistency(agreement, sample=_sample(seen))


def _monotone(work: _Work, arenas: int) -> Desideratum:
    rows = []
    for _ in range(arenas):
        votes = work.world.cast(work.rng).shuffled(work.rng)
        shown = [max(1, round(share * votes.n)) for share in MORE.tolist()]
        rated = [work.tried(work.measure.theta, votes.taken(slice(0, n))) for n in shown]
        rows.append([work.correlation(one) for one in rated if one is not None])
        work.tell()
    whole = [row for row in rows if len(row) == len(MORE)]
    return on_monotone(np.array(whole), MORE)


def _sample(votes: VoteRows) -> str:
    return f"{votes.n:,} votes"


def probe_board(
    source: object,
    *,
    columns: Sequence[tuple[str, str]] = (),
    arenas: int,
    seed: int,
    progress: Progress = lambda *_: None,
) -> dict[str, Any]:
    """Audit the board's way to rate, and two others beside it, on the votes of a source.

    The votes are rated again with other seeds and choices. Arenas with the same battles and
    voters, the strengths, random effects and ties fitted to these votes, tell how near the truth
    is.

    Parameters
    ----------
    source : path, table or LoggedVotes
        As `rating.tables.counts.read_votes` takes it.
    columns : sequence of (str, str)
        Roles and names of columns.

    Returns
    -------
    dict
        ``about`` the votes and the arena that was simulated after them; ``audits``, the board's
        own way to rate first.

    Raises
    ------
    DataError
        If the votes cannot be read, or there are too few arenas.
    NotIdentifiedError
        If the votes identify no rating.
    """
    data = read_votes(source, Reading.of(RateOptions(columns=tuple(columns)))).data
    votes = VoteRows.of(data, np.random.default_rng(seed))
    world = World.like(votes)
    audits = []
    for place, measure in enumerate(MEASURES):

        def tell(done: int, total: int, place: int = place) -> None:
            progress(place * total + done, len(MEASURES) * total)

        drawn = np.random.default_rng([seed, 1])  # the same arenas for every measure
        audits.append(audit(measure, world, votes=votes, arenas=arenas, rng=drawn, progress=tell))
    about = {
        "votes": data.n_votes,
        "models": data.n_models,
        "voters": data.n_voters or None,
        "taste_sd": None if data.voter is None else world.taste,
        "tie_rate": world.tie_rate,
        "arenas": arenas,
        "seed": seed,
    }
    return {"about": about, "audits": [one.to_dict() for one in audits]}
