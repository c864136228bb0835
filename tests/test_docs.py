"""The documents say what the code does."""

import json
import os
import re
import sys
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from arena.boards.evaluation import COLUMNS as STUDY_COLUMNS
from arena.boards.export import ANSWERS, BATTLES, CHATBOT_ARENA, COLUMNS, MODELS, TRL
from arena.settings import Settings, read_roster
from benchmarks import coverage
from benchmarks.wording import texts
from judge.case import KINDS
from judge.methods import PUBLISHED
from judge.methods.file import DECODING, FIELDS, GRAMMARS, REPLY, TEMPLATE, TOP
from judge.probe.verdicts import kinds
from judge.tables.agent_runs import read_agent_runs
from rating.factors import Additivity, FactorLevel, FactorReport
from tests.agent_runs import rate_by, write_runs
from tests.command import Command, captured, invoke, options_of, unexplained
from tests.judge.studies.crowds import Crowd, exported, write_csv
from tests.judge.studies.licensed import World, write
from tests.serving import Served
from tests.sqlite import new_sqlite

ROOT = Path(__file__).parents[1]


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def shows(shown: str, printed: str) -> bool:
    """Whether a page shows what is printed; a line of dots stands for what it leaves out."""
    pattern = ".*".join(map(re.escape, shown.split("...\n")))
    return re.fullmatch(pattern, printed, re.DOTALL) is not None


def code(text: str, language: str) -> str:
    """First block of code in a language."""
    return text.split(f"```{language}\n")[1].split("```")[0]


def test_the_documented_roster_and_the_example_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "roster.toml"
    blocks = re.findall(r"```toml\n(.*?)```", read("docs/guides/run.md"), re.DOTALL)
    path.write_text("".join(blocks), encoding="utf-8")
    assert [model.id for model in read_roster(path)] == ["basalt-large", "quartz-recorded"]
    assert len(read_roster(ROOT / "deploy" / "roster.example.toml")) == 3


def test_every_column_of_an_export_is_explained() -> None:
    table = read("docs/reference/formats.md").split("\n## Exports\n")[1]
    names = {**COLUMNS, **BATTLES, **ANSWERS, **CHATBOT_ARENA, **TRL, **MODELS}
    assert [name for name in names if f"`{name}`" not in table] == []


def test_the_documented_conversation_over_http_works(
    quick: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    example = code(read("docs/guides/embed.md").split("\n## HTTP API\n")[1], "python")
    exec(example.replace("http://127.0.0.1:7860", quick.url), {})
    assert "latency_s" in capsys.readouterr().out


def test_every_route_of_the_api_is_documented(quick: Served) -> None:
    with quick.visitor() as ada:
        paths = ada.get("/api/openapi.json").json()["paths"]
    document = read("docs/guides/embed.md") + read("docs/reference/routes.md")
    document = document.replace("{id}", "{battle_id}")
    assert [path for path in paths if path not in document] == []


@pytest.mark.slow
def test_the_documented_votes_of_an_application_come_in_and_are_rated(
    quick: Served, tmp_path: Path
) -> None:
    document = read("docs/guides/embed.md").split("\n## HTTP API\n")[0]
    blocks = re.findall(r"```bash\n(.*?)```", document, re.DOTALL)
    script = "".join(blocks).replace("http://127.0.0.1:7860", quick.url)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = os.environ | {"ARENA_DATABASE": quick.database, "PATH": path, "COLUMNS": "80"}
    done = captured(["bash", "-euo", "pipefail", "-c", script], tmp_path, env)
    assert done.returncode == 3, done.stderr  # the gate's: it cannot be determined yet
    shown = "".join(re.findall(r"```text\n(.*?)```", document, re.DOTALL))
    printed, written = (re.sub("[0-9a-f]{32,}", "…", text) for text in (done.stdout, shown))
    assert strip_ends(printed) == strip_ends(written)


def strip_ends(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]


def test_every_key_of_a_rating_is_explained() -> None:
    board = json.loads(read("tests/golden/rate_contract.json"))["expected"]
    rows = [board, board["method"], board["votes"], board["ratings"][0]]
    assert unexplained("Ratings", *rows) == []


def test_every_key_of_a_rating_of_rankings_is_explained(tmp_path: Path) -> None:
    section = read("docs/guides/rate.md").split("\n## Rankings of more than two answers\n")[1]
    file = tmp_path / "rankings.csv"
    file.write_text(code(section, "csv"), encoding="utf-8")
    report = json.loads(invoke(["rank", str(file), "--format", "json"]).stdout)
    assert [row["model"] for row in report["models"]] == ["basalt", "quartz", "flint"]
    assert unexplained("Rankings", report, report["models"][0]) == []


def test_the_documented_verdicts_get_the_documented_scores(tmp_path: Path) -> None:
    document = read("docs/guides/judge.md").split("\n## Scores\n")[1]
    file = tmp_path / "verdicts.csv"
    file.write_text(code(document, "csv"), encoding="utf-8")
    shown = invoke(["judge", "score", str(file), "--method", "pairwise"], columns=80)
    assert shown.stdout == code(document, "text")


EXPLAINED = {
    "judge": ("judge score", "judge run", "judge work", "judge methods", "bench"),
    "probe": ("judge probe", "probe similarity", "probe judge", "probe board", "probe prompts"),
    "studies": ("judge drift", "study judge"),
    "rate": ("rate", "voters"),
    "gate-and-compare": ("compare",),
}
"""The guide of each command whose options are all in it."""


@pytest.mark.parametrize("name", [name for names in EXPLAINED.values() for name in names])
def test_every_option_is_explained(name: str) -> None:
    (page,) = (page for page, names in EXPLAINED.items() if name in names)
    document, options = read(f"docs/guides/{page}.md"), options_of(name)
    assert options
    assert [option for option in options if f"`{option}" not in document] == []


@pytest.mark.parametrize(
    ("page", "section", "file"),
    [
        ("guides/judge.md", "## First run", "pairs.csv"),
        ("guides/judge.md", "### Method files", "shorter.toml"),
        ("guides/probe.md", "### Injections and biases", None),
        ("guides/studies.md", "### Accuracy against labels", "pairs.csv"),
        ("guides/rate.md", "## Rate your votes", None),
        ("guides/rate.md", "## Rankings of more than two answers", "rankings.csv"),
        ("reference/formats.md", "#### Example for every_eval_ever", None),
    ],
)
def test_the_documented_commands_print_what_the_page_says(
    page: str, section: str, file: str | None, tmp_path: Path, command: Command
) -> None:
    whole = read(f"docs/{page}")
    document = whole.split(f"\n{section}\n")[1]
    if file == "shorter.toml":
        pairs = code(whole.split("\n## First run\n")[1], "csv")
        (tmp_path / "pairs.csv").write_text(pairs, encoding="utf-8")
        (tmp_path / file).write_text(code(document, "toml"), encoding="utf-8")
    elif file is not None:
        (tmp_path / file).write_text(code(document, "csv"), encoding="utf-8")
    for example in code(document, "text").split("$ arena ")[1:]:
        line, expected = example.split("\n", 1)
        printed = command(*line.split(), COLUMNS="80").stdout
        assert ESTIMATE.sub("about", printed) == ESTIMATE.sub("about", expected)
        for now, then in zip(ESTIMATE.findall(printed), ESTIMATE.findall(expected), strict=True):
            # The fences of a call are drawn at random, and digits make more tokens than letters.
            assert number(now) == pytest.approx(number(then), rel=0.15)


def test_the_documented_bench_goes_from_prompts_to_its_table(
    tmp_path: Path, command: Command
) -> None:
    document = read("docs/guides/judge.md").split("\n## Benchmarks\n")[1]
    named = re.findall(r"`([\w.]+)`[^`]*:\n\n```(?:csv|toml)\n(.*?)```", document, re.DOTALL)
    assert [name for name, _ in named[:3]] == ["prompts.csv", "answers.csv", "bench.toml"]
    for name, content in named[:3]:
        (tmp_path / name).write_text(content, encoding="utf-8")
    for example in code(document, "text").split("$ arena ")[1:]:
        line, expected = example.split("\n", 1)
        printed = command(*line.split(), COLUMNS="80").stdout
        assert ESTIMATE.sub("about", printed) == ESTIMATE.sub("about", expected)


def test_every_key_and_grammar_of_a_method_s_file_is_explained() -> None:
    section = read("docs/reference/judge-methods.md").split("\n## ")[1]
    keys = [key for table in (TOP, REPLY, DECODING, TEMPLATE) for key in table]
    assert [word for word in (*keys, *FIELDS, *GRAMMARS) if word not in section] == []


def test_every_method_is_in_the_table_of_methods() -> None:
    document = read("docs/guides/judge.md")
    assert [name for name in PUBLISHED if f"| `{name}` |" not in document] == []


def test_the_documented_licence_of_a_judge_says_what_it_says(
    tmp_path: Path, command: Command
) -> None:
    rng, world = np.random.default_rng(3), World(favoured=1, favour=0.5)
    drawn = [("", 3000, 0.0), ("new-", 300, 0.0), ("later-", 600, 0.15)]
    for place, (name, n, fall) in enumerate(drawn):
        write(tmp_path, name, world.draw(rng, n, fall), first=10_000 * place)
    document = read("docs/guides/studies.md").split("\n## Certificates and drift\n")[1]
    for example in code(document, "text").split("$ arena ")[1:]:
        line, expected = example.split("\n", 1)
        printed = DAY.sub("a day", command(*line.split(), COLUMNS="100").stdout)
        assert shows(DAY.sub("a day", expected), printed)


def test_the_documented_raters_are_what_their_page_says(tmp_path: Path, command: Command) -> None:
    crowd = Crowd(item=1.2, rater=0.2, lean=0.25, ties=0.1)
    rows = exported(crowd, np.random.default_rng(3), (120, 8, 4), repeats=10, gold=6)
    write_csv(rows, tmp_path / "ratings.csv")
    section = read("docs/guides/studies.md").split("\n## Report on raters\n")[1]
    line, expected = code(section, "text").removeprefix("$ arena ").split("\n", 1)
    assert shows(expected, command(*line.split(), COLUMNS="100").stdout)


def test_the_documented_runs_of_agents_go_from_a_file_to_their_factors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    document = read("docs/reference/formats.md").split("\n### Agent runs\n")[1]
    effects = read("docs/guides/studies.md").split("\n## Model and scaffold effects\n")[1]
    (tmp_path / "two.jsonl").write_text(code(document, "json"), encoding="utf-8")
    (pair,) = read_agent_runs(tmp_path / "two.jsonl")
    assert [len(one.run.steps) for one in pair.responses if one.run] == [3, 2]
    write_runs(tmp_path / "runs.jsonl")
    new_sqlite(tmp_path)
    monkeypatch.chdir(tmp_path)
    for number, block in enumerate([code(document, "text"), code(effects, "text")]):
        for example in block.split("$ arena ")[1:]:
            line, expected = example.split("\n", 1)
            done = command(*line.split(), COLUMNS="100", ARENA_DATABASE="sqlite:///arena.db")
            assert shows(expected, done.stderr + done.stdout)
        if not number:
            rate_by(f"sqlite:///{tmp_path / 'arena.db'}", "mending", 12)


def test_every_option_column_kind_of_step_and_key_of_a_study_by_people_is_explained() -> None:
    document = read("docs/guides/studies.md")
    for name in ("create", "open", "status", "export"):
        assert [option for option in options_of(f"study {name}") if option not in document] == []
    keys = [one.name for kind in (FactorReport, FactorLevel, Additivity) for one in fields(kind)]
    assert unexplained("Factors", keys) == []
    columns = read("docs/reference/formats.md").split("\n### Ratings of a study\n")[1]
    assert [name for name in STUDY_COLUMNS if f"`{name}`" not in columns] == []
    assert [name for name in KINDS if f"`{name}`" not in columns] == []


FIGURE = re.compile(r"^\|.*\| [+−-]?[.\d]", re.MULTILINE)
MADE = re.compile(r"tests/[\w/]+\.py|make [a-z]|benchmarks[./]\w")
DAY = re.compile(r"\d{4}-\d\d-\d\d")


def test_every_intervention_is_explained() -> None:
    injected = read("docs/guides/probe.md").split("\n## Judge probes\n")[1]
    every = [*kinds(), *(kind for of in kinds().values() for kind in of)]
    assert [
        one for one in every if f"`{one}`" not in injected and f" {one} " not in injected
    ] == []


ESTIMATE = re.compile(r"about ([\d,]+) tokens in")


def number(text: str) -> int:
    return int(text.replace(",", ""))


def test_every_local_link_of_the_documents_leads_somewhere() -> None:
    documents = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    for document in documents:
        links = re.findall(r"\]\((?!https?://)([^)#]*)(#[^)]*)?\)", document.read_text("utf-8"))
        for link, section in links:
            target = document.parent / link if link else document
            assert target.exists(), f"{document.name}: {link}"
            if section and target.suffix == ".md":
                assert section[1:] in anchors(target), f"{document.name}: {link}{section}"


def anchors(document: Path) -> set[str]:
    """Give the names by which places of a page are linked to: of its headings, and its own."""
    text = document.read_text("utf-8")
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    names = (re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings)
    return {*names, *re.findall(r'<a id="([^"]+)">', text)}


@pytest.mark.parametrize("page", ["methods.md", "evidence.md"])
def test_every_table_of_figures_names_what_makes_it(page: str) -> None:
    _, *sections = re.split(r"^## ", read(f"docs/{page}"), flags=re.MULTILINE)
    assert [s.split("\n")[0] for s in sections if FIGURE.search(s) and not MADE.search(s)] == []


def test_every_decision_is_half_a_page_and_names_the_tests_that_hold_it() -> None:
    for decision in (ROOT / "docs" / "decisions").glob("*.md"):
        text = decision.read_text(encoding="utf-8")
        title, date, *parts = re.findall(r"^(?:#+ |(?=\d+ \w+ \d{4}$))(.+)$", text, re.MULTILINE)
        assert re.sub(r"\W+", "-", title.lower()) == decision.stem
        assert parts == ["Decision", "Reason", "Consequences", "Alternatives rejected"], date
        assert len(text.split()) <= 260, decision.name
        names = re.findall(r"`(tests/[\w/]+\.py)`", text)
        assert [name for name in names if (ROOT / name).exists()] == names != [], decision.name
        for test in re.findall(r"`(test_\w+)`", text):
            tests = (p.read_text("utf-8") for p in ROOT.glob("tests/**/*.py"))
            assert any(f"def {test}(" in source for source in tests), f"{decision.name}: {test}"


@pytest.mark.slow
def test_the_coverage_of_the_documents_is_what_its_command_prints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["coverage"])
    coverage.main()
    table = cells(capsys.readouterr().out)
    explained = read("docs/evidence.md").split("| board | ours | bootstrap")[1].split("\n\n")[0]
    assert cells(explained)[2:] == table[2:]
    shown = re.findall(r"0\.\d{3}", read("README.md").split("\n**Coverage.**")[1])
    [row] = re.findall(r"\| D1 \| 0\.8 \| (\S+) \| \S+ \| (\S+) ", read("docs/evidence.md"))
    assert shown == [*row]


def cells(table: str) -> list[list[str]]:
    """Give the first three cells of each row of a Markdown table."""
    return [[cell.strip() for cell in row.split("|")[1:4]] for row in table.strip().splitlines()]


def test_peers_are_compared_by_their_code_at_a_version() -> None:
    section = read("docs/development.md").split("\n## Comparison with other projects\n")[1]
    assert re.search(r"^As of \d{4}-\d\d-\d\d\.", section, re.MULTILINE)
    sources = dict(re.findall(r"^\[(\w+)\]: (\S+)$", section, re.MULTILINE))
    used = set()
    for row in re.findall(r"^\| (.+) \|$", section, re.MULTILINE)[1:]:
        title, _, *theirs = row.split(" | ")
        for cell in theirs:
            sourced = re.fullmatch(r"\[.+\]\[(\w+)\]", cell)
            assert sourced or cell == "–", f"{title}: {cell}"
            used |= {sourced[1]} if sourced else set()
    assert used == set(sources)
    pinned = r"https://github\.com/[\w-]+/[\w-]+/blob/[0-9a-f]{40}/\S+"
    assert [url for url in sources.values() if not re.fullmatch(pinned, url)] == []


def test_every_message_on_troubleshooting_is_one_that_the_program_has() -> None:
    rows = re.findall(r"^\| (.+?) \| ", read("docs/troubleshooting.md"), re.MULTILINE)
    quoted = [span for row in rows for span in re.findall(r"`([^`]+)`", row)]
    parts = [part.strip(" %") for span in quoted for part in span.split("…")]
    known = [text for source, _, text in texts(ROOT) if source == "code"]
    assert len(quoted) > 40
    assert [part for part in parts if not any(part in text for text in known)] == []


def test_every_example_in_python_prints_what_the_guide_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    section = read("docs/guides/embed.md").split("\n## Python\n")[1]
    blocks = re.findall(r"```(python|text)\n(.*?)```", section, re.DOTALL)
    names: dict[str, object] = {}
    for (language, example), (_, printed) in zip(blocks[::2], blocks[1::2], strict=True):
        assert language == "python"
        exec(example, names)
        assert capsys.readouterr().out == printed
    written = {path.name for path in tmp_path.iterdir()}
    assert {"intervals.svg", "win-rates.png", "verdicts.parquet"} <= written


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "SECURITY.md"])
def test_every_file_command_and_setting_that_a_page_names_exists(page: str) -> None:
    words = re.findall(r"`([^`]+)`", read(page)) + re.findall(
        r"^ {4}(\S.*?) {2,}#", read(page), re.MULTILINE
    )
    paths = [
        word for word in words if re.fullmatch(r"[\w./-]+/[\w./-]*|[\w.-]+\.(py|toml|lock)", word)
    ]
    known = {"judge/methods/NAME.toml", "document.html"}
    assert [path for path in paths if path not in known and not (ROOT / path).exists()] == []
    targets = re.findall(r"^([\w-]+):", read("Makefile"), re.MULTILINE)
    assert [word for word in words if word.startswith("make ") and word[5:] not in targets] == []
    names = {f"ARENA_{name.upper()}" for name in Settings.model_fields}
    assert [name for name in re.findall(r"`(ARENA_\w+)", read(page)) if name not in names] == []
    for word in words:
        if word.startswith("arena ") and " → " not in word:
            command = [part for part in word.split()[1:] if re.fullmatch(r"[a-z]+", part)]
            shown = invoke([*command, "--help"], columns=200)
            options = re.findall(r"--[a-z-]+", word)
            assert shown.returncode == 0, word
            assert [option for option in options if option not in shown.stdout] == [], word
