"""What may be done in the admin room, wired to the parts of the application."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import Any

from arena.boards import integrity
from arena.boards.integrity import MOST_BUSY, MOST_SHOWN, Decided, VoterCheck
from arena.boards.page_export import make_file
from arena.domain.battle import Sampler
from arena.domain.model import Model, Release, Standing
from arena.domain.room_view import Leaver, RosterView, Trial, VotersView
from arena.domain.vote import DEFAULT, Days
from arena.endpoints import trial
from arena.endpoints.address import origin_of
from arena.endpoints.offline import load_recordings
from arena.errors import RoomError, SettingsError, UnknownPersonError
from arena.pages.admin.room import Room, RosterDesk
from arena.parts import Parts
from arena.settings import Settings, models_in
from arena.store import erasing, exclusions, last_day, people
from arena.store import gold as gold_rows
from arena.store import roster as roster_rows
from arena.store.store import Store
from judge.studies.gold_voters import accuracies
from rating.sentences import Sentence
from rating.tables.escaping import storable

GIVEN = Sentence("This arena was started on models that it found: start it with a roster.")


def room(parts: Parts, settings: Settings) -> Room:
    """Wire the admin room."""
    store, check = parts.store, VoterCheck(parts.store, parts.now)
    policy = DEFAULT.name

    def voters() -> VotersView:
        left_out = store.read(exclusions.left_out, policy, MOST_SHOWN)
        busiest = store.read(exclusions.busiest, MOST_BUSY)
        suspects = check.newest.suspects if check.newest else ()
        ids = {one.voter for one in left_out} | {one.voter for one in suspects}
        right = accuracies(store.read(gold_rows.votes))[:MOST_SHOWN]
        known = ids | {one.voter for one in busiest} | {one.voter for one in right}
        return VotersView(
            check.newest,
            check.examining,
            check.problem,
            left_out,
            busiest,
            store.read(people.names, known),
            right,
        )

    def decided(decide: Callable[..., Decided]) -> Callable[[str, str, str], int]:
        return lambda target, reason, by: decide(store, target, reason, by, parts.now()).changed

    def export(what: str, ending: str, days: Days, by: str) -> Path:
        file = make_file(settings.database, what, ending, days, settings.vote_within())
        bounds = {"since": days.since, "until": days.until} if what != "ratings" else {}
        detail = {name: day.date().isoformat() for name, day in bounds.items() if day}
        try:
            with store.writing() as session:
                people.note(session, by, "export", what, {"as": ending, **detail}, parts.now())
        except BaseException:
            rmtree(file.parent)
            raise
        return file

    return Room(
        status=lambda viewer: store.read(
            last_day.status, parts.now(), settings.max_dollars_per_day, viewer
        ),
        race=lambda: parts.race.read() if parts.race else None,
        acts=partial(store.read, people.acts),
        voters=voters,
        flagged=partial(store.read, exclusions.flagged, policy, MOST_SHOWN),
        boards=lambda: [board.read() for board in parts.boards.values()],
        held=partial(store.read, exclusions.held),
        exclude=decided(integrity.exclude),
        readmit=decided(integrity.readmit),
        examine=check.begin,
        leaver=lambda voter: _leaver(store, voter)[0],
        erase=partial(_erase, parts),
        roster=_desk(parts, settings),
        export=export,
        apply=lambda by: sum(done.votes for done in check.apply(by) if not done.held),
    )


def _leaver(store: Store, voter: str) -> tuple[Leaver, erasing.Extent]:
    """Measure what there is to erase of a voter, by their id or how it begins."""
    with store.reading() as session:
        try:
            there = erasing.extent(session, erasing.voters_of(session, storable(voter)))
        except UnknownPersonError:
            msg = Sentence(
                "%(id)s is not the id of one voter: give all of it, or its first 8 characters.",
                id=repr(voter[:100]),
            )
            raise RoomError(msg) from None
        owner = there.voters[0]
        name = people.names(session, [owner]).get(owner)
    return Leaver(owner, name, len(there.voters), there.of), there


def _erase(parts: Parts, voter: str, tombstone: bool, by: str) -> Leaver:
    """Erase the words of a voter and who they are; the files are written anew by upkeep."""
    leaver, there = _leaver(parts.store, voter)
    with parts.store.writing() as session:
        gone = erasing.erase(session, there, by, parts.now(), forget=True, tombstone=tombstone)
    return replace(leaver, extent=gone)


def _desk(parts: Parts, settings: Settings) -> RosterDesk:
    """Wire what the admin room does to the roster."""
    store, keys = parts.store, parts.keys

    def view() -> RosterView:
        entries = store.read(roster_rows.entries) if parts.roster else ()
        needing = {one.model.id: one.model.api_key_env for one in entries}
        keyless = {model for model, name in needing.items() if name and not keys.get(name)}
        problems = store.read(roster_rows.unusable) if parts.roster else {}
        return RosterView(entries, frozenset(keyless), problems, parts.battles.paused())

    def change(model: str, by: str, **what: Any) -> None:
        weighted = settings.sampler is Sampler.WEIGHTED
        with store.writing() as session:
            roster_rows.change(session, model, by, parts.now(), weighted=weighted, **what)
        _look(parts)

    def release(model: str, to: Release, by: str) -> None:
        with store.writing() as session:
            roster_rows.release(session, model, to, by, parts.now())
        _look(parts)

    def add(text: str, by: str) -> None:
        if parts.roster is None:
            raise RoomError(GIVEN)
        origins: dict[str, set[str]] = {}
        for one in store.read(roster_rows.entries):
            if one.model.api_key_env:
                sent_to = origins.setdefault(one.model.api_key_env, set())
                with suppress(SettingsError):  # nothing can be sent there
                    sent_to.add(origin_of(one.model.endpoint))
        models = _pasted(text, origins)
        with store.writing() as session:
            roster_rows.add(session, models, by, parts.now())
        _look(parts)

    async def try_all() -> Mapping[str, Trial]:
        entries = (await asyncio.to_thread(view)).entries
        asked = [one.model for one in entries if one.standing is not Standing.RETIRED]
        try:
            recordings = await asyncio.to_thread(load_recordings, asked)
        except SettingsError as error:
            raise RoomError(str(error)) from None
        prompts = {model_id: tuple(recorded) for model_id, recorded in recordings.items()}
        trials = await trial.try_all(parts.endpoints, asked, prompts)
        for model_id, tried in trials.items():
            if tried.seconds is not None:
                parts.battles.resume(model_id)
        return trials

    return RosterDesk(
        view=view,
        place=lambda model, standing, by: change(model, by, standing=standing),
        weigh=lambda model, weight, by: change(model, by, weight=weight),
        release=release,
        add=add,
        try_all=try_all,
    )


def _look(parts: Parts) -> None:
    """Let this process battle by the changed roster at once."""
    if parts.roster:
        parts.roster.look()


def _pasted(text: str, origins: Mapping[str, Collection[str]]) -> tuple[Model, ...]:
    """Read a roster that came over the network: it names no files, and sends no key elsewhere.

    Whoever may use the page need not be who may read the server's files and environment.

    Parameters
    ----------
    origins : mapping
        By the name of each key that a model has, the schemes, hosts and ports it is sent to.
    """
    try:
        models = models_in(text, Path("roster"))
        for model in models:
            _require_ours(model, origins)
    except SettingsError as error:
        raise RoomError(str(error)) from None
    return models


def _require_ours(model: Model, origins: Mapping[str, Collection[str]]) -> None:
    if model.recording:
        raise RoomError(Sentence("A recording is a file: add it by arena models add."))
    if model.api_key_env is None:
        return
    sent_to, origin = origins.get(model.api_key_env), origin_of(model.endpoint)
    if not sent_to:
        msg = Sentence(
            "No model has the key %(name)s yet, so it is sent nowhere: add the first model with "
            "it by arena models add.",
            name=repr(model.api_key_env[:100]),
        )
        raise RoomError(msg)
    if origin not in sent_to:
        msg = Sentence(
            "The key %(name)s is sent to %(origins)s alone: add a model at %(origin)s with it by "
            "arena models add.",
            name=repr(model.api_key_env[:100]),
            origins=", ".join(sorted(sent_to)),
            origin=origin[:100],
        )
        raise RoomError(msg)
