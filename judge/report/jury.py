"""A jury of judges: what they say together, and whether the order of models depends on one."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from judge.report.page import by_mean
from judge.studies.estimates import Estimate, clustered, joined, over, percent, plural
from judge.studies.gates import MIN_PROMPTS
from judge.studies.options import StudyOptions
from judge.studies.panel import equivalent
from judge.studies.truth import dawid_skene
from judge.verdict import READ
from rating import Outcome
from rating.errors import ConvergenceError
from rating.leave_out import sums_within
from rating.outcome import of_sides
from rating.tables.vote_filter import BOTH
from rating.typing import Floats

MAJORITY, WEIGHTED = "majority", "weighted"
SIDES = (Outcome.B, Outcome.TIE, Outcome.A)
"""By label, from 0."""
CASE = ("battle_id", "prompt_id", *of_sides("model"))
NO_QUORUM = "no_quorum"
NOT_OF_ONE = ("corrected", "error", "cost", "latency", "template", "fallback_for")
"""What a verdict of several judges has not."""
Row = Mapping[str, Any]


def jury(
    by_seat: Mapping[str, Sequence[Row]], options: StudyOptions | None = None
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the verdicts of several judges together, and what they are worth.

    A verdict needs those of more than half of the seats. The majority is the label of more judges
    than any other, else a tie. The weighted verdict is the likeliest label if judges err
    independently, each at one rate, which is estimated from their agreement (Dawid and Skene's
    model with one rate per judge); it has none where judges agree no more often than by guessing.

    Parameters
    ----------
    by_seat : mapping of str to sequence of mapping
        By the judge that was named, the rows of its run; ``judge`` names who was asked. Who
        replaces several judges on a case counts once.

    Returns
    -------
    rows : list of dict
        Of `judge.tables.verdicts.COLUMNS`, by `MAJORITY` and by `WEIGHTED`.
    report : dict
        ``cases``; ``decided`` and ``tied`` by each; ``no_quorum``; ``unanimous``, the share of
        cases on which all judges say the same; ``n_eff``, see `_at_least`; ``accuracies`` by
        judge, null without weights; ``orders`` of the models by each judge and together;
        ``stable``, whether all of these are the same; ``sentences``.
    """
    final = {seat: {_key(row): row for row in rows} for seat, rows in by_seat.items()}
    given = [row for rows in final.values() for row in rows.values()]
    cases = list(dict.fromkeys(map(_key, given)))
    judges = sorted({str(row["judge"]) for row in given})
    label = np.full((len(cases), len(judges)), -1)
    number = {key: place for place, key in enumerate(cases)}
    for row in given:
        if row["winner"] is not None:
            place = number[_key(row)], judges.index(str(row["judge"]))
            label[place] = SIDES.index(Outcome(row["winner"]))
    there = label >= 0
    quorum = there.sum(axis=1) > len(by_seat) / 2
    votes = np.stack([(label == one).sum(axis=1) for one in range(len(SIDES))], axis=1)
    posterior, accuracy = _weighed(label, quorum)
    shares = {MAJORITY: over(votes.astype(np.float64), there.sum(axis=1, keepdims=True))}
    shares |= {} if posterior is None else {WEIGHTED: posterior}
    firsts = {key: row for rows in reversed(final.values()) for key, row in rows.items()}
    rows = [
        _row(firsts[key], name, share[place] if quorum[place] else None)
        for name, share in shares.items()
        for place, key in enumerate(cases)
    ]
    every = {name: [*rows.values()] for name, rows in _by_judge(given, judges).items()}
    every |= {name: [row for row in rows if row["judge"] == name] for name in shares}
    orders = {
        name: list(by_mean([row for row in of if row["winner"] is not None]))
        for name, of in every.items()
    }
    whole = there.all(axis=1)
    report = {
        "cases": len(cases),
        **{
            name: {
                "decided": sum(row["winner"] is not None for row in every[name]),
                "tied": sum(row["winner"] == Outcome.TIE.value for row in every[name]),
            }
            for name in shares
        },
        "no_quorum": int((~quorum).sum()),
        "unanimous": float((votes[whole].max(axis=1) == len(judges)).mean())
        if whole.any()
        else None,
        "n_eff": _at_least(label[whole], [cases[i][1] for i in np.flatnonzero(whole)], options),
        "accuracies": None
        if accuracy is None
        else dict(zip(judges, accuracy.tolist(), strict=True)),
        "orders": orders,
        "stable": len({tuple(order) for order in orders.values() if order}) == 1,
    }
    return rows, report | {"sentences": [*_sentences(report, judges)]}


def _key(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in CASE)


def _by_judge(given: Sequence[Row], judges: Sequence[str]) -> dict[str, dict[Any, Row]]:
    return {name: {_key(row): row for row in given if row["judge"] == name} for name in judges}


def _weighed(label: Any, quorum: Any) -> tuple[Floats | None, Floats | None]:
    """Return the probability of each label, and each judge's estimated accuracy, if there are."""
    item, rater = np.nonzero((label >= 0) & quorum[:, None])
    if not item.size:
        return None, None
    known = np.full(len(label), -1)
    try:
        fitted = dawid_skene(
            item, rater, label[item, rater], len(SIDES), known=known, errors="one"
        )
    except ConvergenceError:
        return None, None
    if not fitted.above_guessing:
        return None, None
    return fitted.posterior, fitted.accuracy


def _row(first: Row, name: str, share: Floats | None) -> dict[str, Any]:
    """Give the verdict of a jury on a case, beside what its rows say of the case."""
    winner, preference = None, None
    if share is not None:
        leads = np.flatnonzero(share > share.max() - 1e-9)
        winner = (SIDES[int(leads[0])] if len(leads) == 1 else Outcome.TIE).value
        preference = float(share[2] + share[1] / 2)
    return {
        **first,
        **dict.fromkeys(name for name in NOT_OF_ONE if name in first),
        **dict.fromkeys(("resolved_model", "system_fingerprint")),
        "judge": name,
        "order": BOTH,
        "winner": winner,
        "preference": preference,
        "status": NO_QUORUM if winner is None else READ,
    }


def _at_least(
    label: Any, prompts: Sequence[Any], options: StudyOptions | None
) -> dict[str, Any] | None:
    """Estimate the fewest independent judges that the jury equals, from its verdicts alone.

    ``k / (1 + (k - 1) rho)``, rho the mean over pairs of ``mean J_j J_k / sqrt(mean J_j^2 mean
    J_k^2)`` with J of 1, 0 and -1: as if all agreement were shared error. `judge.studies.panel`
    estimates it with votes or labels. None under `MIN_PROMPTS`.
    """
    number = {prompt: place for place, prompt in enumerate(dict.fromkeys(prompts))}
    k = label.shape[1]
    if len(number) < MIN_PROMPTS or k < 2:
        return None
    side = label.astype(np.float64) - 1
    first, second = np.array([*combinations(range(k), 2)]).T
    each = np.hstack([side**2, side[:, first] * side[:, second]])
    stats = sums_within(np.array([number[one] for one in prompts]), each, len(number))

    def n_eff(sums: Floats) -> Floats:
        square, product = sums[:, :k], sums[:, k:]
        rho = over(product, np.sqrt(square[:, first] * square[:, second]))
        return equivalent(rho.mean(axis=1), k)

    draws = (options or StudyOptions()).draws()
    one: Estimate = clustered(stats, n_eff, draws, n=len(label))
    return None if one.value is None else one.to_dict()


def _sentences(report: Row, judges: Sequence[str]) -> Iterator[str]:
    given = f"The majority has a verdict on {report[MAJORITY]['decided']:,} of "
    yield f"{given}{plural(report['cases'], 'case')}; {report[MAJORITY]['tied']:,} are ties."
    if WEIGHTED in report:
        weights = [f"{name} {percent(right)}" for name, right in report["accuracies"].items()]
        yield f"Weighted by estimated accuracy: {joined(weights)}."
    else:
        yield "No weights: the judges agree no more often than by guessing."
    if report["no_quorum"]:
        yield (
            f"{plural(report['no_quorum'], 'case')} without a verdict of more than half of the "
            "judges."
        )
    if report["unanimous"] is not None:
        yield f"All judges give the same verdict on {percent(report['unanimous'])} of cases."
    if (n_eff := report["n_eff"]) is not None:
        yield (
            f"The jury equals at least {n_eff['value']:.1f} independent judges of {len(judges)}; "
            "arena study panel estimates this with votes or labels."
        )
    orders = report["orders"]
    by_all = orders[MAJORITY]
    if len(by_all) < 2:
        return
    if report["stable"]:
        yield f"The order of the models is the same under every judge: {', '.join(by_all)}."
        return
    yield f"The order of the models depends on the judge. By majority: {', '.join(by_all)}."
    for name, order in orders.items():
        if order and order != by_all:
            yield f"By {name}: {', '.join(order)}."
