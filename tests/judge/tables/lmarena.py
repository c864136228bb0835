"""Rows in the layout of LMArena's release of 140,000 votes, all of them invented."""

import random
from typing import Any

PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "YPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
KINDS = ("one turn", "several turns", "image", "no image", "no answer", "two users")
"""Of a row; ``no image`` names one that is not in the file, such as a path in a bucket."""
WINNERS = ("model_a", "model_b", "tie", "both_bad")


def lmarena_rows(n: int, seed: int = 0) -> list[dict[str, Any]]:
    """Draw rows; ``kind`` of each is its remainder by the number of `KINDS`."""
    draw = random.Random(seed)
    return [_row(number, KINDS[number % len(KINDS)], draw) for number in range(n)]


def _row(number: int, kind: str, draw: random.Random) -> dict[str, Any]:
    n_turns = 3 if kind == "several turns" else 1
    model_a, model_b = draw.sample(["basalt", "flint", "slate"], 2)
    talks = {side: list[dict[str, Any]]() for side in "ab"}
    for side in "ab":
        for turn in range(n_turns):
            asked = f"Question {number}.{turn}?"
            if kind == "two users" and side == "b":
                asked += " Please."
            parts = [_part(asked)]
            if kind == "image":
                parts.append(_part(None, PIXEL))
            if kind == "no image":
                parts.append(_part(None, f"images/{number}.png"))
            answer = [_part(f"Answer {number}.{turn}{side},"), _part("in two parts.")]
            if kind == "no answer" and side == "a":
                answer = [_part(None)]
            talks[side] += [_message("user", parts), _message("assistant", answer)]
    user, a, b = talks["a"][0], talks["a"][1], talks["b"][1]
    return {
        "id": f"battle-{number}",
        "model_a": model_a,
        "model_b": model_b,
        "winner": draw.choice(WINNERS),
        "evaluation_session_id": f"session-{number // 3}",
        "evaluation_order": number % 3 + 1,
        "conversation_a": talks["a"],
        "conversation_b": talks["b"],
        "full_conversation": [{"user": user, "model_side_a": a, "model_side_b": b}],
        "conv_metadata": {
            "bold_count_a": {"**": 1, "__": 0},
            "bold_count_b": {"**": 0, "__": 0},
            "header_count_a": {"h1": 1, "h2": 0},
            "header_count_b": {"h1": 0, "h2": 0},
            "list_count_a": {"ordered": 0, "unordered": 2},
            "list_count_b": {"ordered": 0, "unordered": 0},
            "sum_assistant_a_tokens": 20,
            "sum_assistant_b_tokens": 10,
            "sum_user_tokens": 4,
            "turns": n_turns,
        },
        "category_tag": {
            "creative_writing_v0.1": {"creative_writing": False, "score": "no"},
            "criteria_v0.1": {"complexity": True, "specificity": True},
            "if_v0.1": {"if": False, "score": 1},
            "math_v0.1": {"math": False},
        },
        "language": "en",
        "is_code": False,
        "timestamp": f"2025-05-{number % 28 + 1:02d} 10:00:00",
    }


def _part(text: str | None, image: str | None = None) -> dict[str, Any]:
    kind = "text" if image is None else "image"
    return {"type": kind, "text": text, "image": image, "mimeType": image and "image/png"}


def _message(role: str, parts: list[dict[str, Any]]) -> dict[str, Any]:
    return {"role": role, "content": parts, "num_tokens": 4}
