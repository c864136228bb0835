"""Poses of the pages of studies: for those who rate, and for those who read the figures."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

from arena.domain.people import Role
from arena.domain.study import PlannedItem, RubricItem, Shown, StudyKind
from arena.domain.vote import Voter
from arena.store import studies
from arena.store.store import Store
from judge.case import Message
from judge.tables.items import RatingItem, Response
from tests.browser.person import Person
from tests.faulty_server import FaultyServer, faulty_server
from tests.serving import Served, invited, quick_arena
from tests.studies import write_study

GUIDELINES = """## What is better?

Read the prompt first, then both answers **to the end**.

1. An answer that is *wrong* is never better than one that is right.
2. Of two right answers the shorter one is better, unless it leaves something out.
3. If you cannot tell them apart, choose a tie.

You may look things up. Please do not ask a chatbot.
"""
QUESTION = "How do I undo my last commit in Git, and keep what I changed?"
RIGHT = """Move the branch back by one, and leave the files as they are:

```sh
git reset --soft HEAD~1
```

The changes are then staged. Without `--soft` they are kept as well, but not staged.
"""
WRONG = """You can throw the commit away:

```sh
git reset --hard HEAD~1
```

This moves the branch back by one and **sets all files to what they were**.
"""
OTHER = """There are several ways:

- `git commit --amend` changes the last commit in place
- `git revert HEAD` makes a new commit that takes the last one back
- `git reset` moves the branch
"""
RUBRIC = (
    RubricItem("safe", "Is the better answer safe to follow?", ("yes", "no", "cannot tell")),
)
MANY = 1000
"""Ratings that an item may get where pictures are taken: each visitor is another rater."""


def item(n: int, *texts: str, gold: str | None = None) -> RatingItem:
    """Make an item of answers; who gave which changes from item to item, but where it is gold."""
    turned = texts if gold or n % 2 else texts[::-1]
    responses = tuple(
        Response(f"model-{name}", (Message("assistant", text),))
        for name, text in zip("abc", turned, strict=False)
    )
    name = f"{'question' if gold is None else 'gold'}-{n:02}"
    return RatingItem(name, f"p{n}", (Message("user", QUESTION),), responses, gold)


def pairs(kind: StudyKind, n: int, gold: str | None = None) -> list[PlannedItem]:
    return [PlannedItem(kind, item(k, RIGHT, WRONG, gold=gold)) for k in range(n)]


def plan_studies(database: str) -> None:
    """Write studies that begin, test, order, wait and are rated."""
    own = pairs(StudyKind.ITEM, 12)
    write_study(
        database, "git-answers", own, guidelines=GUIDELINES, rubric=RUBRIC, raters_per_item=MANY
    )
    tests = pairs(StudyKind.QUALIFICATION, 2, gold="model_a")
    write_study(database, "experts-only", own + tests, pass_share=1.0, raters_per_item=MANY)
    write_study(
        database,
        "three-in-order",
        [PlannedItem(StudyKind.ITEM, item(k, RIGHT, WRONG, OTHER)) for k in range(4)],
        raters_per_item=MANY,
    )
    write_study(
        database,
        "pilot-first",
        [*pairs(StudyKind.PILOT, 1), *own[1:]],
        pilot=1,
        raters_per_item=MANY,
    )
    write_study(database, "only-one", own[:1], raters_per_item=MANY)
    rated = [*pairs(StudyKind.ITEM, 40), *pairs(StudyKind.GOLD, 3, gold="model_a")]
    write_study(database, "git-rated", rated, raters_per_item=4, repeats=0.2, until=0.05)
    write_study(database, "not-begun", own, raters_per_item=2)
    for name in ("reserved", "complete"):
        write_study(database, name, own[:1], raters_per_item=1)
    with closing(Store(database)) as store:
        now = datetime.now(UTC) + timedelta(hours=1)  # the pictures are taken before that
        with store.writing() as session:
            studies.give(session, "reserved", Voter("kim"), now)
            _, shown = studies.give(session, "complete", Voter("kim"), now)
            assert shown
            studies.rate(session, "complete", "kim", shown.token, "key", "a", now)
        for n, who in enumerate(("ada", "bob", "eve", "joe", "kim")):
            rate(store, who, 45 if n else 60, by_text(Random(n)) if n else lambda shown: "a")


def by_text(rng: Random) -> Callable[[Shown], str]:
    """Name what is right three times of four, and a tie now and then."""

    def choose(shown: Shown) -> str:
        right = "a" if "--soft" in shown.answers[0][0]["content"] else "b"
        wrong = {"a": "b", "b": "a"}[right]
        return rng.choices([right, wrong, "tie", "skip"], [70, 18, 10, 2])[0]

    return choose


def rate(store: Store, who: str, most: int, choose: Callable[[Shown], str]) -> None:
    for minute in range(most):
        now = datetime.now(UTC) + timedelta(minutes=minute)
        with store.writing() as session:
            _, shown = studies.give(session, "git-rated", Voter(who), now)
            if shown is None:
                return
            key = f"{who}-{minute}"
            studies.rate(session, "git-rated", who, shown.token, key, choose(shown), now)


def study_list(ada: Person, server: FaultyServer, served: Served) -> None:
    ada.page.goto(f"{served.url}/studies")


def study_open(ada: Person, server: FaultyServer, served: Served) -> None:
    ada.page.goto(f"{served.url}/studies/git-answers")


def study_tests(ada: Person, server: FaultyServer, served: Served) -> None:
    ada.page.goto(f"{served.url}/studies/experts-only")


def study_failed(ada: Person, server: FaultyServer, served: Served) -> None:
    study_tests(ada, server, served)
    ada.page.get_by_role("link", name="Begin").click()
    for _ in range(2):
        choose(ada, "3")
        ada.page.get_by_role("button", name="Next").click()
    ada.page.get_by_role("heading", name="Thank you for trying").wait_for()


def study_item(ada: Person, server: FaultyServer, served: Served) -> None:
    study_open(ada, server, served)
    ada.page.get_by_role("link", name="Begin").click()
    ada.page.locator("#choose").wait_for()


def study_reasons(ada: Person, server: FaultyServer, served: Served) -> None:
    study_item(ada, server, served)
    choose(ada, "1")
    ada.page.get_by_label("Useful").first.check()
    ada.page.get_by_label("fairly sure").check()
    ada.page.locator("#said").scroll_into_view_if_needed()


def study_order(ada: Person, server: FaultyServer, served: Served) -> None:
    ada.page.goto(f"{served.url}/studies/three-in-order/rate")
    ada.page.locator(".scripted").wait_for()
    ada.page.locator("article[data-answer='1'] h2").click()


def study_no_choice(ada: Person, server: FaultyServer, served: Served) -> None:
    ada.page.goto(f"{served.url}/studies/three-in-order/rate")
    ada.page.get_by_role("button", name="Save the order").click()
    ada.page.get_by_role("alert").first.wait_for()


def study_waiting(ada: Person, server: FaultyServer, served: Served) -> None:
    only_one(ada, served, "pilot-first")
    ada.page.get_by_role("heading", name="That is all for now").wait_for()


def study_full(ada: Person, server: FaultyServer, served: Served) -> None:
    ada.page.goto(f"{served.url}/studies/reserved/rate")
    ada.page.get_by_role("heading", name="All places are taken at the moment").wait_for()


def study_complete(ada: Person, server: FaultyServer, served: Served) -> None:
    ada.page.goto(f"{served.url}/studies/complete/rate")
    ada.page.get_by_role("heading", name="This study is complete").wait_for()


def study_through(ada: Person, server: FaultyServer, served: Served) -> None:
    only_one(ada, served, "only-one")
    ada.page.get_by_role("heading", name="You have finished").wait_for()


def study_gone_on(ada: Person, server: FaultyServer, served: Served) -> None:
    study_reasons(ada, server, served)
    study_open(ada, server, served)


def study_figures(ada: Person, server: FaultyServer, served: Served) -> None:
    research(ada, served, "git-rated")


def study_no_figures(ada: Person, server: FaultyServer, served: Served) -> None:
    research(ada, served, "not-begun")


def study_looked(ada: Person, server: FaultyServer, served: Served) -> None:
    research(ada, served, "not-begun")
    ada.page.goto(f"{served.url}/studies/not-begun")


def study_own_first(ada: Person, server: FaultyServer, served: Served) -> None:
    research(ada, served, "")
    study_item(ada, server, served)
    choose(ada, "1")
    ada.page.goto(f"{served.url}/studies/git-answers/results")


def choose(ada: Person, key: str) -> None:
    """Press the key of a choice, and wait until it is saved."""
    ada.page.locator("#choose").wait_for()
    ada.page.wait_for_load_state()  # the script is there
    ada.page.keyboard.press(key)
    ada.page.locator("#said").wait_for()
    ada.page.wait_for_load_state()


def only_one(ada: Person, served: Served, name: str) -> None:
    """Rate the one item that there is."""
    ada.page.goto(f"{served.url}/studies/{name}/rate")
    choose(ada, "2")
    ada.page.get_by_role("button", name="Next").click()


def research(ada: Person, served: Served, name: str) -> None:
    """Come in as a researcher, and read the figures of a study."""
    ada.page.goto(served.url + invited(served, Role.RESEARCHER))
    ada.page.get_by_role("button", name="Come in").click()
    ada.page.wait_for_load_state()
    if name:
        ada.page.goto(f"{served.url}/studies/{name}/results")


OF_STUDIES = {
    pose.__name__.replace("_", "-"): pose
    for pose in (
        study_list, study_open, study_tests, study_failed, study_item, study_reasons,
        study_order, study_no_choice, study_waiting, study_full, study_complete, study_through,
        study_gone_on, study_figures, study_no_figures, study_looked, study_own_first,
    )
}  # fmt: skip


@contextmanager
def researched() -> Iterator[tuple[FaultyServer, Served]]:
    """An arena with studies, one of which five people have rated."""
    with (
        tempfile.TemporaryDirectory() as name,
        faulty_server({}) as server,
        quick_arena(Path(name), secret_key="k" * 32) as served,
    ):
        plan_studies(served.database)
        yield server, served
