"""How right the taggers are, on samples labelled by hand, and what that does to shares."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from judge.ifeval.accuracy import Share, share
from judge.labels.refusals import REFUSAL
from judge.labels.self_naming import self_naming
from judge.labels.taggers import CATEGORIES, INTENTS, OTHER, UNKNOWN, Label, tag
from judge.refusals import refuses
from judge.studies.corrected import Counted, corrected_rate
from judge.studies.estimates import Estimate
from rating.errors import NotIdentifiedError
from rating.typing import Floats

YES_NO = ("hard", "instructions")
BY_PROMPT = ("category", "language", "intent", *YES_NO)
"""Labels that `accuracy_of` can hold against the sample."""
MEASURED_INTENTS = INTENTS[:2]
"""The third is the rest."""
NAMINGS = "namings.tsv"
PROMPTS = "prompts.tsv"
LEAST = 100
"""Labelled rows from which a share, or a difference, is corrected."""
ROUNDS = 4000
"""Draws behind the interval of a corrected difference."""


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How right a tagger is on a labelled sample.

    Attributes
    ----------
    facet : str
    true_positives, false_positives, false_negatives, true_negatives : int
        Rows that carry the label by hand or not, and by the tagger or not.
    """

    facet: str
    true_positives: int
    false_positives: int
    false_negatives: int
    true_negatives: int

    @property
    def rows(self) -> int:
        """Rows of the sample."""
        return sum(
            (self.true_positives, self.false_positives, self.false_negatives, self.true_negatives)
        )

    @property
    def precision(self) -> Share:
        """Share of tagged rows that are rightly so, with Wilson's interval."""
        return _share(self.true_positives, self.false_positives)

    @property
    def recall(self) -> Share:
        """Share of rows with the label that are tagged."""
        return _share(self.true_positives, self.false_negatives)

    @property
    def attenuation(self) -> float | None:
        """Precision less the share of untagged rows that carry the label.

        A difference between tagged and untagged prompts is that many times the true one, where
        the mix of prompts is as in the sample. None where all rows are tagged, or none is.
        """
        untagged = self.false_negatives + self.true_negatives
        if not 0 < untagged < self.rows:
            return None
        return self.precision.rate - self.false_negatives / untagged

    def corrected(self, tagged: int, n: int, *, level: float = 0.95) -> Estimate | None:
        """Correct the share of tagged prompts for the tagger's errors (Rogan and Gladen).

        The tagger must err as often on these prompts as on the sample, of either kind.

        Returns
        -------
        Estimate or None
            None with fewer than `LEAST` labelled rows, or where the tagger says nothing.
        """
        if self.rows < LEAST:
            return None
        n_true = self.true_positives + self.false_negatives
        n_false = self.true_negatives + self.false_positives
        try:
            return corrected_rate(
                Counted(tagged, n),
                Counted(self.true_negatives, n_false),
                Counted(self.true_positives, n_true),
                level=level,
            )
        except NotIdentifiedError:
            return None

    def unattenuated(
        self, effect: float, se: float, *, tagged: float, df: float = math.inf, level: float = 0.95
    ) -> Estimate | None:
        """Correct a difference between tagged and untagged prompts for the tagger's errors.

        With sensitivity s and false positives f of the sample, p = (t - f) / (s - f) of the
        prompts carry the label where t are tagged (Rogan and Gladen), and a difference d between
        those with it and those without shows as ``(precision - leak) d``, which is
        ``p (1 - p) (s - f) / (t (1 - t)) d``. The interval is of `ROUNDS` draws: s and f from
        their Beta posteriors (Jeffreys), the effect from Student's t; a draw that leaves nothing
        of the difference counts as infinite.

        Parameters
        ----------
        effect, se : float
            The difference as it shows, and its standard error.
        tagged : float
            Share of tagged prompts, t: their mix need not be that of the sample.
        df : float
            Degrees of freedom of ``se``.

        Returns
        -------
        Estimate or None
            Of n labelled rows. None with fewer than `LEAST` of them, where none carries the
            label, and where the tagger says it less often than it errs.

        References
        ----------
        .. [1] W. J. Rogan and B. Gladen, "Estimating prevalence from the results of a screening
           test", American Journal of Epidemiology 107(1), 1978, pp. 71-76.
        """
        n_true = self.true_positives + self.false_negatives
        n_false = self.true_negatives + self.false_positives
        if self.rows < LEAST or not n_true or not n_false or not 0 < tagged < 1:
            return None
        rng = np.random.default_rng(0)
        s = _estimated(self.true_positives, n_true, rng)
        f = _estimated(self.false_positives, n_false, rng)
        share = np.clip((tagged - f) / (s - f), 0.0, 1.0)
        left = share * (1 - share) * (s - f) / (tagged * (1 - tagged))
        if left[0] <= 0:
            return None
        off = rng.standard_normal(ROUNDS) if df == math.inf else rng.standard_t(df, ROUNDS)
        drawn, share = effect + se * off, left[1:]
        known = np.where(share > 0, share, 1.0)
        corrected = np.where(share > 0, drawn / known, np.copysign(np.inf, drawn))
        ends = [(1 - level) / 2, (1 + level) / 2]
        lower, upper = np.quantile(corrected, ends, method="nearest").tolist()
        return Estimate(effect / float(left[0]), lower, upper, self.rows)


def _estimated(hits: int, n: int, rng: np.random.Generator) -> Floats:
    """Return a share, and draws from what is known of it."""
    return np.asarray(np.r_[hits / n, rng.beta(hits + 0.5, n - hits + 0.5, ROUNDS)])


def self_naming_accuracy() -> tuple[Accuracy, Accuracy]:
    """Hold `judge.labels.self_naming` against a sample: rows its rules were fitted to, and not.

    The rules were improved on every other row, from the first on; the rest was not looked at.
    """
    named = [(by_hand == "self", _is_self(_unescaped(text))) for by_hand, text in _sample(NAMINGS)]
    return compared("looked at", named[0::2]), compared("not looked at", named[1::2])


def _is_self(answer: str) -> bool:
    naming = self_naming(answer)
    return naming is not None and naming.kind == "self"


def _share(right: int, wrong: int) -> Share:
    return share((str(row), row < right) for row in range(right + wrong))


def compared(facet: str, pairs: Iterable[tuple[bool, bool]]) -> Accuracy:
    """Count rows by what a person and the tagger say of them."""
    counts = Counter(pairs)
    return Accuracy(
        facet,
        true_positives=counts[True, True],
        false_positives=counts[False, True],
        false_negatives=counts[True, False],
        true_negatives=counts[False, False],
    )


def _sample(name: str) -> list[list[str]]:
    text = (files("judge.labels") / name).read_text("utf-8")
    return [row.split("\t") for row in text.splitlines()[1:]]


@cache
def accuracies() -> Mapping[str, Accuracy]:
    """Hold every tagger that says yes or no, and the intents, against the labelled samples."""
    tags, by_hand = _tagged(), [set(labels.split()) for _, labels, _ in _sample(PROMPTS)]
    measured = {
        name: [
            (name in hand, _says(name, labels)) for hand, labels in zip(by_hand, tags, strict=True)
        ]
        for name in (*CATEGORIES, *reversed(YES_NO), *MEASURED_INTENTS)
    }
    answers = _sample("answers.tsv")
    measured[REFUSAL] = [(truth == "yes", refuses(_unescaped(text))) for truth, text in answers]
    return {name: compared(name, pairs) for name, pairs in measured.items()}


def _says(name: str, labels: Mapping[str, Label]) -> bool:
    named = labels["intent"].value
    return named == name if name in MEASURED_INTENTS else labels[name].value == "yes"


@cache
def accuracy_of(facet: str, value: str) -> Accuracy:
    """Hold one value of a label of prompts against the labelled prompts.

    Of other labels, as which of two answers declines, or of two together, there are no rows. Of
    several categories that a person gave a prompt, the first of `CATEGORIES` counts, as with the
    tagger.

    Examples
    --------
    >>> code = accuracy_of("category", "code")
    >>> code.rows, code.true_positives
    (312, 32)
    """
    if facet not in BY_PROMPT:
        return compared(value, ())
    same = [
        (_by_hand(facet, language, {*labels.split()}) == value, tagged[facet].value == value)
        for (language, labels, _), tagged in zip(_sample(PROMPTS), _tagged(), strict=True)
    ]
    return compared(value, same)


def _by_hand(facet: str, language: str, labels: Set[str]) -> str:
    match facet:
        case "language":
            return language
        case "hard" | "instructions":
            return "yes" if facet in labels else "no"
        case "intent":
            return next((name for name in MEASURED_INTENTS if name in labels), INTENTS[-1])
    return next((name for name in CATEGORIES if name in labels), OTHER)


def labelled_prompts() -> list[str]:
    """Give the prompts of the sample."""
    return [_unescaped(prompt) for _, _, prompt in _sample(PROMPTS)]


@cache
def _tagged() -> list[dict[str, Label]]:
    return [tag([prompt]) for prompt in labelled_prompts()]


def _language_accuracy() -> tuple[Share, Share]:
    """Share of rightly named languages, of the rows whose language is named and of all rows."""
    rows = [
        (str(row), language == tagged["language"].value, tagged["language"].value)
        for row, ((language, _, _), tagged) in enumerate(
            zip(_sample(PROMPTS), _tagged(), strict=True)
        )
    ]
    return (
        share((row, right) for row, right, named in rows if named != UNKNOWN),
        share((row, right) for row, right, _ in rows),
    )


def _unescaped(text: str) -> str:
    return text.replace("\\n", "\n")


def table() -> list[tuple[str, ...]]:
    """Lay out every rule: rows, rows with the label, precision, recall, attenuation."""
    named, language = _language_accuracy()
    n = str(language.n)
    rows: list[tuple[str, ...]] = [
        ("language", n, n, in_words(named), in_words(language), "–"),
    ]
    for one in accuracies().values():
        with_label = str(one.true_positives + one.false_negatives)
        left = "–" if one.attenuation is None else f"{one.attenuation:.2f}"
        figures = (in_words(one.precision), in_words(one.recall), left)
        rows.append((one.facet, str(one.rows), with_label, *figures))
    return rows


def in_words(one: Share) -> str:
    """Give a rate with its interval."""
    return f"{one.rate:.2f} ({one.low:.2f} to {one.high:.2f})" if one.n else "–"
