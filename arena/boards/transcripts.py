"""Battles and answers as files that other programs read, with what is personal taken out."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from arena.boards.dataset_card import Written
from arena.domain.gold import is_gold
from arena.domain.vote import Choice, Policy, VoterKind
from arena.store.chain import AnyRow
from arena.store.remarks import exported
from arena.store.transcripts import LoggedBattle, is_erased, shown, texts_erased
from judge.labels.personal import scrub
from judge.tables.cells import STYLES, style_of
from rating.tables.vote_filter import NO_VOTE
from rating.tables.writing import write_rows

FIGURES = {"tokens": "tokens_out", "cost": "cost", "seconds": "duration_s"}
"""What is summed over the answers of a side, by the column's name."""

_SIDES = {
    "model": "VARCHAR",
    "response": "VARCHAR",
    **dict.fromkeys(STYLES, "BIGINT"),
    "tokens": "BIGINT",
    "cost": "DOUBLE",
    "seconds": "DOUBLE",
    "status": "VARCHAR",
}
_OF_BATTLE = {
    "battle_id": "VARCHAR",
    "prompt_id": "VARCHAR",
    "prompt_set": "VARCHAR",
}
_COUNTED = {
    "left_out": "VARCHAR",
    "policy": "VARCHAR",
    "scrubbed": "BIGINT",
    "erased": "BIGINT",
}
CONVERSATION = "STRUCT(prompt VARCHAR, a VARCHAR, b VARCHAR)[]"
BATTLES = {
    **_OF_BATTLE,
    **{f"{name}_{side}": kind for name, kind in _SIDES.items() for side in "ab"},
    "winner": "VARCHAR",
    "voter": "VARCHAR",
    "ts": "TIMESTAMP",
    "voter_kind": "VARCHAR",
    "seconds_to_vote": "DOUBLE",
    "prompt": "VARCHAR",
    "conversation": CONVERSATION,
    "turns": "BIGINT",
    "mode": "VARCHAR",
    "state": "VARCHAR",
    "created": "TIMESTAMP",
    "pair_probability": "DOUBLE",
    "repicks": "BIGINT",
    "pacing": "VARCHAR",
    "sampler": "VARCHAR",
    "sampler_version": "VARCHAR",
    "category": "VARCHAR",
    "language": "VARCHAR",
    "intent": "VARCHAR",
    "hard": "VARCHAR",
    "tagger": "VARCHAR",
    "reasons_a": "VARCHAR",
    "reasons_b": "VARCHAR",
    "comment": "VARCHAR",
    "confidence": "BIGINT",
    "voter_intent": "VARCHAR",
    "before_reveal": "BIGINT",
    "remarked": "TIMESTAMP",
    **_COUNTED,
}
"""Columns of an export of battles."""
ANSWERS = {
    **_OF_BATTLE,
    "turn": "BIGINT",
    "side": "VARCHAR",
    "attempt": "BIGINT",
    "model": "VARCHAR",
    "status": "VARCHAR",
    "error_class": "VARCHAR",
    "finish_reason": "VARCHAR",
    "created": "TIMESTAMP",
    "first_token_s": "DOUBLE",
    "duration_s": "DOUBLE",
    "tokens_in": "BIGINT",
    "tokens_out": "BIGINT",
    "price_input": "DOUBLE",
    "price_output": "DOUBLE",
    "cost": "DOUBLE",
    "text": "VARCHAR",
    **dict.fromkeys(STYLES, "BIGINT"),
    **_COUNTED,
}
"""Columns of an export of answers."""
Row = Mapping[str, Any]


class Texts:
    """Takes out of texts what is personal, unless they stay whole, and counts it."""

    def __init__(self, counts: Counter[str] | None) -> None:
        self._counts = counts
        self._here = 0

    def __call__(self, row: AnyRow, text: str) -> str | None:
        """Give the words of a turn or an answer; None where they were erased."""
        if is_erased(row):
            return None
        scrubbed = self._scrub(text)
        self._here += scrubbed[1]
        return scrubbed[0]

    def comment(self, text: str) -> str:
        """Give a comment: what is taken out of it is counted in all, not as of the battle's."""
        return self._scrub(text)[0]

    def _scrub(self, text: str) -> tuple[str, int]:
        if self._counts is None:
            return text, 0
        scrubbed = scrub(text)
        self._counts.update(scrubbed.counts)
        return scrubbed.text, sum(scrubbed.counts.values())

    def taken(self) -> int:
        """Give how many pieces were taken out since this was asked last."""
        taken, self._here = self._here, 0
        return taken


Lay = Callable[[LoggedBattle, Texts], Iterator[Row]]


def export_battles(
    battles: Iterable[LoggedBattle],
    policy: Policy,
    path: Path,
    *,
    everything: bool = False,
    whole: bool = False,
) -> Written:
    """Write the battles whose votes a policy counts, one row a battle.

    Parameters
    ----------
    path : Path
        Ends in ``.parquet``, ``.csv`` or ``.jsonl``.
    everything : bool
        Write all battles, with the reason why one does not count.
    whole : bool
        Leave what is personal in the texts.

    Raises
    ------
    DataError
        If the ending is another, or the file cannot be written.
    """
    return export_rows(battles, policy, path, BATTLES, _battle, everything=everything, whole=whole)


def export_answers(
    battles: Iterable[LoggedBattle],
    policy: Policy,
    path: Path,
    *,
    everything: bool = False,
    whole: bool = False,
) -> Written:
    """Write the answers of the battles that `export_battles` writes, one row an answer."""
    return export_rows(
        battles, policy, path, ANSWERS, _answers, everything=everything, whole=whole
    )


def export_rows(
    battles: Iterable[LoggedBattle],
    policy: Policy,
    path: Path,
    columns: Mapping[str, str],
    lay: Lay,
    *,
    everything: bool = False,
    whole: bool = False,
    unfit: Callable[[LoggedBattle], str | None] = lambda _: None,
) -> Written:
    """Write what is laid out of battles whose votes a policy counts.

    Parameters
    ----------
    columns : mapping of str to str
        SQL's type of each column.
    lay : callable
        Gives the rows of a battle.
    unfit : callable
        Gives why a battle that counts has no row in this layout, or None.
    """
    written = Written(scrubbed=None if whole else Counter())
    texts = Texts(written.scrubbed)

    def rows() -> Iterator[Row]:
        for battle in battles:
            reason = _why_not(battle, policy)
            written.count(reason, battle.row.ts)
            odd = unfit(battle) if reason is None else None
            if odd is not None:
                written.unfit[odd] += 1
            elif reason is None or everything:
                beside = _beside(battle, policy, reason)
                for row in lay(battle, texts):
                    written.rows += 1
                    yield {**row, **beside}

    write_rows(rows(), columns, path)
    return written


def _beside(battle: LoggedBattle, policy: Policy, reason: str | None) -> Row:
    return {"left_out": reason, "policy": policy.name, **_labels(battle, policy)}


def _why_not(battle: LoggedBattle, policy: Policy) -> str | None:
    row = battle.row
    if row.vote is None:
        return NO_VOTE
    choice, kind = Choice(row.winner), VoterKind(row.voter_kind)
    gold, broken = is_gold(row.prompt_set), row.broken
    return policy.why_not(choice, kind, battle.exclusions, gold=gold, broken=broken)


def _labels(battle: LoggedBattle, policy: Policy) -> Row:
    return {**battle.labels, "tagger": " ".join(policy.tagger)} if battle.labels else {}


def _battle(battle: LoggedBattle, texts: Texts) -> Iterator[Row]:
    turns = shown(battle)
    asked = [texts(turn, turn.prompt) for turn, _ in turns]
    sides = {side: [answers[side] for _, answers in turns if side in answers] for side in "ab"}
    words = {(one.turn, side): texts(one, one.text) for side in "ab" for one in sides[side]}
    conversation = [
        {"prompt": prompt} | {side: words.get((turn.turn, side)) for side in "ab"}
        for prompt, (turn, _) in zip(asked, turns, strict=True)
    ]
    row: dict[str, Any] = dict(battle.row._asdict())
    for side, answers in sides.items():
        row |= {f"{name}_{side}": value for name, value in _measured(answers).items()}
        row[f"response_{side}"] = _joined(turn[side] for turn in conversation)
    rows = [turn for turn, _ in turns] + sides["a"] + sides["b"]
    if battle.remarks is not None:
        comment = texts.comment(battle.remarks.comment)
        row |= exported(battle.remarks) | {"comment": comment or None}
    yield row | {
        "prompt": _joined(asked),
        "conversation": json.dumps(conversation, ensure_ascii=False),
        "turns": len(turns),
        "scrubbed": texts.taken(),
        "erased": texts_erased(rows),
    }


def _joined(parts: Iterable[str | None]) -> str | None:
    """Put the texts of several turns into one; None where one was erased, or there is none."""
    texts = list(parts)
    return None if not texts or None in texts else "\n\n".join(filter(None, texts))


def _measured(answers: list[AnyRow]) -> Row:
    """Measure the answers of a side together: what is not known of one is not known of all."""
    each = [_style(one) for one in answers]
    figures = {name: [getattr(one, of) for one in answers] for name, of in FIGURES.items()}
    figures |= {name: [style[name] for style in each] for name in STYLES}
    status = answers[-1].status if answers else None
    return {name: total(values) for name, values in figures.items()} | {"status": status}


def total(values: list[Any]) -> Any:
    """Sum values; None where one is not known, or there is none."""
    return None if not values or None in values else sum(values)


def _style(answer: AnyRow) -> Row:
    if is_erased(answer):
        return dict.fromkeys(STYLES)
    return style_of(answer.text)


def _answers(battle: LoggedBattle, texts: Texts) -> Iterator[Row]:
    of_battle = {name: getattr(battle.row, name) for name in _OF_BATTLE}
    for answer in battle.answers:
        text = texts(answer, answer.text)
        yield {
            **of_battle,
            **answer._asdict(),
            "battle_id": battle.row.battle_id,
            "model": answer.model_id,
            **_style(answer),
            "text": text,
            "scrubbed": texts.taken(),
            "erased": texts_erased([answer]),
        }
