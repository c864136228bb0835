"""The models that have ever been in the roster, and what happened to them."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime

from sqlmodel import Session

from arena.domain.model import Model
from arena.store.tables import ModelEventRow, ModelRow

ANSWERS = ("endpoint", "model", "kind", "system_prompt", "decoding", "recording")
"""Fields that decide how a model answers: a change of any makes another model."""


def fingerprint(model: Model) -> str:
    """SHA-256 of all that makes a model answer as it does."""
    whole = asdict(model)
    answering = {name: whole[name] for name in ANSWERS}
    return hashlib.sha256(json.dumps(answering, sort_keys=True, default=str).encode()).hexdigest()


def register(session: Session, roster: Sequence[Model], now: datetime) -> list[str]:
    """Add new models, log changed ones; returns the ids of the changed."""
    return [model.id for model in roster if _note(session, model, now)]


def _note(session: Session, model: Model, now: datetime) -> bool:
    row = session.get(ModelRow, model.id)
    if row is None:
        _add(session, model, now)
        return False
    changed = row.fingerprint != fingerprint(model)
    if changed:
        _event(session, model, "changed", {"before": row.fingerprint}, now)
        row.fingerprint = fingerprint(model)
    row.name, row.organisation, row.licence = model.name, model.organisation, model.licence
    return changed


def _add(session: Session, model: Model, now: datetime) -> None:
    row = ModelRow(
        id=model.id,
        name=model.name,
        organisation=model.organisation,
        kind=model.kind,
        licence=model.licence,
        fingerprint=fingerprint(model),
        created=now,
    )
    session.add(row)
    session.flush()
    _event(session, model, "added", {"fingerprint": row.fingerprint}, now)


def _event(
    session: Session, model: Model, event: str, detail: dict[str, object], now: datetime
) -> None:
    session.add(ModelEventRow(model_id=model.id, event=event, detail=detail, created=now))
