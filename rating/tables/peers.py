"""Files as other tools write them: each format is known by its columns, and read as votes."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from rating.errors import DataError
from rating.tables.columns import LEFT_OUT, quoted_names
from rating.tables.files import quoted

if TYPE_CHECKING:
    import duckdb

NO_VERDICT = "no verdict"
"""Reason of a row in which a judge said nothing that can be read."""

NOT_SAMPLED = "duplicate prompts (dedup_tag)"
"""Reason of a row that the arena's own rule excludes: one of many with the same prompt."""

CHOOSABLE = ("dedup_tag",)
"""Columns of theirs by which rows are excluded, unless ``--where`` names them."""

NESTED = ("STRUCT", "MAP", "LIST", "ARRAY", "UNION")


EACH = "__each"
"""Column of a member of a list; no file has one of this name."""


@dataclass(frozen=True, slots=True)
class Format:
    """What a tool writes.

    Attributes
    ----------
    name : str
    marks : str
        Columns of which at least one is there, and hardly in any other file, with spaces between.
    required : str
        Columns without which nothing can be read.
    columns : tuple of (str, str)
        A column of ours, and SQL for it. Theirs stand in double quotes and hold text, lists and
        objects as JSON. The first counts of which all columns are there.
    without : str
        Columns that no such file has.
    when : str
        SQL that holds in its first row, where columns do not tell two formats apart.
    each : str
        SQL of a list, of whose members each makes a row of its own, with it in the column `EACH`.
    read_by : str
        Of a format that holds no votes: what reads it instead.
    """

    name: str
    marks: str
    required: str
    columns: tuple[tuple[str, str], ...] = ()
    without: str = ""
    when: str = ""
    each: str = ""
    read_by: str = ""

    def touches(self, there: Sequence[str]) -> bool:
        """Whether a table has a column that marks this format."""
        absent = {*self.without.split()}.isdisjoint(there)
        return absent and not {*self.marks.split()}.isdisjoint(there)

    def missing(self, there: Sequence[str]) -> list[str]:
        """Name the required columns that a table does not have."""
        return [name for name in self.required.split() if name not in there]

    def chosen(self, there: Sequence[str]) -> dict[str, str]:
        """Give SQL for each column of ours that can be made of theirs."""
        known = {*there, EACH}
        return {ours: sql for ours, sql in reversed(self.columns) if _columns_in(sql) <= known}

    def columns_for(self, names: Sequence[str], there: Sequence[str]) -> list[str]:
        """Name the columns of a table that columns of ours and theirs are made of."""
        made = self.chosen(there)
        read = {one for name in names for one in _columns_in(made.get(name, f'"{name}"'))}
        read |= _columns_in(self.each)
        return [name for name in there if name in {*names} - {*made} | read]


def _columns_in(sql: str) -> set[str]:
    return set(re.findall(r'"(\w+)"', sql))


def _renamed(columns: str) -> Iterator[tuple[str, str]]:
    """Give each column of ours that is one of theirs as it is, written ``ours=theirs``."""
    for one in columns.split():
        ours, theirs = one.split("=")
        yield ours, f'"{theirs}"'


def _inside(column: str, path: str) -> str:
    return f"json_extract_string(\"{column}\", '{path}')"


def _winner(column: str, **labels: str) -> str:
    """Give ours for each of their labels; another one stays, to be refused by its name."""
    cases = " ".join(f"WHEN '{theirs}' THEN '{ours}'" for ours, theirs in labels.items())
    return f'CASE "{column}" {cases} ELSE "{column}" END'


def _named_winner(column: str, a: str, b: str) -> str:
    """Turn the name of a model into its side; another one stays, to be refused."""
    sides = f"WHEN \"{a}\" THEN 'model_a' WHEN \"{b}\" THEN 'model_b'"
    return f'CASE "{column}" {sides} ELSE "{column}" END'


def _true(column: str) -> str:
    return f"coalesce(lower(\"{column}\") IN ('true', '1', '1.0'), false)"


def _parsed(column: str) -> str:
    """Parse an object, also as pandas writes one to CSV, in the spelling of Python."""
    text = f"replace(\"{column}\", '''', '\"')"
    for theirs, ours in (("True", "true"), ("False", "false"), ("None", "null")):
        text = f"replace({text}, ': {theirs}', ': {ours}')"
    return f"TRY_CAST({text} AS JSON)"


_METADATA = _parsed("conv_metadata")


_TAGS = _parsed("category_tag")
_CATEGORIES = {name: name for name in ("math", "creative_writing")} | {
    "instruction_following": "if"
}
"""By our column: the name inside ``category_tag``, below the version of what tagged it."""
_COUNTED = {"headers": "header_count", "lists": "list_count", "bold": "bold_count"}


def _styles() -> Iterator[tuple[str, str]]:
    for side in "ab":
        length = f"json_extract_string({_METADATA}, '$.sum_assistant_{side}_tokens')"
        yield f"length_{side}", f"TRY_CAST({length} AS DOUBLE)"
        for ours, theirs in _COUNTED.items():
            counts = f"json_extract_string({_METADATA}, '$.{theirs}_{side}.*')"
            yield f"{ours}_{side}", f"list_sum(list_transform({counts}, lambda x: x::DOUBLE))"
    for ours, theirs in _CATEGORIES.items():
        yield ours, f"json_extract_string(TRY_CAST({_TAGS} AS JSON), '$.*.{theirs}')[1]"
    yield "is_code", 'lower("is_code")'


_STYLES = (*_styles(),)
_NOT_ANONYMOUS = "lower(coalesce(\"anony\", '')) NOT IN ('true', '1', '1.0')"
_NOT_SAMPLED = (
    '"dedup_tag" IS NOT NULL '
    "AND NOT regexp_matches(lower(\"dedup_tag\"), '[''\"]sampled[''\"]\\s*:\\s*true')"
)


def _excluded(**reasons: str) -> tuple[str, str]:
    """Give the column of reasons: the first of which the condition holds."""
    whens = " ".join(f"WHEN {sql} THEN '{why}'" for why, sql in reasons.items())
    return LEFT_OUT, f"CASE {whens} END"


_OUTCOMES = ("model_a", "model_b", "tie", "both_bad")


def _one_hot() -> dict[str, str]:
    won = {o: f"lower(\"winner_{o}\") IN ('1', '1.0', 'true')" for o in _OUTCOMES[:3]}
    n = " + ".join(f"coalesce({sql}, false)::INT" for sql in won.values())
    cases = " ".join(f"WHEN {sql} THEN '{outcome}'" for outcome, sql in won.items())
    return {
        "winner": f"CASE WHEN {n} = 1 THEN CASE {cases} END END",
        LEFT_OUT: f"CASE WHEN {n} <> 1 THEN 'no single winner' END",
    }


RANKED = "rankings"
"""Reason of a row of a study in which more than two answers were ranked."""
_KINDS = {"gold": "gold", "qualification": "of a qualification", "pilot": "of a pilot"}
_NOT_RATED = (
    "CASE WHEN \"repeat\" <> '0' THEN 'second showings' "
    + " ".join(f"WHEN \"kind\" = '{kind}' THEN '{why}'" for kind, why in _KINDS.items())
    + f" WHEN \"choice\" = 'skip' THEN 'skipped' WHEN \"choice\" IS NULL THEN '{RANKED}' END"
)


def _on_side(left: str, right: str) -> str:
    """Turn a column round where side A of the item stood on the right."""
    return f"CASE WHEN \"sides\" = 'ba' THEN {right} ELSE {left} END"


def _sided(name: str, of: str = '"{}"') -> Iterator[tuple[str, str]]:
    """Give what an item has of both sides as they stood on the page."""
    a, b = (of.format(f"{name}_{side}") for side in "ab")
    yield f"{name}_a", _on_side(a, b)
    yield f"{name}_b", _on_side(b, a)


def _reasons(side: str) -> str:
    """Name the reasons for a side with commas between, of lists by side."""
    return f"array_to_string({_inside('reasons', f'$.{side}[*]')}, ',')"


_VOTES = dict(zip(("leftvote", "rightvote", "tievote", "bothbad_vote"), _OUTCOMES, strict=True))
_AGENT_ARENA = ("A is better", "B is better", "Tie", "Both are bad")
_SHOWN = _inside("models", "$[0]")
_NAMES = {
    side: f"coalesce(nullif({_inside('states', f'$[{i}].model_name')}, ''), "
    f"nullif(nullif({_inside('models', f'$[{i}]')}, ''), 'Model {side.upper()}'))"
    for i, side in enumerate("ab")
}
_FIRST = "\"states\"::JSON->0->'messages'"
_OFFSET = f"coalesce({_inside('states', '$[0].offset')}::BIGINT, 0)"

_NO_CHOICE = f"NOT {_true('both_equal')} AND coalesce(\"chosen_model_name\", '') = ''"
_RATING = _inside("data", "$.rating")
_SIBLINGS = _inside("data", "$.sibling_model_ids[*]")
_SIBLINGS = f"CASE WHEN len({_SIBLINGS}) > 0 THEN {_SIBLINGS} ELSE [NULL] END"

_P = 'TRY_CAST("preference" AS DOUBLE)'
_HAS_PREFERENCE = f"coalesce({_P} = 0 OR {_P} BETWEEN 1 AND 2, false)"

_JUDGE = f'CASE WHEN "judge" LIKE \'[%\' THEN {_inside("judge", "$[0]")} ELSE "judge" END'


_IS_PERSON = f"regexp_full_match({_JUDGE}, '(author|expert)_[0-9]+')"
"""MT-bench's people and its judge are in the same column."""


def _item(a: str, b: str) -> str:
    pair = f'least("{a}", "{b}") || \'|\' || greatest("{a}", "{b}")'
    return f"\"question_id\" || '-t' || \"turn\" || '-' || {pair}"


def _both_orders(first: str, second: str) -> dict[str, str]:
    """Reconcile two winners in the sides of the case: a win needs both, as in `judge.verdict`."""
    read = f"{first} IS NOT NULL AND {second} IS NOT NULL"
    return {
        "winner": f"CASE WHEN {first} = {second} THEN {first} WHEN {read} THEN 'tie' END",
        LEFT_OUT: f"CASE WHEN NOT ({read}) THEN '{NO_VERDICT}' END",
        "order": "'both'",
    }


def _game(number: int, a: str, b: str) -> str:
    score = _inside("games", f"$[{number}].score")
    return (
        f"CASE WHEN {score} IN ('A>B', 'A>>B', 'B<A', 'B<<A') THEN '{a}' "
        f"WHEN {score} IN ('B>A', 'B>>A', 'A<B', 'A<<B') THEN '{b}' "
        f"WHEN {score} IN ('A=B', 'B=A') THEN 'tie' END"
    )


_FIRST_GAME = _game(0, "model_a", "model_b")
_GAMES = _both_orders(_FIRST_GAME, _game(1, "model_b", "model_a"))
"""The baseline stands on side A in the first game, and on side B in the second."""

_ONE_GAME = 'json_array_length("games") = 1'
_WILD = {
    ours: f"CASE WHEN {_ONE_GAME} THEN {alone} ELSE {_GAMES[ours]} END"
    for ours, alone in {
        "winner": _FIRST_GAME,
        LEFT_OUT: f"CASE WHEN {_FIRST_GAME} IS NULL THEN '{NO_VERDICT}' END",
        "order": "'ab'",
    }.items()
}

_READ_BY_PROBE = "arena probe similarity reads it"
_READ_BY_JUDGE = "arena judge run reads its pairs"

_BY_QUESTION = (*_renamed("model_b=model prompt_id=question_id battle_id=question_id"),)
_FASTCHAT = [
    _winner(name, model_a="model_1", model_b="model_2").replace(
        f'ELSE "{name}"', f"ELSE nullif(\"{name}\", 'error')"
    )
    for name in ("g1_winner", "g2_winner")
]

FORMATS = (
    Format(
        "Chatbot Arena",
        "anony conv_metadata dedup_tag",
        "model_a model_b winner",
        (
            ("winner", _winner("winner", both_bad="tie (bothbad)")),
            *_renamed("voter=judge_hash voter=judge"),
            _excluded(**{"not anonymous": _NOT_ANONYMOUS, NOT_SAMPLED: _NOT_SAMPLED}),
            _excluded(**{NOT_SAMPLED: _NOT_SAMPLED}),
            _excluded(**{"not anonymous": _NOT_ANONYMOUS}),
            *_STYLES,
        ),
        without="evaluation_session_id",
    ),
    Format(
        "LMArena 140k",
        "evaluation_session_id",
        "model_a model_b winner evaluation_session_id",
        (*_renamed("voter=evaluation_session_id battle_id=id"), *_STYLES),
    ),
    Format(
        "Kaggle 55k",
        "winner_model_a winner_model_b winner_tie",
        "model_a model_b winner_model_a winner_model_b winner_tie",
        (*_renamed("battle_id=id"), *_one_hot().items()),
    ),
    Format(
        "Kaggle 55k (test)",
        "prompt",
        "id prompt response_a response_b",
        without="model_a model_b winner winner_model_a",
        when="json_type(TRY_CAST(\"prompt\" AS JSON), '$[0]') = 'VARCHAR' AND "
        "json_type(TRY_CAST(\"response_a\" AS JSON)) = 'ARRAY' AND "
        "json_type(TRY_CAST(\"response_b\" AS JSON)) = 'ARRAY'",
        read_by=_READ_BY_JUDGE,
    ),
    Format(
        "FastChat's conversation log",
        "states",
        "type models states",
        (
            ("model_a", _NAMES["a"]),
            ("model_b", _NAMES["b"]),
            ("winner", _winner("type", **{ours: theirs for theirs, ours in _VOTES.items()})),
            ("voter", 'md5("ip")'),
            ("prompt", f"({_FIRST})->({_OFFSET})->>1"),
            (
                LEFT_OUT,
                f'CASE WHEN "type" IS NULL OR "type" NOT IN {(*_VOTES,)} '
                "THEN 'of type ' || coalesce(left(\"type\", 40), '(none)') "
                f"WHEN coalesce({_SHOWN}, '') NOT IN ('', 'Model A') THEN 'not anonymous' "
                f"WHEN coalesce({_NAMES['a']}, '') = '' OR coalesce({_NAMES['b']}, '') = '' "
                "THEN 'without a model''s name' END",
            ),
        ),
    ),
    Format(
        "LLMFAO",
        "model_x model_y",
        "left right winner worker prompt model_x model_y",
        (
            *_renamed("model_a=left model_b=right voter=worker prompt_id=prompt item_id=id"),
            ("winner", _winner("winner", model_a="left", model_b="right")),
        ),
    ),
    Format(
        "ComparIA",
        "chosen_model_name",
        "model_a_name model_b_name chosen_model_name both_equal",
        (
            *_renamed("model_a=model_a_name model_b=model_b_name battle_id=conversation_pair_id"),
            (
                "winner",
                f"CASE WHEN {_true('both_equal')} THEN 'tie' "
                f"ELSE {_named_winner('chosen_model_name', 'model_a_name', 'model_b_name')} END",
            ),
            ("voter", 'coalesce(nullif("visitor_id", \'\'), "session_hash")'),
            ("voter", '"visitor_id"'),
            _excluded(archived=_true("archived"), **{"no choice": _NO_CHOICE}),
            _excluded(**{"no choice": _NO_CHOICE}),
        ),
    ),
    Format(
        "crowd-kit comparisons",
        "label",
        "worker left right label",
        (
            *_renamed("model_a=left model_b=right voter=worker"),
            ("winner", _named_winner("label", "left", "right")),
        ),
    ),
    Format(
        "winners and losers",
        "loser",
        "winner loser",
        (*_renamed("model_a=winner model_b=loser"),),
        without="model_a model_b",
    ),
    Format(
        "Open WebUI feedback",
        "data",
        "user_id type data meta created_at",
        (
            ("model_a", _inside("data", "$.model_id")),
            ("model_b", f"coalesce(\"{EACH}\", '')"),
            (
                "winner",
                f"CASE TRY_CAST({_RATING} AS DOUBLE) WHEN 1 THEN 'model_a' "
                f"WHEN -1 THEN 'model_b' ELSE {_RATING} END",
            ),
            ("voter", '"user_id"'),
            ("ts", 'TRY_CAST("created_at" AS DOUBLE)'),
            _excluded(
                **{
                    "without a rating": f"{_RATING} IS NULL",
                    "without other models": f'"{EACH}" IS NULL',
                }
            ),
        ),
        each=_SIBLINGS,
    ),
    Format(
        "Agent Arena",
        "leftSubcomponent rightSubcomponent",
        "leftSubcomponent rightSubcomponent rating",
        (
            *_renamed("model_a=leftSubcomponent model_b=rightSubcomponent"),
            *_renamed("ts=createdAt battle_id=_id"),
            ("winner", _winner("rating", **dict(zip(_OUTCOMES, _AGENT_ARENA, strict=True)))),
        ),
    ),
    Format(
        "AlpacaEval annotations",
        "generator_1 generator_2",
        "instruction generator_1 generator_2 preference",
        (
            *_renamed("model_a=generator_1 model_b=generator_2 prompt_id=instruction"),
            *_renamed("judge=annotator response_a=output_1 response_b=output_2"),
            (
                "winner",
                f"CASE WHEN {_HAS_PREFERENCE} THEN CASE WHEN {_P} IN (0, 1.5) THEN 'tie' "
                f"WHEN {_P} < 1.5 THEN 'model_a' ELSE 'model_b' END END",
            ),
            (
                "preference",
                f"CASE WHEN {_HAS_PREFERENCE} THEN 2 - CASE WHEN {_P} = 0 THEN 1.5 ELSE {_P} END "
                "END",
            ),
            _excluded(**{"no preference": f"NOT {_HAS_PREFERENCE}"}),
        ),
    ),
    Format(
        "MT-bench judgements",
        "turn",
        "question_id turn model_a model_b winner judge",
        (
            ("winner", _winner("winner", tie="tie (inconsistent)")),
            ("voter", f"CASE WHEN {_IS_PERSON} THEN {_JUDGE} END"),
            ("judge", f"CASE WHEN NOT {_IS_PERSON} THEN {_JUDGE} END"),
            ("item_id", _item("model_a", "model_b")),
            *_renamed("prompt_id=question_id"),
        ),
        without="tstamp language",
    ),
    Format(
        "MT-bench judgements of FastChat",
        "g1_winner g2_winner",
        "question_id turn model_1 model_2 g1_winner g2_winner",
        (
            *_renamed("model_a=model_1 model_b=model_2 prompt_id=question_id"),
            *_both_orders(*_FASTCHAT).items(),
            ("judge", _JUDGE),
            ("item_id", _item("model_1", "model_2")),
            ("battle_id", _item("model_1", "model_2")),
        ),
    ),
    Format(
        "WildBench rewards",
        "model_A model_B",
        "session_id model_A model_B winner extent",
        (
            *_renamed("model_a=model_A model_b=model_B prompt_id=session_id"),
            ("winner", _named_winner("winner", "model_A", "model_B")),
        ),
    ),
    Format(
        "Arena-Hard v2",
        "games",
        "uid model baseline games",
        (*_renamed("model_a=baseline model_b=model prompt_id=uid battle_id=uid"), *_GAMES.items()),
    ),
    Format(
        "WildVision against claude-3-sonnet-20240229",
        "games",
        "question_id model games",
        (("model_a", "'claude-3-sonnet-20240229'"), *_BY_QUESTION, *_WILD.items()),
        when=f"{_ONE_GAME} OR json_type(\"games\", '$[0].user_prompt') = 'ARRAY'",
    ),
    Format(
        "Arena-Hard v0.1 against gpt-4-0314",
        "games",
        "question_id model games",
        (("model_a", "'gpt-4-0314'"), *_BY_QUESTION, *_GAMES.items()),
    ),
    Format(
        "ratings of arena study export",
        "sides rater",
        "item kind rater model_a model_b sides choice repeat",
        (
            *_renamed("item_id=item voter=rater"),
            *_sided("model"),
            ("reasons_a", _on_side(_reasons("a"), _reasons("b"))),
            ("reasons_b", _on_side(_reasons("b"), _reasons("a"))),
            (
                "winner",
                _on_side('"choice"', _winner("choice", model_a="model_b", model_b="model_a")),
            ),
            (LEFT_OUT, _NOT_RATED),
            *_sided("base_model"),
            *_sided("scaffold"),
            *_sided("cost", 'TRY_CAST("{}" AS DOUBLE)'),
            *_sided("seconds", 'TRY_CAST("{}" AS DOUBLE)'),
        ),
    ),
    Format(
        "AlpacaEval outputs",
        "generator",
        "instruction output generator",
        read_by="arena judge run takes two files of answers",
    ),
    Format(
        "WildBench scores",
        "model_test",
        "session_id model_test score",
        read_by="arena judge score --method wildbench reads it",
    ),
    Format(
        "MT-bench scores of single answers",
        "user_prompt judgment",
        "question_id model judge score turn",
        read_by="arena judge score reads it",
    ),
    Format("LLMBar", "output_1 output_2", "input output_1 output_2 label", read_by=_READ_BY_JUDGE),
    Format("TRL preferences", "chosen rejected", "chosen rejected", read_by=_READ_BY_JUDGE),
    Format(
        "SICK",
        "sentence_A sentence_B",
        "sentence_A sentence_B relatedness_score",
        read_by=_READ_BY_PROBE,
    ),
    Format("CLINC", "oos_val oos_test", "train val test oos_val oos_test", read_by=_READ_BY_PROBE),
    Format("CLINC", "intent", "text intent", read_by=_READ_BY_PROBE),
)


def recognised(
    columns: Sequence[str], holds: Callable[[str], bool] = lambda sql: False
) -> Format | None:
    """Name the format of a table with these columns; None where it is of none.

    Parameters
    ----------
    holds : callable
        Whether some SQL holds in the first row.
    """
    fits = (one for one in FORMATS if one.touches(columns) and not one.missing(columns))
    return next((one for one in fits if not one.when or holds(one.when)), None)


def as_votes(
    rows: "duckdb.DuckDBPyRelation", where: str | None = None
) -> tuple["duckdb.DuckDBPyRelation", Format | None]:
    """Give rows of a known format with our columns beside theirs, and the format.

    Rows of no known format, or of one that holds no votes (`Format.read_by`), stay as they are.

    Parameters
    ----------
    where : str or None
        Condition by which the rows were chosen: a column of `CHOOSABLE` in it excludes no row.
    """
    there = rows.columns
    likely = [one for one in FORMATS if one.touches(there) and not one.missing(there)]
    if not likely:
        return rows, None
    made = [sql for one in likely for sql in (one.each, *(sql for _, sql in one.columns))]
    read = {name for sql in made for name in _columns_in(sql)}
    types = dict(zip(there, map(str, rows.types), strict=True))
    texts = rows.project(", ".join(_as_text(name, types[name], name in read) for name in there))
    first = texts.limit(1)
    known = recognised(there, lambda sql: bool(first.filter(sql).limit(1).fetchall()))
    if known is None or not known.columns:
        return rows, known
    chosen_by = {name for name in CHOOSABLE if re.search(rf"\b{name}\b", where or "")}
    ours = known.chosen([name for name in there if name not in chosen_by])
    if known.each:
        texts = texts.project(f'*, unnest({known.each}) AS "{EACH}"')
    taken = {name.lower() for name in ours}
    theirs = [quoted(name) for name in there if name.lower() not in taken]
    made = [f'{sql} AS "{name}"' for name, sql in ours.items()]
    return texts.project(", ".join([*theirs, *made])), known


def _as_text(name: str, kind: str, read: bool) -> str:
    column = quoted(name)
    if not read or kind == "VARCHAR":
        return column
    nested = kind.startswith(NESTED) or kind.endswith("]")
    return f"CAST({f'to_json({column})' if nested else column} AS VARCHAR) AS {column}"


def no_votes(path: str, known: Format | None) -> DataError | None:
    """Name what reads a file of a format without votes."""
    if known is None or not known.read_by:
        return None
    return DataError(f"{path!r} is in the format {known.name}, no votes: {known.read_by}.")


def explained(path: str, columns: Sequence[str], error: DataError) -> DataError:
    """Say of a file that holds no votes what it is, or what it lacks to be of a known format."""
    if why := no_votes(path, recognised(columns)):
        return why
    near = nearly_in(columns)
    return DataError(f"{path!r}:{near} Or name our own columns with --column.") if near else error


def nearly_in(columns: Sequence[str]) -> str:
    """Name the columns that a table lacks to be of a format of which it has half."""
    shares = {
        one: 1 - len(one.missing(columns)) / len(one.required.split())
        for one in FORMATS
        if one.touches(columns) and not one.when
    }
    near = max(shares, key=shares.__getitem__, default=None)
    if near is None or not 0.5 <= shares[near] < 1:
        return ""
    missing = quoted_names(near.missing(columns))
    return f" It is nearly in the format {near.name}, but has no column {missing}."


_notice: ContextVar[Callable[[str], None] | None] = ContextVar("notice", default=None)


@contextmanager
def noticing(notice: Callable[[str], None]) -> Iterator[None]:
    """Call with a sentence for each file of a peer's format that is read meanwhile."""
    token = _notice.set(cache(notice))  # a file that is read twice is announced once
    try:
        yield
    finally:
        _notice.reset(token)


def announce(
    path: str, name: str, left_out: Mapping[str, int] | None = None, n_files: int = 1
) -> None:
    """Report the recognised format of a file, and its excluded rows by reason, to the caller."""
    reasons = ", ".join(f"{n:,} {why}" for why, n in sorted((left_out or {}).items()))
    many = f" ({n_files:,} files)" if n_files > 1 else ""
    mention(f"{path}{many} is read as {name}; rows excluded: {reasons or 'none'}")


def mention(words: str) -> None:
    """Report something about a file to the caller."""
    if notice := _notice.get():
        notice(words)


def left_out(rows: "duckdb.DuckDBPyRelation") -> dict[str, int]:
    """Count the rows that are excluded, by their reasons."""
    if LEFT_OUT not in rows.columns:
        return {}
    reasons = rows.filter(f"{LEFT_OUT} IS NOT NULL").aggregate(f"{LEFT_OUT}, count(*)")
    return dict(reasons.fetchall())
