"""Take the pictures of docs/pictures: every state, at three widths, in light and dark.

Run it with ``python -m tests.browser.pictures``; it needs Chromium.
"""

import json
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from arena.boards import integrity
from arena.domain.model import Standing
from arena.domain.people import Role
from arena.endpoints.local import VARIANTS
from arena.play.matchmaking import INTERRUPTED
from arena.store import log as topic_releases
from arena.store import roster as models
from arena.store import voting
from arena.store.people import TERMINAL
from arena.store.store import Store
from judge.labels.safety import PackItem, Read, rates
from tests.browser.conftest import FLAGS, PROGRAMS
from tests.browser.person import Person, person
from tests.browser.study_poses import OF_STUDIES, researched
from tests.browser.test_topics import release
from tests.faulty_server import Behaviour, Fault, FaultyServer, faulty_server
from tests.serving import Served, Visitor, invited, page_of

TARGET = Path(__file__).parents[2] / "docs" / "pictures"
WIDTHS = (1280, 820, 390)
IN_README = ("small", "leaderboard")
"""What the README shows: on a desktop in light, and on a phone in dark."""
ROCKS = ("Quartz 8B", "Basalt Large", "Feldspar Mini", "Mica 2", "Gneiss Instruct", "Slate 7B")
PEOPLE, VOTES = 24, 9
"""How many vote, and how often each."""
NEW_ROCK = "Umber 3"
"""On the roster after people have voted on the others; a judge rates it."""
PROMPT = "When should I use a heap instead of sorting?"
PROMPTS = (
    "When should I use a heap instead of sorting {n} numbers?",
    "Write a Python function that merges {n} sorted lists.",
    "Write a poem about a heap of {n} pebbles.",
    "Write a Python class for a queue of {n} jobs.",
    "Translate into German: the cat sat on {n} mats.",
)
"""Of the votes there are, of several kinds."""
TEXTS = (
    r"""## Short answer

Use a **heap** when you need the \(k\) largest of many numbers; sort when you need
all of them in order.

```python
import heapq

def top_k(numbers, k):
    # largest first
    return heapq.nlargest(k, numbers)
```

| method | time | memory | keeps order |
|---|---:|---:|---|
| `sorted` | 812 ms | 76 MB | yes |
| `heapq.nlargest` | 96 ms | 0.1 MB | no |

1. Start with the built-in `heapq.nlargest`.
2. Measure before you do anything cleverer.
""",
    r"""Both work. Think about **how many** you need and **where the data is**.

- *All of them, in order*: sort. Timsort is very good on data that is already nearly sorted.
- *Only a few*: keep a small heap and throw the rest away.
- *The data does not fit in memory*: a heap also works on a stream, a sort does not.

The expected number of replacements in the heap, for numbers in random order, is

$$\sum_{i=k+1}^{n} \frac{k}{i} \approx k \ln\frac{n}{k},$$

so nearly every number costs one comparison and nothing else.
""",
    r"""It depends on one ratio: how many of the \(n\) numbers you want to see again.

| you want | take | comparisons |
|---|---|---:|
| all, in order | a sort | \(n \log_2 n\) |
| the first \(k\) | a heap of \(k\) | \(n \log_2 k\) at most |
| the next, again and again | a heap of all | \(\log_2 n\) each |
| one, the median | neither: quickselect | about \(3n\) |

Below a few thousand numbers you will not notice any of this.
""",
    r"""A **heap** keeps only the smallest on top; the rest is in no particular order. That is
less work than sorting, and often all you need.

> Sort once if you read often. Keep a heap if you write often.

Three places where a heap is the right thing:

1. a queue of jobs by priority, to which jobs are added all the time;
2. the nearest place not yet visited, in Dijkstra's search;
3. the ten slowest requests of a log that is too large for memory.
""",
    r"""Sort. In most programs it is one line, it is fast, and everybody can read it:

```python
ten = sorted(numbers, reverse=True)[:10]
```

Take a heap when one of these holds:

- [x] new numbers come while you are taking some out
- [x] there are millions, and you want ten
- [ ] you like heaps
""",
    r"""Think of a pile of exams to mark.

**Sorting** puts the whole pile in order before you begin. **A heap** only promises that the
next one on top is the next one you need, so it is quicker to build, \(O(n)\), and it does not
mind a late exam pushed into the pile.

If you will go through all of them anyway, sort; the heap would have done the same work with
more moves of memory.
""",
)
ANSWERS = [Behaviour(text=text, chunk_size=6, delay_s=0.01, usage=(21, 150)) for text in TEXTS]
RENEW = "You can renew it at https://keys.example.com/account."
SLOW: dict[str, Any] = {"delay_s": 0.05}
QUICK: dict[str, Any] = {"delay_s": 0.0, "chunk_size": 200}

Pose = Callable[[Person, FaultyServer, Served], None]


def name_of(rock: str) -> str:
    """The model's name at its endpoint."""
    return rock.lower().replace(" ", "-")


def behave(server: FaultyServer, *, next_answer: bool = False, **changes: Any) -> None:
    """Let each model answer in its own words, or in those of the next model, and in this way."""
    for number, rock in enumerate(ROCKS):
        answer = ANSWERS[(number + next_answer) % len(ANSWERS)]
        server.behaviours[name_of(rock)] = replace(answer, **changes)


def break_off(server: FaultyServer) -> None:
    """Let the models stop answering in the middle."""
    behave(server, fault=Fault.DROP, fault_after=60)


def ask(ada: Person, state: str) -> None:
    """Ask, and wait for a state."""
    ada.play(PROMPT, until=state)


def empty(ada: Person, server: FaultyServer, served: Served) -> None:
    ada.arrive()


def waiting(ada: Person, server: FaultyServer, served: Served) -> None:
    behave(server, first_token_s=20)
    ask(ada, "waiting")
    ada.page.wait_for_timeout(700)


def streaming(ada: Person, server: FaultyServer, served: Served) -> None:
    behave(server, **SLOW)
    ask(ada, "streaming")
    ada.page.wait_for_timeout(2500)


def stopped(ada: Person, server: FaultyServer, served: Served) -> None:
    streaming(ada, server, served)
    ada.page.keyboard.press("Escape")
    ada.wait_for("ready")


def ready(ada: Person, server: FaultyServer, served: Served) -> None:
    behave(server)
    ask(ada, "ready")


def small(ada: Person, server: FaultyServer, served: Served) -> None:
    ada.play("Give me three tips for sleeping well.")


def saving(ada: Person, server: FaultyServer, served: Served) -> None:
    ready(ada, server, served)
    ada.context.set_offline(True)
    ada.vote("model_b")
    ada.page.locator("#note", has_text="not saved yet").wait_for()


def offline(ada: Person, server: FaultyServer, served: Served) -> None:
    behave(server, fault=Fault.IDLE, fault_after=300)
    ask(ada, "streaming")
    ada.page.wait_for_timeout(1500)
    ada.context.set_offline(True)
    ada.page.locator("#note", has_text="cannot reach").wait_for()


def voted(ada: Person, server: FaultyServer, served: Served) -> None:
    ready(ada, server, served)
    ada.cast("model_b")


def reasons(ada: Person, server: FaultyServer, served: Served) -> None:
    voted(ada, server, served)
    ada.page.locator("#why summary").click()


def skipped(ada: Person, server: FaultyServer, served: Served) -> None:
    ready(ada, server, served)
    ada.cast("skip")


def failed(ada: Person, server: FaultyServer, served: Served) -> None:
    break_off(server)
    ask(ada, "failed")


def second_turn(ada: Person, server: FaultyServer, served: Served) -> None:
    ready(ada, server, served)
    behave(server, next_answer=True)
    ada.ask("And if the numbers keep coming?")
    ada.page.locator("html[data-state=streaming]").wait_for(state="attached")
    ada.wait_for("ready")


def failed_later(ada: Person, server: FaultyServer, served: Served) -> None:
    ready(ada, server, served)
    break_off(server)
    ada.ask("And if the numbers keep coming?", until="failed")


def going_on(ada: Person, server: FaultyServer, served: Served) -> None:
    voted(ada, server, served)
    ada.page.locator("[data-do=go-on]").click()
    behave(server, next_answer=True, **SLOW)
    ada.ask("And if the numbers keep coming?", until="streaming")
    ada.page.wait_for_timeout(2500)


def limited(ada: Person, server: FaultyServer, served: Served) -> None:
    file = served.database.removeprefix("sqlite:///")
    voted(ada, server, served)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(
            "INSERT INTO turn (battle_id, turn, prompt, created) "
            "SELECT t.battle_id, n.value, '', t.created FROM turn t JOIN battle b "
            "ON b.id = t.battle_id, json_each(?) n WHERE b.public_id = ?",
            (json.dumps(list(range(1000, 1500))), ada.battle_id),
        )
        connection.commit()
    ada.page.locator("#do-new").click()
    ada.ask(PROMPT)
    ada.page.locator("#note", has_text="per hour").wait_for()
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("DELETE FROM turn WHERE turn >= 1000")
        connection.commit()


def interrupted(ada: Person, server: FaultyServer, served: Served) -> None:
    ready(ada, server, served)
    with closing(sqlite3.connect(served.database.removeprefix("sqlite:///"))) as connection:
        connection.execute(
            "UPDATE battle SET state = 'interrupted', message = ? WHERE public_id = ?",
            (INTERRUPTED, ada.battle_id),
        )
        connection.execute(
            "UPDATE answer SET status = 'interrupted' "
            "WHERE battle_id = (SELECT id FROM battle WHERE public_id = ?)",
            (ada.battle_id,),
        )
        connection.commit()
    ada.page.reload()
    ada.wait_for("interrupted")


def refused(ada: Person, server: FaultyServer, served: Served) -> None:
    ada.arrive()
    ada.ask("x" * 20_001)
    ada.page.locator("#note", has_text="20,001").wait_for()
    ada.prompt.fill("")


def missing(ada: Person, server: FaultyServer, served: Served) -> None:
    ada.arrive("?b=0123456789abcdef")
    ada.wait_for("missing")


def keys(ada: Person, server: FaultyServer, served: Served) -> None:
    ready(ada, server, served)
    ada.page.locator("#do-help").dispatch_event("click")  # hidden where there is little room


def leaderboard(ada: Person, server: FaultyServer, served: Served) -> None:
    kind(ada, server, served)  # what leads there is known once its boards are made
    ada.page.goto(f"{served.url}/leaderboard")


def made(ada: Person, url: str, part: str) -> None:
    """Open a page, again until what is made in the background is on it."""
    ada.page.goto(url)
    while not ada.page.locator(part).count():
        ada.page.wait_for_timeout(1000)
        ada.page.reload()


def kind(ada: Person, server: FaultyServer, served: Served) -> None:
    made(ada, f"{served.url}/leaderboard?category=code", ".standings")


def kind_of_two(ada: Person, server: FaultyServer, served: Served) -> None:
    made(ada, f"{served.url}/leaderboard?category=code&language=en", ".standings")


def value(ada: Person, server: FaultyServer, served: Served) -> None:
    made(ada, f"{served.url}/value", ".scatter")


def refusals(ada: Person, server: FaultyServer, served: Served) -> None:
    value(ada, server, served)
    ada.page.locator("#refusals").evaluate("head => head.scrollIntoView()")


def topics(ada: Person, server: FaultyServer, served: Served) -> None:
    ada.page.goto(f"{served.url}/topics")


def my_mix(ada: Person, server: FaultyServer, served: Served) -> None:
    made(ada, f"{served.url}/mix?code=60&creative=25&translation=15", ".standings")


def battles(ada: Person, server: FaultyServer, served: Served) -> None:
    ada.page.goto(f"{served.url}/battles")


def one_battle(ada: Person, server: FaultyServer, served: Served) -> None:
    battles(ada, server, served)
    ada.page.locator("a.prompt").first.click()
    ada.page.wait_for_load_state()


def my_battles(ada: Person, server: FaultyServer, served: Served) -> None:
    voted(ada, server, served)
    ready(ada, server, served)
    ada.page.goto(f"{served.url}/votes")


def method(ada: Person, server: FaultyServer, served: Served) -> None:
    ada.page.goto(f"{served.url}/method")


POSES: dict[str, Pose] = {
    pose.__name__.replace("_", "-"): pose
    for pose in (
        empty, waiting, streaming, offline, stopped, ready, saving, voted, reasons, skipped,
        failed, second_turn, failed_later, going_on, limited, interrupted, refused, missing,
        keys, leaderboard, kind, kind_of_two, my_mix, value, refusals, topics,
        battles, one_battle, my_battles, method,
    )
}  # fmt: skip


def enter(ada: Person, served: Served, role: Role) -> None:
    """Come in as a user."""
    ada.page.goto(served.url + link_for(served.database, role))
    ada.page.get_by_role("button", name="Come in").click()
    ada.page.wait_for_load_state()


@cache
def link_for(database: str, role: Role) -> str:
    """Give the path of a link for as many as come: the log names it once."""
    return invited(Served("", database), role, uses=1000)


def sign_in(ada: Person, server: FaultyServer, served: Served) -> None:
    ada.page.goto(f"{served.url}/sign-in?to=/admin")


def no_link(ada: Person, server: FaultyServer, served: Served) -> None:
    ada.page.goto(f"{served.url}/join/used-before")


def join(ada: Person, server: FaultyServer, served: Served) -> None:
    ada.page.goto(served.url + invited(served, Role.RESEARCHER))


def device(ada: Person, server: FaultyServer, served: Served) -> None:
    enter(ada, served, Role.VOTER)
    ada.page.goto(f"{served.url}/votes")
    ada.page.get_by_role("button", name="Use another device").click()


def not_yours(ada: Person, server: FaultyServer, served: Served) -> None:
    enter(ada, served, Role.VOTER)
    ada.page.goto(f"{served.url}/admin")


def hidden(ada: Person, server: FaultyServer, served: Served) -> None:
    enter(ada, served, Role.ADMIN)
    my_battles(ada, server, served)
    ada.page.get_by_role("button", name="Hide from the public").first.click()


def erase(ada: Person, server: FaultyServer, served: Served) -> None:
    hidden(ada, server, served)
    ada.page.get_by_role("link", name="Delete my prompts and answers").click()


def erased(ada: Person, server: FaultyServer, served: Served) -> None:
    erase(ada, server, served)
    ada.page.get_by_role("button", name="Delete my prompts and answers permanently").click()


def admin(ada: Person, server: FaultyServer, served: Served, panel: str = "") -> None:
    enter(ada, served, Role.ADMIN)
    ada.page.goto(f"{served.url}/admin{panel}")


def admin_models(ada: Person, server: FaultyServer, served: Served) -> None:
    behave(server, **QUICK)
    expire(server)
    admin(ada, server, served, "/models")
    ada.page.get_by_role("button", name="Test all").click()
    ada.page.get_by_text("It did not answer").wait_for()


def admin_voters(ada: Person, server: FaultyServer, served: Served) -> None:
    admin(ada, server, served, "/voters")
    ada.page.get_by_role("button", name="Examine the voters").click()
    ada.page.get_by_role("heading", name="Suspicious voters").wait_for()


def admin_erase(ada: Person, server: FaultyServer, served: Served) -> None:
    admin(ada, server, served, "/voters")
    ada.page.get_by_role("link", name="Delete the texts of").last.click()


OF_THE_SMALL_MODEL: dict[str, Pose] = {"small": small}
OF_A_TEAM: Mapping[str, Pose] = {
    pose.__name__.replace("_", "-"): pose
    for pose in (
        sign_in, no_link, join, device, not_yours, hidden, erase, erased,
        admin, admin_models, admin_voters, admin_erase,
    )
} | {
    f"admin-{panel}": partial(admin, panel=f"/{panel}")
    for panel in ("people", "battles", "policies", "exports", "log")
}  # fmt: skip
"""Poses in the arena of a team, which asks who comes: see `team`."""


def vote_for_a_while(served: Served, people: int = PEOPLE, votes: int = VOTES) -> None:
    """Let people vote for the earlier rock, now and then for the other."""

    def come(number: int) -> None:
        with served.visitor() as visitor:
            for n in range(votes):
                vote_once(served, visitor, number * votes + n)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(come, range(people)))


def vote_once(served: Served, visitor: Visitor, n: int) -> None:
    battle_id = visitor.play(PROMPTS[n % len(PROMPTS)].format(n=n + 2))
    with closing(sqlite3.connect(served.database.removeprefix("sqlite:///"))) as connection:
        query = "SELECT model_a, model_b FROM battle WHERE public_id = ?"
        a, b = connection.execute(query, (battle_id,)).fetchone()
    order = [name_of(rock) for rock in ROCKS]
    better = "model_a" if order.index(a) < order.index(b) else "model_b"
    gap = abs(order.index(a) - order.index(b))
    other = {"model_a": "model_b", "model_b": "model_a"}[better]
    upset = n % (2 + gap) == 0
    visitor.vote(battle_id, "tie" if n % 11 == 5 else other if upset else better)


def roster(folder: Path, url: str, *new: str) -> Path:
    path = folder / "roster.toml"
    path.write_text(
        "\n".join(
            f'[[models]]\nid = "{name_of(rock)}"\nname = "{rock}"\norganisation = "Rocks Inc"\n'
            f'endpoint = "{url}"\nmodel = "{name_of(rock)}"\n'
            f"price = {{ input = {n + 1}.0, output = {3 * n + 1}.5, date = 2026-11-01 }}"
            for n, rock in enumerate((*ROCKS, *new))
        ),
        encoding="utf-8",
    )
    return path


def safety_of_rocks(file: Path) -> Path:
    """What the rocks refuse of a pack: the better ones less, of the last on few prompts."""
    names = [name_of(rock) for rock in ROCKS[:-1]]
    pack = [
        *(PackItem(f"harm {n}", "all sorts", "harmful", "You may.") for n in range(240)),
        *(PackItem(f"twin {n}", "all sorts", "benign") for n in range(120)),
    ]
    done = []
    for number, name in enumerate(names):
        asked = pack if number < len(names) - 1 else pack[::4]
        refused = {
            item.case(mode).id: (n * 37) % 100 < share[mode]
            for n, item in enumerate(asked)
            for mode in item.modes
            for share in [
                {"does": 90 - 7 * number, "can": 70 - 12 * number}
                if item.kind == "harmful"
                else {"does": 4 + 3 * number}
            ]
        }
        done += rates(asked, [Read(name, refused)])
    content = {"prompts": len(pack), "judge": None, "rates": [rate.to_dict() for rate in done]}
    file.write_text(json.dumps(content), encoding="utf-8")
    return file


def newcomer_rock(file: Path) -> Path:
    """What a judge says of a rock that nobody has voted on, from the fewest known models."""
    anchors = [
        {"model": name_of(rock), "rating": 1200.0 - 80 * n, "by": "people"}
        for n, rock in enumerate((*ROCKS, "Flint 2", "Chalk 1"))
    ]
    stated = {
        "model": name_of(NEW_ROCK),
        "judge": "judge-large",
        "level": 0.95,
        "calibrated_on": len(anchors),
        "judge_only": {"value": 1087.0, "lower": 961.0, "upper": 1204.0},
        "board": anchors,
        "warnings": [],
    }
    file.write_text(json.dumps(stated), encoding="utf-8")
    return file


@contextmanager
def arena() -> Iterator[tuple[FaultyServer, Served]]:
    """An arena of six rocks on which people have voted for a while."""
    with tempfile.TemporaryDirectory() as name, faulty_server({}) as server:
        folder = Path(name)
        behave(server, **QUICK)
        with page_of(folder, roster(folder, server.url), characters_per_s=50000) as served:
            vote_for_a_while(served)
        behave(server)
        with closing(Store(served.database)) as store, store.writing() as session:
            made = datetime.now(UTC) - timedelta(days=2)
            topic_releases.add(session, release(private=False), None, 1, made)
        shown = {
            "safety": safety_of_rocks(folder / "safety.json"),
            "newcomers": newcomer_rock(folder / "newcomer.json"),
        }
        with page_of(folder, roster(folder, server.url, NEW_ROCK), **shown) as served:
            with served.visitor() as visitor:
                visitor.board(votes=PEOPLE * VOTES, within_s=120)
            yield server, served


def expire(server: FaultyServer) -> None:
    """Let the key of one model be refused, as its endpoint says."""
    error = {"message": "Incorrect API key provided: it expired on 2026-11-20. " + RENEW}
    server.behaviours[name_of(ROCKS[3])] = Behaviour(status=401, error=error)


@contextmanager
def small_model() -> Iterator[tuple[FaultyServer, Served]]:
    """An arena of the small model that the demo brings, with two of its settings."""
    with tempfile.TemporaryDirectory() as name, faulty_server({}) as server:
        path = Path(name) / "roster.toml"
        entries = (
            f'[[models]]\nid = "{one.id}"\nname = "{one.name}"\nendpoint = "{one.endpoint}"\n'
            f'model = "{one.model}"\nsystem_prompt = "{one.system_prompt}"\n'
            f"decoding = {{ max_tokens = 200, temperature = {temperature}, seed = 7 }}\n"
            for one, temperature in zip(VARIANTS, (0, 0.7), strict=False)
        )
        path.write_text("".join(entries), encoding="utf-8")
        with page_of(Path(name), path) as served:
            yield server, served


@contextmanager
def team() -> Iterator[tuple[FaultyServer, Served]]:
    """An arena that a team runs: a key has expired, somebody always votes left, votes are out."""
    with tempfile.TemporaryDirectory() as name, faulty_server({}) as server:
        folder = Path(name)
        settings: dict[str, Any] = {
            "characters_per_s": 50_000,
            "max_dollars_per_day": 5,
            "oidc_issuer": "http://127.0.0.1:9",
            "oidc_client_id": "arena",
            "oidc_name": "Rocks Inc",
            "secret_key": "k" * 32,
        }
        behave(server, **QUICK)
        with page_of(folder, roster(folder, server.url), **settings) as served:
            vote_for_a_while(served, people=12, votes=5)
            named = replace(ANSWERS[0], text="I am Quartz 8B, made by Rocks Inc.", chunk_size=200)
            server.behaviours[name_of(ROCKS[0])] = named
            expire(server)
            vote_left(served, 44)
        link_for(served.database, Role.ADMIN)
        link_for(served.database, Role.VOTER)
        run_it(served.database)
        behave(server)
        with page_of(folder, roster(folder, server.url), **settings) as served:
            yield server, served


def vote_left(served: Served, votes: int) -> None:
    """Let one visitor vote for the left side, whatever it says."""
    with served.visitor() as visitor:
        for n in range(votes):
            visitor.vote(visitor.play(PROMPTS[n % len(PROMPTS)].format(n=n + 2)), "model_a")


def run_it(database: str) -> None:
    """Do what those who run an arena do: models rest, votes are excluded and taken in again."""
    now = datetime.now(UTC)
    with closing(Store(database)) as store:
        integrity.name_answers(store, now, leave_out=False)
        others = store.read(voting.busiest, 3)[1:]
        bought, ours = (one.voter for one in others)
        integrity.decide(store, "exclude", [bought], "paid for by a vendor", TERMINAL, now)
        integrity.decide(store, "exclude", [ours], "a test of ours", TERMINAL, now)
        integrity.decide(store, "readmit", [ours], "it was a person after all", TERMINAL, now)
        with store.writing() as session:
            models.change(session, name_of(ROCKS[5]), TERMINAL, now, standing=Standing.DISABLED)
            models.change(session, name_of(ROCKS[1]), TERMINAL, now, weight=2.5)


def take(browser: Browser, server: FaultyServer, served: Served, name: str) -> None:
    """Put six pictures of one state side by side."""
    shots = []
    for width in WIDTHS:
        for scheme in ("light", "dark"):
            size = {"width": width, "height": 800}
            with person(browser, served, color_scheme=scheme, viewport=size) as ada:
                ({**POSES, **OF_THE_SMALL_MODEL, **OF_A_TEAM} | OF_STUDIES)[name](
                    ada, server, served
                )
                ada.page.wait_for_timeout(900)
                path = Path(tempfile.mkstemp(suffix=".png")[1])
                ada.page.screenshot(path=path)
                shots.append(Image.open(path).convert("RGB"))
                path.unlink()
    side_by_side(shots).save(TARGET / f"{name}.png", optimize=True)
    if name in IN_README:
        side_by_side([shots[0], shots[-1]]).save(TARGET / f"readme-{name}.png", optimize=True)


def side_by_side(shots: list[Image.Image]) -> Image.Image:
    """Lay pictures in a row, at two thirds of their size, in few colours."""
    small = [shot.resize((shot.width * 2 // 3, shot.height * 2 // 3)) for shot in shots]
    gap = 8
    width = sum(shot.width for shot in small) + gap * (len(small) - 1)
    sheet = Image.new("RGB", (width, max(shot.height for shot in small)), "#888888")
    left = 0
    for shot in small:
        sheet.paste(shot, (left, 0))
        left += shot.width + gap
    return sheet.quantize(160, dither=Image.Dither.NONE)


def main() -> None:
    """Take all pictures, or those named on the command line."""
    TARGET.mkdir(exist_ok=True)
    every = (
        (POSES, arena),
        (OF_THE_SMALL_MODEL, small_model),
        (OF_A_TEAM, team),
        (OF_STUDIES, researched),
    )
    wanted = sys.argv[1:] or [name for poses, _ in every for name in poses]
    with sync_playwright() as playwright:
        path = next(filter(None, map(shutil.which, PROGRAMS)))
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        for poses, opened in every:
            if some := [name for name in wanted if name in poses]:
                with opened() as (server, served):
                    take_all(browser, server, served, some)
        browser.close()


def take_all(browser: Browser, server: FaultyServer, served: Served, names: list[str]) -> None:
    """Take some pictures in one arena, and say how long each took."""
    for name in names:
        began = time.monotonic()
        take(browser, server, served, name)
        sys.stdout.write(f"{name}: {time.monotonic() - began:.0f} s\n")


if __name__ == "__main__":
    main()
