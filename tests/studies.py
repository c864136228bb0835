"""Studies by people for tests: items, and a database that holds them."""

from contextlib import closing
from datetime import UTC, datetime

from arena.domain.study import PlannedItem, StudyKind, StudyPlan
from arena.store import studies
from arena.store.store import Store
from judge.case import Message
from judge.tables.items import RatingItem, Response

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)


def item(n: int, gold: str | None = None, *, answers: int = 2) -> RatingItem:
    responses = tuple(
        Response(f"model-{k}", (Message("assistant", f"Answer {k} to {n}"),))
        for k in range(answers)
    )
    name = f"{'g' if gold else 'i'}{n}"
    return RatingItem(name, f"p{n}", (Message("user", f"Question {n}?"),), responses, gold)


def planned(
    n: int, *, gold: int = 0, qualification: int = 0, pilot: int = 0, answers: int = 2
) -> list[PlannedItem]:
    """Plan items, and others whose right choice is the first model, or a tie to qualify by."""
    return [
        *(
            PlannedItem(StudyKind.PILOT if k < pilot else StudyKind.ITEM, item(k, answers=answers))
            for k in range(n)
        ),
        *(PlannedItem(StudyKind.GOLD, item(k, "model_a")) for k in range(gold)),
        *(
            PlannedItem(StudyKind.QUALIFICATION, item(100 + k, "tie"))
            for k in range(qualification)
        ),
    ]


def write_study(database: str, name: str, items: list[PlannedItem], **plan: object) -> None:
    """Make a study of two ratings an item, unless the plan says otherwise."""
    terms: dict[str, object] = {"name": name, "raters_per_item": 2} | plan
    with closing(Store(database)) as store, store.writing() as session:
        studies.create(session, StudyPlan(**terms), items, NOW)  # type: ignore[arg-type]
