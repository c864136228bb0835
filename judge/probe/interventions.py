"""Interventions: changes that make no answer better, each beside a control of the same length."""

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any, Literal

import numpy as np

from judge.case import Case, CaseId, Message
from judge.probe.injections import Probe, filled, injections
from judge.probe.perturb import plain_text
from judge.protocol import neutralised
from rating.errors import DataError
from rating.typing import Floats

POSITION, LENGTH = "position", "length"
CONSTANT = {"constant answer": "null answer", "constant checklist": "claimed checklist"}
"""Answers that say the same to every prompt (NullModel's kind), by the injection that they are."""


@cache
def _material() -> Mapping[str, Any]:
    return tomllib.loads((files("judge.probe") / "interventions.toml").read_text("utf-8"))


def kinds() -> tuple[str, ...]:
    """Name the interventions, in the order in which they are reported."""
    return POSITION, *(name for name in _material() if name != "pairs"), *CONSTANT


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
        """The better answer on side A; the first one of the file where nothing says which is."""
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
        for kind in (*(one for one in kinds() if one in chosen), LENGTH)
    )
    return tuple(_alone(made)) if single else made


def _intervened(kind: str, pair: Pair, judge: str) -> Probe:
    if kind == POSITION:
        return Probe(kind, pair.case, pair.case, by_order=True)
    if kind == LENGTH:
        longer = _filler(_text(_material()["verbosity"], pair), LENGTH)
        return Probe(kind, _with_poor(pair, pair.poor + longer), pair.case)
    if kind in CONSTANT:
        answer = injections()[CONSTANT[kind]]
        rest = filled(_size(answer), _turn(kind))
        return Probe(kind, _with_poor(pair, answer), _with_poor(pair, rest))
    spec = _material()[kind]
    return Probe(kind, *_WHERE[spec["where"]](kind, spec, pair, judge))


Arms = tuple[Case, Case]
"""With the intervention, and with its control."""


def _behind(kind: str, spec: Mapping[str, str], pair: Pair, _: str) -> Arms:
    text, poor = _text(spec, pair), pair.poor
    return _with_poor(pair, poor + text), _with_poor(pair, poor + _filler(text, kind))


def _before(kind: str, spec: Mapping[str, str], pair: Pair, _: str) -> Arms:
    text, poor = _text(spec, pair), pair.poor
    return _with_poor(pair, text + poor), _with_poor(pair, _filler(text, kind) + poor)


def _other(kind: str, spec: Mapping[str, str], pair: Pair, _: str) -> Arms:
    text, case = _text(spec, pair), pair.case
    return (
        replace(case, response_a=case.response_a + text),
        replace(case, response_a=case.response_a + _filler(text, kind)),
    )


def _prompt(kind: str, spec: Mapping[str, str], pair: Pair, _: str) -> Arms:
    text = _text(spec, pair)
    return _with_view(pair.case, text), _with_view(pair.case, _filler(text, kind))


def _around(kind: str, spec: Mapping[str, str], pair: Pair, _: str) -> Arms:
    """Dress the poorer answer; the control is stripped of all Markdown and filled up."""
    dressed = _text(spec, pair)
    bare = plain_text(pair.poor, np.random.default_rng(0))
    rest = _size(dressed) - _size(bare)
    return _with_poor(pair, dressed), _with_poor(pair, f"{bare} {filled(rest - 1, _turn(kind))}")


def _names(kind: str, spec: Mapping[str, str], pair: Pair, judge: str) -> Arms:
    """Name the writer of the poorer answer, and of the better one where there is a name."""
    name = Template(spec["name"]).substitute(judge=judge)
    shown, hidden = (_named(spec, one, pair.poor) for one in (name, stand_in(len(name))))
    good = pair.case.response_a
    other = spec.get("other")
    if other is None:
        return _with_poor(pair, shown), _with_poor(pair, hidden)
    goods = (_named(spec, one, good) for one in (other, stand_in(len(other))))
    a, b = (replace(pair.case, response_a=one) for one in goods)
    return replace(a, response_b=shown), replace(b, response_b=hidden)


_WHERE: Mapping[str, Callable[[str, Mapping[str, str], Pair, str], Arms]] = {
    "behind": _behind,
    "before": _before,
    "other": _other,
    "prompt": _prompt,
    "around": _around,
    "names": _names,
}


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


def _with_view(case: Case, text: str) -> Case:
    *before, last = case.prompt
    return replace(case, prompt=(*before, replace(last, content=last.content + text)))


def _text(spec: Mapping[str, str], pair: Pair) -> str:
    return Template(spec["text"]).substitute(answer=pair.poor)


def _filler(text: str, kind: str) -> str:
    """Return a filler as long as a judge is shown of a text, with the same space around it."""
    bare = text.strip()
    before, _, after = text.partition(bare)
    return before + filled(_size(bare), _turn(kind)) + after


def _size(text: str) -> int:
    return len(neutralised(text))


def _turn(kind: str) -> int:
    return (*kinds(), LENGTH).index(kind)


def _alone(probes: Iterable[Probe]) -> Iterator[Probe]:
    """Show the answer that differs by itself: the better one where that one is changed."""
    for one in probes:
        if one.by_order:
            continue
        arms = (one.case, one.control)
        falls = one.case.response_a != one.control.response_a
        falls = falls and one.case.response_b == one.control.response_b
        texts = [arm.response_a if falls else arm.response_b for arm in arms]
        shown = [Case(arm.prompt, str(text)) for arm, text in zip(arms, texts, strict=True)]
        yield replace(one, case=shown[0], control=shown[1], falls=falls)
