"""A board in every_eval_ever's files is by their schema, and is read back as it was."""

import json
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema_rs
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rating import RateOptions, rate, read_votes
from rating.errors import DataError
from rating.tables.columns import Reading
from rating.tables.formats import SCHEMA, read_logs, write_logs
from rating.tables.voter_report import compare, read_board

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)


def texts(*required: str, **properties: Any) -> dict[str, Any]:
    """Give the schema of an object, some of its properties texts that have to be there."""
    own = {name: {"type": "string"} for name in required}
    return {"type": "object", "required": [*required], "properties": own | properties}


STRINGS = {"type": "object", "additionalProperties": {"type": "string"}}
NUMBER = {"type": "number"}
BOUND = {"anyOf": [NUMBER, {"enum": ["Infinity", "-Infinity"]}]}
SCHEMA_OF_LOGS = {
    "desc": "What a log has to hold, and of what kind, in the schema of version 0.3.0.",
    "source": "https://github.com/evaleval/every_eval_ever, every_eval_ever/eval_types.py, and "
    "REGISTERED_CHECKS of its validator for deployments and paths; written again.",
    **texts(
        "schema_version", "evaluation_id", "retrieved_timestamp",
        schema_version={"const": "0.3.0"},
        source_metadata=texts(
            "source_organization_name",
            source_type={"enum": ["documentation", "evaluation_run"]},
            evaluator_relationship={
                "enum": ["first_party", "third_party", "collaborative", "other"]
            },
        ),
        eval_library=texts("name", "version"),
        model_info=texts(
            "name", "id",
            additional_details={
                **STRINGS,
                "required": ["deployment_type", "model_availability"],
                "properties": {
                    "deployment_type": {
                        "enum": ["self_deployed", "externally_managed", "unknown"]
                    },
                    "model_availability": {"enum": ["open_weights", "closed_weights", "unknown"]},
                },
            },
        ),
        evaluation_results={
            "type": "array",
            "minItems": 1,
            "items": texts(
                "evaluation_name",
                source_data=texts(
                    "dataset_name", source_type={"const": "other"}, additional_details=STRINGS
                ),
                metric_config={
                    "required": ["lower_is_better", "score_type", "min_score", "max_score"],
                    "properties": {
                        "lower_is_better": {"type": "boolean"},
                        "score_type": {"const": "continuous"},
                        "min_score": BOUND,
                        "max_score": BOUND,
                        "additional_details": STRINGS,
                    },
                },
                score_details={
                    "required": ["score"],
                    "properties": {
                        "score": NUMBER,
                        "details": STRINGS,
                        "uncertainty": {
                            "additionalProperties": False,
                            "properties": {
                                "num_samples": {"type": "integer"},
                                "standard_error": {
                                    "required": ["value"],
                                    "properties": {"value": NUMBER, "method": {"type": "string"}},
                                },
                                "confidence_interval": {
                                    "required": ["lower", "upper"],
                                    "properties": {
                                        "lower": NUMBER,
                                        "upper": NUMBER,
                                        "confidence_level": {"minimum": 0, "maximum": 1},
                                        "method": {"type": "string"},
                                    },
                                },
                            },
                        },
                    },
                },
            ),
        },
    ),
    "additionalProperties": False,
}  # fmt: skip
for _part in ("source_metadata", "eval_library", "model_info", "evaluation_results"):
    SCHEMA_OF_LOGS["required"].append(_part)
VALID = jsonschema_rs.validator_for(SCHEMA_OF_LOGS)
PATH = (
    r"data/[^/]+/[^/]+/[^/]+/"
    r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\.json"
)
"""Where a record lies, and how it is called: a UUID of version 4."""
NAMES = st.lists(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)
    .map(str.strip)
    .filter(bool)
    | st.sampled_from(["org/model", "../../etc/passwd", "a:b|c?", "..", "x" * 300, "שלום\u202e"]),
    min_size=3,
    max_size=4,
    unique=True,
)


def board_of(names: list[str], **options: Any) -> dict[str, Any]:
    """Rate a few votes of four people, in which everybody wins and loses."""
    pairs = [(a, b) for a in names for b in names if a != b]
    rows = [
        {"model_a": a, "model_b": b, "winner": winner, "voter": f"v{n % 4}"}
        for n, (a, b) in enumerate(pairs)
        for winner in ("model_a", "tie") + ("model_a",) * (a == names[0])
    ]
    chosen = RateOptions(**options)
    return rate(read_votes(pd.DataFrame(rows), Reading.of(chosen)), chosen).to_dict()


@settings(max_examples=40, deadline=None)
@given(names=NAMES)
def test_a_board_comes_back_equal_from_files_by_their_schema(
    tmp_path_factory: pytest.TempPathFactory, names: list[str]
) -> None:
    folder, board = tmp_path_factory.mktemp("logs"), board_of(names, level=0.9)
    paths = write_logs(board, folder, NOW)
    assert len({*paths}) == len(names)
    for path, row in zip(paths, board["ratings"], strict=True):
        log = json.loads(path.read_text(encoding="utf-8"))
        VALID.validate(log)
        assert re.fullmatch(PATH, path.relative_to(folder).as_posix())
        (result,) = log["evaluation_results"]
        assert log["model_info"]["name"] == row["model"]
        assert result["score_details"]["score"] == row["rating"]
        uncertainty = result["score_details"]["uncertainty"]
        interval = uncertainty["confidence_interval"]
        assert (interval["lower"], interval["upper"]) == (row["lower"], row["upper"])
        shown = (uncertainty["num_samples"], interval["confidence_level"])
        assert shown == (row["votes"], 0.9)
    assert read_logs(folder) == board


@pytest.mark.parametrize(
    "options",
    [
        {"interval": "none"},
        {"ties": "davidson", "level": 0.9},
        {"anchor": ("y", 1000.0)},
        {"ridge": 0.1, "cluster": "none"},
        {"reference": "y"},
    ],
)
def test_every_kind_of_board_comes_back(tmp_path: Path, options: dict[str, Any]) -> None:
    board = board_of(["x", "y", "z"], **options)
    for path in write_logs(board, tmp_path, NOW):
        VALID.validate(json.loads(path.read_text(encoding="utf-8")))
    assert read_board(tmp_path) == board


@pytest.mark.slow
def test_their_own_validator_has_nothing_to_say(tmp_path: Path) -> None:
    python = Path(__file__).parents[3] / ".venv-every-eval-ever" / "bin" / "python"
    if not python.exists():
        pytest.skip("every_eval_ever is not here: make peers")
    board = board_of(["org/x", "y", "שלום z"])
    paths = write_logs(board, tmp_path, NOW, {"y": "org", "שלום z": "Org of z"})
    names = [str(path.relative_to(tmp_path)) for path in paths]
    words = [str(python), "-m", "every_eval_ever", "validate", *names]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, "3 passed" in done.stdout) == (0, True), done.stdout


def test_the_interval_of_a_difference_is_not_given_as_that_of_a_score(tmp_path: Path) -> None:
    for path in write_logs(board_of(["x", "y", "z"], reference="y"), tmp_path, NOW):
        (result,) = json.loads(path.read_text(encoding="utf-8"))["evaluation_results"]
        assert [*result["score_details"]["uncertainty"]] == ["num_samples"]


def test_who_made_a_model_is_written_where_it_is_known(tmp_path: Path) -> None:
    paths = write_logs(board_of(["org/x", "y", "z"]), tmp_path, NOW, {"y": "Org of y"})
    made = {}
    for path in paths:
        model = json.loads(path.read_text(encoding="utf-8"))["model_info"]
        made[model["name"]] = (*path.parts[-3:-1], model.get("developer"))
    assert made["org/x"] == ("org", "x", None)
    assert made["y"] == ("Org of y", "y", "Org of y")
    assert made["z"] == ("unknown", "z", None)


def test_a_board_is_compared_with_one_in_files_of_theirs(tmp_path: Path) -> None:
    old, new = board_of(["x", "y", "z"]), board_of(["y", "x", "z"])
    write_logs(old, tmp_path, NOW)
    assert compare(read_board(tmp_path), new) == compare(old, new)


def test_two_boards_in_one_folder_are_refused(tmp_path: Path) -> None:
    for names in (["x", "y", "z"], ["y", "x", "z"]):
        write_logs(board_of(names), tmp_path, NOW)
    with pytest.raises(DataError, match="of two boards"):
        read_board(tmp_path)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda log: log["eval_library"].update(name="lm_eval"),
        lambda log: log.pop("evaluation_results"),
        lambda log: log["evaluation_results"][0]["score_details"]["details"].update(votes="{"),
        lambda log: log["evaluation_results"].append({}),
    ],
)
def test_a_log_of_something_else_is_refused_by_its_path(tmp_path: Path, spoil: Any) -> None:
    path = write_logs(board_of(["x", "y", "z"]), tmp_path, NOW)[0]
    log = json.loads(path.read_text(encoding="utf-8"))
    spoil(log)
    path.write_text(json.dumps(log), encoding="utf-8")
    with pytest.raises(DataError, match=path.name):
        read_board(tmp_path)


def test_groups_are_no_board(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="omit --by"):
        write_logs({"groups": {}}, tmp_path, NOW)
    assert SCHEMA == "0.3.0"
