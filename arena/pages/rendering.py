"""Each page as HTML, from plain values: all that touches Jinja."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self
from urllib.parse import urlencode

from markupsafe import Markup, escape

from arena.boards.labelled import AND, FEWEST_OF_BOTH, KAPPA
from arena.boards.value import Valued
from arena.catalogue import Words, words_in
from arena.domain.battle import BattleState, Mode, Pacing
from arena.domain.board_view import (
    Board,
    BoardRow,
    PastBattle,
    ReleasedTopics,
    ShownBattle,
    ShownVotes,
    Waiting,
)
from arena.domain.label_view import LabelBoard, Labels, MixView
from arena.domain.people import Erased, Invitation, Perishable, Person, Retention, Role
from arena.domain.vote import BEFORE_EXCLUSIONS, DEFAULT, SIMULATED, Choice, as_sentence
from arena.domain.words import Language
from arena.errors import CHOICE_WORDS
from arena.pages import filters
from arena.pages.geometry import FEWEST_COLOURED, bar, heatmap, panels, per_pair, shared_axis
from arena.pages.value import scatter, sliders, tornado
from judge.labels.released import ShownTopic
from judge.labels.topics import PRIVATE, SEEDS, STABLE
from judge.render import pages
from rating.errors import NotIdentifiedError
from rating.pooling.mix import FEW, RankReach
from rating.sentences import Sentence
from rating.tables.escaping import shown
from rating.value.board import NEAR, SURE
from rating.value.figures import MEASURES
from rating.value.utility import Weights

TEMPLATES = Path(__file__).parent / "templates"
ARENA_NAME = "Arena"
"""What the pages call this arena."""

LONGEST_QUERY = 100
"""Characters of a search; no name is longer."""

MOST_SPACIOUS = 20
"""Models that the standings show in rows of the usual height; of more, rows are compact."""

MOST_PROMPTS = 1000
MOST_CHARACTERS = 200_000
"""Of one's own prompts, that a mix is counted from."""

MOST_CHIPS = 3
"""Kinds of prompts above a board; the others are one click away."""

ON_REQUEST = (("hard", "yes"), ("instructions", "yes"), ("refusal", "none"))
"""Labels without a count: their boards are made when somebody asks."""

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

INVITED_AS = {
    Role.VOTER: Sentence("You can ask questions, and vote, as somebody whom this arena knows."),
    Role.RESEARCHER: Sentence("You can vote, and read what researchers of this arena read."),
    Role.ADMIN: Sentence("You can run this arena: models, people and data."),
}
"""What somebody may do who opens a link."""


@dataclass(frozen=True, slots=True)
class Visit:
    """What a page takes from who asks for it.

    Attributes
    ----------
    origin : str
        Stands before the address of the picture for previews of links.
    votes : int
        Votes that the visitor has cast so far.
    person : Person or None
        Who asks, if the arena knows them.
    """

    language: Language = Language.EN
    origin: str = ""
    votes: int = 0
    person: Person | None = None


@cache
def environment(language: Language) -> pages.Environment:
    """Templates of the pages, in a language; see `judge.render.pages.environment`."""
    env = pages.environment(TEMPLATES, language)
    words = words_in(language)
    forms = filters.Filters(words)
    names = ("number", "points", "money", "seconds", "day", "moment", "ago", "about", "signed")
    more = ("difference", "label", "short", "worth")
    env.filters.update({name: getattr(forms, name) for name in (*names, *more)})
    env.filters.update(
        percent=filters.percent, one_line=_one_line, translated=partial(_translated, words)
    )
    env.filters["ground"] = lambda reason: _translated(words, as_sentence(reason))
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
        facets=filters.FACETS,
        default=DEFAULT.name,
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
    labels: Labels | None = None,
    reach: Mapping[str, RankReach] = MappingProxyType({}),
    visit: Visit = Visit(),
    whole: Board | None = None,
) -> str:
    """Page of the leaderboard; ``linked`` if its numbers open the battles behind them.

    Without a selection it shows every model by rating; ``labels`` lead to boards by label, and
    ``reach`` says by a model's id which ranks it has in other mixes of categories. ``whole`` is
    the board with the votes that exclusions leave out, shown beside it.
    """
    return _filled(
        "leaderboard.html",
        visit,
        board=board,
        below=BELOW.read(
            Below(board, labels, whole, linked, reach),
            selection or Selection(),
            now,
            visit.language,
        ),
        linked=linked,
        simulated=board.policy == SIMULATED.name,
        before_exclusions=board.policy == BEFORE_EXCLUSIONS.name,
        now=now,
    )


@dataclass(frozen=True, slots=True)
class Below:
    """What a leaderboard shows below its summary: of the board, and not of who asks."""

    board: Board
    labels: Labels | None
    whole: Board | None
    linked: bool
    reach: Mapping[str, RankReach] = field(default_factory=dict)

    def key(self) -> tuple[object, ...]:
        """Tell it from every other that is still there, without looking at all that is in it."""
        boards = (board for board in (self.board, self.whole) if board is not None)
        parts = [
            id(getattr(board, part.name))
            for board in boards
            for part in fields(board)
            if part.name not in ("record", "warnings")
        ]
        labels = tuple((name, *counts) for name, counts in (self.labels or {}).items())
        reach = tuple(self.reach.values())
        return (*parts, labels, reach, self.whole is None, self.linked)


class _Texts:
    """Keeps what the last leaderboards show below their summaries, which takes long to write."""

    def __init__(self) -> None:
        self._written: dict[tuple[object, ...], tuple[Below, Markup]] = {}

    def read(
        self, below: Below, selection: Selection, now: datetime, language: Language
    ) -> Markup:
        """Give it as it was written, or write it."""
        key = (*below.key(), selection, now.year, language)
        known = self._written.get(key)
        if known is not None:
            return known[1]
        written = _below_summary(below, selection, now, language)
        # The boards stay with it: no other part can have the identity of one that is there.
        # Other threads may write meanwhile; what the last of them leaves is as good.
        self._written = dict([*self._written.items()][-MOST_WRITTEN:]) | {key: (below, written)}
        return written


BELOW = _Texts()


def prepare(below: Below, now: datetime) -> None:
    """Write what takes long of a leaderboard's page, before anybody asks for it."""
    for language in Language:
        BELOW.read(below, Selection(), now, language)


def _below_summary(
    below: Below, selection: Selection, now: datetime, language: Language
) -> Markup:
    board, whole = below.board, below.whole
    heat = heatmap(board)
    others = {row.model: row for row in whole.rows} if whole else {}
    page = _filled(
        "below_summary.html",
        Visit(language),
        board=board,
        rows=selection.rows(board),
        waiting=selection.waiting(board),
        selection=selection,
        default=DEFAULT.name,
        policy=board.policy,
        reach=below.reach,
        kappa=KAPPA,
        **_chips(below.labels),
        axis=shared_axis(board.rows, board.anchor_mean) if board.rows else None,
        heat=heat,
        names={model: escape(shown(name)) for model, name in heat.names.items()},
        per_pair=per_pair(board),
        over_time=panels(board),
        even=even(board),
        whole=whole if board.rows else None,
        beside=[(row, others.get(row.model)) for row in board.rows],
        simulated=board.policy == SIMULATED.name,
        linked=below.linked,
        fewest_coloured=FEWEST_COLOURED,
        most_spacious=MOST_SPACIOUS,
        most_beside=MOST_BESIDE,
        longest_query=LONGEST_QUERY,
        now=now,
    )
    return Markup(page)  # noqa: S704 - a template made it


@dataclass(frozen=True, slots=True)
class AskedLabel:
    """The board by label that somebody asks for.

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
        "chosen_label": facet and value and dict(_singly(facet, value)),
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


def _singly(facet: str, value: str) -> Iterator[tuple[str, str]]:
    """Take labels of two together apart."""
    yield from zip(facet.split(AND), value.split(AND), strict=False)


def label_page(
    asked: AskedLabel,
    board: LabelBoard | None,
    *,
    labels: Labels | None,
    reason: str | None = None,
    now: datetime,
    visit: Visit = Visit(),
) -> str:
    """Page of the board of one label.

    Parameters
    ----------
    board : LabelBoard or None
        None while there is none: for the reason that is given, or as it is being made.
    """
    return _filled(
        "label.html",
        visit,
        kappa=KAPPA,
        fewest=FEWEST_OF_BOTH,
        board=board,
        reason=reason,
        waits=board is None and reason is None,
        policy=asked.policy,
        **_chips(labels, asked.facet, asked.value),
        also=asked.also,
        axis=shared_axis(board.rows, board.anchor_mean) if board else None,
        simulated=asked.policy == SIMULATED.name,
        most_spacious=MOST_SPACIOUS,
        now=now,
    )


@dataclass(frozen=True, slots=True)
class AskedPair:
    """Two models, by their ids, that somebody wants to compare; empty or unknown for the best."""

    a: str
    b: str

    def among(self, order: Sequence[str]) -> Self:
        """Put the best models in the place of those that are not on the board."""
        if self.a in order and self.b in order and self.a != self.b:
            return self
        a = self.a if self.a in order else order[0]
        return type(self)(a, next(model for model in order if model != a))


def mix_page(
    view: MixView | None,
    policy: str,
    pair: AskedPair,
    *,
    reason: str = "",
    now: datetime,
    visit: Visit = Visit(),
) -> str:
    """Page of one's own mix.

    Parameters
    ----------
    view : MixView or None
        None while there is none: for the reason that is given, or as it is being made.
    """
    of_view: dict[str, Any] = {}
    if view:
        board, pair = view.board, pair.among(list(view.names))
        of_view = {
            "hint": board.n_effective < FEW,
            "axis": shared_axis(board.report.ratings, board.report.options.mean),
            "preference": view.preference(pair.a, pair.b),
            "kappas": sorted({one.kappa for one in board.envelope}),
            "json_address": _mix_json(view),
        }
    return _filled(
        "mix.html",
        visit,
        view=view,
        policy=policy,
        pair=pair,
        reason=reason,
        waits=view is None and not reason,
        few=round(FEW),
        simulated=policy == SIMULATED.name,
        most_spacious=MOST_SPACIOUS,
        most_prompts=MOST_PROMPTS,
        most_characters=MOST_CHARACTERS,
        now=now,
        **of_view,
    )


def _mix_json(view: MixView) -> str:
    """Give where the board of a mix is JSON."""
    mix = view.board.mix
    asked = {name: f"{share:.6g}" for name, share in mix.shares.items()}
    asked |= {"prompts": str(mix.prompts)} if mix.prompts else {}
    asked |= {"policy": view.policy} if view.policy != DEFAULT.name else {}
    return "/mix.json?" + urlencode(asked)


def value_page(
    valued: Valued | None, *, weights: Weights, now: datetime, visit: Visit = Visit()
) -> str:
    """Page of quality against what it takes; ``valued`` is None before it is worked out."""
    board, terms = (valued.value, valued.terms) if valued else (None, None)
    utility, unweighed = None, None
    if terms is not None:
        try:
            utility = terms.weighed(weights)
        except NotIdentifiedError as error:
            unweighed = error.args[0]
    return _filled(
        "value.html",
        visit,
        valued=valued,
        board=board,
        pictures={name: board and scatter(board, name) for name in MEASURES},
        names=valued.names if valued else {},
        safety=valued and valued.safety,
        rated=valued.rated if valued else (),
        sliders=sliders(weights, terms.less) if terms else (),
        utility=utility,
        unweighed=unweighed,
        tornado=utility and tornado(utility),
        sure=SURE,
        near=NEAR,
        now=now,
    )


def my_battles_page(
    past: Sequence[PastBattle] | None,
    *,
    linked: bool,
    now: datetime,
    can_sign_in: bool = False,
    own_data: bool = False,
    visit: Visit = Visit(),
) -> str:
    """Page of one's own battles, newest first; ``past`` is None when nobody is known.

    ``linked`` if battles can be read once they were voted on, ``own_data`` if one may hide, erase
    and download them.
    """
    newest_first = past and sorted(past, key=lambda battle: battle.created, reverse=True)
    choices = Counter(battle.choice for battle in past or () if battle.choice)
    return _filled(
        "my_battles.html",
        visit,
        past=newest_first,
        can_sign_in=can_sign_in,
        own_data=own_data,
        votes=choices.total() - choices[Choice.SKIP],
        skips=choices[Choice.SKIP],
        linked=linked,
        without_vote=WITHOUT_VOTE,
        choice_words=_choice_words(visit.language),
        Choice=Choice,
        Mode=Mode,
        now=now,
    )


def erase_page(extent: Erased, visit: Visit = Visit(), *, erased: bool) -> str:
    """Page before one's words are erased, with what would go; or after it, with what went."""
    return _filled("erase.html", visit, extent=extent, erased=erased)


def sign_in_page(
    provider: str | None, to: str, problem: Sentence | None, visit: Visit = Visit()
) -> str:
    """Page of the ways in.

    Parameters
    ----------
    provider : str or None
        What people know the provider as at which they sign in; None if there is none.
    to : str
        Where they were heading.
    problem : Sentence or None
        Why somebody who tried is not inside.
    """
    return _filled("sign_in.html", visit, provider=provider, to=to, problem=problem)


def join_page(invitation: Invitation, token: str, visit: Visit = Visit()) -> str:
    """Page of a link that lets somebody in, once they say so."""
    return _filled("join.html", visit, invitation=invitation, token=token, roles=INVITED_AS)


def device_page(link: str, holds: timedelta, visit: Visit = Visit()) -> str:
    """Page that shows the link for a further device, and how long it lets in."""
    minutes = int(holds.total_seconds() // 60)
    return _filled("device.html", visit, link=link, minutes=minutes)


def battles_page(
    shown: ShownVotes,
    *,
    newest: bool,
    now: datetime,
    visit: Visit = Visit(),
    reports: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Page of the votes behind a number.

    Parameters
    ----------
    newest : bool
        Whether it begins with the newest.
    reports : mapping of str to str
        Addresses of contamination reports, by model id.
    """
    return _filled(
        "battles.html",
        visit,
        shown=shown,
        reports=reports,
        newest=newest,
        simulated=shown.policy == SIMULATED.name,
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
    board: Board,
    *,
    pacing: Pacing,
    linked: bool,
    studied: bool = False,
    has_topics: bool = False,
    retention: Mapping[Perishable, Retention] = MappingProxyType({}),
    own_data: bool = False,
    visit: Visit = Visit(),
) -> str:
    """Page on how the arena works.

    Parameters
    ----------
    linked : bool
        Whether battles can be read once they were voted on.
    studied : bool
        Whether there is a study of a judge against the votes.
    has_topics : bool
        Whether a release of topics is there.
    retention : mapping of Perishable to Retention
        For how long what is kept; what is missing is kept for ever.
    own_data : bool
        Whether people may hide, erase and download what is theirs.
    """
    return _filled(
        "method.html",
        visit,
        board=board,
        pacing=pacing,
        linked=linked,
        studied=studied,
        has_topics=has_topics,
        words_retention=retention.get(Perishable.WORDS),
        unvoted_retention=retention.get(Perishable.UNVOTED),
        own_data=own_data,
        Pacing=Pacing,
    )


def topics_page(released: ReleasedTopics, *, now: datetime, visit: Visit = Visit()) -> str:
    """Page of what people ask about."""
    rows = list(_rows_of(released.release.topics, 0))
    largest = max((topic.prompts for _, topic in rows), default=1)
    return _filled(
        "topics.html",
        visit,
        created=released.created,
        release=released.release,
        rows=rows,
        largest=largest,
        gates=PRIVATE,
        stable=STABLE,
        seeds=SEEDS,
        now=now,
    )


def _rows_of(topics: Sequence[ShownTopic], depth: int) -> Iterator[tuple[int, ShownTopic]]:
    """Give topics in the order in which they stand below one another, and how deep."""
    for topic in topics:
        yield depth, topic
        yield from _rows_of(topic.within, depth + 1)


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
