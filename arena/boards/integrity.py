"""What the check of voters says, applied to the log: flags, and votes excluded by a policy."""

import logging
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain, compress
from typing import Any, Literal, NamedTuple

from arena.domain.room_view import Suspect
from arena.domain.vote import DEFAULT, READMITTED, ring_reason
from arena.errors import ArenaError, RoomError
from arena.store import blocks, people, roster, voting
from arena.store.store import Store
from arena.store.voting import APPLIED, HELD, Grounds
from judge.labels.accuracy import VERSION, self_naming
from rating import __version__
from rating.errors import RatingError
from rating.sentences import Sentence
from rating.tables.coding import LOGGED_SIDES, LoggedVotes
from rating.tables.files import storable
from rating.tables.voter_report import MOST, VotersReport, check_source
from rating.voters import Alternative

logger = logging.getLogger(__name__)

VOTERS, RINGS, SELF_NAMING = "voters", "rings", "self-naming"
BY_HAND, APPLY = "by hand", "apply rule"
MOST_SHOWN, MOST_BUSY = 200, 10
"""Suspects, and those who voted most, that a page lists; `arena voters` lists all."""
LONGEST_ID = 100
"""Characters that are quoted of an id that nothing has."""
NAMED_ITSELF = Sentence("a model named itself")
LIKE: dict[Alternative, str] = {
    "coin": Sentence("votes like a coin toss"),
    "always-left": Sentence("always the left side"),
    "always-right": Sentence("always the right side"),
    "inverted": Sentence("votes for the worse answer"),
    "fan": Sentence("votes for one model wherever it appears"),
    "anti-fan": Sentence("votes against one model wherever it appears"),
}
"""Why votes are excluded, by what a voter's are like."""


class _Ballot(NamedTuple):
    """A vote that counts."""

    battle: str
    voter: str
    models: tuple[str, str]


def decide(
    store: Store,
    act: Literal["exclude", "readmit"],
    targets: Sequence[str],
    reason: str,
    by: str,
    now: datetime,
) -> tuple[int, int]:
    """Exclude the votes of voters, or on battles, from `DEFAULT`, or take them in again.

    All of them, or none where one is unknown. It is noted who did. Gives for how many votes they
    stand, and of how many the standing is another one now.

    Parameters
    ----------
    targets : sequence of str
        Ids of voters, or how they begin, names of users, or ids of battles.

    Raises
    ------
    RoomError
        If the reason is empty, or one of them stands for no vote.
    StoreError
        If the log cannot be written.
    """
    reason = storable(reason.strip())
    if not reason:
        raise RoomError(Sentence("Give a reason: the leaderboard shows it to everybody."))
    if not targets:
        raise RoomError(Sentence("Choose whose votes, or which battles: none is selected."))
    votes = changed = 0
    with store.writing() as session:
        for one in targets:
            target, battles, named = voting.meant(session, storable(one))
            if not battles:
                raise RoomError(_unknown(target, named if len(named) > 1 else ()))
            if act == "exclude":
                grounds = Grounds(BY_HAND, __version__, reason)
                fresh = voting.exclude_votes(session, DEFAULT.name, battles, grounds, now)
                if target not in battles:
                    voting.flag(session, grounds, now, voter=target)
            else:
                fresh = voting.readmit(
                    session, DEFAULT.name, battles, version=__version__, reason=reason, now=now
                )
            detail = {"reason": reason, "policy": DEFAULT.name, "votes": fresh}
            people.note(session, by, act, target, detail, now)
            votes, changed = votes + len(battles), changed + fresh
    return votes, changed


def _unknown(target: str, named: Sequence[str]) -> Sentence:
    """Say that an id stands for no vote, or a name for several users."""
    if named:
        return Sentence(
            "%(n)s users have the name %(name)s: take the id of one, such as %(ids)s.",
            n=len(named),
            name=repr(target[:LONGEST_ID]),
            ids=", ".join(one[:8] for one in named),
        )
    return Sentence(
        "%(id)s is neither a voter with votes nor a battle with a vote: take a name, an id, or 8 "
        "characters or more of its beginning, from the page Voters or arena voters --format "
        "csv, or the whole one from the address of a battle.",
        id=repr(target[:LONGEST_ID]),
    )


def name_answers(store: Store, now: datetime, *, leave_out: bool) -> dict[str, Any]:
    """Flag battles with an answer that names its author, and leave their votes out if asked to.

    Names of the roster and of organisations count besides the known ones. Like a rule of `apply`,
    this is held where it would exclude more than `MOST` of the votes.

    Returns
    -------
    dict
        ``battles`` and ``answers`` that were read, of battles with a vote; ``named``, the battles
        with an answer that names its author; ``by_model``, how many each model gave; and
        ``applied``, what became of their votes as in `apply`, None if they were to stay.

    Raises
    ------
    StoreError
        If the log cannot be read or written.
    """
    grounds = Grounds(SELF_NAMING, VERSION, NAMED_ITSELF)
    with store.writing() as session:
        names = roster.names(session)
        answers = list(voting.answers(session))
        namings = [(one, self_naming(one.text, names)) for one in answers]
        leaks = [one for one, naming in namings if naming and naming.kind == "self"]
        known = voting.flagged_battles(session, SELF_NAMING, VERSION)
        for key in {one.key for one in leaks} - known:
            voting.flag(session, grounds, now, battle=key)
        battles, applied = {one.battle for one in leaks}, None
        if leave_out:
            rules = voting.rules(session, DEFAULT.name)
            counting = {vote.battle for vote in _counting(blocks.columns(session, DEFAULT))}
            fresh = sorted((battles & counting) - rules.keys())
            standing = Counter(rule for rule in rules.values() if rule != READMITTED)
            share = (len(fresh) + standing[SELF_NAMING]) / max(1, len(counting) + standing.total())
            applied = _applied(SELF_NAMING, 0, len(fresh), share)
            outcome = replace(grounds, reason=HELD if applied["held"] else APPLIED)
            voting.flag(session, outcome, now, score=share)
            if not applied["held"]:
                voting.exclude_votes(session, DEFAULT.name, fresh, grounds, now)
            people.note(session, people.TERMINAL, APPLY, SELF_NAMING, applied, now)
    return {
        "battles": len({one.battle for one in answers}),
        "answers": len(answers),
        "named": len(battles),
        "by_model": dict(Counter(one.model for one in leaks)),
        "applied": applied,
    }


def _applied(rule: str, voters: int, votes: int, share: float) -> dict[str, Any]:
    held = share > MOST
    return {"rule": rule, "voters": voters, "votes": votes, "share": share, "held": held}


def _accused(report: VotersReport) -> dict[str, list[Suspect]]:
    """Give by rule who loses votes: voters flagged jointly, and members of coordinated groups."""
    voters = [
        Suspect(one.voter, None, one.max_log_e, LIKE[one.leading], VOTERS)
        for one in report.voters
        if one.flagged_jointly and one.leading and one.max_log_e
    ]
    evidence = {ring.model: ring for ring in report.rings}
    charges = report.charges
    members = [
        Suspect(
            one.voter,
            one.model,
            evidence[one.model].log_evidence,
            ring_reason(evidence[one.model].direction, one.model),
            RINGS,
        )
        for one in report.members
        if (one.voter, one.model) in charges[RINGS]
    ]
    return {VOTERS: voters, RINGS: members}


def apply(
    store: Store, report: VotersReport, now: datetime, by: str = people.TERMINAL
) -> tuple[dict[str, Any], ...]:
    """Exclude what the rules name from `DEFAULT`, and note who did, all in one transaction.

    A rule that would exclude more than `MOST` of the votes is held: it excludes nothing, and
    leaderboards say so. A vote that was readmitted is not excluded again by a rule.

    Returns
    -------
    tuple of dict
        Of each ``rule``: the ``voters`` and ``votes`` newly excluded, or that a held rule would
        have excluded; the ``share`` of the votes that count without exclusions, all that it
        excludes, or would; and whether it is ``held``.

    Raises
    ------
    StoreError
        If the log cannot be read or written.
    """
    with store.writing() as session:
        counting = _counting(blocks.columns(session, DEFAULT))
        rules = voting.rules(session, DEFAULT.name)
        standing = Counter(rule for rule in rules.values() if rule != READMITTED)
        votes = len(counting) + standing.total()
        applied = []
        for rule, charged in _accused(report).items():
            # the battles whose votes each loses, of those on which there is no row yet
            named = {(one.voter, one.model): one for one in charged}
            meant: dict[Suspect, list[str]] = defaultdict(list)
            for vote in counting:
                charges = (named.get((vote.voter, model)) for model in (None, *vote.models))
                charge = next(filter(None, charges), None)
                if charge and vote.battle not in rules:
                    meant[charge].append(vote.battle)
            fresh = sum(map(len, meant.values()))
            share = (fresh + standing[rule]) / max(1, votes)
            done = _applied(rule, len(meant), fresh, share)
            applied.append(done)
            outcome = Grounds(rule, __version__, HELD if done["held"] else APPLIED)
            voting.flag(session, outcome, now, score=share)
            for person, battles in meant.items() if not done["held"] else ():
                grounds = Grounds(rule, __version__, person.reason)
                voting.flag(session, grounds, now, voter=person.voter, score=person.evidence)
                voting.exclude_votes(session, DEFAULT.name, battles, grounds, now)
                rules |= dict.fromkeys(battles, rule)
            people.note(session, by, APPLY, rule, done, now)
    return tuple(applied)


def _counting(votes: LoggedVotes) -> list[_Ballot]:
    rows = zip(*map(votes.values, ("battle", "voter", *LOGGED_SIDES)), strict=True)
    return [
        _Ballot(battle, voter, (a, b)) for battle, voter, a, b in compress(rows, votes.counted)
    ]


class VoterCheck:
    """Examines the voters in a thread of its own, one examination at a time.

    Parameters
    ----------
    now : callable
        Time now, in UTC.
    """

    def __init__(self, store: Store, now: Callable[[], datetime]) -> None:
        self._store = store
        self._now = now
        self._turn = threading.Lock()
        self._newest: tuple[VotersReport, dict[str, Any]] | None = None
        self.problem: str | None = None
        """Why the last attempt gave nothing, as a sentence; None if it did."""

    @property
    def examining(self) -> bool:
        """Whether an examination is under way."""
        return self._turn.locked()

    @property
    def newest(self) -> dict[str, Any] | None:
        """The last examination; None before the first.

        When it was made (``at``), of how many ``votes`` that count and ``voters``, examined or
        not; the ``suspects``, those of most evidence first; and ``notes`` on what it means and
        what it does not.
        """
        return self._newest[1] if self._newest else None

    def begin(self) -> None:
        """Begin an examination, unless one is under way."""
        if self._turn.acquire(blocking=False):
            threading.Thread(target=self._examine, name="voters", daemon=True).start()

    def apply(self, by: str) -> tuple[dict[str, Any], ...]:
        """Exclude what the rules name by the newest examination: see `apply`.

        Raises
        ------
        RoomError
            If there is none.
        StoreError
            If the log cannot be read or written.
        """
        if self._newest is None:
            raise RoomError(Sentence("Examine the voters first: there is nothing to go by yet."))
        return apply(self._store, self._newest[0], self._now(), by)

    def _examine(self) -> None:
        try:
            report = check_source(self._store.read(blocks.columns, DEFAULT))
            self._newest, self.problem = (report, _examination(report, self._now())), None
        except (ArenaError, RatingError) as error:
            self.problem = error.args[0]
        except Exception:
            logger.exception("The check of voters ended in a fault of ours")
            self.problem = Sentence("It ended with an internal error; see the arena's log.")
        finally:
            self._turn.release()


def _examination(report: VotersReport, at: datetime) -> dict[str, Any]:
    charged = [*chain.from_iterable(_accused(report).values())]
    known = {one.voter for one in charged}
    others = [
        Suspect(one.voter, one.model, one.max_log_e, LIKE[one.leading], None)
        for one in report.flagged
        if one.voter not in known and one.leading and one.max_log_e is not None
    ]
    suspects = sorted(charged + others, key=lambda one: (one.rule is None, -one.evidence))
    return {
        "at": at,
        "votes": report.votes,
        "voters": len(report.voters),
        "suspects": suspects[:MOST_SHOWN],
        "notes": report.notes,
    }
