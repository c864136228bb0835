"""The page of a panel: orders and correlations in place, and a row a figure for programs."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import duckdb
import numpy as np

from judge.report.judges import panel_page, write_panel
from judge.studies.options import StudyOptions
from judge.studies.panel import study_panel
from tests.judge.studies.panels import labelled, latent, written

MADE = date(2026, 5, 3)


def test_each_figure_of_a_panel_stands_in_its_own_row(tmp_path: Path) -> None:
    wrong = latent(np.random.default_rng(1), 120, [0.2, 0.3, 0.35, 0.4], 0.6)
    names = ["gpt-4", "claude-2", "llama", "gpt-3"]
    files = written(tmp_path / "verdicts.csv", labelled(wrong, names))
    panel = study_panel([files], None, StudyOptions(rounds=100))
    panel = replace(panel, by_n_eff=panel.by_n_eff[:3])  # both orders are the same here
    page, one = panel_page(panel, MADE), panel.card
    assert page.about["Items"] == "120 items of 120 prompts"
    assert page.about["Judges"] == "4 judges of 3 families"
    _, correlations, *orders, _ = page.first.more
    values = [f"{value:.2f}" for value in panel.correlations[0, 1:]]
    assert correlations.rows[0] == (f"1 {panel.judges[0].name}", "", *values)
    for table, order in zip(orders, (panel.by_n_eff, panel.by_accuracy), strict=True):
        assert table.rows == tuple(
            (f"{n}. {x['judge']}", f"{x['n_eff']:.2f}", f"{x['accuracy']:.0%}")
            for n, x in enumerate(order, 1)
        )
    file = write_panel(panel, tmp_path / "made", MADE).with_suffix(".parquet")
    rows = {row[:3]: row[3:] for row in duckdb.read_parquet(str(file)).fetchall()}
    best = (one.best.value, one.best.lower, one.best.upper, one.best.n)
    assert rows["panel", "accuracy.best", ""] == best
    first, second = (judge.name for judge in panel.judges[:2])
    pair = rows.get(("correlation", first, second)) or rows["correlation", second, first]
    assert pair[0] == panel.correlations[0, 1]
