"""How far people who rate the same items agree, with nobody beside them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from judge.studies.agreement import counts
from judge.studies.alignment import align
from judge.studies.data import labels_of_people
from judge.studies.estimates import FEW_PROMPTS, Estimate
from judge.studies.items import TIE
from judge.studies.options import StudyOptions
from judge.studies.reliability import Ratings, ac1, alpha
from judge.studies.rows import Rows, rows_from
from rating.outcome import Outcome, of_sides
from rating.sentences import Sentence, counted
from rating.typing import Floats, Ints

NO_PAIR = Sentence(
    "No item of two answers has ratings by two people yet: alpha and AC1 are not known."
)
ONE_VALUE = Sentence("All ratings so far say the same: alpha is not defined.")


@dataclass(frozen=True, slots=True)
class ItemAgreement:
    """What was said of an item: how often each, and the share of pairs of raters that agree."""

    item: str
    model_a: int
    tie: int
    model_b: int
    agreed: float


@dataclass(frozen=True, slots=True)
class PeoplesAgreement:
    """Agreement of people.

    Attributes
    ----------
    alpha, ac1 : Estimate
        Krippendorff's alpha and Gwet's AC1, as `judge.studies.rates.agreement` gives them where
        a judge has a verdict on every item.
    by_item : tuple of ItemAgreement
        The items that two people rated, the least agreed on first; the sides as
        `judge.studies.alignment.align` has them.
    warnings : tuple of str
        Why something is not known.
    """

    alpha: Estimate
    ac1: Estimate
    by_item: tuple[ItemAgreement, ...] = ()
    warnings: tuple[str, ...] = ()


NOTHING = Estimate(None, None, None, 0)


USUAL = StudyOptions()


def agreement_of(rows: Rows, options: StudyOptions = USUAL) -> PeoplesAgreement:
    """Estimate how far people agree, by rows that each say who rated which item how.

    Raises
    ------
    DataError
        If an item is on other models in one row than in another.
    """
    aligned = align(rows, rows)
    items, people = aligned.items, labels_of_people(aligned)
    ratings = Ratings.of_labels(items, people, ties=bool((people.label == TIE).any()))
    if not ratings.shared.any():
        return PeoplesAgreement(NOTHING, NOTHING, warnings=(NO_PAIR,))
    by_alpha = alpha(ratings, options.draws())
    warnings = list(aligned.warnings)
    if by_alpha.value is None:
        warnings.append(ONE_VALUE)
    if items.n_prompts < FEW_PROMPTS:
        warnings.append(
            counted(
                "The ratings are on %(n)s prompt: under %(few)s the intervals are too narrow.",
                "The ratings are on %(n)s prompts: under %(few)s the intervals are too narrow.",
                items.n_prompts,
                few=FEW_PROMPTS,
            )
        )
    return PeoplesAgreement(
        by_alpha,
        ac1(ratings, options.draws()),
        _by_item(aligned.sources[0], aligned.item[0], counts(items, people), ratings.pairs),
        tuple(warnings),
    )


def _by_item(rows: Rows, item: Ints, table: Floats, pairs: Floats) -> tuple[ItemAgreement, ...]:
    names = dict(zip(item.tolist(), rows.named("item"), strict=True))
    every = [
        ItemAgreement(
            names[place],
            *(int(a), int(tie), int(b)),
            float(np.trace(both) / both.sum()),
        )
        for place, ((b, tie, a), both) in enumerate(zip(table, pairs, strict=True))
        if place in names and both.any()
    ]
    return tuple(sorted(every, key=lambda one: (one.agreed, one.item)))


def rows_of(ratings: Sequence[Mapping[str, Any]], source: str = "the study") -> Rows:
    """Make rows of ratings that count, as an export of a study has them.

    Those of `read_rows` from the file are the same.
    """
    names = {"item": "item", "voter": "rater", "prompt": "prompt_id"}
    names |= {role: role for role in of_sides("model")}
    signs = {Outcome.A: 1, Outcome.B: -1}
    label = [signs.get(Outcome(row["choice"]), 0) for row in ratings]
    return rows_from(
        {role: [row[name] for row in ratings] for role, name in names.items()}, source, label
    )
