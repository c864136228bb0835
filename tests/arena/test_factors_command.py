"""`arena factors`, as a user runs it."""

import json
from pathlib import Path

from arena.commands.rate import in_words
from rating.factors import Additivity
from tests.command import invoke, refused
from tests.rating.tables.test_factors import written


def test_the_table_and_the_json_say_the_same_of_parts_and_systems(tmp_path: Path) -> None:
    file = str(written(tmp_path / "v.csv"))
    words = ["factors", file, "--level", "0.8"]
    table = invoke(words, columns=100)
    report = json.loads(invoke([*words, "--format", "json"]).stdout)
    assert (table.returncode, report["level"]) == (0, 0.8)
    assert "60 votes on 6 systems" in table.stdout
    for levels in report["factors"].values():
        for one in levels:
            assert f"{one['points']:+.0f}" in table.stdout
    for one in report["systems"]["ratings"]:
        assert f"{one['rating']:.0f}" in table.stdout
        assert f"{report['sums'][one['model']]:.0f}" in table.stdout


def test_columns_that_are_not_there_are_refused(tmp_path: Path) -> None:
    file = str(written(tmp_path / "v.csv"))
    refused(invoke(["factors", file, "--by", "model,tool"]), "tool_a")
    refused(invoke(["factors", file, "--by", "model"]), "two or more")


def test_confounded_parts_end_with_code_3(tmp_path: Path) -> None:
    file = tmp_path / "c.csv"
    rows = ["model_a,scaffold_a,model_b,scaffold_b,winner", "m,x,n,y,model_a", "n,y,m,x,model_a"]
    file.write_text("\n".join(rows), encoding="utf-8")
    done = invoke(["factors", str(file)])
    assert done.returncode == 3
    assert "cannot tell apart model m from n; scaffold x from y" in done.stderr


def test_the_words_on_additivity_are_no_stronger_than_its_test() -> None:
    far = "The effects are not additive (p 0.049, 2 degrees of freedom): some models do better"
    assert in_words(Additivity(2, 9.0, 50.0, 0.049)).startswith(far)
    near = in_words(Additivity(1, 0.1, 50.0, 0.05))
    assert "additivity is found (p 0.05, 1 degree of freedom). With few votes" in near
    assert in_words(Additivity(1, reason="Few.")) == "Additivity cannot be tested. Few."
