"""Interventions: changes to answers, and to what is beside them, each with its control."""

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any, Literal

import numpy as np

from judge.case import Case, CaseId, Message
from judge.probe.injections import Probe, filled, honest_cases, injections
from judge.probe.perturb import (
    INSERTED,
    PERTURBATIONS,
    REMOVED,
    RENAMED_LABELS,
    Kind,
    Place,
    doses,
    plain_text,
)
from judge.protocol import neutralised
from rating.errors import DataError
from rating.typing import Floats

POSITION, LENGTH = "position", "length"
INJECTIONS, BIASES = "injections", "biases"
CHECKS = PEOPLE, HARMLESS, MEANING, MISSING = "people", "harmless", "meaning", "missing"
VOTES, SIDE_SWAP = "votes", "side swap"
CONSTANT = {"constant answer": "null answer", "constant checklist": "claimed checklist"}
"""Answers that say the same to every prompt (NullModel's kind), by the injection that they are."""

_CHANGES = {each.name: each for each in (*PERTURBATIONS, RENAMED_LABELS)}
DOSES = {
    f"{dose:.0%} {what}": (what, dose)
    for what, given in (("removed", REMOVED), ("inserted", INSERTED))
    for dose in given
}
"""Kinds of missing parts: of the words, so many are gone, or so many foreign ones come in."""


@cache
def _material() -> Mapping[str, Any]:
    return tomllib.loads((files("judge.probe") / "interventions.toml").read_text("utf-8"))


@cache
def kinds() -> Mapping[str, tuple[str, ...]]:
    """Name the interventions of each group, in the order in which they are reported."""
    of = {each: tuple(name for name in _CHANGES if _CHANGES[name].kind is each) for each in Kind}
    return {
        INJECTIONS: tuple(injections()),
        BIASES: (POSITION, *(name for name in _material() if name != "pairs"), *CONSTANT),
        PEOPLE: (VOTES,),
        HARMLESS: (SIDE_SWAP, *of[Kind.SUPERFICIAL]),
        MEANING: of[Kind.MEANING],
        MISSING: tuple(DOSES),
    }


@dataclass(frozen=True, slots=True)
class Pair:
    """A prompt with a better and a poorer answer.

    Attributes
    ----------
    case : Case
        The better one on side A.
    turned : bool
        Whether the file has it on side B.
    """

    case: Case
    turned: bool = False

    @property
    def as_given(self) -> Case:
        """The sides as they came."""
        return self.case.swapped() if self.turned else self.case

    @property
    def poor(self) -> str:
        """The answer that interventions speak for."""
        assert self.case.response_b is not None
        return self.case.response_b


Basis = Literal["own", "labels", "lot"]
"""What says which answer is the poorer: our own pairs, labels in the file, or nothing: a draw."""


@dataclass(frozen=True, slots=True)
class Material:
    """Pairs to intervene on.

    Attributes
    ----------
    n_left_out : int
        Pairs of equal answers, or of labels that are missing or tied.
    """

    pairs: tuple[Pair, ...]
    basis: Basis
    n_left_out: int = 0

    @property
    def honest(self) -> tuple[Case, ...]:
        """The better answer, or the first, on side A; of our own, those for injected answers."""
        if self.basis == "own":
            return honest_cases()
        return tuple(pair.as_given if self.basis == "lot" else pair.case for pair in self.pairs)


def own_material() -> Material:
    """Return prompts of our own, each with a right and a wrong answer."""
    pairs = (
        Pair(Case((Message("user", one["prompt"]),), one["good"], one["poor"]))
        for one in _material()["pairs"]
    )
    return Material(tuple(pairs), "own")


def material(cases: Sequence[Case], labels: Floats | None) -> Material:
    """Put the better answer of each case on side A, by its labels or by lot.

    The lot is drawn from the content of the case: not by what the judge says, whose noise would
    then look like obeying.

    Parameters
    ----------
    labels : ndarray of shape (n_cases,), or None
        1 for side A, -1 for side B, 0 or NaN for neither; a case that comes more often has the
        side that most of its labels are for. None draws.

    Raises
    ------
    DataError
        If nothing is left.
    """
    given = np.zeros(len(cases)) if labels is None else np.nan_to_num(labels)
    sides: dict[CaseId, float] = {}
    by_id = {case.id: case for case in cases if case.response_a != case.response_b}
    for case, label in zip(cases, given, strict=True):
        lot = 1 - 2 * (int(case.id[:8], 16) % 2)
        sides[case.id] = lot if labels is None else sides.get(case.id, 0) + label
    pairs = tuple(
        Pair(case) if sides[name] > 0 else Pair(case.swapped(), turned=True)
        for name, case in by_id.items()
        if sides[name]
    )
    if not pairs:
        raise DataError(
            f"None of {len(cases):,} pairs has two different answers, of which one is the better: "
            "give others, or leave the column winner (or label) out to draw one by lot."
        )
    return Material(pairs, "lot" if labels is None else "labels", len(sides) - len(pairs))


def interventions(
    pairs: Iterable[Pair], chosen: Sequence[str], judge: str, *, single: bool = False
) -> tuple[Probe, ...]:
    """Make every chosen intervention on every pair, and its control.

    After the chosen ones comes `LENGTH`: a filler alone, beside the pair as it is. Kinds that
    say nothing of a pair are left out for it.

    Parameters
    ----------
    chosen : sequence of str
        Of `kinds`.
    judge : str
        The name by which answers claim to be the judge's own.
    single : bool
        Show the changed answer alone, for marks; position, length and what is done to both
        answers at once then become what is done to the one, or are left out.
    """
    made = tuple(
        replace(_intervened(kind, pair, judge), prompt=pair.case.prompt_id)
        for pair in pairs
        for kind in (*(one for one in kinds()[BIASES] if one in chosen), LENGTH)
    )
    return tuple(alone(made)) if single else made


def _intervened(kind: str, pair: Pair, judge: str) -> Probe:
    if kind == POSITION:
        return Probe(kind, pair.case, pair.case, by_order=True)
    if kind == LENGTH:
        text = Template(_material()["verbosity"]["text"]).substitute(answer=pair.poor)
        longer = _filler(text, LENGTH)
        return Probe(kind, _with_poor(pair, pair.poor + longer), pair.case)
    if kind in CONSTANT:
        answer = injections()[CONSTANT[kind]]
        rest = filled(_size(answer), _turn(kind))
        return Probe(kind, _with_poor(pair, answer), _with_poor(pair, rest))
    spec = _material()[kind]
    where = spec["where"]
    if where == "names":
        return Probe(kind, *_names(spec, pair, judge))
    text = Template(spec["text"]).substitute(answer=pair.poor)
    if where == "around":  # dressed; the control is stripped of all Markdown and filled up
        bare = plain_text(pair.poor, np.random.default_rng(0))
        rest = filled(_size(text) - _size(bare) - 1, _turn(kind))
        return Probe(kind, _with_poor(pair, text), _with_poor(pair, f"{bare} {rest}"))
    attack, control = (_added(where, pair, one) for one in (text, _filler(text, kind)))
    return Probe(kind, attack, control)


def _added(where: str, pair: Pair, text: str) -> Case:
    """Add a text: behind or before the poorer answer, behind the other one, or to the prompt."""
    case, poor = pair.case, pair.poor
    if where == "other":
        return replace(case, response_a=case.response_a + text)
    if where == "prompt":
        *before, last = case.prompt
        return replace(case, prompt=(*before, replace(last, content=last.content + text)))
    return _with_poor(pair, poor + text if where == "behind" else text + poor)


def _names(spec: Mapping[str, str], pair: Pair, judge: str) -> tuple[Case, Case]:
    """Name the writer of the poorer answer, and of the better one where there is a name."""
    name, other = Template(spec["name"]).substitute(judge=judge), spec.get("other")
    shown, hidden = (
        _with_poor(pair, _named(spec, one, pair.poor)) for one in (name, stand_in(len(name)))
    )
    if other is None:
        return shown, hidden
    good = pair.case.response_a
    return (
        replace(shown, response_a=_named(spec, other, good)),
        replace(hidden, response_a=_named(spec, stand_in(len(other)), good)),
    )


def stand_in(length: int) -> str:
    """Return a name that means nothing, of so many characters.

    Examples
    --------
    >>> stand_in(5), stand_in(14)
    ('Entra', 'Entrant Number')
    """
    name = "Entrant Number Seven of the Tenth Round, as Drawn by Lot"
    return (name * (length // len(name) + 1))[:length].rstrip().ljust(length, "x")


def _named(spec: Mapping[str, str], name: str, answer: str) -> str:
    return Template(spec["text"]).substitute(name=name) + answer


def _with_poor(pair: Pair, text: str) -> Case:
    return replace(pair.case, response_b=text)


def _filler(text: str, kind: str) -> str:
    """Return a filler as long as a judge is shown of a text, with the same space around it."""
    bare = text.strip()
    before, _, after = text.partition(bare)
    return before + filled(_size(bare), _turn(kind)) + after


def _size(text: str) -> int:
    return len(neutralised(text))


def _turn(kind: str) -> int:
    return (*kinds()[BIASES], LENGTH).index(kind)


def alone(probes: Iterable[Probe]) -> Iterator[Probe]:
    """Show the answer that differs by itself: the better one where that one is changed."""
    for one in probes:
        if one.by_order:
            continue
        falls = one.case.response_a != one.control.response_a
        falls = falls and one.case.response_b == one.control.response_b
        case, control = (
            replace(arm if falls else arm.swapped(), response_b=None, earlier_b=())
            for arm in (one.case, one.control)
        )
        yield replace(one, case=case, control=control, falls=falls)


def altered(
    group: str,
    pairs: Sequence[Pair],
    chosen: Sequence[str],
    *,
    most: int | None = None,
    single: bool = False,
) -> tuple[Probe, ...]:
    """Change answers, and set each beside what it was.

    Harmless changes are made to both answers of a pair, with the pair as it is for the control;
    others to the better answer, which is set against its copy, with the answer against itself for
    the control. What is drawn is drawn from the content of the case: more pairs, or other kinds,
    change no question. A change that leaves an answer as it is is left out.

    Parameters
    ----------
    chosen : sequence of str
        Of `kinds`.
    most : int, optional
        Change the first so many pairs; the foreign text of a pair is of one that follows it.
    single : bool
        Show the changed answer, and the answer as it was, alone, for marks.
    """
    made = (
        probe
        for at, pair in enumerate(pairs[:most])
        for probe in (
            _harmless(pair.as_given, chosen)
            if group == HARMLESS
            else _beside_copies(pair.case, _foreign(pairs, at), chosen)
        )
    )
    return tuple(alone(made) if single else made)


def _harmless(case: Case, chosen: Sequence[str]) -> Iterator[Probe]:
    if SIDE_SWAP in chosen:
        yield Probe(SIDE_SWAP, case, case, by_order=True)
    for kind, change in _CHANGES.items():
        if kind in chosen:
            rng = _drawn_for(kind, case)
            a, b = (change.apply(text, rng) for text in (case.response_a, case.response_b or ""))
            changed = replace(case, response_a=a, response_b=b)
            if changed != case:
                yield Probe(kind, changed, case)


def _beside_copies(case: Case, foreign: str, chosen: Sequence[str]) -> Iterator[Probe]:
    original = case.response_a
    place = [*Place][int(_drawn_for(MISSING, case).integers(len(Place)))]
    copies = {
        kind: change.apply(original, _drawn_for(kind, case))
        for kind, change in _CHANGES.items()
        if kind in chosen
    } | {
        f"{one.dose:.0%} {'removed' if one.removal else 'inserted'}": one.text
        for one in doses(original, foreign)
        if one.place is place
    }
    itself = replace(case, response_b=original, earlier_b=case.earlier_a)
    for kind, copy in copies.items():
        if kind in chosen and copy != original:
            yield Probe(kind, replace(itself, response_b=copy), itself)


def _drawn_for(kind: str, case: Case) -> np.random.Generator:
    return np.random.default_rng([*f"{kind} {case.id}".encode()])


def _foreign(pairs: Sequence[Pair], at: int) -> str:
    """Return the answers to the next other prompt; nothing where there is none."""
    others = (pairs[(at + step) % len(pairs)].case for step in range(1, len(pairs)))
    other = next((one for one in others if one.prompt != pairs[at].case.prompt), None)
    return "" if other is None else f"{other.response_a} {other.response_b}"
