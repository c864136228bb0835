"""May this judge stand in for people: the answer in plain sentences, and what it hangs on."""

from arena.publish.report.page import Answer, Tone
from arena.publish.report.words import listed, number_of, percent, percent_of, points_of
from arena.publish.study.baselines import FIRST, LONGEST, MARKDOWN, RANDOM, Baseline
from arena.publish.study.judge import JudgeStudy
from arena.publish.study.words import plural
from judge.study.items import Estimate
from judge.study.resampling import FEW_PROMPTS

MARGIN = 0.05
"""Agreement by which a judge may fall short of people, at the worst end of the interval."""
COPIES = 0.95
"""Share of its verdicts from which a judge is said to follow a rule."""
WORTH_SAYING = 20.0
"""Points from which a bias that is certain is named first."""

PHRASES = {
    LONGEST: "picking the longer answer",
    MARKDOWN: "picking the answer with more markdown",
    FIRST: "always picking what is shown first",
    RANDOM: "throwing a coin",
}
EFFECTS = {
    "position": "being shown first",
    "length": "being twice as long",
    "format": "twice the markdown",
}


def answer(judge: JudgeStudy) -> Answer:
    """Say whether a judge may stand in for people, a failure first.

    A judge that is not shown to agree with people more often than a rule that reads nothing is
    exposed before anything else. It may stand in where it agrees with a person as often as
    another person does, within `MARGIN`, with ties and without, and no bias of `WORTH_SAYING`
    points is certain.
    """
    tone, headline = _verdict(judge)
    said = [
        *_exposed(judge),
        _agreement(judge),
        _rules(judge),
        *_moved(judge),
        *_boards(judge),
        _few(judge),
    ]
    return Answer(judge.name, tone, headline, tuple(text for text in said if text))


def _verdict(judge: JudgeStudy) -> tuple[Tone, str]:
    beaten_by = unbeaten(judge)
    if judge.agreement.judge.without_ties.value is None:
        return "fair", "It cannot be told: no vote and verdict on one item both prefer a side."
    if beaten_by:
        rule = beaten_by[0]
        worse = rule.lead_without_ties.value is not None and rule.lead_without_ties.value <= 0
        shown = "It does no better than" if worse else "It is not shown to do better than"
        return "poor", f"No. {shown} {PHRASES[rule.name]}."
    if judge.over_people_without_ties.value is None:
        return "fair", "It cannot be told: no item has two votes to compare people with people."
    decisive, whole = _level_with(judge.over_people_without_ties), _level_with(judge.over_people)
    if decisive and _moved(judge):
        return "fair", "With care: it agrees as another person does, and is moved by other things."
    if decisive and whole:
        return "good", "Yes, as far as agreement goes: it is as good a guess as another person."
    if decisive:
        return "fair", "Only for who is better: it sees ties otherwise than people do."
    upper = judge.over_people_without_ties.upper
    if upper is not None and upper < 0:
        return "fair", "Not on its own: people agree with each other more often than with it."
    return "fair", "It is not shown: it may agree with people less often than they do."


def unbeaten(judge: JudgeStudy) -> list[Baseline]:
    """Give the rules that the judge is not shown to beat, ties left out.

    One that it follows comes first, then the one that it is furthest from beating.
    """
    found = [rule for rule in judge.baselines if not _above_zero(rule.lead_without_ties)]
    return sorted(found, key=lambda r: (not _followed(r), r.lead_without_ties.value or 0.0))


def _followed(rule: Baseline) -> bool:
    return rule.followed is not None and (rule.followed.value or 0.0) >= COPIES


def _above_zero(lead: Estimate) -> bool:
    """Whether a lead is certain; one that has no value claims nothing against the judge."""
    return lead.value is None or (lead.lower is not None and lead.lower > 0)


def _level_with(gap: Estimate) -> bool:
    return gap.lower is not None and gap.lower >= -MARGIN


def _exposed(judge: JudgeStudy) -> list[str]:
    return [
        f"{percent(rule.followed.value)} of its verdicts are those of {PHRASES[rule.name]}: "
        "whatever it writes, this is what it measures."
        for rule in judge.baselines
        if rule.followed is not None and _followed(rule)
    ]


def _agreement(judge: JudgeStudy) -> str:
    found, top = judge.agreement, judge.ceiling.highest
    own, people = found.judge.without_ties, found.people.without_ties
    if own.value is None:
        return ""
    said = f"Where both prefer a side, it agrees with a person in {percent_of(own)} of cases"
    if people.value is not None:
        said += f"; two people agree with each other in {percent_of(people)}"
    if top.value is not None:
        said += f", and the best possible judge with one in at most {percent_of(top)}"
    whole, theirs = found.judge.with_ties, found.people.with_ties
    said += f". With ties as a third answer it agrees in {percent_of(whole)}"
    return f"{said}, and people in {percent_of(theirs)}." if theirs.value else f"{said}."


def _rules(judge: JudgeStudy) -> str:
    known = [rule for rule in judge.baselines if rule.rates.without_ties.value is not None]
    if not known:
        return ""
    said = [
        f"{PHRASES[rule.name]} {'in' if place else 'agrees with a person in'} "
        f"{percent(rule.rates.without_ties.value)}{'' if place else ' of cases'}"
        for place, rule in enumerate(known)
    ]
    return f"Without reading a word, {listed(said)}."


def _moved(judge: JudgeStudy) -> list[str]:
    """Name the biases that are certain and large."""
    if judge.biases is None:
        return []
    gaps = {name: effect.difference for name, effect in judge.biases.effects.items()}
    found = [
        f"It is moved otherwise than people: {EFFECTS[name]} counts for {points_of(gap)} rating "
        "points beyond what it does with them."
        for name, gap in gaps.items()
        if name in EFFECTS and _matters(gap)
    ]
    if _matters(gaps["self"]):
        found.append(
            f"It places {judge.biases.own_model}, its own model, {points_of(gaps['self'])} points "
            "from where its other ratings would have it."
        )
    return found


def _matters(gap: Estimate | None) -> bool:
    if gap is None or gap.value is None or gap.lower is None or gap.upper is None:
        return False
    return abs(gap.value) >= WORTH_SAYING and (gap.lower > 0 or gap.upper < 0)


def _boards(judge: JudgeStudy) -> list[str]:
    if judge.compared is None or judge.compared.spearman.value is None:
        return []
    found = judge.compared
    return [
        f"Its ranking of {len(found.models)} models goes with that of people by "
        f"{number_of(found.spearman)} (Spearman's correlation, 1 is the same order)."
    ]


def _few(judge: JudgeStudy) -> str:
    if judge.n_prompts >= FEW_PROMPTS:
        return ""
    return (
        f"All of this is of {plural(judge.n_prompts, 'prompt')}: too few for the intervals, which "
        "are too narrow, and for saying much of others."
    )
