"""What is added to the product without need is caught."""

import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.structure import LIMITS, PACKAGES, ROOT
from tests.conftest import LONG

N = LIMITS["dataclasses"] + 1
"""Files with a dataclass each: more than the limits of both."""
PLANTED = """from dataclasses import dataclass

import judge.planted_{other}


@dataclass
class Planted:
    a: int
"""


def test_planted_files_dataclasses_and_an_import_cycle_are_caught(tmp_path: Path) -> None:
    for package in PACKAGES:
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for n in range(N):
        planted = PLANTED.format(other=(n + 1) % N)
        (tmp_path / f"judge/planted_{n}.py").write_text(planted, encoding="utf-8")
    words = [sys.executable, "-m", "benchmarks.structure", "--check", "--root", str(tmp_path)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    above = {line.partition(":")[0] for line in done.stdout.splitlines()}
    assert {"product files", "dataclasses", "modules in import cycles"} <= above
    assert f"modules in import cycles: {N:,}, limit 0" in done.stdout


def test_every_file_and_test_that_is_listed_as_long_exists() -> None:
    for name in LONG.read_text().split():
        file, _, test = name.partition("::")
        assert f"def {test}(" in Path(file).read_text() if test else Path(file).is_file(), name
