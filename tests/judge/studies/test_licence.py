"""A judge's licence: its grades, its file, and what counts under it."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from judge.studies.gating import Verdicts, ask
from judge.studies.licence import (
    FEWEST_VOTES,
    Graded,
    Licence,
    Reference,
    _grade_of,
    as_toml,
    counted,
    graded,
    grant,
    hash_of,
    labelled,
    read_licence,
    reference,
)
from judge.studies.options import Terms
from judge.studies.rows import read_rows
from judge.studies.watch import SPENT, STEADIEST, TIGHTEST, choose, follow, watch
from rating.decide import GateOptions
from rating.errors import DataError
from tests.judge.studies.licensed import World, write

TODAY = date(2026, 11, 24)
TERMS = Terms(certificate=Path("judge.toml"), margin=12.0)


def world(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("licence")
    rng, planted = world(), World(favoured=1, favour=0.5)
    write(folder, "", planted.draw(rng, 3000))
    write(folder, "new-", planted.draw(rng, 200), first=10_000)
    write(folder, "cases-", planted.draw(rng, 300), first=20_000)
    return folder


def granted(folder: Path, terms: Terms = TERMS, by: str | None = None) -> Licence:
    return grant(folder / "votes.csv", folder / "verdicts.csv", terms, TODAY, by=by)


@pytest.fixture(scope="module")
def licence(folder: Path) -> Licence:
    return granted(folder)


def test_a_judge_is_licensed_for_the_models_that_it_is_right_for(licence: Licence) -> None:
    grades = {model.name: model.grade for model in licence.models}
    assert grades.pop("basalt") == "FAIL"
    assert set(grades.values()) == {"PASS"}
    assert licence.passed == ("flint", "quartz", "slate", "umber")
    assert (licence.judge, licence.votes, licence.people) == ("owl", 3000, 150)
    assert licence.until == date(2027, 5, 25)
    assert (licence.method, licence.templates) == ("pairwise", ("3f9c2b7a11d04e58",))
    assert licence.resolved_models == ("owl-2026-05-13",)
    assert licence.headline == (
        "The judge may replace human raters for flint, quartz, slate, umber, with the method "
        "pairwise, until 2027-05-25, based on 3,000 labels by people."
    )
    assert licence.reference is not None
    assert sum(licence.reference.votes) == 3000 - licence.models[0].votes
    nothing = licence.model_copy(update={"models": licence.models[:1]})
    assert nothing.headline == "The judge may replace human raters for no model."


def test_the_error_is_the_win_rate_of_the_judge_less_that_of_people(
    folder: Path, licence: Licence
) -> None:
    drawn = World(favoured=1, favour=0.5).draw(world(), 3000)
    sign = np.where(drawn.pairs[:, 0] == 0, 1, np.where(drawn.pairs[:, 1] == 0, -1, 0))
    own = sign != 0
    rates = [((sign * label)[own] > 0).mean() for label in (drawn.verdict, drawn.vote)]
    error = licence.models[0].error
    assert error is not None
    assert error == pytest.approx(100 * (rates[0] - rates[1]))
    assert (licence.models[0].votes, licence.models[0].prompts) == (own.sum(), own.sum())


def test_one_more_model_to_grade_widens_every_interval() -> None:
    three, five = (World(n_models=k).draw(world(), 200 * k).data() for k in (3, 5))
    ends = []
    for data, none in ((three, 2), (five, 5)):  # the last of three is not graded
        rows = labelled(data, data.judges[0], "probabilities")
        rows = rows.only(~rows.has(none))
        models = graded(data, data.judges[0], rows, 10.0, known=False)
        own = (rows.pairs == 0).any(axis=1)
        sd, n = (rows.judge - rows.score)[own].std(), models[0].votes
        assert models[0].upper is not None
        assert models[0].error is not None
        ends.append((models[0].upper - models[0].error) / (100 * sd / np.sqrt(n)))
    assert ends[0] == pytest.approx(1.96, abs=0.06)
    assert ends[1] == pytest.approx(2.326, abs=0.08)


def test_few_labels_grade_nothing() -> None:
    data = World(n_models=3).draw(world(), FEWEST_VOTES).data()
    rows = labelled(data, data.judges[0], "probabilities")
    models = graded(data, data.judges[0], rows, 10.0, known=True)
    assert {model.grade for model in models} == {"NOT GRADED"}
    assert "30 on 20 are needed" in models[0].sentence(10)
    least = World(n_models=2).draw(world(), FEWEST_VOTES).data()
    rows = labelled(least, least.judges[0], "probabilities")
    assert graded(least, least.judges[0], rows, 10.0, known=False)[0].why == ""
    two = World(n_models=2, per_voter=100).draw(world(), 200).data()
    rows = labelled(two, two.judges[0], "probabilities")
    few = "because its labels are by fewer than three equally active people"
    for known, why in ((True, few), (False, "")):
        assert graded(two, two.judges[0], rows, 10.0, known=known)[0].why == why


def test_a_judge_that_says_what_people_say_has_an_interval_with_a_width() -> None:
    data = World(right=(1.0,), taste=0.0, n_models=2).draw(world(), 200).data()
    rows = labelled(data, data.judges[0], "probabilities")
    model = graded(data, data.judges[0], rows, 10.0, known=True)[0]
    assert model.error == 0
    assert model.lower is not None
    assert model.lower < -1
    assert model.grade == "PASS"


def test_a_model_with_scores_beyond_the_labelled_ones_is_not_graded(tmp_path: Path) -> None:
    drawn = World().draw(world(), 1200)
    tame = replace(drawn, sure=0.5 + (drawn.sure - 0.5) / 2)
    write(tmp_path, "", tame)
    wild = replace(drawn, sure=np.where(drawn.verdict > 0, 0.99, 0.01))
    write(tmp_path, "more-", wild, first=50_000)
    lines = (tmp_path / "more-verdicts.csv").read_text().splitlines()[1:]
    umber = [line for line in lines if "umber" in line][:60]
    with (tmp_path / "verdicts.csv").open("a") as file:
        file.write("\n".join(umber) + "\n")
    licence = granted(tmp_path)
    assert (licence.votes, licence.items, licence.prompts) == (1200, 1200, 1200)
    models = {model.name: model for model in licence.models}
    assert models["umber"].grade == "NOT GRADED"
    assert models["umber"].outside >= 0.05
    assert "are outside the labelled range" in models["umber"].sentence(12)
    assert models["flint"].outside < 0.05
    assert models["flint"].grade == "PASS"


@pytest.mark.parametrize(
    ("head", "cell", "words"),
    [
        ("judge", "gpt-4", ["'gpt-4'", "labels of people, never of models"]),
        ("template", "3f9c", ["'3f9c'", "never of models"]),
        ("voter_kind", "simulated", ["'simulated'", "never of models"]),
        ("voter", "owl", ["voter 'owl'", "never of models"]),
        ("voter", "flint", ["voter 'flint'", "never of models"]),
    ],
)
def test_labels_of_models_are_refused(
    licence: Licence, folder: Path, tmp_path: Path, head: str, cell: str, words: list[str]
) -> None:
    lines = [line.split(",") for line in (folder / "votes.csv").read_text().splitlines()]
    names = lines[0] if head in lines[0] else [*lines[0], head]
    rows = [line if head in lines[0] else [*line, cell] for line in lines[1:]]
    rows[7][names.index(head)] = cell
    text = "\n".join(",".join(row) for row in [names, *rows])
    (tmp_path / "votes.csv").write_text(text)
    with pytest.raises(DataError) as error:
        grant(tmp_path / "votes.csv", folder / "verdicts.csv", TERMS, TODAY)
    assert [word for word in words if word not in str(error.value)] == []
    with pytest.raises(DataError, match="never of models"):
        watch(licence, tmp_path / "votes.csv", folder / "verdicts.csv", TODAY)


def test_a_licence_is_of_one_judge_one_method_and_one_template(
    folder: Path, tmp_path: Path
) -> None:
    drawn = World().draw(world(), 300)
    write(tmp_path, "", drawn)
    first = (tmp_path / "verdicts.csv").read_text()
    for other, word in (
        ({"judge": "hawk"}, "one judge"),
        ({"method": "arena_hard"}, "one method"),
        ({"template": "77"}, "one template"),
    ):
        write(tmp_path, "other-", drawn, by=other)
        rest = (tmp_path / "other-verdicts.csv").read_text().split("\n", 1)[1]
        (tmp_path / "verdicts.csv").write_text(first + rest)
        with pytest.raises(DataError, match=f"covers {word}"):
            granted(tmp_path)


def test_a_licence_with_categories_is_for_those_that_were_labelled(folder: Path) -> None:
    by = granted(folder, by="category")
    assert (by.column, by.categories) == ("category", ("chat", "code"))
    assert "umber for category chat, code, with the method pairwise, until" in by.headline
    verdict = {role: [value] for role, value in VERDICT.items()}
    assert counted(by, verdict | {"by": ["code"]}, 1)[1] == ()
    assert counted(by, verdict | {"by": ["poems"]}, 1)[1] == (
        "1 verdict is not counted: the category 'poems', which the certificate does not cover.",
    )


def test_a_licence_is_read_back_as_it_was_written(licence: Licence, tmp_path: Path) -> None:
    names = {"judge": 'o"w\\l\n\x7f\u202e[models]', "column": "by", "categories": ("é",)}
    hostile = licence.model_copy(update=names)
    for one in (licence, hostile, licence.model_copy(update={"people": None, "reference": None})):
        path = tmp_path / "judge.toml"
        path.write_text(as_toml(one), encoding="utf-8")
        assert read_licence(path) == one


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("margin = 12.0", "margin = 120.0", ["margin", "120.0", "less than or equal to 100"]),
        ("margin = 12.0", 'margin = "wide"', ["margin", "'wide'"]),
        ("margin = 12.0", "margin = 1.0", ["grade of 'flint'", "'PASS'", "FAIL"]),
        ("version = 1", "version = 2", ["version", "2"]),
        ('judge = "owl"', 'judge = " "', ["judge", "' '", "match"]),
        ("until = 2027-05-25", "until = 2025-05-25", ["until", "2025-05-25", "after made"]),
        ("until = 2027-05-25", 'until = "soon"', ["until", "'soon'", "valid date"]),
        ("votes_sha256 = ", "votes_sha256 = 5 #", ["votes_sha256", "5", "string"]),
        ('signal = "probabilities"', 'signal = "smoke"', ["signal", "'smoke'", "marks"]),
        ('grade = "FAIL"', 'grade = "PASS"', ["grade of 'basalt'", "'PASS'", "FAIL"]),
        ('grade = "FAIL"', 'grade = "GOOD"', ["models.0.grade", "'GOOD'"]),
        ("votes_a_year = 3000", "votes_a_year = true", ["votes_a_year", "True"]),
        ("of_voter = ", "of_voter = 7 #", ["reference.of_voter", "7", "less than or equal to 1"]),
        ("edges = [", "edges = [0.1, 0.2, ", ["reference of", "edges is", "2 numbers"]),
        ("covariance = [[", "covariance = [[0.9, ", ["covariance", "rows"]),
        ('method = "pairwise"', 'method = "pairwise"\nmood = "good"', ["mood", "'good'"]),
        ('method = "pairwise"\n', "", ["has no method"]),
        ("[reference]", "[reference", ["is not TOML"]),
    ],
)
def test_a_key_that_cannot_be_is_quoted(
    licence: Licence, tmp_path: Path, old: str, new: str, words: list[str]
) -> None:
    text = as_toml(licence)
    assert old in text
    path = tmp_path / "judge.toml"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(DataError) as error:
        read_licence(path)
    assert [word for word in words if word not in str(error.value)] == [], str(error.value)


VERDICT = {
    "judge": "owl",
    "method": "pairwise",
    "template": "3f9c2b7a11d04e58",
    "resolved": "owl-2026-05-13",
    "model_a": "flint",
    "model_b": "umber",
}


@pytest.mark.parametrize(
    ("role", "value", "words"),
    [
        ("judge", "hawk", "the judge 'hawk', which differs"),
        ("method", "arena_hard", "the method 'arena_hard', which differs"),
        ("template", "00", "the template '00', which differs"),
        ("template", None, "no template is named, which differs"),
        ("resolved", "owl-2027-01-01", "the resolved model 'owl-2027-01-01'"),
        ("resolved", "owl-2026-05-13, owl-9", "the resolved model 'owl-2026-05-13, owl-9'"),
        ("fingerprint", "fp_1", "the fingerprint 'fp_1', which differs"),
        ("model_a", "basalt", "does not pass the model 'basalt' (FAIL)"),
        ("model_b", "novel", "does not pass the model 'novel' (NOT GRADED)"),
    ],
)
def test_a_verdict_that_is_not_the_licence_s_is_named_and_not_counted(
    licence: Licence, role: str, value: str | None, words: str
) -> None:
    rows: list[dict[str, str | None]] = [{**VERDICT}, {**VERDICT, role: value}]
    columns = {name: [row.get(name) for row in rows] for name in {*VERDICT, role}}
    if role == "fingerprint":
        columns[role][0] = "settled"
    counts, sentences = counted(licence, columns, 2)
    assert counts.tolist() == [True, False]
    assert len(sentences) == 1
    assert words in sentences[0]


def test_the_hash_of_labels_is_of_who_said_what_on_what(folder: Path, tmp_path: Path) -> None:
    head, first, *rest = (folder / "new-votes.csv").read_text().splitlines()
    cells = dict(zip(head.split(","), first.split(","), strict=True))
    other = {"prompt_id": "p", "model_a": "x", "model_b": "x", "winner": "tie", "voter": "v"}
    hashes = set()
    for column, cell in (other | {"category": "poems"}).items():
        row = ",".join((cells | {column: cell}).values())
        (tmp_path / "votes.csv").write_text("\n".join([head, row, *rest]))
        hashes.add(hash_of(read_rows(tmp_path / "votes.csv", unparsed=False)))
    assert len(hashes) == 6
    assert hash_of(read_rows(folder / "new-votes.csv", unparsed=False)) in hashes


def test_an_expired_licence_says_so(licence: Licence, folder: Path) -> None:
    assert licence.expired(licence.until) == ""
    after = date(2027, 5, 26)
    assert "expired on 2027-05-25" in licence.expired(after)
    result = watch(licence, folder / "new-votes.csv", folder / "new-verdicts.csv", after)
    assert result.status == "cannot_say"
    assert "expired on 2027-05-25" in result.why


def test_the_bound_is_that_of_a_brownian_motion_with_the_labels_error_added() -> None:
    known = Reference(
        edges=(),
        agreement=(0.8,),
        variance=(0.16,),
        votes=(2000,),
        covariance=((0.0001,),),
        of_voter=0.0,
        of_prompt=0.0,
    )
    looks = follow(known, World(right=(0.8,)).draw(world(), TIGHTEST).labelled())
    assert (looks[0]["votes"], looks[-1]["votes"]) == (30, TIGHTEST)
    error = np.sqrt(0.16 / TIGHTEST + 0.0001)
    assert looks[-1]["bound"] == pytest.approx(100 * 2 * np.sqrt(np.log(1 / SPENT) / 2) * error)
    together = known.model_copy(update={"of_voter": 1.0})
    clustered = follow(together, World(right=(0.8,)).draw(world(), TIGHTEST).labelled())
    assert clustered[-1]["bound"] > 2 * looks[-1]["bound"]


def test_more_votes_change_no_look_that_was_taken() -> None:
    known = reference(World().draw(world(1), 1500).labelled(), known=True)
    assert known is not None
    rows = World().draw(world(2), 400).labelled()
    some = follow(known, rows.only(np.arange(100)))
    for early, late in zip(some, follow(known, rows), strict=False):
        assert late["votes"] == early["votes"]
        assert late["fall"] == pytest.approx(early["fall"])
        assert late["bound"] == pytest.approx(early["bound"])


def test_the_reference_finds_what_was_planted() -> None:
    planted = World(right=(0.6, 0.75, 0.9), taste=0.15, per_voter=50)
    known = reference(planted.draw(world(), 30_000).labelled(), known=True)
    assert known is not None
    assert known.agreement == pytest.approx((0.6, 0.75, 0.9), abs=0.03)
    assert known.of_voter == pytest.approx(0.15**2 / 0.17, abs=0.04)
    assert sum(known.votes) == 30_000


def test_next_cases_have_no_vote_and_are_of_every_kind_and_mostly_of_the_worthiest(
    licence: Licence, folder: Path
) -> None:
    rng = np.random.default_rng(0)
    votes, cases = folder / "new-votes.csv", folder / "cases-verdicts.csv"
    chosen, left_out = choose(licence, votes, cases, 30, rng)
    kinds = np.bincount([case["kind"] for case in chosen], minlength=3)
    assert len(chosen) == 30
    assert kinds[2] >= 18
    assert kinds.min() >= 4
    assert not {case["model_a"] for case in chosen} & {"basalt"}
    assert "does not pass the model 'basalt'" in left_out[0]
    again, _ = choose(licence, votes, cases, 30, np.random.default_rng(0))
    assert again == chosen


def test_dear_votes_are_asked_for_less(licence: Licence, folder: Path, tmp_path: Path) -> None:
    lines = (folder / "cases-verdicts.csv").read_text().splitlines()
    assert licence.reference is not None
    surest = licence.reference.edges[-1]
    sure = [abs(2 * float(line.split(",")[4]) - 1) >= surest for line in lines[1:]]
    dear = [f"{line},{50 if far else 1}" for line, far in zip(lines[1:], sure, strict=True)]
    (tmp_path / "cases.csv").write_text("\n".join([f"{lines[0]},vote_cost", *dear]) + "\n")
    votes = folder / "new-votes.csv"
    chosen, _ = choose(licence, votes, tmp_path / "cases.csv", 30, np.random.default_rng(0))
    kinds = np.bincount([case["kind"] for case in chosen], minlength=3)
    assert kinds[1] >= 18
    assert kinds.min() >= 4
    assert {case["vote_cost"] for case in chosen if case["kind"] < 2} == {1.0}
    tells = {case["kind"]: case["worth"] * case["vote_cost"] for case in chosen}
    variances = enumerate(licence.reference.variance)
    assert tells == pytest.approx({kind: 1 / max(one, STEADIEST) for kind, one in variances})
    (tmp_path / "cases.csv").write_text("\n".join([f"{lines[0]},vote_cost", f"{lines[1]},0"]))
    with pytest.raises(DataError, match=r"vote_cost of .* is 0: give dollars above 0"):
        choose(licence, votes, tmp_path / "cases.csv", 1, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("error", "reach", "differs"),
    [
        (1.0, 4.0, "+1.0 points (−3.0 to +5.0): within the margin of 6 points."),
        (9.0, 2.0, "+9.0 points (+7.0 to +11.0): outside the margin of 6 points."),
        (-9.0, 2.0, "−9.0 points (−11.0 to −7.0): outside the margin of 6 points."),
        (4.0, 4.0, "+4.0 points (+0.0 to +8.0): inconclusive for a margin of 6 points."),
    ],
)
def test_a_model_s_grade_and_sentence_are_by_its_interval_and_the_margin(
    error: float, reach: float, differs: str
) -> None:
    lower, upper = error - reach, error + reach
    grade, rest = _grade_of(lower, upper, 6), {"votes": 99, "prompts": 50, "outside": 0.0}
    row = {"name": "x", "grade": grade, "error": error, "lower": lower, "upper": upper} | rest
    assert Graded.model_validate(row).sentence(6) == (
        f"x: the win rate by the judge differs from the win rate by people by {differs}"
    )


@pytest.mark.parametrize(("fall", "status"), [(0.15, "revoked"), (-0.1, "valid")])
def test_a_watch_says_which_way_agreement_went_and_how_far(
    licence: Licence, tmp_path: Path, fall: float, status: str
) -> None:
    write(tmp_path, "", World(favoured=1, favour=0.5).draw(world(7), 600, fall), first=40_000)
    votes = tmp_path / "votes.csv"
    votes.write_text(votes.read_text().replace(",voter,", ",nobody,", 1))
    result = watch(licence, votes, tmp_path / "verdicts.csv", TODAY)
    assert result.last is not None
    n, fell, bound = (result.last[name] for name in ("votes", "fall", "bound"))
    assert (result.status, np.sign(fell)) == (status, np.sign(fall))
    assert result.why == (
        f"{'Revoked' if fall > 0 else 'Not revoked'} after {n} votes: agreement with people "
        f"{'fell' if fall > 0 else 'rose'} by {abs(fell):.1f} percentage points since the "
        f"certificate; a fall of {bound:.1f} revokes it."
    )
    assert result.warnings[-1] == (
        "The votes do not name their voters: each vote is taken as one person's."
    )
    if status == "valid":  # a year of as many votes is not used up, one of a vote less is
        years = [licence.model_copy(update={"votes_a_year": most}) for most in (n, n - 1)]
        again = [watch(one, votes, tmp_path / "verdicts.csv", TODAY).status for one in years]
        assert again == ["valid", "cannot_say"]


def test_every_command_matches_votes_whose_id_has_another_name(
    folder: Path, licence: Licence, tmp_path: Path
) -> None:
    for name in ("votes", "new-votes"):
        text = (folder / f"{name}.csv").read_text("utf-8").replace("prompt_id", "item_id", 1)
        (tmp_path / f"{name}.csv").write_text(text, encoding="utf-8")
    note = "are matched by item_id of votes, prompt_id of verdicts and pair."
    other = grant(tmp_path / "votes.csv", folder / "verdicts.csv", TERMS, TODAY)
    assert (other.models, other.reference) == (licence.models, licence.reference)
    new, verdicts = tmp_path / "new-votes.csv", folder / "new-verdicts.csv"
    result = watch(licence, new, verdicts, TODAY)
    assert result.last == watch(licence, folder / "new-votes.csv", verdicts, TODAY).last
    assert note in result.warnings[0]
    with pytest.raises(DataError, match="each has a vote"):
        choose(licence, new, verdicts, 1, world())
    options = GateOptions(candidate="flint", incumbent="quartz", margin=50)
    gates = [
        ask(votes / "votes.csv", options, Verdicts(source=folder / "verdicts.csv"), today=TODAY)
        for votes in (folder, tmp_path)
    ]
    assert gates[0].difference == gates[1].difference
    assert any(note in warning for warning in gates[1].warnings)
