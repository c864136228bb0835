"""Studies by people in the database: items, who rates, what waits for whom, and ratings.

`create` writes a study, `give` gives a rater the next item, `rate` takes a rating in, and `rows`
are the export. Whatever gives an item out or takes a rating in locks the row of its study first:
so no item gets more ratings than its study wants, even if several raters rate at the same time.
"""

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Select, case, func, insert, select
from sqlalchemy.dialects import postgresql
from sqlmodel import Session, col

from arena.domain.study import (
    HOLD,
    RATED_BY_K,
    Next,
    Past,
    Place,
    PlannedItem,
    RubricItem,
    Shown,
    Stage,
    Standing,
    StudyKind,
    StudyPlan,
    StudyRemarks,
    as_plain,
    blind_steps,
    next_of,
    order_of,
    revealed,
)
from arena.domain.vote import Choice, Voter, attributes
from arena.errors import RatingRefusedError, UnknownStudyError
from arena.store.people import devices_of
from arena.store.tables import (
    StudyAssignmentRow,
    StudyItemRow,
    StudyRaterRow,
    StudyRatingRow,
    StudyRow,
    VoterRow,
)
from judge.case import first_difference
from rating.outcome import SHOWN_FIRST, SIDES, of_sides
from rating.sentences import Sentence

_NOTE_VOTER = postgresql.insert(VoterRow).on_conflict_do_nothing()  # SQLite spells it alike
_PART_OF_PLAN = ("raters_per_item", "repeats", "pilot", "pass_share", "until", "reveal")

OF_RUNS = {"base_model": "model", "scaffold": "scaffold", "cost": "cost", "seconds": "seconds"}
"""Columns of an export for each side, and what they are of an agent's run; marks come beside."""

RATED = Sentence("You have rated this item already: your first answer stands.")
TAKEN = Sentence(
    "This item was reserved for you for ten minutes, and others have rated it since. Your answer "
    "was not counted. Go on with the next item."
)
UNFIT = Sentence("This is no answer to the item: nothing was saved. Open it again.")
LOOKED = Sentence("You have seen the figures of this study, so you can no longer rate in it.")


def create(session: Session, plan: StudyPlan, items: Sequence[PlannedItem], now: datetime) -> None:
    """Write a study with its items; its name must be new."""
    terms = attributes(plan, *_PART_OF_PLAN)
    study = StudyRow(
        name=plan.name,
        plan=terms | {"rubric": [asdict(one) for one in plan.rubric]},
        guidelines=plan.guidelines,
        opened=not plan.pilot,
        seed=secrets.token_hex(16),
        created=now,
    )
    session.add(study)
    session.flush()
    rows = [
        {
            "study_id": study.id,
            "kind": one.kind,
            **attributes(one.item, "item", "prompt_id", "gold"),
            "messages": [asdict(message) for message in one.item.messages],
            "responses": [as_plain(response) for response in one.item.responses],
        }
        for one in items
    ]
    session.connection().execute(insert(StudyItemRow), rows)


def names(session: Session) -> list[str]:
    """Name all studies, the newest first."""
    return list(session.scalars(select(col(StudyRow.name)).order_by(col(StudyRow.id).desc())))


def is_any(session: Session) -> bool:
    """Tell whether there is a study."""
    return session.scalars(select(col(StudyRow.id)).limit(1)).first() is not None


def plan_of(session: Session, name: str) -> StudyPlan:
    """Read what a study is to be; raises `UnknownStudyError`."""
    return _plan(_study(session, name))


def is_open(session: Session, name: str) -> bool:
    """Tell whether what comes after the pilot may be rated; raises `UnknownStudyError`."""
    return _study(session, name).opened


def open_rest(session: Session, name: str) -> bool:
    """Let what comes after the pilot be rated; False if it was so before."""
    study = _study(session, name, lock=True)
    before, study.opened = study.opened, True
    return not before


def standing(session: Session, name: str, voter: str | None, now: datetime) -> Standing:
    """Return the progress of a rater."""
    study = _study(session, name)
    rater = None if voter is None else _rater(session, study, voter)
    past = [] if rater is None else _past(session, rater)
    chosen = _next(session, study, rater, past, now)
    looked = rater is not None and rater.looked is not None
    return Standing(_plan(study), chosen.stage, len(past), chosen.left, bool(past), looked)


def has_begun(session: Session, name: str, voter: str) -> bool:
    """Tell whether a voter is a rater of a study; raises `UnknownStudyError`."""
    rater = _rater(session, _study(session, name), voter)
    return rater is not None and rater.number is not None


def give(session: Session, name: str, voter: Voter, now: datetime) -> tuple[Next, Shown | None]:
    """Give a rater their next item, and reserve it for `HOLD`; the same one until it is rated.

    Raises
    ------
    UnknownStudyError, RatingRefusedError
        If there is no such study, or the rater has looked at its figures.
    """
    study = _study(session, name, lock=True)
    rater = _rater(session, study, voter.id) or _new_rater(session, study, voter, now)
    if rater.looked is not None:
        raise RatingRefusedError(LOOKED)
    if rater.number is None:
        most = select(func.max(StudyRaterRow.number)).where(
            col(StudyRaterRow.study_id) == study.id
        )
        rater.number = (session.scalar(most) or 0) + 1
        qualifies = select(col(StudyItemRow.id)).where(
            col(StudyItemRow.study_id) == study.id,
            col(StudyItemRow.kind) == StudyKind.QUALIFICATION,
        )
        rater.passed = None if session.scalars(qualifies.limit(1)).first() else True
        session.flush()
    past = _past(session, rater)
    waiting = _waiting(session, rater)
    if waiting is not None:
        assignment, item = waiting
        if _may_stay(session, study, assignment, item, now):
            if assignment.reserved_until < now:
                assignment.shown, assignment.reserved_until = now, now + HOLD
            chosen = _next(session, study, rater, past, now)
            return Next(Stage.RATING, item.id, assignment.showing, max(1, chosen.left)), _shown(
                assignment, item, len(past) + 1, max(1, chosen.left)
            )
        session.delete(assignment)
        session.flush()
    chosen = _next(session, study, rater, past, now)
    if chosen.key is None:
        return chosen, None
    item = session.get_one(StudyItemRow, chosen.key)
    order = order_of(_seed(study, rater), chosen.key, chosen.showing, len(item.responses))
    assignment = StudyAssignmentRow(
        item_id=chosen.key,
        rater_id=_key(rater),
        showing=chosen.showing,
        order=order,
        shown=now,
        reserved_until=now + HOLD,
    )
    session.add(assignment)
    session.flush()
    return chosen, _shown(assignment, item, len(past) + 1, chosen.left)


def rate(
    session: Session,
    name: str,
    voter: str,
    token: int,
    key: str,
    choice: str | Sequence[Sequence[int]],
    now: datetime,
) -> None:
    """Write a rating; the same key writes it once.

    Parameters
    ----------
    choice : str, or sequence of sequence of int
        Of two answers ``a``, ``b``, ``tie``, ``both_bad`` or ``skip``, as shown; else the places
        of the answers on the page, best first, ties together; none of a skip.

    Raises
    ------
    UnknownStudyError
        If no such item was given to the rater.
    RatingRefusedError
        If it was rated before, by another key, or others have taken its place.
    """
    study = _study(session, name, lock=True)
    rater, assignment, item = _given(session, study, voter, token)
    before = session.get(StudyRatingRow, assignment.id)
    if before is not None:
        if before.key == key:
            return
        raise RatingRefusedError(RATED)
    if rater.looked is not None:
        raise RatingRefusedError(LOOKED)
    if not _may_stay(session, study, assignment, item, now):
        raise RatingRefusedError(TAKEN)
    if not _fits(choice, len(item.responses)):
        raise RatingRefusedError(UNFIT)
    session.add(
        StudyRatingRow(
            assignment_id=_key(assignment),
            key=key,
            choice=_in_sides(choice, assignment.order) if isinstance(choice, str) else None,
            ranking=None if isinstance(choice, str) else _ranking(choice, assignment.order, item),
            seconds=max(0.0, (now - assignment.shown).total_seconds()),
            created=now,
        )
    )
    session.flush()
    if item.kind == StudyKind.QUALIFICATION:
        _end_qualification(session, study, rater)


def leave(session: Session, name: str, voter: str) -> None:
    """Let others rate what was shown to a rater and is not rated; their ratings stay.

    Raises
    ------
    UnknownStudyError
        If there is no such study.
    """
    study = _study(session, name, lock=True)
    rater = _rater(session, study, voter)
    waiting = None if rater is None else _waiting(session, rater)
    if waiting is not None:
        session.delete(waiting[0])


def remark(session: Session, name: str, voter: str, token: int, remarks: StudyRemarks) -> None:
    """Write what a rater says beside a choice; the last word counts, and the choice stays.

    Raises
    ------
    UnknownStudyError
        If there is no such rating of theirs.
    """
    study = _study(session, name)
    _, assignment, _item = _given(session, study, voter, token)
    rating = session.get(StudyRatingRow, assignment.id)
    if rating is None:
        raise UnknownStudyError
    sides = _letters(assignment.order)
    reasons = {sides[shown]: list(some) for shown, some in remarks.reasons.items() if some}
    rating.reasons = dict(sorted(reasons.items())) or None
    rating.comment = remarks.comment
    rating.confidence = remarks.confidence
    rating.rubric = dict(remarks.rubric) or None


def rated(session: Session, name: str, voter: str, token: int, now: datetime) -> Shown:
    """Read an item that a rater has rated, with their choice as shown.

    Raises
    ------
    UnknownStudyError
        If there is no such rating of theirs.
    """
    study = _study(session, name)
    rater, assignment, item = _given(session, study, voter, token)
    rating = session.get(StudyRatingRow, assignment.id)
    if rating is None:
        raise UnknownStudyError
    past = _past(session, rater)
    chosen = _next(session, study, rater, past, now)
    shown = _shown(assignment, item, len(past), chosen.left, rating)
    if not study.plan.get("reveal"):
        return shown
    names = [revealed(item.responses[answer]) for answer in assignment.order]
    return replace(shown, revealed=names)


def look(session: Session, name: str, voter: Voter, now: datetime) -> bool:
    """Note that a rater opens the figures, after which they can no longer rate.

    False of who has begun and not finished: they may not look, and nothing is noted.
    """
    study = _study(session, name, lock=True)
    rater = _rater(session, study, voter.id)
    if rater is not None and rater.number is not None and rater.looked is None:
        past = _past(session, rater)
        if _next(session, study, rater, past, now).stage in (Stage.RATING, Stage.FULL):
            return False
    if rater is None:
        rater = _new_rater(session, study, voter, now)
    rater.looked = rater.looked or now
    return True


def _ratings(column: Any) -> Select[*tuple[Any, ...]]:
    """Select ratings in their order with their assignments and items, and one more column."""
    return (
        select(StudyRatingRow, StudyAssignmentRow, StudyItemRow, column)
        .join(StudyAssignmentRow, col(StudyAssignmentRow.id) == col(StudyRatingRow.assignment_id))
        .join(StudyItemRow, col(StudyItemRow.id) == col(StudyAssignmentRow.item_id))
        .join(StudyRow, col(StudyRow.id) == col(StudyItemRow.study_id))
        .join(StudyRaterRow, col(StudyRaterRow.id) == col(StudyAssignmentRow.rater_id))
        .order_by(col(StudyRatingRow.created), col(StudyRatingRow.assignment_id))
    )


def rows(session: Session, name: str) -> Iterator[dict[str, Any]]:
    """Give the ratings of a study as its export has them, in their order."""
    study = _study(session, name)
    query = _ratings(col(StudyRaterRow.number)).where(col(StudyItemRow.study_id) == study.id)
    for rating, assignment, item, number in session.execute(query):
        yield _exported(study.name, rating, assignment, item, _code_of(number))


def own_ratings(session: Session, voter: str) -> list[dict[str, Any]]:
    """Return what a rater rated, as they saw it: without any model or id."""
    theirs = col(StudyRaterRow.voter_id).in_(devices_of(session, voter))
    query = _ratings(col(StudyRow.name)).where(theirs)
    own = []
    for rating, assignment, item, study in session.execute(query):
        shown = _shown(assignment, item, 0, 0, rating)
        own.append(
            {
                "study": study,
                "prompt": shown.messages[-1]["content"],
                "choice": shown.choice,
                "ranking": shown.ranking,
                "reasons": rating.reasons and _as_shown(rating.reasons, assignment.order),
                **attributes(rating, "comment", "confidence", "rubric", "created"),
            }
        )
    return own


def _as_shown(reasons: Mapping[str, list[str]], order: Sequence[int]) -> dict[str, list[str]]:
    back = {side: shown for shown, side in _letters(order).items()}
    return {back[side]: some for side, some in reasons.items()}


def items(session: Session, name: str) -> list[tuple[str, StudyKind]]:
    """Give the items of a study, by id and kind, in their order."""
    study = _study(session, name)
    query = select(col(StudyItemRow.item), col(StudyItemRow.kind))
    of_study = query.where(col(StudyItemRow.study_id) == study.id).order_by(col(StudyItemRow.id))
    return [(item, StudyKind(kind)) for item, kind in session.execute(of_study)]


def raters(session: Session, name: str) -> list[tuple[str, float | None, bool | None]]:
    """Give the raters of a study by code, each with what they had right of the qualification."""
    study = _study(session, name)
    query = (
        select(StudyRaterRow)
        .where(col(StudyRaterRow.study_id) == study.id, col(StudyRaterRow.number).is_not(None))
        .order_by(col(StudyRaterRow.number))
    )
    every = session.scalars(query)
    return [(_code_of(one.number), one.qualification, one.passed) for one in every]


def _code_of(number: int | None) -> str:
    """Give the code by which a rater is known outside.

    >>> _code_of(7)
    'r07'
    """
    return f"r{number or 0:02}"


def _exported(
    study: str,
    rating: StudyRatingRow,
    assignment: StudyAssignmentRow,
    item: StudyItemRow,
    rater: str,
) -> dict[str, Any]:
    pair = len(item.responses) == 2
    models = [one["model"] for one in item.responses]
    return {
        "study": study,
        "rater": rater,
        **attributes(item, "item", "kind", "prompt_id", "gold"),
        **attributes(rating, "choice", "confidence", "seconds", "created"),
        **dict(zip(of_sides("model"), models if pair else (None, None), strict=True)),
        "sides": SHOWN_FIRST[assignment.order != [0, 1]] if pair else None,
        "ranking": None if rating.ranking is None else json.dumps(rating.ranking),
        "reasons": None if rating.reasons is None else json.dumps(rating.reasons),
        "comment": rating.comment or None,
        "rubric": None if rating.rubric is None else json.dumps(rating.rubric),
        "intent": None,
        "repeat": assignment.showing,
        **(_of_runs(item.responses) if pair else {}),
    }


def _of_runs(responses: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Give the parts of systems, what their runs took and how they were marked, by side.

    A side is that of the item; what is not known of a run, and all of other answers, is None.
    """
    row: dict[str, Any] = {}
    for side, one in zip(SIDES, responses, strict=True):
        run = one.get("run", {})
        row |= {f"{column}_{side}": run.get(name) for column, name in OF_RUNS.items()}
        row[f"marks_{side}"] = json.dumps(run["marks"]) if run.get("marks") else None
    return row


def _study(session: Session, name: str, *, lock: bool = False) -> StudyRow:
    query = select(StudyRow).where(col(StudyRow.name) == name)
    study = session.scalars(query.with_for_update() if lock else query).one_or_none()
    if study is None:
        raise UnknownStudyError
    return study


def _plan(study: StudyRow) -> StudyPlan:
    terms = dict(study.plan)
    rubric = tuple(
        RubricItem(one["name"], one["question"], tuple(one["answers"]))
        for one in terms.pop("rubric")
    )
    return StudyPlan(name=study.name, guidelines=study.guidelines, rubric=rubric, **terms)


def _rater(session: Session, study: StudyRow, voter: str) -> StudyRaterRow | None:
    """Find a rater by their person, on whichever device they began."""
    theirs = select(StudyRaterRow).where(
        col(StudyRaterRow.study_id) == study.id,
        col(StudyRaterRow.voter_id).in_(devices_of(session, voter)),
    )
    return session.scalars(theirs.order_by(col(StudyRaterRow.id)).limit(1)).first()


def _new_rater(session: Session, study: StudyRow, voter: Voter, now: datetime) -> StudyRaterRow:
    known = {"id": voter.id, "kind": voter.kind, "created": now}
    session.connection().execute(_NOTE_VOTER, known)
    rater = StudyRaterRow(study_id=_key(study), voter_id=voter.id, created=now)
    session.add(rater)
    session.flush()
    return rater


def _past(session: Session, rater: StudyRaterRow) -> list[Past]:
    """Read what a rater has rated, also as another user on a device that turned out theirs."""
    voter = session.get(VoterRow, rater.voter_id) if rater.voter_id else None
    theirs = devices_of(session, voter.person or voter.id) if voter else []
    same = select(col(StudyRaterRow.id)).where(
        col(StudyRaterRow.study_id) == rater.study_id, col(StudyRaterRow.voter_id).in_(theirs)
    )
    query = (
        select(col(StudyItemRow.id), col(StudyItemRow.kind), col(StudyAssignmentRow.showing))
        .join(StudyAssignmentRow, col(StudyAssignmentRow.item_id) == col(StudyItemRow.id))
        .join(StudyRatingRow, col(StudyRatingRow.assignment_id) == col(StudyAssignmentRow.id))
        .where(col(StudyAssignmentRow.rater_id).in_(same))
        .order_by(col(StudyRatingRow.created), col(StudyRatingRow.assignment_id))
    )
    return [Past(key, StudyKind(kind), showing) for key, kind, showing in session.execute(query)]


def _waiting(
    session: Session, rater: StudyRaterRow
) -> tuple[StudyAssignmentRow, StudyItemRow] | None:
    """Give what was shown to a rater and has no rating yet."""
    query = (
        select(StudyAssignmentRow, StudyItemRow)
        .join(StudyItemRow, col(StudyItemRow.id) == col(StudyAssignmentRow.item_id))
        .outerjoin(StudyRatingRow, col(StudyRatingRow.assignment_id) == col(StudyAssignmentRow.id))
        .where(
            col(StudyAssignmentRow.rater_id) == rater.id,
            col(StudyRatingRow.assignment_id).is_(None),
        )
    )
    row = session.execute(query.limit(1)).first()
    return None if row is None else (row[0], row[1])


def _taken(
    session: Session, study: StudyRow, now: datetime, beside: int | None
) -> dict[int, tuple[int, int]]:
    """Count by item the first ratings, and the other raters who hold it."""
    is_rated = col(StudyRatingRow.assignment_id).is_not(None)
    waits = (
        ~is_rated
        & (col(StudyAssignmentRow.reserved_until) >= now)
        & (col(StudyAssignmentRow.rater_id) != (beside or 0))
    )
    query = (
        select(
            col(StudyAssignmentRow.item_id),
            func.count(case((is_rated, 1))),
            func.count(case((waits, 1))),
        )
        .join(StudyItemRow, col(StudyItemRow.id) == col(StudyAssignmentRow.item_id))
        .outerjoin(StudyRatingRow, col(StudyRatingRow.assignment_id) == col(StudyAssignmentRow.id))
        .where(
            col(StudyItemRow.study_id) == study.id,
            col(StudyItemRow.kind).in_(RATED_BY_K),
            col(StudyAssignmentRow.showing) == 0,
            is_rated | waits,
        )
        .group_by(col(StudyAssignmentRow.item_id))
    )
    return {key: (rated, reserved) for key, rated, reserved in session.execute(query)}


def _next(
    session: Session,
    study: StudyRow,
    rater: StudyRaterRow | None,
    past: Sequence[Past],
    now: datetime,
) -> Next:
    taken = _taken(session, study, now, rater.id if rater else None)
    query = select(col(StudyItemRow.id), col(StudyItemRow.kind))
    of_study = query.where(col(StudyItemRow.study_id) == study.id).order_by(col(StudyItemRow.id))
    places = [
        Place(key, StudyKind(kind), *taken.get(key, (0, 0)))
        for key, kind in session.execute(of_study)
    ]
    qualifies = any(place.kind is StudyKind.QUALIFICATION for place in places)
    begun = rater is not None and rater.number is not None
    return next_of(
        _plan(study),
        places,
        past,
        seed=_seed(study, rater),
        opened=study.opened,
        passed=rater.passed if rater and begun else (None if qualifies else True),
    )


def _seed(study: StudyRow, rater: StudyRaterRow | None) -> str:
    return f"{study.seed}/{rater.id if rater else 0}"


def _may_stay(
    session: Session,
    study: StudyRow,
    assignment: StudyAssignmentRow,
    item: StudyItemRow,
    now: datetime,
) -> bool:
    """Tell whether a rating of what was shown would still be one of those that are wanted."""
    if assignment.reserved_until >= now or assignment.showing or item.kind not in RATED_BY_K:
        return True
    others = _taken(session, study, now, assignment.rater_id).get(_key(item), (0, 0))
    return bool(sum(others) < study.plan["raters_per_item"])


def _given(
    session: Session, study: StudyRow, voter: str, token: int
) -> tuple[StudyRaterRow, StudyAssignmentRow, StudyItemRow]:
    rater = _rater(session, study, voter)
    assignment = session.get(StudyAssignmentRow, token)
    if rater is None or assignment is None or assignment.rater_id != rater.id:
        raise UnknownStudyError
    return rater, assignment, session.get_one(StudyItemRow, assignment.item_id)


def _end_qualification(session: Session, study: StudyRow, rater: StudyRaterRow) -> None:
    """Keep what a rater had right, once all of the qualification is rated."""
    query = (
        select(col(StudyItemRow.gold), col(StudyRatingRow.choice))
        .outerjoin(
            StudyAssignmentRow,
            (col(StudyAssignmentRow.item_id) == col(StudyItemRow.id))
            & (col(StudyAssignmentRow.rater_id) == rater.id),
        )
        .outerjoin(StudyRatingRow, col(StudyRatingRow.assignment_id) == col(StudyAssignmentRow.id))
        .where(
            col(StudyItemRow.study_id) == study.id,
            col(StudyItemRow.kind) == StudyKind.QUALIFICATION,
        )
    )
    answers = list(session.execute(query))
    if any(choice is None for _, choice in answers):
        return
    rater.qualification = sum(gold == choice for gold, choice in answers) / len(answers)
    rater.passed = rater.qualification >= study.plan["pass_share"]


def _fits(choice: str | Sequence[Sequence[int]], n: int) -> bool:
    """Tell whether what was chosen is an answer to an item of this many answers."""
    if isinstance(choice, str):
        return n == 2 or choice == Choice.SKIP
    return n > 2 and sorted(place for together in choice for place in together) == [*range(n)]


def _letters(order: Sequence[int]) -> dict[str, str]:
    """Give the letter of each answer in its item by its letter on the page.

    >>> _letters([1, 0])
    {'a': 'b', 'b': 'a'}
    """
    letters = "abcdefghijkl"
    return {letters[place]: letters[answer] for place, answer in enumerate(order)}


def _in_sides(choice: str, order: Sequence[int]) -> str:
    if choice in ("a", "b"):
        return Choice(f"model_{_letters(order)[choice]}")
    return Choice(choice)


def _ranking(
    places: Sequence[Sequence[int]], order: Sequence[int], item: StudyItemRow
) -> list[list[str]]:
    models = [one["model"] for one in item.responses]
    return [sorted(models[order[place]] for place in together) for together in places]


def _shown(
    assignment: StudyAssignmentRow,
    item: StudyItemRow,
    number: int,
    left: int,
    rating: StudyRatingRow | None = None,
) -> Shown:
    choice, ranking = None, None
    if rating is not None and rating.choice is not None:
        back = {side: shown for shown, side in _letters(assignment.order).items()}
        side = {Choice.A: "a", Choice.B: "b"}.get(Choice(rating.choice))
        choice = back[side] if side else rating.choice
    if rating is not None and rating.ranking is not None:
        models = [item.responses[answer]["model"] for answer in assignment.order]
        ranking = [[models.index(model) for model in together] for together in rating.ranking]
    responses = [item.responses[answer] for answer in assignment.order]
    steps = [blind_steps(one) for one in responses]
    return Shown(
        token=_key(assignment),
        number=number,
        left=left,
        messages=item.messages,
        answers=[one["turns"] for one in responses],
        choice=choice,
        ranking=ranking,
        steps=steps,
        differs=first_difference(steps),
    )


def _key(row: Any) -> int:
    assert row.id is not None, "the row was not written"
    return int(row.id)
