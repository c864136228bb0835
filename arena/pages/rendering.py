"""Pages as HTML, from plain values; what all pages share, and the formats of numbers and dates.

`filled` writes a page by its template: the functions at the end are pages. `Filters` writes
numbers, money and times as people read them, with spaces before units that do not break. `Visit`
is what a page takes from who asks for it. No other module of the arena touches Jinja.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from math import isfinite
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup, escape
from starlette.requests import Request

from arena.catalogue import Language, Words, words_in
from arena.domain.battle import BattleState, Mode, Pacing
from arena.domain.board_view import (
    Board,
    MixView,
    PastBattle,
    ReleasedTopics,
    ShownBattle,
    ShownVotes,
    Valued,
)
from arena.domain.people import Perishable, Person, Role
from arena.domain.vote import CUTS, DEFAULT, SIMULATED, Choice, as_sentence
from arena.errors import CHOICE_WORDS
from arena.pages.value import frontier, scatter
from arena.store import battles, studies
from arena.store.store import Store
from judge.labels.material import ShownTopic
from judge.labels.topics import PRIVATE, SEEDS, STABLE
from judge.render import pages
from rating.charts.drawing import Scale
from rating.mix import FEW
from rating.sentences import Sentence, counted, foremost
from rating.tables.files import shown
from rating.value import MEASURES, NEAR, SURE

# Numbers, dates and labels

NOT_KNOWN = "–"
SPACE = "\N{NO-BREAK SPACE}"
MINUS = "\N{MINUS SIGN}"
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


LABELS = {
    "code": Sentence("Code"),
    "maths": Sentence("Maths"),
    "creative": Sentence("Creative writing"),
    "translation": Sentence("Translation"),
    "extraction": Sentence("Extraction"),
    "roleplay": Sentence("Role play"),
    "other": Sentence("Everything else"),
    "asking": Sentence("Asking"),
    "quizzing": Sentence("Quizzing"),
    "playing": Sentence("Playing"),
    "unknown": Sentence("Language not recognised"),
    "rare": Sentence("Rarer languages"),
}
"""What people read for the value of a label; a language is called by its name."""
OF_FACET = {
    ("hard", "yes"): Sentence("Hard"),
    ("hard", "no"): Sentence("Not hard"),
    ("instructions", "yes"): Sentence("With instructions"),
    ("instructions", "no"): Sentence("Without instructions"),
    ("refusal", "none"): Sentence("No refusals"),
    ("refusal", "a"): Sentence("Only A declines"),
    ("refusal", "b"): Sentence("Only B declines"),
    ("refusal", "both"): Sentence("Both decline"),
}
"""The same for values that say nothing without their label."""
FACETS = {
    "category": Sentence("Category"),
    "language": Sentence("Language"),
    "intent": Sentence("Intent"),
    "hard": Sentence("Difficulty"),
    "instructions": Sentence("Instructions"),
    "refusal": Sentence("Refusals"),
}

STYLES = {
    "length": Sentence("twice as many characters"),
    "headers": Sentence("twice as many headings"),
    "lists": Sentence("twice as many list items"),
    "bold": Sentence("twice as many passages in bold"),
    "code": Sentence("twice as many blocks of code"),
}
"""What one answer has more of than the other, by the styles that a board is adjusted for."""


def rank_range(low: int | None, high: int | None) -> str:
    """Ranks that the votes allow: ``2–4``, or one number.

    Examples
    --------
    >>> rank_range(2, 4), rank_range(1, 1), rank_range(None, None)
    ('2–4', '1', '–')
    """
    if low is None or high is None:
        return NOT_KNOWN
    return str(low) if low == high else f"{low}–{high}"


def _percent_range(low: float, high: float) -> str:
    """Interval of a share, in whole percent.

    Examples
    --------
    >>> _percent_range(0.668, 0.752), _percent_range(0.401, 0.404)
    ('67–75', '40')
    """
    ends = (f"{100 * low:.0f}", f"{100 * high:.0f}")
    return ends[0] if ends[0] == ends[1] else "–".join(ends)


class Filters:
    """Those that depend on the language.

    Examples
    --------
    >>> from arena.catalogue import words_in
    >>> from arena.catalogue import Language
    >>> english, german = (Filters(words_in(language)) for language in Language)
    >>> english.number(2184), german.number(2184), german.number(0.667, 2)
    ('2,184', '2.184', '0,67')
    >>> [english.percent(x) for x in (0.714, 0.0, 0.001, 0.999, 1.0)]
    ['71%', '0%', '<1%', '>99%', '100%']
    >>> [german.percent(x).replace(SPACE, " ") for x in (0.714, 0.001)]
    ['71 %', '<1 %']
    >>> english.points(1183.6), german.points(1183.6), english.points(-12.2)
    ('1,184', '1.184', '−12')
    >>> english.short(0.0173), german.short(0.5), english.short(20.0)
    ('0.0173', '0,5', '20')
    >>> english.about(7), english.about(287), german.about(12_345)
    ('7', '290', '12.000')
    >>> english.price(41.37), english.price(0.4137), english.price(None)
    ('$41.00', '$0.41', '–')
    >>> [english.signed(x) for x in (8.6, -12.2, 0.2, float("inf"), -float("inf"))]
    ['+9', '−12', '0', '+∞', '−∞']
    >>> english.half_width(1000, 988.2, 1012.1).replace(SPACE, " ")
    '± 12'
    >>> english.half_width(1000, 989, 1014).replace(SPACE, " ")
    '+14 −11'
    >>> [english.money(x) for x in (0.41, 3.1, 0.001, 0.0, 128.4, None)]
    ['$0.41', '$3.10', '<$0.01', '$0.00', '$128', '–']
    >>> [german.money(x).replace(SPACE, " ") for x in (0.41, 0.001, 1284.0)]
    ['0,41 $', '<0,01 $', '1.284 $']
    >>> [english.seconds(x).replace(SPACE, " ") for x in (0.91, 9.96, 11.2, 0.01)]
    ['0.9 s', '10 s', '11 s', '<0.1 s']
    >>> english.label("creative"), english.label("fr"), german.label("fr"), english.label("zz")
    ('Creative writing', 'French', 'Französisch', 'Zz')
    >>> english.label("code&yes", "category&hard"), english.label("no", "hard")
    ('Code, Hard', 'Not hard')
    >>> then, now = datetime(2026, 5, 3, tzinfo=UTC), datetime(2026, 6, 14, 14, 20, tzinfo=UTC)
    >>> english.day(then, now), german.day(then, now), english.moment(now)
    ('3 May', '3. Mai', '14 June 2026, 14:20 UTC')
    >>> english.ago(now, now + 2 * MINUTE), german.ago(now, now + 25 * HOUR)
    ('2 minutes ago', 'vor 1 Tag')
    """

    def __init__(self, words: Words) -> None:
        self._words = words

    def label(self, value: str, facet: str = "") -> str:
        """Name the value of a label; of a facet of two, both."""
        parts, values = facet.split("&"), value.split("&")
        if len(parts) == len(values) > 1:
            named = (self.label(one, part) for part, one in zip(parts, values, strict=True))
            return ", ".join(named)
        sentence = OF_FACET.get((facet, value)) or LABELS.get(value)
        return self._words(sentence) if sentence else self._words.language_name(value)

    def number(self, value: float, digits: int = 0) -> str:
        """Write a number, with this many digits after the point."""
        return self._words.number(f"{value:,.{digits}f}").replace("-", MINUS)

    def percent(self, share: float | None) -> str:
        """Whole percent; what is not quite nothing or everything is not rounded to it."""
        if share is None:
            return NOT_KNOWN
        if 0 < share <= 0.005:
            return self._words.share("<1%")
        if 0.995 <= share < 1:
            return self._words.share(">99%")
        return self._words.share(f"{100 * share:.0f}%")

    def points(self, value: float) -> str:
        """Points without decimals, which no board can support."""
        if not isfinite(value):
            return "∞" if value > 0 else f"{MINUS}∞"
        return self._words.number(f"{round(value):,}").replace("-", MINUS)

    def short(self, value: float) -> str:
        """Write a weight, or a mark of an axis, without digits that it does not have."""
        return self._words.number(f"{value:,.3g}").replace("-", MINUS)

    def about(self, n: int) -> str:
        """Count in two digits, as far as an extrapolation can be trusted."""
        return self.number(round(float(f"{n:.2g}")))

    def signed(self, value: float) -> str:
        """Points gained or lost."""
        written = self.points(value)
        return f"+{written}" if value > 0 and written != "0" else written

    def half_width(self, rating: float, lower: float, upper: float) -> str:
        """Interval around a rating: one number where both sides round to the same."""
        above, below = self.points(upper - rating), self.points(rating - lower)
        return f"±{SPACE}{above}" if above == below else f"+{above}{SPACE}{MINUS}{below}"

    def difference(self, value: float) -> str:
        """Write a small difference, in thousandths.

        >>> from arena.catalogue import words_in
        >>> from arena.catalogue import Language
        >>> Filters(words_in(Language.EN)).difference(-0.0029)
        '−0.003'
        """
        written = self.number(abs(value), 3)
        sign = "" if round(value, 3) == 0 else "+" if value > 0 else MINUS
        return f"{sign}{written}"

    def money(self, dollars: float | None) -> str:
        """US dollars, in cents below 100."""
        if dollars is None:
            return NOT_KNOWN
        if 0 < dollars < 0.005:
            return f"<{self._dollars(0.01, 2)}"
        return self._dollars(dollars, 2 if dollars < 99.995 else 0)

    def price(self, dollars: float | None) -> str:
        """US dollars of two digits, where more would tell of single answers."""
        return self.money(None if dollars is None else float(f"{dollars:.2g}"))

    def _dollars(self, amount: float, digits: int) -> str:
        return self._words(Sentence("$%(amount)s", amount=self.number(amount, digits)))

    def seconds(self, value: float | None) -> str:
        """Seconds, in tenths below ten."""
        if value is None:
            return NOT_KNOWN
        if value < 0.05:
            return f"<{self.number(0.1, 1)}{SPACE}s"
        return f"{self.number(value, 1 if value < 9.95 else 0)}{SPACE}s"

    def day(self, when: datetime, now: datetime) -> str:
        """Date in UTC, with the year unless it is this one."""
        then = when.astimezone(UTC)
        return self._words.day(then, year=then.year != now.astimezone(UTC).year)

    def moment(self, when: datetime) -> str:
        """Date and time in UTC."""
        then = when.astimezone(UTC)
        return f"{self._words.day(then, year=True)}, {then:%H:%M} UTC"

    def ago(self, when: datetime, now: datetime) -> str:
        """Time since a moment, down to the minute; a date after a fortnight."""
        elapsed = now - when
        if elapsed < MINUTE:
            words = Sentence("just now")
        elif elapsed < HOUR:
            words = counted("%(n)s minute ago", "%(n)s minutes ago", elapsed // MINUTE)
        elif elapsed < DAY:
            words = counted("%(n)s hour ago", "%(n)s hours ago", elapsed // HOUR)
        elif elapsed < 14 * DAY:
            words = counted("%(n)s day ago", "%(n)s days ago", elapsed // DAY)
        else:
            words = Sentence("on %(day)s", day=self.day(when, now))
        return self._words(words)


# Visits

READ = ["GET", "HEAD"]
PLACE = re.compile("[0-9]{1,18}")


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
    studies : bool
        Whether there is a study, which the head then leads to.
    sent : bool
        Whether the page is shown once, as the result of a form: the head leaves it to no reload.
    """

    language: Language = Language.EN
    origin: str = ""
    votes: int = 0
    person: Person | None = None
    studies: bool = False
    sent: bool = False

    @property
    def runs_it(self) -> bool:
        """Whether who asks runs the arena."""
        return self.person is not None and self.person.role is Role.ADMIN


ANYBODY = Visit()
"""Who asks for a page, where nothing is known of them."""


def origin_of(request: Request) -> str:
    """Give scheme, host and port by which a visitor reaches the arena."""
    return str(request.base_url).rstrip("/")


def visit_to(request: Request, store: Store | None = None) -> Visit:
    """Describe what a page takes from who asks for it; of a store it reads, and so blocks."""
    votes, any_study = 0, False
    if store is not None:
        voter = request.state.voter
        with store.reading() as session:
            votes = battles.votes_of(session, voter.id) if voter else 0
            any_study = studies.is_any(session)
    return Visit(
        getattr(request.state, "language", Language.EN),
        origin_of(request),
        votes,
        getattr(request.state, "person", None),
        any_study,
        request.method == "POST",
    )


# Pages

HEADING = re.compile(r'<h2 id="(.+?)">(.+?)</h2>')
TEMPLATES = Path(__file__).parent / "templates"
ARENA_NAME = "Arena"
"""What the pages call this arena."""

MOST_SPACIOUS = 20
"""Models that the standings show in rows of the usual height; of more, rows are compact."""

MOST_PROMPTS = 1000
MOST_CHARACTERS = 200_000
"""Of one's own prompts, that a mix is counted from."""

WITHOUT_VOTE = {
    BattleState.CREATED: Sentence("Being answered"),
    BattleState.STREAMING: Sentence("Being answered"),
    BattleState.READY: Sentence("Not voted yet"),
    BattleState.FAILED: Sentence("A model did not answer"),
    BattleState.STOPPED: Sentence("Stopped before both had begun to answer"),
    BattleState.INTERRUPTED: Sentence("Broken off by a restart of the arena"),
    BattleState.EXPIRED: Sentence("Closed without a vote"),
}
"""How a battle stands that has no vote."""

NO_SUCH_PAGE = Sentence("There is no such page")


@cache
def environment(language: Language) -> pages.Environment:
    """Templates of the pages, in a language; see `judge.render.pages.environment`."""
    env = pages.environment(TEMPLATES, language)
    words = words_in(language)
    forms = Filters(words)
    names = ("number", "points", "money", "seconds", "day", "moment", "ago", "about", "signed")
    more = ("price", "difference", "label", "short", "percent")
    env.filters.update({name: getattr(forms, name) for name in (*names, *more)})
    env.filters.update(
        one_line=_one_line,
        headings=lambda html: [(id, Markup(name)) for id, name in HEADING.findall(html)],  # noqa: S704 - of a template
        foremost=foremost,
        translated=partial(_translated, words),
    )
    env.filters["ground"] = lambda reason: _translated(words, as_sentence(reason))
    env.globals.update(
        gettext=words.gettext,
        ngettext=words.ngettext,
        words=words,
        languages={code: words_in(code).name for code in Language},
        half_width=forms.half_width,
        rank_range=rank_range,
        percent_range=_percent_range,
        arena_name=ARENA_NAME,
        facets=FACETS,
        default=DEFAULT.name,
        simulated=SIMULATED.name,
        most_spacious=MOST_SPACIOUS,
        choice_words={
            choice: words(one)[:1].upper() + words(one)[1:] for choice, one in CHOICE_WORDS.items()
        },
        cuts=CUTS,
        BattleState=BattleState,
        Choice=Choice,
        Mode=Mode,
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


def pair_among(order: Sequence[str], a: str, b: str) -> tuple[str, str]:
    """Give two models of a board to compare: the best in the place of those not on it.

    >>> pair_among(["x", "y"], "z", "?"), pair_among(["x", "y"], "y", "x")
    (('x', 'y'), ('y', 'x'))
    """
    if a in order and b in order and a != b:
        return a, b
    a = a if a in order else order[0]
    return a, next(model for model in order if model != a)


def mix_page(
    view: MixView | None,
    policy: str,
    pair: tuple[str, str],
    *,
    reason: str = "",
    now: datetime,
    visit: Visit = ANYBODY,
) -> str:
    """Page of one's own mix.

    Parameters
    ----------
    pair : tuple of (str, str)
        Ids of the two models to compare; empty or unknown for the best.
    view : MixView or None
        None while there is none: for the reason that is given, or as it is being made.
    """
    of_view: dict[str, Any] = {}
    if view:
        board, pair = view.board, pair_among(list(view.names), *pair)
        mix = board.mix
        asked = {name: f"{share:.6g}" for name, share in mix.shares.items()}
        asked |= {"prompts": str(mix.prompts)} if mix.prompts else {}
        asked |= {"policy": view.policy} if view.policy != DEFAULT.name else {}
        of_view = {
            "hint": board.n_effective < FEW,
            "axis": Scale.of_ratings(board.report.ratings, board.report.options.mean),
            "preference": view.preference(*pair),
            "kappas": sorted({one.kappa for one in board.envelope}),
            "json_address": "/mix.json?" + urlencode(asked),
        }
    return filled(
        "mix.html",
        visit,
        view=view,
        policy=policy,
        pair=pair,
        reason=reason,
        waits=view is None and not reason,
        few=round(FEW),
        most_prompts=MOST_PROMPTS,
        most_characters=MOST_CHARACTERS,
        now=now,
        **of_view,
    )


def value_page(valued: Valued | None, *, now: datetime, visit: Visit = ANYBODY) -> str:
    """Page of quality against what it takes; ``valued`` is None before it is worked out."""
    board = valued.value if valued else None
    return filled(
        "value.html",
        visit,
        valued=valued,
        board=board,
        pictures={name: board and scatter(board, name) for name in MEASURES},
        frontier=frontier,
        names=valued.names if valued else {},
        safety=valued and valued.safety,
        rated=valued.rated if valued else (),
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
    visit: Visit = ANYBODY,
) -> str:
    """Page of one's own battles, newest first; ``past`` is None when nobody is known.

    ``linked`` if battles can be read once they were voted on.
    """
    newest_first = past and sorted(past, key=lambda battle: battle.created, reverse=True)
    choices = Counter(battle.choice for battle in past or () if battle.choice)
    return filled(
        "my_battles.html",
        visit,
        past=newest_first,
        can_sign_in=can_sign_in,
        votes=choices.total() - choices[Choice.SKIP],
        skips=choices[Choice.SKIP],
        linked=linked,
        without_vote=WITHOUT_VOTE,
        now=now,
    )


def battles_page(
    shown: ShownVotes,
    *,
    newest: bool,
    now: datetime,
    visit: Visit = ANYBODY,
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
    return filled("battles.html", visit, shown=shown, reports=reports, newest=newest, now=now)


def battle_page(shown: ShownBattle, *, now: datetime, visit: Visit = ANYBODY) -> str:
    """Page of one battle that was voted on."""
    return filled("battle.html", visit, shown=shown, vote=shown.vote, now=now)


def filled(template: str, visit: Visit, **values: object) -> str:
    """Write a page, or a part of one, by its template."""
    return environment(visit.language).get_template(template).render(values, visit=visit)


def method_page(
    board: Board,
    *,
    pacing: Pacing,
    linked: bool,
    studied: bool = False,
    has_topics: bool = False,
    retention: Mapping[Perishable, Mapping[str, Any]] = MappingProxyType({}),
    visit: Visit = ANYBODY,
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
    retention : mapping of Perishable to mapping
        For how many ``days`` what is kept, None for ever; the ``battles`` that were kept long
        enough so far, and when the ``last`` of them went.
    """
    return filled(
        "method.html",
        visit,
        styles=STYLES,
        board=board,
        pacing=pacing,
        linked=linked,
        studied=studied,
        has_topics=has_topics,
        words_retention=retention.get(Perishable.WORDS),
        unvoted_retention=retention.get(Perishable.UNVOTED),
        Pacing=Pacing,
    )


def topics_page(released: ReleasedTopics, *, now: datetime, visit: Visit = ANYBODY) -> str:
    """Page of what people ask about."""
    rows = list(_rows_of(released.release.topics, 0))
    largest = max((topic.prompts for _, topic in rows), default=1)
    return filled(
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


def missing_page(advice: str, visit: Visit = ANYBODY, heading: Sentence = NO_SUCH_PAGE) -> str:
    """Page for an address at which there is nothing for who asks, with words on where to go on."""
    return filled("missing.html", visit, advice=advice, heading=heading)


def with_site_head(file: str, address: str, visit: Visit) -> str:
    """Show a report, which is English and leads nowhere by itself, below the head of all pages."""
    base = environment(visit.language).get_template("base.html")
    context = base.new_context({"here": address, "visit": visit})
    head = "".join(base.blocks["site_head"](context))
    return file.replace(pages.SITE_HEAD, f'<div lang="{visit.language}">{head}</div>', 1)
