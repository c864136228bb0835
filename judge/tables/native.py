"""What AlpacaEval, WildBench, Arena-Hard and others record, in the columns that are read here."""

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import takewhile
from typing import Any

import numpy as np

from judge.case import Message
from judge.tables.annotations import (
    CONVERSATIONS,
    NO_ANSWER,
    NO_TURNS,
    OUTPUTS,
    RESPONSES,
    Annotations,
    data_of,
    exchange,
    holds_first,
    list_of,
    plain,
    turns_of,
)
from rating.errors import DataError
from rating.outcome import SIDES, Outcome, of_sides
from rating.tables.columns import LEFT_OUT
from rating.tables.peers import Format, announce, recognised
from rating.typing import Bools

Columns = dict[str, Any]
_PAIR = ("prompt", "response_a", "response_b")

SIGNS = {"A<B": "B>A", "A<<B": "B>>A", "B<A": "A>B", "B<<A": "A>>B", "B=A": "A=B"}
"""Other spellings of a verdict of Arena-Hard."""


_ORDER_SEED = "0"
FAILED = -1
"""MT-bench's score where no mark could be read."""


def model_shown_first(instruction: str) -> bool:
    """Return whether AlpacaEval showed the model's response first for this instruction.

    Drawn by Python's `random` from the text of the instruction, so it is the same for every
    model: no annotation of one instruction can tell its order from its difficulty.
    """
    drawn = random.Random(f"is_switched_outputs{instruction}{_ORDER_SEED}")  # noqa: S311
    return drawn.choices([False, True])[0]


def for_score(data: Annotations, method: str) -> Annotations:
    """Give annotations as a method of `arena judge score` takes them.

    Raises
    ------
    DataError
        If they are in the format of another method.
    """
    known = _known(data)
    if known is None or method == "pairwise":
        return data
    fits = METHODS.get(known.name, ("pairwise", None) if known.columns else ("", None))
    if fits[0] != method or fits[1] is None:
        advice = f"use --method {fits[0]}" if fits[0] else known.read_by
        msg = f"{data.source!r} is in the format {known.name}, not for {method!r}: {advice}."
        raise DataError(msg)
    announce(data.source, known.name, data.left_out, data.n_files)
    return only(data, fits[1](data))


def method_of_peer(data: Annotations) -> str | None:
    """Name the method that scores a known format; None of no known format.

    Raises
    ------
    DataError
        If none does.
    """
    known = _known(data)
    if known is None:
        return None
    if known.name in METHODS:
        return METHODS[known.name][0]
    if not known.columns and known.name != "LLMBar":
        raise _unfit(data, known, "no verdicts")
    return "pairwise" if known.columns else "llmbar"


def for_similarity(data: Annotations) -> Annotations:
    """Give texts of SICK or CLINC as `arena probe similarity` takes them."""
    known = _known(data)
    if known is None or known.name not in ("SICK", "CLINC"):
        return data
    announce(data.source, known.name, data.left_out, data.n_files)
    if known.name == "SICK":
        theirs = ("sentence_A", "sentence_B", "relatedness_score")
        ours = ("text_a", "text_b", "relatedness")
        return only(data, dict(zip(ours, map(data.need, theirs), strict=True)))
    if data.has("text"):
        return only(data, {"text": data.need("text"), "label": data.need("intent")})
    rows = [row for name in ("train", "val", "test") for row in data.need(name)[0]]
    return only(data, {"text": [row[0] for row in rows], "label": [row[1] for row in rows]})


def for_judge(
    data: Annotations, *, pairs: bool, turns: bool = True, piece: bool = False
) -> Annotations:
    """Give pairs, or else single answers, as `arena judge run` takes them.

    Rows without an answer on a side are excluded and counted, in a file of our own layout too; of
    a known format also rows in which no question and answer is distinguished, and those of several
    turns where a method shows one. Of a piece of a file nothing is announced
    (`announce_judged`), and no row may be left.

    Raises
    ------
    DataError
        If they are in a format without answers, or no row is left.
    """
    known = _known(data)
    read = None if known is None else _reader(data, known, pairs=pairs)
    if known is None or read is None:
        if known is None or data.find(*RESPONSES["a"], *(() if pairs else OUTPUTS)):
            return _with_answers(data, pairs=pairs)  # our own layout, or as AlpacaEval writes them
        raise _unfit(data, known, "without a prompt and two answers a row")
    columns = read(data)
    reasons = columns.pop(LEFT_OUT, [None] * data.n)
    for row, prompt in enumerate(columns["prompt"]):
        answers = columns["response_a" if "response_a" in columns else "response"][row]
        if prompt is None:
            reasons[row] = reasons[row] or NO_QUESTION
        elif not turns and isinstance(answers, list) and len(answers) > 1:
            reasons[row] = _SEVERAL
    whole = np.array([reason is None for reason in reasons])
    own = only(data, dict(data.columns) | columns).taken(whole)
    left_out = Counter(data.left_out) + Counter(filter(None, reasons))
    result = _with_answers(replace(own, left_out=left_out), pairs=pairs)
    if not piece:
        announce_judged(data, result.left_out, result.n, pairs=pairs)
    return result


def announce_judged(
    data: Annotations, left_out: Mapping[str, int], n: int, *, pairs: bool
) -> None:
    """Announce a file of a known format of which n rows can be judged.

    Raises
    ------
    DataError
        If n is 0.
    """
    known = _known(data)
    if known is None or _reader(data, known, pairs=pairs) is None:
        return
    announce(data.source, known.name, left_out, data.n_files)
    if not n:
        why = ", ".join(f"{n:,} {reason}" for reason, n in sorted(left_out.items()))
        advice = " Methods that show several turns are pairwise and mt_bench_pairs."
        advice = advice if _SEVERAL in left_out else ""
        raise DataError(f"No row of {data.source!r} ({known.name}) can be judged: {why}.{advice}")


def _reader(
    data: Annotations, known: Format, *, pairs: bool
) -> Callable[[Annotations], Columns] | None:
    """Give what reads the texts of a format; None where there are none, or under our names."""
    if data.has(*CONVERSATIONS):
        return _conversations
    read = PAIRS.get(known.name) or (None if pairs else SINGLES.get(known.name))
    return read if data.has(*SHOWN.get(known.name, ())) else None


def _with_answers(data: Annotations, *, pairs: bool) -> Annotations:
    """Exclude and count rows without an answer; of pairs taken apart, those without any."""
    own = None if pairs else data.find(*OUTPUTS)
    sides = [own] if own else [data.find(*names) for names in RESPONSES.values()]
    there = np.array([[*map(_is_whole, data.columns[name])] for name in sides if name])
    if there.all():
        return data
    fit: Bools = np.all(there, axis=0) if pairs else np.any(there, axis=0)
    n = int((~fit).sum()) if pairs else int((~there).sum())
    return replace(data.taken(fit), left_out=Counter(data.left_out) + Counter({NO_ANSWER: n}))


def _is_whole(cell: object) -> bool:
    """Whether an answer, or that of each turn, is neither null nor white space."""
    value = plain(cell)
    turns = value if isinstance(value, list) else [value]
    return all(one is not None and one == one and str(one).strip() for one in turns)


def unfit(data: Annotations, why: str) -> DataError | None:
    """Explain why a known format cannot be read, and what reads it; None of no known format."""
    known = _known(data)
    return None if known is None else _unfit(data, known, why)


def _unfit(data: Annotations, known: Format, why: str) -> DataError:
    advice = known.read_by or "arena rate reads it"
    return DataError(f"{data.source!r} is in the format {known.name}, {why}: {advice}.")


def _known(data: Annotations) -> Format | None:
    return recognised(list(data.columns), lambda sql: holds_first(data, sql))


def _alpaca_eval(data: Annotations) -> Columns:
    if not data.has("output_1", "output_2"):
        return {"model": data.need("generator_2"), **data.columns}
    asked = data.texts("instruction")
    return {
        "model": data.need("generator_2"),
        "idx": asked,
        "is_switched": [model_shown_first(instruction) for instruction in asked],
        "len_base": [len(str(text)) for text in data.need("output_1")],
        "len_model": [len(str(text)) for text in data.need("output_2")],
        **data.columns,
    }


def _wildbench(data: Annotations) -> Columns:
    columns: Columns = {"model": data.need("model_test")}
    if data.has("model_output"):
        columns["empty"] = [not text for text in data.need("model_output")]
    return columns | dict(data.columns)


def _arena_hard(data: Annotations) -> Columns:
    games = [data_of(cell) for cell in data.need("games")]
    rows = [[*cell] if isinstance(cell, list) else [] for cell in games]
    return {
        **{f"game_{i + 1}": [_score(row[i : i + 1]) for row in rows] for i in (0, 1)},
        **data.columns,
    }


def _score(games: Sequence[Any]) -> str | None:
    score = games[0].get("score") if games and isinstance(games[0], dict) else None
    return SIGNS.get(str(score), str(score)) if score else None


def _rewards(data: Annotations) -> Columns:
    """Read whose reply was better, and how much; the baseline is the one that stands everywhere.

    Raises
    ------
    DataError
        If no model stands in every row, or an extent is none of 0, 1 and 2.
    """
    a, b, winner = (data.texts(name) for name in ("model_A", "model_B", "winner"))
    first = {a[0], b[0]}.intersection(*({*pair} for pair in zip(a, b, strict=True)))
    if not first:
        msg = f"No model stands in every row of {data.source!r}: choose one baseline with --where."
        raise DataError(msg)
    baseline = b[0] if b[0] in first else a[0]
    points = data.numbers("extent") / 2
    model = [one if other == baseline else other for one, other in zip(a, b, strict=True)]
    levels = zip(model, winner, points, strict=True)
    signs = {baseline: -1.0, "tie": 0.0}
    return {
        "model": model,
        "baseline": [baseline] * len(a),
        "prompt_id": data.need("session_id"),
        "level": [signs.get(won, 1.0) * float(much) for _, won, much in levels],
    }


def _marks(data: Annotations) -> Columns:
    """Name the judge without its prompt, which is another one for each kind of question."""
    names = [one if isinstance(one, str) else one[0] for one in data.need("judge")]
    scores = [None if score == FAILED else score for score in data.numbers("score").tolist()]
    own = {"judge": names, "score": scores, "prompt_id": data.texts("question_id")}
    return {**data.columns, **own}


METHODS: Mapping[str, tuple[str, Callable[[Annotations], Columns]]] = {
    "AlpacaEval annotations": ("alpaca_eval", _alpaca_eval),
    "WildBench scores": ("wildbench", _wildbench),
    "MT-bench scores of single answers": ("marks", _marks),
    "WildBench rewards": ("wildbench_reward", _rewards),
    "Arena-Hard v2": ("arena_hard", _arena_hard),
    "Arena-Hard v0.1 against gpt-4-0314": ("arena_hard", _arena_hard),
}
"""By format: the method that scores it, and its columns for that."""


def _kaggle(data: Annotations) -> Columns:
    columns = _each_row(_kaggle_row, zip(*map(data.need, _PAIR), strict=True))
    return columns | ({"battle_id": data.need("id")} if data.has("id") else {})


def _kaggle_row(prompt: object, a: object, b: object) -> tuple[object, ...]:
    asked = [turn.content for turn in turns_of(prompt, lists=True)]
    sides = [[turn.content for turn in turns_of(cell, lists=True)] for cell in (a, b)]
    if not all(map(str.strip, asked)):
        raise DataError("without a question")
    if any(len(side) > len(asked) for side in sides):
        raise DataError(NO_TURNS)
    return asked, *(side + [""] * (len(asked) - len(side)) for side in sides)


def _conversations(data: Annotations) -> Columns:
    """Read both conversations of Chatbot Arena and LMArena, whose user is the same."""
    columns = _each_row(
        lambda *talks: exchange(*(turns_of(talk, lists=True) for talk in talks)),
        zip(*map(data.need, CONVERSATIONS), strict=True),
    )
    names = ("battle_id", "prompt_id") if data.has("id") else ()
    return columns | dict.fromkeys(names, data.columns.get("id"))


def _each_row(
    made: Callable[..., tuple[Any, ...]], cells: Iterable[tuple[object, ...]]
) -> Columns:
    """Give the columns of pairs, and why a row is excluded."""
    rows: list[tuple[Any, ...]] = []
    for row in cells:
        try:
            rows.append((*made(*row), None))
        except DataError as error:
            rows.append((None, None, None, str(error)))
    return {name: [row[n] for row in rows] for n, name in enumerate((*_PAIR, LEFT_OUT))}


def _preferences(data: Annotations) -> Columns:
    """Read preferences, with the prompt and the system message where a column has one."""
    name = data.find("prompt", "instruction", "question", "input")
    prompt: Sequence[Any] = [*data.columns[name]] if name else [None] * data.n
    if data.has("system") and name:
        prompt = [
            [{"role": "system", "content": system}, {"role": "user", "content": asked}]
            if system and isinstance(asked, str)
            else asked
            for system, asked in zip(data.columns["system"], prompt, strict=True)
        ]
    cells = zip(prompt, data.need("chosen"), data.need("rejected"), strict=True)
    pairs = [preference(*row) for row in cells]
    return {name: [pair[name] for pair in pairs] for name in (*PREFERENCE, LEFT_OUT)}


Texts = str | list[str] | list[dict[str, Any]]
"""A text, texts turn by turn, or messages."""
PREFERENCE = (*_PAIR, *of_sides("model"), "label")
NO_QUESTION = "without a question and an answer"


def preference(prompt: object, chosen: object, rejected: object) -> dict[str, Any]:
    r"""Give a preference as a pair with a label; of one that is none, why, under `LEFT_OUT`.

    Texts, or messages: what both sides begin with is the prompt where there is none, and belongs
    to no answer where there is one (UltraFeedback). Texts in the form of HH-RLHF (``Human:`` and
    ``Assistant:``) are messages. Half the pairs have what was chosen on side A: a judge that
    favours a side gains nothing.

    Examples
    --------
    >>> preference("2 + 2?", "4", "5")["label"]
    'model_a'
    >>> talk = "\n\nHuman: 2 + 2?\n\nAssistant: "
    >>> preference(None, talk + "4", talk + "5")["prompt"]
    [{'role': 'user', 'content': '2 + 2?'}]
    """
    try:
        parts = _preferred(prompt, chosen, rejected)
    except DataError as error:
        return dict.fromkeys(PREFERENCE) | {LEFT_OUT: str(error)}
    asked, *answers = parts
    drawn = sha256(json.dumps(parts, sort_keys=True).encode()).digest()
    turn = -1 if drawn[0] % 2 else 1
    (name_a, name_b), (a, b) = ("chosen", "rejected")[::turn], answers[::turn]
    label = (Outcome.A if turn == 1 else Outcome.B).value
    pair = dict(zip(PREFERENCE, (asked, a, b, name_a, name_b, label), strict=True))
    return pair | {LEFT_OUT: None}


def _preferred(prompt: object, chosen: object, rejected: object) -> tuple[Texts, Texts, Texts]:
    """Part a preference into what was asked and two answers, turn by turn where each has some."""
    asked, good, bad = map(_talk, (prompt, chosen, rejected))
    if not isinstance(asked, str) and asked and not asked[-1].content:
        asked = asked[:-1]  # a prompt of HH-RLHF ends with "Assistant:"
    if isinstance(good, str) and isinstance(bad, str):
        if not asked or (not isinstance(asked, str) and asked[-1].role != "user"):
            raise DataError(NO_QUESTION)
        if isinstance(asked, str):
            return asked, good, bad
        return _plain(asked), good.strip(), bad.strip()
    if isinstance(good, str) or isinstance(bad, str) or not (good and bad):
        raise DataError(NO_QUESTION)
    before = turns_of(asked) if isinstance(asked, str) else asked
    alike = takewhile(lambda pair: pair[0] == pair[1], zip(good[:-1], bad[:-1], strict=False))
    shared = [one for one, _ in alike]
    if prompt is None or (before and before[-1] in shared):
        before, good, bad = shared, good[len(shared) :], bad[len(shared) :]
    if len(good) == len(bad) == 1:
        if not before or before[-1].role != "user" or {good[0].role, bad[0].role} != {"assistant"}:
            raise DataError(NO_QUESTION)
        texts = (good[0].content, bad[0].content)
        a, b = ([text] if text.lstrip()[:1] == "[" else text for text in texts)  # no JSON of turns
        return _plain(before), a, b
    turns, a, b = exchange([*before, *good], [*before, *bad])
    return [turn.content for turn in turns], a, b


def _talk(cell: object) -> str | list[Message]:
    """Read messages, or a text that is none of these; nothing is no message."""
    if not isinstance(cell, str):
        return [] if cell is None else turns_of(cell)
    if cell.startswith("\n\nHuman:"):
        pieces = re.split(r"\n\n(Human|Assistant):", cell)[1:]
        roles = {"Human": "user", "Assistant": "assistant"}
        rows = zip(pieces[::2], pieces[1::2], strict=True)
        return turns_of([{"role": roles[name], "content": text.strip()} for name, text in rows])
    return turns_of(cell) if cell.startswith("[{") else cell


def _plain(talk: Sequence[Message]) -> list[dict[str, Any]]:
    return [{"role": turn.role, "content": turn.content} for turn in talk]


def _mt_bench_pairs(data: Annotations) -> Columns:
    """Take the questions and answers out of what MT-bench's judge was shown in the first game."""
    writers = dict(zip(of_sides("model"), map(data.need, ("model_1", "model_2")), strict=True))
    return _mt_bench_texts(data, "g1_user_prompt", of_sides("response"), writers)


def _mt_bench_singles(data: Annotations) -> Columns:
    return _mt_bench_texts(data, "user_prompt", ("response",), {"model": data.need("model")})


def _mt_bench_texts(
    data: Annotations, shown_in: str, answers: Sequence[str], writers: Columns
) -> Columns:
    """Name each row by question, turn and models, as `rating.tables.peers` names the items."""
    shown = [_mt_bench(text) for text in data.need(shown_in)]
    texts = {"prompt": "u", **dict(zip(answers, SIDES, strict=False)), "reference": "r"}
    columns: Columns = {name: [one and one[key] for one in shown] for name, key in texts.items()}
    names = ["|".join(sorted(map(str, one))) for one in zip(*writers.values(), strict=True)]
    ids = [*zip(data.texts("question_id"), data.texts("turn"), names, strict=True)]
    columns |= {"battle_id": [f"{q}-t{t}-{name}" for q, t, name in ids]}
    return columns | writers | {"prompt_id": [question for question, _, _ in ids]}


def _mt_bench(text: object) -> dict[str, list[str] | None] | None:
    """Read the user's turns, each side's answers and right answers; None where they are not."""
    shown = str(text)
    talks = {
        name: _spoken(_inside(shown, f"<|The Start of {of}|>", f"<|The End of {of}|>"), speaker)
        for name, of, speaker in (
            ("a", "Assistant A's Conversation with User", "Assistant A"),
            ("b", "Assistant B's Conversation with User", "Assistant B"),
            ("r", "Reference Answer", "Reference answer"),
        )
    }
    if talks["a"] is not None:
        return {"u": talks["a"][::2], **{name: x and x[1::2] for name, x in talks.items()}}
    single, a, b, right = (
        _inside(shown, f"[The Start of {of}]\n", f"\n[The End of {of}]")
        for of in (*(f"Assistant{one}'s Answer" for one in ("", " A", " B")), "Reference Answer")
    )
    question = _inside(shown, "Question]\n", "\n\n[The Start of ")
    answers = {"u": question, "a": a if single is None else single, "b": b, "r": right}
    if question is None or answers["a"] is None:
        return None
    return {name: None if x is None else [x] for name, x in answers.items()}


def _inside(text: str, start: str, end: str) -> str | None:
    _, there, rest = text.partition(start)
    inside, ended, _ = rest.partition(end)
    return inside if there and ended else None


def _spoken(talk: str | None, speaker: str) -> list[str] | None:
    """Part a conversation into the texts of its four turns; None where it has others."""
    if talk is None:
        return None
    turns = re.split(rf"\n\n### (?:User|{speaker}):\n", talk)[1:]
    return [turn.strip("\n") for turn in turns] if len(turns) == 4 else None


_LLMBAR = ("input", "output_1", "output_2")
_SEVERAL = "of several turns"
PAIRS: Mapping[str, Callable[[Annotations], Columns]] = {
    "Kaggle 55k": _kaggle,
    "Kaggle 55k (test)": _kaggle,
    "Chatbot Arena": _conversations,
    "LLMBar": lambda data: dict(zip(_PAIR, map(data.need, _LLMBAR), strict=True)),
    "TRL preferences": _preferences,
    "MT-bench judgements of FastChat": _mt_bench_pairs,
}
SHOWN = {
    "TRL preferences": ("chosen", "rejected"),
    "MT-bench judgements of FastChat": ("g1_user_prompt",),
    "MT-bench scores of single answers": ("user_prompt",),
}
"""Columns with the texts, where a format may come without them."""
SINGLES: Mapping[str, Callable[[Annotations], Columns]] = {
    "MT-bench scores of single answers": _mt_bench_singles
}


def only(data: Annotations, columns: Columns) -> Annotations:
    """Give a table with these columns and no others."""
    return replace(data, columns={name: list_of(list(x)) for name, x in columns.items()})
