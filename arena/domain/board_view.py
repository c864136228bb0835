"""Leaderboards and what is shown beside them, as plain values for pages and files.

`Board` is what a policy makes of the votes; the classes before it are its parts. `LabelBoard` is a
board of prompts of one kind, `MixView` one of a reader's own mix of categories, and `Valued`
compares quality with cost. The store writes boards with the names of these classes and of their
fields.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

from arena.domain.battle import BattleState, Mode
from arena.domain.model import LISTED_AFTER, Kind, Stage
from arena.domain.vote import GOLD_BATTLE, LEFT_OUT, SKIPPED, Choice, Cut, attributes
from rating.mix import MixBoard, PooledRating, Pooling, Preference, RankReach
from rating.pooling import Unseen
from rating.report import ModelRating
from rating.sentences import Sentence
from rating.value import Value

if TYPE_CHECKING:
    from judge.labels.material import Release
    from judge.labels.safety import SafetyTable


NO_VOTES = Sentence("There are no votes yet. Play a battle and be the first.")


# Leaderboards


@dataclass(frozen=True, slots=True, kw_only=True)
class Fewest:
    """How few votes, voters or prompts two models would change places without.

    Attributes
    ----------
    k : int or None
        Found, and confirmed by a new fit: fewer may do. None if no number that was tried did.
    tried : int
        The most that were taken away together.
    of : int
        How many there are.
    """

    k: int | None
    tried: int
    of: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """What holds one model above its neighbour on the board.

    Attributes
    ----------
    above, below : str
        Model ids.
    lead : float
        Points.
    votes, voters, prompts : Fewest or None
        What the order would turn without; None where they are not all known, just one, or too
        many to be omitted one by one.
    separated : bool
        Whether the board claims the lead, all pairs together.
    more_votes : int or None
        Votes to come on the whole board, from more people, until it does with a power of 0.8; 0 if
        it does already, None if the two are level.
    """

    above: str
    below: str
    lead: float
    votes: Fewest
    voters: Fewest | None
    prompts: Fewest | None
    separated: bool
    more_votes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Misfit:
    """A pair whose votes are not what the ratings make one expect.

    Attributes
    ----------
    row, column : str
        Model ids.
    share, expected : float
        Of the ``n`` votes: what the row won, ties half, and what the ratings say.
    """

    row: str
    column: str
    share: float
    expected: float
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FitCheck:
    """How the votes on each pair agree with one rating a model.

    Attributes
    ----------
    pairs : int
        Pairs with votes enough to look at, whatever the ratings make of them.
    far : int
        Those more than two standard errors from what the ratings say.
    by_chance : float or None
        As many would be on average if one rating a model described all votes, with voters like
        these; None where too few people voted to know.
    p : float or None
        Probability that all pairs together would lie as far off, or further; None as above.
    left_out : int
        Pairs that met, but too rarely, or that the ratings follow whatever their votes.
    worst : tuple of Misfit
        The furthest of those that are far, furthest first.
    """

    pairs: int
    far: int
    by_chance: float | None
    p: float | None
    left_out: int
    worst: tuple[Misfit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRating:
    """A model's rating and interval at some moment, in points."""

    model: str
    rating: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The board as it was.

    Attributes
    ----------
    votes : int
        Counted votes before ``when`` that its ratings rest on.
    ratings : tuple of PastRating
        Best first; none if the votes identified none yet.
    """

    when: datetime
    votes: int
    ratings: tuple[PastRating, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardRow(ModelRating):
    """One rated model, by its id in the roster.

    Attributes
    ----------
    name : str
        What people read.
    win_rate, win_rate_low, win_rate_high : float
        Mean predicted win rate against the other models, in [0, 1]; its interval.
    voter_rating : float
        Points if every voter counted the same, however often they voted.
    voter_rank : int
        Place by these.
    price_per_1000 : float or None
        US dollars for 1,000 answers like those given here; None when unknown.
    median_s : float or None
        Median seconds of a whole answer; None when none was timed.
    stage : Stage
        How far it has come: whether it is still on the roster, among others.
    family : str
        Name of the variants of which it is one; empty for none.
    variants : int
        Variants of the family with a counted vote: this one alone without a family.
    best_of : float or None
        Points less what the best of this many equal variants gains by the choice; None unless it
        is the best of several.
    otherwise : int
        Votes on what answered under the same id before it was changed.
    declared : float or None
        Points if the variants come in the order that their producer declared; None without one.
    """

    name: str
    organisation: str
    kind: Kind
    win_rate: float
    win_rate_low: float
    win_rate_high: float
    voter_rating: float
    voter_rank: int
    price_per_1000: float | None
    median_s: float | None
    stage: Stage = Stage.REGULAR
    family: str = ""
    variants: int = 1
    best_of: float | None = None
    declared: float | None = None
    otherwise: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganisationShare:
    """How many of the votes one organisation's models took part in.

    Attributes
    ----------
    organisation : str
        A model without one counts by itself, by its name.
    votes : int
        On a side of which its model stood: a vote between two of its models counts twice.
    share : float
        Of both sides of all counted votes.
    """

    organisation: str
    models: int
    votes: int
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A model without a rating, and why, in words: ``has not lost yet``, ``no votes yet``."""

    model: str
    name: str
    organisation: str
    votes: int
    reason: str
    stage: Stage = Stage.REGULAR


@dataclass(frozen=True, slots=True, kw_only=True)
class NewModel:
    """A model that a judge rates until people's votes do: it has no rank.

    Attributes
    ----------
    votes : int
        People's so far; the rating does not rest on them.
    until : int
        Votes from which people's rate it.
    rating, lower, upper : float
        Points on the board's scale, and the interval for the rating that people would give it.
    calibrated_on : int
        Models rated by people's votes from which the judge's errors were learnt.
    warnings : tuple of str
        What the rating does not allow for, in English.
    """

    model: str
    name: str
    organisation: str
    stage: Stage
    votes: int
    until: int
    rating: float
    lower: float
    upper: float
    by: Literal["judge only"] = "judge only"
    judge: str
    calibrated_on: int
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PairCell:
    """How one model fared against another.

    Attributes
    ----------
    row, column : str
        Model ids. One order of a pair is enough: the other is its mirror.
    share : float or None
        Share of the ``n`` votes that the row won, ties half; None without a vote.
    expected, low, high : float or None
        That share as the ratings have it, and its interval; None where one is not rated.
    """

    row: str
    column: str
    n: int
    share: float | None
    expected: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRecord:
    """What the log knows of a model's battles.

    Attributes
    ----------
    battles : int
        Blind battles in which it was asked, each once, whatever its turns and attempts: those
        too in which another model took its place. Only battles that take no vote any more.
    failed, abandoned : int
        Of these, the ones without a vote on it because it did not answer, and the ones with both
        answers that the visitor left without a vote, or skipped. None is in both.
    price_per_1000 : float or None
        US dollars for a thousand answers, from the mean of those whose cost is known.
    median_s : float or None
        Median seconds to a complete answer.
    """

    id: str
    name: str
    organisation: str
    kind: Kind
    battles: int = 0
    failed: int = 0
    abandoned: int = 0
    price_per_1000: float | None = None
    median_s: float | None = None

    @property
    def lost(self) -> int:
        """Battles without a vote on it."""
        return self.failed + self.abandoned

    def rounded(self) -> Self:
        """Return it as the public reads it: a price of two digits, and tenths of seconds.

        More digits would tell of single answers.

        Examples
        --------
        >>> counts = {"battles": 9, "failed": 0, "abandoned": 0}
        >>> record = ModelRecord(id="m", name="M", organisation="", kind=Kind.MODEL, **counts,
        ...                      price_per_1000=1.2345, median_s=2.345).rounded()
        >>> record.price_per_1000, record.median_s
        (1.2, 2.3)
        """
        price, median_s = self.price_per_1000, self.median_s
        return replace(
            self,
            price_per_1000=None if price is None else float(f"{price:.2g}"),
            median_s=None if median_s is None else round(median_s, 1),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordCheck:
    """How the vote log was when its chain was last followed.

    Attributes
    ----------
    links : int
        Links of the chain that follow from one another, from the first.
    head : str
        Hash of the last of them.
    votes, hashes_only, deleted : int
        Votes, those of them of which the hashes alone are there, and votes that were deleted.
    problem : str or None
        The first break, in a sentence; None where the vote log was verified.
    """

    at: datetime
    links: int
    head: str
    votes: int
    hashes_only: int
    deleted: int
    problem: str | None


@dataclass(frozen=True, slots=True)
class SelfNaming:
    """Counted votes on an answer that names a model as its author, rightly or wrongly.

    Attributes
    ----------
    votes : int
        Each once, also where both answers do.
    by_model : mapping of str to int
        Of them, those on such an answer of each model, by id.
    """

    votes: int
    by_model: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class StyleEffect:
    """What an answer gains that has twice as much of a style as the other one.

    Attributes
    ----------
    style : str
        One of `judge.tables.annotations.STYLES`.
    points, lower, upper : float
        Beside the strengths of the models, and its interval.
    """

    style: str
    points: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AdjustedRow(ModelRating):
    """A model's rating with style held equal, and from the same votes without the adjustment."""

    unadjusted: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjusted:
    """A board adjusted for the length and formatting of answers.

    Attributes
    ----------
    version : str
        Of the board that it was made with.
    votes : int
        Counted votes that it rests on: those whose answers are still there.
    rows : tuple of AdjustedRow
        Best first; none where these votes do not determine the ratings.
    """

    version: str
    votes: int
    effects: tuple[StyleEffect, ...] = ()
    rows: tuple[AdjustedRow, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: finite numbers, or None."""
        effects = [asdict(one) for one in self.effects]
        bounds = ("points", "lower", "upper")
        return {
            "version": self.version,
            "votes": self.votes,
            "effects": [
                one | {name: one[name] if math.isfinite(one[name]) else None for name in bounds}
                for one in effects
            ],
            "ratings": [row.to_dict() for row in self.rows],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """A leaderboard: what one named policy makes of the votes.

    Attributes
    ----------
    policy_rules : tuple of str
        The policy in words, one sentence a rule.
    version : str
        Short hash of the votes and the code that the numbers follow from.
    data_hash : str or None
        SHA-256 of the votes rated, as ``arena rate`` prints it for the same votes.
    since : datetime or None
        Time of the first counted vote.
    votes, voters : int
        Counted votes, and the people who gave them.
    left_out : mapping of str to int
        Votes not counted, by reason in words.
    by_voter : bool
        Whether the intervals allow for several votes by one person.
    effective_voters : float or None
        Number of equally busy voters that these amount to.
    top_voter_share : float or None
        Share of the counted votes given by the busiest voter.
    method : str
        The estimator in words.
    level : float
        Coverage that the intervals aim at: 0.95.
    anchor_mean : float
        Points of the average rated model.
    listed_after : int
        Counted votes from which a model is more than provisional.
    rows : tuple of BoardRow
        Best first.
    newcomers : tuple of NewModel
        Best first, by a judge alone; none of them is in ``rows`` or ``waiting``.
    pairs : tuple of PairCell
        Pairs that met, or are both rated; each once.
    holds : tuple of Hold
        Neighbours from the top; of a long board the first ones.
    fit_check : FitCheck or None
        None where the ratings can fit any votes, or there are none.
    shares : tuple of OrganisationShare
        Largest first.
    gini : float or None
        How unequal they are, see `rating.gini`; None without two organisations.
    history : tuple of Moment
        The board at some past dates, oldest first, without the present; empty while the votes
        are of a few days.
    adjusted : Adjusted or None
        With style held equal; None before it was made.
    among : tuple of ModelRating
        Ratings for these voters alone, best first, where they are too few to say much of others.
    health_counted : datetime or None
        When battles, prices and times of the models were last counted; None with the votes.
    naming : SelfNaming or None
        Counted with the battles; None before.
    reason : str or None
        Why nothing is rated yet, as a sentence; None when something is.
    record : RecordCheck or None
        None before the first check has ended.
    """

    policy: str
    policy_rules: tuple[str, ...]
    version: str
    data_hash: str | None = None
    updated: datetime
    since: datetime | None
    votes: int
    voters: int
    left_out: Mapping[str, int]
    by_voter: bool = False
    effective_voters: float | None = None
    top_voter_share: float | None = None
    method: str
    level: float
    anchor_mean: float
    listed_after: int = LISTED_AFTER
    rows: tuple[BoardRow, ...] = ()
    newcomers: tuple[NewModel, ...] = ()
    waiting: tuple[Waiting, ...]
    pairs: tuple[PairCell, ...]
    holds: tuple[Hold, ...] = ()
    fit_check: FitCheck | None = None
    shares: tuple[OrganisationShare, ...] = ()
    gini: float | None = None
    history: tuple[Moment, ...] = ()
    adjusted: Adjusted | None = None
    among: tuple[ModelRating, ...] = ()
    health: tuple[ModelRecord, ...] = ()
    health_counted: datetime | None = None
    naming: SelfNaming | None = None
    warnings: tuple[str, ...] = ()
    reason: str | None = None
    record: RecordCheck | None = None

    @property
    def excluded(self) -> int:
        """Votes excluded for what is known of each: logged exclusions, and broken answers.

        ``default-v1`` counts them; it excludes skips, gold battles and kinds of voters as well.
        """
        rules = {SKIPPED, GOLD_BATTLE, *LEFT_OUT.values()}
        return sum(n for reason, n in self.left_out.items() if reason not in rules)

    @property
    def ranks_claimed(self) -> bool:
        """Whether the votes rule out any rank of any model."""
        return any(row.rank_low is not None for row in self.rows)

    @property
    def all_warnings(self) -> tuple[str, ...]:
        """Why nothing is rated yet, if so, before what else to keep in mind."""
        return (self.reason, *self.warnings) if self.reason else self.warnings

    @property
    def names(self) -> dict[str, str]:
        """Name of every model on the board by its id, best first, then those without a rank."""
        rated = {row.model: row.name for row in self.rows}
        judged = {one.model: one.name for one in self.newcomers}
        return rated | judged | {entry.model: entry.name for entry in self.waiting}

    def to_dict(self) -> dict[str, Any]:
        """Return the ratings and how they were made, as plain values for JSON.

        ``adjusted`` is there where some model has a style-adjusted rating.
        """
        adjusted = self.adjusted if self.adjusted and self.adjusted.rows else None
        return ({"adjusted": adjusted.to_dict()} if adjusted else {}) | {
            "method": {
                "words": self.method,
                **attributes(self, "level", "anchor_mean", "listed_after", "policy"),
                "policy_rules": list(self.policy_rules),
                **attributes(self, "version", "data_hash"),
                "updated": self.updated.isoformat(),
            },
            "votes": {
                "used": self.votes,
                "dropped": dict(self.left_out),
                **attributes(self, "voters", "effective_voters", "top_voter_share"),
            },
            "ratings": [row.to_dict() for row in self.rows],
            "newcomers": [asdict(one) for one in self.newcomers],
            "waiting": [asdict(entry) for entry in self.waiting],
            "shares": [asdict(share) for share in self.shares],
            "gini": self.gini,
            "warnings": list(self.all_warnings),
        }

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a row for each rated model, each with how all were made.

        ``by`` is ``people``, or ``judge only`` in the rows of new models, which come last.
        ``adjusted_rating`` and its interval are there as in `to_dict`.
        """
        return rows_of(self.to_dict())


_OWN = ("rating", "lower", "upper")


def rows_of(board: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Put a board that is plain values into rows: see `Board.to_rows`."""
    method, votes = board["method"], board["votes"]
    beside = {
        "method": method["words"],
        **{name: method[name] for name in ("level", "policy", "version", "data_hash")},
        "board_votes": votes["used"],
        "board_voters": votes["voters"],
        "updated": method["updated"],
    }
    rated = [row | {"by": "people"} for row in board["ratings"]]
    if adjusted := board.get("adjusted"):
        own = {row["model"]: row for row in adjusted["ratings"]}
        rated = [
            row | {f"adjusted_{name}": own.get(row["model"], {}).get(name) for name in _OWN}
            for row in rated
        ]
    empty = dict.fromkeys(rated[0]) if rated else {}
    judged = [
        empty | {name: value for name, value in one.items() if name in empty}
        for one in board["newcomers"]
    ]
    return [row | beside for row in (*rated, *judged)]


# Battles and votes


@dataclass(frozen=True, slots=True, kw_only=True)
class PastBattle:
    """A battle as its owner reads of it later.

    Attributes
    ----------
    created : datetime
        When the vote was given; without one, when the battle began.
    mode : Mode
        Only an anonymous battle takes a vote.
    choice : Choice or None
        None without a vote.
    model_a_name, model_b_name : str or None
        None where no vote has revealed them; a skip reveals nothing.
    hidden : bool
        Whether its owner hides it from others.
    erased : bool
        Whether its words are gone.
    cut_a, cut_b : Cut or None
        The limit at which an answer was cut; None where no vote has revealed the names.
    """

    battle_id: str
    created: datetime
    prompt: str
    mode: Mode
    state: BattleState
    choice: Choice | None
    model_a_name: str | None
    model_b_name: str | None
    hidden: bool = False
    erased: bool = False
    cut_a: Cut | None = None
    cut_b: Cut | None = None


class ShownModel(NamedTuple):
    """A model as its card has it; ``since`` is when the arena first knew of it."""

    id: str
    name: str
    organisation: str
    kind: Kind
    licence: str
    since: datetime


class ShownTurn(NamedTuple):
    """What was asked, and both answers that the vote was about or that led to them."""

    prompt: str
    text_a: str
    text_b: str
    cut_a: Cut | None = None
    cut_b: Cut | None = None


class ShownVote(NamedTuple):
    """A vote that counts, with the first prompt of its battle.

    Attributes
    ----------
    place : int
        Place in the log: later votes have higher ones.
    seconds : float
        From the end of both answers to the vote.
    """

    place: int
    battle_id: str
    created: datetime
    prompt: str
    choice: Choice
    model_a: ShownModel
    model_b: ShownModel
    seconds: float


@dataclass(frozen=True, slots=True)
class ShownVotes:
    """Some counted votes, newest first.

    Attributes
    ----------
    of : tuple of ShownModel
        The models that the votes were asked for by: none, one, or a pair.
    older_than : int or None
        Place after which older votes go on; None when there are none.
    """

    policy: str
    of: tuple[ShownModel, ...]
    votes: tuple[ShownVote, ...]
    older_than: int | None


class ReleasedTopics(NamedTuple):
    """What people ask about, as it was published.

    Attributes
    ----------
    number : int
        Of the release, from 1.
    """

    number: int
    created: datetime
    release: "Release"


class ShownBattle(NamedTuple):
    """A vote that a policy counts, and all that was said before it."""

    policy: str
    vote: ShownVote
    turns: tuple[ShownTurn, ...]


# Boards by label, and prompt mixes


@dataclass(frozen=True, slots=True)
class LabelCount:
    """How many counted votes are on prompts of a label, and their share of the labelled ones."""

    value: str
    votes: int
    share: float


@dataclass(frozen=True, slots=True)
class Effect:
    """By how many points a rating is higher than elsewhere, with its interval."""

    value: float
    lower: float
    upper: float

    def to_dict(self) -> dict[str, float | None]:
        """Return finite numbers, or None."""
        plain = asdict(self)
        return {name: x if math.isfinite(x) else None for name, x in plain.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelRow(PooledRating):
    """One model on prompts of a label, by its id in the roster.

    Attributes
    ----------
    other_mixes : RankReach or None
        Its best and worst rank over mixes of the labels; None where that is not known.
    effect : Effect
        Its rating there less that on all other labels, weighed by their votes.
    corrected : Effect or None
        The same without the tagger's errors; None where these are not known well enough.
    """

    name: str
    organisation: str
    kind: Kind
    other_mixes: RankReach | None
    effect: Effect
    corrected: Effect | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        ends = self.other_mixes
        return super(LabelRow, self).to_dict() | {
            "other_mixes": ends and {"best": ends.best, "worst": ends.worst},
            "effect": self.effect.to_dict(),
            "corrected": self.corrected and self.corrected.to_dict(),
        }

    def to_flat(self) -> dict[str, Any]:
        """Return one value a column, for files of rows."""
        plain = self.to_dict()
        reach = plain.pop("other_mixes") or dict.fromkeys(("best", "worst"))
        plain |= {f"other_mixes_{end}": rank for end, rank in reach.items()}
        for name in ("effect", "corrected"):
            ends = plain[name] or dict.fromkeys(("value", "lower", "upper"))
            plain |= {name: ends["value"]}
            plain |= {f"{name}_{end}": ends[end] for end in ("lower", "upper")}
        return plain


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelBoard:
    """The board of prompts of one label, pooled with those of the others.

    Attributes
    ----------
    facet, value : str
        The label: ``category`` and ``code``, for instance; of two ``category&language`` and
        ``code&fr``.
    votes, voters : int
        On prompts of this label; voters are 0 where they are not known.
    of : int
        Counted votes with a label of this facet.
    labelled : int
        Rows of the sample by which the tagger's errors are known.
    newcomers : tuple of str
        Names of models whose few votes do not connect them yet.
    unseen : Unseen or None
        What boards by this facet are worth on prompts they were not fitted to.
    """

    facet: str
    value: str
    policy: str
    version: str
    data_hash: str
    updated: datetime
    votes: int
    voters: int
    of: int
    method: str
    level: float
    anchor_mean: float
    rows: tuple[LabelRow, ...]
    newcomers: tuple[str, ...]
    warnings: tuple[str, ...]
    pooling: Pooling
    labelled: int
    unseen: Unseen | None

    @property
    def label(self) -> dict[str, str]:
        """Value of each label that all its prompts have."""
        return dict(zip(self.facet.split("&"), self.value.split("&"), strict=True))

    def to_dict(self) -> dict[str, Any]:
        """Return the ratings and how they were made, as plain values for JSON."""
        return {
            "label": self.label,
            "method": {
                "words": self.method,
                **attributes(self, "level", "anchor_mean", "policy", "version", "data_hash"),
                "updated": self.updated.isoformat(),
            },
            "votes": {"used": self.votes, "voters": self.voters, "labelled": self.of},
            "ratings": [row.to_dict() for row in self.rows],
            "newcomers": list(self.newcomers),
            "pooling": self.pooling.to_dict(),
            "labelled_rows": self.labelled,
            "unseen": self.unseen and self.unseen.to_dict(),
            "warnings": list(self.warnings),
        }

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a row for each model, each with how all were made."""
        beside = attributes(self, "facet", "value", "method", "policy", "version", "data_hash")
        beside["updated"] = self.updated.isoformat()
        return [row.to_flat() | beside for row in self.rows]


@dataclass(frozen=True, slots=True)
class MixView:
    """The board of one's own mix of categories, as a page shows it.

    Attributes
    ----------
    counts : tuple of LabelCount
        The categories that a mix can be of, the most frequent first.
    left_out : mapping of str to int
        Categories of which one has prompts and no vote is; these prompts do not count.
    names, organisations : mapping of str to str
        Of each model on the board.
    """

    policy: str
    version: str
    updated: datetime
    counts: tuple[LabelCount, ...]
    board: MixBoard
    left_out: Mapping[str, float]
    names: Mapping[str, str]
    organisations: Mapping[str, str]

    def preference(self, a: str, b: str) -> Preference | None:
        """Give how often a is preferred to b; None unless both are on the board."""
        for one in self.board.pairs:
            if (one.a, one.b) == (a, b):
                return one
            if (one.a, one.b) == (b, a):
                return Preference(a, b, 1 - one.preferred, 1 - one.upper, 1 - one.lower)
        return None

    @property
    def neighbours(self) -> tuple[Preference, ...]:
        """Each model against the next one below it."""
        order = [row.model for row in self.board.report.ratings]
        pairs = {(one.a, one.b): one for one in self.board.pairs}
        return tuple(pairs[pair] for pair in pairwise(order))

    @property
    def reach(self) -> Mapping[str, tuple[RankReach, ...]]:
        """The ranks of each model in other mixes, by kappa from the least."""
        ordered = sorted(self.board.envelope, key=lambda one: one.kappa)
        return {model: tuple(one for one in ordered if one.model == model) for model in self.names}

    def to_dict(self) -> dict[str, Any]:
        """Return what `arena mix` writes as JSON, with the policy and version of the votes."""
        beside = {"policy": self.policy, "version": self.version}
        return self.board.to_dict() | beside | {"left_out": dict(self.left_out)}


Labels = Mapping[str, tuple[LabelCount, ...]]
"""By facet, the labels of counted votes, the most frequent first."""


# Quality and cost


@dataclass(frozen=True, slots=True)
class Valued:
    """What a policy's votes say of quality and cost.

    Attributes
    ----------
    version : str
        Short hash of the votes and the code that the numbers follow from.
    names : mapping of str to str
        Of models, by their ids.
    value : Value or None
    reason : str or None
        Why nothing can be valued, as a sentence; None where something is.
    safety : SafetyTable or None
        What models refuse, where that was measured.
    """

    policy: str
    version: str
    updated: datetime
    names: Mapping[str, str]
    value: Value | None
    reason: str | None
    safety: "SafetyTable | None" = None

    @property
    def rated(self) -> tuple[str, ...]:
        """Ids of the models with a rating, best first."""
        return tuple(row.model for row in self.value.models) if self.value else ()
