"""The summary of a judge's run, beside its rows."""

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import fmean
from typing import Any

from judge.calls import UNPARSED, Key
from judge.case import RERUN, FailureClass, Reply, repeated_output
from judge.grammar import Preference, noted
from judge.ifeval import Accuracy, Checked, accuracy
from judge.methods import FileMethod
from judge.methods.file import reward
from judge.studies.estimates import joined
from judge.tables.cases import NamedCase
from judge.tables.verdicts import IFEVAL, judged_rows, rated_rows
from judge.verdict import (
    NO_CHECKLIST,
    PENDING,
    READ,
    SETTLED,
    Judged,
    PositionEffect,
    Run,
    Stop,
    consistency,
    constant_reading,
    each_verdict,
    position_effect_of,
)
from rating.errors import DataError
from rating.outcome import of_sides
from rating.sentences import plural
from rating.tables.vote_filter import BOTH

LOOKED_AT = 2000
"""Cases of a model whose responses are searched for what recurs."""
REFUSAL = FailureClass.REFUSAL
MOST_ERRORS = 5
"""Sentences of an endpoint that are shown."""
MOST_EXAMPLES = 5
"""Unparsed replies that are shown."""
SHOWN_OF_REPLY = (100, 200)
"""Characters of the beginning and of the end of an unparsed reply."""
WITH_REPLY = {READ, REFUSAL, FailureClass.NO_LOGPROBS, *UNPARSED}


@dataclass(frozen=True, slots=True)
class _Unparsed:
    """Replies without a verdict in a run.

    Attributes
    ----------
    n : int
        Questions of which no reply could be parsed, though none was a refusal.
    of : int
        Questions with a reply.
    rows : tuple of Judged
        The first of the n, at most `MOST_EXAMPLES`; of a run that gave up before it had any, the
        first that have a reply.
    """

    n: int
    of: int
    rows: tuple[Judged, ...] = field(repr=False)

    @property
    def share(self) -> float:
        """Share of the questions with a reply; 0 without any."""
        return self.n / self.of if self.of else 0.0

    @property
    def sentence(self) -> str:
        """What to say of them; empty where there are none."""
        if not self.n:
            return ""
        return (
            f"{self.n:,} of {self.of:,} questions with a reply ({round(100 * self.share)}%) are "
            "unparsed: they have no verdict, and are not ties. --again unparsed asks them once "
            "more."
        )


def unparsed_of(run: Run) -> _Unparsed:
    """Count the questions of a run whose replies hold no verdict."""
    with_reply = [row for row in run.judged if row.status in WITH_REPLY]
    rows = [row for row in with_reply if row.failure in UNPARSED]
    shown = rows
    if not rows and run.stopped is Stop.ALIKE:  # before all samples of any question were in
        shown = [row for row in run.judged if row.status == PENDING and row.keys]
    return _Unparsed(len(rows), len(with_reply), tuple(shown[:MOST_EXAMPLES]))


def _excerpt(reply: str) -> str:
    """Cut a reply to what is shown of it: its beginning, and more of its end."""
    head, tail = SHOWN_OF_REPLY
    return reply if len(reply) <= head + tail else f"{reply[:head]} … {reply[-tail:]}"


def examples(
    unparsed: _Unparsed, cases: Sequence[NamedCase], replies: Mapping[Key, Reply]
) -> list[dict[str, Any]]:
    """Give the first replies without a verdict, cut, with the cases that they are of.

    Parameters
    ----------
    replies : mapping
        Those of the last key of each row of ``unparsed``.
    """
    ids = {row.case_id for row in unparsed.rows}
    names = {named.case.id: named for named in cases if named.case.id in ids}
    return [
        {
            "battle_id": names[row.case_id].battle_id,
            "prompt_id": names[row.case_id].prompt_id,
            "order": row.order.value,
            "status": row.status,
            "finish_reason": replies[row.keys[-1]].finish_reason,
            "reply": _excerpt(replies[row.keys[-1]].text),
        }
        for row in unparsed.rows
        if row.keys and row.keys[-1] in replies
    ]


def lacks_logprobs(run: Run) -> bool:
    """Whether no reply had the log-probabilities that were asked for, or the endpoint has none."""
    if run.stopped is Stop.NO_LOGPROBS:
        return True
    reasons = set(run.by_status) - {PENDING, SETTLED}
    return reasons == {FailureClass.NO_LOGPROBS.value}


def rows_and_report(
    judge: str, method: FileMethod, cases: Sequence[NamedCase], run: Run, swap_share: float
) -> tuple[Sequence[dict[str, Any]], dict[str, Any]]:
    """Return the rows of a run as its file has them, and what came out.

    Parameters
    ----------
    run : Run
        With its rows as they are written, a length margin taken off.

    Returns
    -------
    rows : sequence of dict
        Of `judge.tables.verdicts`.
    report : dict
        ``judge``, ``method``, the fields of `judge.verdict.Run.to_dict`, ``warnings``, and
        ``next``, what to do about a run that stopped; for single responses ``models`` with a mean
        score each; for pairs ``consistency`` and ``first_place`` (null where undefined); for
        WB-Reward also ``rewards``. ``errors`` has what the endpoint said, the commonest first, and
        ``changes`` what differs from upstream.
    """
    rows: Sequence[dict[str, Any]]
    if method.pairwise:
        rows, results = _of_pairs(judge, method, cases, run, swap_share)
    else:
        rows = rated_rows(cases, run.judged, judge, method, run.checklists)
        scores: dict[str, list[float | None]] = {}
        for row in rows:
            scores.setdefault(row["model"], []).append(row["score"])
        results = {"models": [_mean(model, scores[model]) for model in sorted(scores)]}
    lacking, failed = lacks_logprobs(run), _failed(judge, run)
    return rows, {
        "judge": judge,
        "method": method.name,
        **run.to_dict(),
        **results,
        "errors": (errors := _errors(failed)),
        "warnings": [
            *run.lessons,
            *_on_judge(judge, run, method, failed, lacking),
            *_on_fences(method),
            *_unused(method, cases),
            *(
                f"{x['n']:,} {x['failure']}: the endpoint reports {x['sentence']!r}."
                for x in errors
            ),
            *repeats(cases),
        ],
        "next": run.stopped and _next(run, method, lacking),
        "changes": differences(method, cases),
    }


def _on_fences(method: FileMethod) -> list[str]:
    """Warn of answers without fences: the cost of a source's words to the letter."""
    if not method.unfenced:
        return []
    return [
        f"{method.name!r} shows {joined(method.unfenced)} without a fence (upstream = true): an "
        "answer can pretend to end and give the judge orders. Only shapes of verdicts and chat "
        f"templates in answers are altered. arena judge probe --method measures this."
    ]


def differences(method: FileMethod, cases: Iterable[NamedCase]) -> list[str]:
    """List what differs from a method's source: in its file, and in what these cases hold."""
    if "reference" not in method.template.given or any(c.case.reference for c in cases):
        return [*method.changes]
    return [
        *method.changes,
        "No case has a reference answer; upstream shows one for math, reasoning and coding. "
        "Give its file with --references.",
    ]


def _next(run: Run, method: FileMethod, lacking: bool) -> str:
    if run.stopped in (Stop.NO_LOGPROBS, Stop.DENIED):
        return ""  # the reason says it
    return _on_logprobs(method) if lacking else RERUN


Failed = Counter[tuple[str, FailureClass, str]]
"""Numbers of rows by who was asked, why there is no reading, and what the endpoint said."""


def _failed(judge: str, run: Run) -> Failed:
    return Counter(
        (row.judge or judge, row.failure, row.detail)
        for row in run.judged
        if row.failure is not None
    )


def _errors(failed: Failed) -> list[dict[str, Any]]:
    """Count the failures of requests by what the endpoint said of them."""
    counts: Counter[tuple[str, str]] = Counter()
    for (_, failure, sentence), n in failed.items():
        if sentence and sentence != NO_CHECKLIST:
            counts[failure.value, sentence] += n
    return [
        {"failure": failure, "sentence": sentence, "n": n}
        for (failure, sentence), n in counts.most_common(MOST_ERRORS)
    ]


def _place_of(run: Run) -> PositionEffect | None:
    """Estimate what the first place is worth; None with under two cases read in both orders."""
    try:
        return position_effect_of(run.judged)
    except DataError:
        return None


def constraint_report(cases: Sequence[NamedCase], checked: Sequence[Checked]) -> dict[str, Any]:
    """Return IFEval's four scores by model."""
    rows: dict[str, list[Checked]] = {}
    for named, one in zip(cases, checked, strict=True):
        rows.setdefault(named.models[0], []).append(one)
    return {
        "method": IFEVAL,
        "models": [{"model": name} | _shares(accuracy(rows[name])) for name in sorted(rows)],
        "warnings": repeats(cases),
    }


def repeats(cases: Sequence[NamedCase]) -> list[str]:
    """Name the models that answer different prompts with much the same text.

    Of each, `LOOKED_AT` cases from all over are looked at: every run of words of a million
    responses would take ten gigabytes, and what recurs in a fifth of them shows in a few.
    """
    of_model: dict[str, array[int]] = {}
    for number, named in enumerate(cases):
        for model in {*named.models}:
            of_model.setdefault(model, array("I")).append(number)
    repeated = {
        model: repeated_output(
            _responses(model, [cases[number] for number in own[:: -(-len(own) // LOOKED_AT)]])
        )
        for model, own in sorted(of_model.items())
    }
    return [
        f"{model!r} gives much the same response to different prompts ({one[0]:.0%} of "
        f"{one[1]}), such as {one[2][:60]!r}: a verdict on it may be about the judge."
        for model, one in repeated.items()
        if one is not None
    ]


def _responses(model: str, cases: Sequence[NamedCase]) -> dict[str, str]:
    """Give what a model answered, by prompt."""
    texts = {}
    for named in cases:
        text = named.case.response_a if named.models[0] == model else named.case.response_b
        if text is not None:
            texts[named.case.prompt_id] = text
    return texts


def _on_logprobs(method: FileMethod) -> str:
    """Describe what to do where no reply has log-probabilities."""
    text = f"The endpoint gives no log-probabilities, and {method.name} needs them."
    if method.fallback is None:
        return f"{text} Choose a method that parses the reply's text."
    return (
        f"{text} Use --method {method.fallback}, or --fallback {method.fallback}: another "
        "measurement, under its own name."
    )


def _unused(method: FileMethod, cases: Sequence[NamedCase]) -> list[str]:
    """Name what cases have that the method does not look at."""
    there = {
        name
        for named in cases
        for name, value in (("checklist", named.checklist), ("reference", named.case.reference))
        if value not in ((), None)
    }
    return [
        f"The method {method.name!r} does not use the column {name!r} of the cases."
        for name in sorted(there - {*method.fields})
    ]


def _on_judge(
    judge: str, run: Run, method: FileMethod, failed: Failed, lacking: bool
) -> list[str]:
    warnings = []
    answer = constant_reading(run.judged)
    if answer is not None:
        n = sum(bool(row.keys) for row in run.judged)
        names = {"first": "preference for the answer shown first"}
        shown = ", ".join(f"{names.get(k, k)}: {value}" for k, value in noted(answer).items())
        warnings.append(f"{judge!r} gave the same answer in all {n} replies ({shown}).")
    if any(detail == NO_CHECKLIST for _, _, detail in failed):
        unlisted = {row.case_id for row in run.judged if row.detail == NO_CHECKLIST}
        warnings.append(
            f"{plural(len(unlisted), 'case has', 'cases have')} no checklist: not judged, because "
            f"no checklist by {judge!r} could be parsed."
        )
    n_without = run.by_status.get(FailureClass.NO_LOGPROBS, 0)
    refused: Counter[str] = Counter()
    for (name, failure, _), n in failed.items():
        if failure is REFUSAL:
            refused[name] += n
    if unparsed := unparsed_of(run).sentence:
        warnings.append(unparsed)
    warnings += [
        f"{name!r} refused {plural(n, 'question')}: no verdict. --again refused asks once more."
        for name, n in refused.items()
    ]
    if lacking:
        warnings += [_on_logprobs(method)] if run.stopped is None else []
    elif n_without:
        warnings.append(f"Replies without log-probabilities or verdict: {n_without:,}.")
    return warnings


def _mean(model: str, scores: Sequence[float | None]) -> dict[str, Any]:
    known = [score for score in scores if score is not None]
    mean = fmean(known) if known else None
    return {"model": model, "n": len(known), "unread": len(scores) - len(known), "score": mean}


def _of_pairs(
    judge: str, method: FileMethod, cases: Sequence[NamedCase], run: Run, swap_share: float
) -> tuple[Sequence[dict[str, Any]], dict[str, Any]]:
    place = _place_of(run)
    correction = place if swap_share < 1 else None
    rows = judged_rows(cases, run.judged, judge, method, correction)
    results: dict[str, Any] = {
        "consistency": consistency(each_verdict(run.judged)),
        "first_place": place and asdict(place),
    }
    return rows, results | (
        {"rewards": _rewards(rows)} if method.score == "wildbench_reward" else {}
    )


def _rewards(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Give the mean reward of each model against each baseline, over all orders read.

    The mix is the mean over baselines, and stands with each; null while one has no reward.
    """
    levels: dict[tuple[str, ...], list[float]] = {}
    for row in rows:
        own = levels.setdefault(tuple(row[side] for side in of_sides("model")), [])
        if row["order"] != BOTH and row["preference"] is not None:
            own.append(reward(Preference(row["preference"])))
    means = {pair: fmean(own) if own else math.nan for pair, own in levels.items()}
    mixes = []
    for (model, baseline), mean in means.items():
        mix = fmean(value for pair, value in means.items() if pair[0] == model)
        mixes.append(
            {
                "model": model,
                "baseline": baseline,
                "n": len(levels[model, baseline]),
                "reward": None if math.isnan(mean) else mean,
                "mix": None if math.isnan(mix) else mix,
            }
        )
    return mixes


def _shares(accuracy: Accuracy) -> dict[str, Any]:
    return {
        name: {key: None if value != value else value for key, value in share.items()}
        for name, share in asdict(accuracy).items()
    }
