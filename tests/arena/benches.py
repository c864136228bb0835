"""Benches as their makers write them, and a server with a judge and a model that answers."""

import json
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlmodel import select

from arena.endpoints.offline import LongerAnswer
from arena.store.store import Store
from arena.store.tables import JudgementRow
from tests.faulty_server import Behaviour, FaultyServer, faulty_server, last_message
from tests.judging_server import ROSTER as JUDGE
from tests.judging_server import fenced

Row = dict[str, Any]
SLATE = JUDGE.replace("judge", "slate").replace("Judge", "Slate").replace("1.0", "3.0")
ROSTER = JUDGE + SLATE.replace("2.0", "4.0") + "decoding = {{ temperature = 0.7 }}\n"
CALL_USD = {"judge": (7 * 1.0 + 11 * 2.0) / 1e6, "slate": (7 * 3.0 + 11 * 4.0) / 1e6}
EACH_USD = CALL_USD["judge"]
BASELINE = "gpt-4-0314"
RECORDED = ("basalt", "flint", "quartz")
AGAIN, SECOND = "And in other words?", "In other words, the same as before, and so on."
PROMPTS = tuple(f"Question {n}, in which something is asked?" for n in range(1, 6))


def text_of(model: str, number: int) -> str:
    """Write an answer whose length depends on the model and the item."""
    words = {"basalt": 9, "flint": 3, "quartz": 16, BASELINE: 8}[model]
    return f"{model} says to {number}: " + "**word** or so, " * (words + number % 3 * 4)


def said_by_slate(prompt: str) -> str:
    return f"{prompt} Here is what I think. " + "# Well\n- so and so\n" * (4 + len(prompt) % 5)


def judged(body: Mapping[str, Any]) -> Behaviour:
    """Prefer the longer answer, in whatever form it is asked for."""
    prompt = last_message(body)
    text = LongerAnswer().answer(prompt, random.Random(0))
    if text not in ("m", "M"):
        return Behaviour(text=text)
    first, second = map(len, fenced(prompt))
    share = first / (first + second)
    top = {"m": math.log(share), "M": math.log(1 - share)}
    return Behaviour(text=text, finish_reason="length", logprobs=((text, top[text], top),))


def answered(body: Mapping[str, Any]) -> Behaviour:
    return Behaviour(text=said_by_slate(last_message(body)))


@contextmanager
def bench_server() -> Iterator[FaultyServer]:
    """Serve ``judge`` and ``slate``."""
    with faulty_server({"judge": judged, "slate": answered}) as running:
        yield running


def long_and_short(n: int) -> list[Row]:
    """Give pairs of which a judge who goes by length prefers basalt's."""
    pair = {"model_a": "basalt", "model_b": "flint"}
    texts = (
        {"response_a": f"Long answer {i}, at length.", "response_b": f"Short {i}."}
        for i in range(n)
    )
    return [{"prompt": f"Number {i}?"} | pair | text for i, text in enumerate(texts)]


def asked(server: FaultyServer) -> Counter[str]:
    return Counter(one.model for one in server.requests)


def in_journal(folder: Path) -> set[str]:
    """Give the questions whose replies are kept."""
    with closing(Store(f"sqlite:///{folder}/arena.db")) as store, store.reading() as session:
        return {row["messages"][-1][1] for row in session.exec(select(JudgementRow.request))}


def write(path: Path, rows: Sequence[Row]) -> str:
    if path.suffix == ".json":
        path.write_text(json.dumps(rows), encoding="utf-8")
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path.name


@dataclass(frozen=True, slots=True)
class Upstream:
    """A benchmark as its makers write it.

    Attributes
    ----------
    items : callable
        From the number and the text of a prompt to a row.
    answer : callable
        From model, number, prompt and text to a row.
    verdict : callable or None
        From model, number, length of its answer and of the baseline's to rows of their results.
    options : mapping
        Further keys of the bench's file.
    """

    file: str
    items: Callable[[int, str], Row]
    answer: Callable[[str, int, str, str], Row]
    verdict: Callable[[str, int, int, int], list[Row]] | None
    scored_as: str
    pairs: bool = True
    turns: int = 1
    options: Mapping[str, str] = field(default_factory=dict)

    def written(self, folder: Path, method: str) -> Path:
        """Write items, answers of three models and the baseline, and the file that says it all."""
        items = [self.items(n, text) for n, text in enumerate(PROMPTS, 1)]
        answers = []
        for model in (*RECORDED, *([BASELINE] if self.pairs else [])):
            texts = [(n, prompt, text_of(model, n)) for n, prompt in enumerate(PROMPTS, 1)]
            own = [self.answer(model, *one) for one in texts]
            answers.append(write(folder / f"{model}.jsonl", own))
        keys = {
            "method": method,
            "items": write(folder / self.file, items),
            "models": [*RECORDED, "slate"],
            "answers": answers,
            **({} if method == "ifeval" else {"judge": "judge"}),
            "roster": "roster.toml",
            "out": "results",
            **self.options,
        }
        lines = (f"{name} = {json.dumps(value)}\n" for name, value in keys.items())
        path = folder / "bench.toml"
        path.write_text("".join(lines), encoding="utf-8")
        return path

    def verdicts(self) -> list[Row]:
        """Give the judge's verdicts as the makers of the benchmark would have written them."""
        assert self.verdict is not None
        texts = {model: [*map(text_of, [model] * 5, range(1, 6))] for model in RECORDED}
        texts["slate"] = [said_by_slate(prompt) for prompt in PROMPTS]
        return [
            row
            for model, own in texts.items()
            for n, text in enumerate(own, 1)
            for row in self.verdict(model, n, len(text), len(text_of(BASELINE, n)))
        ]


def much(a: int, b: int) -> int:
    return 1 + (max(a, b) >= 2 * min(a, b))


def arrows(a: int, b: int) -> str:
    if a == b:
        return "A=B"
    return f"A{'>' * much(a, b)}B" if a > b else f"B{'>' * much(a, b)}A"


def _alpaca(model: str, n: int, own: int, base: int) -> list[Row]:
    texts = {"output_1": "x" * base, "output_2": "x" * own}
    named = {"instruction": PROMPTS[n - 1], "generator_1": BASELINE, "generator_2": model}
    return [{**named, **texts, "annotator": "judge", "preference": 1 + own / (own + base)}]


def _arena_hard(model: str, n: int, own: int, base: int) -> list[Row]:
    games = [{"score": arrows(base, own)}, {"score": arrows(own, base)}]
    named = {"uid": f"u{n}", "category": "hard_prompt", "judge": "judge", "model": model}
    return [{**named, "baseline": BASELINE, "games": games}]


def _reward(model: str, n: int, own: int, base: int) -> list[Row]:
    winner = "tie" if own == base else model if own > base else BASELINE
    extent = 0 if own == base else much(own, base)
    if extent == 1 and abs(own - base) > 500:
        winner, extent = "tie", 0
    sides = ((model, BASELINE), (BASELINE, model))
    row = {"session_id": f"s{n}", "winner": winner, "extent": extent}
    return [row | {"model_A": a, "model_B": b} for a, b in sides]


def _wild_score(model: str, n: int, own: int, _: int) -> list[Row]:
    score = str(min(10, 1 + own // 20))
    return [{"session_id": f"s{n}", "model_test": model, "score": score, "model_output": "x"}]


def _marks_of_turns(model: str, n: int, own: int, base: int) -> list[Row]:
    text = said_by_slate(AGAIN) if model == "slate" else SECOND
    (first,), (second,) = _mark(model, n, own, base), _mark(model, n, len(text), base)
    return [first, second | {"turn": 2}]


def _mark(model: str, n: int, own: int, _: int) -> list[Row]:
    texts = {"user_prompt": "?", "judgment": "!", "judge": ["judge", "single-v1"], "turn": 1}
    return [{"question_id": n, "model": model, "score": min(10, 1 + own // 20), **texts}]


def _games(model: str, n: int, own: int, base: int) -> list[Row]:
    winner = "tie" if own == base else "model_1" if own > base else "model_2"
    named = {"question_id": n, "model_1": model, "model_2": BASELINE, "turn": 1}
    return [{**named, "g1_winner": winner, "g2_winner": winner, "judge": ["judge", "pair-v2"]}]


def _task(n: int, prompt: str) -> Row:
    talk = [{"role": "user", "content": prompt}]
    checklist = ["Does it answer?", "Is it right?"]
    tags = {"primary_tag": "Math", "secondary_tags": ["Planning"]}
    return {"session_id": f"s{n}", "conversation_input": talk, "checklist": checklist, **tags}


def _result(model: str, n: int, prompt: str, text: str) -> Row:
    return {"session_id": f"s{n}", "output": [text], "generator": model}


def _choices(model: str, n: int, prompt: str, text: str) -> Row:
    choices = [{"index": 0, "turns": [{"content": text}]}]
    return {"question_id": f"u{n}", "model_id": model, "choices": choices}


def _own(model: str, n: int, prompt: str, text: str) -> Row:
    return {"prompt": prompt, "response": text, "model": model}


def _both_turns(model: str, n: int, prompt: str, text: str) -> Row:
    choices = [{"index": 0, "turns": [text, SECOND]}]
    return {"question_id": n, "model_id": model, "choices": choices}


def _instruction(n: int, prompt: str) -> Row:
    kwargs = [{"relation": "at least", "num_words": 30}]
    ids = ["length_constraints:number_words"]
    return {"key": n, "prompt": prompt, "instruction_id_list": ids, "kwargs": kwargs}


def _alpaca_answer(model: str, n: int, prompt: str, text: str) -> Row:
    return {"instruction": prompt, "output": text, "generator": model}


BY_PAIR = {"baseline": BASELINE}
UPSTREAM: Mapping[str, Upstream] = {
    "alpaca_eval": Upstream(
        "alpaca_eval.json",
        lambda n, prompt: _alpaca_answer(BASELINE, n, prompt, text_of(BASELINE, n)),
        _alpaca_answer,
        _alpaca,
        "alpaca_eval",
        pairs=False,  # the baseline's answers come with the items
    ),
    "arena_hard": Upstream(
        "question.jsonl",
        lambda n, text: {"question_id": f"u{n}", "turns": [{"content": text}], "category": "x"},
        _choices,
        _arena_hard,
        "arena_hard",
    ),
    "wildbench": Upstream("tasks.jsonl", _task, _result, _wild_score, "wildbench", pairs=False),
    "wildbench_reward": Upstream(
        "tasks.jsonl", _task, _result, _reward, "wildbench_reward", options=BY_PAIR
    ),
    "pairwise": Upstream(
        "items.jsonl",
        lambda n, prompt: {"id": n, "prompt": prompt},
        _own,
        _games,
        "pairwise",
        options=BY_PAIR,
    ),
    "rubric": Upstream(
        "items.jsonl",
        lambda n, prompt: {"prompt": prompt, "reference": "A right answer."},
        _own,
        _mark,
        "marks",
        pairs=False,
        options={"rubric": "rubric.txt"},
    ),
    "mt_bench": Upstream(
        "question.jsonl",
        lambda n, prompt: {"question_id": n, "category": "x", "turns": [prompt, AGAIN]},
        _both_turns,
        _marks_of_turns,
        "marks",
        pairs=False,
        turns=2,
    ),
    "ifeval": Upstream(
        "input_data.jsonl",
        _instruction,
        lambda model, n, prompt, text: {"prompt": prompt, "response": text},
        None,
        "ifeval",
        pairs=False,
    ),
}
