"""The audit of prompts: what files are read as, each sentence of its cards, and goldens."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from judge.probe.prompts import GRADED, Asked, probe_prompts
from judge.report.cards import CardView, page_of
from rating.errors import DataError
from rating.mix import Mix
from rating.tables.files import Files
from tests.judge.probe.test_coherence import probabilities, right_or_wrong

FAST = Asked(("topic",), draws=99)
WORDS = ("write a story of", "solve the equation of", "translate the text about", "list facts on")


def results_file(folder: Path, *, interaction: float, score: bool = False, seed: int = 1) -> Path:
    """Results of 12 models on 60 prompts of 4 topics, which a second file names."""
    draw = np.random.default_rng(seed)
    p, topic = probabilities(draw, models=12, prompts=60, interaction=interaction)
    values = np.round(1 + 9 * draw.beta(4 * p, 4 * (1 - p))) if score else right_or_wrong(draw, p)
    lines = [f"model,prompt_id,{'score' if score else 'right'}"]
    lines += [f"m{i:02},p{t},{values[i, t]:g}" for i in range(12) for t in range(60)]
    file = folder / "marks.csv"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    known = [f"p{t},t{topic[t]},{WORDS[topic[t]]} number {t}" for t in range(60)]
    text = "\n".join(["prompt_id,topic,text", *known])
    (folder / "prompts.csv").write_text(text + "\n", encoding="utf-8")
    return file


def probed(folder: Path, file: Path, asked: Asked = FAST) -> dict[str, Any]:
    asked = replace(asked, prompts=Files((folder / "prompts.csv",)))
    return probe_prompts(file, asked)


def cards(result: dict[str, Any]) -> tuple[CardView, ...]:
    return page_of(result | {"version": "1", "made": "2026-01-31"}).cards


def test_planted_topics_are_said_on_every_card(tmp_path: Path) -> None:
    result = probed(tmp_path, results_file(tmp_path, interaction=3))
    together, ranking, explained = cards(result)
    assert together.verdict == "Prompts differ in how they order models: by topic, any groups."
    assert "same topic" in explained.verdict
    assert "more alike" in {row.name: row for row in explained.rows}["Same topic"].notes[0]
    most = max(one["places"] for one in result["ranking"]["boards"])
    assert most >= 2
    assert ranking.verdict.startswith(f"A model moves by up to {most} places: topic t")
    assert [row.text.split(",")[0] for row in together.rows] == ["yes", "yes"]


def test_where_nothing_was_planted_nothing_is_shown(tmp_path: Path) -> None:
    result = probed(tmp_path, results_file(tmp_path, interaction=0))
    together, _, explained = cards(result)
    assert together.verdict == "We do not find that prompts differ in how they order models."
    assert "topic" not in explained.verdict
    assert [row.text.split(",")[0] for row in together.rows] == ["not shown", "not shown"]
    term = {row.name: row for row in explained.rows}["Same topic"]
    assert "not shown to explain" in term.notes[0]


def test_groups_that_rank_alike_move_no_model(tmp_path: Path) -> None:
    lines = [f"m{i},p{t},{int(t % 12 < 3 * i)}" for i in range(1, 4) for t in range(48)]
    (tmp_path / "marks.csv").write_text("\n".join(["model,prompt_id,right", *lines]) + "\n")
    known = [f"p{t},t{t // 12},x" for t in range(48)]
    (tmp_path / "prompts.csv").write_text("\n".join(["prompt_id,topic,text", *known]) + "\n")
    ranking = cards(probed(tmp_path, tmp_path / "marks.csv"))[1]
    assert ranking.verdict == "No model changes its rank under any of the weights."
    *boards, mixes = ranking.rows
    assert {row.text for row in boards} == {"Kendall 1.00, 0 places"}
    assert (mixes.name, mixes.text, mixes.parts) == (
        "Any mix of topic",
        "3 of 3 keep their rank",
        (),
    )
    assert not ranking.picture


def test_each_planted_card_has_its_picture(tmp_path: Path) -> None:
    result = probed(tmp_path, results_file(tmp_path, interaction=3))
    together, ranking, explained = cards(result)
    of = result["together"]["map"]
    assert of["by"] == "topic"
    assert [name for name, _ in of["groups"]] == ["t0", "t1", "t2", "t3"]
    assert of["within"] > 0.2 > 0 > of["between"]
    shape = ElementTree.fromstring(together.picture)
    assert [text.text for text in shape.iter("text")][:4] == ["t0", "t1", "t2", "t3"]
    most = max(result["ranking"]["boards"], key=lambda one: one["places"])
    assert most["weighting"] in ranking.legend
    lines = [*ElementTree.fromstring(ranking.picture).iter("line")]
    assert len(lines) == 12
    moved = [one for one in most["moves"] if one["rank"] != one["rank_default"]]
    sure = [one for one in moved if one["lower"] * one["upper"] > 0]
    assert [line.get("class") for line in lines].count("judge") == len(sure)
    assert [line.get("class") for line in lines].count("other") == len(moved) - len(sure)
    assert all(row.gauge is None or row.gauge.bar for row in explained.rows)


def test_prompts_are_laid_out_by_their_words_where_nobody_named_groups(tmp_path: Path) -> None:
    of = probed(tmp_path, results_file(tmp_path, interaction=0), replace(FAST, by=()))
    assert of["together"]["map"]["by"] == "words"
    ways = [one["weighting"] for one in of["ranking"]["boards"]]
    assert ways == [
        "similar prompts share a weight",
        "one prompt each of 8 clusters",
        "one prompt each of 32 clusters",
    ]


def test_a_mix_is_one_of_groups_that_are_there(tmp_path: Path) -> None:
    file = results_file(tmp_path, interaction=1)
    asked = replace(FAST, mix=Mix.of_shares({"t0": 1, "t3": 1}))
    ways = [one["weighting"] for one in probed(tmp_path, file, asked)["ranking"]["boards"]]
    assert "your mix of topic" in ways
    with pytest.raises(DataError, match="name their column with --by"):
        probed(tmp_path, file, replace(asked, by=()))
    with pytest.raises(DataError, match="no category 'moon'"):
        probed(tmp_path, file, replace(asked, mix=Mix.of_shares({"moon": 1})))


def test_graded_results_are_told_to_be_drawn_from_a_model(tmp_path: Path) -> None:
    file = results_file(tmp_path, interaction=1.5, score=True)
    graded = probed(tmp_path, file)
    assert graded["warnings"] == [GRADED]
    assert graded["together"]["null"] == "tables drawn from the margins"
    exact = probed(tmp_path, file, replace(FAST, right=5.5))
    assert (exact["warnings"], exact["about"]["right_above"]) == ([], 5.5)
    assert exact["together"]["null"].startswith("all tables of right and wrong")


def test_preferences_in_a_column_that_is_named_are_right_if_their_mean_is_above_one_and_a_half(
    tmp_path: Path,
) -> None:
    file = results_file(tmp_path, interaction=1)
    plain = probed(tmp_path, file)
    rows = [line.rsplit(",", 1) for line in file.read_text().splitlines()[1:]]
    means = [(of, 1.5 + 0.25 * float(right)) for of, right in rows]
    lines = [f"{of},7,{mean + off}" for off in (-0.5, 0.5) for of, mean in means]
    file.write_text("\n".join(["model,prompt_id,score,preference", *lines]) + "\n")
    named = probed(tmp_path, file, replace(FAST, value="preference"))
    assert (named["about"]["value"], named["about"]["right_above"]) == ("preference", 1.5)
    assert named["together"] == plain["together"]


def test_prompts_without_a_result_of_every_model_are_left_out_and_counted(tmp_path: Path) -> None:
    file = results_file(tmp_path, interaction=0)
    lines = [line for line in file.read_text().splitlines() if not line.startswith("m03,p7,")]
    blank = ["m04,p8," if line.startswith("m04,p8,") else line for line in lines]
    file.write_text("\n".join(blank) + "\n")
    about = probed(tmp_path, file)["about"]
    assert (about["prompts"], about["left_out"], about["results"]) == (58, 2, 58 * 12)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (replace(FAST, by=("moon",)), "no column 'moon' to group prompts by"),
        (replace(FAST, value="moon"), "no column 'moon'"),
        (replace(FAST, by=("model",)), "differs between results on one prompt"),
    ],
)
def test_what_is_not_there_is_refused_with_its_name(
    tmp_path: Path, asked: Asked, words: str
) -> None:
    with pytest.raises(DataError, match=words):
        probed(tmp_path, results_file(tmp_path, interaction=0), asked)


def test_a_file_that_names_none_of_the_prompts_is_refused(tmp_path: Path) -> None:
    file = results_file(tmp_path, interaction=0)
    (tmp_path / "prompts.csv").write_text("prompt_id,topic\nq1,x\n")
    with pytest.raises(DataError, match="names none of the prompts"):
        probed(tmp_path, file)
    (tmp_path / "prompts.csv").write_text("prompt_id,topic\np1,x\np2,y\n")
    with pytest.raises(DataError, match="does not name the prompt 'p0'"):
        probed(tmp_path, file)


def test_voters_who_keep_to_one_group_are_told(tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    lines = ["model_a,model_b,winner,voter,prompt_id,topic"]
    for vote in range(600):
        voter = vote % 30
        prompt = voter % 3 + 3 * int(draw.integers(6))
        a, b = draw.choice(4, 2, replace=False)
        winner = "model_a" if draw.random() < 0.5 + 0.1 * (b - a) else "model_b"
        lines.append(f"m{a},m{b},{winner},v{voter},p{prompt},t{prompt % 3}")
    file = tmp_path / "votes.csv"
    file.write_text("\n".join(lines) + "\n")
    result = probe_prompts(file, FAST)
    assert result["warnings"] == [
        "100% of the votes are by people who voted in one group of topic only, although on several"
        " prompts: differences may be between people, not prompts."
    ]
    mixed = tmp_path / "mixed.csv"
    mixed.write_text(file.read_text().replace(",v", ",w" + "x" * 3).replace("wxxx", "v"))
    rows = [line.split(",") for line in lines[1:]]
    for at, row in enumerate(rows):
        row[3] = f"v{at % 31}"
    mixed.write_text("\n".join([lines[0], *map(",".join, rows)]) + "\n")
    assert probe_prompts(mixed, FAST)["warnings"] == []


def test_votes_without_prompts_and_groups_tell_nothing(tmp_path: Path) -> None:
    file = tmp_path / "votes.csv"
    file.write_text("model_a,model_b,winner\nx,y,model_a\ny,x,model_a\n")
    with pytest.raises(DataError, match="There is nothing to test homogeneity with"):
        probe_prompts(file, Asked(draws=19))


@pytest.mark.published
def test_the_audit_of_alpaca_eval_finds_the_hidden_order_of_presentation(
    published_data: Path,
) -> None:
    folder = published_data / "judge"
    asked = Asked(("dataset", "is_switched"), Files((folder / "alpacaeval_items.csv",)), sample=60)
    result = probe_prompts(folder / "alpacaeval_annotations.parquet", asked)
    assert (result["about"]["models"], result["about"]["prompts"]) == (16, 802)
    sources = result["together"]
    order, unnamed = sources["also"]
    for one, statistic, mean, sd in (
        (sources, 5.535, 3.379, 0.399),
        (order, 3.466, 2.750, 0.182),
        (unnamed, 1.146, 0.773, 0.059),
    ):
        assert one["statistic"] == pytest.approx(statistic, abs=0.012), one["of"]
        assert one["null_mean"] == pytest.approx(mean, abs=0.06), one["of"]
        assert one["null_sd"] == pytest.approx(sd, rel=0.25), one["of"]
        assert one["p"] <= 0.01, one["of"]
    assert [one["of"] for one in (sources, order)] == ["dataset", "is_switched"]
    boards = {one["weighting"]: one for one in result["ranking"]["boards"]}
    wanted = {
        "helpful_base": (0.850, 3),
        "koala": (0.933, 2),
        "oasst": (0.850, 4),
        "selfinstruct": (0.917, 2),
        "vicuna": (0.800, 4),
    }
    for name, (kendall, places) in wanted.items():
        one = boards[f"dataset {name} alone"]
        assert (round(one["kendall"], 3), one["places"]) == (kendall, places), name
    assert boards["each dataset the same"]["places"] == 0


@pytest.mark.slow
@pytest.mark.published
def test_the_audit_of_mt_bench_finds_its_categories(published_data: Path) -> None:
    folder = published_data / "votes" / "mtbench"
    asked = Asked(("category",), Files((folder / "mt_bench_questions.jsonl",)))
    result = probe_prompts(folder / "votes.parquet", asked)
    assert result["together"]["statistic"] == pytest.approx(15.43, abs=0.01)
    assert result["together"]["p"] <= 0.008
    assert result["together"]["null"] == "groups permuted among prompts"
    assert result["together"]["map"]["within"] > 0 > result["together"]["map"]["between"]
    reach = {
        row["model"]: (row["best"], row["worst"])
        for row in result["ranking"]["envelope"]
        if row["kappa"] == 2
    }
    assert reach == {
        "gpt-4": (1, 1),
        "claude-v1": (2, 3),
        "gpt-3.5-turbo": (2, 3),
        "vicuna-13b-v1.2": (4, 4),
        "alpaca-13b": (5, 5),
        "llama-13b": (6, 6),
    }
    terms = {one["name"]: one["p"] for one in result["explained"]["terms"]}
    assert terms["same category"] <= 0.01 < terms["similar words (TF-IDF cosine)"]
