"""`arena rate` on the published votes that no other test rates."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rating import RateOptions, Report
from rating.tables.counts import rate_source
from rating.variants import POINTS_PER_NAT

pytestmark = pytest.mark.published


def board_of(file: Path, **options: Any) -> Report:
    report = rate_source(str(file), RateOptions(**options))
    assert isinstance(report, Report)
    return report


def test_translations_are_rated_as_the_official_scores_do(published_data: Path) -> None:
    folder = published_data / "votes" / "wmt15_fin_eng"
    board = board_of(folder / "votes.parquet")
    lines = (folder / "published_clusters.fin-eng.txt").read_text(encoding="utf-8").splitlines()
    words = [line.split() for line in lines if line.startswith("newstest")]
    official = {name: float(score) for name, score, *_ in words}
    order = sorted(official, key=lambda name: -official[name])
    assert [f"newstest2015.{row.model}.txt" for row in board.ratings] == order
    ours = [row.rating for row in board.ratings]
    assert np.corrcoef(ours, [official[name] for name in order])[0, 1] > 0.999
    assert (board.votes.used, board.votes.voters) == (31577, 46)


def test_comparisons_of_one_prompt_are_no_independent_votes(published_data: Path) -> None:
    """Ten of them come from one ranking of five systems."""
    file = published_data / "votes" / "wmt15_fin_eng" / "votes.parquet"
    apart = board_of(file, cluster="none")
    by_prompt = board_of(file, cluster="prompt")
    wider = np.array([row.se for row in by_prompt.ratings]) / [row.se for row in apart.ratings]
    assert np.median(wider) > 1.2


@pytest.mark.parametrize(
    ("name", "table"), [("citations", "citations"), ("baseball", "baseball_no_home")]
)
def test_classic_tables_have_their_printed_leads_and_deviance(
    published_data: Path, name: str, table: str
) -> None:
    folder = published_data / "votes" / "classic"
    printed = json.loads((folder / "published.json").read_text(encoding="utf-8"))[table]
    reference = printed["reference_item"]
    board = board_of(folder / f"{name}.pair_counts.csv", interval="hessian", reference=reference)
    leads = {row.model: row.strength for row in board.ratings}
    assert leads == pytest.approx({reference: 0.0, **printed["coef"]}, abs=6e-5)
    errors = {row.model: row.se / POINTS_PER_NAT for row in board.ratings}
    for model, error in printed.get("se", {}).items():
        assert errors[model] == pytest.approx(error, abs=5e-5)
    assert board.deviance == pytest.approx(printed["residual_deviance"], abs=5e-4)
