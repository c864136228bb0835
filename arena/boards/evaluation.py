"""What a board rests on: the evaluation card, the fit of its ratings, and studies by people.

`Evaluation` keeps the card, filled from the log, the board and the settings. `pair_cells`,
`fit_check` and `holds` describe how pairs fared, how the ratings fit and what would change a rank.
`read_status` and `export` give the progress of a study by people, and its ratings.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from hashlib import sha256
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

import arena
import judge
import rating
from arena.boards.export import typed
from arena.boards.fitted import OPTIONS, Fitted, keep_looking
from arena.domain.battle import VOTE_WITHIN
from arena.domain.board_view import Board, Fewest, FitCheck, Hold, Misfit, PairCell
from arena.domain.study import (
    APART,
    RATED_BY_K,
    CallLimits,
    Calls,
    EvaluationCard,
    Inputs,
    Interpretation,
    ModelCall,
    Outputs,
    Rater,
    Statements,
    StudyKind,
    StudyPlan,
    empty_sections,
)
from arena.domain.vote import Choice, Policy, attributes
from arena.store import log, studies
from arena.store.log import CardFacts, LastCall
from arena.store.store import Store
from judge.studies.biases import SideCounts, SideWarning, warn_of_sides
from judge.studies.plan import Enough, enough
from judge.studies.raters import NO_PAIR, NOTHING, PeoplesAgreement, agreement_of, rows_of
from rating import (
    Comparisons,
    MisfitTest,
    fewest_to_flip,
    goodness_of_fit,
    misfit_test,
    neighbour_gaps,
    win_rates,
)
from rating.covariance import Grouping, activity, grouping
from rating.influence import Unit
from rating.outcome import SHOWN_FIRST, of_sides
from rating.ranks import MIN_EFFECTIVE_FOR_RANKS
from rating.sentences import counted
from rating.tables.coding import LOGGED_SIDES
from rating.tables.duckdb_engine import write_rows
from rating.typing import Bools, Ints
from rating.variants import POINTS_PER_NAT

# Evaluation cards

HARMLESS = frozenset(
    {
        "frequency_penalty", "max_completion_tokens", "max_tokens", "min_p", "n", "seed",
        "presence_penalty", "reasoning_effort", "repetition_penalty", "temperature", "thinking",
        "stop", "top_k", "top_p", "verbosity",
    }
)  # fmt: skip
"""Parameters of decoding whose values anybody may read; of others the name alone is shown."""
LONGEST = 200
"""Characters of a value that is shown."""
NO_SYSTEM_PROMPT = sha256().hexdigest()

REST_S = 1.0
REST = 20
"""Between two looks at the log pass at least `REST_S`, and `REST` times as long as one took."""


class Evaluation:
    """Keeps the card of a policy's board; who reads it waits for the first one alone.

    Parameters
    ----------
    board : callable
        The board as it stands.
    now : callable
        Time now, in UTC.
    vote_within : timedelta
        How long a battle takes a vote after its models were last asked.
    """

    def __init__(
        self,
        store: Store,
        policy: Policy,
        board: Callable[[], Board],
        statements: Statements,
        limits: CallLimits,
        now: Callable[[], datetime],
        vote_within: timedelta = VOTE_WITHIN,
    ) -> None:
        self._store = store
        self._policy = policy
        self._board = board
        self._statements = statements
        self._limits = limits
        self._now = now
        self._vote_within = vote_within
        self._card: EvaluationCard | None = None
        self._version = ""
        self._turn = Lock()

    def read(self) -> EvaluationCard:
        """Give the card as it was last made, or make the first.

        Raises
        ------
        StoreError
            If there is none, and the log cannot be read.
        """
        with self._turn:
            return self._card or self._anew(self._board())

    async def keep_on(self) -> None:
        """Make the card, rest, and look whether the board is another, until cancelled."""
        await keep_looking(self.look, "How the arena evaluates", REST_S, REST)

    def look(self) -> None:
        """Make the card again if the board is another.

        Raises
        ------
        StoreError
            If the log cannot be read.
        """
        board = self._board()
        if board.version != self._version:
            self._anew(board)

    def _anew(self, board: Board) -> EvaluationCard:
        models = [row.model for row in board.rows]
        asked_since = self._now() - self._vote_within
        logged = self._store.read(log.card_facts, self._policy, models, asked_since)
        calls = calls_of(logged.asked, board)
        card = card_of(board, logged, calls, self._policy, self._statements, self._limits)
        self._card, self._version = card, board.version
        return card


def card_of(
    board: Board,
    logged: CardFacts,
    calls: Mapping[str, ModelCall],
    policy: Policy,
    statements: Statements,
    limits: CallLimits,
    code: str | None = None,
) -> EvaluationCard:
    """Put the card of a board together.

    Parameters
    ----------
    calls : mapping of str to ModelCall
        How models are asked, by id.
    code : str, optional
        See `arena.domain.study.Interpretation`; the code that runs if not given.
    """
    facts = logged.facts
    models = tuple(
        replace(
            calls[row.model],
            name=row.name,
            kind=row.kind,
            versions=facts.versions.get(row.model, 0),
        )
        for row in board.rows
    )
    return EvaluationCard(
        statements=statements,
        inputs=Inputs(
            **attributes(facts, "sources", "prompts", "repeated", "categories", "languages"),
            tagger=" ".join(policy.tagger),
            first_vote=facts.first,
            last_vote=facts.last,
        ),
        calls=Calls(
            models=models, **attributes(facts, "samplers", "pacing", "turns"), limits=limits
        ),
        outputs=Outputs(
            **attributes(facts, "votes", "choices", "voter_kinds"),
            **attributes(board, "left_out", "voters", "effective_voters", "top_voter_share"),
        ),
        interpretation=Interpretation(
            **attributes(board, "method", "level", "anchor_mean", "policy", "policy_rules"),
            **attributes(board, "ranks_claimed", "data_hash", "version"),
            rated=len(board.rows),
            warnings=board.all_warnings,
            code=code or code_hash(),
            chain_head=logged.head,
            chain_links=logged.links,
        ),
        missing=(*empty_sections(facts, models, len(board.rows)), *statements.missing),
    )


def calls_of(asked: Mapping[str, LastCall], board: Board) -> dict[str, ModelCall]:
    """Describe how the rated models are asked, without what is nobody else's business."""
    return {
        row.model: ModelCall(
            id=row.model, name=row.name, kind=row.kind, **_call(asked.get(row.model))
        )
        for row in board.rows
    }


def _call(asked: LastCall | None) -> dict[str, Any]:
    if asked is None:
        return {}
    has_none = NO_SYSTEM_PROMPT.startswith(asked.system_prompt)
    parameters = {name: asked.decoding[name] for name in sorted(asked.decoding)}
    tools = parameters.pop("tools", ())
    return {
        "system_prompt": "" if has_none else asked.system_prompt,
        "decoding": {
            name: (json.dumps(value, ensure_ascii=False)[:LONGEST] if name in HARMLESS else "")
            for name, value in parameters.items()
        },
        "tools": tuple(map(_tool, tools if isinstance(tools, list) else ())),
    }


def _tool(tool: object) -> str:
    match tool:
        case {"function": {"name": str(name)}} | {"name": str(name)} | {"type": str(name)}:
            return name[:LONGEST]
    return "?"


@cache
def code_hash() -> str:
    """SHA-256 of the program's code and rules: of each file's path and text, in order."""
    whole = sha256()
    for package in (arena, judge, rating):
        folder = Path(package.__path__[0])
        for file in sorted(one for one in folder.rglob("*") if one.suffix in CODE):
            whole.update(file.relative_to(folder.parent).as_posix().encode() + b"\0")
            whole.update(file.read_bytes() + b"\0")
    return whole.hexdigest()


CODE = {".py", ".toml", ".tsv", ".sql"}
"""Ends of the files that decide a figure: modules, rules and tables."""


# Evidence of a board

FEWEST_JUDGED = 5
"""Votes of a pair from which its share is compared with the ratings."""
FAR = 2.0
"""Standard errors beyond which a pair is called far."""
MOST_NAMED = 3

MOST_PAIRS = 10
"""Neighbours looked at, from the top: the cost of a board stays within bounds."""

MOST_BY_PROMPT = 50_000
"""Votes up to which prompts are taken away: few and heavy, each costs a fit of its own."""

MOST_BY_VOTER = 500_000
"""Votes up to which voters are taken away: each is excluded once, five seconds a million votes."""

MOST_COINS = 2048
"""Groups of voters whose signs change together, where voters are more than `FROM` times as many.

Voters are put together by lot, so that what is in a group by itself cancels on average, as what
is in different groups does; the variance is as well known as from this many voters.
"""
FROM = 8

MOST_TAKEN = 1000
"""Votes, voters or prompts that are taken away together, at most."""


def pair_cells(everyone: Comparisons, fitted: Fitted | None) -> tuple[PairCell, ...]:
    """Give every pair that met, and every pair that is rated, once.

    Parameters
    ----------
    everyone : Comparisons
        All counted votes, those on models that are not rated among them.
    """
    wins = everyone.wins()
    n = wins + wins.T
    models = everyone.models
    met = {
        (models[i], models[j]): (round(n[i, j]), float(wins[i, j]))
        for i, j in np.argwhere(np.triu(n) > 0)
    }
    expected = _expected(fitted) if fitted else {}
    return tuple(
        _cell(pair, *met.get(pair, (0, 0.0)), *expected.get(pair, (None, None, None)))
        for pair in sorted({*met, *expected})
    )


def _cell(
    pair: tuple[str, str],
    n: int,
    won: float,
    expected: float | None,
    low: float | None,
    high: float | None,
) -> PairCell:
    row, column = pair
    share = won / n if n else None
    return PairCell(
        row=row, column=column, n=n, share=share, expected=expected, low=low, high=high
    )


def _expected(fitted: Fitted) -> dict[tuple[str, str], tuple[float, float, float]]:
    """Give what each pair's first model is expected to win, and the interval."""
    rates = win_rates(fitted.inference, level=OPTIONS.level)
    return {
        (rates.models[i], rates.models[j]): (
            float(rates.expected[i, j]),
            float(rates.low[i, j]),
            float(rates.high[i, j]),
        )
        for i, j in zip(*np.triu_indices(len(rates.models), k=1), strict=True)
    }


def fit_check(fitted: Fitted, order: Sequence[str]) -> FitCheck | None:
    """Hold the votes of each pair against the ratings; None where ratings can fit any votes.

    Parameters
    ----------
    order : sequence of str
        Models best first: a pair is told from its better one.
    """
    goodness = goodness_of_fit(fitted.fit, fitted.data)
    if goodness.df < 1:
        return None
    wins = fitted.data.wins()
    n = (wins + wins.T)[*goodness.pairs.T]
    judged = (n >= FEWEST_JUDGED) & ~np.isnan(goodness.residual)
    distance = np.where(judged, np.abs(goodness.residual), 0.0)
    far = np.flatnonzero(distance > FAR)
    worst = far[np.argsort(-distance[far], kind="stable")][:MOST_NAMED]
    better = {model: i for i, model in enumerate(order)}
    tested = _tested(fitted, judged)
    return FitCheck(
        pairs=int(judged.sum()),
        far=len(far),
        by_chance=None if tested is None else tested.n_far,
        p=None if tested is None else tested.p,
        left_out=int((~judged).sum()),
        worst=tuple(_misfit(fitted, goodness.pairs[at], better) for at in worst),
    )


def _tested(fitted: Fitted, judged: Bools) -> MisfitTest | None:
    """Ask what chance makes of the pairs, voter by voter; None with too few voters, or no pair."""
    few = activity(fitted.data).effective < MIN_EFFECTIVE_FOR_RANKS
    if few or not judged.any():
        return None
    rng = np.random.default_rng(OPTIONS.seed)
    voters = in_groups(grouping(fitted.data, "voter"), MOST_COINS, rng)
    return misfit_test(fitted.fit, fitted.data, voters, judged, rng=rng, far=FAR)


def in_groups(clusters: Grouping, most: int, rng: np.random.Generator) -> Grouping:
    """Put clusters together by lot where they are many: see `MOST_COINS`."""
    if clusters.size <= FROM * most:
        return clusters
    return Grouping(rng.integers(0, most, clusters.size)[clusters.index], most)


def _misfit(fitted: Fitted, pair: Ints, better: Mapping[str, int]) -> Misfit:
    wins, models = fitted.data.wins(), fitted.fit.models
    i, j = sorted(pair.tolist(), key=lambda model: better[models[model]])
    n = float(wins[i, j] + wins[j, i])
    gap = float(fitted.fit.theta[i] - fitted.fit.theta[j])
    return Misfit(
        row=models[i],
        column=models[j],
        share=float(wins[i, j]) / n,
        expected=1 / (1 + float(np.exp(-gap))),
        n=round(n),
    )


def holds(fitted: Fitted) -> tuple[Hold, ...]:
    """Describe what holds each model above the next, for the first `MOST_PAIRS` neighbours.

    See `rating.influence.fewest_to_flip` and `rating.planning.neighbour_gaps`.
    """
    data, models = fitted.data, fitted.fit.models
    gaps = neighbour_gaps(fitted.inference, level=OPTIONS.level)[:MOST_PAIRS]
    pairs = [(models[gap.ahead], models[gap.behind]) for gap in gaps]
    is_whole = data.n_votes <= MOST_BY_PROMPT and data.prompt is not None
    by_prompt = data if is_whole else data.merged()
    votes = _fewest(fitted, data, "vote", pairs, data.n_votes)
    few = data.n_votes <= MOST_BY_VOTER
    voters = _fewest(fitted, data, "voter", pairs, data.n_voters) if few else {}
    prompts = _fewest(fitted, by_prompt, "prompt", pairs, by_prompt.n_prompts)
    return tuple(
        Hold(
            above=pair[0],
            below=pair[1],
            lead=gap.gap * POINTS_PER_NAT,
            votes=votes[pair],
            voters=voters.get(pair),
            prompts=prompts.get(pair),
            separated=gap.separated,
            more_votes=gap.more_votes,
        )
        for pair, gap in zip(pairs, gaps, strict=True)
    )


def _fewest(
    fitted: Fitted, data: Comparisons, unit: Unit, pairs: list[tuple[str, str]], of: int
) -> dict[tuple[str, str], Fewest]:
    """Find the fewest of each pair; nothing where there are not two clusters to tell apart."""
    if unit != "vote" and of < 2:
        return {}
    flips = fewest_to_flip(fitted.fit, data, unit=unit, pairs=pairs, at_most=MOST_TAKEN)
    return {(flip.above, flip.below): Fewest(k=flip.k, tried=flip.tried, of=of) for flip in flips}


# Studies by people

COLUMNS = typed(
    "study", "item", "kind", "rater", "prompt_id", *LOGGED_SIDES, "sides", "choice", "ranking",
    "reasons", "comment", "confidence", "rubric", "intent", "seconds", "repeat", "gold",
    *chain.from_iterable(map(of_sides, ("base_model", "scaffold", "cost", "seconds", "marks"))),
    "created",
)  # fmt: skip
"""Columns of an export, with SQL's types; those of lists and objects hold JSON."""

LEFT_OF = dict(zip((Choice.A, Choice.B), SHOWN_FIRST, strict=True))
"""How the sides stood where a choice for a side is for what stood on the left."""

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StudyStatus:
    """How a study stands.

    Attributes
    ----------
    items, done : int
        Items, pilot among them; and those with all their ratings.
    ratings : int
        Of items, first showings, skips among them.
    pilot : int
        Items of the pilot; ``opened`` states whether the rest may be rated.
    side_warnings : tuple of SideWarning
        Of raters who go by the side, or choose like a coin.
    """

    plan: StudyPlan
    items: int
    done: int
    ratings: int
    rankings: int
    pilot: int
    opened: bool
    raters: tuple[Rater, ...]
    agreement: PeoplesAgreement
    stop: Enough | None
    side_warnings: tuple[SideWarning, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "study": self.plan.name,
            "items": self.items,
            "done": self.done,
            "raters_per_item": self.plan.raters_per_item,
            "ratings": self.ratings,
            "rankings": self.rankings,
            "raters": [_rater_dict(one) for one in self.raters],
            "agreement": {
                "alpha": self.agreement.alpha.to_dict(),
                "ac1": self.agreement.ac1.to_dict(),
            },
            "by_item": [
                attributes(one, "item", "model_a", "tie", "model_b", "agreed")
                for one in self.agreement.by_item
            ],
            "pilot": {"items": self.pilot, "opened": self.opened} if self.pilot else None,
            "repeats": {
                "shown": sum(one.repeated for one in self.raters),
                "same": sum(one.same for one in self.raters),
                "close": sum(one.close for one in self.raters),
            },
            "side_warnings": [one.to_dict() for one in self.side_warnings],
            "stop": self.stop and self.stop.to_dict(),
            "warnings": [*self.agreement.warnings, *self.notes],
        }

    @property
    def notes(self) -> tuple[str, ...]:
        """Give what to keep in mind beside the agreement."""
        close = sum(one.close for one in self.raters)
        remembered = counted(
            "%(n)s repeat came with fewer than %(apart)s other items between, at the end of what "
            "a rater had: it may have been remembered.",
            "%(n)s repeats came with fewer than %(apart)s other items between, at the end of what "
            "a rater had: they may have been remembered.",
            close,
            apart=APART,
        )
        of_raters = tuple(one.sentence for one in self.side_warnings)
        return (*of_raters, remembered) if close else of_raters


def read_status(store: Store, name: str) -> StudyStatus:
    """Read how a study stands, at one moment; raises `UnknownStudyError`."""
    with store.reading() as session:
        plan, opened = studies.plan_of(session, name), studies.is_open(session, name)
        every = list(studies.rows(session, name))
        items = studies.items(session, name)
        raters = studies.raters(session, name)
    first: dict[str, int] = defaultdict(int)
    for row in every:
        if row["kind"] in RATED_BY_K and not row["repeat"]:
            first[row["item"]] += 1
    own = [item for item, kind in items if kind in RATED_BY_K]
    pairs = [row for row in every if _counts(row) and row["choice"] is not None]
    none = PeoplesAgreement(NOTHING, NOTHING, warnings=(NO_PAIR,))
    agreement = agreement_of(rows_of(pairs)) if pairs else none
    return StudyStatus(
        plan=plan,
        items=len(own),
        done=sum(first[item] >= plan.raters_per_item for item in own),
        ratings=sum(first.values()),
        rankings=sum(_counts(row) and row["ranking"] is not None for row in every),
        pilot=plan.pilot,
        opened=opened,
        raters=tuple(_rater(*one, every) for one in raters),
        agreement=agreement,
        stop=None
        if plan.until is None
        else enough(agreement.alpha, plan.until, ratings=sum(first.values()), prompts=len(first)),
        side_warnings=warn_of_sides([_side_counts(code, every) for code, _, _ in raters]),
    )


def export(store: Store, name: str, to: Path) -> int:
    """Write the ratings of a study, one a row; gives how many.

    Raises
    ------
    UnknownStudyError, DataError
        If there is no such study, or the file cannot be written.
    """
    n = 0

    def each() -> Iterator[Row]:
        nonlocal n
        for row in studies.rows(session, name):
            n += 1
            yield row

    with store.reading() as session:
        studies.plan_of(session, name)
        write_rows(each(), COLUMNS, to)
    return n


def _counts(row: Row) -> bool:
    """Tell whether a rating counts: a first showing of an item that was not skipped."""
    return row["kind"] == StudyKind.ITEM and not row["repeat"] and row["choice"] != Choice.SKIP


def _rater(
    code: str, qualification: float | None, passed: bool | None, every: Sequence[Row]
) -> Rater:
    own = [row for row in every if row["rater"] == code]
    golds = [r for r in own if r["kind"] == StudyKind.GOLD and r["choice"] != Choice.SKIP]
    first = {r["item"]: place for place, r in enumerate(own) if not r["repeat"]}
    again = [(place, r) for place, r in enumerate(own) if r["repeat"]]
    both = [
        (_answer(own[first[r["item"]]]), _answer(r))
        for _, r in again
        if Choice.SKIP not in (r["choice"], own[first[r["item"]]]["choice"])
    ]
    done = [row for row in own if row["kind"] in RATED_BY_K and not row["repeat"]]
    return Rater(
        code=code,
        done=len(done),
        skipped=sum(row["choice"] == Choice.SKIP for row in done),
        gold_right=sum(row["choice"] == row["gold"] for row in golds),
        gold_asked=len(golds),
        qualification=qualification,
        passed=passed,
        repeated=len(both),
        same=sum(one == other for one, other in both),
        close=sum(place - first[r["item"]] - 1 < APART for place, r in again),
    )


def _side_counts(code: str, every: Sequence[Row]) -> SideCounts:
    """Count where a rater's choices went, and what items got that came again."""
    own = [
        row
        for row in every
        if row["rater"] == code
        and row["kind"] != StudyKind.QUALIFICATION
        and row["choice"] in LEFT_OF
    ]
    first = {row["item"]: row for row in own if not row["repeat"]}
    twice = [
        (first[row["item"]], row)
        for row in own
        if row["repeat"] and row["item"] in first and row["sides"] != first[row["item"]]["sides"]
    ]
    return SideCounts(
        rater=code,
        left=sum(LEFT_OF[row["choice"]] == row["sides"] for row in own),
        chosen=len(own),
        same=sum(one["choice"] == other["choice"] for one, other in twice),
        twice=len(twice),
    )


def _answer(row: Row) -> tuple[object, object]:
    return row["choice"], row["ranking"]


def _rater_dict(one: Rater) -> dict[str, Any]:
    return {
        "rater": one.code,
        "done": one.done,
        "skipped": one.skipped,
        "gold": one.gold_right / one.gold_asked if one.gold_asked else None,
        "gold_asked": one.gold_asked,
        "qualification": one.qualification,
        "passed": one.passed,
        "repeats": one.repeated,
        "repeats_same": one.same,
    }
