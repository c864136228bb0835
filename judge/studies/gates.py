"""What a judge has to pass to replace human raters, and the verdict of a study in words.

Every threshold of that verdict, and every sentence in it, is in this module.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from judge.studies.estimates import (
    Estimate,
    joined,
    number_of,
    percent,
    percent_of,
    points_of,
    signed_of,
)
from judge.studies.options import Raters
from rating.sentences import plural

Verdict = Literal["yes", "no", "inconclusive"]
Unranked = Literal["", "no_side", "not_identified"]

MIN_PROMPTS = 20
"""Under this many prompts intervals are too narrow to say yes, or that a judge falls short."""
MIN_CASES = 100
"""Items on which a rule and a judge prefer a side, and a vote does: with fewer they are not
compared, and the rule is not mentioned."""
MARGIN = 0.05
"""Agreement by which a judge may fall short of people, at the worst end of the interval, and by
which it must lead a rule that reads nothing, at the best end, to be more than that."""
MOST_NAMED = 3
"""Models, and pairs of them, that a reason names."""
NOT_IDENTIFIED = "Its verdicts determine no finite ratings, although the votes do."
_LEVEL = (
    f"The judge agrees with a person at most {100 * MARGIN:.0f} percentage points less often than "
    "another person does"
)
UNTESTED = f"{_LEVEL}, but favouritism was not tested."
COPIES = 0.95
"""Share of its verdicts from which a judge is said to follow a rule."""
WORTH_SAYING = 20.0
"""Points from which a bias that is certain is named."""

MIN_ITEMS = 30
"""A person needs this many items to be tested."""
MIN_PEOPLE = 3
"""The test needs this many people."""
MIN_MODELS = 4
"""With fewer models it is not tested whether a judge favours one of them."""
FAVOURED = 0.1
"""Share of a win per item beyond which a model is favoured: no yes then."""
PASS = 0.5
"""Share of the tested people that a judge must be able to replace."""

LONGEST = "Longest answer"
MARKDOWN = "More markdown"
FIRST = "Always the first"
RANDOM = "Random"
PHRASES = {
    LONGEST: "choosing the longer answer",
    MARKDOWN: "choosing the answer with more Markdown",
    FIRST: "always choosing the answer shown first",
    RANDOM: "choosing at random",
}
EFFECTS = {
    "position": "being shown first",
    "length": "a response twice as long",
    "format": "twice as much Markdown",
    "refusal": "declining the request",
}
OPENINGS: Mapping[Verdict, str] = {"yes": "Yes.", "no": "No.", "inconclusive": "Inconclusive."}
RATERS: Mapping[Raters, str] = {
    "expert": "experts",
    "skilled": "skilled raters",
    "crowd": "crowd workers",
}


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that reads nothing, beside a judge; ties excluded unless said otherwise.

    Attributes
    ----------
    name : str
        One of `PHRASES`.
    agreement, with_ties : Estimate
        With people.
    lead : Estimate
        By how much the judge agrees with people more, on the items on which the rule prefers a
        side.
    followed : Estimate or None
        Share of these on which the judge states what the rule says; None of a coin.
    """

    name: str
    agreement: Estimate
    with_ties: Estimate
    lead: Estimate
    followed: Estimate | None


@dataclass(frozen=True, slots=True)
class Alternative:
    """A judge by the alternative-annotator test, and what others reach by it, for reference.

    Attributes
    ----------
    winning_rate : float
        Share of the tested people to whom the judge is significantly non-inferior.
    advantage : float
        How often it is equivalent to the person it would replace, on average over people.
    margin : float
        What it may lose to a person.
    people_tested : int
    coin, longest : float or None
        Winning rates of a coin and of picking the longer answer; the latter None where lengths
        are not known.
    items_per_person : float
        Median over the people tested.
    person, person_passed : float or None
        Mean winning rate of a person in the judge's place, and the share of draws in which one
        passes; None where too few items have three voters.
    majority : float
        Winning rate of what most of the others say; no judge has a higher advantage.
    decides_at : int or None
        Items per person that are enough, as `judge.studies.alternative.alternative` has it.
    """

    winning_rate: float
    advantage: float
    margin: float
    people_tested: int
    coin: float
    longest: float | None
    items_per_person: float
    person: float | None
    person_passed: float | None
    majority: float
    decides_at: int | None

    @property
    def reference(self) -> dict[str, dict[str, float] | None]:
        """Winning rates in the judge's place, and the share of draws that pass, for JSON."""
        person = None
        if self.person is not None and self.person_passed is not None:
            person = {"winning_rate": self.person, "passed": self.person_passed}
        passed = float(self.majority >= PASS)
        return {"person": person, "majority": {"winning_rate": self.majority, "passed": passed}}

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the verdict depends on; agreement without ties unless the name says otherwise.

    Attributes
    ----------
    judge, people, highest : Estimate
        Agreement with a person: of the judge, of another person, and the most that is possible.
    judge_with_ties, people_with_ties : Estimate
    gap, gap_with_ties : Estimate
        Agreement of the judge less that of people.
    rules : tuple of Rule
        Those that have `MIN_CASES`.
    alternative : Alternative or None
        None where fewer than `MIN_PEOPLE` can be tested.
    raters : {"expert", "skilled", "crowd"}
    biases : mapping of str to Estimate or None
        By how many points the judge is moved beyond people, by `EFFECTS` and ``self``.
    own_model : str or None
    correlation, correlation_noise_freed : Estimate or None
        Spearman's, of the ratings by the judge with those by people.
    n_prompts : int
    """

    judge: Estimate
    people: Estimate
    highest: Estimate
    judge_with_ties: Estimate
    people_with_ties: Estimate
    gap: Estimate
    gap_with_ties: Estimate
    rules: tuple[Rule, ...]
    alternative: Alternative | None
    raters: Raters
    biases: Mapping[str, Estimate | None]
    own_model: str | None
    correlation: Estimate | None
    correlation_noise_freed: Estimate | None
    n_prompts: int
    favouritism: Mapping[str, Estimate]
    reversed_pairs: tuple[tuple[str, str], ...]
    unranked: Unranked

    @property
    def biased(self) -> dict[str, Estimate]:
        """The models that are certainly favoured or disadvantaged, the most biased first."""
        certain = {
            name: one
            for name, one in self.favouritism.items()
            if one.lower is not None
            and one.upper is not None
            and (one.lower > FAVOURED or one.upper < -FAVOURED)
        }
        return dict(sorted(certain.items(), key=lambda pair: -abs(pair[1].value or 0.0)))


@dataclass(frozen=True, slots=True)
class FirstAnswer:
    """Whether a judge may replace human raters, and why.

    Attributes
    ----------
    verdict : {"yes", "no", "inconclusive"}
    reasons : tuple of str
        Sentences; the first is what the verdict depends on.
    """

    verdict: Verdict
    reasons: tuple[str, ...]

    @property
    def headline(self) -> str:
        """The verdict in words, with its reason."""
        return f"{OPENINGS[self.verdict]} {self.reasons[0]}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, ``inconclusive`` by its name in earlier versions."""
        old = "cannot_tell" if self.verdict == "inconclusive" else self.verdict
        return {"verdict": old, "reasons": list(self.reasons)}


def first_answer(evidence: Evidence) -> FirstAnswer:
    """Decide whether a judge may replace human raters, and name what this depends on.

    ``no``: the verdicts prefer no side; a model that the judge favours is ranked the opposite way
    or has no finite rating; its lead over a rule that reads nothing is not significant, and it
    follows the rule or leads it by `MARGIN` at most; or people agree with each other more often
    than with the judge, by more than `MARGIN`, which a rule that may lead the judge does not
    hide; each by the whole interval.
    ``yes``: the judge's agreement is non-inferior to a person's within `MARGIN`, with ties and
    without; it passes the alternative-annotator test, which neither a coin nor the longer answer
    passes as well; no model is significantly favoured by more than `FAVOURED`, no pair reversed;
    and no significant bias is estimated at `WORTH_SAYING` points or more.
    ``inconclusive``: anything else, such as no model tested for favouritism, and whatever rests
    on fewer than `MIN_PROMPTS`.
    """
    verdict, reason = _agrees(evidence)
    ranks, named = _ranks(evidence, verdict)
    if ranks != "yes" and verdict != "no":
        verdict = ranks
    if verdict == "yes" and not _tested(evidence):
        verdict, named = "inconclusive", [UNTESTED]
    more = [
        *_exposed(evidence.rules),
        _agreement(evidence),
        _rules(evidence.rules),
        _alternative(evidence),
        *_moved(evidence),
        _favouritism(evidence),
        _boards(evidence),
        _few(evidence.n_prompts),
    ]
    return FirstAnswer(verdict, tuple(text for text in (*named, reason, *more) if text))


def _ranks(evidence: Evidence, otherwise: Verdict) -> tuple[Verdict, list[str]]:
    """Decide by what the judge does to single models, and name these."""
    if evidence.unranked == "no_side":
        return "no", ["The judge's verdicts give no ranking: none prefers a side; votes do."]
    biased, pairs = evidence.biased, evidence.reversed_pairs
    texts = [
        f"The judge {'favours' if (one.value or 0.0) > 0 else 'disadvantages'} {name}: "
        f"{signed_of(one)} wins per item, relative to a fair judge."
        for name, one in [*biased.items()][:MOST_NAMED]
    ]
    if len(biased) > MOST_NAMED:
        texts.append(f"{len(biased) - MOST_NAMED} more models are in the table of favouritism.")
    moved = sorted(
        pairs, key=lambda pair: not biased.keys() & pair
    )  # those of biased models first
    texts += [
        (f"The judge ranks {below} above {above}, and people the reverse, both significantly.")
        for above, below in moved[:MOST_NAMED]
    ]
    if evidence.unranked and (biased or otherwise == "yes"):
        texts.append(NOT_IDENTIFIED)
    moves = evidence.unranked or any(biased.keys() & pair for pair in pairs)
    return ("yes" if not texts else "no" if biased and moves else "inconclusive"), texts


def _agrees(evidence: Evidence) -> tuple[Verdict, str]:
    if evidence.judge.value is None:
        return "inconclusive", "No item has both a vote and a verdict that prefer a side."
    if beaten_by := unbeaten(evidence.rules):
        verdict = _not_better(beaten_by[0])
        short = _short(evidence.gap)
        enough = evidence.n_prompts >= MIN_PROMPTS
        return short if verdict[0] != "no" and enough and short[0] == "no" else verdict
    if evidence.gap.value is None:
        return "inconclusive", "No item has votes of two people: no human–human agreement."
    if evidence.n_prompts < MIN_PROMPTS:
        few = plural(evidence.n_prompts, "prompt")
        return "inconclusive", f"The study has {few}; a verdict needs at least {MIN_PROMPTS}."
    if not _level_with(evidence.gap):
        return _short(evidence.gap)
    if blocked := _not_passed(evidence):
        return "inconclusive", blocked
    if _moved(evidence):
        return "inconclusive", f"{_LEVEL}, but shows biases beyond people's."
    if not _level_with(evidence.gap_with_ties):
        ties = "when ties are excluded; when ties count as a third answer, we do not find this."
        return "inconclusive", f"{_LEVEL} {ties}"
    return "yes", f"{_LEVEL}."


def unbeaten(rules: Sequence[Rule]) -> list[Rule]:
    """Give the rules that the judge is not shown to beat.

    One that it follows comes first, then the one that it is furthest from beating.
    """
    open_rules = [rule for rule in rules if not _above_zero(rule.lead)]
    return sorted(open_rules, key=lambda rule: (not _followed(rule), rule.lead.value or 0.0))


def _not_better(rule: Rule) -> tuple[Verdict, str]:
    """Say that a rule is not beaten: for certain, if the judge follows it or hardly leads."""
    phrase, lead = PHRASES[rule.name], rule.lead
    if _followed(rule) or (lead.upper is not None and lead.upper <= 0):
        return "no", f"The judge does no better than {phrase}."
    if lead.upper is not None and lead.upper <= MARGIN:
        return "no", f"The judge leads {phrase} by at most {100 * MARGIN:.0f} points."
    return "inconclusive", f"We do not find that the judge does better than {phrase}."


def _followed(rule: Rule) -> bool:
    return rule.followed is not None and (rule.followed.value or 0.0) >= COPIES


def _above_zero(lead: Estimate) -> bool:
    """Whether a lead is certain; one that has no value claims nothing against the judge."""
    return lead.value is None or (lead.lower is not None and lead.lower > 0)


def _level_with(gap: Estimate) -> bool:
    return gap.lower is not None and gap.lower >= -MARGIN


def _short(gap: Estimate) -> tuple[Verdict, str]:
    if gap.upper is not None and gap.upper < -MARGIN:
        return "no", (
            "People agree with each other more often than with the judge, by more than "
            f"{100 * MARGIN:.0f} percentage points."
        )
    if gap.upper is not None and gap.upper < 0:
        return "inconclusive", (
            "People agree with each other more often than with the judge, but the difference may "
            f"be less than {100 * MARGIN:.0f} percentage points."
        )
    return "inconclusive", "It may agree with people less often than they do with each other."


def _not_passed(evidence: Evidence) -> str:
    """Give the reason why the alternative-annotator test is not passed; nothing if it is."""
    test = evidence.alternative
    if test is None:
        return (
            f"The alternative-annotator test needs at least {MIN_PEOPLE} people who each have "
            f"{MIN_ITEMS} judged items that others voted on."
        )
    if test.winning_rate < PASS:
        if test.decides_at is not None and test.items_per_person < test.decides_at:
            return (
                "The alternative-annotator test may be underpowered: "
                f"the {test.people_tested} people tested have {test.items_per_person:,.0f} items "
                f"(median); with {test.decides_at:,} each, a person as judge would pass with "
                "90% probability."
            )
        return "Non-inferiority of the judge is not shown for at least half of the people tested."
    if test.winning_rate <= test.coin:
        return "Choosing at random passes the alternative-annotator test as well."
    if test.longest is not None and test.winning_rate <= test.longest:
        return "Choosing the longer answer passes the alternative-annotator test as well."
    return ""


def _exposed(rules: Sequence[Rule]) -> list[str]:
    return [
        (f"{percent(rule.followed.value)} of its verdicts equal {PHRASES[rule.name]}.")
        for rule in rules
        if rule.followed is not None and _followed(rule)
    ]


def _agreement(evidence: Evidence) -> str:
    if evidence.judge.value is None:
        return ""
    text = f"Without ties, judge and person agree in {percent_of(evidence.judge)} of cases"
    if evidence.people.value is not None:
        text += f"; two people agree with each other in {percent_of(evidence.people)}"
    if evidence.highest.value is not None:
        text += ". On equally weighted items where the judge and at least two people prefer a side"
        text += f", the estimated upper bound of agreement is {percent_of(evidence.highest)}"
    text += ". With ties as a third answer, judge and person agree in "
    text += percent_of(evidence.judge_with_ties)
    if evidence.people_with_ties.value is None:
        return f"{text}."
    return f"{text}, and two people agree in {percent_of(evidence.people_with_ties)}."


def _rules(rules: Sequence[Rule]) -> str:
    if not rules:
        return ""
    phrases = [
        f"{PHRASES[rule.name]} {'in' if place else 'agrees with a person in'} "
        f"{percent(rule.agreement.value)}{'' if place else ' of cases'}"
        for place, rule in enumerate(rules)
    ]
    return f"Rules that do not read the answers, for comparison, without ties: {joined(phrases)}."


def _alternative(evidence: Evidence) -> str:
    test = evidence.alternative
    if test is None:
        return ""
    others = f"that of a random choice is {percent(test.coin)}"
    if test.longest is not None:
        others += f", and of the longer answer {percent(test.longest)}"
    text = (
        "The judge's winning rate (alternative-annotator test: significantly non-inferior to a "
        f"person) is {percent(test.winning_rate)} of {test.people_tested} people; "
        f"{others}. The margin, {100 * test.margin:g}% of a person's items, is that for "
        f"{RATERS[evidence.raters]} (--raters). On {percent(test.advantage)} of a person's items "
        "(mean), the judge agrees with the others at least as well as this person does. The upper "
        f"limit, the winning rate of the majority of the others, is {percent(test.majority)}."
    )
    if test.person is None:
        return text
    return (
        f"{text} That of another person, drawn per item, is {percent(test.person)} on average, "
        f"and {percent(PASS)} or more in {percent(test.person_passed)} of repetitions."
    )


def _moved(evidence: Evidence) -> list[str]:
    """Name the biases that are certain and large."""
    phrases = [
        (f"{EFFECTS[name].capitalize()} counts {points_of(gap)} points more than with people.")
        for name, gap in evidence.biases.items()
        if name in EFFECTS and _matters(gap)
    ]
    own = evidence.biases.get("self")
    if _matters(own):
        phrases.append(
            f"The judge rates {evidence.own_model}, its own model, {points_of(own)} points away "
            "from what its ratings of the other models predict."
        )
    return phrases


def _matters(gap: Estimate | None) -> bool:
    if gap is None or gap.value is None or gap.lower is None or gap.upper is None:
        return False
    return abs(gap.value) >= WORTH_SAYING and (gap.lower > 0 or gap.upper < 0)


def _tested(evidence: Evidence) -> int:
    """Count the models for which favouritism was tested."""
    return sum(one.lower is not None for one in evidence.favouritism.values())


def _favouritism(evidence: Evidence) -> str:
    """Give what the test of favouritism covers, and what it cannot find."""
    tested = _tested(evidence)
    if not tested:
        if evidence.n_prompts >= MIN_PROMPTS and any(
            one.n >= MIN_ITEMS for one in evidence.favouritism.values()
        ):
            return (
                "Favouritism was not tested: no model has a finite standard error above zero, "
                "because its votes and verdicts do not vary enough, or too few voters or prompts "
                "give them."
            )
        return (
            f"Favouritism was not tested: the test needs {MIN_MODELS} models, and per model "
            f"{MIN_ITEMS} items on {MIN_PROMPTS} prompts."
        )
    models = plural(len(evidence.favouritism), "model")
    text = f"Favouritism could be tested for {tested} of {models}"
    if not evidence.biased:
        text += f"; no favouritism is significantly above {FAVOURED:g} wins per item"
    return f"{text}. The test can miss a judge that favours the best model."


def _boards(evidence: Evidence) -> str:
    plain, freed = evidence.correlation, evidence.correlation_noise_freed
    if plain is None or plain.value is None:
        return ""
    text = (
        f"The rank correlation of the judge's ratings of {plain.n} models with people's is "
        f"{number_of(plain)} (Spearman)"
    )
    if freed is None or freed.value is None:
        return f"{text}."
    return f"{text}; disattenuated, it is {number_of(freed)}."


def _few(n_prompts: int) -> str:
    if n_prompts >= MIN_PROMPTS:
        return ""
    return (
        f"The study has only {plural(n_prompts, 'prompt')}: the intervals are too narrow, and "
        "the figures are weak evidence for other prompts."
    )
