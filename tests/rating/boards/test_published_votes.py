"""`arena rate` on the published votes that no other test rates."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rating import RateOptions, Report
from rating.tables.counts import rate_source

pytestmark = pytest.mark.published


def board_of(file: Path, **options: Any) -> Report:
    report = rate_source(str(file), RateOptions(**options))
    assert isinstance(report, Report)
    return report


def test_comparisons_of_one_prompt_are_no_independent_votes(published_data: Path) -> None:
    """Ten of them come from one ranking of five systems."""
    file = published_data / "votes" / "wmt15_fin_eng" / "votes.parquet"
    apart = board_of(file, cluster="none")
    by_prompt = board_of(file, cluster="prompt")
    wider = np.array([row.se for row in by_prompt.ratings]) / [row.se for row in apart.ratings]
    assert np.median(wider) > 1.2
