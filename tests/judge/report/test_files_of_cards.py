"""The page of cards: it loads nothing, hostile names stay text, grey is said in words."""

import re
from dataclasses import replace
from html.parser import HTMLParser

from judge.report.cards import CardView, Gauge, ProbePage, Row
from judge.report.page import cards_as_html
from judge.report.plots import Mark

HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(2)>{{ 7*7 }}'
GAUGE = Gauge(0.0, 1.0, "share", good=(0.5, 1.0), labels=((0.0, "0"), (1.0, "1")))


def page(title: str = "Cards", *, greyed: bool = True) -> ProbePage:
    low, middle = Mark("", 0.2, 0.1, 0.3), Mark("", 0.5)
    why, parts = ("Why so", "The rule"), ((title, "n", "0.1"),)
    rows = (
        Row("Recovers the true ranking", "failed", "fails", low, why, True, gauge=GAUGE),
        Row("Repeatable", "open", "not told", None, ("One run only", "The rule"), True),
        Row(title, "plain", "0.50", middle, (title,), False, parts, GAUGE),
    )
    card = CardView(title, title, greyed, "Fails: recovers the true ranking.", rows)
    return ProbePage(title, {title: title}, (card, card), (title,), "Made by arena 1.2.3.")


def written(given: ProbePage) -> str:
    return cards_as_html([given])


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.rows: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.rows.append((tag, dict(attrs)))


def test_the_page_loads_nothing_and_runs_nothing() -> None:
    text = written(page())
    tags = Tags()
    tags.feed(text)
    assert not {"script", "link", "img", "iframe", "object"} & {tag for tag, _ in tags.rows}
    assert not [attrs for _, attrs in tags.rows if {"src", "style"} & attrs.keys()]
    links = [attrs["href"] for _, attrs in tags.rows if "href" in attrs]
    assert links == ["#cards", "#cards-2", "#cards-3", "#how-to-read-this"]
    assert links == [f"#{attrs['id']}" for tag, attrs in tags.rows if tag in ("h1", "h2")]
    assert "url(" not in text
    assert "default-src 'none'" in text


def test_hostile_names_stay_text() -> None:
    text = written(page(HOSTILE))
    assert "<script>" not in text
    assert "<img" not in text
    assert "7*7" in text
    assert ">49<" not in text
    assert text.count("&lt;script&gt;") >= 8


def test_a_card_that_fails_is_grey_with_its_reason_in_sight() -> None:
    text = written(page())
    assert text.count('class="card greyed"') == 2
    assert 'class="reason">Why so</p>' in text
    assert 'class="reason">One run only</p>' in text
    assert "Made by arena 1.2.3.</p>" in text
    assert 'class="card greyed"' not in written(page(greyed=False))


def test_pictures_have_a_dot_a_band_and_an_interval_where_there_is_one() -> None:
    cards = page().cards[:1]
    text = written(replace(page(), cards=cards))
    assert (text.count('class="dot"'), text.count('class="good"')) == (2, 2)
    assert text.count('class="interval"') == 1
    assert 'aria-label="Recovers the true ranking: fails"' in text
    assert re.search(r'class="dot" cx="43.6"', text)


def test_light_and_dark_are_of_the_same_names() -> None:
    text = written(page())
    roots = re.findall(r":root \{(.*?)\}", text, re.DOTALL)
    light, dark, _ = (names_of(root) for root in roots if "--judge" in root)
    assert light == dark
    known = set.union(*map(names_of, roots)) | {"--behind", "--shade", "--tone"}
    used = set(re.findall(r"var\((--[\w-]+)[,)]", text))
    assert {name for name in used if not name.startswith("--code")} <= known


def names_of(root: str) -> set[str]:
    return set(re.findall(r"--[\w-]+(?=:)", root))


def test_several_probes_stand_below_each_other_with_their_own_cards() -> None:
    text = cards_as_html([page("First"), page("Second")])
    assert re.findall(r"<h1[^>]*>(\w+)</h1>", text) == ["First", "Second"]
    assert "<title>Cards</title>" in text
    assert text.count('class="card greyed"') == 4
