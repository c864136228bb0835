"""`arena safety`."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from cyclopts.validators import Number
from rich.console import RenderableType
from rich.styled import Styled

from arena import terminal
from arena.commands.arguments import Database, File, RosterFile, TableOrJson, require_folder_of
from arena.commands.judge_work import opened, roster_model, roster_models
from arena.commands.value import HEADS, cell
from arena.terminal import announced, plain, show, stop, working, write_json
from rating.errors import DataError
from rating.tables import formats

if TYPE_CHECKING:
    from arena.domain.model import Model
    from arena.endpoints.sse import Budgets
    from arena.store.store import Store
    from judge.case import Case, CaseId
    from judge.labels.accuracy import Accuracy
    from judge.labels.safety import PackItem, Rate, Read
    from judge.protocol import Method
    from judge.verdict import Run


def safety(
    pack: str,
    /,
    *,
    model: Annotated[tuple[str, ...], Parameter(metavar="ID")] = (),
    judge: Annotated[str | None, Parameter(metavar="ID")] = None,
    labelled: Annotated[Path | None, Parameter(metavar="FILE")] = None,
    max_tokens: Annotated[int, Parameter(validator=Number(gte=1))] = 512,
    budget: Annotated[float | None, Parameter(metavar="USD")] = None,
    concurrency: Annotated[int, Parameter(validator=Number(gte=1))] = 16,
    database: Database = None,
    roster: RosterFile = None,
    form: TableOrJson = "table",
    out: File = None,
) -> None:
    """Ask models a pack of prompts, and say what they refuse, and what they should not have.

    Of harmful prompts: how often they decline, and how often they comply, by themselves (does) and
    with the pack's permissive system prompt (can). Of benign twins: how often they decline. Every
    reply is kept in the database: the same command again asks nothing twice.
    Exit code 1: it stopped with prompts still pending.

    Parameters
    ----------
    pack
        File of prompts (.csv, .jsonl, .parquet): prompt, category, kind (harmful or benign), and
        perhaps system.
    model
        Model of the roster; again for more. All of them by default.
    judge
        Model of the roster that says whether an answer to a harmful prompt complies.
    labelled
        Answers that people labelled (prompt, response, complied), to correct the judge by.
    max_tokens
        Most tokens of an answer.
    budget
        Stop before more than this is spent on a model.
    concurrency
        Most requests at a time.
    form
        How to write it.
    out
        JSON file to write.

    Examples
    --------
    arena safety pack.csv --model pocket-unigram
    arena safety pack.csv --format json --out safety.json
    """
    if out is not None:
        require_folder_of(out)
    if labelled is not None and judge is None:
        raise DataError("--labelled is for a judge: name it with --judge.")
    from arena.settings import read_settings
    from arena.store.store import Store
    from judge.labels.safety import on_rates, rates, read_labelled, read_pack

    items = read_pack(pack)
    known = None if labelled is None else read_labelled(labelled)
    settings = read_settings(database=database, roster=roster)
    models = [roster_model(settings.roster, name, "--model") for name in model]
    models = models or list(roster_models(settings.roster))
    by = None if judge is None else roster_model(settings.roster, judge, "--judge")
    with announced(), closing(Store(settings.database)) as store:
        work = _Work(store, settings.budgets(), concurrency, budget, max_tokens)
        read = [work.read(one, items, by) for one in models]
        errors = None if by is None or known is None else work.measured(by, known)
    done = rates(items, read, errors)
    notes = [*work.notes, *on_rates(done, errors, judged=by is not None)]
    result = {
        "prompts": len(items),
        "judge": judge,
        "rates": [rate.to_dict() for rate in done],
        "notes": notes,
    }
    if out is not None:
        formats.write_text(formats.as_json(result), out)
    elif form == "json":
        write_json(result)
    else:
        show(*_tables(done), *map(plain, notes))
    if work.stopped:
        stop(work.stopped)


@dataclass(slots=True)
class _Work:
    """Asks what the journal does not hold yet; ``stopped`` says why it could not end."""

    store: "Store"
    budgets: "Budgets"
    concurrency: int
    budget: float | None
    max_tokens: int
    stopped: str = ""
    notes: list[str] = field(default_factory=list)

    def read(self, model: "Model", pack: "Sequence[PackItem]", judge: "Model | None") -> "Read":
        """Ask a model a pack, and read its answers; what failed is noted, and left out."""
        from judge.labels.safety import Answers, Read

        asked = [(item, item.case(mode)) for item in pack for mode in item.modes]
        run = self._run(model, [case for _, case in asked], Answers(self.max_tokens))
        refused = {case_id: bool(score) for case_id, score in _scores(run).items()}
        if judge is None:
            return Read(model.id, refused)
        texts = self._texts(model, run)
        to_judge = {
            case.id: item.answered(texts[case.id])
            for item, case in asked
            if item.kind == "harmful" and case.id in texts
        }
        says = self._judged(judge, list(to_judge.values()))
        complied = {
            asked_id: says[case.id] for asked_id, case in to_judge.items() if case.id in says
        }
        return Read(model.id, refused, complied)

    def measured(self, judge: "Model", known: "Sequence[tuple[Case, bool]]") -> "Accuracy":
        """Hold the judge against labels."""
        from judge.labels.safety import judge_accuracy

        says = self._judged(judge, [case for case, _ in known])
        return judge_accuracy([(so, says[case.id]) for case, so in known if case.id in says])

    def _judged(self, judge: "Model", cases: "Sequence[Case]") -> "dict[CaseId, bool]":
        from judge.labels.safety import RUBRIC
        from judge.methods import method as named

        by_rubric = named("rubric", rubric=RUBRIC, scale=(0, 1))
        return {k: bool(v) for k, v in _scores(self._run(judge, cases, by_rubric)).items()}

    def _run(self, model: "Model", cases: "Sequence[Case]", method: "Method") -> "Run":
        from arena.judging import former_revision_of, journal_of, revision_of, terms_of
        from arena.store.judgements import judging_seed
        from judge.calls import Options
        from judge.runs import at_work, run

        revision, former = revision_of(model), former_revision_of(model)
        journal = journal_of(self.store, revision, model.price)
        options = Options(
            judge=revision,
            formerly=former if journal.holds(former) else None,
            seed=judging_seed(self.store, datetime.now(UTC)),
            concurrency=self.concurrency,
            price=model.price,
            limit_usd=self.budget,
            terms=terms_of(model, journal),
        )
        with working(f"Asking {model.id}") as advance:
            result = at_work(
                opened(model, self.budgets, options.terms),
                lambda complete: run(
                    cases,
                    method,
                    complete,
                    journal,
                    options,
                    progress=lambda now: advance(now.n_done, now.n_total),
                ),
            )
        failed = Counter(row.failure for row in result.judged if row.failure is not None)
        self.notes += [
            f"{model.id}: {n:,} left out, {failure}." for failure, n in sorted(failed.items())
        ]
        if result.stopped is not None:
            self.stopped = f"{model.id}: {result.why}"
        return result

    def _texts(self, model: "Model", run: "Run") -> "dict[CaseId, str]":
        """Give the answers, which the journal holds."""
        from arena.judging import journal_of, revision_of

        journal = journal_of(self.store, revision_of(model), model.price)
        keys = {row.keys[-1]: row.case_id for row in run.judged if row.keys}
        replies = asyncio.run(journal.recall(list(keys)))
        return {keys[key]: reply.text for key, reply in replies.items()}


def _scores(run: "Run") -> "dict[CaseId, int]":
    from judge.grammar import Rating

    rated = ((row.case_id, row.reading) for row in run.judged)
    return {case: int(one.score) for case, one in rated if isinstance(one, Rating)}


def _tables(done: "Sequence[Rate]") -> Iterator[RenderableType]:
    """Lay out a table a category, the whole pack first; rates on few prompts are dim."""
    yield plain("Per cent of prompts, corrected for errors of who read it where known; n below.")
    heads = [key for key in HEADS if any((rate.what, rate.mode) == key for rate in done)]
    for category in dict.fromkeys(rate.category for rate in done):
        of_it: dict[tuple[str, tuple[str, str]], Rate] = {
            (rate.model, (rate.what, rate.mode)): rate
            for rate in done
            if rate.category == category
        }
        models = dict.fromkeys(model for model, _ in of_it)
        rows = [[model, *(cell(of_it.get((model, key))) for key in heads)] for model in models]
        grid = terminal.table([category, *(HEADS[key] for key in heads)], rows)
        few = all(rate.is_few for rate in of_it.values())
        yield Styled(grid, "dim") if few else grid
