"""Study data: votes of people and verdicts of judges, aligned on the same items.

`read_study` reads both; `study_data` turns aligned rows to the sides of their items. `shared_by`
keeps what agreement with one judge is computed from, and `parted` stratifies by a column.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

import numpy as np
from numpy.typing import NDArray

from judge.case import Order
from judge.studies.alignment import LIST_TERM, REFUSAL, Aligned, align, merged
from judge.studies.estimates import by_rater
from judge.studies.rows import COST, ITEM, LATENCY, Items, Labels, Rows, Source, read_rows
from rating.counting import spelling
from rating.errors import DataError
from rating.outcome import of_sides
from rating.sentences import plural
from rating.tables.coding import Coded
from rating.tables.columns import UNLABELLED
from rating.tables.vote_filter import BOTH, beside_both, blank
from rating.typing import Bools, Floats, Ints

ORDERS = {Order.AB: 1, Order.BA: -1, BOTH: 0}
"""Which side of a row's the judge saw first; of both orders, neither."""

NO_ORDER = (
    'The file has one verdict per item and no column "order": the effect of the order of answers '
    "on the judge is unknown."
)
_AGAIN = (
    "Repeated by the same voter on the same item: {votes}. Only votes of different voters are "
    "compared with each other. If votes have several criteria, study each separately (--where)."
)
_TWINS = (
    "Judges whose names differ only in case, spaces or characters that look alike are counted "
    "separately:"
)
FEATURES = ("length", "format", REFUSAL, LIST_TERM)
PAIR = "pair"
"""Groups items by their two models, where no column has this name."""


@dataclass(frozen=True, slots=True, eq=False)
class JudgeVerdicts:
    """The verdicts of one judge.

    Attributes
    ----------
    name : str
    verdicts : Labels
        One row a verdict: over both orders, where the source reconciles them; of a case that
        was asked in one order, that one.
    in_orders : Labels
        One row for each order that was asked; the verdicts themselves where orders are not kept
        apart.
    n_unread : int
        Verdicts that were not read: in no row.
    methods : mapping of str to tuple of str
        How it was asked, sorted, and the hashes of the templates; empty where the source does not
        say.
    cost, seconds : float or None
        Dollars and seconds an item, over the items of which each is known, whether they were read
        or not; None where no row says.
    """

    name: str
    verdicts: Labels
    in_orders: Labels
    n_unread: int
    methods: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    cost: float | None = None
    seconds: float | None = None

    @property
    def useless(self) -> str:
        """Why it has no figures, if it has no parsed verdict on an item with votes."""
        if not self.verdicts.n:
            return f"no verdict could be read: {self.n_unread:,} of {self.n_unread:,}"
        return f"no parsed verdict is on an item with votes: 0 of {self.verdicts.n:,}"


@dataclass(frozen=True, slots=True, eq=False)
class StudyData:
    """Votes of people and verdicts of judges on the same items.

    Attributes
    ----------
    prompts : tuple of str
        Names by their number in ``items.prompt``.
    voters_known : bool
        Whether the votes name voters.
    source_rows : tuple of ndarray of shape (n_items,), int64
        Row of an item in the source of votes and in that of verdicts: one of them, -1 for none.
    groups : mapping of str to StudyData
        The same, parted by the values of a column.
    warnings : tuple of str
    """

    items: Items
    people: Labels
    judges: tuple[JudgeVerdicts, ...]
    prompts: tuple[str, ...]
    voters_known: bool
    keyed_by: str
    source_rows: tuple[Ints, Ints]
    warnings: tuple[str, ...]
    groups: Mapping[str, "StudyData"] = field(default_factory=dict)


def read_study(
    votes: Source, verdicts: Source, *, voters: str | None = None, by: str | None = None
) -> StudyData:
    """Read votes and verdicts, and align them.

    Parameters
    ----------
    votes, verdicts : path or LoggedVotes
        Files, or for votes an arena's log.
    voters : str, optional
        Pattern of the voters whose votes count, such as ``expert_*``.
    by : str, optional
        Column, of either source, whose values part the items.

    Raises
    ------
    DataError
        If a source cannot be read, the two have no item in common, or an option does not fit.
    """
    cast = read_votes(votes, voters, by)
    aligned = align(cast, read_rows(verdicts, unparsed=True, by=by))
    data = study_data(aligned)
    return data if by is None else replace(data, groups=parted(aligned, by))


def read_votes(votes: Source, pattern: str | None, by: str | None = None) -> Rows:
    """Read the votes of people, of those whose names fit a pattern; raises `DataError`."""
    rows = read_rows(votes, unparsed=False, by=by)
    if pattern is None:
        return rows
    if "voter" not in rows.names:
        msg = f"{rows.source!r} does not name its voters: --voters {pattern!r} selects nobody."
        raise DataError(msg)
    names = rows.used("voter")
    chosen = np.isin(rows.named("voter"), [one for one in names if fnmatchcase(one, pattern)])
    if not chosen.any():
        some = ", ".join(map(repr, names[:3]))
        msg = f"No voter of {rows.source!r} matches {pattern!r}; there are {some} and others."
        raise DataError(msg)
    return rows.only(chosen)


def study_data(aligned: Aligned) -> StudyData:
    """Turn aligned votes and verdicts round to the sides of their items."""
    cast, given = aligned.sources[0], judges_apart(aligned.sources[1])
    item, flipped = aligned.item, aligned.flipped
    items = replace(aligned.items, gaps=_gaps(aligned))
    people = labels_of_people(aligned)
    voters = cast.names.get("voter")
    warnings = [*aligned.warnings, *_dropped(cast, "vote"), *_dropped(given, "verdict")]
    first, unsure = _shown_first(given, aligned.items, item[1], flipped[1])
    if unsure:
        warnings.append(unsure)
    if again := people.n - len(by_rater(items, people)[0]):
        warnings.append(_AGAIN.format(votes=plural(again, "vote")))
    judges = tuple(_judges(given, item[1], flipped[1], first))
    spellings = Counter(spelling(judge.name) for judge in judges)
    if twins := [f"{one.name!a}" for one in judges if spellings[spelling(one.name)] > 1]:
        warnings.append(f"{_TWINS} {', '.join(twins)}.")
    return StudyData(
        items=items,
        people=people,
        judges=judges,
        prompts=aligned.prompts,
        voters_known=voters is not None and not blank(voters).all(),
        keyed_by=aligned.keyed_by,
        source_rows=(_rows_of(cast, item[0], items.n), _rows_of(given, item[1], items.n)),
        warnings=tuple(warnings),
    )


def judges_apart(rows: Rows) -> Rows:
    """Make a judge of each judge and method, where a judge was asked by several.

    So with templates, where a case was judged by several.
    """
    judge = rows.names.get("judge", Coded(("judge",), np.zeros(rows.n, dtype=np.int64)))
    for role in ("method", "template"):
        column = rows.names.get(role)
        if column is None or (judge.codes < 0).any() or len(rows.used(role)) < 2:
            continue
        if role == "template":
            cases = [rows.names[name].codes for name in (*ITEM, "order") if name in rows.names]
            asked = np.column_stack([judge.codes, *cases, column.codes])
            n, n_asked = (len(np.unique(one, axis=0)) for one in (asked[:, :-1], asked))
            if n == n_asked:
                continue
        judge = _apart(judge, column, 8 if role == "template" else None)
    return replace(rows, names={**rows.names, "judge": judge})


def _apart(judge: Coded, column: Coded, shown: int | None) -> Coded:
    """Name judges with what is in a column, where it is not the same in all of their rows."""
    times = len(column.names) + 1
    used, place = np.unique(judge.codes * times + column.codes + 1, return_inverse=True)
    pairs = [divmod(int(pair), times) for pair in used]
    ways = Counter(code for code, _ in pairs)
    names = [
        f"{judge.names[code]}, {column.names[number - 1][:shown]}"
        if ways[code] > 1 and number
        else judge.names[code]
        for code, number in pairs
    ]
    combined, (codes,) = merged([Coded(tuple(names), place.ravel())])
    return Coded(combined, codes)


def judge_of(data: StudyData, name: str | None) -> JudgeVerdicts:
    """Give the judge of a name, or the only one; raises `DataError` where that is not clear."""
    names = [judge.name for judge in data.judges]
    if name is None and len(names) == 1:
        return data.judges[0]
    if name not in names:
        asked = "Verdicts of several judges" if name is None else f"There is no judge {name!r}"
        raise DataError(f"{asked}: choose one of {', '.join(map(repr, names))} with --judge.")
    return data.judges[names.index(name)]


def _rows_of(rows: Rows, item: Ints, n_items: int) -> Ints:
    first_row = np.full(n_items, -1, dtype=np.int64)
    first_row[item[::-1]] = rows.numbers["row"][::-1].astype(np.int64)  # the first of each
    return first_row


def _gaps(aligned: Aligned) -> dict[str, Floats]:
    """Give the doublings by which side A of an item exceeds side B, NaN where it is not known.

    Nothing counts as one: a response of no character, or of no element of markdown, has one
    less doubling than any other. Of refusals and lists it is 1 where only side A has one, -1 where
    only side B does, else 0; raises `DataError` for figures that are neither 0 nor 1. What votes
    say comes before what verdicts say, and the first row of an item before others.
    """
    by_name = {}
    sources = [*zip(aligned.sources, aligned.item, aligned.flipped, strict=True)]
    for name in FEATURES:
        gap = np.full(aligned.items.n, np.nan)
        for rows, item, flipped in sources[::-1]:
            if f"{name}_a" not in rows.numbers or f"{name}_b" not in rows.numbers:
                continue
            sides = np.stack([rows.numbers[column] for column in of_sides(name)])
            if name not in (REFUSAL, LIST_TERM):
                sides = np.log2(np.maximum(sides + (name == "format"), 1.0))
            elif (bad := sides[~np.isnan(sides) & (sides != 0) & (sides != 1)]).size:
                msg = f"refused_a and refused_b of {rows.source!r} hold {bad[0]:g}: make it 0, 1 "
                raise DataError(msg + "or empty.")
            each = np.where(flipped, sides[1] - sides[0], sides[0] - sides[1])
            known = np.isfinite(each)
            gap[item[known][::-1]] = each[known][::-1]
        if not np.isnan(gap).all():
            by_name[name] = gap
    return by_name


def _dropped(rows: Rows, what: str) -> Iterator[str]:
    for reason, n in rows.dropped.items():
        yield f"{plural(n, what)} excluded: {reason}."
    yield from rows.notes


def labels_of_people(aligned: Aligned) -> Labels:
    """Turn votes round to the sides of their items, which voters saw left first."""
    cast = aligned.sources[0]
    _, (voter,) = merged([cast.names.get("voter", Coded((), np.full(cast.n, -1)))])
    rater = np.where(voter < 0, voter.max(initial=-1) + 1 + np.arange(cast.n), voter)  # each alone
    left = np.ones(cast.n, dtype=np.int8)
    return _labels_of(cast, aligned.item[0], aligned.flipped[0], rater.astype(np.int64), left)


def _labels_of(
    rows: Rows, item: Ints, flipped: Bools, rater: Ints, first: NDArray[np.int8]
) -> Labels:
    """Turn rows round so that side A is that of their item, and leave unparsed ones out."""
    sign = np.where(flipped, -1, 1).astype(np.int8)
    probability = rows.numbers.get("preference", np.full(rows.n, np.nan))
    outside = (probability < 0) | (probability > 1)
    if outside.any():
        raise DataError(
            f"A preference of {rows.source!r} is {probability[outside][0]:g}: give the "
            "probability of side A, from 0 to 1."
        )
    probability = np.where(flipped, 1 - probability, probability)
    return Labels(item, rater, rows.label * sign, first * sign, probability).only(rows.read)


def repetition(key: Ints) -> Ints:
    """Give each row its number among those of its key, from 0 in their order.

    >>> repetition(np.array([7, 3, 7, 7])).tolist()
    [0, 0, 1, 2]
    """
    order = np.argsort(key, kind="stable")
    in_order = key[order]
    starts = np.flatnonzero(np.append(True, in_order[1:] != in_order[:-1]))
    sizes = np.diff(np.append(starts, len(key)))
    number = np.empty(len(key), dtype=np.int64)
    number[order] = np.arange(len(key)) - np.repeat(starts, sizes)
    return number


def _shown_first(
    rows: Rows, items: Items, item: Ints, flipped: Bools
) -> tuple[NDArray[np.int8], str | None]:
    """Tell which side of each row the judge saw first: by the orders, or by the sides.

    Without a column ``order``, side A is taken as first if some pair of models stands both ways;
    else sides are a convention, such as the alphabet's, and say nothing of it.
    """
    if "order" not in rows.names:
        pair = items.pairs[item] @ np.array([len(items.models), 1])
        both_ways = np.isin(pair[flipped], pair[~flipped]).any()
        first = np.full(rows.n, int(both_ways), dtype=np.int8)
        return first, None if both_ways else NO_ORDER
    column = rows.names["order"]
    unknown = [name for name in column.names if name not in ORDERS]
    if unknown or (column.codes < 0).any():
        shown = repr(unknown[0]) if unknown else "missing in some rows"
        raise DataError(f"The order of {rows.source!r} is {shown}: give ab, ba or both.")
    return np.array([ORDERS[name] for name in column.names], dtype=np.int8)[column.codes], None


def _judges(
    rows: Rows, item: Ints, flipped: Bools, first: NDArray[np.int8]
) -> Iterator[JudgeVerdicts]:
    names = rows.used("judge")
    judge = rows.named("judge") if names else np.full(rows.n, "judge", object)
    nameless = blank(rows.names["judge"])
    if names and nameless.any():
        raise DataError(
            f"No judge is named in {plural(int(nameless.sum()), 'verdict')} of {rows.source!r}, "
            "and one is in others: name it in all of them."
        )
    single = rows.named("order") != BOTH

    def labels(part: Bools) -> Labels:
        seen = np.where(flipped[part], -first[part], first[part])
        rater = repetition(2 * item[part] + (seen < 0))
        return _labels_of(rows.only(part), item[part], flipped[part], rater, first[part])

    for name in names or ("judge",):
        own = np.asarray(judge == name, dtype=bool)
        its = rows.only(own)
        whole = own.copy()
        whole[own] = one_a_case(its)
        apart = own & single if (own & single).any() else own
        verdicts = labels(whole)
        yield JudgeVerdicts(
            name,
            verdicts,
            verdicts if np.array_equal(whole, apart) else labels(apart),
            n_unread=int((whole & ~rows.read).sum()),
            methods={
                method: its.only(its.named("method") == method).used("template")
                for method in its.used("method")
            },
            cost=_an_item(its.numbers.get(COST), item[own]),
            seconds=_an_item(its.numbers.get(LATENCY), item[own]),
        )


def _an_item(spent: Floats | None, item: Ints) -> float | None:
    if spent is None or not (known := np.isfinite(spent)).any():
        return None
    return float(spent[known].sum() / len(np.unique(item[known])))


def one_a_case(rows: Rows) -> Bools:
    """Exclude the single orders of a judge's cases that have a row of both."""
    return ~beside_both(rows.names) if "order" in rows.names else np.ones(rows.n, dtype=bool)


def parted(aligned: Aligned, by: str) -> dict[str, StudyData]:
    """Part votes and verdicts by the sorted values of a column; `UNLABELLED` is without one.

    Where only one source has the column, the other is parted by the items. Where neither has a
    column `PAIR`, that is the two models.

    Raises
    ------
    DataError
        If neither source has the column.
    """
    names, values = by_values(aligned, by)
    cast, given = aligned.sources
    aligned = replace(aligned, sources=(cast, judges_apart(given)))
    groups = {}
    for code, name in [*enumerate(names), (-1, UNLABELLED)]:
        votes, verdicts = in_group(values, aligned.item, code)
        if votes.any() and np.isin(aligned.item[1][verdicts], aligned.item[0][votes]).any():
            groups[name] = study_data(aligned.only(votes, verdicts))
    return groups


def by_values(aligned: Aligned, by: str) -> tuple[tuple[str, ...], list[Ints | None]]:
    """Give the values of a column, and which of them each row has; None of a source without it."""
    columns = [rows.names.get("by") for rows in aligned.sources]
    if columns == [None, None]:
        if by != PAIR:
            cast, given = aligned.sources
            raise DataError(
                f"There is no column {by!r} in {cast.source!r} or in {given.source!r}; {PAIR!r} "
                "stratifies by the two models."
            )
        columns = [_pairs(aligned, item) for item in aligned.item]
    names, codes = merged([column for column in columns if column is not None])
    return names, [codes.pop(0) if column is not None else None for column in columns]


def _pairs(aligned: Aligned, item: Ints) -> Coded:
    """Name the two models of each row."""
    pairs, codes = np.unique(aligned.items.pairs, axis=0, return_inverse=True)
    models = aligned.items.models
    return Coded(tuple(f"{models[a]} / {models[b]}" for a, b in pairs), codes.ravel()[item])


def in_group(values: Sequence[Ints | None], item: Sequence[Ints], code: int) -> list[Bools]:
    """Tell which rows of each source are in a group."""
    masks = [None if value is None else value == code for value in values]
    return [
        mask if mask is not None else np.isin(item[i], item[1 - i][masks[1 - i]])
        for i, mask in enumerate(masks)
    ]


def shared_by(data: StudyData, judge: JudgeVerdicts) -> StudyData:
    """Keep the items with both votes and verdicts of a judge, which agreement is computed from.

    They and their prompts are numbered again; the judge is the only one.
    """
    every = np.arange(data.items.n)
    both = np.isin(every, data.people.item) & np.isin(every, judge.verdicts.item)
    number = np.cumsum(both) - 1
    _, prompt = np.unique(data.items.prompt[both], return_inverse=True)
    gaps = {name: gap[both] for name, gap in data.items.gaps.items()}
    items = Items(data.items.models, data.items.pairs[both], prompt.astype(np.int64), gaps)

    def in_shared(labels: Labels) -> Labels:
        rows = labels.only(both[labels.item])
        return replace(rows, item=number[rows.item])

    own = replace(judge, verdicts=in_shared(judge.verdicts), in_orders=in_shared(judge.in_orders))
    return replace(data, items=items, people=in_shared(data.people), judges=(own,))
