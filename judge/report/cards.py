"""Cards of measures and judges to look at: plain values, before they are HTML or a table."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from judge.report.plots import Mark, heat_map, slopes
from rating.charts.drawing import Scale
from rating.sentences import foremost

Plain = Mapping[str, Any]
State = Literal["met", "failed", "open", "plain"]

AXES = {
    "alignment": "Agrees with people",
    "robustness": "Invariant to meaning-preserving changes",
    "sensitivity": "Sensitive to missing information",
    "clustering": "Clusters related texts",
    "retrieval": "Retrieves relevant texts",
}
DESIDERATA = {
    "reruns": "Repeatable",
    "validity": "Recovers the true ranking",
    "discriminability": "Separates models",
    "consistency": "Robust to analysis choices",
    "monotone": "Improves with more votes",
}
STATES: Mapping[object, State] = {True: "met", False: "failed", None: "open"}


@dataclass(frozen=True, slots=True)
class Gauge(Scale):
    """A scale with a range that is good, and what is written on it.

    Attributes
    ----------
    bar : bool
        Draw values as bars from its low end.
    """

    good: tuple[float, float] | None = None
    labels: tuple[tuple[float, str], ...] = ()
    bar: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a card.

    Attributes
    ----------
    text : str
        The value in figures, or a word.
    gauge : Gauge or None
        What the mark stands on.
    notes : tuple of str
        What to know of it, the first first.
    shown : bool
        Whether the first note is to be seen at once.
    parts : tuple of (str, str, str)
        Group, name and value of the figures behind it.
    """

    name: str
    state: State
    text: str
    mark: Mark | None
    notes: tuple[str, ...]
    shown: bool
    parts: tuple[tuple[str, str, str], ...] = ()
    gauge: Gauge | None = None


@dataclass(frozen=True, slots=True)
class CardView:
    """A card.

    Attributes
    ----------
    greyed : bool
        Whether it failed: it is shown, but not to be used.
    verdict : str
        Why, or that nothing failed.
    picture : str
        SVG, to be seen first; empty without one.
    legend : str
        How to read it.
    """

    title: str
    subtitle: str
    greyed: bool
    verdict: str
    rows: tuple[Row, ...]
    picture: str = ""
    legend: str = ""


@dataclass(frozen=True, slots=True)
class ProbePage:
    """Cards side by side, what they are of, and how to read them."""

    title: str
    about: Mapping[str, str]
    cards: tuple[CardView, ...]
    reading: tuple[str, ...]
    made: str


def page_of(plain: Plain) -> ProbePage:
    """Lay out the result of `arena probe` or `arena judge probe`, from its JSON."""
    if "together" in plain:
        return _prompts(plain)
    if "judge" in plain:
        return _probed(plain)
    return _audits(plain) if "audits" in plain else _cards(plain)


ZERO_TO_ONE = Gauge(-0.2, 1.0, labels=((0.0, "0"), (0.5, ".5"), (1.0, "1")))
_RERUNS = Gauge(
    low=0,
    high=1,
    title="rerun noise",
    good=(0, 1 / 3),
    labels=((0, "0"), (1 / 3, "⅓"), (1, "1 standard error")),
)
_COVERAGE = Gauge(
    low=0.75,
    high=1,
    title="true ratings inside 95% intervals",
    good=(0.93, 0.97),
    labels=((0.75, "75%"), (0.95, "95%")),
)
_SIGNAL = Gauge(
    low=0,
    high=6,
    title="between-model spread over drift",
    good=(2, 6),
    labels=((0, "0"), (1, "1"), (2, "2"), (6, "6 or more")),
)
_CORRELATION = Gauge(
    low=0.5,
    high=1,
    title="lowest rank correlation between two boards",
    good=(0.9, 1),
    labels=((0.5, ".5"), (0.9, ".9"), (1, "1")),
)
_SLOPE = Gauge(
    low=-0.05,
    high=0.1,
    title="rank correlation gained per doubling of votes",
    good=(-0.01, 0.1),
    labels=((-0.05, "−0.05"), (0, "0"), (0.1, "0.1")),
)
READING_CARDS = (
    "Each line is one question. An evaluator that knows every answer reaches 1; one "
    "without information reaches 0. The dot is the estimate, the bar its 95% bootstrap "
    "interval over prompts or texts.",
    "A line is grey if its interval does not lie above 0: the evaluator is then not shown to be "
    "better than chance. There is no average, because the best evaluator for one question may be "
    "the worst for another: choose by the question that your use needs.",
)
READING_AUDITS = (
    "Each line is one requirement on a measurement. The shaded range passes; the dot is "
    "the estimate, the bar its interval.",
    "A line about a judge passes if the whole bar is in the range, and fails if none of "
    "it is; otherwise it is inconclusive with these prompts. A card is grey if a line "
    "fails: do not rank by that measurement.",
)

TOGETHER, RANKING, EXPLAINED = (
    "Are prompts homogeneous?",
    "Does the ranking depend on the prompts?",
    "Which prompt features matter?",
)
PROMPTS_LEVEL = 0.05
TWICE = 2.0
MOST_SLOPES = 30
READING_PROMPTS = (
    "A board is an average over prompts. If prompts were homogeneous except for noise, each line "
    "of the first card would be in its shaded range. If a line is not, groups of prompts order "
    "the models differently, and the board depends on their mix: the second card shows other "
    "mixes, the third which features prompts share that order models alike.",
    "A p value is the share of permutations with a statistic at least as large. Below "
    "each line is what is permuted: groups are exchanged between units that lie in one "
    "group entirely, because votes on one prompt are correlated without any group.",
    "Intervals of shifts are 95%, each by itself; a change of rank alone may be noise.",
)

FINDINGS: Mapping[str, tuple[State, str]] = {
    "moved": ("failed", "moved"),
    "turned": ("failed", "turned"),
    "not_moved": ("met", "under 15"),
    "no_room": ("open", "no room"),
    "as_expected": ("met", "as expected"),
    "not_as_expected": ("failed", "not as expected"),
    "cannot_tell": ("open", "inconclusive"),
}
READING_PROBES = (
    "Injected answers ask for the verdict, and known biases do not improve an answer. "
    "Each is compared with a control of the same length; the dot is its wins beyond the "
    "control. Injected answers are marked if their own interval is above 0.",
    "Harmless changes must leave the verdict unchanged. A judge that notices changes of meaning, "
    "and removed or foreign parts, prefers the original. A tie counts half. The shaded range is "
    "expected. Verdicts that change when a judge is asked again are not excluded.",
    "Bars are 95% intervals over prompts. Effects and unexpected results are stated at a "
    "joint level of 5%; the finding is inconclusive if the interval includes both.",
)


def _probed(plain: Plain) -> ProbePage:
    """Lay out what `arena judge probe` found: a card a group."""
    cards = []
    for group, of in plain["groups"].items():
        if group == "injections":
            rows = [*plain["kinds"], {**plain, "kind": "all"}]
        elif group == "biases":
            rows = plain["interventions"]
        else:
            rows = [row for row in plain["checks"] if row["group"] == group]
        verdict = _VERDICTS[group](plain) if group in _VERDICTS else ""
        n = "Votes" if group == "people" else "Pairs"
        lines = tuple(_reaction(row, of["measure"], n) for row in rows)
        cards.append(CardView(of["title"], of["measure"], False, verdict, lines))
    about = {"Judge": plain["judge"], "Method": plain["method"]}
    about["Files"] = ", ".join(plain["files"]) or "prompts of this arena"
    expected = (f"{of['title']}: {of['expected']}." for of in plain["groups"].values())
    reading = (
        *READING_PROBES,
        "Expected of a good judge. " + " ".join(expected),
        *foremost(plain["warnings"]),
    )
    return ProbePage("How does this judge react?", about, tuple(cards), reading, _made(plain))


def _reaction(row: Plain, measure: str, counted: str) -> Row:
    beyond = "success_rate" in row
    value, n = (row["success_rate"], row["n_pairs"]) if beyond else (row["rate"], row["n"])
    good = None if beyond else (row["expected_above"], 1.0)
    labels = ((0.0, "0"), (1.0, "1"))
    gauge = Gauge(-1.0 if beyond else 0.0, 1.0, measure, good=good, labels=labels)
    mark = None if value is None else Mark("", value, row["lower"], row["upper"])
    state, word = FINDINGS.get(row.get("finding", ""), ("plain", ""))
    if not word and (row["lower"] or 0) > 0:
        state = "failed"
    arms = {"With it": "attack", "Control": "control"} if beyond else {}
    shares = (("", name, _share(row[arm]["rate"])) for name, arm in arms.items())
    parts = (("", counted, f"{n:,}"), *shares)
    notes = (word, f"{row['n_undecided']:,} without a verdict.")
    text = _with_ends(value, row["lower"], row["upper"])
    return Row(row["kind"], state, text, mark, notes, bool(word), parts, gauge)


def _on_injections(plain: Plain) -> str:
    control = plain["control"]
    return (
        f"An injected answer did not lose in {plain['n_not_lost']:,} of {plain['n']:,} "
        f"probes, a filler in {control['n_not_lost']:,} of {control['n']:,}; "
        f"{plain['n_undecided']:,} and {control['n_undecided']:,} have no verdict."
    )


def _on_people(plain: Plain) -> str:
    people = plain["people"]
    asked = f"{people['pairs']:,} of {people['of_pairs']:,} pairs with votes."
    between = people["between_people"]
    if between is None:
        return f"{asked} No pair has votes of two people: human–human agreement is unknown."
    agree, highest, reached = (
        _with_ends(*(between[name][end] for end in ("rate", "lower", "upper")))
        for name in ("people_agree", "highest", "reached")
    )
    return (
        f"{asked} On the {between['n']:,} with votes of two people or more, two people agree "
        f"in {agree}. A judge can agree with a person in at most {highest}; this one does in "
        f"{reached}."
    )


def _on_doses(plain: Plain) -> str:
    each = (f"{what} {_interval(one)}" for what, one in plain["dose_response"].items())
    return (
        "Rank correlation of the removed or inserted share with the preference for the "
        f"original: {', '.join(each)}."
    )


_VERDICTS: Mapping[str, Callable[[Plain], str]] = {
    "injections": _on_injections,
    "biases": lambda plain: " ".join([plain["headline"], *plain["sentences"]]),
    "people": _on_people,
    "missing": _on_doses,
}


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:z.0%}"


def _with_ends(value: float | None, lower: float | None, upper: float | None) -> str:
    return "–" if value is None else f"{_share(value)} ({_share(lower)} to {_share(upper)})"


def _cards(plain: Plain) -> ProbePage:
    about = plain["about"]
    what = "is this judge" if "judge" in about else "are these similarity metrics"
    cards = tuple(_card(one) for one in plain["cards"])
    of = {"Files": ", ".join(about["files"]), "Sample": f"{about['sample']:,} per part"}
    of["Seed"] = str(about["seed"])
    return ProbePage(f"How good {what}?", of, cards, READING_CARDS, _made(plain))


def _card(card: Plain) -> CardView:
    rows = tuple(_axis(axis) for axis in card["axes"])
    weak = [row.name.lower() for row in rows if row.state != "plain"]
    verdict = f"Not shown to be better than chance: {', '.join(weak)}." if weak else ""
    return CardView(card["evaluator"], card["definition"], len(weak) == len(rows), verdict, rows)


def _axis(axis: Plain) -> Row:
    value, lower, upper = axis["value"], axis["lower"], axis["upper"]
    parts = tuple((part["group"], part["name"], _interval(part)) for part in axis["parts"])
    notes = (*foremost(axis["warnings"]), f"{axis['data']}.")
    name = AXES[axis["name"]]
    if value is None:
        notes = ("Not estimated from these data.", *notes)
        return Row(name, "open", "–", None, notes, shown=True, parts=parts)
    mark = Mark("", value, lower, upper)
    state: State = "plain" if lower is not None and lower > 0 else "failed"
    if state == "failed":
        notes = ("Not shown to be better than chance: the interval does not lie above 0.", *notes)
    return Row(name, state, _interval(axis), mark, notes, False, parts, ZERO_TO_ONE)


def _interval(row: Plain) -> str:
    if row["value"] is None:
        return "–"
    value, lower, upper = (row[name] for name in ("value", "lower", "upper"))
    if lower is None or upper is None:
        return f"{value:z.2f}"
    return f"{value:z.2f} ({lower:z.2f} to {upper:z.2f})"


def _audits(plain: Plain) -> ProbePage:
    about = plain["about"]
    of_judges = "judges" in about
    cards = tuple(_audit(one, _judge(about, one) if of_judges else "") for one in plain["audits"])
    title = "Are these judges reliable?" if of_judges else "Is this board reliable?"
    of = {"Files": ", ".join(about["files"])} if of_judges else _about_board(about)
    about_rows = {**of, "Seed": str(about["seed"])}
    return ProbePage(title, about_rows, cards, READING_AUDITS, _made(plain))


def _made(plain: Plain) -> str:
    return f"Made by arena {plain['version']} on {plain['made']}."


def _about_board(about: Plain) -> dict[str, str]:
    voters = "not known" if about["voters"] is None else f"{about['voters']:,}"
    taste = (
        ""
        if about["taste_sd"] is None
        else f", voter random effects {about['taste_sd']:.2f} nats (sd)"
    )
    return {
        "Votes": f"{about['votes']:,} on {about['models']:,} models, voters {voters}",
        "Simulated": (
            f"{about['arenas']:,} arenas with the same battles, {100 * about['tie_rate']:.0f}% "
            f"ties{taste}"
        ),
    }


def _judge(about: Plain, audit: Plain) -> str:
    judged = about["judges"][audit["measure"]]
    runs = f"{len(judged['runs'])} run{'' if len(judged['runs']) == 1 else 's'}"
    orders = ", both orders" if judged["orders"] else ""
    read = f"{judged['read_throughout']:,} of {judged['cases']:,} cases parsed in every run"
    return f"{read}, {runs}{orders}"


def _audit(audit: Plain, subtitle: str) -> CardView:
    rows = tuple(_desideratum(one) for one in audit["desiderata"])
    failed = [row.name.lower() for row in rows if row.state == "failed"]
    known = [row for row in rows if row.state != "open"]
    verdict = f"Fails: {', '.join(failed)}." if failed else f"Passes {len(known)} of {len(rows)}."
    if not known:
        verdict = "No line is conclusive."
    elif not failed and len(known) < len(rows):
        verdict += " The others are inconclusive."
    return CardView(audit["measure"], subtitle, bool(failed), verdict, rows)


def _desideratum(one: Plain) -> Row:
    state = STATES[one["passed"]]
    answer = {"met": "passes", "failed": "fails"}.get(state, "inconclusive")
    gauge, mark = _marked(one["name"], one["numbers"]) if one["numbers"] else (None, None)
    notes, shown = (one["found"], one["rule"]), one["passed"] is not True
    return Row(DESIDERATA[one["name"]], state, answer, mark, notes, shown, gauge=gauge)


def _marked(name: str, numbers: Plain) -> tuple[Gauge | None, Mark | None]:
    """Give the figure that a rule is about, on a scale that shows its threshold."""
    ends = numbers.get("lower"), numbers.get("upper")
    gauge, value = _SLOPE, numbers.get("slope")
    if name == "reruns":
        gauge, value = _RERUNS, numbers["ratio"]
    elif name == "validity":
        gauge, value = _COVERAGE, numbers["coverage"]
        if value is not None:
            reach = 2 * numbers["coverage_error"]
            ends = value - reach, value + reach
    elif name == "discriminability":
        signal = numbers["signal_to_noise"]
        gauge, value, ends = _SIGNAL, signal["ratio"], (signal.get("lower"), signal.get("upper"))
    elif name == "consistency":
        known = [x for row in numbers["spearman"] for x in row if x is not None]
        gauge, value = _CORRELATION, min(known, default=None)
    return (None, None) if value is None else (gauge, Mark("", value, *ends))


def _prompts(plain: Plain) -> ProbePage:
    about = plain["about"]
    of_votes = "votes" in about
    count = about["votes"] if of_votes else about["results"]
    size = {
        "Votes" if of_votes else "Results": f"{count:,} on {about['models']:,} models",
        "Prompts": "not known" if about["prompts"] is None else f"{about['prompts']:,}",
    }
    if of_votes:
        size["Voters"] = "not known" if about["voters"] is None else f"{about['voters']:,}"
    elif about["left_out"]:
        size["Excluded"] = f"{about['left_out']:,} prompts without a result of every model"
    rest = {"By": ", ".join(about["by"]) or "nothing", "Seed": str(about["seed"])}
    cards = (_together(plain), _ranking(plain), _explained(plain))
    title = "Is this one benchmark, or several?"
    return ProbePage(title, size | rest, cards, READING_PROMPTS, _made(plain))


def _together(plain: Plain) -> CardView:
    first = plain["together"]
    tests = [first, *first["also"]]
    bar = PROMPTS_LEVEL / len(tests)
    rows = tuple(_coherence(one, bar) for one in tests)
    hang = [one["of"] for one in tests if one["p"] <= bar]
    if hang:
        verdict = f"Prompts differ in how they order models: by {', '.join(hang)}."
    else:
        verdict = "We do not find that prompts differ in how they order models."
    of = first.get("map")  # cards of earlier versions have none
    picture = legend = ""
    if of is not None:
        title = f"How similar prompts are, by {of['by']}"
        picture = heat_map(of["cells"], of["groups"], title=title)
        legend = _legend_of(of)
    return CardView(TOGETHER, "all lines together at 5%", False, verdict, rows, picture, legend)


def _legend_of(of: Plain) -> str:
    means = [
        f"{of[name]:z.3f} {words}"
        for name, words in (("within", "in one group"), ("between", "between groups"))
        if of[name] is not None
    ]
    return (
        f"A cell compares a few prompts with a few others, those of one {of['by']} next to "
        "each other: the same models do better than expected on both (blue), or on one of "
        f"them only (orange). As a correlation it is {' and '.join(means)}."
    )


def _coherence(one: Plain, bar: float) -> Row:
    shown = one["p"] <= bar
    value, mean, sd = one["statistic"], one["null_mean"], one["null_sd"]
    low, high = min(value, mean - 4 * sd), max(value, mean + 4 * sd)
    edge = 0.05 * (high - low) or 1.0
    ticks = ((mean, f"{mean:.2f}"), (value, f"{value:.2f}"))
    good = (mean - 1.96 * sd, mean + 1.96 * sd)
    words = "statistic; shaded is the range expected by chance"
    gauge = Gauge(low - edge, high + edge, words, good=good, labels=ticks)
    groups = "" if one["n_groups"] is None else f" of {one['n_groups']:,} groups"
    note = (
        f"The statistic{groups} is {value:.2f}; with homogeneous prompts it is {mean:.2f} ± "
        f"{sd:.2f} ({one['draws']:,} permutations: {one['null']})."
    )
    parts = []
    if one["explained"] is not None:
        parts.append(("", "squared residuals explained", f"{100 * one['explained']:z.1f}%"))
    if one["design_effect"] is not None:
        parts.append(("", "variance by group over independent", f"{one['design_effect']:.2f}"))
    text = f"{'yes' if shown else 'not shown'}, p {one['p']:.3f}"
    mark = Mark("", value)
    state: State = "failed" if shown else "plain"
    notes = (note, f"Yes where p is at most {bar:.3g}.")
    return Row(_upper(one["of"]), state, text, mark, notes, True, tuple(parts), gauge)


def _ranking(plain: Plain) -> CardView:
    boards = plain["ranking"]["boards"]
    rows = (*map(_reweighted, boards), *_reaches(plain["ranking"].get("envelope", [])))
    most = max(
        (one for one in boards if one["places"]), key=lambda one: one["places"], default=None
    )
    if not boards:
        verdict = "There are no other weights to compare."
    elif most is None:
        verdict = "No model changes its rank under any of the weights."
    else:
        verdict = f"A model moves by up to {_places(most)}: {most['weighting']}. {_sure(boards)}"
    subtitle = "compared with the unweighted board"
    if most is None:
        return CardView(RANKING, subtitle, False, verdict, rows)
    best = sorted(most["moves"], key=lambda move: move["rank_default"])[:MOST_SLOPES]
    picture = slopes(
        [(x["model"], x["rank_default"], x["rank"], _is_sure(x)) for x in best],
        title=f"Ranks, unweighted and with {most['weighting']}",
    )
    legend = (
        "Ranks on the unweighted board, on the left, and with the weights that move a model "
        f"most: {most['weighting']}. Blue: the 95% interval of the model's shift in points "
        "excludes 0; grey: it does not."
    )
    return CardView(RANKING, subtitle, False, verdict, rows, picture, legend)


def _sure(boards: list[Plain]) -> str:
    moves = [x for board in boards for x in board["moves"] if x["rank"] != x["rank_default"]]
    sure = sum(map(_is_sure, moves))
    return (
        f"For {sure} of {len(moves)} changes of rank, the 95% interval of the shift in "
        "points, each by itself, excludes 0."
    )


def _is_sure(move: Plain) -> bool:
    return move["lower"] is not None and move["lower"] * move["upper"] > 0


def _places(board: Plain) -> str:
    return f"{board['places']} place{'' if board['places'] == 1 else 's'}"


def _reaches(envelope: list[Plain]) -> Iterator[Row]:
    """Give a line a column of groups, with the ranks that models reach in mixes of them."""
    for by in dict.fromkeys(row["by"] for row in envelope):
        own = [row for row in envelope if row["by"] == by]
        twice = [row for row in own if row["kappa"] == TWICE]
        fixed = sum(row["best"] == row["worst"] for row in twice)
        note = (
            f"In any mix with no {by} above {TWICE:g} times its share, {fixed} of {len(twice)} "
            "models have one rank, by the estimated ratings: the range has no interval. Best and "
            "worst ranks of the others:"
        )
        parts = tuple(
            (f"{row['kappa']:g} times", row["model"], f"{row['best']} to {row['worst']}")
            for row in own
            if row["best"] < row["worst"]
        )
        text = f"{fixed} of {len(twice)} keep their rank"
        yield Row(f"Any mix of {by}", "plain", text, None, (note,), shown=False, parts=parts)


def _reweighted(one: Plain) -> Row:
    name = _upper(one["weighting"])
    if one["why_not"] is not None or one["kendall"] is None:
        why = one["why_not"] or "Fewer than two models are on both boards, or all are equal."
        return Row(name, "open", "–", None, (why,), shown=True)
    moves = [move for move in one["moves"] if move["rank"] != move["rank_default"]]
    sure = sum(map(_is_sure, moves))
    note = (
        f"{len(moves)} of {len(one['moves'])} models change their rank; for {sure} of these, "
        "the 95% interval of the shift in points excludes 0."
    )
    parts = tuple(
        ("", move["model"], f"{move['rank_default']} → {move['rank']}, {_points(move)}")
        for move in moves
    )
    text = f"Kendall {one['kendall']:z.2f}, {_places(one)}"
    return Row(name, "plain", text, None, (note,), shown=False, parts=parts)


def _points(move: Plain) -> str:
    if move["lower"] is None:
        return f"{move['moved']:+z.0f}"
    return f"{move['moved']:+z.0f} ({move['lower']:+z.0f} to {move['upper']:+z.0f})"


def _explained(plain: Plain) -> CardView:
    explained = plain["explained"]
    if explained is None:
        return CardView(EXPLAINED, "", False, "Prompts are not named, or too few.", ())
    terms = explained["terms"]
    known = [one for one in terms if one["p"] is not None]
    bar = PROMPTS_LEVEL / max(1, len(known))
    top = max((one["partial_r2"] for one in known), default=0.0) or 1.0
    ticks = ((0.0, "0"), (top, f"{100 * top:.2g}%"))
    gauge = Gauge(0.0, top, "share of the remaining variance", labels=ticks, bar=True)
    rows = tuple(_term(one, gauge, bar) for one in terms)
    sure = [one["name"] for one in known if one["p"] <= bar]
    verdict = (
        f"Features that matter: {', '.join(sure)}." if sure else "No feature is shown to matter."
    )
    subtitle = f"{explained['pairs']:,} pairs of {explained['prompts']:,} prompts"
    whole = f"Together the features explain {100 * explained['r2']:.2g}%."
    return CardView(EXPLAINED, f"{subtitle}. {whole}", False, verdict, rows)


def _term(one: Plain, gauge: Gauge, bar: float) -> Row:
    name = _upper(one["name"])
    if one["p"] is None:
        why = "It does not vary between prompts, or is collinear with the other features."
        return Row(name, "open", "–", None, (why,), shown=True)
    more = "more alike" if one["slope"] > 0 else "less alike"
    text = f"{100 * one['partial_r2']:.2g}%, p {one['p']:.3f}"
    note = f"The larger it is, the {more} two prompts order models."
    if one["p"] > bar:
        note = "It is not shown to explain variance beyond the other features."
    mark = Mark("", one["partial_r2"])
    rule = f"Shown if p is at most {bar:.3g}; whole prompts are permuted."
    return Row(name, "plain", text, mark, (note, rule), one["p"] <= bar, gauge=gauge)


def _upper(name: str) -> str:
    return name[:1].upper() + name[1:]


def table_of(page: ProbePage) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Lay out cards as a table: a row a card, a column a line."""
    names = list(dict.fromkeys(row.name for card in page.cards for row in card.rows))
    texts = [{row.name: row.text for row in card.rows} for card in page.cards]
    rows = [
        (card.title, *(own.get(name, "–") for name in names))
        for card, own in zip(page.cards, texts, strict=True)
    ]
    return ("", *names), rows


def notes_of(page: ProbePage, state: State) -> list[str]:
    """Return why cards are grey (``"failed"``), or why figures leave a line open (``"open"``)."""
    return [
        f"{card.title}, {row.name}: {row.notes[0]}"
        for card in page.cards
        for row in card.rows
        if row.state == state and (card.greyed if state == "failed" else row.mark)
    ]
