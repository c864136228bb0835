"""The roster in the database: which models battle, in every process, without a restart.

`entries` reads it, `add`, `change` and `release` change it, and `version` grows with each change,
by which processes notice it. At the end is the id of a prompt: equal prompts share one, which
nobody without the secret can guess.
"""

import hmac
import secrets
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import update
from sqlalchemy.dialects import postgresql
from sqlmodel import Session, col, select

from arena.domain.battle import AnswerStatus
from arena.domain.model import (
    BESIDE,
    MOST_WEIGHT,
    Entrant,
    Entry,
    Model,
    Release,
    Stage,
    Standing,
    first_fault,
    public,
)
from arena.domain.vote import FailureClass
from arena.errors import RoomError
from arena.store import log, people
from arena.store.engine import alone
from arena.store.store import Store
from arena.store.tables import (
    AnswerRow,
    ModelEventRow,
    ModelRow,
    PromptSecretRow,
    RosterEntryRow,
    RosterVersionRow,
    new_nonce,
)
from rating.sentences import Sentence

# Roster

NO_WEIGHT = Sentence("A weight is a number from 0 to 1,000,000, not %(weight)s.")

_MODEL = TypeAdapter(Model)
MOST_NAMED = 20
"""Ids in the sentence about one that is not in the roster."""
MOST_EVENTS = 500
"""Events of models that are shown, the newest."""
FAILED_IN_A_ROW = 10
"""Answers of a model that all failed, after which it is disabled."""
OF_ENDPOINT = frozenset(FailureClass) - {
    FailureClass.CONTENT_FILTER,
    FailureClass.CONTEXT_LENGTH,
    FailureClass.INTERNAL,
}
"""Failures that are not for what was asked, nor faults of ours."""
ARENA = "arena"
"""Who acts where nobody did."""
RELEASES = {Release.PRE_RELEASE: "pre-release model", Release.RELEASED: "release model"}
ACTS = {
    Standing.ENABLED: "enable model",
    Standing.DISABLED: "disable model",
    Standing.RETIRED: "retire model",
}


def version(session: Session) -> int:
    """Give how often the roster has changed."""
    return session.exec(select(RosterVersionRow.version)).one_or_none() or 0


def entries(session: Session) -> tuple[Entry, ...]:
    """Read the roster in its order, with those who have left; of `unusable` ones it has none."""
    return _read(session)[0]


def names(session: Session) -> set[str]:
    """Return the names of all models and organisations that the log or the roster has.

    Until a model is released the log does not have its name; its answers may.
    """
    logged = session.exec(select(ModelRow.name, ModelRow.organisation)).all()
    roster = [(entry.model.name, entry.model.organisation) for entry in entries(session)]
    return {name for pair in [*logged, *roster] for name in pair if name}


def unusable(session: Session) -> dict[str, Sentence]:
    """Return, by id, why a stored entry is no model; retired entries are not included.

    A version that checked less may have stored them, or another program.
    """
    return _read(session)[1]


def _read(session: Session) -> tuple[tuple[Entry, ...], dict[str, Sentence]]:
    """Read each entry by itself, so that one that cannot be read takes no other along."""
    usable: list[Entry] = []
    problems: dict[str, Sentence] = {}
    loaded: Sequence[RosterEntryRow] = ()
    with suppress(ValueError):  # of a row that is no JSON: then each is asked for
        loaded = session.exec(select(RosterEntryRow)).all()
    order = select(RosterEntryRow.model_id, RosterEntryRow.standing)
    for model, standing in session.exec(order.order_by(col(RosterEntryRow.place))):
        try:
            usable.append(_entry(session, model))
        except RoomError as error:
            if standing != Standing.RETIRED:
                problems[model] = error.args[0]
    del loaded  # kept until here, or the session would have to ask again
    return tuple(usable), problems


def entrants(session: Session) -> dict[str, Entrant]:
    """Give what boards have of models beside their votes; those excluded have nothing.

    A model that the log knows and the roster does not has left, unless there is no roster.
    """
    stored = {entry.model.id: _entrant(entry) for entry in entries(session)}
    known = session.exec(select(ModelRow.id).where(~col(ModelRow.id).contains(BESIDE)))
    gone = {*known} - {*stored} if stored else set()
    every = stored | dict.fromkeys(gone, Entrant(retired=True))
    for model, spans in _otherwise(session).items():
        every[model] = replace(every.get(model, Entrant()), otherwise=spans)
    return {model: one for model, one in every.items() if one != Entrant()}


def _otherwise(session: Session) -> dict[str, tuple[tuple[datetime, datetime], ...]]:
    """Give the times in which models answered otherwise than now, by the log of models."""
    changes = (
        select(ModelEventRow.model_id, ModelEventRow.detail, ModelEventRow.created, ModelRow)
        .join(ModelRow, col(ModelRow.id) == col(ModelEventRow.model_id))
        .where(col(ModelEventRow.event) == log.CHANGED)
        .order_by(col(ModelEventRow.id))
    )
    spans: dict[str, tuple[tuple[datetime, datetime], ...]] = {}
    since: dict[str, datetime] = {}
    for model, detail, until, row in session.exec(changes):
        if detail.get("before") != row.fingerprint:
            known = spans.get(model, ())
            spans[model] = (*known, (since.get(model, row.created), until))
        since[model] = until
    return spans


def _entrant(entry: Entry) -> Entrant:
    return Entrant(
        retired=entry.standing is Standing.RETIRED,
        release=entry.release,
        released=entry.released,
        family=entry.model.family,
        declared_order=entry.model.declared_order if entry.model.family else None,
    )


def note_stages(session: Session, stages: Mapping[str, Stage], now: datetime) -> None:
    """Write down which models the leaderboard has in full from here on, or no longer."""
    noted = (Stage.PROVISIONAL, Stage.REGULAR)
    events = (
        select(ModelEventRow.model_id, ModelEventRow.event)
        .where(col(ModelEventRow.event).in_(noted))
        .order_by(col(ModelEventRow.id))
    )
    last = dict(session.exec(events).all())
    for model, stage in stages.items():
        if stage in noted and last.get(model) != stage:
            log.note_event(session, model, stage, {}, now)


def history(session: Session) -> Sequence[Any]:
    """Give what happened to the models, newest first; nothing of those that are hidden.

    Rows with ``model``, ``name``, ``event``, a word of the log of models, and ``created``.
    """
    hidden = select(RosterEntryRow.model_id).where(col(RosterEntryRow.release) == Release.HIDDEN)
    events: Any = (
        select(
            col(ModelEventRow.model_id).label("model"),
            ModelRow.name,
            ModelEventRow.event,
            ModelEventRow.created,
        )
        .join(ModelRow, col(ModelRow.id) == col(ModelEventRow.model_id))
        .where(col(ModelEventRow.model_id).not_in(hidden))
        .where(~col(ModelEventRow.model_id).contains(BESIDE))
        .order_by(col(ModelEventRow.id).desc())
        .limit(MOST_EVENTS)
    )
    return list(session.exec(events))


def news(models: Sequence[Model], stored: Sequence[Entry]) -> list[Model]:
    """Give the models that are not stored, or answer in another way; weights are of the store."""
    known = {entry.model.id: replace(entry.model, weight=1.0) for entry in stored}
    return [model for model in models if replace(model, weight=1.0) != known.get(model.id)]


def take_over(session: Session, models: Sequence[Model], now: datetime) -> None:
    """Store what is new in a roster file: who battles and how often stays as it is.

    Raises
    ------
    RoomError
        If two models would have one name.
    """
    alone(session.connection())  # two processes that begin at once
    stored = entries(session)
    if not stored:
        _register(session, models, now)
    elif new := news(models, stored):
        add(session, new, people.TERMINAL, now)


def add(session: Session, models: Sequence[Model], by: str, now: datetime) -> list[str]:
    """Add models, and take over what has changed of those that are there; notes who did.

    Returns
    -------
    list of str
        Ids of those that answer in another way than before under the same id.

    Raises
    ------
    RoomError
        If two models would have one name, or fewer than two could battle.
    """
    alone(session.connection())
    changed = _register(session, models, now)
    _require_names(entries(session))
    _require_two(entries(session), weighted=False)
    for model in models:
        people.note(session, by, "add model", model.id, {"endpoint": model.endpoint}, now)
    return changed


def change(
    session: Session,
    model: str,
    by: str,
    now: datetime,
    *,
    standing: Standing | None = None,
    weight: float | None = None,
    weighted: bool = False,
) -> None:
    """Let a model battle, not battle for a while, or leave; or draw it more or less often.

    Parameters
    ----------
    weighted : bool
        Whether models of weight zero are not drawn.

    Raises
    ------
    RoomError
        If there is no such model, the weight is none, or fewer than two would be left.
    """
    alone(session.connection())
    row = _row(session, model)
    if standing is not None:
        before, row.standing, row.paused = row.standing, standing, None
        log.note_event(session, model, standing, {"before": before}, now)
        people.note(session, by, ACTS[standing], model, {"before": before}, now)
    if weight is not None:
        detail: dict[str, object] = {"before": row.weight, "after": _checked(weight)}
        row.weight = weight
        log.note_event(session, model, "weighed", detail, now)
        people.note(session, by, "weigh model", model, detail, now)
    row.updated = now
    _raise_version(session)
    session.flush()
    _require_two(entries(session), weighted=weighted)


def failing(session: Session, model: str) -> FailureClass | None:
    """Give why an enabled model fails whose last `FAILED_IN_A_ROW` answers all did, if they did.

    They are counted over all processes, since the model's entry was changed last. None where one
    of these answers came, or failed for what was asked.
    """
    row = session.get(RosterEntryRow, model)
    if row is None or row.standing != Standing.ENABLED:
        return None
    last = (
        select(AnswerRow.error_class, AnswerRow.created)
        .where(AnswerRow.model_id == model)
        .where(col(AnswerRow.status).in_((AnswerStatus.COMPLETE, AnswerStatus.FAILED)))
        .order_by(col(AnswerRow.id).desc())
        .limit(FAILED_IN_A_ROW)
    )
    answers = session.exec(last).all()
    failed = [name for name, created in answers if name in OF_ENDPOINT and created > row.updated]
    return FailureClass(failed[0]) if len(failed) == FAILED_IN_A_ROW else None


def pause(session: Session, model: str, now: datetime) -> FailureClass | None:
    """Disable a model that is `failing`, with the failure as the reason, which is given.

    Raises
    ------
    RoomError
        If fewer than two models would be left.
    """
    alone(session.connection())
    failure = failing(session, model)
    if failure is not None:
        row = _row(session, model)
        row.standing, row.paused, row.updated = Standing.DISABLED, failure, now
        detail = {"failures": FAILED_IN_A_ROW, "last": failure}
        people.note(session, ARENA, "pause model", model, detail, now)
        _raise_version(session)
        session.flush()
        _require_two(entries(session), weighted=False)
    return failure


def release(session: Session, model: str, to: Release, by: str, now: datetime) -> None:
    """Let a hidden model be drawn unnamed, or give it its name: it moves on and never back.

    Raises
    ------
    RoomError
        If there is no such model, or it is as far already.
    """
    alone(session.connection())
    row = _row(session, model)
    order = list(Release)
    if order.index(to) <= order.index(Release(row.release)):
        msg = Sentence(
            "%(id)s is %(now)s already: a release is not taken back. Retire it instead.",
            id=repr(model[:100]),
            now=Sentence(row.release),
        )
        raise RoomError(msg)
    before, row.release, row.updated = row.release, to, now
    if to is Release.RELEASED and before == Release.PRE_RELEASE:
        row.released = now
    log.note_event(session, model, to, {"before": before}, now)
    people.note(session, by, RELEASES[to], model, {"before": before}, now)
    session.flush()
    log.register(session, [_entry(session, model).public], now)
    _raise_version(session)


def _stored(session: Session, model: str) -> RosterEntryRow | None:
    """Give a row to change; an entry that is no JSON is emptied, so that it can be."""
    try:
        return session.get(RosterEntryRow, model)
    except ValueError:
        emptied = update(RosterEntryRow).where(col(RosterEntryRow.model_id) == model)
        session.connection().execute(emptied.values(entry={}))
        return session.get(RosterEntryRow, model)


def _row(session: Session, model: str) -> RosterEntryRow:
    row = _stored(session, model)
    if row is None:
        known = ", ".join(one.model.id for one in entries(session)[:MOST_NAMED])
        words = Sentence(
            "The roster has no model %(id)s. Ids in it: %(known)s.",
            id=repr(model[:100]),
            known=known or "–",
        )
        raise RoomError(words)
    return row


def _register(session: Session, models: Sequence[Model], now: datetime) -> list[str]:
    """Write models down, in the log as others may know them, with how each enters."""
    stored = {model.id: _stored(session, model.id) for model in models}
    release = {
        model.id: Release(row.release) if row else model.release
        for model in models
        for row in [stored[model.id]]
    }
    unnamed = [model.id for model in models if model.release is not Release.RELEASED]
    secrets = {model: new_nonce() for model in unnamed if stored[model] is None}
    faces = [public(model, release[model.id]) for model in models]
    changed = log.register(session, faces, now, secrets)
    _write(session, models, secrets, now)
    for model in secrets:
        log.note_event(session, model, release[model], {}, now)
    return changed


def _write(
    session: Session, models: Sequence[Model], secrets: Mapping[str, str], now: datetime
) -> None:
    places = session.exec(select(RosterEntryRow.place)).all()
    first = max(places, default=-1) + 1
    for place, model in enumerate(models, first):
        row = session.get(RosterEntryRow, model.id)
        if row is None:
            row = RosterEntryRow(
                model_id=model.id,
                place=place,
                standing=Standing.ENABLED,
                weight=model.weight,
                updated=now,
                release=model.release,
                secret=secrets.get(model.id, ""),
            )
            session.add(row)
        elif row.weight is None or not 0 <= row.weight <= MOST_WEIGHT:
            row.weight = model.weight
        row.entry = _MODEL.dump_python(model, mode="json")
        row.updated = now
    _raise_version(session)
    session.flush()


def _raise_version(session: Session) -> None:
    row = session.get(RosterVersionRow, 1)
    if row is None:
        session.add(RosterVersionRow(id=1, version=1))
    else:
        row.version += 1


def _entry(session: Session, model_id: str) -> Entry:
    """Read a stored entry; raises `RoomError` for one that is no model."""
    try:
        row = session.get_one(RosterEntryRow, model_id)
        entry = {**_known(row.entry), "weight": row.weight}
        model = _MODEL.validate_python(entry)
        fault = first_fault(model)
        if not fault:
            return Entry(
                model,
                Standing(row.standing),
                row.updated,
                Release(row.release),
                row.released,
                FailureClass(row.paused) if row.paused else None,
            )
    except ValidationError as error:
        first = error.errors()[0]
        fault = f"key {'.'.join(map(str, first['loc']))!r}: {first['msg']}."
    except ValueError as error:
        fault = f"{str(error)[:200]}."
    raise RoomError(
        Sentence(
            "The stored entry of %(id)s is not used: %(why)s Add the model again by arena models "
            "add, or retire it.",
            id=repr(model_id[:100]),
            why=fault,
        )
    )


def _known(entry: object) -> dict[str, Any]:
    """Give an entry without what a later version may have added."""
    if not isinstance(entry, Mapping):
        raise ValueError("it is no table")
    return {name: value for name, value in entry.items() if name in Model.__dataclass_fields__}


def _checked(weight: float) -> float:
    if not 0 <= weight <= MOST_WEIGHT:
        raise RoomError(Sentence(NO_WEIGHT, weight=f"{weight:g}"))
    return weight


def _require_names(roster: Collection[Entry]) -> None:
    """Refuse two models, of those that have not left, that people could not tell apart."""
    seen: dict[str, str] = {}
    for entry in roster:
        name, model = entry.model.name.strip().casefold(), entry.model.id
        if entry.standing is not Standing.RETIRED and seen.setdefault(name, model) != model:
            msg = Sentence(
                "%(a)s and %(b)s would have the same name %(name)s: give one another.",
                a=seen[name],
                b=model,
                name=repr(entry.model.name),
            )
            raise RoomError(msg)


def _require_two(roster: Collection[Entry], *, weighted: bool) -> None:
    drawn = [one for one in roster if one.drawn and (one.model.weight > 0 or not weighted)]
    if len(drawn) < 2:
        msg = Sentence(
            "A battle needs two models, and this would leave %(n)s: add or enable another first.",
            n=len(drawn),
        )
        raise RoomError(msg)


# Ids of prompts


def prompt_secret(store: Store, now: datetime) -> str:
    """Give the secret of all prompts on this database; the first one to ask makes it."""
    new = {"id": 1, "secret": secrets.token_hex(32), "created": now}
    with store.writing() as session:
        make = postgresql.insert(PromptSecretRow).values(new).on_conflict_do_nothing()
        session.connection().execute(make)
        return session.exec(select(col(PromptSecretRow.secret))).one()


def prompt_id(secret: str, prompt: str) -> str:
    """HMAC of a prompt, in 16 hexadecimal digits."""
    return hmac.new(secret.encode(), prompt.encode(), "sha256").hexdigest()[:16]
