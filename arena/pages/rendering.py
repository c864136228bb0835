"""Pages as HTML, from plain values, and what all of them share: all that touches Jinja."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self
from urllib.parse import urlencode

from markupsafe import Markup, escape

from arena.catalogue import Words, words_in
from arena.domain.battle import BattleState, Mode, Pacing
from arena.domain.board_view import (
    Board,
    PastBattle,
    ReleasedTopics,
    ShownBattle,
    ShownVotes,
)
from arena.domain.ending import CUTS
from arena.domain.label_view import MixView
from arena.domain.people import Erased, Invitation, Perishable, Retention, Role
from arena.domain.value_view import Valued
from arena.domain.vote import DEFAULT, SIMULATED, Choice, as_sentence
from arena.domain.words import Language
from arena.errors import CHOICE_WORDS
from arena.pages import filters
from arena.pages.geometry import bar, shared_axis
from arena.pages.value import scatter
from arena.pages.visit import ANYBODY, Visit
from judge.labels.released import ShownTopic
from judge.labels.topics import PRIVATE, SEEDS, STABLE
from judge.render import pages
from rating.pooling.mix import FEW
from rating.sentences import Sentence, foremost
from rating.tables.escaping import shown
from rating.value.board import NEAR, SURE
from rating.value.figures import MEASURES

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

INVITED_AS = {
    Role.VOTER: Sentence("You can ask questions, and vote, as somebody whom this arena knows."),
    Role.RESEARCHER: Sentence("You can vote, and read what researchers of this arena read."),
    Role.ADMIN: Sentence("You can run this arena: models, people and data."),
}
"""What somebody may do who opens a link."""

NO_SUCH_PAGE = Sentence("There is no such page")


@cache
def environment(language: Language) -> pages.Environment:
    """Templates of the pages, in a language; see `judge.render.pages.environment`."""
    env = pages.environment(TEMPLATES, language)
    words = words_in(language)
    forms = filters.Filters(words)
    names = ("number", "points", "money", "seconds", "day", "moment", "ago", "about", "signed")
    more = ("price", "difference", "label", "short")
    env.filters.update({name: getattr(forms, name) for name in (*names, *more)})
    env.filters.update(
        percent=filters.percent,
        one_line=_one_line,
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
    visit: Visit = ANYBODY,
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
    return filled(
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


def value_page(valued: Valued | None, *, now: datetime, visit: Visit = ANYBODY) -> str:
    """Page of quality against what it takes; ``valued`` is None before it is worked out."""
    board = valued.value if valued else None
    return filled(
        "value.html",
        visit,
        valued=valued,
        board=board,
        pictures={name: board and scatter(board, name) for name in MEASURES},
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
    own_data: bool = False,
    visit: Visit = ANYBODY,
) -> str:
    """Page of one's own battles, newest first; ``past`` is None when nobody is known.

    ``linked`` if battles can be read once they were voted on, ``own_data`` if one may hide, erase
    and download them.
    """
    newest_first = past and sorted(past, key=lambda battle: battle.created, reverse=True)
    choices = Counter(battle.choice for battle in past or () if battle.choice)
    return filled(
        "my_battles.html",
        visit,
        past=newest_first,
        can_sign_in=can_sign_in,
        own_data=own_data,
        votes=choices.total() - choices[Choice.SKIP],
        skips=choices[Choice.SKIP],
        linked=linked,
        without_vote=WITHOUT_VOTE,
        cuts=CUTS,
        choice_words=_choice_words(visit.language),
        BattleState=BattleState,
        Choice=Choice,
        Mode=Mode,
        now=now,
    )


def erase_page(extent: Erased, visit: Visit = ANYBODY, *, erased: bool) -> str:
    """Page before one's words are erased, with what would go; or after it, with what went."""
    return filled("erase.html", visit, extent=extent, erased=erased)


def sign_in_page(
    provider: str | None, to: str, problem: Sentence | None, visit: Visit = ANYBODY
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
    return filled("sign_in.html", visit, provider=provider, to=to, problem=problem)


def join_page(invitation: Invitation, token: str, visit: Visit = ANYBODY) -> str:
    """Page of a link that lets somebody in, once they say so."""
    return filled("join.html", visit, invitation=invitation, token=token, roles=INVITED_AS)


def device_page(link: str, holds: timedelta, visit: Visit = ANYBODY) -> str:
    """Page that shows the link for a further device, and how long it lets in."""
    minutes = int(holds.total_seconds() // 60)
    return filled("device.html", visit, link=link, minutes=minutes)


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
    return filled(
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


def battle_page(shown: ShownBattle, *, now: datetime, visit: Visit = ANYBODY) -> str:
    """Page of one battle that was voted on."""
    return filled(
        "battle.html",
        visit,
        shown=shown,
        vote=shown.vote,
        simulated=shown.policy == SIMULATED.name,
        cuts=CUTS,
        choice_words=_choice_words(visit.language),
        Choice=Choice,
        now=now,
    )


def filled(template: str, visit: Visit, **values: object) -> str:
    """Write a page, or a part of one, by its template."""
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
    retention : mapping of Perishable to Retention
        For how long what is kept; what is missing is kept for ever.
    own_data : bool
        Whether people may hide, erase and download what is theirs.
    """
    return filled(
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
