"""Prompts of files: labels, groups, contamination tests, and a language model as tagger.

`label_file` and `group_file` write a file again with columns for labels and groups of prompts;
`before_and_after`, `rated_apart` and `down_sampled` rate votes apart by prompts. `memory` tests
whether a model prefers the published order of a benchmark's items, and so has seen it. `Tagging`
is the method by which a language model labels prompts.
"""

import json
import math
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime, time
from functools import cache
from importlib.resources import files
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from judge.case import Case, FailureClass, Message, Parameters, Reply, Request
from judge.grammar import Reading as ReplyReading
from judge.grammar import Tags
from judge.labels.accuracy import labelled_prompts
from judge.labels.material import Asked, Duplicates, changed, compared, corrected, duplicates
from judge.labels.taggers import (
    CATEGORIES,
    CRITERIA,
    FACETS,
    INTENTS,
    OTHER,
    UNKNOWN,
    WORDS,
    Label,
    counted,
    hard,
    shown_part,
    tag,
)
from judge.protocol import Description, Method, Template, conversation
from judge.protocol import read_text as read_reply_text
from judge.tables.annotations import turns_of
from rating import Report
from rating.errors import DataError, NotIdentifiedError
from rating.goodness import weighed
from rating.leave_out import quantile
from rating.mix import Mix
from rating.options import RateOptions
from rating.tables.coding import LoggedVotes, Relation
from rating.tables.columns import Columns, Reading, quoted_names, require
from rating.tables.counts import Groups, rate_source, read_mix, read_rows
from rating.tables.duckdb_engine import require_target, write_beside
from rating.tables.files import Files, json_or_text, quoted, read_text
from rating.tables.sources import opened, parse_moments
from rating.typing import Bools, Floats

# Prompts of files


PROMPTS = (
    "prompt", "instruction", "question", "text", "turns", "conversation",
    "conversation_a",
)  # fmt: skip
"""Columns of prompts, the first that is there."""

TEXT = ".txt"

SIDES_OF_A_BENCHMARK = ("overlap with the benchmark", "do not overlap")
SIDES_OF_A_CUTOFF = ("were there before the cutoff", "were not there before the cutoff")
FREQUENT = 0.999
"""Share of prompts than which one is asked more often that counts less."""
OTHERS = "others"
OVERLAP = "overlap"
"""Column by which votes are parted."""

_GROUP = "prompt_group"
"""Column of the group of prompts that are alike."""

STEP = 2_000
"""Prompts that a process labels at a time."""
MANY = 20_000
"""Prompts from which several processes are worth their start."""

Progress = Callable[[int, int], None]
Rows = Callable[[Sequence[Sequence[str]]], Iterable[tuple[str | None, ...]]]


@contextmanager
def _opened_prompts(
    source: Files, column: str | None
) -> Iterator[tuple[Relation, list[list[str]]]]:
    """Open a table, and give the prompts of each row: one, or those of a conversation.

    Raises
    ------
    DataError
        If it cannot be read, has no column of prompts, or a row has none.
    """
    with opened(source, list, holds="prompts", as_peers=False) as rows:
        there = rows.columns
        name = require(column, there) if column else next((n for n in PROMPTS if n in there), None)
        if name is None:
            raise DataError(
                f"There is no column of prompts in {str(source)!r}, but {quoted_names(there)}: "
                "name it with --column."
            )
        cells = rows.project(quoted(name)).fetchnumpy()[name].tolist()
        yield rows, [_prompts(cell, row, source) for row, cell in enumerate(cells, 1)]


def label_file(
    source: Files,
    column: str | None,
    to: Path | None,
    progress: Progress = lambda done, of: None,
    by: Rows | None = None,
    facets: Sequence[str] = FACETS,
) -> Counter[tuple[str, str]]:
    """Label the prompts of a file, and count the labels by facet and value.

    Parameters
    ----------
    to : Path or None
        Where to write every row again, in its order, with a column of each facet.
    by : callable, optional
        Gives the values of the facets for the prompts of each row, None where it has none; the
        rules if not given.

    Raises
    ------
    DataError
        If the file cannot be read, has a column of such a name, or cannot be written.
    """
    if to:
        require_target(to, source)
    with _opened_prompts(source, column) as (table, prompts):
        labels = {facet: np.empty(len(prompts), dtype=object) for facet in facets}
        rows: Iterable[tuple[str | None, ...]] = by(prompts) if by else tagged(prompts, progress)
        for row, values in enumerate(rows):
            for facet, value in zip(facets, values, strict=True):
                labels[facet][row] = value
        if to:
            write_beside(table, labels, to)
    return Counter(
        (facet, value)
        for facet, values in labels.items()
        for value in values.tolist()
        if value is not None
    )


def tagged(
    prompts: Sequence[Sequence[str]], progress: Progress = lambda done, of: None
) -> Iterator[tuple[str, ...]]:
    """Give the values of `FACETS` for the prompts of each row.

    The same prompts are labelled once; many, on every processor.
    """
    place: dict[tuple[str, ...], int] = {}
    rows = [place.setdefault(tuple(texts), len(place)) for texts in prompts]
    values: list[tuple[str, ...]] = []
    for part in _tagged_parts(list(place)):
        values += part
        progress(len(values), len(place))
    return (values[row] for row in rows)


def _tagged_parts(prompts: Sequence[Sequence[str]]) -> Iterator[list[tuple[str, ...]]]:
    parts = [prompts[start : start + STEP] for start in range(0, len(prompts), STEP)]
    if len(prompts) < MANY:
        yield from map(_values_of, parts)
        return
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        yield from pool.map(_values_of, parts)


def _values_of(prompts: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    return [tuple(labels[facet].value for facet in FACETS) for labels in map(tag, prompts)]


def _prompts(cell: object, row: int, source: Files) -> list[str]:
    texts = _texts(cell) or ([cell] if isinstance(cell, str) else None)
    if texts is None:
        raise DataError(f"Row {row} of {str(source)!r} has no prompt: leave it out with --where.")
    return texts


def _texts(cell: object) -> list[str] | None:
    """Give what the user said in a cell, turn by turn; None of anything else."""
    try:
        turns = turns_of(cell, lists=True, images=False) if cell is not None else []
    except DataError:
        return None
    return [turn.content for turn in turns if turn.role == "user"] or None


def mix_of(source: str, by: str) -> Mix:
    """Count one's own prompts by a column; without it by what the taggers say of them.

    Parameters
    ----------
    source : str
        A file of text, see `prompts_in`, or one that `rating.read_votes` reads.

    Raises
    ------
    DataError
        If the file cannot be read, or has neither the column nor prompts to label.
    """
    if Path(source).suffix.lower() == TEXT:
        prompts = prompts_in(read_text(Path(source)))
    else:
        with opened(source, list, holds="prompts", as_peers=False) as rows:
            there = rows.columns
        if by not in FACETS or by in there or not {*PROMPTS} & {*there}:
            return read_mix(source, by)
        prompts = prompts_of(Files.of(source) or Files((source,)), None)
    return mix_of_prompts(prompts, by)


def mix_of_prompts(prompts: Iterable[Sequence[str]], by: str) -> Mix:
    """Label prompts, and count them by one of `FACETS`; raises `DataError` for another name."""
    if by not in FACETS:
        msg = f"Prompts as text have no {by!r}: they are labelled by {', '.join(FACETS)}."
        raise DataError(msg)
    return Mix.of_counts(Counter(tag(texts)[by].value for texts in prompts))


def prompts_in(text: str) -> list[list[str]]:
    """Give the prompts of a text: one a line, or a line of JSON each; empty lines are none.

    A line of JSON is a text, a list of texts or messages, or an object with one of `PROMPTS`.

    Examples
    --------
    >>> prompts_in('Why?' + chr(10) + chr(10) + '{"prompt": "Write a poem"}')
    [['Why?'], ['Write a poem']]
    """
    return [
        _of_line(line.strip(), row)
        for row, line in enumerate(text.splitlines(), 1)
        if line.strip()
    ]


def _of_line(line: str, row: int) -> list[str]:
    value = json_or_text(line) if line[0] in '{["' else line
    if isinstance(value, dict):
        name = next((name for name in PROMPTS if name in value), None)
        value = value[name] if name else None
    texts = _texts(value)
    if texts is None:
        msg = f"Line {row} has no prompt, but {line[:40]!r}: write it as text, or with 'prompt'."
        raise DataError(msg)
    return texts


def group_file(source: Files, column: str | None, to: Path, progress: Progress) -> None:
    """Write every row of a file again, in its order, with the group of its prompt.

    The column `_GROUP` names prompts that are alike by one name: `arena rate` clusters by it with
    ``--column prompt=prompt_group``.

    Raises
    ------
    DataError
        If the file cannot be read, has a column of this name, or cannot be written.
    """
    require_target(to, source)
    with _opened_prompts(source, column) as (table, prompts):
        groups = duplicates(["\n\n".join(texts) for texts in prompts], progress).group
        write_beside(table, {_GROUP: np.array([f"g{one}" for one in groups], dtype=object)}, to)


def prompts_of(source: Files, column: str | None) -> list[list[str]]:
    """Give the prompts of each row of a file; raises as `_opened_prompts`."""
    with _opened_prompts(source, column) as (_, prompts):
        return prompts


def timed_prompts(
    source: Files, column: str | None, time: str | None
) -> tuple[list[str], Floats | None]:
    """Give the prompts of a file, and when each was written, in seconds; None without a time.

    Raises
    ------
    DataError
        As `_opened_prompts`, or if a moment cannot be read.
    """
    texts, values = _with_column(source, column, "time", time)
    if values is None:
        return texts, None
    if values.dtype.kind == "M":
        return texts, values.astype("datetime64[us]").astype(np.float64) / 1e6
    return texts, np.asarray(parse_moments([str(value) for value in values.tolist()]))


def asked_by(source: Files, column: str | None, voter: str | None) -> list[Asked]:
    """Give the prompts of a file with who wrote each; nobody can without a column of voters.

    Raises
    ------
    DataError
        As `_opened_prompts`, or if there is no such column.
    """
    texts, people = _with_column(source, column, "voter", voter)
    if people is None:
        msg = f"There is no column of voters in {str(source)!r}: name it with --column voter=NAME."
        raise DataError(msg)
    rows = zip(people.tolist(), texts, strict=True)
    return [Asked(row, str(person), text) for row, (person, text) in enumerate(rows, 1)]


def _with_column(
    source: Files, column: str | None, role: str, named: str | None
) -> tuple[list[str], NDArray[Any] | None]:
    """Give the prompts of a file, and a column of it if it has such a one."""
    with _opened_prompts(source, column) as (rows, prompts):
        there = rows.columns
        name = require(named, there) if named else Columns().find(role, there)
        texts = ["\n\n".join(part) for part in prompts]
        if name is None:
            return texts, None
        values: NDArray[Any] = rows.project(quoted(name)).fetchnumpy()[name]
    return texts, values


def before_and_after(
    source: Files | LoggedVotes,
    first_written: Floats,
    cutoffs: Mapping[str, date],
    level: float,
    progress: Progress = lambda done, of: None,
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Rate votes on prompts that were there before each model's cutoff against later ones.

    Parameters
    ----------
    first_written : ndarray, shape (n_rows,)
        When a prompt like that of each vote was first written, in seconds; infinity if not known:
        such votes count as later ones.
    cutoffs : mapping of str to date
        By model; the day itself is before.

    Returns
    -------
    changes : list of dict
        As `judge.labels.material.changed` has them.
    not_rated : dict
        Why there is none, by model.
    """
    changes, not_rated = [], {}
    for done, (model, cutoff) in enumerate(cutoffs.items()):
        progress(done, len(cutoffs))
        end = datetime.combine(cutoff, time.max, UTC).timestamp()
        try:
            boards = _boards_apart(source, first_written <= end, level, SIDES_OF_A_CUTOFF)
            both = compared(*boards, level, only=model)
        except (NotIdentifiedError, DataError) as error:
            not_rated[model] = str(error)
            continue
        if not both["models"]:
            not_rated[model] = "It has no votes."
            continue
        n_models = len(boards[0].to_dict()["ratings"])
        changes.append(changed(model, cutoff, both, n_models))
    return corrected(changes), not_rated


def rated_apart(source: Files | LoggedVotes, overlaps: Bools, level: float) -> dict[str, Any]:
    """Rate votes on prompts that overlap with a benchmark, and the others, and compare.

    Parameters
    ----------
    overlaps : ndarray of bool, shape (n_rows,)

    Raises
    ------
    NotIdentifiedError
        If votes of one of the two kinds identify no rating.
    """
    return compared(*_boards_apart(source, overlaps, level, SIDES_OF_A_BENCHMARK), level)


@contextmanager
def _marked(source: Files | LoggedVotes, marks: NDArray[Any]) -> Iterator[Path | LoggedVotes]:
    """Give votes with a column `OVERLAP` beside them."""
    if isinstance(source, LoggedVotes):
        yield replace(source, labels={OVERLAP: marks.tolist()})
        return
    with tempfile.TemporaryDirectory() as folder, opened(source, list, as_peers=False) as rows:
        file = Path(folder) / "votes.parquet"
        write_beside(rows, {OVERLAP: marks}, file)
        try:
            yield file
        except DataError as error:
            error.args = (str(error).replace(str(file), " ".join(map(str, source.paths))),)
            raise


def down_sampled(
    source: Files | LoggedVotes, groups: Duplicates, level: float = 0.95
) -> dict[str, Any]:
    """Rate votes with prompts that are asked most counted less, beside the board as it is.

    A prompt that is asked more often than 99.9% of prompts counts as one that is asked as often
    as those at most: each of its votes weighs that number over its own, which is what drawing so
    many of them gives on average.

    Parameters
    ----------
    groups : Duplicates
        Of the prompts of the votes, in their order.

    Returns
    -------
    dict
        ``most``, votes that a prompt counts for at most; ``prompts`` with more, and the ``votes``
        on them; ``board``, that of `rating.goodness.weighed`.

    Raises
    ------
    NotIdentifiedError
        If the votes identify no rating.
    """
    sizes = np.bincount(groups.group)
    most = int(np.quantile(sizes, FREQUENT, method="higher"))
    frequent = sizes > most
    marks = np.where(frequent[groups.group], groups.group.astype(str), OTHERS).astype(object)
    with _marked(source, marks) as votes:
        rows = read_rows(votes, Reading(Columns(by=OVERLAP), both_bad="tie"))
    share = {str(group): most / sizes[group] for group in np.flatnonzero(frequent).tolist()}
    weights = np.array([share.get(name, 1.0) for name in rows.names["by"]])
    board = weighed(rows, "frequent prompts less", weights[rows.groups["by"]], level=level)
    return {
        "most": most,
        "prompts": int(frequent.sum()),
        "votes": int(sizes[frequent].sum()),
        "board": asdict(board),
    }


def _boards_apart(
    source: Files | LoggedVotes, marked: Bools, level: float, sides: tuple[str, str]
) -> tuple[Report, Report]:
    """Rate the votes that are marked, and the others."""
    with _marked(source, np.where(marked, "yes", "no").astype(object)) as votes:
        groups = rate_source(votes, RateOptions(by=OVERLAP, level=level))
    assert isinstance(groups, Groups)
    for kind, words in zip(("yes", "no"), sides, strict=True):
        if kind not in groups.reports:
            why = groups.not_rated.get(kind, "There are none.")
            msg = f"The votes on prompts that {words} identify no rating. {why}"
            raise NotIdentifiedError(msg)
    return groups.reports["yes"], groups.reports["no"]


# Contamination by the order of items


BETWEEN = "\n\n"
"""What stands between items."""
FEWEST_SHARDS = 2

Orders = Sequence[Sequence[str]]
"""Texts of each shard: its items in their own order first, then in others."""

LogLikelihoods = Callable[[Sequence[str]], Mapping[str, float]]
"""Gives the log-likelihood (nats) of each text under a model."""


def orders(items: Sequence[str], shards: int, permutations: int, seed: int) -> Orders:
    """Cut a benchmark into shards of items that follow one another, and draw other orders.

    Raises
    ------
    DataError
        If a shard would have under three items: two have one other order alone.
    """
    if shards < FEWEST_SHARDS or len(items) < 3 * shards:
        raise DataError(
            f"{len(items)} items are too few for {shards} shards of three items and more: "
            f"take between 2 and {len(items) // 3}."
        )
    rng = np.random.default_rng(seed)
    return [
        [
            BETWEEN.join(items[i] for i in order)
            for order in (part, *(rng.permutation(part) for _ in range(permutations)))
        ]
        for part in np.array_split(np.arange(len(items)), shards)
    ]


def memory(asked: Orders, log_likelihoods: LogLikelihoods, level: float = 0.95) -> dict[str, Any]:
    """Test whether a model knows the order of a benchmark, and so has seen the benchmark.

    Of items whose order says nothing, every order is as likely to a model that has not seen
    them together. Each shard's own order is compared with random ones [1]_, with one more in
    numerator and denominator, so that the test is exact: ``p = (1 + #{l(pi) >= l(id)}) / (B + 1)``
    for the sums over shards. The t-test over shards reaches smaller values, and is approximate.

    Returns
    -------
    dict
        Numbers of ``shards`` and ``permutations``. ``p``: share of orders, the own among them,
        that are as likely over all shards together: exact, and at least 1 / (permutations + 1).
        ``p_shards``, one-sided, of the t-test that shards gain nothing by their order: rough, as
        gains are skewed, and with ten shards far too large where another order was learnt.
        ``gain``, the nats that a shard gains by its own order over others, with Student's interval
        over shards in ``lower`` and ``upper``.

    References
    ----------
    .. [1] Y. Oren et al., "Proving test set contamination in black box language models",
       arXiv 2310.17623, 2023, sections 3 and 4. There each shard is permuted again for its own
       mean, as here; the exact p of the sums over shards is ours.
    """
    known = log_likelihoods([text for shard in asked for text in shard])
    likely = np.array([[known[text] for text in shard] for shard in asked])
    if not np.isfinite(likely).all():
        raise DataError("A log-likelihood is not finite: this model cannot be tested.")
    own, others = likely[:, 0], likely[:, 1:]
    # Orders of the same likelihood count against the model; sums differ by rounding alone.
    close = 1e-9 * np.abs(own).sum()
    as_likely = int((others.sum(axis=0) >= own.sum() - close).sum())
    gains = own - others.mean(axis=1)
    mean = float(gains.mean())
    reach = quantile(level, len(gains) - 1) * float(gains.std(ddof=1)) / len(gains) ** 0.5
    return {
        "shards": len(own),
        "permutations": others.shape[1],
        "p": (1 + as_likely) / (others.shape[1] + 1),
        "p_shards": _one_sided(gains),
        **{"gain": mean, "lower": mean - reach, "upper": mean + reach},
    }


def _one_sided(gains: Floats) -> float:
    """Give the p-value of a mean above zero; 1 where nothing varies and nothing is gained."""
    if np.ptp(gains) <= 1e-9 * np.abs(gains).max():
        return 0.0 if gains[0] > 0 else 1.0
    return float(scipy.stats.ttest_1samp(gains, 0.0, alternative="greater").pvalue)


class NGrams:
    """A toy that learns texts word by word, to plant what the test is to find.

    Trigrams, bigrams, words and a uniform distribution, each with a quarter of the weight.
    """

    def __init__(self, documents: Iterable[str]) -> None:
        self._grams: Counter[tuple[str, ...]] = Counter()
        self._contexts: Counter[tuple[str, ...]] = Counter()
        for document in documents:
            words = _words(document)
            for i in range(2, len(words)):
                for n in range(3):
                    self._grams[tuple(words[i - n : i + 1])] += 1
                    self._contexts[tuple(words[i - n : i])] += 1
        self._n_words = 1 + sum(len(gram) == 1 for gram in self._grams)

    def log_likelihood(self, text: str) -> float:
        """Give the log-likelihood of a text, in nats."""
        words = _words(text)
        return sum(math.log(self._probability(words, i)) for i in range(2, len(words)))

    def _probability(self, words: Sequence[str], i: int) -> float:
        shares = [1 / self._n_words]
        for n in range(3):
            times = self._contexts[tuple(words[i - n : i])]
            shares.append(self._grams[tuple(words[i - n : i + 1])] / times if times else 0.0)
        return sum(shares) / 4


def _words(text: str) -> list[str]:
    return ["", "", *text.replace(BETWEEN, f" {BETWEEN} ").split(" ")]


def planted(seed: int, shards: int, permutations: int) -> dict[str, dict[str, Any]]:
    """Test a toy that learnt our labelled prompts in an order, and one that learnt each alone."""
    prompts = labelled_prompts()
    items = [prompts[i] for i in np.random.default_rng(seed).permutation(len(prompts))]
    asked = orders(items, shards, permutations, seed)
    toys = {"knows the order": NGrams([BETWEEN.join(items)]), "knows the items": NGrams(items)}
    return {
        name: memory(asked, lambda texts, toy=toy: {t: toy.log_likelihood(t) for t in texts})  # type: ignore[misc]
        for name, toy in toys.items()
    }


# A language model as tagger


TAGGED_FACETS = ("category", "language", "intent", "turns", "chars", "hard")
"""What is labelled: by the model, except the numbers of turns and of characters."""

LANGUAGES = WORDS["languages"]
"""Codes of ISO 639-1."""

_OFFERED: dict[str, frozenset[str]] = {
    "category": frozenset((*CATEGORIES, OTHER)),
    "language": LANGUAGES | {UNKNOWN},
    "intent": frozenset(INTENTS),
}
_CRITERIA = "criteria"
_OBJECT = re.compile(r"\{[^{}]*\}")


@dataclass(frozen=True, slots=True)
class Tagging(Method):
    """Asks what a prompt asks for; there is no response."""

    @property
    def description(self) -> Description:
        """What it is; the words lie beside this module."""
        return _described()

    def ask(self, case: Case, nonce: str) -> Request:
        """Return the question about a prompt."""
        return self.description.request(nonce, {"prompt": conversation(case)})

    def read(self, case: Case, reply: Reply) -> ReplyReading | FailureClass:
        """Return the tags, or why there are none."""
        return read_reply_text(reply, tags_in)


@cache
def _described() -> Description:
    system, user = (files("judge.labels") / "tagging.txt").read_text("utf-8").split("\n=====\n")
    return Description(
        name="tagging",
        template=Template.of(system, user),
        parameters=Parameters(max_tokens=1024, temperature=0.0, json_object=True),
        tokens_out=60,
        source="Criteria: Li et al. 2024 (arXiv:2406.11939), section 4.1; our words",
    )


def case_of(prompts: Sequence[str]) -> Case:
    """Return the prompts of a conversation, oldest first, as what is asked about.

    As with rules, of a long text the middle is omitted: a request has a highest price.
    """
    return Case((Message("user", shown_part("\n\n".join(prompts))),), "")


def version_of(revision: str) -> str:
    """Name the version of the labels of a model: what answers, what it was asked, how it is read.

    Parameters
    ----------
    revision : str
        Of the model.

    Examples
    --------
    >>> version_of("2b7e1516") == f"2b7e1516-{Tagging().description.template.hash}-2"
    True
    """
    description = Tagging().description
    return f"{revision}-{description.template.hash}-{description.parser}"


def tags_in(text: str) -> Tags | None:
    """Read the last JSON object of a text, if every value in it was offered.

    None for a missing or further key, a key that comes twice, and a value that was not offered:
    nothing replaces it.

    Examples
    --------
    >>> reply = '{"category": "code", "language": "en", "intent": "asking", "criteria": []}'
    >>> tags_in(reply).category
    'code'
    >>> tags_in(reply.replace("code", "weather")) is None
    True
    """
    objects = _OBJECT.findall(text)
    try:
        values = json.loads(objects[-1] if objects else "", object_pairs_hook=_once)
    except (ValueError, RecursionError):
        return None
    if values.keys() != {*_OFFERED, _CRITERIA} or not _were_offered(values):
        return None
    met = values.pop(_CRITERIA)
    return Tags(**values, criteria=tuple(name for name in CRITERIA if name in met))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("a key comes twice")
    return dict(pairs)


def _were_offered(values: dict[str, Any]) -> bool:
    met = values[_CRITERIA]
    texts = [values[name] for name in _OFFERED]
    if not isinstance(met, list) or not all(isinstance(one, str) for one in (*texts, *met)):
        return False
    named = len({*met}) == len(met) and {*met} <= {*CRITERIA}
    return named and all(values[name] in offered for name, offered in _OFFERED.items())


def labels_of(tags: Tags, prompts: Sequence[str]) -> dict[str, Label]:
    """Give a label for each of `FACETS` to the prompts of a conversation."""
    return {
        "category": Label(tags.category),
        "language": Label(tags.language),
        "intent": Label(tags.intent),
        **counted(prompts),
        "hard": hard(tags.criteria),
    }
