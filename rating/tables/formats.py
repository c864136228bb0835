"""Boards as tables, captions, JSON, CSV, Markdown, LaTeX, Parquet and every_eval_ever files.

`as_text` and `write_parquet` write a board; `summary` and `caption` describe it in sentences.
`write_logs` writes it as every_eval_ever has evaluations, a JSON file per model, and `read_logs`
reads these back to an equal board.
"""

import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from hashlib import sha256
from importlib import import_module
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rating.errors import DataError
from rating.sentences import signed
from rating.tables.files import (
    LINES,
    SHOWN,
    csv_text,
    in_html,
    in_json,
    in_latex,
    in_markdown,
    parsed,
    read_text,
    replacing,
    visible,
)

if TYPE_CHECKING:
    from duckdb import DuckDBPyRelation

    from rating.decide import Gate
    from rating.report import Tabular


# Boards as rows and text


Row = Mapping[str, Any]

BOARD_FORMATS = ("table", "json", "csv", "markdown", "latex", "parquet")
ENDINGS = {
    ".json": "json",
    ".csv": "csv",
    ".md": "markdown",
    ".tex": "latex",
    ".parquet": "parquet",
}
COLUMNS = {
    name: kind
    for kind, names in {
        "DOUBLE": "rating strength se df effective_voters quasi_se lower upper old new "
        "moved log_e max_log_e weight preference cost latency value win_rate "
        "win_rate_low win_rate_high voter_rating price_per_1000 best_of declared "
        "median_s level borrowed",
        "BIGINT": "rank rank_low rank_high votes rank_old rank_new ties flagged_at n "
        "voter_rank variants otherwise board_votes board_voters",
        "BOOLEAN": "examined flagged flagged_jointly",
    }.items()
    for name in names.split()
}
"""Types of columns of numbers and truth values, also of those without any."""
TYPES: Mapping[str, set[type]] = {"BOOLEAN": {bool}, "BIGINT": {int}, "DOUBLE": {int, float}}
"""Types of other columns, by their values; any other is text."""


def chosen_format(name: str | None, out: Path | None) -> str:
    """Name the format: as asked, else by the ending of the file, else a table.

    Raises
    ------
    DataError
        If there is no such format, or it needs a file.
    """
    form = name or (ENDINGS.get(out.suffix, "") if out else "table")
    if form not in BOARD_FORMATS:
        if name is None:
            msg = (
                f"Cannot tell the format of {str(out)!r}: add --format {'|'.join(BOARD_FORMATS)}."
            )
        else:
            msg = f"There is no format {name!r}: choose one of {', '.join(BOARD_FORMATS)}."
        raise DataError(msg)
    if form == "parquet" and out is None:
        raise DataError("Parquet is not for a terminal: name a file with --out.")
    return form


def rows_of(board: Row) -> list[Row]:
    """Give the rows of a board, of groups (with the column ``group``), or of a comparison."""
    if "groups" in board:
        return [
            {"group": value} | row
            for value, report in board["groups"].items()
            for row in report["ratings"]
        ]
    return list(board["moved"] if "moved" in board else board["ratings"])


def as_text(board: Row, form: str) -> str:
    """Write a board, groups or a comparison in a format of text."""
    if form == "json":
        return as_json(board)
    rows = rows_of(board)
    if form == "csv":
        return as_csv(rows)
    heading = summary(board) if "method" in board else str(board.get("note", ""))
    if "pooling" in board:
        heading = pooling_caption(board["pooling"])
    warnings = board.get("warnings", ())
    if form == "markdown":
        under = "".join(f"\n* {in_markdown(text)}" for text in warnings)
        return f"{in_markdown(heading)}\n\n{board_table(rows).markdown()}{under}\n".lstrip()
    comments = "".join(f"% {in_latex(text)}\n" for text in (heading, *warnings) if text)
    return f"{comments}% \\usepackage{{booktabs}}\n{board_table(rows).latex()}\n"


def make_folder(folder: Path) -> None:
    """Make a folder where it is not there; raises `DataError` if it cannot be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"Cannot write into {str(folder)!r}: {error.strerror}.") from error


def write_text(text: str, path: Path) -> None:
    """Write a file; raises `DataError` if it cannot be written."""
    write_pieces([text], path)


def write_pieces(pieces: Iterable[str], path: Path) -> None:
    """Write a file of pieces that are made one after the other; raises `DataError` as well."""
    try:
        with replacing(path) as made, made.open("w", encoding="utf-8") as file:
            file.writelines(pieces)
    except OSError as error:
        raise DataError(f"Cannot write {str(path)!r}: {error.strerror}.") from error


def as_json(board: Row) -> str:
    """Write a board as JSON, every number in full."""
    return in_json(json.dumps(board, indent=2, ensure_ascii=False, allow_nan=False)) + "\n"


def as_csv(rows: Sequence[Row]) -> str:
    """Write rows with every number in full; what is unknown is empty, and no text is a formula."""
    return "".join(csv_lines(rows))


def csv_lines(rows: Iterable[Row]) -> Iterator[str]:
    """Give the lines of `as_csv`, made one after the other; the rows are looked at once."""
    left = iter(rows)
    first = [*islice(left, 1)]
    names = [*first[0]] if first else []
    yield csv_text([names])
    for row in chain(first, left):
        yield csv_text([[row[name] for name in names]])


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text under a head, written as Markdown, LaTeX or HTML.

    Attributes
    ----------
    note : str
        What to know to read it.
    strong : tuple of int
        Rows that the eye should find.
    sides : str
        ``l`` or ``r`` for each column; if empty, the first column is at the left, of names, and
        the others are at the right, of numbers.
    """

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    strong: tuple[int, ...] = ()
    sides: str = ""

    @classmethod
    def of(cls, head: Sequence[str], rows: Mapping[str, Iterable[str]], note: str) -> "Table":
        """Make a table of the cells behind each name."""
        return cls(tuple(head), tuple((name, *cells) for name, cells in rows.items()), note)

    def markdown(self) -> str:
        """Write it as Markdown, a line a row."""
        head, *rows = ([*map(in_markdown, line)] for line in (self.head, *self.rows))
        marks = ["---:" if side == "r" else "---" for side in self._sides()]
        return "".join(f"| {' | '.join(line)} |\n" for line in (head, marks, *rows))

    def latex(self) -> str:
        """Write it as a tabular of the package booktabs."""
        head, *rows = (
            " & ".join(map(in_latex, line)) + r" \\" for line in (self.head, *self.rows)
        )
        begin, end = rf"\begin{{tabular}}{{{self._sides()}}}", r"\end{tabular}"
        return "\n".join([begin, r"\toprule", head, r"\midrule", *rows, r"\bottomrule", end])

    def html(self) -> str:
        """Write it as HTML without a style."""
        head = "".join(f'<th scope="col">{in_html(cell)}</th>' for cell in self.head)
        rows = "\n".join(
            f"<tr>{''.join(f'<td><bdi>{in_html(cell)}</bdi></td>' for cell in row)}</tr>"
            for row in self.rows
        )
        return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>"

    def _sides(self) -> str:
        return self.sides or "l" + "r" * (len(self.head) - 1)


def board_table(rows: Sequence[Row]) -> Table:
    """Lay out rows for people, in points without decimals."""
    names = list(rows[0]) if rows else []
    return Table(
        head=tuple(name.replace("_", " ") for name in names),
        rows=tuple(tuple(shown(name, row[name]) for name in names) for row in rows),
        sides="".join("r" if name in COLUMNS else "l" for name in names),
    )


def gate_texts(gate: "Gate") -> dict[str, str]:
    """Write what a release gate says as JSON, as a comment on a pull request, and as JUnit's XML.

    Returns
    -------
    dict of str to str
        By the ending of the file: ``json``, ``md`` and ``xml``.
    """
    return {
        "json": as_json(gate.to_dict()),
        "md": _gate_as_markdown(gate),
        "xml": _gate_as_junit(gate),
    }


def _gate_as_markdown(gate: "Gate") -> str:
    ask = gate.options
    rows = [
        ("Required", f"{ask.require.replace('-', ' ')}, with a margin of {ask.margin:g} points"),
        ("Lead", gate.lead or "not known"),
        ("Rests on", gate.rests_on),
        ("Votes still needed", "not known" if gate.needed is None else f"{gate.needed:,}"),
    ]
    lines = [
        _heading(gate.passes, gate.headline),
        "",
        f"| Gate | {in_markdown(f'{ask.candidate} against {ask.incumbent}')} |",
        "|---|---|",
        *(f"| {name} | {in_markdown(value)} |" for name, value in rows),
        "",
        "" if gate.passes is not None else in_markdown(f"{gate.why} {gate.verdict}".strip()),
        *(f"\n> {in_markdown(text)}" for text in gate.warnings),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _heading(passes: bool | None, text: str) -> str:
    """Head a comment with the answer, unless the text begins with it."""
    answer = {True: "Passes", False: "Fails", None: "Inconclusive"}[passes] + ": "
    return f"### {answer}{in_markdown(text.removeprefix(answer))}"


def _gate_as_junit(gate: "Gate") -> str:
    """Write a test suite of one test: it passes, fails, or is skipped if it is inconclusive."""
    import xml.etree.ElementTree as ET

    ask = gate.options
    suite = ET.Element(
        "testsuite",
        name="arena gate",
        tests="1",
        failures=f"{gate.passes is False:d}",
        errors="0",
        skipped=f"{gate.passes is None:d}",
        time="0",
    )
    name = f"{ask.candidate} against {ask.incumbent}, {ask.require}, margin {ask.margin:g} points"
    test = ET.SubElement(suite, "testcase", classname="arena.gate", name=visible(name), time="0")
    if gate.passes is not True:
        kind = "skipped" if gate.passes is None else "failure"
        one = ET.SubElement(test, kind, message=visible(gate.headline), type=gate.answer)
        one.text = visible("\n".join(gate.sentences[1:]), LINES)
    out = ET.SubElement(test, "system-out")
    out.text = visible("\n".join((*gate.sentences, gate.rests_on, *gate.warnings)), LINES)
    ET.indent(suite)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(suite, encoding="unicode")}\n'


def comparison_tables(report: Row) -> tuple[Table, Table]:
    """Lay out the models and the pairs of a paired comparison, as `rating.paired` gives it."""
    level = f"{100 * report['level']:g}%"
    models = Table(
        head=(
            "Model", "Scored", "Missing", "Compared",
            f"Mean {report['metric']}", f"{level}, by itself",
        ),
        rows=tuple(
            (
                one["model"],
                f"{one['n']:,}",
                f"{one['missing']:,}",
                f"{one['compared']:,}",
                f"{one['mean']:z.3f}".replace("-", "−"),
                "–"
                if one["lower"] is None
                else f"{one['lower']:z.3f} to {one['upper']:z.3f}".replace("-", "−"),
            )
            for one in report["models"]
        ),
    )  # fmt: skip
    pairs = Table(
        head=(
            "A", "B", "A minus B", f"{level}, paired", "A higher", "B higher", "Equal",
            f"Items for {100 * report['power']:g}% power",
        ),
        rows=tuple(
            (
                one["a"],
                one["b"],
                signed(one["difference"]),
                "–"
                if one["lower"] is None
                else f"{signed(one['lower'])} to {signed(one['upper'])}",
                *(f"{one[name]:,}" for name in ("a_higher", "b_higher", "equal")),
                "–" if one["needed"] is None else f"{one['needed']:,}",
            )
            for one in report["pairs"]
        ),
        sides="llrrrrrr",
    )  # fmt: skip
    return models, pairs


def comparison_text(report: Row, form: str) -> str:
    """Write a paired comparison as JSON, CSV (a row a pair), Markdown or LaTeX."""
    if form == "json":
        return as_json(report)
    if form == "csv":
        return as_csv(report["pairs"])
    texts, tables = [*report["sentences"], *report["warnings"]], comparison_tables(report)
    if form == "markdown":
        blocks = [_heading(report["passes"], texts[0]), *map(in_markdown, texts[1:])]
        blocks += [table.markdown().rstrip() for table in tables]
        return "\n\n".join(blocks) + "\n"
    comments = "".join(f"% {in_latex(text)}\n" for text in texts)
    return (
        f"{comments}% \\usepackage{{booktabs}}\n"
        + "\n\n".join(f"{table.latex()}" for table in tables)
        + "\n"
    )


def write_parquet(rows: Sequence[Row], path: Path) -> None:
    """Write rows with every number in full; what is unknown is null.

    Raises
    ------
    DataError
        If the file cannot be written.
    """
    from rating.tables.duckdb_engine import telling  # it takes half a second to import

    with telling(path), replacing(path) as made:
        _framed(rows).write_parquet(str(made))


def frame(result: "Tabular", library: str | None = None) -> Any:
    """Return a result as a data frame: a board with a row per model, a comparison per pair.

    Parameters
    ----------
    library : {"pandas", "polars", "pyarrow"}, optional
        None gives a relation of duckdb: it has ``__arrow_c_stream__``, by which any other library
        takes it.

    Raises
    ------
    DataError
        If there is no such library here.
    """
    relation = _framed(result.rows)
    if library is None:
        return relation
    if library not in FRAMES:
        msg = f"There is no frame of {library!r}: choose one of {', '.join(FRAMES)}, or none."
        raise DataError(msg)
    try:
        return FRAMES[library](import_module(library), relation)
    except ImportError as error:
        raise DataError(f"A frame of {library!r} needs it: pip install {library}.") from error


FRAMES: Mapping[str, Callable[[Any, Any], Any]] = {
    "pandas": lambda _, relation: relation.df(),
    "polars": lambda polars, relation: polars.DataFrame(relation),
    "pyarrow": lambda pyarrow, relation: pyarrow.table(relation),
}


def _framed(rows: Sequence[Row]) -> "DuckDBPyRelation":
    """Give rows as a table: a column has the type of its values, or without any of its name."""
    from rating.tables.duckdb_engine import frame_of

    def kind(name: str) -> str:
        of = {type(row[name]) for row in rows} - {type(None)}
        by_value = (kind for kind, types in TYPES.items() if of and of <= types)
        return "VARCHAR" if str in of else COLUMNS.get(name) or next(by_value, "VARCHAR")

    kinds = {name: kind(name) for name in (rows[0] if rows else ())}
    texts = [name for name, kind in kinds.items() if kind == "VARCHAR"]
    as_texts = ({n: None if row[n] is None else str(row[n]) for n in texts} for row in rows)
    return frame_of([{**row, **own} for row, own in zip(rows, as_texts, strict=True)], kinds)


def shown(name: str, value: object) -> str:
    """Give a cell for people: points and votes as whole numbers, strengths with two decimals."""
    if value is None:
        return "–"
    if name == "moved":
        return f"{value:+z.0f}"
    if name in ("strength", "share", "borrowed"):
        return f"{value:.2f}"
    return f"{value:.0f}" if isinstance(value, float) else str(value)


# Captions


ReportDict = Mapping[str, Any]
"""A result in the shape of ``arena rate --format json``."""

TIES = {
    "half": "Bradley-Terry with a tie as half a win",
    "davidson": "Bradley-Terry with Davidson's ties",
    "rao-kupper": "Bradley-Terry with Rao and Kupper's ties",
    "grounded": "grounded Rao-Kupper, both bad below a zero",
}

INTERVALS = {
    "sandwich": "sandwich",
    "hessian": "likelihood (Hessian)",
    "bootstrap": "bootstrap",
    "profile": "profile likelihood",
}

CLUSTERS = {"voter": "by voter", "prompt": "by prompt", "both": "by voter and by prompt"}


def _votes_caption(report: ReportDict) -> str:
    """Give how many votes by how many voters.

    Examples
    --------
    >>> _votes_caption({"votes": {"used": 2184, "voters": 56, "effective_voters": 31.4}})
    '2,184 votes by 56 voters (effective number 31)'
    """
    votes = report["votes"]
    text = f"{votes['used']:,} vote{'s' if votes['used'] != 1 else ''}"
    if votes.get("voters") is None:
        return f"{text}, voters not known"
    text += f" by {votes['voters']:,} voter{'s' if votes['voters'] != 1 else ''}"
    effective = votes.get("effective_voters")
    return text if effective is None else f"{text} (effective number {effective:,.0f})"


def summary(report: ReportDict) -> str:
    """Describe in a sentence or two which votes a board is of and how it was made.

    Examples
    --------
    >>> summary({"votes": {"used": 82, "voters": None, "self": 1, "dropped": {"skipped": 2}},
    ...          "method": {"ties": "half", "interval": "none", "scale": 400.0}})
    '82 votes, voters not known. Excluded: 1 a model against itself, 2 skipped. \
Bradley-Terry with a tie as half a win; no intervals; 400 points are odds of ten to one.'
    """
    votes, method = report["votes"], report["method"]
    votes_text = _votes_caption(report)
    if votes.get("top_voter_share") is not None:
        votes_text += f"; the most active cast {votes['top_voter_share']:.0%}"
    aside = {"a model against itself": votes["self"], **votes["dropped"]}
    left = ", ".join(f"{n:,} {why}" for why, n in aside.items() if n)
    sentences = [f"{votes_text}.", f"Excluded: {left}." if left else ""]
    made = f"{_method_caption(report)}; {_interval_caption(report)}"
    sentences.append(f"{made}; {method['scale']:g} points are odds of ten to one.")
    return " ".join(filter(None, sentences))


def _method_caption(report: ReportDict) -> str:
    """Name the model and its options that matter to a reader.

    Examples
    --------
    >>> _method_caption({"method": {"ties": "half", "ridge": 1.0, "style": ["length"]}})
    'Bradley-Terry with a tie as half a win, ridge 1, style held equal (length)'
    >>> _method_caption({"method": {"half_life": 30, "since": "2026-01-31T00:00:00+00:00"}})
    'Bradley-Terry with a tie as half a win, weights halved every 30 days of age, since 2026-01-31'
    """
    method = report["method"]
    parts = [TIES.get(method.get("ties", "half"), f"ties: {method.get('ties')}")]
    if method.get("pool"):
        parts.append(f"pooled by {method['by']}")
    if method.get("ridge"):
        parts.append(f"ridge {method['ridge']:g}")
    if method.get("order_effect"):
        parts.append("order effect")
    if method.get("style"):
        parts.append(f"style held equal ({', '.join(method['style'])})")
    if method.get("weights"):
        parts.append(f"weights: {method['weights']}")
    if method.get("half_life"):
        parts.append(f"weights halved every {method['half_life']:g} days of age")
    for name in ("since", "until"):
        if method.get(name):
            moment = method[name].removesuffix("+00:00").removesuffix("T00:00:00")
            parts.append(f"{name} {moment}")  # without what goes without saying
    return ", ".join(parts)


def pooling_caption(pooling: Row) -> str:
    """Describe how far the ratings of categories lie apart, and so how much they borrow.

    Examples
    --------
    >>> pooling_caption({"tau": 51.4, "lower": 35.7, "upper": 72.6, "tau_prompt": None})
    'Pooled: the standard deviation between categories is 51 points (36 to 73).'
    >>> pooling_caption({"tau": 0.0, "lower": 0.0, "upper": 35.2, "tau_prompt": None})
    'Pooled: no difference between categories is found (0 to 35 points).'
    >>> pooling_caption({"tau": None, "lower": None, "upper": None, "tau_prompt": None})
    'One category alone: there is nothing to pool.'
    """
    if pooling["tau"] is None:
        return "One category alone: there is nothing to pool."
    upper = pooling["upper"]
    ends = f"at least {pooling['lower']:.0f}, no upper limit"
    if upper is not None:
        ends = f"{pooling['lower']:.0f} to {upper:.0f}"
    tau, prompt = pooling["tau"], pooling["tau_prompt"]
    text = f"Pooled: the standard deviation between categories is {tau:.0f} points ({ends})"
    if not tau:
        ends = "no upper limit could be estimated" if upper is None else f"0 to {upper:.0f} points"
        text = f"Pooled: no difference between categories is found ({ends})"
    return f"{text}." if prompt is None else f"{text}; between prompts, it is {prompt:.0f}."


def borrowed_caption(report: ReportDict) -> str:
    """Describe how much the ratings of a pooled board borrow; nothing of any other board.

    Examples
    --------
    >>> borrowed_caption({"ratings": [{"borrowed": 0.25}, {"borrowed": 0.5}]})
    'Shrunk towards the whole board: 25 to 50% of each rating comes from other categories.'
    """
    shares = [100 * row["borrowed"] for row in report["ratings"] if "borrowed" in row]
    if not shares:
        return ""
    return (
        f"Shrunk towards the whole board: {min(shares):.0f} to {max(shares):.0f}% of each rating "
        "comes from other categories."
    )


def has_figures(rows: Iterable[Sequence[str]]) -> bool:
    """Test if any row of a table has more to show than its name and dashes."""
    return any(cell.strip(" –") for row in rows for cell in row[1:])


def has_intervals(report: ReportDict) -> bool:
    """Whether the report was made with intervals."""
    return bool(report["method"].get("interval", "sandwich") != "none")


def _interval_caption(report: ReportDict) -> str:
    """Name level and method of the intervals.

    Examples
    --------
    >>> _interval_caption({"method": {"interval": "sandwich", "cluster": "voter", "level": 0.95}})
    '95% intervals: sandwich, clustered by voter'
    """
    method = report["method"]
    if not has_intervals(report):
        return "no intervals"
    base = method.get("reference")
    of = f" of the difference from {base}" if base is not None else ""
    kind = method.get("interval", "sandwich")
    name = INTERVALS.get(kind, str(kind))
    text = f"{100 * method.get('level', 0.95):g}% intervals{of}: {name}"
    cluster = CLUSTERS.get(method.get("cluster") or "none")
    return f"{text}, clustered {cluster}" if cluster else f"{text}, votes taken as independent"


def _origin_caption(report: ReportDict, made: date) -> str:
    """Name the data, the version and the day.

    Examples
    --------
    >>> _origin_caption({"method": {"version": "1.2", "data_hash": "0123456789abcdef"}},
    ...             date(2026, 5, 3))
    'arena 1.2, data 0123456789ab, 2026-05-03'
    """
    method = report["method"]
    parts = [f"arena {method['version']}"] if method.get("version") else []
    if method.get("data_hash"):
        parts.append(f"data {str(method['data_hash'])[:12]}")
    return ", ".join([*parts, made.strftime("%Y-%m-%d")])


def caption(report: ReportDict, made: date, *extra: str, intervals: bool = True) -> str:
    """Join what every caption holds with sentences of this picture.

    Parameters
    ----------
    extra : str
        With their full stops; empty ones are passed over.
    intervals : bool
        Whether the picture shows intervals.
    """
    method = _method_caption(report)
    if intervals:
        method += f"; {_interval_caption(report)}"
    origin = _origin_caption(report, made)
    return " ".join(
        filter(None, [f"{_votes_caption(report)}.", f"{method}.", *extra, f"{origin}."])
    )


# every_eval_ever


Board = Mapping[str, Any]

SCHEMA = "0.3.0"
"""Version of the schema, https://github.com/evaleval/every_eval_ever."""
LIBRARY = "arena"
UNKNOWN = "unknown"
"""What stands for organisations that votes do not name; the datastore takes it, and warns."""
_PLAIN = str.maketrans(dict.fromkeys('<>:"/\\|?*', "_"))


def write_logs(
    board: Board, folder: Path, now: datetime, developers: Mapping[str, str] | None = None
) -> list[Path]:
    """Write a board, a file a model, under the paths that the datastore has.

    Parameters
    ----------
    board : mapping
        As `rating.Report.to_dict` gives it.
    folder : Path
        Is made where it is not there; files of the same votes and method are written again.
    now : datetime
        When the files were made.
    developers : mapping of str to str, optional
        Who made a model, where that is known; of ``org/model`` it is ``org``.

    Returns
    -------
    list of Path
        ``data/<collection>/<developer>/<model>/<uuid>.json``, in the order of the ratings.

    Raises
    ------
    DataError
        If it is no board of one group, or a file cannot be written.
    """
    if "ratings" not in board or "method" not in board:
        raise DataError("every_eval_ever takes one board: omit --by and --compare.")
    paths = []
    for place, row in enumerate(board["ratings"]):
        log = _log(board, row, place, now)
        if developer := (developers or {}).get(row["model"]):
            log["model_info"]["developer"] = developer
        path = folder / _place(log)
        make_folder(path.parent)
        write_text(as_json(log), path)
        paths.append(path)
    return paths


def _place(log: Mapping[str, Any]) -> Path:
    collection = log["evaluation_results"][0]["source_data"]["dataset_name"]
    developer, _, model = log["model_info"]["id"].rpartition("/")
    developer = developer or log["model_info"].get("developer", UNKNOWN)
    digest = sha256(log["evaluation_id"].encode()).digest()[:16]
    parts = (collection, developer, model)
    return Path("data", *map(_portable, parts), f"{uuid.UUID(bytes=digest, version=4)}.json")


def _portable(name: str) -> str:
    """Give a name that every file system takes for one folder."""
    plain = "".join(c for c in name.translate(_PLAIN) if c.isprintable())
    return plain.encode(errors="replace")[:100].decode(errors="ignore").strip(" .") or "_"


def _log(board: Board, row: Mapping[str, Any], place: int, now: datetime) -> dict[str, Any]:
    method = board["method"]
    made = sha256(as_json(method).encode()).hexdigest()[:12]
    name = str(row["model"])
    return {
        "schema_version": SCHEMA,
        "evaluation_id": f"arena-{made}/{name}/{method['data_hash']}",
        "retrieved_timestamp": str(now.timestamp()),
        "source_metadata": {
            "source_name": "pairwise votes",
            "source_type": "evaluation_run",
            "source_organization_name": UNKNOWN,
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": LIBRARY, "version": method["version"]},
        "model_info": {
            "name": name,
            "id": name,
            "additional_details": {"deployment_type": UNKNOWN, "model_availability": UNKNOWN},
        },
        "evaluation_results": [_result(board, row, place, f"arena-{made}")],
    }


def _result(board: Board, row: Mapping[str, Any], place: int, dataset: str) -> dict[str, Any]:
    method = board["method"]
    beside = {name: value for name, value in board.items() if name != "ratings"}
    rest = {name: value for name, value in row.items() if name not in ("model", "rating")}
    return {
        "evaluation_name": "arena.votes",
        "source_data": {
            "dataset_name": dataset,
            "source_type": "other",
            "additional_details": {"sha256_of_votes": method["data_hash"]},
        },
        "metric_config": {
            "evaluation_description": summary(board),
            "metric_id": "arena.bradley_terry",
            "metric_name": _method_caption(board),
            "metric_kind": "elo",
            "metric_unit": "points",
            "lower_is_better": False,
            "score_type": "continuous",
            "min_score": "-Infinity",
            "max_score": "Infinity",
            "additional_details": _as_texts(beside),
        },
        "score_details": {
            "score": row["rating"],
            "uncertainty": _uncertainty(board, row),
            "details": _as_texts(rest | {"place": place}),
        },
    }


def _as_texts(values: Mapping[str, Any]) -> dict[str, str]:
    """Write values as JSON: beside what it names itself, the schema has texts alone."""
    return {name: json.dumps(value, ensure_ascii=False) for name, value in values.items()}


def _uncertainty(board: Board, row: Mapping[str, Any]) -> dict[str, Any]:
    how, uncertainty = _interval_caption(board), dict[str, Any](num_samples=row["votes"])
    if board["method"].get("reference") is not None:
        return uncertainty  # errors and ends are those of a difference, not of the score
    if row["se"] is not None:
        uncertainty["standard_error"] = {"value": row["se"], "method": how}
    if row["lower"] is not None and row["upper"] is not None:
        uncertainty["confidence_interval"] = {
            "lower": row["lower"],
            "upper": row["upper"],
            "confidence_level": board["method"]["level"],
            "method": how,
        }
    return uncertainty


def is_folder_of_logs(path: Path) -> bool:
    """Whether a folder holds files as `write_logs` places them."""
    try:
        return path.is_dir() and any(path.glob("data/*/*/*/*.json"))
    except OSError:  # the reader refuses what cannot be opened
        return False


def read_logs(folder: Path) -> dict[str, Any]:
    """Read the board that `write_logs` wrote into a folder; equal to it, number by number.

    Raises
    ------
    DataError
        If a file is something else, or the files are of several boards.
    """
    boards: dict[str, Path] = {}
    rows: dict[int, dict[str, Any]] = {}
    beside: dict[str, Any] = {}
    for path in sorted(folder.glob("data/*/*/*/*.json")):
        try:
            place, row, beside = _board_of(parsed(read_text(path), repr(str(path))))
        except (KeyError, TypeError, ValueError) as error:
            msg = (
                f"{str(path)!r} is not as arena rate --format every-eval-ever writes it "
                f"({type(error).__name__}: {str(error)[:SHOWN]}): rate the votes again."
            )
            raise DataError(msg) from error
        boards.setdefault(as_json(beside), path)
        if len(boards) > 1 or place in rows:
            one = next(iter(boards.values()))
            msg = (
                f"{str(one)!r} and {str(path)!r} are of two boards: put each into its own folder."
            )
            raise DataError(msg)
        rows[place] = row
    return {**beside, "ratings": [rows[place] for place in sorted(rows)]}


def _board_of(log: Mapping[str, Any]) -> tuple[int, dict[str, Any], dict[str, Any]]:
    """Take a log apart into the place of a row, the row, and the board without its rows."""
    if log["eval_library"]["name"] != LIBRARY:
        raise ValueError(f"made by {log['eval_library']['name']}")
    (result,) = log["evaluation_results"]
    score = result["score_details"]
    rest = _values(score["details"])
    place = int(rest.pop("place"))
    row = {"model": log["model_info"]["name"], "rating": score["score"], **rest}
    return place, row, _values(result["metric_config"]["additional_details"])


def _values(texts: Mapping[str, str]) -> dict[str, Any]:
    return {name: json.loads(text) for name, text in texts.items()}
