"""Benchmark runs: answers of models, cases for a judge, and the leaderboard.

`answered` asks models for missing answers; replies are stored as those of a judge, so that none is
paid for twice. `contest` makes cases of them, each model against the baseline or by itself;
`checked` needs no judge. `leaderboard` scores the results, and `write_results` and
`write_leaderboard` fill the folder of a bench.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import stdev
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from judge.budget import Estimate
from judge.calls import Journal, Key, Options, forecast, recalled
from judge.case import (
    CUT,
    FILTERED,
    Case,
    CaseId,
    Complete,
    FailureClass,
    Message,
    Parameters,
    Reply,
    Request,
)
from judge.grammar import Answer, Reading
from judge.ifeval import Checked, check
from judge.methods import FileMethod
from judge.protocol import Description, Method, Template
from judge.runs import Progress, run
from judge.scoring.annotated import judge_score
from judge.scoring.benchmarks import clustered_error
from judge.scoring.logistic import bounded, unbounded
from judge.tables.annotations import Annotations
from judge.tables.cases import NamedCase
from judge.tables.items import Item, Turns
from judge.tables.verdicts import Benched, total
from judge.verdict import READ, SETTLED, Judged, Run, Verdict, consistency
from rating import Outcome
from rating.errors import DataError
from rating.outcome import of_sides
from rating.tables import formats
from rating.tables.duckdb_engine import write_rows
from rating.tables.peers import mention
from rating.tables.vote_filter import BOTH

# Answers of models


TOKENS_OUT = 400
"""Expected of an answer, before there is one."""
TYPICAL = (
    "This is a sentence of an answer of the usual length, which nobody has written yet. " * 20
)
"""Stands in estimates for an answer that is still to be given: about `TOKENS_OUT`."""


@dataclass(frozen=True, slots=True)
class _Answering(Method):
    """Send a prompt as it is: no words of ours, no fence, and the model's own system prompt.

    What identifies an answer is the model with its decoding, and the conversation: no method, no
    judge and no benchmark, so that all of them share it.
    """

    parameters: Parameters

    @property
    def description(self) -> Description:
        """What there is to know of it."""
        return Description(
            name="answer",
            template=Template.of("", ""),
            parameters=self.parameters,
            tokens_out=TOKENS_OUT,
        )

    def ask(self, case: Case, nonce: str) -> Request:
        """Return the prompt as a request."""
        return Request(case.prompt, self.parameters)

    def read(self, case: Case, reply: Reply) -> Reading | FailureClass:
        """Return the answer, also one that was cut off; or why there is none."""
        if reply.finish_reason == FILTERED:
            return FailureClass.REFUSAL
        if reply.text.strip():
            return Answer(reply.text)
        return FailureClass.TRUNCATED if reply.finish_reason == CUT else FailureClass.UNPARSED


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """An answer that a model gave when it was asked.

    Attributes
    ----------
    texts : tuple of str
        Turn by turn; fewer turns than the item has where one failed.
    failure : FailureClass or None
        Why it stopped; None also while it is pending.
    """

    item: Item
    texts: Turns = ()
    failure: FailureClass | None = None
    detail: str = ""
    finish_reason: str = ""
    tokens_in: float | None = None
    tokens_out: float | None = None
    cost_usd: float | None = None
    latency_s: float | None = None

    @property
    def whole(self) -> bool:
        """Whether every turn of the item is answered."""
        return len(self.texts) > len(self.item.further)

    def prompt(self) -> tuple[Message, ...]:
        """Return the conversation up to the turn that is next."""
        turns = list(self.item.prompt)
        for text, further in zip(self.texts, self.item.further, strict=False):
            turns += [Message("assistant", text), Message("user", further)]
        return tuple(turns)

    def after(self, row: Judged, replies: Mapping[Key, Reply]) -> "Given":
        """Return it with what came of the next turn."""
        each = [replies[key] for key in row.keys if key in replies]
        more = (row.reading.text,) if isinstance(row.reading, Answer) else ()
        return replace(
            self,
            texts=self.texts + more,
            failure=row.failure,
            detail=row.detail,
            finish_reason=each[-1].finish_reason if each else "",
            tokens_in=total([self.tokens_in, *(reply.tokens_in for reply in each)]),
            tokens_out=total([self.tokens_out, *(reply.tokens_out for reply in each)]),
            cost_usd=total([self.cost_usd, row.cost_usd]),
            latency_s=total([self.latency_s, row.latency_s]),
        )


async def answered(
    items: Sequence[Item],
    parameters: Parameters,
    complete: Complete,
    journal: Journal,
    options: Options,
    progress: Callable[[Progress], None],
) -> tuple[list[Given], Run]:
    """Let a model answer items, turn by turn; what the journal holds is not asked again.

    Returns
    -------
    list of Given
        One an item, in their order.
    Run
        Of all turns together; stopped where one of them was.
    """
    given = [Given(item=item) for item in items]
    whole: Run | None = None
    for turn in range(max((len(item.further) for item in items), default=0) + 1):
        due = {n: Case(one.prompt(), "") for n, one in enumerate(given) if _is_due(one, turn)}
        spent = 0.0 if whole is None else whole.spent_usd or 0.0
        left = None if options.limit_usd is None else max(options.limit_usd - spent, 0.0)
        last = await run(
            due.values(),
            _Answering(parameters),
            complete,
            journal,
            replace(options, limit_usd=left),
            progress=progress,
        )
        rows: dict[CaseId, Judged] = {row.case_id: row for row in last.judged}
        replies = await journal.recall([key for row in last.judged for key in row.keys])
        for n, case in due.items():
            given[n] = given[n].after(rows[case.id], replies)
        whole = last if whole is None else replace(last.after(whole), stopped=last.stopped)
        if last.stopped is not None:
            break
    assert whole is not None
    return given, whole


def _is_due(given: Given, turn: int) -> bool:
    return len(given.texts) == turn and turn <= len(given.item.further)


async def forecast_answers(
    items: Sequence[Item], parameters: Parameters, journal: Journal, options: Options
) -> Estimate:
    """Estimate what `answered` would ask; earlier turns are taken as `TYPICAL`."""
    turns = [
        Given(item=item, texts=(TYPICAL,) * turn)
        for item in items
        for turn in range(len(item.further) + 1)
    ]
    cases = [Case(one.prompt(), "") for one in turns]
    return await forecast(cases, _Answering(parameters), journal, options)


async def recalled_answers(
    items: Sequence[Item], parameters: Parameters, journal: Journal, options: Options
) -> dict[str, Turns]:
    """Give the answers to items that the journal holds whole, by the item's name; ask nothing."""
    given = [Given(item=item) for item in items]
    method = _Answering(parameters)
    for turn in range(max((len(item.further) for item in items), default=0) + 1):
        due = {n: Case(one.prompt(), "") for n, one in enumerate(given) if _is_due(one, turn)}
        known = await recalled(due.values(), method, journal, options)
        for n, case in due.items():
            reading = known.get(case.id)
            if isinstance(reading, Answer):
                given[n] = replace(given[n], texts=(*given[n].texts, reading.text))
    return {one.item.id: one.texts for one in given if one.whole}


# Cases for a judge


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
        raise DataError(
            f"Upstream compares {_categories(upstream)}, and a bench has one baseline: run one "
            f"bench per category, with --where \"category = '{category}'\"."
        )
    in_items = sorted({item.generator or "" for item in items if item.baseline is not None})
    if len(in_items) == 1:
        return in_items[0]
    known = next(iter(upstream), BASELINES.get(method))
    if known is not None and known in models:
        return known
    raise DataError(
        f"{method} compares with a baseline: name a model with --baseline"
        f"{f' (upstream has {known})' if known else ''}, or give items with answers in a column "
        "'output'."
    )


def _by_category(items: Sequence[Item]) -> dict[str, dict[str, int]]:
    """Count the items of each category of Arena-Hard, by upstream's baseline."""
    counts: dict[str, dict[str, int]] = {}
    for category, n in Counter(item.category or "" for item in items).items():
        if name := BY_CATEGORY.get(category):
            counts.setdefault(name, {})[category] = n
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


def contest(
    method: FileMethod | None,
    items: Sequence[Item],
    models: Sequence[str],
    baseline: str | None,
    answers: Answers,
) -> tuple[list[Benched], dict[str, int]]:
    """Make the cases of a method; None stands for one that looks at single answers.

    Returns
    -------
    list of Benched
        One for each turn of an item: each model's answers alone, or on side A against those of
        the baseline.
    dict of str to int
        Items without an answer of a model, or of the baseline, by model.
    """
    pairwise = method is not None and method.pairwise
    against = answers.get(baseline or "", {}) if pairwise else None
    cases, missing = list[Benched](), dict.fromkeys(models, 0)
    for model in models:
        own = answers.get(model, {})
        for item in items:
            if item.id not in own or (against is not None and item.id not in against):
                missing[model] += 1
                continue
            names = (model,) if against is None else (model, baseline or "")
            theirs = None if against is None else against[item.id]
            cases += (
                _benched(item, turn, names, own[item.id], theirs)
                for turn in range(len(item.further) + 1)
            )
    return cases, missing


def _benched(
    item: Item, turn: int, models: tuple[str, ...], texts_a: Turns, texts_b: Turns | None
) -> Benched:
    """Make the case of a turn, with each side's earlier answers and the user's turns."""
    prompt = (*item.prompt, *(Message("user", text) for text in item.further[:turn]))
    references = item.references[: turn + 1] if turn < len(item.references) else ()
    case = Case(
        prompt,
        texts_a[turn],
        None if texts_b is None else texts_b[turn],
        earlier_a=texts_a[:turn],
        earlier_b=() if texts_b is None else texts_b[:turn],
        reference="\n\n".join(references) or None,
    )
    named = NamedCase(case.id[:16], item.id, models, case, item.id, item.checklist)
    more: dict[str, Any] = {"category": item.category, "turn": turn + 1 if item.further else None}
    return Benched(named, more | {"tags": ";".join(item.tags) or None})


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
            raise DataError(
                f"The item {case.named.prompt_id!r} has no instructions: give the columns "
                "'instruction_id_list' and 'kwargs' of IFEval."
            )
        results.append(check(task, case.named.case.response_a))
    return results


# Results and leaderboard


RESULTS = "results.parquet"
Control = tuple[Annotations | None, Annotations | None]
"""Difficulties of the items and rows of gamed baselines, for AlpacaEval's length control."""
NO_CONTROL: Control = (None, None)
Row = Mapping[str, Any]
OF_SIDE_A = of_sides("model")[0]
_SOME = ("turn", "tags", "category", "fallback_for")


def require_folder(folder: Path) -> None:
    """Raise `DataError` unless results can be written there: better before they are paid for."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        msg = f"Cannot make the folder {str(folder)!r}: {error.strerror}. Name another with --out."
        raise DataError(msg) from error


def write_results(rows: Sequence[Row], kinds: Mapping[str, str], folder: Path) -> Path:
    """Write the results as Parquet and as CSV; return the Parquet file.

    Columns that only some benchmarks have are excluded where this one has none of them.
    """
    absent = {name for name in _SOME if all(row.get(name) is None for row in rows)}
    kinds = {name: kind for name, kind in kinds.items() if name not in absent}
    for name in ("results.csv", RESULTS):
        write_rows(rows, kinds, folder / name)
    return folder / RESULTS


def write_answers(given: Mapping[str, Sequence[Given]], folder: Path) -> None:
    """Write the answers that models gave, as ``--answers`` takes them."""
    rows = [_answer(model, one) for model, own in given.items() for one in own]
    if rows:
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        formats.write_text("".join(lines), folder / "answers.jsonl")


def _answer(model: str, one: Given) -> Row:
    return {
        "id": one.item.id,
        "prompt": one.item.text,
        "model": model,
        "response": one.texts[0] if len(one.texts) == 1 else list(one.texts),
        "finish_reason": one.finish_reason,
        "tokens_in": one.tokens_in,
        "tokens_out": one.tokens_out,
        "cost": one.cost_usd,
        "latency": one.latency_s,
    }


def leaderboard(
    rows: Sequence[Row],
    results: Path,
    models: Sequence[str],
    given: Mapping[str, Sequence[Given]],
    missing: Mapping[str, int],
    control: Control = NO_CONTROL,
) -> dict[str, Any]:
    """Score the results as `arena judge score` does, and rank the models.

    Returns
    -------
    dict
        ``models``, best first: ``model``, ``win_rate`` in per cent or ``score``, ``lower`` and
        ``upper``, ``lc_win_rate`` where it applies, ``n``, ``cost`` (of its answers, where they
        were asked for, and of judging them), both parts of it, ``failed`` (cases without a
        verdict, or without an answer), and the other columns of the score. And ``scored_as``,
        ``cost`` of all models, ``failed`` of all, and ``warnings``.
    """
    scored = judge_score(results, items=control[0], regularisation=control[1])
    side = OF_SIDE_A if rows and OF_SIDE_A in rows[0] else "model"
    by_model = {row["model"]: row for row in scored["models"]}
    columns = list(dict.fromkeys(name for row in scored["models"] for name in row))
    own = {name: [row for row in rows if row[side] == name] for name in models}
    board = [
        _ranked(
            scored["method"],
            dict.fromkeys(columns) | {"model": name, "n": 0} | by_model.get(name, {}),
            own[name],
            given.get(name, ()),
            missing.get(name, 0),
        )
        for name in models
    ]
    board.sort(key=_best_first)
    baseline = [one for name, some in given.items() if name not in models for one in some]
    costs = [row["cost"] for row in board]
    return {
        "models": board,
        "scored_as": scored["method"],
        "cost": total([*costs, *(one.cost_usd for one in baseline)]),
        "failed": sum(row["failed"] for row in board),
        "warnings": scored["warnings"],
    }


def order_of(rows: Sequence[Row], kinds: Mapping[str, str]) -> tuple[str, ...]:
    """Name the models of some rows as their leaderboard has them; those without a value not."""
    with TemporaryDirectory() as folder:
        scored = judge_score(write_results(rows, kinds, Path(folder)))["models"]
    own = {row.get(OF_SIDE_A) or row.get("model") for row in rows}
    board = [row for row in scored if row["model"] in own and row[value_of(row)] is not None]
    return tuple(row["model"] for row in sorted(board, key=_best_first))


def _ranked(
    scored_as: str, score: Row, rows: Sequence[Row], given: Sequence[Given], missing: int
) -> dict[str, Any]:
    value = value_of(score)
    answers = total([one.cost_usd for one in given])
    judging = total([row.get("cost") for row in rows])
    ends = _interval(scored_as, score, rows)
    first = {
        "model": score["model"],
        value: score[value],
        **{e: None if x is None or math.isnan(x) else x for e, x in ends.items()},
        **({"lc_win_rate": score["lc_win_rate"]} if "lc_win_rate" in score else {}),
        "n": score["n"],
        "cost": total([answers, judging]),
        "answer_cost": answers,
        "judge_cost": judging,
        "failed": missing + sum(row["status"] not in (READ, SETTLED) for row in rows),
    }
    return first | {column: cell for column, cell in score.items() if column not in first}


_SCALES = {"alpaca_eval": (0.0, 100.0), "pairwise": (0.0, 100.0), "wildbench": (1.0, 10.0)}
"""Ends of what is averaged, by how it is scored."""


def _interval(scored_as: str, score: Row, rows: Sequence[Row]) -> Mapping[str, float | None]:
    """Give the score's own interval, or that of a mean over items."""
    if "lower" in score:
        return {"lower": score["lower"], "upper": score["upper"]}
    mean, error = score[value_of(score)], score.get("standard_error")
    if scored_as == "wildbench":
        marks = [row["score"] for row in rows if row["score"] is not None]
        error = stdev(marks) / math.sqrt(len(marks)) if len(marks) > 1 else None
    if mean is None or error is None:
        return {"lower": None, "upper": None}
    if scored_as not in _SCALES:
        return unbounded(mean, error, score["n"])
    return bounded(mean, error, score["n"], *_SCALES[scored_as])


def value_of(score: Row) -> str:
    """Name the column by which models are ranked."""
    return "win_rate" if "win_rate" in score else "score"


def _best_first(row: Row) -> tuple[bool, float, str]:
    """Order by the value, those without one last, then by name."""
    value = row[value_of(row)]
    return (value is None, -(value or 0.0), row["model"])


def on_order(rows: Iterable[Row]) -> dict[str, Any]:
    """Describe how the verdicts of pairs that were asked in both orders hang on the order.

    Returns
    -------
    dict
        ``consistency`` (`judge.verdict.consistency`); and ``first_place``: ``effect``,
        what standing first is worth as `judge.verdict.PositionEffect` has it, from -1/2 to 1/2,
        its ``standard_error`` and 95% interval (``lower``, ``upper``) over prompts, and ``n``,
        the pairs read in both orders. It is None where they are of under two prompts.
    """
    both = [row for row in rows if row["order"] == BOTH]
    verdicts = (
        Verdict(
            row["battle_id"],
            None if row["winner"] is None else Outcome(row["winner"]),
            row["inconsistent"],
        )
        for row in both
    )
    return {"consistency": consistency(verdicts), "first_place": _place(both)}


def _place(both: Sequence[Row]) -> dict[str, Any] | None:
    """Estimate what standing first is worth; pairs settled without asking have no place."""
    read = [row for row in both if row["status_ab"] == row["status_ba"] == READ]
    prompts = np.unique([row["prompt_id"] for row in read], return_inverse=True)[1]
    n_prompts = len(np.unique(prompts))
    if n_prompts < 2:
        return None
    gain = np.array([(row["preference_ab"] - row["preference_ba"]) / 2 for row in read])
    effect, error = float(gain.mean()), clustered_error(gain, prompts)
    ends = bounded(effect, error, n_prompts, -0.5, 0.5)
    return {"effect": effect, "standard_error": error, **ends, "n": len(read)}


def write_leaderboard(report: Row, folder: Path) -> None:
    """Write the leaderboard as JSON, with all that was texts, and as CSV."""
    formats.write_text(formats.as_json(report), folder / "leaderboard.json")
    formats.write_text(formats.as_csv(report["models"]), folder / "leaderboard.csv")


def failures(rows: Iterable[Row], given: Mapping[str, Sequence[Given]]) -> dict[str, int]:
    """Count why answers and verdicts are missing, by class."""
    of_answers = (one.failure for some in given.values() for one in some)
    why = [failure.value for failure in of_answers if failure is not None]
    return dict(
        Counter([*why, *(row["status"] for row in rows if row["status"] not in (READ, SETTLED))])
    )
