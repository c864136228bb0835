"""The page of raters: each figure in its row, and a row a figure for programs."""

from datetime import date
from pathlib import Path

import duckdb
import numpy as np

from judge.report.raters import raters_page, write_raters
from judge.studies.estimates import percent_of
from judge.studies.options import StudyOptions
from judge.studies.raters import study_raters
from tests.judge.studies.crowds import Crowd, exported, write_csv

MADE = date(2026, 5, 3)


def test_each_figure_of_raters_stands_in_its_own_row(tmp_path: Path) -> None:
    crowd = Crowd(item=1.2, rater=0.2, lean=0.25, ties=0.1)
    ratings = exported(crowd, np.random.default_rng(3), (120, 8, 4), repeats=10, gold=6)
    write_csv(ratings, tmp_path / "ratings.csv")
    study = study_raters(str(tmp_path / "ratings.csv"), StudyOptions(rounds=100))
    page, of = raters_page(study, MADE), study.variance
    assert (page.about["Raters"], page.about["Ratings counted"]) == ("8", f"{study.share.n:,}")
    (variance,) = (one for one in page.first.more if one.head[0] == "Variance of ratings")
    assert variance.rows == (
        ("between items", percent_of(of.item)),
        ("between raters", percent_of(of.rater)),
        ("within: one rater on one item", percent_of(of.rest)),
        ("of which lasting preference of a rater", percent_of(of.interaction)),
        ("of which noise of the same rater", percent_of(of.within)),
    )
    file = write_raters(study, tmp_path / "made", MADE).with_suffix(".parquet")
    rows = {row[:2]: row[2:] for row in duckdb.read_parquet(str(file)).fetchall()}
    first = study.raters[0]
    for who, name, one in (
        ("all", "left", study.left),
        ("all", "left_in_repeats", study.left_in_repeats),
        ("all", "variance: rater", of.rater),
        (first.rater, "gold", first.gold),
        (first.rater, "retest", first.retest),
    ):
        assert rows[who, name] == (one.value, one.lower, one.upper, one.n)
