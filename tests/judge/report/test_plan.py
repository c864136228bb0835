"""The parts of a report on votes still to come, and on what the judge says of items without."""

import csv
import math
import re
from datetime import date
from inspect import signature
from pathlib import Path

import numpy as np
import pytest

from judge.report.page import Section
from judge.report.studies import _powered_section, _purchases, report_page, write_report
from judge.studies.alternative import corrected_rate, win_tallies
from judge.studies.one_judge import Study, study_judges
from judge.studies.options import StudyOptions
from judge.studies.plan import Plan, Signal, votes_to_buy
from judge.studies.powered import powered_ratings

MADE = date(2026, 5, 3)
MODELS = ("basalt", "flint", "quartz", "slate")
PROMPTS, VOTED = 120, 60
HEAD = "prompt_id,model_a,model_b,winner"


def studied(folder: Path, *, voted: int, methods: str = "", template: str = "") -> Study:
    """Let people vote on the first prompts, and a judge that is right of three in four on all."""
    rng = np.random.default_rng(8)
    asked = {"method": methods, "template": template}
    options = {name: value for name, value in asked.items() if value}
    votes, verdicts = [f"{HEAD},voter"], [f"{','.join([HEAD, 'judge', *options])}"]
    sides = ("model_a", "model_b")
    for prompt in range(PROMPTS):
        for _ in range(3):
            a, b = rng.choice(len(MODELS), 2, replace=False).tolist()
            item = f"p{prompt},{MODELS[a]},{MODELS[b]}"
            felt = int(rng.random() > 1 / (1 + np.exp(-0.8 * (a - b))))
            says = felt if rng.random() < 0.75 else 1 - felt
            verdicts.append(f"{item},{sides[says]},{','.join(['owl', *options.values()])}")
            if prompt < voted:
                votes.append(f"{item},{sides[felt]},v{rng.integers(30)}")
    for name, lines in (("votes.csv", votes), ("verdicts.csv", verdicts)):
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    files = (str(folder / "votes.csv"), str(folder / "verdicts.csv"))
    return study_judges(*files, StudyOptions(rounds=100))


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    return studied(tmp_path_factory.mktemp("half"), voted=VOTED)


def section(study: Study, title: str) -> Section:
    return next(s for s in report_page(study, MADE).sections if s.title == title)


def test_the_report_says_how_many_votes_to_buy(study: Study) -> None:
    powered = study.judges[0].powered
    assert powered is not None
    bought = section(study, "Sample-size planning").more[0]
    assert len(bought.rows) >= 2
    for row in bought.rows:
        width = float(row[0].strip("± points"))
        want = votes_to_buy(Signal.of_ratings(powered), width)
        assert row[1:] == ("–", "–", f"{want.without_judge:,}")
    wide = votes_to_buy(Signal(0.25, 0.5, 100, 10_000), 0.0196)  # the example of its docstring
    (enough,) = _purchases("owl", Plan(30.0, {20.0: wide}, {}, {})).rows
    assert enough == ("±20 points", "1,429", "1,329", "2,500")


def test_the_items_to_send_to_people_are_in_a_file(study: Study, tmp_path: Path) -> None:
    folder = write_report(study, tmp_path / "made", MADE).parent
    with (folder / "send.csv").open(encoding="utf-8") as file:
        sent = list(csv.DictReader(file))
    assert len(sent) == 100
    assert len({row["verdict_row"] for row in sent}) == 100
    given = Path(str(study.verdicts)).read_text().splitlines()
    for row in sent:
        assert int(row["prompt_id"].removeprefix("p")) >= VOTED  # nobody voted on it
        prompt, *models = given[int(row["verdict_row"])].split(",")[:3]
        assert (prompt, {*models}) == (row["prompt_id"], {row["model_a"], row["model_b"]})
        assert 0 < float(row["overall"]) <= 1
    plan = study.judges[0].plan
    assert plan is not None
    assert section(study, "Sample-size planning").more[-1].rows == tuple(
        (f"{a} and {b}", f"{sent:.0%}", f"{there:.0%}")
        for (a, b), (sent, there) in plan.by_pair.items()
    )


def test_where_every_item_has_votes_none_are_sent_and_an_older_list_goes(
    study: Study, tmp_path: Path
) -> None:
    folder = write_report(study, tmp_path / "made", MADE).parent
    assert (folder / "send.csv").is_file()
    every = studied(tmp_path, voted=PROMPTS)
    write_report(every, folder, MADE)
    assert not (folder / "send.csv").exists()
    (text,) = section(every, "Sample-size planning").paragraphs
    assert "All judged items have votes" in text
    assert every.judges[0].win_rates == ()


def test_the_gain_stands_with_its_interval_or_not_at_all(study: Study, tmp_path: Path) -> None:
    title = "Prediction-powered ratings"
    powered = study.judges[0].powered
    assert powered is not None
    gain, both = powered.gain, (powered.human_only, powered.ratings)
    words = f" {gain.value:.2f} ({gain.lower:.2f} to {gain.upper:.2f}) times their number"
    assert words in section(study, title).paragraphs[0]
    (table,) = section(study, title).more
    best_first = np.argsort(-powered.ratings.theta).tolist()
    for row, model in zip(table.rows, best_first, strict=True):
        points = [1000 + 400 / math.log(10) * one.theta[model] for one in both]
        assert row[0] == powered.models[model]
        assert [cell.split(" (")[0] for cell in row[1:]] == [f"{one:,.0f}" for one in points]
    of_few = _powered_section(studied(tmp_path, voted=12).judges, 0.95).paragraphs[0]
    assert of_few.startswith("How many votes the verdicts of owl save beside 32 items with votes")


def test_the_argument_that_takes_the_chances_of_items_is_named_as_it_is(study: Study) -> None:
    note = section(study, "Sample-size planning").more[-1].note
    (name,) = re.findall(r'judge\.studies\.powered takes.* as "(\w+)"', note)
    assert name in signature(powered_ratings).parameters


def test_win_rates_are_corrected_for_the_errors_that_votes_show(study: Study) -> None:
    judge = study.data.judges[0].verdicts
    (table,) = section(study, "Win rates corrected for the judge's errors").more
    assert [row[0] for row in table.rows] == list(MODELS)
    for model, by_judge, corrected, by_people in table.rows:
        want = win_tallies(study.data.items, study.data.people, judge)[model]
        assert [by_people, by_judge] == [f"{100 * one.share:.0f}%" for one in want[:2]]
        assert corrected.startswith(f"{100 * (corrected_rate(*want[1:]).value or 0):.0f}% (")


def test_a_rate_that_cannot_be_corrected_is_a_dash_with_its_reason(tmp_path: Path) -> None:
    """The judge says of slate what people do not: nothing is known of its errors there."""
    votes = [f"p{n},basalt,flint,model_{'ab'[n % 2]},v{n}" for n in range(40)]
    verdicts = [f"p{n},basalt,flint,model_{'ab'[n % 2]},owl" for n in range(40)]
    verdicts += [f"q{n},basalt,slate,model_a,owl" for n in range(5)]
    for name, lines in (("votes.csv", votes), ("verdicts.csv", verdicts)):
        last = "voter" if name == "votes.csv" else "judge"
        (tmp_path / name).write_text("\n".join([f"{HEAD},{last}", *lines]), encoding="utf-8")
    files = (str(tmp_path / "votes.csv"), str(tmp_path / "verdicts.csv"))
    part = section(
        study_judges(*files, StudyOptions(rounds=100)),
        "Win rates corrected for the judge's errors",
    )
    assert part.more[0].rows[-1] == ("slate", "–", "–", "–")
    assert any(point.startswith("owl, slate: No case") for point in part.points)


def test_the_rules_say_how_the_judge_was_asked_where_the_file_does(
    study: Study, tmp_path: Path
) -> None:
    from judge.methods import method as named

    silent = " ".join(section(study, "Rules of the comparison").points)
    assert "The file of verdicts does not state how owl was asked" in silent
    (tmp_path / "ours").mkdir()
    (tmp_path / "own").mkdir()
    ours = section(
        studied(tmp_path / "ours", voted=21, methods="pairwise"), "Rules of the comparison"
    )
    digest = named("pairwise").description.template.hash
    assert f"by the method pairwise (template {digest} in this version)" in " ".join(ours.points)
    own = section(studied(tmp_path / "own", voted=21, methods="tarot"), "Rules of the comparison")
    assert "owl was asked by the method tarot." in own.points


def test_the_rules_name_the_template_that_the_verdicts_were_asked_with(tmp_path: Path) -> None:
    """Not the one of this version, which may have other words."""
    study = studied(tmp_path, voted=21, methods="pairwise", template="0a1b2c3d4e5f6789")
    points = section(study, "Rules of the comparison").points
    assert "owl was asked by the method pairwise (template 0a1b2c3d4e5f6789)." in points
