"""Votes, battles, answers and models as files that other programs read, each with a card."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from arena.domain.battle import Side
from arena.domain.model import is_gold
from arena.domain.vote import BROKEN_ANSWER, EVER, SIMULATED, Choice, Days, Policy, VoterKind
from arena.store import chain, log
from arena.store.chain import AnyRow, LoggedLink
from arena.store.log import LoggedBattle, is_erased, shown, texts_erased
from arena.store.store import Store
from arena.store.voting import exported
from judge.labels import material
from judge.labels.taggers import REFUSAL, refusing
from judge.tables.annotations import MARKDOWN, STYLES, elements_by_kind, style_of
from rating import __version__
from rating.errors import DataError
from rating.outcome import of_sides
from rating.tables.coding import LOGGED_SIDES
from rating.tables.duckdb_engine import described, write_rows
from rating.tables.files import in_markdown
from rating.tables.formats import write_text
from rating.tables.vote_filter import NO_VOTE

_MESSAGES = "STRUCT(role VARCHAR, content VARCHAR)[]"
_WHOLE_NUMBERS = (
    "repicks", "all_votes", "turn", "turns", "attempt", "attempt_a", "attempt_b", "chars",
    "refused_a", "refused_b", "confidence", "before_reveal", "link", "links", "scrubbed",
    "erased", "tokens", "tokens_in", "tokens_out", "repeat", *STYLES,
)  # fmt: skip
_NUMBERS = (
    "pair_probability", "seconds_to_vote", "first_token_s", "duration_s", "price_input",
    "price_output", "cost", "seconds", "tstamp",
)  # fmt: skip
_TYPES = {
    **dict.fromkeys(_WHOLE_NUMBERS, "BIGINT"),
    **dict.fromkeys(_NUMBERS, "DOUBLE"),
    **dict.fromkeys(("ts", "since", "until", "created", "remarked"), "TIMESTAMP"),
    "conversation": "STRUCT(prompt VARCHAR, a VARCHAR, b VARCHAR)[]",
    **dict.fromkeys(("conversation_a", "conversation_b"), _MESSAGES),
}
"""SQL's type of each column of an export that holds anything but text, whichever export it is."""


def typed(*names: str) -> dict[str, str]:
    """Give the columns of an export with SQL's types; ``X_a`` and ``X_b`` are as ``X``.

    Examples
    --------
    >>> typed("model_a", "cost_a", "ts")
    {'model_a': 'VARCHAR', 'cost_a': 'DOUBLE', 'ts': 'TIMESTAMP'}
    """
    stems = {name: name.removesuffix("_a").removesuffix("_b") for name in names}
    return {name: _TYPES.get(name, _TYPES.get(stems[name], "VARCHAR")) for name in names}


LABELS = (
    "category", "language", "intent", "turns", "chars", "hard", "instructions",
    "refused_a", "refused_b",
)  # fmt: skip
"""Labels of a prompt, and whether each answer refuses, as 0 or 1."""
TOPIC = "topic"
"""Column beside the labels, of no tagger: what the prompt is about, if everybody can read it."""
REASONS = ("reasons_a", "reasons_b")
REMARKS = ("confidence", "voter_intent", "before_reveal", "remarked")
"""What was remarked beside a vote, as are `REASONS`."""
DRAWN = ("pair_probability", "repicks", "pacing")
"""How a battle was drawn and paced."""
STATEMENT = ("policy", "since", "until", "all_votes")
"""Columns that state the scope of a file of votes; they are equal in every row."""
COLUMNS = typed(
    "battle_id", "prompt_id", *LOGGED_SIDES, "winner", "voter", "person", "judge", "ts",
    "voter_kind", *DRAWN, "seconds_to_vote", "left_out", *STATEMENT, "mode", "prompt_set",
    "sampler", "sampler_version", "fingerprint_a", "fingerprint_b", "turn", "attempt_a",
    "attempt_b", "order_shown", "transcript_hash", *LABELS, TOPIC, "tagger",
    *REASONS, *REMARKS, "excluded_vote", "transcript", "exclusion", "tombstone",
    "link_kind", "link", "links", "content", "hash",
)  # fmt: skip
"""Columns of an export of votes; ``ts`` is in UTC, ``left_out`` why a vote does not count.

The last nine are of the chain: see `export_votes`. ``links`` is how many there are in all.
A policy that counts votes on broken answers has no column ``transcript``.
``person`` is the voter that the board counts ``voter`` as; no hash binds it. Every row states the
scope of the file: ``policy``, ``since``, ``until``, and ``all_votes``, 1 if exported with --all.
"""
FIGURES = {"tokens": "tokens_out", "cost": "cost", "seconds": "duration_s"}
"""What is summed over the answers of a side, by the column's name."""
_OF_BATTLE = ("battle_id", "prompt_id", "prompt_set")
_OF_SIDE = ("model", "response", *STYLES, *FIGURES, "status")
_COUNTED = ("left_out", "policy", "scrubbed", "erased")
BATTLES = typed(
    *_OF_BATTLE, *(column for name in _OF_SIDE for column in of_sides(name)),
    "winner", "voter", "ts", "voter_kind", "seconds_to_vote", "prompt", "conversation",
    "turns", "mode", "state", "created", *DRAWN, "sampler", "sampler_version",
    "category", "language", "intent", "hard", "tagger", *REASONS, "comment", *REMARKS,
    *_COUNTED,
)  # fmt: skip
"""Columns of an export of battles."""
ANSWERS = typed(
    *_OF_BATTLE, "turn", "side", "attempt", "model", "status", "error_class",
    "finish_reason", "created", "first_token_s", "duration_s", "tokens_in", "tokens_out",
    "price_input", "price_output", "cost", "text", *STYLES, *_COUNTED,
)  # fmt: skip
"""Columns of an export of answers."""
CHATBOT_ARENA = typed(
    "question_id", *LOGGED_SIDES, "winner", "judge", "conversation_a", "conversation_b", "turn",
    "anony", "language", "tstamp", "conv_metadata",
)  # fmt: skip
"""Columns as Chatbot Arena publishes them; `rating.tables.peers` reads them back."""
TRL = dict.fromkeys(("prompt", "chosen", "rejected"), _MESSAGES)
"""Columns of TRL's preferences, with an explicit prompt; `judge.tables.native` reads them back."""
MODELS = typed("model", "name", "organisation", "kind", "licence", "fingerprint", "created")
"""Columns of an export of models; ``fingerprint`` is of all that makes one answer as it does."""

NO_TOPICS: Mapping[str, str] = {}
OUTSIDE = "outside the days"
"""Why a vote is excluded that was cast before or after the days that an export is of."""
HASHES_ONLY = "hashes only"
"""What is counted as such: a vote whose hashes alone came by an import of version 0.1.0."""
BOTH_BAD = "tie (bothbad)"
"""What Chatbot Arena calls a vote for neither."""

Row = Mapping[str, Any]


@dataclass(slots=True)
class Written:
    """What an export wrote.

    Attributes
    ----------
    rows : int
    votes : Counter of str or None
        Votes, or battles, by why they do not count; None of those that do.
    first, last : datetime or None
        When the oldest and the newest of the votes that were read were cast.
    scrubbed : Counter of str or None
        Personal pieces by kind; None where there are no texts, or they were left whole.
    method : str
        How ratings were made; empty of anything else.
    unfit : Counter of str
        Votes that count and have no row, by why the layout has none for them.
    lacks : str
        What the layout has no columns for, as a sentence; empty of our own.
    of : str
        What an export of votes is of, as a sentence; empty of anything else.
    """

    rows: int = 0
    votes: Counter[str | None] = field(default_factory=Counter)
    first: datetime | None = None
    last: datetime | None = None
    scrubbed: Counter[str] | None = None
    method: str = ""
    unfit: Counter[str] = field(default_factory=Counter)
    lacks: str = ""
    of: str = ""

    def count(self, reason: str | None, cast: datetime | None) -> None:
        """Count a vote, or a battle without one."""
        self.votes[reason] += 1
        if cast is not None:
            self.first = min(self.first or cast, cast)
            self.last = max(self.last or cast, cast)


# Votes


def export_votes(
    links: Iterable[LoggedLink],
    policy: Policy,
    path: Path,
    *,
    total: int,
    topics: Mapping[str, str] = NO_TOPICS,
    days: Days = EVER,
    everything: bool = False,
) -> Written:
    """Write the votes that a policy counts, in the order of the chain.

    Of a vote that is excluded the columns of votes are empty, so that nobody counts it;
    ``left_out`` is why, and ``excluded_vote`` all that its hash binds, as JSON, so that anybody
    can verify that the rules exclude it. Of one that is excluded because an answer of it did not
    end as answers do, ``transcript`` is what its ``transcript_hash`` is the hash of, with the
    finish reasons and without the texts. Exclusions and deletion records are JSON, too.
    Of a vote that was deleted the hashes alone are written.

    Parameters
    ----------
    path : Path
        Ends in ``.parquet``, ``.csv`` or ``.jsonl``.
    total : int
        How many links there are.
    topics : mapping
        What the prompt of a battle is about: see `TOPIC`.
    days : Days
        Votes outside these are excluded, ``everything`` or not.
    everything : bool
        Write also what the policy excludes, skips among it, in the columns of votes.

    Raises
    ------
    DataError
        If the ending is another, or the file cannot be written.
    """
    written = Written(of=_what_of(policy.name, days, everything=everything))
    of_all = {
        "links": total,
        "policy": policy.name,
        "since": days.since,
        "until": days.until,
        "all_votes": int(everything),
    }

    def rows() -> Iterator[Row]:
        for link in links:
            if link.kind != "vote" or link.withheld is not None:
                reason: str | None = link.withheld or NO_VOTE
                shows = False
            else:
                broken = link.transcript is not None
                reason = why_excluded(link.bound, policy, days, link.exclusions, broken=broken)
                shows = is_shown(reason, everything=everything)
            if link.kind == "vote":
                is_alone = link.withheld not in (None, chain.TAKEN_OUT)
                outside = reason == OUTSIDE
                written.count(
                    HASHES_ONLY if is_alone else reason, None if outside else link.bound.get("ts")
                )
                written.rows += shows
            yield _row(link, policy, reason, topics, shows=shows) | of_all

    lacking = set() if policy.excludes_broken else {"transcript"}
    write_rows(rows(), {n: kind for n, kind in COLUMNS.items() if n not in lacking}, path)
    return written


def _row(
    link: LoggedLink, policy: Policy, reason: str | None, topics: Mapping[str, str], *, shows: bool
) -> dict[str, object]:
    hashes: dict[str, object] = {
        "link_kind": link.kind,
        "link": link.link,
        "content": link.content,
        "hash": link.hash,
        "left_out": reason,
    }
    if link.kind == "mark" or link.withheld is not None:
        return hashes
    if link.kind in ("exclusion", "tombstone"):
        return hashes | {link.kind: as_json(link.bound)}
    if reason == BROKEN_ANSWER:
        hashes["transcript"] = link.transcript
    if not shows:
        return hashes | {"excluded_vote": as_json({n: link.bound[n] for n in chain.BOUND})}
    shown = {name: link.bound[name] for name in (*chain.BOUND, "person")}
    topic = {TOPIC: topics.get(str(link.bound["battle_id"]))}
    return {**hashes, **_labelled(link.labels, policy), **topic, **link.remarks, **shown}


def _labelled(labels: Mapping[str, str], policy: Policy) -> dict[str, object]:
    """Give labels as columns, whether each side's answer refuses as 0 or 1."""
    known: dict[str, object] = {**labels}
    if refusal := known.pop(REFUSAL, None):
        known |= dict(zip(("refused_a", "refused_b"), refusing(str(refusal)), strict=True))
    return known | ({"tagger": " ".join(policy.tagger)} if labels else {})


def why_excluded(
    vote: Row, policy: Policy, days: Days, exclusions: tuple[str, ...], *, broken: bool
) -> str | None:
    """Return why an export of a policy and of some days excludes a vote; None if it counts."""
    if not days.cover(vote["ts"]):
        return OUTSIDE
    choice, kind = Choice(vote["winner"]), VoterKind(vote["voter_kind"])
    gold = is_gold(vote["prompt_set"])
    return policy.why_not(choice, kind, exclusions, gold=gold, broken=broken)


def is_shown(reason: str | None, *, everything: bool) -> bool:
    """Return whether a vote is in the columns of votes, given why it is excluded."""
    return reason is None or (everything and reason != OUTSIDE)


def _what_of(policy: str, days: Days, *, everything: bool) -> str:
    """Describe the scope of an export of votes in a sentence."""
    bounds = (("since", days.since), ("before", days.until))
    cast = " and ".join(f"{word} {moment:%Y-%m-%d %H:%M:%S}" for word, moment in bounds if moment)
    excluded = "in the columns of votes (--all)" if everything else "in excluded_vote"
    return f"Votes cast {cast or 'at any time'}; votes that {policy} excludes are {excluded}."


def as_json(bound: Row) -> str:
    """Write what a link binds, as an export has it."""
    moment = bound["ts"]
    if isinstance(moment, datetime):
        moment = moment.astimezone(UTC).isoformat()
    return json.dumps({**bound, "ts": moment})


# Battles and answers


class _Scrubber:
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
        scrubbed, counts = material.scrub(text)
        self._counts.update(counts)
        return scrubbed, sum(counts.values())

    def taken(self) -> int:
        """Give how many pieces were taken out since this was asked last."""
        taken, self._here = self._here, 0
        return taken


class _ExportLayout(NamedTuple):
    """The columns of battles, as we or another tool have them.

    Attributes
    ----------
    columns : mapping of str to str
        SQL's type of each.
    lay : callable
        Gives the rows of a battle, its texts as they leave.
    lacks : str
        What it has no columns for, as a sentence; empty of our own.
    unfit : callable
        Why there is no row of a battle that counts, or None.
    endings : tuple of str
        Kinds of files that the tool reads as this.
    """

    columns: Mapping[str, str]
    lay: Callable[[LoggedBattle, _Scrubber], Iterator[Row]]
    lacks: str = ""
    unfit: Callable[[LoggedBattle], str | None] = lambda _: None
    endings: tuple[str, ...] = (".parquet", ".csv", ".jsonl")


def export_battles(
    battles: Iterable[LoggedBattle],
    policy: Policy,
    path: Path,
    layout: str = "arena",
    *,
    everything: bool = False,
    whole: bool = False,
) -> Written:
    """Write the battles whose votes a policy counts.

    Parameters
    ----------
    path : Path
        Ends in ``.parquet``, ``.csv`` or ``.jsonl``.
    layout : str
        One of `LAYOUTS`.
    everything : bool
        Write all battles, with the reason why one does not count.
    whole : bool
        Leave what is personal in the texts.

    Raises
    ------
    DataError
        If the ending is another, or one in which the tool does not read it, or the file cannot
        be written.
    """
    as_theirs = LAYOUTS[layout]
    if as_theirs.lacks and path.suffix and path.suffix not in as_theirs.endings:
        raise DataError(
            f"Cannot write {str(path)!r} in the layout {layout!r}, whose columns are lists of "
            f"messages: name a file that ends in {' or '.join(as_theirs.endings)}."
        )
    written = Written(scrubbed=None if whole else Counter(), lacks=as_theirs.lacks)
    texts = _Scrubber(written.scrubbed)

    def rows() -> Iterator[Row]:
        for battle in battles:
            vote, why = battle.row._asdict(), battle.exclusions
            reason: str | None = NO_VOTE
            if vote["vote"] is not None:
                reason = why_excluded(vote, policy, EVER, why, broken=vote["broken"])
            written.count(reason, vote["ts"])
            odd = as_theirs.unfit(battle) if reason is None else None
            if odd is not None:
                written.unfit[odd] += 1
            elif reason is None or everything:
                labels = _labelled(battle.labels, policy)
                beside = {"left_out": reason, "policy": policy.name, **labels}
                for laid in as_theirs.lay(battle, texts):
                    written.rows += 1
                    yield {**laid, **beside}

    write_rows(rows(), as_theirs.columns, path)
    return written


def _battle(battle: LoggedBattle, texts: _Scrubber) -> Iterator[Row]:
    turns = shown(battle)
    asked = [texts(turn, turn.prompt) for turn, _ in turns]
    sides = {side: [answers[side] for _, answers in turns if side in answers] for side in Side}
    words = {(one.turn, side): texts(one, one.text) for side in Side for one in sides[side]}
    conversation = [
        {"prompt": prompt} | {side: words.get((turn.turn, side)) for side in Side}
        for prompt, (turn, _) in zip(asked, turns, strict=True)
    ]
    row: dict[str, Any] = dict(battle.row._asdict())
    for side, answers in sides.items():
        row |= {f"{name}_{side}": value for name, value in _measured(answers).items()}
        row[f"response_{side}"] = _joined(turn[side] for turn in conversation)
    rows = [turn for turn, _ in turns] + sides[Side.A] + sides[Side.B]
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
    return {name: _total(values) for name, values in figures.items()} | {"status": status}


def _total(values: list[Any]) -> Any:
    """Sum values; None where one is not known, or there is none."""
    return None if not values or None in values else sum(values)


def _style(answer: AnyRow) -> Row:
    return dict.fromkeys(STYLES) if is_erased(answer) else style_of(answer.text)


def _answers(battle: LoggedBattle, texts: _Scrubber) -> Iterator[Row]:
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


def _as_chatbot_arena(battle: LoggedBattle, texts: _Scrubber) -> Iterator[Row]:
    turns, row = shown(battle), battle.row
    asked = [texts(turn, turn.prompt) or "" for turn, _ in turns]
    metadata: dict[str, Any] = {}
    theirs: dict[str, Any] = {}
    for side in Side:
        answers = [answers[side] for _, answers in turns]
        words = [texts(one, one.text) or "" for one in answers]
        theirs[f"conversation_{side}"] = _as_json(_messages(asked, words))
        metadata |= {f"{name}_{side}": value for name, value in _their_counts(answers).items()}
        metadata[f"sum_assistant_{side}_tokens"] = _total([one.tokens_out for one in answers])
    yield theirs | {
        "question_id": row.prompt_id or row.battle_id,
        **{name: getattr(row, name) for name in of_sides("model")},
        "winner": BOTH_BAD if row.winner == Choice.BOTH_BAD else row.winner,
        "judge": row.voter,
        "turn": len(turns),
        "anony": "true",
        "tstamp": row.ts.timestamp(),
        "conv_metadata": json.dumps(metadata),
    }


def _messages(asked: list[str], words: list[str]) -> list[dict[str, str]]:
    pairs = zip(asked, words, strict=True)
    return [
        {"role": role, "content": text}
        for pair in pairs
        for role, text in zip(("user", "assistant"), pair, strict=True)
    ]


def _as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _their_counts(answers: list[AnyRow]) -> dict[str, dict[str, int]]:
    counts = sum((elements_by_kind(one.text) for one in answers), Counter[str]())
    return {
        "header_count": {kind: counts[kind] for kind in MARKDOWN["headers"]},
        "list_count": {kind: counts[kind] for kind in MARKDOWN["lists"]},
        "bold_count": {"**": counts["bold"], "__": 0},
    }


def _as_preference(battle: LoggedBattle, texts: _Scrubber) -> Iterator[Row]:
    """Lay out a conversation as TRL takes one apart: the prompt is what both sides begin with."""
    turns = shown(battle)
    asked = [texts(turn, turn.prompt) or "" for turn, _ in turns]
    a, b = (
        _messages(asked, [texts(answers[side], answers[side].text) or "" for _, answers in turns])
        for side in Side
    )
    chosen, rejected = (a, b) if battle.row.winner == Choice.A else (b, a)
    apart = (place for place, (ours, other) in enumerate(zip(a, b, strict=True)) if ours != other)
    cut = next(apart, len(a) - 1)
    yield {
        "prompt": _as_json(chosen[:cut]),
        "chosen": _as_json(chosen[cut:]),
        "rejected": _as_json(rejected[cut:]),
    }


def _no_preference(battle: LoggedBattle) -> str | None:
    if battle.row.winner not in (Choice.A, Choice.B):
        return "no answer is preferred"
    rows = [one for turn, answers in shown(battle) for one in (turn, *answers.values())]
    return "words were erased" if any(map(is_erased, rows)) else None


LAYOUTS = {
    "arena": _ExportLayout(BATTLES, _battle),
    "answers": _ExportLayout(ANSWERS, _answers),
    "chatbot-arena": _ExportLayout(
        CHATBOT_ARENA,
        _as_chatbot_arena,
        "Chatbot Arena has no columns for ids of battles, how they were drawn and paced, what "
        "answers took and cost, labels but the language, and remarks.",
    ),
    "trl": _ExportLayout(
        TRL,
        _as_preference,
        "TRL has a prompt, a chosen and a rejected answer: no models, sides, voters, times, "
        "labels and remarks.",
        _no_preference,
        (".parquet", ".jsonl"),
    ),
}
"""By the word of ``--layout``; of answers, too, which are a row each."""


def export_models(store: Store, path: Path) -> Written:
    """Write every model that the log names.

    Raises
    ------
    DataError
        If the file cannot be written.
    """
    rows = store.read(log.model_rows)
    write_rows(rows, MODELS, path)
    return Written(rows=len(rows))


# Cards


def card_of(path: Path) -> Path:
    """Name the card of a file, or of a folder of shards, which is the README above it."""
    return path.with_name("README.md" if path.is_dir() else f"{path.name}.card.md")


def write_card(path: Path, what: str, written: Written, policy: Policy, licence: str) -> None:
    """Write the card beside a file or a folder; raises `DataError` if it cannot be written.

    Parameters
    ----------
    what : {"votes", "battles", "answers", "models", "ratings"}
    licence : str
        As Hugging Face names it.
    """
    from judge.render.pages import environment  # it takes a while to import

    cards = environment(Path(__file__).parent).overlay(autoescape=False, finalize=None)
    cards.filters |= {"cell": in_markdown, "dumps": partial(json.dumps, ensure_ascii=False)}
    card = cards.get_template("card.md").render(
        what=what,
        written=written,
        policy=policy,
        simulated=policy.name == SIMULATED.name,
        licence=licence,
        file=path.name,
        shards=sorted(path.iterdir()) if path.is_dir() else [],
        described=described,
        rules=material,
        version=__version__,
    )
    write_text(card, card_of(path))
