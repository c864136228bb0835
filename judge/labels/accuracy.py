"""Accuracy of rule-based taggers, corrected label shares, and names that reveal an author.

`accuracies` compares every tagger with samples labelled by hand; `shares` gives how often each
label occurs, raw and corrected for the tagger's errors. `self_naming` finds whether an answer
names its author: a model, its family or its vendor, in the first person. `names_in_runs` finds
names of models and vendors in the steps of agents.
"""

import math
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Literal

import numpy as np

from judge.case import Step
from judge.ifeval import Share, share
from judge.labels.taggers import CATEGORIES, INTENTS, OTHER, REFUSAL, UNKNOWN, Label, tag
from judge.replies import refuses
from judge.studies.alternative import Counted, corrected_rate
from judge.studies.estimates import Estimate
from judge.tables.items import RatingItem, Response
from rating.errors import NotIdentifiedError
from rating.typing import Floats

# Self-naming in answers


VERSION = "1"
"""Of the rules in `self_naming.toml`; another version is another set of rules."""

_FORMS = tomllib.loads((files("judge.labels") / "self_naming.toml").read_text("utf-8"))
_MODELS, _VENDORS = ("|".join(_FORMS[kind]) for kind in ("models", "vendors"))

_QUOTED, _UNSURE = (re.compile(_FORMS["cited"][name]) for name in ("quoted", "unsure"))


@dataclass(frozen=True, slots=True)
class SelfNaming:
    """A name in an answer.

    Attributes
    ----------
    kind : {"self", "mention"}
        ``self`` where the answer says that it is its author's; else it speaks of others.
    name : str
        As it stands in the answer.
    """

    kind: Literal["self", "mention"]
    name: str


def self_naming(answer: str, names: Collection[str] = ()) -> SelfNaming | None:
    """Find the first name by which an answer names its author; else the first that it mentions.

    Parameters
    ----------
    names : collection of str
        Of models and vendors of the roster, besides the known ones.

    Examples
    --------
    >>> self_naming("I am GPT-4, made by OpenAI.").kind, self_naming("I like GPT-4.").kind
    ('self', 'mention')
    >>> self_naming("I am Quartz.", ["Quartz"]).name
    'Quartz'
    """
    text = _QUOTED.sub(lambda match: " " * len(match[0]), answer)
    text = re.sub(r"[*_]{1,2}(?=\S)|(?<=\S)[*_]{1,2}", "", text)
    selves, any_name = _rules(tuple(sorted(names)))
    for rule in selves:
        for match in rule.finditer(text):
            if not _UNSURE.search(text[: match.start()]):
                return SelfNaming("self", match["name"])
    mention = any_name.search(answer)
    return mention and SelfNaming("mention", mention[0])


@lru_cache(maxsize=64)
def _rules(names: Sequence[str]) -> tuple[list[re.Pattern[str]], re.Pattern[str]]:
    own = "|".join([*map(re.escape, names), _MODELS])
    known = f"{own}|{_VENDORS}"
    parts = _FORMS["parts"] | {
        "name": rf"(?P<name>(?i:\b(?:{known})))(?:[-\d.]\w*)*(?!\w)",
        "model": rf"(?P<name>(?i:\b(?:{own})))(?:[-\d.]\w*)*{_FORMS['parts']['surname']}",
        "known": known,
        "vendors": _VENDORS,
    }
    rules = []
    for rule in _FORMS["rules"]:
        for name, part in parts.items():
            rule = rule.replace(f"{{{name}}}", part)
        rules.append(re.compile(rule))
    return rules, re.compile(rf"\b(?:{known})(?!\w)", re.I)


# Accuracy on labelled samples


YES_NO = ("hard", "instructions")
BY_PROMPT = ("category", "language", "intent", *YES_NO)
"""Labels that `accuracy_of` can compare with the sample."""
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
    """Hold `self_naming` against a sample: rows its rules were fitted to, and not.

    The rules were improved on every other row, from the first on; the rest was not looked at.
    """
    named = [(by_hand == "self", _is_self(_unescaped(text))) for by_hand, text in _sample(NAMINGS)]
    return compared("development", named[0::2]), compared("held-out", named[1::2])


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
    rows: list[tuple[str, ...]] = [("language", n, n, in_words(named), in_words(language), "–")]
    for one in accuracies().values():
        with_label = str(one.true_positives + one.false_negatives)
        left = "–" if one.attenuation is None else f"{one.attenuation:.2f}"
        figures = (in_words(one.precision), in_words(one.recall), left)
        rows.append((one.facet, str(one.rows), with_label, *figures))
    return rows


def in_words(one: Share) -> str:
    """Give a rate with its interval."""
    return f"{one.rate:.2f} ({one.low:.2f} to {one.high:.2f})" if one.n else "–"


# Shares of labels


SHOWN = ("category", "language", "intent", "hard", "instructions", *CATEGORIES, "refusal")
"""Facets whose values are names; ``no`` is not shown."""


def shares(counts: Mapping[tuple[str, str], int], *, by_rules: bool = True) -> dict[str, Any]:
    """Give the shares of labels, by facet, the most frequent first.

    Parameters
    ----------
    counts : mapping of (str, str) to int
        By facet and value.
    by_rules : bool
        Whether the labels are those of the rules, whose errors are known.

    Returns
    -------
    dict
        ``prompts``, how many there are; and ``labels``: ``facet``, ``value``, ``n``, ``share``,
        and ``corrected`` with ``lower`` and ``upper`` where the label is one of yes and no whose
        tagger's errors are known (`Accuracy.corrected`).

    Examples
    --------
    >>> few = shares({("category", "code"): 3, ("category", "other"): 1, ("code", "yes"): 3})
    >>> few["prompts"], [(one["facet"], one["value"], one["share"]) for one in few["labels"]]
    (4, [('category', 'code', 0.75), ('category', 'other', 0.25), ('code', 'yes', 0.75)])
    """
    n = sum(count for (facet, _), count in counts.items() if facet == "category")
    rows: list[dict[str, Any]] = [
        {"facet": facet, "value": value, "n": count, "share": count / n}
        for name in SHOWN
        for (facet, value), count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        if facet == name and value != "no"
    ]
    for row in rows if by_rules else ():
        known = _accuracy(row["facet"], row["value"])
        true = None if known is None else known.corrected(row["n"], n)
        if true is not None:
            row |= {"corrected": true.value, "lower": true.lower, "upper": true.upper}
    return {"prompts": n, "labels": rows}


def _accuracy(facet: str, value: str) -> Accuracy | None:
    """Return how right the rules are about a value, where that is measured."""
    named = facet == "intent" and value in MEASURED_INTENTS
    tagger = value if named else facet if value == "yes" else ""
    return accuracies()[tagger] if tagger else None


# Names in runs of agents


_EVERYDAY = {"amazon", "bard", "falcon", "google", "granite", "inflection", "jamba", "meta"} | {
    "microsoft", "nova", "phi", "pi", "yi", "zephyr"
}  # fmt: skip
"""Names that are words of the world as well: only the name of a tool is flagged for them."""
_IDS = r"(?:toolu_|chatcmpl-|msg_0)\w{6,}|call_\w{20,}"
"""Ids that an endpoint of one kind gives."""
_TOOLS = r"str_replace_based_edit_tool|(?:web_search|computer_use)_preview|[a-z_]+_20\d{6}"
"""Names of tools that one vendor's endpoint gives."""
_SOLVERS = {"react"}
"""Names of Inspect's own solvers that are words of the world as well: they say of no run whose."""
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|_")


@dataclass(frozen=True, slots=True)
class _RunName:
    """A name that a rater would read.

    Attributes
    ----------
    place : str
        Where it is, such as "step 3, name of a tool".
    words : str
        As they stand there.
    """

    item: str
    system: str
    place: str
    words: str


def names_in_runs(items: Sequence[RatingItem]) -> list[_RunName]:
    """List what in runs names a model, a scaffold or a vendor, each name once a run.

    Names of the models and scaffolds of these items are flagged wherever they stand, and so are
    ids that one vendor's endpoint gives. Known models and vendors are flagged in names of tools
    and arguments, and in what the agent and its instructions say, there without those that are
    everyday words; what a tool gave is of the world, and known names stay. What the task says
    itself is not flagged.
    """
    own = {name for item in items for one in item.responses for name in _own(one)}
    flagged = [
        _RunName(item.item, one.model, place, words)
        for item in items
        for one in item.responses
        for place, words in _in_response(item, one, own)
    ]
    once = {(one.system, one.place, one.words, one.item): one for one in flagged}
    return list(once.values())


def tools_of_one(items: Sequence[RatingItem]) -> dict[str, str]:
    """Give the tools that one system alone calls, and that system: a rater may learn them."""
    systems: dict[str, set[str]] = defaultdict(set)
    for one in (one for item in items for one in item.responses if one.run):
        for step in one.run.steps if one.run else ():
            if step.kind == "tool_call":
                systems[step.name].add(one.model)
    return {tool: next(iter(using)) for tool, using in sorted(systems.items()) if len(using) == 1}


def _own(one: Response) -> Iterator[str]:
    """Give the names of a system's parts: whole, without settings, and without an organisation."""
    for name in (one.run.model, one.run.scaffold) if one.run else ():
        if name is not None:
            bare = name.split(" (")[0]
            yield from {name, bare, bare.rsplit("/", 1)[-1]} - _SOLVERS - {""}


def _in_response(
    item: RatingItem, one: Response, own: Collection[str]
) -> Iterator[tuple[str, str]]:
    task = "\n".join(message.content for message in item.messages)
    asked = {words.lower() for words in _matches("name", task, own)}
    texts = [("outcome", "said", message.content) for message in one.turns]
    for n, step in enumerate(one.run.steps if one.run else (), 1):
        texts += [(f"step {n}, {place}", rule, text) for place, rule, text in _texts(step)]
    for place, rule, text in texts:
        for words in _matches(rule, text, own):
            if words.lower() not in asked:
                yield place, words


def _texts(step: Step) -> Iterator[tuple[str, str, str]]:
    """Give the texts of a step, each with its place and by which rule it is read."""
    if step.name:
        yield "name of a tool", "name", step.name
    if step.arguments:
        yield "arguments", "said", step.arguments
    if step.text:
        yield (
            step.kind.replace("_", " "),
            "given" if step.kind == "tool_result" else "said",
            step.text,
        )


def _matches(rule: str, text: str, own: Collection[str]) -> Iterator[str]:
    """Give the names in a text: by the rule for names of tools, what is said, what is given."""
    apart = _HUMP.sub(" ", text) if rule == "name" else text.replace("_", " ")
    patterns = _patterns(tuple(sorted(own)))
    for match in patterns["own"].finditer(apart):
        yield match[0]
    for match in patterns["ids"].finditer(text):
        yield match[0]
    if rule == "given":
        return
    for match in patterns["known"].finditer(apart):
        if rule == "name" or match["name"].lower() not in _EVERYDAY:
            yield match[0].rstrip(".-")
    if rule == "name":
        for match in patterns["tools"].finditer(text):
            yield match[0]
    elif (naming := self_naming(text, own)) and naming.kind == "self":
        yield naming.name


@lru_cache(maxsize=8)
def _patterns(own: Sequence[str]) -> Mapping[str, re.Pattern[str]]:
    names = "|".join(re.escape(name) for name in sorted(own, key=len, reverse=True)) or r"(?!)"
    return {
        "own": re.compile(rf"(?<!\w)(?:{names})(?!\w)", re.IGNORECASE),
        "known": re.compile(
            rf"\b(?P<name>{_VENDORS}|{_MODELS})(?:[-\d.]\w*)*(?!\w)", re.IGNORECASE
        ),
        "ids": re.compile(rf"(?<!\w)(?:{_IDS})"),
        "tools": re.compile(rf"(?<!\w)(?:{_TOOLS})(?!\w)", re.IGNORECASE),
    }
