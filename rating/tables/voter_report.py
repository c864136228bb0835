"""Which voters do not vote as somebody with a taste of their own would: evidence, not deletion."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import inf, log
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from rating import __version__
from rating.diagnosis.rings import (
    Ring,
    RingCheck,
    Strengths,
    TasteGroups,
    find_rings,
    fit_strengths,
)
from rating.diagnosis.taste import fit_taste_sd
from rating.diagnosis.voters import Alternative, VoterCheck, check_voters
from rating.errors import DataError
from rating.outcome import of_sides
from rating.rows import VoteRows
from rating.tables import vote_filter
from rating.tables.coding import ROW, numbered
from rating.tables.columns import Columns, Reading
from rating.tables.escaping import literal, quoted
from rating.tables.files import Files
from rating.tables.formats import write_parquet
from rating.tables.log import LoggedVotes
from rating.tables.rows import read_rows
from rating.tables.sources import opened
from rating.tables.writing import require_target, write_relation
from rating.typing import Ints

ALPHA = 0.05
LEAST = 20
"""Decisive votes from which a voter is examined; a coin takes about a hundred to be seen."""

SURE = 0.8
"""Probability of membership from which the votes of a ring's member are to be left out."""

MOST = 1 / 5
"""Share of the votes that a rule may leave out: more are a reason to doubt the rule."""

COUNTED = ("voter", "n", "n_ties")
"""What of a check is counted from the votes, examined or not."""

_GROUPS_APART = (
    "Two groups of voters differ on a model. One normal distribution does not describe both: only "
    "voters flagged jointly are flagged, and the others weigh 1."
)

HEAVY = 0.05
"""Share of the votes from which a voter is held against strengths fitted without their own."""


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
    """An account that is more likely than not a member of a ring.

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
        Fitted spread of honest tastes, in nats a model; None where nobody could be examined.
    order_effect : float or None
        Fitted advantage of the left side in the eyes of all voters, in nats; None as above.
    by_time : bool
        Whether votes were taken in the order of their times; else, in that of the source.
    dropped : dict of str to int
        Votes left out, by reason.
    rings : tuple of Ring
        Accounts that vote for one model, or against it, together.
    groups : tuple of TasteGroups
        Models on which two groups of honest voters differ.
    members : tuple of RingMember
        Of all rings.
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
        """Whose votes are to be left out, by rule: voters, and on which model; None for all."""
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
        limit = f"{100 * self.alpha:g} %"
        jointly = sum(voter.flagged_jointly for voter in self.voters)
        who = "1 voter was" if examined == 1 else f"{examined} voters were"
        return (
            f"An honest voter is flagged with a chance of {limit} at most, however often one "
            "looks. That holds on average over voters whose tastes are normal with the fitted sd "
            f"of {self.taste_sd:.2f} nats a model, and who all lean to the left side by "
            f"{self.order_effect:+.2f} nats, fitted too; somebody of very unusual taste or lean "
            "is flagged more often.",
            f"{who} examined: of as many honest ones, up to "
            f"{self.alpha * examined:.1f} would be flagged. Flagged jointly are {jointly}, with "
            f"a chance of {limit} at most that any honest one is among them.",
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
        f"A ring {ring.direction} {ring.model}: {ring.accounts} accounts cast their votes on it "
        f"alike, with a log-evidence of {ring.log_evidence:.1f} against honest tastes. By their "
        f"votes it moves {points:+.0f} points and {ranks:+d} ranks; these votes weigh "
        "less, the others of the same accounts stay."
    )


def _on_groups(group: TasteGroups) -> str:
    return (
        f"Two groups of voters differ on {group.model}: {100 * group.share:.0f} % like it better, "
        f"by {group.gap:.1f} nats. Tastes are no fraud: their votes count."
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
    `rating.diagnosis.rings.fit_strengths` on all votes, without the voter's own where these are
    `HEAVY` of all; the taste sd is fitted on the voters examined
    (`rating.diagnosis.taste.fit_taste_sd`), the evidence is that of
    `rating.diagnosis.voters.check_voters`. Rings of all voters are those of
    `rating.diagnosis.rings.find_rings`.

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
        msg = f"--least {least} examines nobody's first vote; give 1 or more."
        raise DataError(msg)
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
    examined = _examined(votes, cast, ties, alpha, least)
    apart = ", ".join(group.model for group in rings.groups)
    joint = len(examined.checks) / alpha
    voters = []
    for code in np.flatnonzero(cast).tolist():
        known = (names[code], int(cast[code]), int(ties[code]))
        if (check := examined.checks.get(code)) is None:
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
        taste_sd=examined.taste_sd,
        order_effect=examined.order_effect,
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


@dataclass(frozen=True, slots=True, eq=False)
class _Examined:
    """What was found, by the voter's code; no taste and no order effect without anybody."""

    taste_sd: float | None
    order_effect: float | None
    checks: dict[int, VoterCheck]


def _examined(votes: VoteRows, cast: Ints, ties: Ints, alpha: float, least: int) -> _Examined:
    enough = np.flatnonzero(cast - ties >= least)
    if not enough.size:
        return _Examined(None, None, {})
    their = votes.taken(np.isin(votes.voter, enough))
    share = cast / votes.n
    all_votes = fit_strengths(votes)
    taste_sd = fit_taste_sd(their, *all_votes)

    def checked(some: VoteRows, strengths: Strengths) -> dict[int, VoterCheck]:
        checks = check_voters(
            some,
            strengths.theta,
            taste_sd,
            order_effect=strengths.order_effect,
            alpha=alpha,
        )
        return {check.voter: check for check in checks}

    checks = checked(their.taken(share[their.voter] < HEAVY), all_votes)
    for code in enough[share[enough] >= HEAVY]:
        without = fit_strengths(votes.taken(votes.voter != code))
        checks |= checked(their.taken(their.voter == code), without)
    return _Examined(taste_sd, all_votes.order_effect, checks)


def _members(voters: Sequence[str], rings: RingCheck) -> Iterator[RingMember]:
    for ring in rings.rings:
        probability = rings.member[ring.model, ring.direction]
        for code in np.flatnonzero(probability > 0.5).tolist():
            yield RingMember(
                voter=voters[code],
                model=ring.model,
                weight=1 - float(probability[code]),
                reason=f"In a ring {ring.direction} {ring.model} with a probability of "
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
