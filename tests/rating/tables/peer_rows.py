"""A few rows as each peer's tool writes them, all of them invented."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd

Row = Mapping[str, Any]


def of_arena(a: str, b: str, winner: str, voter: str, *, anony: bool = True) -> Row:
    more = winner == "model_a"
    metadata: dict[str, object] = {
        "sum_user_tokens": 1,
        "sum_assistant_a_tokens": 400 if more else 300,
        "sum_assistant_b_tokens": 100,
        "turns": 1,
    }
    for side, n in (("a", 3 if more else 2), ("b", 1)):
        metadata |= {
            f"header_count_{side}": {"h1": n, "h2": 1},
            f"list_count_{side}": {"ordered": n, "unordered": 0},
            f"bold_count_{side}": {"**": n, "__": n},
        }
    turns = [
        {"role": role, "content": text, "num_tokens": 1}
        for role, text in (("user", "hi"), ("assistant", "x"))
    ]
    return {
        "question_id": f"q-{a}-{b}-{voter}",
        "model_a": a,
        "model_b": b,
        "winner": winner,
        "judge": voter,
        "conversation_a": turns,
        "conversation_b": turns,
        "turn": 1,
        "anony": anony,
        "language": "English",
        "tstamp": 1700000000.5,
        "conv_metadata": metadata,
    }


def of_lmarena(n: int, winner: str, session: str, *, turns: int = 1, image: str = "") -> Row:
    """Give a row as LMArena publishes it: content in parts, and counts within counts."""
    picture = [{"type": "image", "text": None, "image": image, "mimeType": "image/png"}]
    parts: dict[str, list[Row]] = {}
    for role, text in (("user", f"question {n}"), ("assistant", "an answer")):
        words = {"type": "text", "text": text, "image": None, "mimeType": None}
        parts[role] = [words, *(picture if image and role == "user" else [])]
    talk = [{"role": r, "content": parts[r], "num_tokens": 2} for _ in range(turns) for r in parts]
    metadata = of_arena("x", "y", winner, session)["conv_metadata"]
    tags = {
        "creative_writing_v0.1": {"creative_writing": n % 3 == 0, "score": "no"},
        "criteria_v0.1": {"complexity": True, "specificity": False},
        "if_v0.1": {"if": n % 4 == 1, "score": 1},
        "math_v0.1": {"math": n % 2 == 0},
    }
    return {
        "id": f"row-{n}",
        "model_a": "x",
        "model_b": "y",
        "winner": winner,
        "evaluation_session_id": session,
        "evaluation_order": 1 + n % 4,
        "conversation_a": talk,
        "conversation_b": talk,
        "full_conversation": [{"user": talk[0], "model_side_a": talk[1], "model_side_b": talk[1]}],
        "conv_metadata": metadata,
        "category_tag": tags,
        "language": "en" if n % 5 else "fr",
        "is_code": n % 7 == 0,
        "timestamp": f"2025-07-{1 + n % 28:02} 12:00:00",
    }


def of_kaggle(a: str, b: str, *won: int) -> Row:
    outcomes = dict(zip(("winner_model_a", "winner_model_b", "winner_tie"), won, strict=True))
    texts = {"prompt": '["hi"]', "response_a": '["x"]', "response_b": '["y"]'}
    return {"id": f"{a}{b}{won}", "model_a": a, "model_b": b, **texts, **outcomes}


def of_log(kind: str, shown: Sequence[str], hidden: Sequence[str | None]) -> Row:
    states = [
        {"messages": [["user", "hi"], ["assistant", "x"]], "offset": 0, "model_name": name}
        for name in hidden
    ]
    return {"tstamp": 1.5, "type": kind, "models": shown, "states": states, "ip": "192.0.2.7"}


def of_llmfao(a: str, b: str, winner: str, worker: int) -> Row:
    return {
        "id": 5,
        "prompt": 8,
        "model_x": 1,
        "model_y": 2,
        "worker": worker,
        "winner": winner,
        "left": a,
        "right": b,
    }


def of_comparia(chosen: str | None, *, equal: bool = False, archived: bool = False) -> Row:
    return {
        "timestamp": "2025-03-01T10:00:00.123456",
        "model_a_name": "x",
        "model_b_name": "y",
        "chosen_model_name": chosen,
        "both_equal": equal,
        "conv_turns": 1,
        "visitor_id": None if archived else "v1",
        "session_hash": "s1",
        "conversation_pair_id": f"s1-{chosen}-{equal}-{archived}",
        "archived": archived,
    }


def of_open_webui(model: str, rating: int | None, siblings: Sequence[str] | None) -> Row:
    data = {"rating": rating, "model_id": model, "sibling_model_ids": siblings, "reason": "it's"}
    return {
        "id": f"f-{model}-{rating}",
        "user_id": "u1",
        "version": 0,
        "type": "rating",
        "data": data,
        "meta": {"arena": False, "chat_id": "c0"},
        "snapshot": {"chat": {"title": "a title"}},
        "created_at": 1730000000,
        "updated_at": 1730000000,
    }


def of_agents(a: str, b: str, rating: str) -> Row:
    return {
        "_id": f"{a}{b}{rating}",
        "leftSubcomponent": a,
        "rightSubcomponent": b,
        "rating": rating,
        "createdAt": "2024-09-03T18:55:37.375000",
        "__v": None,
    }


def of_alpaca(instruction: str, preference: float | None) -> Row:
    return {
        "instruction": instruction,
        "output_1": "one",
        "generator_1": "x",
        "dataset": "invented",
        "output_2": "another",
        "generator_2": "y",
        "annotator": "a judge",
        "preference": preference,
        "raw_completion": None,
    }


def of_bench(a: str, b: str, winner: str, turn: int, judge: object = "expert_1") -> Row:
    return {
        "judge": judge,
        "model_a": a,
        "model_b": b,
        "question_id": 81,
        "turn": turn,
        "winner": winner,
    }


def of_fastchat(first: str, second: str, question: int) -> Row:
    return {
        "question_id": question,
        "model_1": "x",
        "model_2": "y",
        "g1_winner": first,
        "g2_winner": second,
        "g1_user_prompt": (
            "[User Question]\n2 + 2?\n\n"
            "[The Start of Assistant A's Answer]\n4.\n[The End of Assistant A's Answer]\n\n"
            "[The Start of Assistant B's Answer]\n5.\n[The End of Assistant B's Answer]"
        ),
        "judge": ["gpt-4", "pair-v2"],
        "turn": 1,
        "tstamp": 1717231244.5,
    }


def of_wildbench(winner: str, extent: int) -> Row:
    models = {"model_A": "x", "model_B": "y", "winner": winner, "extent": extent}
    return {"session_id": f"s{extent}{winner}", "parsed_result": {"choice": "?"}, **models}


def of_hard(name: str, *scores: str | None, prompt: object = "p", **more: str) -> Row:
    games = [{"user_prompt": prompt, "judgment": "?", "score": score} for score in scores]
    return {
        **more,
        name: f"q{'-'.join(map(str, scores))}",
        "model": "y",
        "judge": "j",
        "games": games,
    }


ARENA = [
    of_arena("x", "y", "model_a", "ada"),
    of_arena("y", "x", "tie (bothbad)", "bob"),
    of_arena("x", "y", "tie", "ada"),
    of_arena("x", "y", "model_b", "ada", anony=False),
]
HIDDEN = ("x", "y")
BLIND = ("Model A", "Model B")


def of_study(choice: str | None, sides: str = "ab", **more: object) -> Row:
    row = {"study": "s", "item": "i", "kind": "item", "rater": "r01", "prompt_id": "p"}
    pair = {"model_a": "x", "model_b": "y", "sides": sides, "choice": choice}
    return {**row, **pair, "ranking": None, "repeat": 0, **more}


FILES: Mapping[str, tuple[str, Sequence[Row], Sequence[tuple[str, ...]], Mapping[str, int]]] = {
    "arena.json": (
        "Chatbot Arena",
        ARENA,
        [("x", "y", "model_a"), ("y", "x", "both_bad"), ("x", "y", "tie")],
        {"not anonymous": 1},
    ),
    "lmarena.jsonl": (
        "LMArena 140k",
        [of_lmarena(n, w, "s") for n, w in enumerate(("model_a", "model_b", "tie", "both_bad"))],
        [("x", "y", w) for w in ("model_a", "model_b", "tie", "both_bad")],
        {},
    ),
    "kaggle.csv": (
        "Kaggle 55k",
        [
            of_kaggle("x", "y", 1, 0, 0), of_kaggle("y", "x", 0, 1, 0),
            of_kaggle("x", "y", 0, 0, 1), of_kaggle("x", "y", 0, 0, 0),
            of_kaggle("x", "y", 1, 1, 0),
        ],
        [("x", "y", "model_a"), ("y", "x", "model_b"), ("x", "y", "tie")],
        {"no single winner": 2},
    ),
    "log-conv.json": (
        "FastChat's conversation log",
        [
            of_log("leftvote", BLIND, HIDDEN), of_log("rightvote", ("", ""), HIDDEN),
            of_log("tievote", BLIND, HIDDEN), of_log("bothbad_vote", BLIND, HIDDEN),
            of_log("leftvote", ("x", "y"), HIDDEN), of_log("leftvote", BLIND, (None, "y")),
            of_log("share", BLIND, HIDDEN),
            {"tstamp": 1.0, "type": "chat", "model": "x", "ip": "192.0.2.7"},
        ],
        [("x", "y", w) for w in ("model_a", "model_b", "tie", "both_bad")],
        {"not anonymous": 1, "of type chat": 1, "of type share": 1, "without a model's name": 1},
    ),
    "llmfao.csv": (
        "LLMFAO",
        [of_llmfao("x", "y", w, 7) for w in ("left", "right", "tie")],
        [("x", "y", w) for w in ("model_a", "model_b", "tie")],
        {},
    ),
    "comparia.jsonl": (
        "ComparIA",
        [
            of_comparia("x"), of_comparia("y"), of_comparia(None, equal=True),
            of_comparia(None), of_comparia("x", archived=True),
        ],
        [("x", "y", w) for w in ("model_a", "model_b", "tie")],
        {"archived": 1, "no choice": 1},
    ),
    "crowd.csv": (
        "crowd-kit comparisons",
        [
            {"worker": "w", "left": a, "right": b, "label": won}
            for a, b, won in (("x", "y", "x"), ("y", "x", "x"), ("x", "y", "y"))
        ],
        [("x", "y", "model_a"), ("y", "x", "model_b"), ("x", "y", "model_b")],
        {},
    ),
    "feedback.json": (
        "Open WebUI feedback",
        [
            of_open_webui("x", 1, ["y", "z"]), of_open_webui("x", -1, ["y"]),
            of_open_webui("x", 1, []), of_open_webui("x", -1, None),
            of_open_webui("x", None, ["y"]),
        ],
        [("x", "y", "model_a"), ("x", "z", "model_a"), ("x", "y", "model_b")],
        {"without a rating": 1, "without other models": 2},
    ),
    "agents.json": (
        "Agent Arena",
        [of_agents("x", "y", r) for r in ("A is better", "B is better", "Tie", "Both are bad")],
        [("x", "y", w) for w in ("model_a", "model_b", "tie", "both_bad")],
        {},
    ),
    "annotations.json": (
        "AlpacaEval annotations",
        [of_alpaca(f"i{p}", p) for p in (1.0, 1.2, 1.5, 0.0, 1.9, None, 0.5, 3.0)],
        [("x", "y", w) for w in ("model_a", "model_a", "tie", "tie", "model_b")],
        {"no preference": 3},
    ),
    "bench.jsonl": (
        "MT-bench judgements",
        [
            of_bench("x", "y", "model_a", 1),
            of_bench("x", "y", "tie (inconsistent)", 2, "author_0"),
            of_bench("y", "x", "tie", 1, "expert_2"),
        ],
        [("x", "y", "model_a"), ("x", "y", "tie"), ("y", "x", "tie")],
        {},
    ),
    "matches.csv": (
        "winners and losers",
        [{"winner": "x", "loser": "y", "worker": 1}, {"winner": "y", "loser": "x", "worker": 2}],
        [("x", "y", "model_a"), ("y", "x", "model_a")],
        {},
    ),
    "gpt-4_pair.jsonl": (
        "MT-bench judgements of FastChat",
        [
            of_fastchat("model_1", "model_1", 1), of_fastchat("model_1", "model_2", 2),
            of_fastchat("tie", "tie", 3), of_fastchat("model_2", "tie", 4),
            of_fastchat("error", "model_2", 5), of_fastchat("error", "error", 6),
            of_fastchat("model_2", "model_2", 7),
        ],
        [("x", "y", w) for w in ("model_a", "tie", "tie", "tie", "model_b")],
        {"no verdict": 2},
    ),
    "rewards.json": (
        "WildBench rewards",
        [of_wildbench("x", 2), of_wildbench("y", 1), of_wildbench("tie", 0)],
        [("x", "y", w) for w in ("model_a", "model_b", "tie")],
        {},
    ),
    "hard-v2.jsonl": (
        "Arena-Hard v2",
        [
            of_hard("uid", "A>>B", "B>A", baseline="x"),
            of_hard("uid", "B>A", "A>B", baseline="x"),
            of_hard("uid", "A<B", "B>A", baseline="x"),
            of_hard("uid", None, "B>A", baseline="x"),
        ],
        [("x", "y", w) for w in ("model_a", "model_b", "tie")],
        {"no verdict": 1},
    ),
    "hard-v1.jsonl": (
        "Arena-Hard v0.1 against gpt-4-0314",
        [
            of_hard("question_id", "A>B", "B>>A"),
            of_hard("question_id", "A=B", "B=A"),
            of_hard("question_id", "A>B", None),
        ],
        [("gpt-4-0314", "y", "model_a"), ("gpt-4-0314", "y", "tie")],
        {"no verdict": 1},
    ),
    "wild-twice.jsonl": (
        "WildVision against claude-3-sonnet-20240229",
        [
            of_hard("question_id", "A>B", second, prompt=[{"type": "text", "text": "?"}])
            for second in ("A>B", "B>A", None)
        ],
        [("claude-3-sonnet-20240229", "y", w) for w in ("tie", "model_a")],
        {"no verdict": 1},
    ),
    "wild.jsonl": (
        "WildVision against claude-3-sonnet-20240229",
        [
            of_hard("question_id", score, prompt=[{"type": "text", "text": "?"}])
            for score in ("A>>B", "B>A", "A=B", None)
        ],
        [("claude-3-sonnet-20240229", "y", w) for w in ("model_a", "model_b", "tie")],
        {"no verdict": 1},
    ),
    "ratings.jsonl": (
        "ratings of arena study export",
        [
            of_study("model_a"), of_study("model_a", "ba"), of_study("both_bad", "ba"),
            of_study("skip"), of_study("tie", "ba", repeat=1), of_study("tie", kind="gold"),
            of_study("tie", kind="pilot"), of_study("tie", kind="qualification"),
            of_study(None, ranking='[["x"], ["y", "z"]]'),
        ],
        [("x", "y", "model_a"), ("y", "x", "model_b"), ("y", "x", "both_bad")],
        {
            "gold": 1,
            "of a pilot": 1,
            "of a qualification": 1,
            "rankings": 1,
            "second showings": 1,
            "skipped": 1,
        },
    ),
}  # fmt: skip
"""By file: the format, its rows, the votes in it, and what is excluded."""

OUTPUT = {"instruction": "i", "dataset": "invented", "output": "o", "generator": "x"}
SCORE = {
    "session_id": "s",
    "parsed_result": {"strengths": "?", "weaknesses": "?", "score": "7"},
    "model_test": "x",
    "score": "7",
    "model_output": "o",
}
SINGLE = {
    "question_id": 81,
    "model": "x",
    "judge": ["gpt-4", "single-v1"],
    "user_prompt": (
        "[Instruction]\nMark it.\n\n[Question]\n2 + 2?\n\n[The Start of Assistant's Answer]\n4.\n"
        "[The End of Assistant's Answer]"
    ),
    "judgment": "[[9]]",
    "score": 9,
    "turn": 1,
    "tstamp": 1.5,
}
REFUSED: Mapping[str, tuple[str, Row]] = {
    "outputs.json": ("AlpacaEval outputs", OUTPUT),
    "score_results.json": ("WildBench scores", SCORE),
    "single.jsonl": ("MT-bench scores of single answers", SINGLE),
    "llmbar.json": ("LLMBar", {"input": "i", "output_1": "o", "output_2": "p", "label": 1}),
    "preferences.jsonl": ("TRL preferences", {"prompt": "2 + 2?", "chosen": "4", "rejected": "5"}),
    "sick.tsv": (
        "SICK",
        {"pair_ID": 1, "sentence_A": "a", "sentence_B": "b", "relatedness_score": 4.5},
    ),
    "clinc.csv": ("CLINC", {"text": "pay my bill", "intent": "pay_bill"}),
}
"""By file that holds no votes: the format and a row."""


def written(folder: Path, name: str, rows: Sequence[Row]) -> Path:
    """Write rows in the kind of file that the name asks for."""
    path = folder / name
    if name.endswith(".json") and "log" not in name:
        path.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    elif name.endswith((".json", ".jsonl")):
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    elif name.endswith((".csv", ".tsv")):
        separator = "," if name.endswith("csv") else "\t"
        pd.DataFrame(rows).to_csv(path, index=False, sep=separator)
    else:
        text = folder / f"{name}.jsonl"
        written(folder, text.name, rows)
        duckdb.read_json(str(text)).write_parquet(str(path))
    return path
