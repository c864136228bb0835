"""Who answered what, as cases for a judge: each model against the baseline, or by itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judge.bench.answering import TYPICAL
from judge.case import Case, Message
from judge.ifeval import Checked, check
from judge.methods import FileMethod
from judge.tables.cases import NamedCase
from judge.tables.items import Item, Turns
from judge.tables.verdicts import Benched
from rating.errors import DataError
from rating.tables.peers import mention

ALIASES = {"wildbench": "wildbench_score"}
"""What a benchmark is called here and there."""
BASELINES = {"arena_hard": "gpt-4-0314"}
"""Whom upstream compares with, where it is not named: the items of AlpacaEval bring an answer."""
BY_CATEGORY = {
    "arena-hard-v0.1": "gpt-4-0314",
    "hard_prompt": "o3-mini-2025-01-31",
    "creative_writing": "gemini-2.0-flash-001",
}
"""Upstream's baseline by the category of an item of Arena-Hard (v2 has two)."""

Answers = Mapping[str, Mapping[str, Turns]]
"""By model and by the item's name."""


@dataclass(frozen=True, slots=True)
class Contest:
    """The cases, and what is missing.

    Attributes
    ----------
    missing : mapping of str to int
        Items without an answer of a model, or of the baseline, by model.
    """

    cases: tuple[Benched, ...]
    missing: Mapping[str, int]


def baseline_of(
    method: str, given: str | None, items: Sequence[Item], models: Sequence[str]
) -> str:
    """Name the baseline: as given, the one whose answers come with the items, or upstream's.

    Raises
    ------
    DataError
        If there is none.
    """
    upstream = _by_category(items) if method == "arena_hard" else {}
    if given is not None:
        if others := {name: some for name, some in upstream.items() if name != given}:
            mention(
                f"--baseline {given!r}: upstream compares {_categories(others)}. The scores of "
                "these items are not comparable with published ones."
            )
        return given
    if len(upstream) > 1:
        category = next(iter(next(iter(upstream.values()))))
        msg = (
            f"Upstream compares {_categories(upstream)}, and a bench has one baseline: run one "
            f"bench per category, with --where \"category = '{category}'\"."
        )
        raise DataError(msg)
    in_items = sorted({item.generator or "" for item in items if item.baseline is not None})
    if len(in_items) == 1:
        return in_items[0]
    known = next(iter(upstream), BASELINES.get(method))
    if known is not None and known in models:
        return known
    msg = (
        f"{method} compares with a baseline: name a model with --baseline"
        f"{f' (upstream has {known})' if known else ''}, or give items with answers in a column "
        "'output'."
    )
    raise DataError(msg)


def _by_category(items: Sequence[Item]) -> dict[str, dict[str, int]]:
    """Count the items of each category of Arena-Hard, by upstream's baseline."""
    counts: dict[str, dict[str, int]] = {}
    for item in items:
        if name := BY_CATEGORY.get(item.category or ""):
            own = counts.setdefault(name, {})
            own[item.category or ""] = own.get(item.category or "", 0) + 1
    return counts


def _categories(upstream: Mapping[str, Mapping[str, int]]) -> str:
    return " and ".join(
        f"{category} ({n:,} items) with {name}"
        for name, some in upstream.items()
        for category, n in some.items()
    )


def baseline_answers(name: str, items: Sequence[Item]) -> dict[str, Turns]:
    """Give the answers of a baseline that come with the items."""
    return {
        item.id: (item.baseline,)
        for item in items
        if item.baseline is not None and item.generator == name
    }


def paired(
    items: Sequence[Item], models: Sequence[str], baseline: str, answers: Answers
) -> Contest:
    """Set each model's answers, side A, against the baseline's."""
    cases, missing = [], dict.fromkeys(models, 0)
    against = answers.get(baseline, {})
    for model in models:
        own = answers.get(model, {})
        for item in items:
            if item.id not in own or item.id not in against:
                missing[model] += 1
                continue
            cases += _pairs(item, model, own[item.id], baseline, against[item.id])
    return Contest(tuple(cases), missing)


def single(items: Sequence[Item], models: Sequence[str], answers: Answers) -> Contest:
    """Take each model's answers by themselves."""
    cases, missing = [], dict.fromkeys(models, 0)
    for model in models:
        own = answers.get(model, {})
        for item in items:
            if item.id not in own:
                missing[model] += 1
                continue
            cases += _singles(item, model, own[item.id])
    return Contest(tuple(cases), missing)


def contest(
    method: FileMethod | None,
    items: Sequence[Item],
    models: Sequence[str],
    baseline: str | None,
    answers: Answers,
) -> Contest:
    """Make the cases of a method; None stands for one that looks at single answers."""
    if method is not None and method.pairwise:
        assert baseline is not None
        return paired(items, models, baseline, answers)
    return single(items, models, answers)


def with_stand_ins(
    items: Sequence[Item], models: Sequence[str], answers: Answers
) -> dict[str, dict[str, Turns]]:
    """Fill in what is still to be answered, each model in words of its own."""
    stand_in = {model: f"{model}: {TYPICAL}" for model in models}
    return {
        model: {item.id: (stand_in[model],) * (len(item.further) + 1) for item in items}
        | dict(answers.get(model, {}))
        for model in models
    }


def checked(cases: Sequence[Benched], items: Sequence[Item]) -> list[Checked]:
    """Check answers against the instructions of their items, without a judge.

    Raises
    ------
    DataError
        If an item has none.
    """
    tasks = {item.id: item.task for item in items}
    results = []
    for case in cases:
        task = tasks[case.named.prompt_id]
        if task is None:
            msg = (
                f"The item {case.named.prompt_id!r} has no instructions: give the columns "
                "'instruction_id_list' and 'kwargs' of IFEval."
            )
            raise DataError(msg)
        results.append(check(task, case.named.case.response_a))
    return results


def _pairs(item: Item, a: str, texts_a: Turns, b: str, texts_b: Turns) -> list[Benched]:
    return [
        _benched(item, turn, (a, b), _case(item, turn, texts_a, texts_b))
        for turn in range(len(item.further) + 1)
    ]


def _singles(item: Item, model: str, texts: Turns) -> list[Benched]:
    return [
        _benched(item, turn, (model,), _case(item, turn, texts))
        for turn in range(len(item.further) + 1)
    ]


def _benched(item: Item, turn: int, models: tuple[str, ...], case: Case) -> Benched:
    named = NamedCase(case.id[:16], item.id, models, case, item.id, item.checklist)
    more: dict[str, Any] = {"category": item.category, "turn": turn + 1 if item.further else None}
    return Benched(named, more | {"tags": ";".join(item.tags) or None})


def _case(item: Item, turn: int, texts_a: Turns, texts_b: Turns | None = None) -> Case:
    """Make the case of a turn: what each side said before stands beside the user's turns."""
    asked = item.further[:turn]
    prompt = (*item.prompt, *(Message("user", text) for text in asked))
    references = item.references[: turn + 1] if turn < len(item.references) else ()
    return Case(
        prompt,
        texts_a[turn],
        None if texts_b is None else texts_b[turn],
        earlier_a=texts_a[:turn],
        earlier_b=() if texts_b is None else texts_b[:turn],
        reference="\n\n".join(references) or None,
    )
