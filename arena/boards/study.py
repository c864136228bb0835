"""A study by people: how it stands, from its ratings, and these as a file."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from arena.boards.export import typed
from arena.domain.study import APART, RATED_BY_K, Kind, Rater, StudyPlan
from arena.domain.vote import Choice
from arena.store import studies
from arena.store.store import Store
from judge.studies.people import NO_PAIR, NOTHING, PeoplesAgreement, agreement_of, rows_of
from judge.studies.rater_plan import Enough, enough
from judge.studies.sides import SideCounts, SideWarning, warn_of_sides
from rating.outcome import SHOWN_FIRST, of_sides
from rating.sentences import counted
from rating.tables.log import SIDES
from rating.tables.writing import write_rows

COLUMNS = typed(
    *("study", "item", "kind", "rater", "prompt_id", *SIDES, "sides", "choice", "ranking"),
    *("reasons", "comment", "confidence", "rubric", "intent", "seconds", "repeat", "gold"),
    *chain.from_iterable(map(of_sides, ("base_model", "scaffold", "cost", "seconds", "marks"))),
    "created",
)
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
        Items of the pilot; ``opened`` says whether the rest may be rated.
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
                {
                    "item": one.item,
                    "model_a": one.model_a,
                    "tie": one.tie,
                    "model_b": one.model_b,
                    "agreed": one.agreed,
                }
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
    agreement = _agreement(every)
    return StudyStatus(
        plan=plan,
        items=len(own),
        done=sum(first[item] >= plan.raters_per_item for item in own),
        ratings=sum(first.values()),
        rankings=sum(counts(row) and row["ranking"] is not None for row in every),
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


def counts(row: Row) -> bool:
    """Tell whether a rating counts: a first showing of an item that was not skipped."""
    return row["kind"] == Kind.ITEM and not row["repeat"] and row["choice"] != Choice.SKIP


def _agreement(every: Sequence[Row]) -> PeoplesAgreement:
    pairs = [row for row in every if counts(row) and row["choice"] is not None]
    if not pairs:
        return PeoplesAgreement(NOTHING, NOTHING, warnings=(NO_PAIR,))
    return agreement_of(rows_of(pairs))


def _rater(
    code: str, qualification: float | None, passed: bool | None, every: Sequence[Row]
) -> Rater:
    own = [row for row in every if row["rater"] == code]
    golds = [r for r in own if r["kind"] == Kind.GOLD and r["choice"] != Choice.SKIP]
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
        if row["rater"] == code and row["kind"] != Kind.QUALIFICATION and row["choice"] in LEFT_OF
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
