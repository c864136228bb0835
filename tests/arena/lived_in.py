"""An arena in which most of what can happen has happened."""

from dataclasses import replace

from sqlalchemy import text

from arena.domain.battle import AnswerStatus, BattleState, Intent, Reason, Remarks
from arena.domain.vote import DEFAULT, SIMULATED, Choice, Voter, VoterKind
from arena.play.upkeep import label_votes
from arena.store import erasing, voting
from arena.store.store import Store
from tests.arena.store import battles
from tests.arena.store.battles import A1, B1, MODELS, NOW, ballot, complete, exclude, new_battle

MAIL = "# Sure\n\n**Write** to ada@example.com or bob@example.com.\n\n```\ncode\n```"
RETIRED = replace(MODELS[0], id="chalk", name="Chalk", organisation="Hill", licence="MIT")

REMARKS = {
    0: Remarks(reasons_a=(Reason.USEFUL, Reason.INCORRECT), comment="=ask ada@example.com"),
    1: Remarks(reasons_b=(Reason.CREATIVE,), confidence=2, comment='So, "it" is.\nYes.'),
    2: Remarks(intent=Intent.QUIZZING),
    3: Remarks(),
    6: Remarks(reasons_a=(Reason.SUPERFICIAL,), comment="Both say this.", confidence=3),
    7: Remarks(comment="x" * 1000),
}
"""Beside votes of which some are erased, some hidden, and one's names were withheld."""


def lived_in(url: str) -> Store:
    """Keep an arena in which most of what can happen has happened."""
    store = Store(url)
    store.hold_lease()
    store.register([*MODELS, RETIRED], NOW)
    for i in range(12):
        kind = VoterKind.SIMULATED if i % 4 == 3 else VoterKind.ANONYMOUS
        voter = Voter(f"v{i % 4}" * 8, kind)
        store.open_battle(
            replace(new_battle(f"b{i}", voter), prompt=f"Write to me{i}@x.org: who am I?")
        )
        words = {A1: complete(MAIL), B1: complete("" if i == 5 else "=1+1, the sea.")}
        store.close_answers(f"b{i}", BattleState.READY, words, message=None, now=NOW)
        choice = (Choice.A, Choice.B, Choice.TIE, Choice.BOTH_BAD, Choice.SKIP)[i % 5]
        store.cast(replace(ballot(f"b{i}", choice, voter=voter.id), withhold=i == 1))
        if i in REMARKS:
            store.remark(f"b{i}", voter.id, REMARKS[i], NOW, asked=True)
    exclude(store, "b2", DEFAULT, "a known bot")
    exclude(store, "b6", SIMULATED, "out of another board")
    exclude(store, "b1", DEFAULT, "a mistake")
    battles.two_turns(store, "two turns", "bob")
    battles.ready(store, "open", Voter("zoë"))
    store.open_battle(new_battle("failed", Voter("bob")))
    lost = {A1: replace(complete(""), status=AnswerStatus.FAILED, error_class="timeout")}
    ends = lost | {B1: complete("Half")}
    store.close_answers("failed", BattleState.FAILED, ends, message="It failed.", now=NOW)
    with store.writing() as session:
        voting.readmit(session, DEFAULT.name, ["b1"], version="1", reason="ours", now=NOW)
        person = "UPDATE voter SET person = 'bob' WHERE id = 'v1v1v1v1v1v1v1v1'"
        session.connection().execute(text(person))
        hidden = "UPDATE battle SET hidden = created WHERE public_id = 'b4'"
        session.connection().execute(text(hidden))
        erased = erasing.battles_of(session, ["v2v2v2v2v2v2v2v2"])
        erasing.erase_words(session, erased[:1], [], NOW)
        erasing.take_out(session, erased[1:2], NOW)
        erasing.erase_words(session, erased[1:2], [], NOW)
    label_votes(store, lambda: NOW)
    return store
