"""Reports on whole tables: suspicious voters, vote manipulation, and two boards compared.

`check_source` collects evidence on each voter (`rating.voters` has the tests), and
`write_weighted` writes the rows with weights from it. `simulate` adds the votes of attackers, and
rates with and without the defences. `compare` gives the change of each model between two boards,
with its interval.
"""

import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import inf, log
from pathlib import Path
from typing import Any, Literal

import duckdb
import numpy as np

from rating import __version__
from rating.contrasts import WELL_FOUNDED
from rating.errors import DataError
from rating.fitting import fit
from rating.influence import Held, certify
from rating.leave_out import quantile
from rating.likelihood import solve
from rating.outcome import of_sides
from rating.rows import VoteRows
from rating.sentences import plural
from rating.tables import vote_filter
from rating.tables.coding import ROW, LoggedVotes, numbered
from rating.tables.columns import Columns, Reading
from rating.tables.counts import read_rows
from rating.tables.duckdb_engine import require_target, write_relation
from rating.tables.files import Files, literal, parsed, quoted, read_text
from rating.tables.formats import is_folder_of_logs, read_logs, write_parquet
from rating.tables.sources import opened
from rating.typing import Bools, Floats, Ints
from rating.variants import POINTS_PER_NAT
from rating.voters import (
    Alternative,
    Ring,
    RingCheck,
    Strengths,
    TasteGroups,
    VoterCheck,
    check_voters,
    find_rings,
    fit_strengths,
    fit_taste_sd,
)

# Suspicious voters


ALPHA = 0.05
LEAST = 20
"""Decisive votes from which a voter is examined; a coin takes about a hundred to be seen."""

SURE = 0.8
"""Probability of membership from which the votes of a coordinated account are excluded."""

MOST = 1 / 5
"""Share of the votes that a rule may exclude: more are a reason to doubt the rule."""

COUNTED = ("voter", "n", "n_ties")
"""What of a check is counted from the votes, examined or not."""

_GROUPS_APART = (
    "Two groups of voters differ on a model. One normal distribution does not describe both: only "
    "voters flagged jointly are flagged, and the others weigh 1."
)

HEAVY = 0.05
"""Share of the votes from which a voter is compared with strengths fitted without their own."""


@dataclass(frozen=True, slots=True)
class CheckedVoter:
    """What the votes of one voter say against the voter.

    Attributes
    ----------
    votes, ties : int
        Votes that count, and the ties of either kind among them, which are not looked at.
    examined : bool
        Whether there are enough decisive votes; the evidence is None otherwise.
    log_e, max_log_e : float or None
        Log of the evidence in nats after the last vote, and its highest.
    flagged, flagged_at : bool; int or None
        Whether it reached ``1 / alpha``, and after how many decisive votes it first did. Where two
        groups of voters are visible, only those flagged jointly are flagged.
    flagged_jointly : bool
        Whether it reached the number of voters examined over alpha.
    leading, model : str or None
        The alternative that explains the votes best, and the model that it concerns.
    weight : float
        Suggested for the voter's votes: 0 if flagged, else 1.
    """

    voter: str
    votes: int
    ties: int
    examined: bool = False
    log_e: float | None = None
    max_log_e: float | None = None
    flagged: bool = False
    flagged_at: int | None = None
    flagged_jointly: bool = False
    leading: Alternative | None = None
    model: str | None = None
    weight: float = 1.0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RingMember:
    """An account that is more likely than not a member of a coordinated group.

    Attributes
    ----------
    weight : float
        Suggested for the account's votes on the model; the rest of its votes stays as it is.
    """

    voter: str
    model: str
    weight: float
    reason: str


@dataclass(frozen=True, slots=True)
class VotersReport:
    """Every voter of a source, those first against whom there is most evidence.

    Attributes
    ----------
    taste_sd : float or None
        Fitted spread of honest random effects, in nats a model; None where nobody could be
        examined.
    order_effect : float or None
        Fitted advantage of the left side in the eyes of all voters, in nats; None as above.
    by_time : bool
        Whether votes were taken in the order of their times; else, in that of the source.
    dropped : dict of str to int
        Votes excluded, by reason.
    rings : tuple of Ring
        Accounts that vote for one model, or against it, together.
    groups : tuple of TasteGroups
        Models on which two groups of honest voters differ.
    members : tuple of RingMember
        Of all coordinated groups.
    """

    alpha: float
    least: int
    taste_sd: float | None
    order_effect: float | None
    by_time: bool
    votes: int
    self_battles: int
    dropped: dict[str, int]
    voters: tuple[CheckedVoter, ...]
    rings: tuple[Ring, ...] = ()
    groups: tuple[TasteGroups, ...] = ()
    members: tuple[RingMember, ...] = ()

    @property
    def flagged(self) -> tuple[CheckedVoter, ...]:
        """The flagged among them."""
        return tuple(voter for voter in self.voters if voter.flagged)

    @property
    def charges(self) -> dict[str, set[tuple[str, str | None]]]:
        """Whose votes are to be excluded, by rule: voters, and on which model; None for all."""
        return {
            "voters": {(one.voter, None) for one in self.voters if one.flagged_jointly},
            "rings": {(one.voter, one.model) for one in self.members if one.weight <= 1 - SURE},
        }

    @property
    def notes(self) -> tuple[str, ...]:
        """What the flags mean and what they do not, in sentences."""
        single = self.dropped.get(vote_filter.IN_BOTH, 0)
        return (
            *((vote_filter.warning(single),) if single else ()),
            *self._on_flags,
            *map(_on_ring, self.rings),
            *map(_on_groups, self.groups),
        )

    @property
    def _on_flags(self) -> tuple[str, ...]:
        examined = sum(voter.examined for voter in self.voters)
        few = f"Voters with fewer than {self.least} decisive votes are not examined: weight 1."
        if self.taste_sd is None:
            return (few,)
        limit = f"{100 * self.alpha:g}%"
        jointly = sum(voter.flagged_jointly for voter in self.voters)
        who = plural(examined, "voter was", "voters were")
        return (
            f"An honest voter is flagged with a probability of at most {limit}, however often one "
            "looks: approximately, as the honest model is fitted to the same votes, and on "
            f"average over voters with normal random effects of sd {self.taste_sd:.2f} nats per "
            f"model and a common lean to the left of {self.order_effect:+z.2f} nats. A voter with "
            "very unusual preferences is flagged more often.",
            f"{who} examined: of as many honest ones, at most {self.alpha * examined:.1f} are "
            f"expected to be flagged. Flagged jointly are {jointly}; the probability that any "
            f"honest one is among them is at most about {limit}.",
            few,
            *([_GROUPS_APART] if self.groups else []),
            "Nothing is deleted. A flag is a reason to look at the votes, and to show the board "
            "with and without them.",
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "method": {
                "alpha": self.alpha,
                "least": self.least,
                "taste_sd": self.taste_sd,
                "order_effect": self.order_effect,
                "order": "time" if self.by_time else "source",
                "version": __version__,
            },
            "votes": {"used": self.votes, "self": self.self_battles, "dropped": self.dropped},
            "examined": sum(voter.examined for voter in self.voters),
            "flagged": len(self.flagged),
            "flagged_jointly": sum(voter.flagged_jointly for voter in self.voters),
            "voters": [asdict(voter) for voter in self.voters],
            "rings": [ring.to_dict() for ring in self.rings],
            "groups": [asdict(group) for group in self.groups],
            "notes": list(self.notes),
        }


def _on_ring(ring: Ring) -> str:
    points, ranks = ring.gained.points, ring.gained.ranks
    return (
        f"Coordinated voters {ring.direction} {ring.model}: {ring.accounts} accounts cast their "
        f"votes on it alike, with a log-evidence of {ring.log_evidence:.1f} against honest random "
        f"effects. By their votes it moves {points:+z.0f} points and {ranks:+d} ranks; these "
        "votes weigh less, the others of the same accounts stay."
    )


def _on_groups(group: TasteGroups) -> str:
    return (
        f"Two groups of voters differ on {group.model}: {100 * group.share:.0f}% like it better, "
        f"by {group.gap:.1f} nats. Different preferences are not fraud: these votes count."
    )


def check_source(
    source: str | Path | Files | LoggedVotes,
    columns: Columns | None = None,
    *,
    alpha: float = ALPHA,
    least: int = LEAST,
) -> VotersReport:
    """Examine the voters of a file or a log.

    The strengths and the advantage of the left side are those of
    `rating.voters.fit_strengths` on all votes, without the voter's own where these are
    `HEAVY` of all; the random-effect sd is fitted on the voters examined
    (`rating.voters.fit_taste_sd`), the evidence is that of
    `rating.voters.check_voters`. Coordinated groups of all voters are those of
    `rating.voters.find_rings`.

    Parameters
    ----------
    source : path, Files or LoggedVotes
        Files with one row a vote and a column of voters, or an arena's log.
    columns : Columns, optional
        Names of the file's columns where they are not the known ones.
    alpha : float
        Chance of flagging an honest voter.
    least : int
        Decisive votes from which a voter is examined.

    Raises
    ------
    DataError
        If the votes cannot be read, or an option cannot be used.
    """
    if least < 1:
        raise DataError(f"--least {least} examines nobody's first vote; give 1 or more.")
    if not 0 < alpha < 1:
        msg = f"--alpha {alpha:g} is no chance of a false alarm; give one between 0 and 1."
        raise DataError(msg)
    reading = Reading(columns or Columns(), both_bad="tie", ordered=True)
    return check_votes(read_rows(source, reading), alpha=alpha, least=least)


def check_votes(votes: VoteRows, *, alpha: float = ALPHA, least: int = LEAST) -> VotersReport:
    """Examine the voters of votes that were read in order: see `check_source`."""
    names, tied = votes.names["voter"], votes.score == 0.5
    cast, ties = (np.bincount(x, minlength=len(names)) for x in (votes.voter, votes.voter[tied]))
    trait = None
    if "trait" in votes.numbers:  # who has it in more than half of the votes
        trait = 2 * np.bincount(votes.voter, votes.numbers["trait"], len(names)) > cast
    rings = find_rings(votes, trait=trait, alpha=alpha)
    taste_sd, order_effect, checks = _examined(votes, cast, ties, alpha, least)
    apart = ", ".join(group.model for group in rings.groups)
    joint = len(checks) / alpha
    voters = []
    for code in np.flatnonzero(cast).tolist():
        known = (names[code], int(cast[code]), int(ties[code]))
        if (check := checks.get(code)) is None:
            n = cast[code] - ties[code]
            few = f"Not examined: {n} decisive votes, and {least} are needed."
            voters.append(CheckedVoter(*known, reason=few))
            continue
        own = {name: value for name, value in asdict(check).items() if name not in COUNTED}
        jointly = check.max_log_e >= log(joint)
        if apart and check.flagged and not jointly:
            spared = f"{check.reason} Not flagged: two groups of voters differ on {apart}."
            own |= {"flagged": False, "weight": 1.0, "reason": spared}
        voters.append(CheckedVoter(*known, examined=True, flagged_jointly=jointly, **own))
    return VotersReport(
        alpha=alpha,
        least=least,
        taste_sd=taste_sd,
        order_effect=order_effect,
        by_time="time" in votes.numbers,
        votes=votes.n,
        self_battles=votes.self_battles,
        dropped=dict(votes.dropped),
        voters=tuple(
            sorted(
                voters,
                key=lambda one: (inf if one.max_log_e is None else -one.max_log_e, one.voter),
            )
        ),
        rings=rings.rings,
        groups=rings.groups,
        members=tuple(_members(names, rings)),
    )


def _examined(
    votes: VoteRows, cast: Ints, ties: Ints, alpha: float, least: int
) -> tuple[float | None, float | None, dict[int, VoterCheck]]:
    """Give the sd of random effects and the order effect (None without voters), and checks."""
    enough = np.flatnonzero(cast - ties >= least)
    if not enough.size:
        return None, None, {}
    their = votes.taken(np.isin(votes.voter, enough))
    share = cast / votes.n
    all_votes = fit_strengths(votes)
    taste_sd = fit_taste_sd(their, *all_votes)

    def checked(some: VoteRows, strengths: Strengths) -> dict[int, VoterCheck]:
        checks = check_voters(
            some, strengths.theta, taste_sd, order_effect=strengths.order_effect, alpha=alpha
        )
        return {check.voter: check for check in checks}

    checks = checked(their.taken(share[their.voter] < HEAVY), all_votes)
    for code in enough[share[enough] >= HEAVY]:
        without = fit_strengths(votes.taken(votes.voter != code))
        checks |= checked(their.taken(their.voter == code), without)
    return taste_sd, all_votes.order_effect, checks


def _members(voters: Sequence[str], rings: RingCheck) -> Iterator[RingMember]:
    for ring in rings.rings:
        probability = rings.member[ring.model, ring.direction]
        for code in np.flatnonzero(probability > 0.5).tolist():
            yield RingMember(
                voter=voters[code],
                model=ring.model,
                weight=1 - float(probability[code]),
                reason=f"Among coordinated voters {ring.direction} {ring.model}, with probability "
                f"{probability[code]:.2f}.",
            )


WEIGHT, REASON = "voter_weight", "voter_reason"


def write_weighted(
    source: str | Path | Files | LoggedVotes,
    report: VotersReport,
    path: Path,
    columns: Columns | None = None,
) -> None:
    """Write every row of a file again, in its order, with a weight and the reason for it.

    Rows of voters who are not in the report, because none of their votes counts, weigh 1.

    Parameters
    ----------
    source : path
        The file that the report is on.
    path : Path
        Ends in ``.parquet`` or ``.csv``.
    columns : Columns, optional
        Names of the file's columns where they are not the known ones.

    Raises
    ------
    DataError
        If the source is a log, has such columns already or is the file to write, or this
        cannot be written.
    """
    if isinstance(source, LoggedVotes):
        msg = (
            f"The log {source.name!r} stays as it is: export its votes (arena export votes --to "
            "votes.parquet), and weigh the file."
        )
        raise DataError(msg)
    require_target(path, source)
    with tempfile.TemporaryDirectory() as folder, opened(source, list) as rows:
        there = rows.columns
        if taken := [name for name in (WEIGHT, REASON) if name in there]:
            msg = f"{str(source)!r} has a column {taken[0]!r} already: weigh the file it was made"
            raise DataError(f"{msg} from.")
        weights = Path(folder) / "weights.parquet"
        on_all = [RingMember(one.voter, "", one.weight, one.reason) for one in report.voters]
        write_parquet([*map(asdict, (*on_all, *report.members))], weights)
        names = columns or Columns()
        roles = {role: names.need(role, there) for role in ("voter", *of_sides("model"))}
        write_relation(_joined(numbered(rows), roles, weights), path)


def _joined(
    rows: duckdb.DuckDBPyRelation, roles: Mapping[str, str], weights: Path
) -> duckdb.DuckDBPyRelation:
    voter, a, b = map(quoted, roles.values())
    query = f"""
        WITH weighed AS (
            SELECT voter, model, product(weight) AS weight, string_agg(reason, ' ') AS reason
            FROM read_parquet({literal(str(weights))}) GROUP BY voter, model
        )
        SELECT votes.* EXCLUDE {ROW},
               coalesce(own.weight, 1.0) * coalesce(a.weight, 1.0) * coalesce(b.weight, 1.0)
                   AS {WEIGHT},
               nullif(concat_ws(' ', own.reason, a.reason, b.reason), '') AS {REASON}
        FROM votes
          {_weight_of("own", voter, "''")} {_weight_of("a", voter, a)} {_weight_of("b", voter, b)}
        ORDER BY votes.{ROW}
    """  # noqa: S608 - the names are quoted
    joined = rows.query("votes", query)
    assert joined is not None  # a SELECT has rows
    return joined


def _weight_of(name: str, voter: str, model: str) -> str:
    of_model = model if model == "''" else f"CAST(votes.{model} AS VARCHAR)"
    return (
        f"LEFT JOIN weighed AS {name} ON CAST(votes.{voter} AS VARCHAR) = {name}.voter "
        f"AND {of_model} = {name}.model"
    )


# Vote-manipulation simulation


Strategy = Literal["fan", "target", "omnipresent", "inverted", "always-left", "random"]
PUSHING: tuple[Strategy, ...] = ("fan", "target", "omnipresent")
"""Strategies that serve one model; of the others the model that moves most is reported."""

TASTE_SD = 0.4
"""Of attackers where they vote honestly, in nats."""


@dataclass(frozen=True, slots=True)
class Attack:
    """Accounts that attack.

    Attributes
    ----------
    strategy : str
        ``fan`` votes for the model wherever it appears and honestly elsewhere; ``target`` votes
        on the model alone, as who recognises its answers could; ``omnipresent`` is a fan who also
        votes against the two models above; ``inverted`` votes for the worse, ``always-left`` for
        the left side, ``random`` by coin.
    accounts, votes : int
        How many, and the votes of each.
    model : str or None
        The one to push; None for the one in the middle of the leaderboard.
    """

    strategy: Strategy
    accounts: int
    votes: int
    model: str | None = None


@dataclass(frozen=True, slots=True)
class _Moved:
    """How far the model moved: points, and ranks upwards, on average over runs.

    Attributes
    ----------
    points_low, points_high : float
        Smallest and largest of the runs.
    """

    points: float
    ranks: float
    points_low: float
    points_high: float


@dataclass(frozen=True, slots=True)
class _AttackResult:
    """What an attack moved.

    Attributes
    ----------
    model : str
        The one it pushed, or that moved most without defences.
    off, on : Moved
        Without defences, and with votes excluded as ``arena voters --apply`` would.
    left_out, honest_left_out : float
        Shares of the attackers' and of the honest votes that the defences excluded.
    holds : tuple of Held
        What the first ranks compare with, whatever new accounts do.
    """

    attack: Attack
    model: str
    runs: int
    off: _Moved
    on: _Moved
    left_out: float
    honest_left_out: float
    holds: tuple[Held, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            **asdict(self.attack),
            "model": self.model,
            "runs": self.runs,
            "moved": {"off": asdict(self.off), "on": asdict(self.on)},
            "left_out": self.left_out,
            "honest_left_out": self.honest_left_out,
            "holds": [asdict(held) for held in self.holds],
            "version": __version__,
        }


def simulate(
    votes: VoteRows,
    attack: Attack,
    *,
    runs: int = 5,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> _AttackResult:
    """Add the votes of attackers to votes that were cast, and rate with and without defences.

    Attackers meet pairs of models with equal probability (``target``: the model and any other);
    where they are honest, they see the models at the strengths of the votes with random effects
    of sd `TASTE_SD`. The defences are those of ``arena voters --apply``: votes of voters flagged
    jointly, and of sure members of coordinated groups on their model, are excluded, unless a rule
    would exclude more than `MOST` of all. What moved is against the votes that were cast, rated by
    maximum likelihood.

    Parameters
    ----------
    runs : int
        Draws of the attackers' votes.
    progress : callable, optional
        Takes how many runs are done, and of how many.

    Raises
    ------
    DataError
        For an attack of nobody, an unknown model, or votes of fewer than 15 voters.
    NotIdentifiedError
        If the votes identify no ratings.
    """
    if min(attack.accounts, attack.votes, runs) < 1:
        raise DataError(
            f"An attack needs accounts, votes and runs, 1 or more each, not {attack.accounts:,}, "
            f"{attack.votes:,} and {runs:,}."
        )
    if attack.model is not None and attack.model not in votes.models:
        msg = f"There is no model {attack.model!r} to push; there are {', '.join(votes.models)}."
        raise DataError(msg)
    voters = len(np.unique(votes.voter))
    if voters < WELL_FOUNDED:
        raise DataError(
            f"Too little data: the votes are of {plural(voters, 'voter')}, and an attack is "
            f"simulated from {WELL_FOUNDED} voters on."
        )
    fitted = fit(votes.comparisons())
    before, wins = votes.placed(fitted.models, fitted.theta), _wins(votes)
    order = np.argsort(-before)
    target = order[len(order) // 2] if attack.model is None else votes.models.index(attack.model)
    off, on = np.empty((2, runs, len(before)))
    left_out, honest_left_out = np.empty((2, runs))
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        attacked = _with(votes, attack, int(target), before, rng)
        is_new, out = attacked.voter >= len(votes.names["voter"]), _left_out(attacked)
        left_out[run], honest_left_out[run] = out[is_new].mean(), out[~is_new].mean()
        off[run] = solve(_wins(attacked), before).theta
        on[run] = solve(_wins(attacked.taken(~out)), before).theta
        if progress:
            progress(run + 1, runs)
    if attack.strategy not in PUSHING:
        target = np.abs(off.mean(axis=0) - before).argmax()
    return _AttackResult(
        attack=attack,
        model=votes.models[target],
        runs=runs,
        off=_moved(off, before, int(target)),
        on=_moved(on, before, int(target)),
        left_out=float(left_out.mean()),
        honest_left_out=float(honest_left_out.mean()),
        holds=certify(wins, attack.votes),
    )


def _with(
    votes: VoteRows, attack: Attack, target: int, theta: Floats, rng: np.random.Generator
) -> VoteRows:
    """Add the attackers' votes."""
    n, k = attack.accounts * attack.votes, len(votes.models)
    voter = np.repeat(np.arange(attack.accounts), attack.votes)
    left = rng.integers(k, size=n)
    if attack.strategy == "target":
        left[:] = target
    right = (left + rng.integers(1, k, size=n)) % k
    turned = rng.random(n) < 0.5
    left, right = np.where(turned, right, left), np.where(turned, left, right)
    liking = theta + rng.normal(0, TASTE_SD, (attack.accounts, k))
    lead = liking[voter, left] - liking[voter, right]
    p = 1 / (1 + np.exp(lead if attack.strategy == "inverted" else -lead))
    won = rng.random(n) < p
    if attack.strategy == "always-left":
        won[:] = True
    elif attack.strategy == "random":
        won = rng.random(n) < 0.5
    elif attack.strategy in PUSHING:
        above = np.flatnonzero(theta > theta[target])
        rivals = above[np.argsort(theta[above])][: 2 * (attack.strategy == "omnipresent")]
        against = np.isin(left, rivals), np.isin(right, rivals)
        sides = [left == target, right == target]
        sides += [against[0] & ~against[1], against[1] & ~against[0]]
        won = np.select(sides, [True, False, False, True], won)
    names = votes.names["voter"]
    attacked = VoteRows.scored(
        votes.models,
        np.concatenate([votes.a, left]),
        np.concatenate([votes.b, right]),
        np.concatenate([votes.score, won]),
        np.concatenate([votes.voter, len(names) + voter]),
    )
    attackers = (f"attacker {i + 1}" for i in range(attack.accounts))
    return replace(attacked, names={"voter": (*names, *attackers)})


def _left_out(votes: VoteRows) -> Bools:
    """Return which votes the defences exclude."""
    out = np.zeros(votes.n, dtype=bool)
    codes = {name: code for code, name in enumerate(votes.names["voter"])}
    for charges in check_votes(votes).charges.values():
        named = np.zeros(votes.n, dtype=bool)
        for voter, model in charges:
            rows = votes.voter == codes[voter]
            named |= rows if model is None else rows & votes.on(votes.models.index(model))
        if named.mean() <= MOST:
            out |= named
    return out


def _wins(votes: VoteRows) -> Floats:
    wins = np.zeros((len(votes.models), len(votes.models)))
    np.add.at(wins, (votes.a, votes.b), votes.score)
    np.add.at(wins, (votes.b, votes.a), 1 - votes.score)
    return wins


def _moved(after: Floats, before: Floats, model: int) -> _Moved:
    points = POINTS_PER_NAT * (after[:, model] - before[model])
    above = (after > after[:, [model]]).sum(axis=1)
    ranks = (before > before[model]).sum() - above
    low, high = float(points.min()), float(points.max())
    return _Moved(float(points.mean()), float(ranks.mean()), low, high)


# Two boards compared


SCALE = ("ties", "both_bad", "scale", "mean", "anchor", "reference", "order_effect", "style")
"""Options that change what the points mean: boards that differ in them are not compared."""

WITHOUT_DF = (
    "The board in {which} does not say its degrees of freedom, as boards of before: the intervals "
    "take the normal distribution for it, and are too narrow where few people voted."
)
SAME = "Both boards are of the same votes: what moved, moved by the method."
APART = (
    "The interval of a move takes the two boards as having no vote in common; where they share "
    "votes, how uncertain the move is cannot be known from the two boards alone."
)


def read_board(path: Path) -> Mapping[str, Any]:
    """Read what `arena rate` wrote as JSON: a file, or every_eval_ever's folder of files.

    Raises
    ------
    DataError
        If the file is not there, or is something else.
    """
    if is_folder_of_logs(path):
        return read_logs(path)
    board = parsed(read_text(path), f"The board {str(path)!r}")
    if not isinstance(board, dict) or not {"method", "ratings"} <= board.keys():
        what = "groups" if isinstance(board, dict) and "groups" in board else "something else"
        msg = (
            f"{str(path)!r} holds {what}, not one board: "
            "name a file that arena rate wrote with --format json, without --by."
        )
        raise DataError(msg)
    return board


def compare(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Name who moved by how much, the largest move first.

    Parameters
    ----------
    old, new : mapping
        As `rating.Report.to_dict` gives them.

    Returns
    -------
    dict
        ``old`` and ``new`` (version and data_hash), ``same_votes``, ``moved`` (a row a model:
        model, old, new, moved, lower, upper, df, rank_old, rank_new), ``gone``, ``added``,
        ``note``. ``df`` is null for the normal distribution.

    Raises
    ------
    DataError
        If the two boards are not on one scale.
    """
    for name in SCALE:
        was, is_now = (board["method"].get(name) for board in (old, new))
        if was != is_now:
            msg = (
                f"The boards are on different scales: {name} was {was!r}, and is {is_now!r}. "
                f"Rate both with the same {name}."
            )
            raise DataError(msg)
    before = {row["model"]: row for row in old["ratings"]}
    after = {row["model"]: row for row in new["ratings"]}
    same = old["method"]["data_hash"] == new["method"]["data_hash"]
    levels = [float(board["method"]["level"]) for board in (old, new)]
    moved = [
        _move(before[name], after[name], levels, same=same) for name in after if name in before
    ]
    notes = [SAME if same else APART]
    for which, board in (("old", old), ("new", new)):
        if not same and any("df" not in row for row in board["ratings"]):
            notes.append(WITHOUT_DF.format(which=which))
    return {
        "old": {name: old["method"][name] for name in ("version", "data_hash")},
        "new": {name: new["method"][name] for name in ("version", "data_hash")},
        "same_votes": same,
        "moved": sorted(moved, key=lambda row: (-abs(row["moved"]), row["model"])),
        "gone": sorted(before.keys() - after.keys()),
        "added": sorted(after.keys() - before.keys()),
        "note": " ".join(notes),
    }


def _move(
    old: Mapping[str, Any], new: Mapping[str, Any], levels: Sequence[float], *, same: bool
) -> dict[str, Any]:
    """Return how far a model moved, with Welch's interval at the level of the new board."""
    moved = new["rating"] - old["rating"]
    known = not same and old["se"] is not None and new["se"] is not None
    squares = [_error(*one) ** 2 for one in zip((old, new), levels, strict=True) if known]
    total = sum(squares)
    share = sum(v**2 / _df(row) for v, row in zip(squares, (old, new), strict=False))
    df = total**2 / share if share else math.inf
    reach = quantile(levels[1], df) * math.sqrt(total) if 0 < total < math.inf else None
    return {
        "model": new["model"],
        "old": old["rating"],
        "new": new["rating"],
        "moved": moved,
        "lower": None if reach is None else moved - reach,
        "upper": None if reach is None else moved + reach,
        "df": df if math.isfinite(df) else None,
        "rank_old": old["rank"],
        "rank_new": new["rank"],
    }


def _df(row: Mapping[str, Any]) -> float:
    df = row.get("df")
    return math.inf if df is None else float(df)


def _error(row: Mapping[str, Any], level: float) -> float:
    """Return the standard error that the interval stands for: no smaller than the board's."""
    if row["lower"] is None or row["upper"] is None:
        return math.inf
    if "df" not in row:
        return float(row["se"])
    half = (row["upper"] - row["lower"]) / 2
    return float(max(row["se"], half / quantile(level, _df(row))))
