"""What a judge is asked for its card, made of pairs of responses that people voted on."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from judge.case import Case, Message
from judge.probe.doses import Place, doses
from judge.probe.people import VotedPairs
from judge.probe.perturb import PERTURBATIONS, RENAMED_LABELS, Kind

SIDE_SWAP = "side swap"
JUDGED = (*PERTURBATIONS, RENAMED_LABELS)


class Group(StrEnum):
    """What a question is for."""

    AS_IS = "as it is"
    SUPERFICIAL = "superficial"
    MEANING = "meaning"
    ITSELF = "itself"
    REMOVAL = "removal"
    INSERTION = "insertion"


@dataclass(frozen=True, slots=True)
class Trial:
    """One question to a judge, in the order in which it is to be shown.

    Attributes
    ----------
    name : str
        Of the perturbation; empty without one.
    dose : float
        Of what was removed or inserted; 0 for a response beside itself.
    row : int
        The pair that it was made of.
    turned : bool
        Whether the pair's response B, or the changed copy, stands first.
    """

    group: Group
    name: str
    dose: float
    row: int
    prompt: str
    first: str
    second: str
    turned: bool

    @property
    def case(self) -> Case:
        """The question as a judge sees it: a case to be asked as given, in this order alone."""
        return Case((Message("user", self.prompt),), self.first, self.second)


def trials_of(voted: VotedPairs, row: int, rng: np.random.Generator) -> Iterator[Trial]:
    """Yield what is asked about one pair.

    The pair itself; both responses under each superficial perturbation, and their sides swapped;
    one response, by a coin, beside its copy under each perturbation that changes the meaning,
    beside itself, and beside copies with each dose removed or inserted at one place, drawn. On
    which side the copy stands is a coin each time.
    """
    prompt, pair = voted.prompts[row], (voted.responses_a[row], voted.responses_b[row])
    yield Trial(Group.AS_IS, "", 0, row, prompt, *pair, False)
    yield Trial(Group.SUPERFICIAL, SIDE_SWAP, 0, row, prompt, *pair[::-1], True)
    for each in JUDGED:
        if each.kind is Kind.SUPERFICIAL:
            changed = (each.apply(pair[0], rng), each.apply(pair[1], rng))
            if changed != pair:
                yield Trial(Group.SUPERFICIAL, each.name, 0, row, prompt, *changed, False)
    original = pair[int(rng.integers(2))]
    for group, name, dose, copy in _copies(original, _other(voted, row, rng), rng):
        turned = bool(rng.integers(2))
        shown = (copy, original) if turned else (original, copy)
        yield Trial(group, name, dose, row, prompt, *shown, turned)


def _copies(
    original: str, foreign: str, rng: np.random.Generator
) -> Iterator[tuple[Group, str, float, str]]:
    for each in JUDGED:
        if each.kind is Kind.MEANING:
            copy = each.apply(original, rng)
            if copy != original:
                yield Group.MEANING, each.name, 0, copy
    yield Group.ITSELF, "", 0, original
    place = list(Place)[int(rng.integers(len(Place)))]
    for one in doses(original, foreign):
        if one.place is place:
            yield (Group.REMOVAL if one.removal else Group.INSERTION), "", one.dose, one.text


def _other(voted: VotedPairs, row: int, rng: np.random.Generator) -> str:
    """Draw the responses to another prompt, or to none where there is no other."""
    others = np.flatnonzero(voted.prompt != voted.prompt[row])
    if not len(others):
        return ""
    other = int(rng.choice(others))
    return f"{voted.responses_a[other]} {voted.responses_b[other]}"
