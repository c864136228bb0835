"""`arena rate` gives the published figures of the golden tables, from files of one row a pair."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from rating.variants import POINTS_PER_NAT
from tests.rating.boards.rated import column, rated
from tests.rating.builders import baseball_games, golden

COUNTS = ("n_model_a", "n_model_b", "n_tie")


def write(folder: Path, rows: Iterable[tuple[str, str, Sequence[int]]]) -> Path:
    """Write (model_a, model_b, times of each outcome) as a file."""
    lines = [",".join([a, b, *map(str, [*n, 0][:3])]) for a, b, n in rows]
    path = folder / "pairs.csv"
    path.write_text("\n".join([",".join(["model_a", "model_b", *COUNTS]), *lines, ""]), "utf-8")
    return path


def test_baseball_gives_the_published_estimates_and_errors(tmp_path: Path) -> None:
    expected = golden("bradley_terry_baseball")["expected"]
    file = write(tmp_path, baseball_games())
    board = rated(file, interval="hessian", reference="Baltimore")
    strengths = column(board, "strength")
    assert strengths == pytest.approx({"Baltimore": 0.0, **expected["theta"]}, abs=5e-5)
    errors = {name: error / POINTS_PER_NAT for name, error in column(board, "se").items()}
    assert errors == pytest.approx({"Baltimore": 0.0, **expected["se"]}, abs=5e-5)
    assert board["deviance"] == pytest.approx(expected["deviance"], abs=5e-4)
    home = rated(file, interval="hessian", reference="Baltimore", order_effect=True)
    effect = home["parameters"]["order_effect"]
    assert effect["value"] == pytest.approx(expected["home"]["effect"], abs=5e-5)
    assert effect["se"] == pytest.approx(expected["home"]["se"], abs=5e-5)
    assert home["deviance"] == pytest.approx(expected["home"]["deviance"], abs=5e-4)
