"""A model of the roster as tagger: what `arena label --judge` asks, and what came of it."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from arena.commands.judge_work import JudgeOptions, in_words, opened, roster_model, run_options
from arena.terminal import announced, say, working

if TYPE_CHECKING:
    from arena.domain.model import Model
    from arena.domain.vote import Tagger
    from arena.endpoints.sse import Budgets
    from arena.store.judgements import StoredJournal
    from arena.store.store import Store
    from judge.budget import Estimate
    from judge.calls import Options
    from judge.case import Case, CaseId
    from judge.errors import FailureClass
    from judge.grammar import Reading
    from judge.labels.taggers import Label

    Labels = list[Mapping[str, Label] | None]


@dataclass(slots=True)
class ModelTagger:
    """A model that labels prompts, and a database that keeps its replies.

    Attributes
    ----------
    asked, recalled : int
        Replies paid for now, and those that the database held.
    spent_usd : float or None
        None without a price.
    failed : Counter
        Prompts without labels, by reason; each text once.
    stopped : str
        Why it stopped with prompts still pending; empty if none is.
    """

    model: "Model"
    store: "Store"
    journal: "StoredJournal"
    options: "Options"
    budgets: "Budgets"
    asked: int = 0
    recalled: int = 0
    spent_usd: float | None = None
    failed: "Counter[FailureClass]" = field(default_factory=Counter)
    stopped: str = ""

    @property
    def tagger(self) -> "Tagger":
        """What its labels are known by."""
        from arena.judging import tagger_of

        return tagger_of(self.model)

    def estimate(self, prompts: Sequence[Sequence[str]]) -> "Estimate":
        """Say what it would still be asked."""
        from judge.calls import forecast
        from judge.labels.tagging import Tagging

        return asyncio.run(forecast(_cases(prompts), Tagging(), self.journal, self.options))

    def labels(self, prompts: Sequence[Sequence[str]]) -> "Labels":
        """Label the prompts of conversations; None where it gave no label that can be read.

        What it costs is said beforehand, on standard error.
        """
        from judge.labels.tagging import Tagging
        from judge.runs import at_work, run

        before = self.estimate(prompts)
        if before.n_calls:
            say(f"{self.model.id}: {in_words(before)}", error=True)
        with working(f"Asking {self.model.id}") as advance:
            done = at_work(
                opened(self.model, self.budgets, self.options.terms),
                lambda complete: run(
                    _cases(prompts),
                    Tagging(),
                    complete,
                    self.journal,
                    self.options,
                    progress=lambda now: advance(now.n_done, now.n_total),
                ),
            )
        self.asked, self.recalled, self.spent_usd = done.n_asked, done.n_recalled, done.spent_usd
        self.failed = Counter(row.failure for row in done.judged if row.failure is not None)
        self.stopped = done.why if done.stopped is not None else ""
        readings = {row.case_id: row.reading for row in done.judged if row.reading is not None}
        return _labelled(prompts, readings)

    def words(self) -> str:
        """Say what was asked, what it cost, and how many prompts have no label, and why."""
        spent = "" if self.spent_usd is None else f" for ${self.spent_usd:.4g}"
        failed = ", ".join(f"{n:,} {failure}" for failure, n in sorted(self.failed.items()))
        left_out = f" Without labels: {failed}." if failed else ""
        return (
            f"{self.model.id}: {self.asked:,} replies asked for now{spent}, {self.recalled:,} "
            f"known before.{left_out}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "asked": self.asked,
            "recalled": self.recalled,
            "spent_usd": self.spent_usd,
            "failed": {str(failure): n for failure, n in sorted(self.failed.items())},
        }


@contextmanager
def opened_tagger(chosen: JudgeOptions, database: str | None) -> Iterator[ModelTagger]:
    """Open the database and find the model; raises `SettingsError` if there is no such model."""
    from arena.judging import journal_of, tagger_of
    from arena.settings import read_settings
    from arena.store.store import Store

    settings = read_settings(database=database, roster=chosen.roster)
    model = roster_model(settings.roster, chosen.judge, "--judge")
    tagger_of(model)
    with announced(), closing(Store(settings.database)) as store:
        options = run_options(store, model, chosen)
        journal = journal_of(store, options.judge, model.price)
        yield ModelTagger(model, store, journal, options, settings.budgets())


def _cases(prompts: Sequence[Sequence[str]]) -> "list[Case]":
    from judge.labels.tagging import case_of

    return [case_of(texts) for texts in prompts]


def _labelled(prompts: Sequence[Sequence[str]], readings: "Mapping[CaseId, Reading]") -> "Labels":
    from judge.grammar import Tags
    from judge.labels.tagging import case_of, labels_of

    given: Labels = []
    for texts in prompts:
        tags = readings.get(case_of(texts).id)
        given.append(labels_of(tags, texts) if isinstance(tags, Tags) else None)
    return given
