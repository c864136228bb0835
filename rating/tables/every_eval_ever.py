"""Boards as every_eval_ever has evaluations: a JSON file a model, which are read back whole."""

import json
import uuid
from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from rating.errors import DataError
from rating.tables.files import SHOWN, parsed, read_text
from rating.tables.formats import (
    as_json,
    interval_caption,
    make_folder,
    method_caption,
    summary,
    write_text,
)

Board = Mapping[str, Any]

SCHEMA = "0.3.0"
"""Version of the schema, https://github.com/evaleval/every_eval_ever."""
LIBRARY = "arena"
UNKNOWN = "unknown"
"""What stands for organisations that votes do not name; the datastore takes it, and warns."""
_PLAIN = str.maketrans(dict.fromkeys('<>:"/\\|?*', "_"))


def write_logs(
    board: Board, folder: Path, now: datetime, developers: Mapping[str, str] | None = None
) -> list[Path]:
    """Write a board, a file a model, under the paths that the datastore has.

    Parameters
    ----------
    board : mapping
        As `rating.Report.to_dict` gives it.
    folder : Path
        Is made where it is not there; files of the same votes and method are written anew.
    now : datetime
        When the files were made.
    developers : mapping of str to str, optional
        Who made a model, where that is known; of ``org/model`` it is ``org``.

    Returns
    -------
    list of Path
        ``data/<collection>/<developer>/<model>/<uuid>.json``, in the order of the ratings.

    Raises
    ------
    DataError
        If it is no board of one group, or a file cannot be written.
    """
    if "ratings" not in board or "method" not in board:
        msg = "every_eval_ever takes one board: leave out --by and --compare."
        raise DataError(msg)
    paths = []
    for place, row in enumerate(board["ratings"]):
        log = _log(board, row, place, now)
        if developer := (developers or {}).get(row["model"]):
            log["model_info"]["developer"] = developer
        path = folder / _place(log)
        make_folder(path.parent)
        write_text(as_json(log), path)
        paths.append(path)
    return paths


def _place(log: Mapping[str, Any]) -> Path:
    collection = log["evaluation_results"][0]["source_data"]["dataset_name"]
    developer, _, model = log["model_info"]["id"].rpartition("/")
    developer = developer or log["model_info"].get("developer", UNKNOWN)
    digest = sha256(log["evaluation_id"].encode()).digest()[:16]
    parts = (collection, developer, model)
    return Path("data", *map(_portable, parts), f"{uuid.UUID(bytes=digest, version=4)}.json")


def _portable(name: str) -> str:
    """Give a name that every file system takes for one folder."""
    plain = "".join(c for c in name.translate(_PLAIN) if c.isprintable())
    return plain.encode(errors="replace")[:100].decode(errors="ignore").strip(" .") or "_"


def _log(board: Board, row: Mapping[str, Any], place: int, now: datetime) -> dict[str, Any]:
    method = board["method"]
    made = sha256(as_json(method).encode()).hexdigest()[:12]
    name = str(row["model"])
    return {
        "schema_version": SCHEMA,
        "evaluation_id": f"arena-{made}/{name}/{method['data_hash']}",
        "retrieved_timestamp": str(now.timestamp()),
        "source_metadata": {
            "source_name": "pairwise votes",
            "source_type": "evaluation_run",
            "source_organization_name": UNKNOWN,
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": LIBRARY, "version": method["version"]},
        "model_info": {
            "name": name,
            "id": name,
            "additional_details": {"deployment_type": UNKNOWN, "model_availability": UNKNOWN},
        },
        "evaluation_results": [_result(board, row, place, f"arena-{made}")],
    }


def _result(board: Board, row: Mapping[str, Any], place: int, dataset: str) -> dict[str, Any]:
    method = board["method"]
    beside = {name: value for name, value in board.items() if name != "ratings"}
    rest = {name: value for name, value in row.items() if name not in ("model", "rating")}
    return {
        "evaluation_name": "arena.votes",
        "source_data": {
            "dataset_name": dataset,
            "source_type": "other",
            "additional_details": {"sha256_of_votes": method["data_hash"]},
        },
        "metric_config": {
            "evaluation_description": summary(board),
            "metric_id": "arena.bradley_terry",
            "metric_name": method_caption(board),
            "metric_kind": "elo",
            "metric_unit": "points",
            "lower_is_better": False,
            "score_type": "continuous",
            "min_score": "-Infinity",
            "max_score": "Infinity",
            "additional_details": _as_texts(beside),
        },
        "score_details": {
            "score": row["rating"],
            "uncertainty": _uncertainty(board, row),
            "details": _as_texts(rest | {"place": place}),
        },
    }


def _as_texts(values: Mapping[str, Any]) -> dict[str, str]:
    """Write values as JSON: beside what it names itself, the schema has texts alone."""
    return {name: json.dumps(value, ensure_ascii=False) for name, value in values.items()}


def _uncertainty(board: Board, row: Mapping[str, Any]) -> dict[str, Any]:
    how, uncertainty = interval_caption(board), dict[str, Any](num_samples=row["votes"])
    if board["method"].get("reference") is not None:
        return uncertainty  # errors and ends are those of a difference, not of the score
    if row["se"] is not None:
        uncertainty["standard_error"] = {"value": row["se"], "method": how}
    if row["lower"] is not None and row["upper"] is not None:
        uncertainty["confidence_interval"] = {
            "lower": row["lower"],
            "upper": row["upper"],
            "confidence_level": board["method"]["level"],
            "method": how,
        }
    return uncertainty


def is_folder_of_logs(path: Path) -> bool:
    """Whether a folder holds files as `write_logs` places them."""
    try:
        return path.is_dir() and any(path.glob("data/*/*/*/*.json"))
    except OSError:  # what cannot be looked at is refused by whoever reads it
        return False


def read_logs(folder: Path) -> dict[str, Any]:
    """Read the board that `write_logs` wrote into a folder; equal to it, number by number.

    Raises
    ------
    DataError
        If a file is something else, or the files are of several boards.
    """
    boards: dict[str, Path] = {}
    rows: dict[int, dict[str, Any]] = {}
    beside: dict[str, Any] = {}
    for path in sorted(folder.glob("data/*/*/*/*.json")):
        try:
            place, row, beside = _board_of(parsed(read_text(path), repr(str(path))))
        except (KeyError, TypeError, ValueError) as error:
            msg = (
                f"{str(path)!r} is not as arena rate --format every-eval-ever writes it "
                f"({type(error).__name__}: {str(error)[:SHOWN]}): rate the votes anew."
            )
            raise DataError(msg) from error
        boards.setdefault(as_json(beside), path)
        if len(boards) > 1 or place in rows:
            one = next(iter(boards.values()))
            msg = (
                f"{str(one)!r} and {str(path)!r} are of two boards: put each into its own folder."
            )
            raise DataError(msg)
        rows[place] = row
    return {**beside, "ratings": [rows[place] for place in sorted(rows)]}


def _board_of(log: Mapping[str, Any]) -> tuple[int, dict[str, Any], dict[str, Any]]:
    """Take a log apart into the place of a row, the row, and the board without its rows."""
    if log["eval_library"]["name"] != LIBRARY:
        raise ValueError(f"made by {log['eval_library']['name']}")
    (result,) = log["evaluation_results"]
    score = result["score_details"]
    rest = _values(score["details"])
    place = int(rest.pop("place"))
    row = {"model": log["model_info"]["name"], "rating": score["score"], **rest}
    return place, row, _values(result["metric_config"]["additional_details"])


def _values(texts: Mapping[str, str]) -> dict[str, Any]:
    return {name: json.loads(text) for name, text in texts.items()}
