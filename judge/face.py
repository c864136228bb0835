"""`import judge`: a judge's run, and a study of it beside people, from Python in a few lines."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from judge.budget import Price
from judge.calls import AGAIN, Again, Journal, Options, Terms
from judge.case import Case, Complete, Reply
from judge.methods import FileMethod, margined
from judge.report.run import rows_and_report
from judge.report.studies import judge_rows, write_report
from judge.runs import Progress, at_work, judge_all
from judge.studies.estimates import NONE, percent_of
from judge.studies.one_judge import Study, by_agreement, study_judges
from judge.studies.options import StudyOptions
from judge.tables import cases as tables
from judge.tables.cases import NamedCase
from judge.tables.verdicts import kinds_of, require_writable, write_judged
from judge.verdict import Run
from rating import RateOptions, Report
from rating.board import rate
from rating.errors import DataError
from rating.report import Tabular, as_html
from rating.sentences import foremost
from rating.tables.columns import Reading
from rating.tables.counts import read_votes
from rating.tables.duckdb_engine import frame_of
from rating.tables.files import Files

PathLike = str | Path
Source = PathLike | Sequence[PathLike] | Files
Row = Mapping[str, Any]


class _Endpoint(Protocol):
    """Where a judge answers; `arena.judging.endpoint` gives one."""

    @property
    def name(self) -> str:
        """What the judge is called in verdicts."""
        ...

    @property
    def revision(self) -> str:
        """What answers, down to its revision: part of the key of every reply."""
        ...

    @property
    def price(self) -> Price | None:
        """What it charges; None counts no money."""
        ...

    def terms(self, journal: Journal) -> Terms:
        """Give what is known of it, with what runs on this journal have learnt."""
        ...

    def opened(self, terms: Terms) -> AbstractAsyncContextManager[Complete]:
        """Hold connections for a run on these terms."""
        ...


class _JournalPlace(Protocol):
    """Where replies are kept; `arena.judging.journal` gives one."""

    def opened(
        self, judge: str, price: Price | None
    ) -> AbstractContextManager[tuple[Journal, str]]:
        """Open the journal of a judge, and give the secret from which its runs are drawn."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Verdicts:
    """The verdicts of a run: a row for each case and order, and one for both.

    Attributes
    ----------
    rows : sequence of mapping
        As `judge.tables.verdicts.COLUMNS` names them, or ``SINGLE`` of single responses.
    """

    rows: Sequence[Row]

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.rows)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the rows as Arrow's stream, by which any library of tables takes them."""
        return frame_of(self.rows, kinds_of(next(iter(self.rows), ()))).__arrow_c_stream__(
            requested_schema
        )

    def write(self, path: PathLike) -> None:
        """Write a file that ends in .parquet, .csv or .jsonl; raises `DataError` if it cannot."""
        require_writable(Path(path))
        write_judged(self.rows, Path(path))


@dataclass(frozen=True, slots=True, eq=False)
class JudgeRun:
    """Result of a run.

    Attributes
    ----------
    judge, method : str
    verdicts : Verdicts
    replies : tuple of Reply
        Every reply behind the verdicts, in their order; those of earlier runs among them.
    report : mapping
        As ``arena judge run --format json`` prints it.
    """

    judge: str
    method: str
    cases: Sequence[NamedCase]
    verdicts: Verdicts
    replies: tuple[Reply, ...]
    report: Mapping[str, Any]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to be wary of."""
        return tuple(self.report["warnings"])

    def leaderboard(self, *, length_control: bool = False) -> Report:
        """Rate the models by the verdicts, a case judged in both orders once.

        Parameters
        ----------
        length_control : bool
            Rate at equal length: how much longer a response is joins the fit as a covariate.

        Raises
        ------
        DataError
            If the cases are single responses, or no verdict was read.
        NotIdentifiedError
            If the verdicts identify no rating.
        """
        if any(len(case.models) < 2 for case in self.cases):
            msg = f"The method {self.method!r} looks at one response: it ranks no models by pairs."
            raise DataError(msg)
        options = RateOptions(style=("length",) if length_control else ())
        lengths = {case.battle_id: case.case for case in self.cases}
        rows = [dict(row) | _lengths(lengths[row["battle_id"]]) for row in self.verdicts.rows]
        with _as_file(Verdicts(rows)) as path:
            return rate(read_votes(path, Reading.of(options)), options)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return dict(self.report)

    def _repr_html_(self) -> str:
        """Return what came out as a table, for notebooks."""
        rows = ((name, f"{n:,}") for name, n in self.report["by_status"].items())
        title = f"{self.judge}, {self.method}"
        return as_html(("status", "questions"), rows, foremost(self.warnings), title)


@dataclass(frozen=True, slots=True, eq=False)
class StudyOfJudges(Tabular):
    """A study of one or more judges, compared with people.

    Attributes
    ----------
    verdicts : Verdicts or None
        Those that were in no file: the report quotes single ones.
    """

    study: Study
    verdicts: Verdicts | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to keep in mind."""
        return self.study.warnings

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One per judge and figure, as in the file of ``arena study judges``."""
        return judge_rows(self.study)

    def _repr_html_(self) -> str:
        """Return the judges as a table, for notebooks."""
        head = ("judge", "may replace people", "agreement, ties excluded", "of people", "items")
        rows = (
            (
                one.name,
                one.first_answer.verdict,
                percent_of(one.agreement.judge.without_ties),
                percent_of(one.agreement.people.without_ties),
                f"{one.n_items:,}",
            )
            for one in by_agreement(self.study.judges)
        )
        without = ((one.name, one.useless, NONE, NONE, "0") for one in self.study.useless)
        return as_html(head, chain(rows, without), foremost(self.warnings))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, as ``arena study judge --format json`` prints them."""
        return self.study.to_dict()

    def report(self, folder: PathLike) -> Path:
        """Write the report in every form into a folder, and return the page to open.

        Raises
        ------
        DataError
            If the folder cannot be written.
        """
        made = datetime.now(UTC).date()
        if self.verdicts is None:
            return write_report(self.study, Path(folder), made)
        with _as_file(self.verdicts) as path:
            return write_report(replace(self.study, verdicts=path), Path(folder), made)


def read_cases(*sources: Source, single: bool = False) -> list[NamedCase]:
    """Read cases: pairs, or several sources of outputs, the first compared with the others.

    Parameters
    ----------
    *sources : path, sequence of paths, or Files
        Each is a table: a file, a folder of files, a pattern such as ``cases/*.csv``, or several.
    single : bool
        Read single responses, for methods that look at one.

    Raises
    ------
    DataError
        As `judge.tables.cases.read_cases`.
    """
    files = [_files(source) for source in sources]
    return tables.read_responses(files) if single else tables.read_cases(files)


def run(
    cases: Sequence[NamedCase],
    method: FileMethod,
    endpoint: _Endpoint,
    journal: _JournalPlace,
    *,
    swap_share: float | None = None,
    budget: float | None = None,
    concurrency: int = 16,
    again: Again | None = None,
    progress: Callable[[Progress], None] = lambda _: None,
) -> JudgeRun:
    """Judge cases; stored replies are not requested again.

    Parameters
    ----------
    swap_share : float
        Share of the pairs that are asked in both orders, the rest in one, drawn at random; as the
        method says if None.
    budget : float, optional
        US dollars after which the run stops; the same call goes on.
    concurrency : int
        Most requests at a time.
    again : {"refused", "unparsed"}, optional
        Ask once more where the kept reply is a refusal, or holds no verdict that can be parsed.
    progress : callable
        Called with a `Progress` whenever a question is done.

    Raises
    ------
    DataError
        If a case does not fit the method, or an option cannot be used.
    """
    share = method.swap_share if swap_share is None else swap_share
    with journal.opened(endpoint.name, endpoint.price) as (opened, seed):
        terms = endpoint.terms(opened)
        options = Options(
            judge=endpoint.revision,
            seed=seed,
            concurrency=concurrency,
            swap_share=share,
            price=endpoint.price,
            limit_usd=budget,
            again=AGAIN[again] if again else frozenset(),
            terms=terms,
        )

        async def judged(judge: Complete) -> tuple[Run, tuple[Reply, ...]]:
            outcome = await judge_all(cases, method, judge, opened, options, progress)
            shown = {named.case.id: named.case for named in cases}
            judged = margined(outcome.judged, shown, method.length_margin)
            outcome = replace(outcome, judged=judged)
            keys = dict.fromkeys(key for row in outcome.judged for key in row.keys)
            replies = await opened.recall(keys)
            return outcome, tuple(replies[key] for key in keys)

        outcome, replies = at_work(endpoint.opened(terms), judged)
    rows, report = rows_and_report(endpoint.name, method, cases, outcome, share)
    return JudgeRun(endpoint.name, method.name, cases, Verdicts(rows), replies, report)


def study(votes: Source, verdicts: Source | Verdicts, **options: Any) -> StudyOfJudges:
    """Compare verdicts with votes of people on the same items.

    Parameters
    ----------
    votes : path, sequence of paths, or Files
    verdicts : path, sequence of paths, Files, or Verdicts
    **options
        Fields of `judge.studies.options.StudyOptions`.

    Raises
    ------
    DataError
        If a file cannot be read, the two have nothing in common, or an option does not fit.
    """
    chosen = StudyOptions(**options)
    if isinstance(verdicts, Verdicts):
        with _as_file(verdicts) as path:
            return StudyOfJudges(study_judges(_files(votes), path, chosen), verdicts)
    return StudyOfJudges(study_judges(_files(votes), _files(verdicts), chosen))


def _files(source: Source) -> Files:
    files = Files.of(source)
    if files is None:
        raise DataError(f"Cannot read {source!r}: give a path, or several.")
    return files


def _lengths(case: Case) -> dict[str, int]:
    a, b = (*case.earlier_a, case.response_a), (*case.earlier_b, case.response_b or "")
    return {"length_a": sum(map(len, a)), "length_b": sum(map(len, b))}


@contextmanager
def _as_file(verdicts: Verdicts) -> Iterator[Path]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "verdicts.parquet"
        verdicts.write(path)
        yield path
