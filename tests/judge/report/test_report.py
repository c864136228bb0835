"""The report of a study: what it says first, that it loads nothing, and that its forms agree."""

import json
import re
from base64 import b64decode
from datetime import date
from html import unescape
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path

import duckdb
import numpy as np
import pytest
from fontTools.ttLib import TTFont

from judge.render.pages import SITE_HEAD
from judge.report.page import LONGEST, Example, Section, as_html, as_latex, as_markdown
from judge.report.page import Page as Report
from judge.report.plots import Mark, dots
from judge.report.studies import differing, report_page, rows, write_report
from judge.studies.alignment import Outputs
from judge.studies.data import read_study
from judge.studies.estimates import gap_of
from judge.studies.one_judge import Study, study_judges
from judge.studies.options import StudyOptions
from judge.tables.cases import read_outputs, read_prompts
from rating.charts.drawing import Scale
from tests.judge.render.test_markdown import FORBIDDEN, HOSTILE
from tests.judge.report.hostile import EXAMPLES, hostile_study
from tests.judge.studies.planted import Planted

MADE = date(2026, 5, 3)
EVIL = "<script>alert('x')</script> & 50% _b_"
VOTES = (
    "prompt_id,prompt,model_a,model_b,winner,voter,response_a,response_b\n"
    + "".join(
        f'p{n},Why {n}?,{EVIL},flint,{"model_a" if n % 4 else "model_b"},v{v},"long **{n}**",{n}\n'
        for n in range(30)
        for v in range(3)
    )
    + "p40,Odd?,flint,basalt,model_a,v0,Yes.,</div>No.\n" * 3
)
VERDICTS = (
    "prompt_id,model_a,model_b,winner,judge,reason\n"
    + "".join(f"p{n},{EVIL},flint,{'model_a' if n % 3 else 'tie'},owl,why{n}\n" for n in range(30))
    + "p40,basalt,flint,model_a,owl,because of its length\n"
)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    folder = tmp_path_factory.mktemp("study")
    for name, text in (("votes.csv", VOTES), ("verdicts.csv", VERDICTS)):
        (folder / name).write_text(text, encoding="utf-8")
    files = (str(folder / "votes.csv"), str(folder / "verdicts.csv"))
    return study_judges(*files, StudyOptions(rounds=100))


class Page(HTMLParser):
    """Takes down the tags, what they name, and the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.named: list[tuple[str, str]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.named += [(name, value or "") for name, value in attrs]

    def all(self, name: str) -> list[str]:
        return [value for attribute, value in self.named if attribute == name]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_loads_nothing_runs_nothing_and_leads_nowhere(study: Study) -> None:
    text = as_html(report_page(study, MADE))
    page = harmless(text)
    assert {link[0] for link in page.all("href")} == {"#"}
    assert "url(" not in text
    assert "http://" not in text.replace("http://www.w3.org", "")
    assert "default-src 'none'" in text


def test_the_contents_lead_to_each_section(study: Study) -> None:
    text = as_html(report_page(study, MADE))
    page = report_page(study, MADE)
    titles = [section.title for section in (page.first, *page.sections)]
    links = re.findall(r'<a href="#([a-z0-9-]+)"><bdi>([^<]*)<', text)
    assert [unescape(title) for _, title in links] == titles
    assert [anchor for anchor, _ in links] == Page(text).all("id")[1:]
    assert len({anchor for anchor, _ in links}) == len(links)


def harmless(text: str) -> Page:
    """Check that a report has no elements but its own and those of rendered texts."""
    page = Page(text)
    assert not (FORBIDDEN - {"style", "meta", "svg"}) & set(page.tags)
    ours = ("style", "meta", "title", "body", "main")
    assert [page.tags.count(tag) for tag in ours] == [1, 3, 1, 1, 1]
    names = {name for name, _ in page.named}
    assert not {"style", "src", "action", "srcdoc"} & names
    assert not [name for name in names if name.startswith("on")]
    for address in page.all("href"):
        assert re.match("#[a-z0-9-]+$|https?:|mailto:", address), address
    assert len(set(page.all("id"))) == len(page.all("id"))
    assert text.count(SITE_HEAD) == 1
    return page


def test_a_study_of_hostile_texts_is_harmless(tmp_path: Path) -> None:
    text = as_html(report_page(hostile_study(tmp_path), MADE))
    assert text.count('class="card example"') == EXAMPLES
    page = harmless(text)
    for tag in ("table", "pre", "math", "input", "blockquote", "s"):
        assert tag in page.tags
    assert "alert(1)" in page.text


@pytest.mark.parametrize("hostile", HOSTILE)
def test_no_text_of_an_example_acts(hostile: str) -> None:
    example = Example(hostile, hostile, ((hostile, hostile),) * 2, *[hostile] * 3)
    section = Section(hostile, (hostile,), examples=(example,), points=(hostile,), code=hostile)
    page = Report(hostile, hostile, {hostile: hostile}, (), section, (section,), MADE, "1.2.3")
    harmless(as_html(page))


def test_an_example_shows_markdown_and_how_much_of_it_is_left_out() -> None:
    text = f"**bold** $\\sqrt2$\n\n```\n{'x' * LONGEST}"
    example = Example("A and B", text, (("a", ""), ("b", None)), "", "", text)
    page = Report("A", "", {}, (), Section("B", examples=(example,)), (), MADE, "1.2.3")
    html = as_html(page)
    assert html.count("<strong>bold</strong>") == html.count("<msqrt>") == 2
    assert html.count(f'<p class="soft">… {len(text) - LONGEST} more characters.</p>') == 2
    assert "An empty response." in html
    assert "The text is not at hand." in html
    assert f"> … {len(text) - LONGEST} more characters." in as_markdown(page)


def test_formulas_bring_the_font_they_need(study: Study, tmp_path: Path) -> None:
    assert "@font-face" not in as_html(report_page(study, MADE))
    text = as_html(report_page(hostile_study(tmp_path), MADE))
    (font,) = re.findall(r"url\(\"data:font/woff2;base64,([^\"]+)\"\)", text)
    made = TTFont(BytesIO(b64decode(font)))
    assert "MATH" in made
    assert {ord("√"), ord("∑"), 0x1D465} <= made.getBestCmap().keys()
    assert len(font) < 90_000


def test_names_and_texts_stay_text(study: Study) -> None:
    page = Page(as_html(report_page(study, MADE)))
    assert EVIL in page.text
    assert "</div>No." in page.text
    assert "&#39;" not in page.text


def test_the_answer_comes_before_any_table(study: Study) -> None:
    text = as_html(report_page(study, MADE))
    answer = report_page(study, MADE).answers[0]
    assert text.index(answer.headline) < text.index("<table>")


class OpenWords(HTMLParser):
    """Counts the words that are shown before anything is unfolded."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.inside: list[str] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("details", "summary", "style", "title"):
            self.inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.inside and tag == self.inside[-1]:
            self.inside.pop()

    def handle_data(self, data: str) -> None:
        if self.inside in ([], ["details", "summary"]):
            self.words += data.split()


def test_the_verdict_and_four_parts_are_open_and_the_rest_folded(tmp_path: Path) -> None:
    page = report_page(Planted("person").study(tmp_path), MADE)
    assert [one.title for one in page.parts if not one.folded] == [
        "Agreement with people",
        "Outcomes by people and judge",
        "Ratings by people and judge",
        "Biases of the judge relative to people",
    ]
    html = as_html(page)
    text = " ".join(OpenWords(html).words)
    assert page.answers[0].headline in text
    assert "Rules of the comparison" in text, "headings of folded parts are in sight"
    (rule, *_) = next(one for one in page.parts if one.title == "Rules of the comparison").points
    assert rule not in text
    assert rule in " ".join(Page(html).text.split())


@pytest.mark.published
def test_the_report_on_mt_bench_has_at_most_900_open_words(published_data: Path) -> None:
    folder = published_data / "votes" / "mtbench"
    files = (str(folder / "votes.parquet"), str(folder / "judgments.parquet"))
    html = as_html(report_page(study_judges(*files, StudyOptions(rounds=100)), MADE))
    words = OpenWords(html).words
    assert 200 < len(words) <= 900
    assert "23%" in words, "people's ties in the table of outcomes"


def test_the_table_of_outcomes_holds_the_shares_of_all_pairs(tmp_path: Path) -> None:
    study = Planted("first", single=50).study(tmp_path, rounds=100)
    outcomes = np.array(study.judges[0].outcomes)
    agreed = study.judges[0].agreement.judge.with_ties.value
    assert outcomes.sum() == pytest.approx(1)
    assert np.trace(outcomes) == pytest.approx(agreed)
    assert outcomes[:, 1].sum() == outcomes[1].sum() == 0, "nobody ties"
    assert outcomes[0].sum() >= 0.5, "votes are for the better model more often than not"
    table = next(one for one in report_page(study, MADE).sections if "Outcomes" in one.title).more[
        0
    ]
    assert [row[0] for row in table.rows] == ["Better model", "Tie", "Other model", "All verdicts"]


def test_the_example_shows_both_answers_the_question_and_what_the_judge_wrote(
    study: Study,
) -> None:
    examples = next(s for s in report_page(study, MADE).sections if s.examples).examples
    odd = next(one for one in examples if one.answers[0][0] == "basalt")
    assert ([text for _, text in odd.answers], odd.prompt) == (["</div>No.", "Yes."], "Odd?")
    assert (odd.people, odd.judge) == ("3 for flint.", "1 for basalt.")
    assert odd.reason == "because of its length"


def test_examples_are_those_that_differ_most_and_not_all_of_one_prompt(study: Study) -> None:
    chosen = differing(study.data, study.data.judges[0], 4)
    assert all(votes[0] == 0 or votes[2] == 0 for _, votes, _ in chosen)
    assert all(votes != verdicts for _, votes, verdicts in chosen)
    prompts = [int(study.data.items.prompt[item]) for item, _, _ in chosen]
    assert max(map(prompts.count, prompts)) <= 2


def test_all_forms_hold_the_same_table(study: Study) -> None:
    page = report_page(study, MADE)
    assert page.first.table is not None
    cell = page.first.table.rows[0][1]
    assert cell in as_markdown(page)
    assert cell.replace("%", r"\%") in as_latex(page)
    assert cell in Page(as_html(page)).text


def test_the_tables_of_markdown_have_as_many_cells_in_every_row(study: Study) -> None:
    blocks = as_markdown(report_page(study, MADE)).split("\n\n")
    tables = [block.splitlines() for block in blocks if block.startswith("| ")]
    assert tables
    for table in tables:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table}) == 1


def test_latex_escapes_what_is_its_own(study: Study) -> None:
    text = as_latex(report_page(study, MADE))
    body = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
    assert re.search(r"(?<!\\)[%#$_]", body) is None
    assert body.count(r"\begin{table}") == body.count(r"\end{table}") > 3


def test_the_files_hold_the_figures_of_the_study(study: Study, tmp_path: Path) -> None:
    page = write_report(study, tmp_path / "made", MADE)
    figures = json.loads(page.with_suffix(".json").read_text())
    assert figures == study.to_dict()
    table = duckdb.read_parquet(str(page.with_suffix(".parquet"))).fetchall()
    names = ["judge", "group", "figure", "value", "lower", "upper", "n", "text"]
    assert [dict(zip(names, row, strict=True)) for row in table] == list(rows(study))
    rate = next(row for row in rows(study) if row["figure"] == "agreement.with_ties")
    assert rate["value"] == figures["agreement"]["with_ties"]["rate"]
    assert rate["judge"] == "owl"
    warning = next(row for row in rows(study) if row["figure"] == "first_answer.verdict")
    assert warning["text"] == figures["first_answer"]["verdict"]
    advantage = next(row for row in rows(study) if row["figure"] == "alternative.advantage")
    assert advantage["value"] == figures["alternative"]["advantage"]
    assert advantage["n"] == 3


def test_a_report_that_cannot_be_written_is_told(study: Study, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(Exception, match="Cannot write into"):
        write_report(study, tmp_path / "file" / "deep", MADE)


def test_marks_stand_where_their_values_are() -> None:
    axis = Scale(0, 1, "share", lambda x: f"{x:g}")
    marks = (Mark("people", 0.5), Mark("judge", 0.5, 0.25, 1.0))
    svg = dots([("a", marks)], axis, title="t", rule=0.25)
    places = re.findall(r'class="(\w+)" cx="([\d.]+)" cy="([\d.]+)"', svg)
    assert places == [("people", "311.9", "21.0"), ("judge", "311.9", "33.0")]
    assert '<line class="judge" x1="171.8" y1="33.0" x2="592.0"' in svg
    assert '<line class="rule" x1="171.8" y1="8.0" x2="171.8" y2="46.0"' in svg


def graded(folder: Path) -> Study:
    """Study two judges, one worse than the other, by their probabilities in both orders."""
    draw, models = np.random.default_rng(4), ("basalt", "flint", "quartz")
    votes, verdicts = ["kind,voter"], ["judge,order,preference"]
    for n in range(60):
        a, b = draw.choice(3, 2, replace=False)
        item = f"p{n},{models[a]},{models[b]}"
        for voter in range(3):
            felt = a - b + draw.normal()
            side = "tie" if abs(felt) < 0.3 else "model_a" if felt > 0 else "model_b"
            votes.append(f"{item},{side},{'prose' if n % 3 else 'code'},v{voter}")
        for judge, noise, lean in (("crow", 2.0, 0.1), ("owl", 0.7, 0.02)):
            for order, sign in (("ab", 1), ("ba", -1)):
                p = round(1 / (1 + np.exp(b - a + draw.normal(0, noise))) + sign * lean, 1)
                p = min(max(p, 0.05), 0.95)
                side = "tie" if p == 0.5 else "model_a" if p > 0.5 else "model_b"
                verdicts.append(f"{item},{side},{judge},{order},{p}")
    for name, (head, *lines) in (("votes.csv", votes), ("verdicts.csv", verdicts)):
        rows_of = [f"prompt_id,model_a,model_b,winner,{head}", *lines]
        (folder / name).write_text("\n".join(rows_of) + "\n", encoding="utf-8")
    files = (str(folder / "votes.csv"), str(folder / "verdicts.csv"))
    return study_judges(*files, StudyOptions(rounds=100, by="kind"))


def test_each_figure_of_two_judges_stands_in_its_own_row_and_column(tmp_path: Path) -> None:
    study = graded(tmp_path)
    parts = {part.title: part for part in report_page(study, MADE).sections}

    def shown(title: str) -> dict[str, list[str]]:
        table = parts[title].table
        assert table is not None
        return {row[0]: [cell.split(" (")[0] for cell in row[1:]] for row in table.rows}

    known = [one.calibration for one in study.judges if one.calibration is not None]
    assert shown("Calibration of the judge's probabilities") == {
        "Calibration error": [f"{one.ece.value:.0%}" for one in known],
        "Brier score": [f"{one.brier.value:.3f}" for one in known],
        "Temperature": [f"{one.temperature.value:.2f}" for one in known],
        "Brier score, by temperature": [f"{x.brier_by_temperature.value:.3f}" for x in known],
        "Brier score, by isotonic map": [f"{one.brier_isotonic.value:.3f}" for one in known],
        "Pairs": [f"{one.n:,}" for one in known],
    }
    beyond = shown("Agreement beyond chance, and relative to people")
    for title, name in (
        ("Same verdict in both orders", "consistent"),
        ("Changes to the answer shown first", "to_first"),
        ("Changes to the answer shown second", "to_second"),
    ):
        assert beyond[title] == [f"{(x.swaps or {})[name].value:.0%}" for x in study.judges]
    assert study.against is not None
    (lead,) = study.against.leads
    gaps = (gap_of(lead.without_ties), gap_of(lead.with_ties))
    leads = report_page(study, MADE).first.aside[-1]
    assert leads.rows[0][:4] == ("crow minus owl", *gaps, "60")
    by_kind = shown("By kind")
    for judge in study.judges:
        for kind, group in judge.groups.items():
            ours, theirs = group.agreement.judge, group.agreement.people
            each = (ours.without_ties, theirs.without_ties, ours.with_ties, theirs.with_ties)
            row = [*(f"{one.value:.0%}" for one in each), f"{ours.with_ties.n}"]
            assert by_kind[f"{kind}: {judge.name}"] == row
    for table, judge in zip(parts["Ties by threshold"].more, study.judges, strict=True):
        assert table.head[0] == f"A tie within, {judge.name}"
        assert table.rows == tuple(
            (f"±{x['threshold']:.2f}", f"{x['ties']:.0%}", f"{x['agreement']:.0%}")
            for x in judge.thresholds
        )
        assert [judge.thresholds[n]["matches_people"] for n in table.strong] == [True]


def outputs(folder: Path, text: str) -> Path:
    path = folder / "outputs.jsonl"
    path.write_text(text, encoding="utf-8")
    return path


def test_outputs_are_found_by_the_columns_that_name_prompts_and_models(tmp_path: Path) -> None:
    head = "prompt_id,model_a,model_b,winner\n"
    for name in ("votes.csv", "verdicts.csv"):
        (tmp_path / name).write_text(head + "7,x,y,tie\n7,y,z,tie\n", encoding="utf-8")
    data = read_study(str(tmp_path / "votes.csv"), str(tmp_path / "verdicts.csv"))
    lines = [
        {"id": 1, "model": 97, "name": "x", "prompt": 7, "result": "abcdefgh"},
        {"id": 7, "model": 98, "name": "y", "prompt": 7, "result": "**ab**"},
        {"id": 7, "model": 98, "name": "y", "prompt": 7, "result": "again"},
    ]
    path = outputs(tmp_path, "\n".join(map(json.dumps, lines)))
    result = Outputs(read_outputs(path, data.items.models, data.prompts))
    gaps = result.gaps(data.items, data.prompts)
    assert gaps["length"][0] == pytest.approx(3 - 2.585, abs=1e-3)  # log2 of 8 and of 6
    assert gaps["format"][0] == -1
    assert gaps["length"][1] != gaps["length"][1]
    assert result.of(data.items, data.prompts, 0) == ["abcdefgh", "**ab**"]
    asked = outputs(tmp_path, '{"question_id": 7, "turns": ["Why?", "And?"]}')
    assert read_prompts(asked, data.prompts) == {"7": "Why?\n\nAnd?"}
