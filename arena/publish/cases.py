"""Cases for a judge: from a file of pairs, from two files of outputs, or from the battles."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arena.errors import DataError
from arena.publish.annotations import Annotations, read_annotations
from arena.publish.columns import listed
from arena.store import answered
from arena.store.store import Store
from judge.case import Case, Turn
from judge.errors import JudgeError

PROMPTS = ("prompt", "instruction")
RESPONSES = {
    "a": ("response_a", "output_a", "output_1"),
    "b": ("response_b", "output_b", "output_2"),
}
MODELS = {"a": ("model_a", "generator_1"), "b": ("model_b", "generator_2")}
OUTPUTS = ("output", "response")
GENERATORS = ("generator", "model")


@dataclass(frozen=True, slots=True)
class NamedCase:
    """A case, and who wrote it, which the judge does not see."""

    battle_id: str
    prompt_id: str
    model_a: str
    model_b: str
    case: Case


def read_cases(paths: Sequence[Path]) -> list[NamedCase]:
    """Read cases from files: JSON, JSON lines, CSV or Parquet.

    Parameters
    ----------
    paths : sequence of Path
        One file with a pair a row: ``prompt`` (text, or a list of ``{"role", "content"}``),
        ``response_a``, ``response_b``, and ``model_a``, ``model_b``, ``battle_id``,
        ``prompt_id`` where known. Or two files of outputs as AlpacaEval writes them
        (``instruction``, ``output``, ``generator``), side A first: what both answer is compared.

    Raises
    ------
    DataError
        If a file cannot be read as that, or two files have no prompt in common.
    """
    tables = [read_annotations(path) for path in paths]
    if len(tables) == 1:
        return _pairs(tables[0])
    if len(tables) == 2:
        return _matched(*tables)
    msg = f"Cases come from one file of pairs or two files of outputs, not from {len(tables)}."
    raise DataError(msg)


def battle_cases(store: Store) -> list[NamedCase]:
    """Give the arena's blind battles of one turn; raises `DataError` if there are none."""
    with store.reading() as session:
        battles = answered.answered(session)
    if not battles:
        msg = "No battle has two whole answers to one prompt: let people play first."
        raise DataError(msg)
    return [
        _named(
            Case((Turn("user", battle.prompt),), battle.text_a, battle.text_b),
            {"a": battle.model_a, "b": battle.model_b},
            battle.battle_id,
            battle.prompt_id,
        )
        for battle in battles
    ]


def _pairs(table: Annotations) -> list[NamedCase]:
    prompts = table.need(_one_of(table, PROMPTS))
    texts = {side: table.need(_one_of(table, RESPONSES[side])) for side in "ab"}
    names = {side: _names(table, MODELS[side], f"response_{side}") for side in "ab"}
    battles, prompt_ids = (_known(table, name) for name in ("battle_id", "prompt_id"))
    rows = []
    for row, prompt in enumerate(prompts):
        a, b = (_text(table, RESPONSES[side][0], row, texts[side][row]) for side in "ab")
        case = _case(table, row, prompt, a, b)
        models = {side: names[side][row] for side in "ab"}
        rows.append(_named(case, models, battles[row], prompt_ids[row]))
    return rows


def _matched(a: Annotations, b: Annotations) -> list[NamedCase]:
    ours, theirs = _outputs(a), _outputs(b)
    common = [prompt for prompt in ours if prompt in theirs]
    if not common:
        msg = f"{a.source!r} and {b.source!r} have no prompt in common."
        raise DataError(msg)
    return [
        _named(
            Case((Turn("user", prompt),), ours[prompt][0], theirs[prompt][0]),
            {"a": ours[prompt][1], "b": theirs[prompt][1]},
        )
        for prompt in common
    ]


def _outputs(table: Annotations) -> dict[str, tuple[str, str]]:
    """Give output and model by prompt; of a prompt that comes twice, the first."""
    prompts, outputs = (table.need(_one_of(table, names)) for names in (PROMPTS, OUTPUTS))
    models = _names(table, GENERATORS, Path(table.source).stem)
    found: dict[str, tuple[str, str]] = {}
    for row, prompt in enumerate(prompts):
        said = _text(table, PROMPTS[1], row, prompt)
        found.setdefault(said, (_text(table, OUTPUTS[0], row, outputs[row]), models[row]))
    return found


def _named(
    case: Case,
    models: Mapping[str, str],
    battle_id: str | None = None,
    prompt_id: str | None = None,
) -> NamedCase:
    return NamedCase(
        battle_id or case.id[:16], prompt_id or case.prompt_id[:16], models["a"], models["b"], case
    )


def _one_of(table: Annotations, names: Sequence[str]) -> str:
    found = next((name for name in names if table.has(name)), None)
    if found is None:
        there = listed(list(table.columns))
        msg = f"There is no column {names[0]!r} in {table.source!r}; there are {there}."
        raise DataError(msg)
    return found


def _names(table: Annotations, columns: Sequence[str], otherwise: str) -> list[str]:
    found = next((name for name in columns if table.has(name)), None)
    return table.texts(found) if found else [otherwise] * table.n


def _known(table: Annotations, name: str) -> Sequence[str | None]:
    return table.texts(name) if table.has(name) else [None] * table.n


def _text(table: Annotations, name: str, row: int, value: object) -> str:
    if not isinstance(value, str):
        raise table.wrong(name, row + 1, value, "a text")
    return value


def _case(table: Annotations, row: int, prompt: object, a: str, b: str) -> Case:
    try:
        return Case(_turns(prompt), a, b)
    except (JudgeError, KeyError, TypeError) as error:
        wanted = 'a text, or a list of {"role", "content"} that ends with the user'
        raise table.wrong("prompt", row + 1, prompt, wanted) from error


def _turns(prompt: Any) -> tuple[Turn, ...]:
    if isinstance(prompt, str):
        return (Turn("user", prompt),)
    return tuple(Turn(turn["role"], turn["content"]) for turn in prompt)
