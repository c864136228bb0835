"""The leaderboard and boards by label as HTML: which rows, in which order, below what."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from math import inf
from typing import Any, Self
from urllib.parse import urlencode

from markupsafe import Markup, escape

from arena.boards.labelled import AND, FEWEST_OF_BOTH
from arena.catalogue import Language
from arena.domain.board_view import Board, BoardRow, LabelBoard, Labels, NewModel, Waiting
from arena.domain.model import Stage
from arena.domain.vote import BEFORE_EXCLUSIONS, DEFAULT
from arena.pages.rendering import ANYBODY, STYLES, Visit, filled
from arena.pages.value import FEWEST_COLOURED, heatmap, panels, per_pair, tone
from rating.charts.drawing import Scale
from rating.sentences import Sentence, foremost
from rating.tables.files import shown

LONGEST_QUERY = 100
"""Characters of a search; no name is longer."""

Entry = BoardRow | NewModel | Waiting

STAGES = {
    Stage.PRE_RELEASE: Sentence("pre-release"),
    Stage.PROVISIONAL: Sentence("provisional"),
    Stage.REGULAR: Sentence("listed"),
    Stage.RETIRED: Sentence("retired"),
}
"""How far a model has come, as the board marks it and its history has it."""

EVENTS = STAGES | {
    "added": Sentence("added"),
    "changed": Sentence("changed under the same id"),
    "enabled": Sentence("enabled"),
    "disabled": Sentence("disabled"),
    "released": Sentence("released"),
    "weighed": Sentence("drawn more or less often"),
}
"""What the log of models has, in words."""

HIDE = "hide"
"""What an address says of retired models that are not to be shown."""

MOST_CHIPS = 3
"""Kinds of prompts above a board; the others are one click away."""

ON_REQUEST = (("hard", "yes"), ("instructions", "yes"), ("refusal", "none"))
"""Labels without a count: their boards are made on request."""

MOST_WRITTEN = 60
"""Views of leaderboards of which the text is kept, in each order and language."""

MOST_MORE = 100
"""Neighbours that more times as many votes would be needed to separate are level."""

VIEWS = {
    "": Sentence("Board"),
    "adjusted": Sentence("Style-adjusted"),
    "head-to-head": Sentence("Head-to-head"),
    "robustness": Sentence("Robustness"),
    "data": Sentence("Data"),
}
"""Tabs of a leaderboard, by what their addresses ask for."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which models the standings show, and in which order.

    Attributes
    ----------
    sort : str
        One of `COLUMNS`; after a minus sign the other way round.
    query : str
        What a name, or that of its organisation, holds; empty for all.
    retired : bool
        Whether models that have left the roster are shown.
    view : str
        One of `VIEWS`.
    """

    sort: str = "rating"
    query: str = ""
    retired: bool = True
    view: str = ""

    @classmethod
    def of(cls, sort: str, query: str, retired: str = "", view: str = "") -> Self:
        """Read what an address asks for; an order or view that is not known is the usual one.

        Examples
        --------
        >>> Selection.of("-votes", " quartz ", "hide"), Selection.of("colour", "").sort
        (Selection(sort='-votes', query='quartz', retired=False, view=''), 'rating')
        """
        known = sort.removeprefix("-") in COLUMNS
        asked = query.strip()[:LONGEST_QUERY]
        shown = view if view in VIEWS else ""
        return cls(sort if known else cls().sort, asked, retired != HIDE, shown)

    def rows(self, board: Board) -> list[BoardRow]:
        """Give the rated models; those of which the column is not known come last."""
        column, _ = COLUMNS[self.sort.removeprefix("-")]
        rows = [row for row in board.rows if self.holds(row)]
        known = [row for row in rows if column(row) is not None]
        unknown = [row for row in rows if column(row) is None]
        return sorted(known, key=column, reverse=self.is_descending(self.sort)) + unknown

    def holds(self, entry: Entry) -> bool:
        """Tell whether a model is among those asked for."""
        if not self.retired and entry.stage is Stage.RETIRED:
            return False
        return self.query.casefold() in f"{entry.name} {entry.organisation}".casefold()

    @staticmethod
    def is_descending(sort: str) -> bool:
        """Tell whether an order begins with the highest."""
        _, descending = COLUMNS[sort.removeprefix("-")]
        return descending != sort.startswith("-")

    def address(self, policy: str, column: str) -> str:
        """Give where the standings are sorted by a column, or the other way round if they are."""
        sort = f"-{column}" if self.sort == column else column
        return replace(self, sort=sort).here(policy)

    def here(self, policy: str) -> str:
        """Give the address of these standings."""
        asked = {
            "view": self.view,
            "policy": "" if policy == DEFAULT.name else policy,
            "q": self.query,
            "sort": "" if self.sort == Selection().sort else self.sort,
            "retired": "" if self.retired else HIDE,
        }
        query = urlencode({name: x for name, x in asked.items() if x})
        return f"/leaderboard?{query}" if query else "/leaderboard"

    def but(self, **changes: Any) -> Self:
        """Select the same except for what is given."""
        return replace(self, **changes)


COLUMNS: Mapping[str, tuple[Callable[[BoardRow], Any], bool]] = {
    "rating": (lambda row: row.rating, True),
    "name": (lambda row: row.name.casefold(), False),
    "votes": (lambda row: row.votes, True),
    "wins": (lambda row: row.win_rate, True),
    "price": (lambda row: row.price_per_1000, False),
    "median": (lambda row: row.median_s, False),
}
"""What the standings can be sorted by, and whether the highest value comes first."""


def leaderboard_page(
    board: Board,
    *,
    linked: bool,
    now: datetime,
    selection: Selection | None = None,
    labels: Labels | None = None,
    visit: Visit = ANYBODY,
    whole: Board | None = None,
) -> str:
    """Page of the leaderboard; ``linked`` if its numbers open the battles behind them.

    Without a selection it shows every model by rating; ``labels`` lead to boards by label.
    ``whole`` is the board with the votes that exclusions exclude, shown beside it.
    """
    selection = selection or Selection()
    return filled(
        "leaderboard.html",
        visit,
        board=board,
        selection=selection,
        views=VIEWS,
        notes=[_by_name(note, board.names) for note in foremost(board.warnings)],
        below=below_summary(board, labels, whole, selection, now, visit.language, linked=linked),
        linked=linked,
        before_exclusions=board.policy == BEFORE_EXCLUSIONS.name,
        now=now,
    )


def _by_name(words: str, names: Mapping[str, str]) -> str:
    """Call the models that a note lists by their names."""
    if not isinstance(words, Sentence):
        return ", ".join(names.get(model, model) for model in words.split(", "))
    models = {key: _by_name(x, names) for key, x in words.values.items() if key == "names"}
    return Sentence(words.template, words.many, **{**words.values, **models})


WRITTEN: dict[tuple[object, ...], tuple[object, Markup]] = {}
"""What the last leaderboards show below their summaries, which takes long to write."""


def below_summary(
    board: Board,
    labels: Labels | None,
    whole: Board | None,
    selection: Selection,
    now: datetime,
    language: Language,
    *,
    linked: bool,
) -> Markup:
    """Give what a leaderboard shows below its summary, of the board and not of who asks.

    It is given as it was written before, or written. A board is told from every other that is
    still there by its parts, without looking at all that is in them.
    """
    boards = [one for one in (board, whole) if one is not None]
    parts = [
        id(getattr(one, part.name))
        for one in boards
        for part in fields(one)
        if part.name not in ("record", "warnings")
    ]
    counts = tuple((name, *each) for name, each in (labels or {}).items())
    key = (*parts, counts, whole is None, linked, selection, now.year, language)
    if known := WRITTEN.get(key):
        return known[1]
    names, of_models, cells = heatmap(board)
    entries: list[Entry] = [*board.rows, *board.newcomers, *board.waiting]
    others = {row.model: row for row in whole.rows} if whole else {}
    adjusted = board.adjusted
    page = filled(
        "below_summary.html",
        Visit(language),
        board=board,
        rows=selection.rows(board),
        newcomers=[one for one in board.newcomers if selection.holds(one)],
        waiting=[one for one in board.waiting if selection.holds(one)],
        selection=selection,
        families=[row for row in board.rows if row.variants > 1],
        stages=STAGES,
        shown_stages={entry.stage for entry in board.rows},
        retired=sum(entry.stage is Stage.RETIRED for entry in entries),
        policy=board.policy,
        **_chips(labels),
        axis=Scale.of_ratings((*board.rows, *board.newcomers), board.anchor_mean)
        if board.rows
        else None,
        names={model: escape(shown(name)) for model, name in names.items()},
        of_models=of_models,
        cells=cells,
        tone=tone,
        per_pair=per_pair(board),
        holds=[
            hold
            for hold in board.holds
            if hold.separated or (hold.more_votes or inf) <= MOST_MORE * board.votes
        ],
        over_time=panels(board),
        even=even(board),
        adjusted=adjusted if adjusted and adjusted.rows else None,
        adjusted_axis=adjusted
        and adjusted.rows
        and Scale.of_ratings(adjusted.rows, board.anchor_mean),
        styles=STYLES,
        whole=whole if board.rows else None,
        beside=[
            (row, other)
            for row in board.rows
            if (other := others.get(row.model)) is None
            or (other.rank, round(other.rating)) != (row.rank, round(row.rating))
        ],
        linked=linked,
        fewest_coloured=FEWEST_COLOURED,
        longest_query=LONGEST_QUERY,
        now=now,
    )
    written = Markup(page)  # noqa: S704 - a template made it
    # The boards stay with it: no other part can have the identity of one that is there.
    # Other threads may write meanwhile; one text more or less does no harm.
    WRITTEN[key] = boards, written
    for old in [*WRITTEN][: -MOST_WRITTEN - 1]:
        WRITTEN.pop(old, None)
    return written


@dataclass(frozen=True, slots=True)
class AskedLabel:
    """The requested board by label.

    Attributes
    ----------
    facet, value : str
        Of two labels at once both, with ``&`` between them.
    also : tuple of (str, str)
        Labels that were asked for as well, and that the board is not of.
    """

    policy: str
    facet: str
    value: str
    also: tuple[tuple[str, str], ...] = ()

    def both(self) -> Self:
        """Ask for the board of the first two labels together."""
        (facet, value), *rest = self.also
        together = f"{self.facet}{AND}{facet}", f"{self.value}{AND}{value}"
        return type(self)(self.policy, *together, tuple(rest))


def _chips(
    labels: Labels | None, facet: str | None = None, value: str | None = None
) -> dict[str, Any]:
    """Choose which labels stand above a board: the most frequent categories, and the one shown."""
    every = {
        (name, count.value): (name, count)
        for name, counts in (labels or {}).items()
        for count in counts
        if len(counts) > 1
    }
    first = [chip for chip in every.values() if chip[0] == "category" and chip[1].value != "other"]
    shown = first[:MOST_CHIPS]
    chosen = every.get((facet or "", value or ""))
    shown += [chosen] if chosen and chosen not in shown else []
    return {
        "labels": labels,
        "chips": shown or [*every.values()][:MOST_CHIPS],
        "on_request": ON_REQUEST if labels else (),
        "chosen_facet": facet,
        "chosen_value": value,
        "chosen_label": facet
        and value
        and dict(zip(facet.split(AND), value.split(AND), strict=False)),
        "chosen_counted": chosen is not None,
        "beside_it": _beside(labels or {}, facet) if facet else (),
    }


def _beside(labels: Labels, facet: str) -> tuple[tuple[str, str], ...]:
    """Choose labels that a board of one may be narrowed to: of other facets, with votes enough."""
    if AND in facet:
        return ()
    return tuple(
        (name, count.value)
        for name, counts in labels.items()
        for count in counts[:MOST_CHIPS]
        if name != facet and len(counts) > 1 and count.votes >= FEWEST_OF_BOTH
    )


def label_page(
    asked: AskedLabel,
    board: LabelBoard | None,
    *,
    labels: Labels | None,
    reason: str | None = None,
    now: datetime,
    visit: Visit = ANYBODY,
) -> str:
    """Page of the board of one label.

    Parameters
    ----------
    board : LabelBoard or None
        None while there is none: for the reason that is given, or as it is being made.
    """
    return filled(
        "label.html",
        visit,
        fewest=FEWEST_OF_BOTH,
        board=board,
        reason=reason,
        waits=board is None and reason is None,
        policy=asked.policy,
        **_chips(labels, asked.facet, asked.value),
        also=asked.also,
        axis=Scale.of_ratings(board.rows, board.anchor_mean) if board else None,
        now=now,
    )


def even(board: Board) -> tuple[Sequence[BoardRow], BoardRow] | None:
    """Compare the board with one on which every voter has the same weight.

    Returns
    -------
    moved : sequence of BoardRow
        Models of another place there, or of a rating outside their interval.
    furthest : BoardRow
        The model whose rating moves most. Instead of both None where one person voted, or nothing
        is rated.
    """
    if not board.rows or board.voters < 2:
        return None
    moved = [
        row
        for row in board.rows
        if row.voter_rank != row.rank or not row.lower <= row.voter_rating <= row.upper
    ]
    return moved, max(board.rows, key=lambda row: abs(row.voter_rating - row.rating))
