"""A gate says better, not worse, worse or that it cannot tell, and seldom errs, however asked."""

import math
import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from rating import Cluster, Comparisons, fit, infer
from rating.decide import (
    Difference,
    Gate,
    GateOptions,
    Lead,
    Looks,
    decided,
    gate,
    lead_of,
    require_comparable,
    unanswered,
    votes_for_even_models,
)
from rating.errors import DataError, NotIdentifiedError
from rating.options import Claims
from rating.variants import POINTS_PER_NAT
from tests.rating.gated import ASKED, BETWEEN, CANDIDATE, INCUMBENT, Crowd
from tests.rating.raced import two_models
from tests.simulation import monte_carlo_error, runs

SURE = Lead(
    value=0.0,
    variance=1e-4,
    df=math.inf,
    of_prompts=0.0,
    by_prompt=1e-4,
    prompt_df=math.inf,
    independent=1e-4,
    effective=math.inf,
)
Record = Callable[[str, object], None]


def known(options: GateOptions, people: int = 1000) -> Gate:
    return unanswered(options, people, 1000, None, None)


def between(lower: float | None, upper: float | None, **asked: object) -> Gate:
    return Gate(
        options=replace(ASKED, **asked),  # type: ignore[arg-type]
        difference=Difference(value=0.0, lower=lower, upper=upper),
        people=1,
        needed=0,
        by="people",
        rests_on="one vote",
    )


@pytest.mark.parametrize(
    ("lower", "upper", "answer", "passes", "is_better"),
    [
        (1, 50, "better", True, True),
        (-5, 50, "not worse", True, None),
        (-15, -5, "not worse", True, False),
        (-40, 10, "cannot tell", None, None),
        (-60, -5, "cannot tell", None, False),
        (-60, -25, "worse", False, False),
        (None, None, "cannot tell", None, None),
        (None, -25, "worse", False, False),
    ],
)
def test_an_answer_is_where_the_interval_lies(
    lower: float | None,
    upper: float | None,
    answer: str,
    passes: bool | None,
    is_better: bool | None,
) -> None:
    """With a margin of 20 points; the last column is of a gate that requires a better one."""
    assert between(lower, upper).answer == answer
    assert between(lower, upper).passes is passes
    assert between(lower, upper, require="better").passes is is_better


@pytest.mark.parametrize(
    ("lower", "upper", "words"),
    [
        (1, 50, ("umber is better than basalt.", "(+1 to +50; ", "The gate passes.")),
        (-5, 50, ("umber is not worse than basalt by more than 20 points.", "The gate passes.")),
        (None, -25, ("umber is worse than basalt by more", "(below to −25; ", "The gate fails.")),
        (-40, None, ("umber may or may not be worse than basalt by", "(−40 to above; ")),
    ],
)
def test_an_answer_is_said_with_its_interval(
    lower: float | None, upper: float | None, words: tuple[str, ...]
) -> None:
    sentence = " ".join(between(lower, upper).sentences)
    assert [part for part in words if part not in sentence] == []


@pytest.mark.parametrize("looks", [1, 3, 9, "any"])
def test_the_margin_does_not_change_the_interval(looks: Looks) -> None:
    data = Crowd(lead=0.5).draw(300, np.random.default_rng(1)).upto(300)
    answers = [
        gate(data, replace(ASKED, margin=margin, looks=looks, planned=1000)).difference
        for margin in (1, 20, 200)
    ]
    assert answers[0] == answers[1] == answers[2]
    assert answers[0] is not None
    assert answers[0].lower is not None


@pytest.mark.parametrize(
    ("known", "claims", "clusters"),
    [
        (("voter", "prompt"), "population", ("voter", "prompt")),
        (("voter", "prompt"), "these-voters", ("prompt",)),
        (("voter",), "population", ("voter",)),
        (("voter",), "these-voters", ()),
        ((), "population", ()),
    ],
)
def test_one_look_has_the_interval_that_a_rating_has_for_the_pair(
    known: tuple[str, ...], claims: Claims, clusters: tuple[Cluster, ...]
) -> None:
    rows = two_models(np.random.default_rng(4), 2000, lead=40)
    voter, prompt = (rows.groups[r] if r in known else None for r in ("voter", "prompt"))
    data = rows.comparisons(voter=voter, prompt=prompt)
    asked = GateOptions(candidate="m0", incumbent="m1", margin=20, looks=1, claims=claims)
    interval = gate(data, asked).difference
    pair = infer(fit(data), data, clusters).pairs.each
    assert interval is not None
    assert interval.lower is not None
    assert interval.value == pytest.approx(POINTS_PER_NAT * pair.value[0], abs=0.01)
    half = POINTS_PER_NAT * pair.half_width(0.95)[0]
    assert interval.value - interval.lower == pytest.approx(half, rel=1e-3)


def test_turned_round_the_other_is_behind_by_as_much() -> None:
    data = Crowd(lead=0.5, taste=0.4).draw(300, np.random.default_rng(1)).upto(300)
    turned = replace(ASKED, candidate=INCUMBENT, incumbent=CANDIDATE)
    one, other = gate(data, ASKED).difference, gate(data, turned).difference
    assert one is not None
    assert other is not None
    assert (one.value, one.lower, one.upper) == pytest.approx(
        (-other.value, -(other.upper or 0), -(other.lower or 0))
    )


def test_votes_on_other_pairs_make_it_more_precise() -> None:
    data = Crowd(direct=0.2).draw(300, np.random.default_rng(1)).upto(300)
    cast = Crowd(direct=0.2).draw(300, np.random.default_rng(1))
    direct = (cast.pairs < 2).all(axis=1)
    columns = {name: getattr(cast, name)[direct] for name in ("pairs", "won", "voter", "prompt")}
    alone = replace(cast, **columns).upto(300)
    assert lead_of(data, BETWEEN).variance < 0.7 * lead_of(alone, BETWEEN).variance


def test_few_voters_tell_nothing_but_of_themselves() -> None:
    data = Crowd(lead=1.0, per_voter=150).draw(6, np.random.default_rng(1)).upto(6)
    result = gate(data, ASKED)
    assert (result.answer, result.by, result.difference) == ("cannot tell", "nothing", None)
    assert "at least 15 are needed" in result.why
    assert decided(replace(SURE, effective=15.0), known(ASKED)).difference is not None
    assert decided(replace(SURE, effective=14.9), known(ASKED)).difference is None
    own = gate(data, replace(ASKED, claims="these-voters"))
    assert own.answer == "better"
    assert own.rests_on.endswith("it speaks for these voters alone")


def test_the_votes_needed_give_eighty_per_cent_power_on_new_prompts_and_on_the_same() -> None:
    """Of 1,000 votes, A = 4e-4 by prompts and B = 36e-4; the lead is 20 points above the line."""
    lead = replace(SURE, variance=4e-3, by_prompt=2e-3, of_prompts=4e-4)
    cases = ((0.99, math.inf, 2.575829), (0.95, 9.0, 2.262157), (0.95, math.inf, 1.959964))
    for level, df, errors in cases:
        once = decided(replace(lead, df=df), known(replace(ASKED, looks=1, level=level)))
        square = (20 / POINTS_PER_NAT / (errors + 0.841621)) ** 2
        assert once.passes is None
        assert once.needed == math.ceil(1000 * 4e-3 / square) - 1000
        assert once.needed_same_prompts == math.ceil(1000 * 36e-4 / (square - 4e-4)) - 1000
    five = decided(lead, known(replace(ASKED, looks=5, planned=1000)))
    assert five.needed is not None
    assert 1000 + five.needed == pytest.approx(
        1000 * 4e-3 * ((2.095 + 0.842) / (20 / POINTS_PER_NAT)) ** 2, rel=1e-3
    )
    assert decided(SURE, known(ASKED)).needed == 0


def test_prompts_that_vary_too_much_make_no_number_of_votes_enough() -> None:
    lead = replace(SURE, variance=4e-3, by_prompt=4e-3, of_prompts=3e-3)
    result = decided(lead, known(replace(ASKED, looks=1)))
    assert result.needed is not None
    assert result.needed_same_prompts is None
    assert "on the same prompts no number does" in result.verdict


def test_all_ties_have_no_interval() -> None:
    data = Comparisons.from_arrays(
        [CANDIDATE] * 400, [INCUMBENT] * 400, ["tie"] * 400, voter=list(range(400))
    )
    result = gate(data, ASKED)
    assert (result.answer, result.difference) == ("cannot tell", None)
    assert "each has won and lost 5" in result.why
    [unknown] = result.warnings
    assert unknown.startswith("Prompts are not known: the interval is too narrow where votes sh")


def test_five_votes_won_and_five_lost_are_enough() -> None:
    require_comparable(np.array([[0.0, 5.0], [5.0, 0.0]]), (0, 1))
    one_few = np.array([[0.0, 9.0, 9.0], [0.0, 0.0, 4.0], [9.0, 9.0, 0.0]])
    for wins, ends in (one_few[1:, 1:], (0, 1)), (one_few, (0, 1)), (one_few, (1, 0)):
        with pytest.raises(NotIdentifiedError, match="each has won and lost 5"):
            require_comparable(wins, ends)


def test_two_models_whose_own_votes_are_ties_are_linked_by_nothing() -> None:
    """Each has won and lost against a model of its own; ties alone join the two halves."""
    sides = [(CANDIDATE, "x")] * 40 + [(INCUMBENT, "y")] * 40 + [(CANDIDATE, INCUMBENT)] * 40
    outcomes = ["model_a", "model_b"] * 40 + ["tie"] * 40
    first, second = zip(*sides, strict=True)
    data = Comparisons.from_arrays(first, second, outcomes, voter=list(range(120)))
    assert gate(data, ASKED).difference is None


def test_numbered_looks_are_wider_before_the_planned_votes_and_final_at_them() -> None:
    asked = replace(ASKED, looks=3, planned=4000)
    on_line = replace(SURE, value=-20 / POINTS_PER_NAT)
    early = decided(SURE, known(asked)).difference
    last = decided(on_line, known(asked, people=4000))
    assert early is not None
    assert last.difference is not None
    half = POINTS_PER_NAT * 2.0592 * 0.01
    assert early.upper == pytest.approx(2 * half, rel=1e-4)
    assert (last.difference.upper or 0) + 20 == pytest.approx(half, rel=1e-4)
    assert "The planned votes are there: this answer is final." in last.verdict
    assert "final" not in decided(on_line, known(asked)).verdict
    open_ = decided(replace(SURE, value=-10 / POINTS_PER_NAT, variance=4e-3), known(asked))
    assert open_.needed is not None
    assert f"About {open_.needed:,} more votes by new people" in open_.verdict
    over = replace(open_, people=4000)
    assert f"About {4000 + open_.needed:,} votes in a new gate" in over.verdict


def test_a_margin_that_one_vote_would_show_takes_one_vote() -> None:
    asked = replace(ASKED, margin=2000, looks=1)
    assert votes_for_even_models(asked, there=0) == 1


@pytest.mark.parametrize("margin", [0.0, 0.001])
def test_even_models_on_the_line_are_settled_by_no_number_of_votes(margin: float) -> None:
    even = known(replace(ASKED, margin=margin))
    assert even.needed is None
    assert "No number of votes settles it if the models are equal." in even.verdict
    better = known(replace(ASKED, margin=0.0, require="better"))
    assert better.needed is not None
    assert "20 points ahead and votes independent; clustered votes need more" in better.verdict


def test_a_lead_on_the_line_is_settled_by_no_number_of_votes() -> None:
    on_it = replace(SURE, value=-20 / POINTS_PER_NAT)
    result = decided(on_it, known(ASKED))
    assert (result.passes, result.needed) == (None, None)
    assert "no number of votes may settle it" in result.sentences[-1]


def test_a_gate_is_stored_with_all_that_it_says() -> None:
    asked = replace(ASKED, margin=30.0, require="better", level=0.9, looks=2, planned=900)
    one = Gate(
        options=replace(asked, claims="these-voters"),
        difference=Difference(value=-3.6, lower=-40.4, upper=10.6),
        people=600,
        judge=7,
        needed=1300,
        needed_same_prompts=1400,
        by="people and judge",
        rests_on="600 votes",
        judge_weight=0.25,
    )
    assert one.with_warnings("Beware.").to_dict() == {
        "answer": "cannot tell",
        "candidate": "umber",
        "incumbent": "basalt",
        "margin": 30.0,
        "difference": {"value": -3.6, "lower": -40.4, "upper": 10.6},
        "looks": 2,
        "planned": 900,
        "power": 0.8,
        "votes": {"people": 600, "judge": 7},
        "needed": 1300,
        "needed_same_prompts": 1400,
        "rests_on": "600 votes",
        "by": "people and judge",
        "require": "better",
        "passes": None,
        "claims": "these-voters",
        "level": 0.9,
        "judge_weight": 0.25,
        "why": None,
        "sentences": [
            "Inconclusive: umber may or may not be worse than basalt by more than 30 points.",
            "Lead: −4 points (−40 to +11; 90%, 2 looks, 900 votes planned).",
            "Required: better. About 1,300 more votes by new people on new prompts settle it with "
            "80% power, if the lead is as estimated; on the same prompts about 1,400 do.",
        ],
        "warnings": ["Beware."],
    }
    done = replace(one, people=900, needed_same_prompts=1300, options=replace(asked, looks=1))
    assert "90%, one look, 900 votes planned" in done.lead
    assert "final. About 2,200 votes in a new gate by new people settle it" in done.verdict
    unknown = replace(one, difference=None, needed_same_prompts=None)
    assert unknown.verdict == (
        "Required: better. About 1,300 more votes on the two give 80% power, if umber is 30 "
        "points ahead and votes independent; clustered votes need more."
    )


def test_what_stands_behind_a_gate_is_counted_on_its_two_models() -> None:
    """Forty votes are on the two directly, 20 on one of them, and 30 on others alone."""
    sides = [(CANDIDATE, INCUMBENT)] * 40 + [("x", CANDIDATE)] * 20 + [("x", "y")] * 30
    n = np.arange(90)
    first, second = zip(*sides, strict=True)
    voter, prompt = np.where(n < 60, n % 16, n), np.where(n < 60, n % 5, n)
    outcomes = ["model_a", "model_b"] * 45
    data = Comparisons.from_arrays(first, second, outcomes, voter=voter, prompt=prompt)
    result = gate(data, ASKED)
    counts = "60 votes of 16 people on 5 prompts, 40 of them on the two directly"
    assert (result.rests_on, result.people, result.by) == (counts, 60, "nothing")
    assert re.fullmatch(r"Only \d\.\d effective voters or prompts; at least 15 .*", result.why)
    assert result.needed == votes_for_even_models(ASKED, 40)
    bare = gate(data.merged(), ASKED)
    assert bare.rests_on == "60 votes of people, 40 of them on the two directly"
    assert bare.warnings == (
        "Voters are not known: the interval is too narrow where people voted often.",
        "Prompts are not known: the interval is too narrow where votes share prompts.",
    )


def test_planned_votes_are_2000_and_for_one_look_all_there_are() -> None:
    data = Crowd(lead=0.7).draw(400, np.random.default_rng(1)).upto(400)
    result = gate(data, ASKED).to_dict()
    assert (result["looks"], result["planned"], result["answer"]) == ("any", 2000, "better")
    assert "95%, any number of looks, planned for 2,000 votes" in result["sentences"][1]
    once = gate(data, replace(ASKED, looks=1)).to_dict()
    assert (once["looks"], once["planned"]) == (1, None)
    assert "; 95%, one look)" in once["sentences"][1]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"incumbent": CANDIDATE}, "not 'umber' and itself"),
        ({"margin": -1.0}, "--margin -1"),
        ({"margin": math.inf}, "--margin inf"),
        ({"margin": math.nan}, "--margin nan"),
        ({"level": 1.0}, "--level must lie between 0 and 1, such as 0.95, not 1"),
        ({"looks": 0}, "--looks must be any, or a number from 1 on, not 0"),
        ({"planned": 0}, "--planned must be 1 vote or more, not 0"),
        ({"require": "best"}, "--require must be one of better, not-worse, not 'best'"),
        ({"claims": "all"}, "--claims must be one of"),
    ],
)
def test_what_no_gate_can_ask_is_quoted(change: dict[str, object], words: str) -> None:
    with pytest.raises(DataError, match=words):
        replace(ASKED, **change)  # type: ignore[arg-type]


def test_a_model_without_votes_is_named() -> None:
    data = Crowd().draw(30, np.random.default_rng(1)).upto(30)
    with pytest.raises(DataError, match="no votes on 'owl'"):
        gate(data, GateOptions(candidate="owl", incumbent=INCUMBENT, margin=20))


RUNS, LOOKS, VOTES = runs(100), 25, 3000
MODES: dict[str, tuple[Looks, int]] = {
    "once": (1, 1),
    "five": (5, 5),
    "numbered": (25, LOOKS),
    "any": ("any", LOOKS),
}


def answered(lead: float, count: int) -> dict[str, float]:
    """Return the share of gates that rule out a lead of zero, by the way they look."""
    asked = {name: options_of(looks) for name, (looks, _) in MODES.items()}
    hits = dict.fromkeys(MODES, 0)
    for seed in range(count):
        rows = two_models(np.random.default_rng([seed, int(lead)]), VOTES, lead)
        places = [VOTES * look // LOOKS for look in range(1, LOOKS + 1)]
        data = rows.one_by_one()
        for name, (_, times) in MODES.items():
            at = places[LOOKS // times - 1 :: LOOKS // times]
            hits[name] += any(
                gate(data.subset(slice(n)), asked[name]).passes is not None for n in at
            )
    return {name: hit / count for name, hit in hits.items()}


def options_of(looks: Looks) -> GateOptions:
    return GateOptions(
        candidate="m0", incumbent="m1", margin=0, require="better", looks=looks, planned=VOTES
    )


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_gates_of_equal_models_on_sixty_shared_prompts_err_in_at_most_one_in_twenty(
    record_property: Record,
) -> None:
    """Random effects of 0.8 nats of 300 voters and 60 prompts, 3,000 votes, up to 25 looks."""
    shares = answered(0.0, RUNS)
    record_property("gates of equal models", shares)
    most = 0.05 + 2 * monte_carlo_error(0.05, RUNS)
    assert {name: share for name, share in shares.items() if share > most} == {}


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_five_looks_have_nearly_the_power_of_one(record_property: Record) -> None:
    """The same design, 60 points ahead: wanted within 3 percentage points, paired."""
    shares = answered(60.0, RUNS)
    record_property("gates of a candidate 60 points ahead", shares)
    assert shares["five"] >= shares["once"] - 0.03 - 2 * math.sqrt(0.03 / RUNS)
    assert shares["once"] >= shares["numbered"] >= shares["any"] >= 0.4


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("of_voter", "of_prompt"), [(0.0, 0.0), (0.8, 0.0), (0.8, 0.8)])
def test_the_votes_needed_have_the_power_that_is_named(
    of_voter: float, of_prompt: float, record_property: Record
) -> None:
    """By a pilot of 600 votes at a lead of 60 points, taken as known; then with new people."""
    passed, count, seed = 0, 0, 0
    while count < RUNS:
        seed += 1
        rng = np.random.default_rng([seed, 7])
        pilot = two_models(
            rng, 600, 60, voters=60, prompts=60, of_voter=of_voter, of_prompt=of_prompt
        ).one_by_one()
        lead = replace(lead_of(pilot, ("m0", "m1")), value=60 / POINTS_PER_NAT)
        _, total = lead.needed(lead.value, 1, None, 600, 0.95)
        if total is None or total > 20_000:
            continue
        count += 1
        times = total / 600
        n = math.ceil(60 * times)
        rows = two_models(
            rng, total, 60, voters=n, prompts=n, of_voter=of_voter, of_prompt=of_prompt
        ).one_by_one()
        passed += gate(rows, replace(options_of(1), planned=None)).answer == "better"
    row = {"voters": of_voter, "prompts": of_prompt, "power": passed / count}
    record_property("power after the votes needed", row)
    assert passed / count == pytest.approx(0.8, abs=2 * monte_carlo_error(0.8, RUNS))
