"""Each page as HTML, from plain values: all that touches Jinja."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlencode

from markupsafe import Markup, escape

from arena.catalogue import Words, words_in
from arena.domain.battle import BattleState, Mode, Pacing
from arena.domain.board_view import (
    Board,
    BoardRow,
    PastBattle,
    ShownBattle,
    ShownVotes,
    Waiting,
)
from arena.domain.vote import DEFAULT, SIMULATED, Choice
from arena.domain.words import Language
from arena.errors import CHOICE_WORDS
from arena.pages import filters
from arena.pages.geometry import FEWEST_COLOURED, bar, heatmap, panels, per_pair, shared_axis
from judge.render import pages
from rating.sentences import Sentence
from rating.tables.escaping import shown

TEMPLATES = Path(__file__).parent / "templates"
ARENA_NAME = "Arena"
"""What the pages call this arena."""

LONGEST_QUERY = 100
"""Characters of a search; no name is longer."""

MOST_SPACIOUS = 20
"""Models that the standings show in rows of the usual height; of more, rows are compact."""

MOST_WRITTEN = 15
"""Leaderboards of which the text is kept, in each order and language, beside the newest."""

MOST_BESIDE = 8
"""Models of which the table of pairs leaves room for another beside it."""

WITHOUT_VOTE = {
    BattleState.CREATED: Sentence("Being answered"),
    BattleState.STREAMING: Sentence("Being answered"),
    BattleState.READY: Sentence("Not voted yet"),
    BattleState.FAILED: Sentence("A model did not answer"),
    BattleState.STOPPED: Sentence("Stopped before both had begun to answer"),
    BattleState.INTERRUPTED: Sentence("Broken off by a restart of the arena"),
}
"""How a battle stands that has no vote."""


@dataclass(frozen=True, slots=True)
class Visit:
    """What a page takes from who asks for it.

    Attributes
    ----------
    origin : str
        Stands before the address of the picture for previews of links.
    votes : int
        Votes that the visitor has cast so far.
    """

    language: Language = Language.EN
    origin: str = ""
    votes: int = 0


@cache
def environment(language: Language) -> pages.Environment:
    """Templates of the pages, in a language; see `judge.render.pages.environment`."""
    env = pages.environment(TEMPLATES, language)
    words = words_in(language)
    forms = filters.Filters(words)
    names = ("number", "points", "money", "seconds", "day", "moment", "ago", "about", "signed")
    env.filters.update({name: getattr(forms, name) for name in names})
    env.filters.update(
        percent=filters.percent, one_line=_one_line, translated=partial(_translated, words)
    )
    env.globals.update(
        gettext=words.gettext,
        ngettext=words.ngettext,
        words=words,
        languages={code: words_in(code).name for code in Language},
        half_width=forms.half_width,
        rank_range=filters.rank_range,
        percent_range=filters.percent_range,
        bar=bar,
        arena_name=ARENA_NAME,
    )
    return env


def _translated(words: Words, sentence: str) -> str:
    """Put a sentence into the language of the page, or mark it as English."""
    if words.knows(sentence):
        return words(sentence)
    return Markup('<span lang="en">{}</span>').format(shown(sentence))


def _one_line(text: str) -> Markup:
    """Write a text of several lines on one, to the letter: Markdown would end at a blank one."""
    return Markup(escape(shown(text)).replace("\n", Markup("&#10;")))  # noqa: S704 - escaped


@dataclass(frozen=True, slots=True)
class Selection:
    """Which models the standings show, and in which order.

    Attributes
    ----------
    sort : str
        One of `COLUMNS`; after a minus sign the other way round.
    query : str
        What a name, or that of its organisation, holds; empty for all.
    """

    sort: str = "rating"
    query: str = ""

    @classmethod
    def of(cls, sort: str, query: str) -> Self:
        """Read what an address asks for; an order that is not known is the usual one.

        Examples
        --------
        >>> Selection.of("-votes", " quartz "), Selection.of("colour", "").sort
        (Selection(sort='-votes', query='quartz'), 'rating')
        """
        known = sort.removeprefix("-") in COLUMNS
        return cls(sort if known else cls().sort, query.strip()[:LONGEST_QUERY])

    def rows(self, board: Board) -> list[BoardRow]:
        """Give the rated models; those of which the column is not known come last."""
        column, _ = COLUMNS[self.sort.removeprefix("-")]
        rows = [row for row in board.rows if self._holds(row)]
        known = [row for row in rows if column(row) is not None]
        unknown = [row for row in rows if column(row) is None]
        return sorted(known, key=column, reverse=self.is_descending(self.sort)) + unknown

    def waiting(self, board: Board) -> list[Waiting]:
        """Give the models without a rating."""
        return [entry for entry in board.waiting if self._holds(entry)]

    def _holds(self, entry: BoardRow | Waiting) -> bool:
        return self.query.casefold() in f"{entry.name} {entry.organisation}".casefold()

    @staticmethod
    def is_descending(sort: str) -> bool:
        """Tell whether an order begins with the highest."""
        _, descending = COLUMNS[sort.removeprefix("-")]
        return descending != sort.startswith("-")

    def address(self, policy: str, column: str) -> str:
        """Give where the standings are sorted by a column, or the other way round if they are."""
        sort = f"-{column}" if self.sort == column else column
        asked = {"policy": "" if policy == DEFAULT.name else policy, "q": self.query, "sort": sort}
        return "/leaderboard?" + urlencode({name: x for name, x in asked.items() if x})


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
    visit: Visit = Visit(),
) -> str:
    """Page of the leaderboard; ``linked`` if its numbers open the battles behind them.

    Without a selection it shows every model by rating.
    """
    return _filled(
        "leaderboard.html",
        visit,
        board=board,
        below=BELOW.read(board, selection or Selection(), now, visit.language, linked=linked),
        linked=linked,
        simulated=board.policy == SIMULATED.name,
        now=now,
    )


class _Below:
    """Keeps what the last leaderboards show below their summaries, which takes long to write.

    It depends on the board, but not on who asks; what does not is written anew for everybody.
    """

    def __init__(self) -> None:
        self._written: dict[tuple[object, ...], tuple[Board, Markup]] = {}

    def read(
        self,
        board: Board,
        selection: Selection,
        now: datetime,
        language: Language,
        *,
        linked: bool,
    ) -> Markup:
        """Give it as it was written, or write it."""
        parts = (f.name for f in fields(board) if f.name not in ("record", "warnings"))
        key = (
            *(id(getattr(board, name)) for name in parts),
            selection,
            now.year,
            language,
            linked,
        )
        if key not in self._written:
            written = _below_summary(board, selection, now, language, linked=linked)
            # The board stays with it: no other part can have the identity of one that is there.
            latest = [*self._written.items()][-MOST_WRITTEN:]
            self._written = dict(latest) | {key: (board, written)}
        return self._written[key][1]


BELOW = _Below()


def prepare(board: Board, now: datetime, *, linked: bool) -> None:
    """Write what takes long of a leaderboard's page, before anybody asks for it."""
    for language in Language:
        BELOW.read(board, Selection(), now, language, linked=linked)


def _below_summary(
    board: Board, selection: Selection, now: datetime, language: Language, *, linked: bool
) -> Markup:
    heat = heatmap(board)
    page = _filled(
        "below_summary.html",
        Visit(language),
        board=board,
        rows=selection.rows(board),
        waiting=selection.waiting(board),
        selection=selection,
        default=DEFAULT.name,
        axis=shared_axis(board.rows, board.anchor_mean) if board.rows else None,
        heat=heat,
        names={model: escape(shown(name)) for model, name in heat.names.items()},
        per_pair=per_pair(board),
        over_time=panels(board),
        even=even(board),
        linked=linked,
        fewest_coloured=FEWEST_COLOURED,
        most_spacious=MOST_SPACIOUS,
        most_beside=MOST_BESIDE,
        longest_query=LONGEST_QUERY,
        now=now,
    )
    return Markup(page)  # noqa: S704 - a template made it


def my_battles_page(
    past: Sequence[PastBattle] | None, *, linked: bool, now: datetime, visit: Visit = Visit()
) -> str:
    """Page of one's own battles, newest first; ``past`` is None when nobody is known.

    ``linked`` if battles can be read once they were voted on.
    """
    newest_first = past and sorted(past, key=lambda battle: battle.created, reverse=True)
    choices = Counter(battle.choice for battle in past or () if battle.choice)
    return _filled(
        "my_battles.html",
        visit,
        past=newest_first,
        votes=choices.total() - choices[Choice.SKIP],
        skips=choices[Choice.SKIP],
        linked=linked,
        without_vote=WITHOUT_VOTE,
        choice_words=_choice_words(visit.language),
        Choice=Choice,
        Mode=Mode,
        now=now,
    )


def battles_page(shown: ShownVotes, *, newest: bool, now: datetime, visit: Visit = Visit()) -> str:
    """Page of the votes behind a number; ``newest`` if it begins with the newest."""
    return _filled(
        "battles.html",
        visit,
        shown=shown,
        newest=newest,
        simulated=shown.policy == SIMULATED.name,
        default=DEFAULT.name,
        choice_words=_choice_words(visit.language),
        Choice=Choice,
        now=now,
    )


def battle_page(shown: ShownBattle, *, now: datetime, visit: Visit = Visit()) -> str:
    """Page of one battle that was voted on."""
    return _filled(
        "battle.html",
        visit,
        shown=shown,
        vote=shown.vote,
        simulated=shown.policy == SIMULATED.name,
        choice_words=_choice_words(visit.language),
        Choice=Choice,
        now=now,
    )


def _filled(template: str, visit: Visit, **values: object) -> str:
    return environment(visit.language).get_template(template).render(values, visit=visit)


def _choice_words(language: Language) -> dict[Choice, str]:
    """Give what a vote says, as a sentence begins."""
    each = {choice: words_in(language)(words) for choice, words in CHOICE_WORDS.items()}
    return {choice: words[:1].upper() + words[1:] for choice, words in each.items()}


def method_page(
    board: Board, *, pacing: Pacing, linked: bool, studied: bool = False, visit: Visit = Visit()
) -> str:
    """Page on how the arena works.

    Parameters
    ----------
    linked : bool
        Whether battles can be read once they were voted on.
    studied : bool
        Whether there is a study of a judge against the votes.
    """
    return _filled(
        "method.html",
        visit,
        board=board,
        pacing=pacing,
        linked=linked,
        studied=studied,
        Pacing=Pacing,
    )


def missing_page(advice: str, visit: Visit = Visit()) -> str:
    """Page for an address at which there is nothing, with words on where to go on."""
    return _filled("missing.html", visit, advice=advice)


def with_site_head(file: str, address: str, visit: Visit) -> str:
    """Show a report, which is English and leads nowhere by itself, below the head of all pages."""
    base = environment(visit.language).get_template("base.html")
    context = base.new_context({"here": address, "visit": visit})
    head = "".join(base.blocks["site_head"](context))
    return file.replace(pages.SITE_HEAD, f'<div lang="{visit.language}">{head}</div>', 1)


@dataclass(frozen=True, slots=True)
class Even:
    """The board beside one on which every voter has the same weight.

    Attributes
    ----------
    moved : sequence of BoardRow
        Models of another place there, or of a rating outside their interval.
    furthest : BoardRow
        The model whose rating moves most.
    """

    moved: Sequence[BoardRow]
    furthest: BoardRow


def even(board: Board) -> Even | None:
    """Compare the two; None where one person voted, or nothing is rated."""
    if not board.rows or board.voters < 2:
        return None
    moved = [
        row
        for row in board.rows
        if row.voter_rank != row.rank or not row.lower <= row.voter_rating <= row.upper
    ]
    furthest = max(board.rows, key=lambda row: abs(row.voter_rating - row.rating))
    return Even(moved, furthest)
