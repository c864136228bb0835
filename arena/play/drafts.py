"""Battles about to be written down."""

import hashlib
import uuid
from collections.abc import Mapping
from datetime import datetime

from arena.domain.battle import Mode, Side
from arena.domain.model import Model
from arena.domain.vote import Voter
from arena.play.matchmaking import VERSION, Draw
from arena.play.rules import Rules
from arena.store.records import NewAnswer, NewBattle, StoredBattle
from rating import __version__


def blind_battle(
    voter: Voter, prompt: str, draw: Draw, rules: Rules, now: datetime, *, recorded: bool
) -> NewBattle:
    """Draft a blind battle between the two models of a draw."""
    return NewBattle(
        public_id=uuid.uuid4().hex,
        owner=voter,
        mode=Mode.ANONYMOUS,
        prompt=prompt,
        a=new_answer(draw.a),
        b=new_answer(draw.b),
        side_seed=draw.side_seed,
        sampler=rules.sampler,
        sampler_version=VERSION,
        pair_probability=draw.pair_probability,
        pacing=rules.pacing,
        prompt_set="recorded" if recorded else None,
        prompt_id=_hash(prompt),
        created=now,
        app_version=__version__,
    )


def continued_battle(
    stored: StoredBattle,
    voter: Voter,
    prompt: str,
    models: Mapping[Side, Model],
    rules: Rules,
    now: datetime,
) -> NewBattle:
    """Draft a battle in which two revealed models go on: nothing was drawn for it."""
    return NewBattle(
        public_id=uuid.uuid4().hex,
        owner=voter,
        mode=Mode.CONTINUED,
        prompt=prompt,
        turn=stored.turns[-1].turn + 1,
        continues=stored.public_id,
        a=new_answer(models[Side.A]),
        b=new_answer(models[Side.B]),
        side_seed=0,
        sampler=Mode.CONTINUED,
        sampler_version=VERSION,
        pair_probability=1.0,
        pacing=rules.pacing,
        prompt_set=None,
        prompt_id=_hash(prompt),
        created=now,
        app_version=__version__,
    )


def new_answer(model: Model) -> NewAnswer:
    """Draft an answer of a model."""
    return NewAnswer(
        model_id=model.id,
        model_name=model.name,
        system_prompt_hash=_hash(model.system_prompt),
        decoding=model.decoding,
    )


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
