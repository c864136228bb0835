"""Many votes: compiled loops and parts of the votes give what numpy gives of the whole."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from rating import (
    Comparisons,
    RateOptions,
    Report,
    bootstrap,
    contrasts,
    covariance,
    fit,
    fitting,
    infer,
    rate,
)
from rating.comparisons import Sums, Votes
from rating.contrasts import Inference
from rating.covariance import (
    Cluster,
    grouping,
    information_by_cluster,
    jackknife,
    squared_information,
)
from rating.errors import DataError
from rating.resampling import Bootstrap
from tests.rating.builders import random_votes, votes
from tests.rating.drawn import draw
from tests.simulation import Design

Row = tuple[str, str, str, str]


def degenerate() -> Comparisons:
    """Rounds often lack a win of the last, a loss of the first, or a link to a pair apart."""
    rows = [("m0", "m1", "model_a"), ("m1", "m0", "model_a"), ("m1", "m2", "tie")] * 40
    rows += [("top", "m0", "model_a")] * 30 + [("top", "m0", "model_b")]
    rows += [("m1", "last", "model_a")] * 30 + [("m1", "last", "model_b")]
    rows += [("apart", "m2", "model_a"), ("apart", "m2", "model_b")]
    return votes([(a, b, outcome, f"v{i}") for i, (a, b, outcome) in enumerate(rows)])


def drawn_both_ways(
    monkeypatch: pytest.MonkeyPatch, data: Comparisons, cluster: Cluster | None, **options: Any
) -> tuple[Bootstrap, Bootstrap]:
    """Return rounds of numpy, and of the compiled loops in threads."""
    fitted, rounds = fit(data, **options), []
    for everywhere in (False, True):
        compiled(monkeypatch, everywhere=everywhere)
        rng = np.random.default_rng(1)
        rounds.append(bootstrap(fitted, data, rounds=150, cluster=cluster, rng=rng))
    return rounds[0], rounds[1]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("cluster", [None, "voter"])
@pytest.mark.parametrize("kind", ["plain", "heavy", "alone", "fan", "wide"])
def test_compiled_loops_draw_the_rounds_of_numpy(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, kind: str, cluster: Cluster | None
) -> None:
    plain, ours = drawn_both_ways(monkeypatch, votes(crowds(rng)[kind]), cluster)
    assert ours.n_degenerate == plain.n_degenerate
    # The steps of a model of two votes go far and come back, and rounding with them: what both
    # still have to go when they stop is below 1e-6 standard errors.
    close = 1e-5 if kind == "fan" else 1e-12
    np.testing.assert_allclose(ours.theta, plain.theta, rtol=0, atol=close)


@pytest.mark.parametrize("cluster", [None, "voter"])
@pytest.mark.parametrize("weights", ["whole", "halves", "huge", "some of them zero"])
def test_compiled_loops_weigh_rounds_as_numpy_does(
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
    weights: str,
    cluster: Cluster | None,
) -> None:
    choice: dict[str, list[float]] = {"whole": [1, 4], "halves": [0.5, 2], "huge": [2e7, 3e7]}
    choice["some of them zero"] = [0, 1]
    rows = draw(rng, "half", n=2000, n_voters=50)
    weight = rng.choice(choice[weights], size=2000)
    data = rows.comparisons(voter=rows.voter, weight=weight)
    plain, ours = drawn_both_ways(monkeypatch, data, cluster)
    np.testing.assert_allclose(ours.theta, plain.theta, rtol=0, atol=1e-12)


@pytest.mark.parametrize("cluster", [None, "voter"])
def test_compiled_loops_give_degenerate_rounds_as_numpy_does(
    monkeypatch: pytest.MonkeyPatch, cluster: Cluster | None
) -> None:
    plain, ours = drawn_both_ways(monkeypatch, degenerate(), cluster)
    assert np.isposinf(plain.theta).any()
    assert np.isneginf(plain.theta).any()
    assert np.isnan(plain.theta).any()
    assert 0 < ours.n_degenerate == plain.n_degenerate < 150
    np.testing.assert_allclose(ours.theta, plain.theta, rtol=0, atol=1e-12)


def test_compiled_loops_hold_rounds_by_a_ridge(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, ours = drawn_both_ways(monkeypatch, degenerate(), None, ridge=0.5)
    assert ours.n_degenerate == plain.n_degenerate == 0
    np.testing.assert_allclose(ours.theta, plain.theta, rtol=0, atol=1e-12)


def test_rounds_are_the_same_however_many_threads_draw_them(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = votes(crowds(rng)["wide"])
    _, many = drawn_both_ways(monkeypatch, data, "voter")
    one = partial(ThreadPoolExecutor, 1)
    monkeypatch.setattr("concurrent.futures.ThreadPoolExecutor", one)
    _, alone = drawn_both_ways(monkeypatch, data, "voter")
    assert (many.theta == alone.theta).all()


@dataclass(frozen=True)
class Split:
    """Votes in parts, by the number of the voter."""

    data: Comparisons
    n_parts: int

    def each(self, work: Callable[[Comparisons], Sums], name: str | None = None) -> Iterable[Sums]:
        assert self.data.voter is not None
        rows = [self.data.voter % self.n_parts == part for part in range(self.n_parts)]
        return [work(self.data.subset(some)) for some in rows]


def split(data: Comparisons, n_parts: int) -> Votes:
    return Votes(data.merged(), parts=Split(data, n_parts))


def compiled(monkeypatch: pytest.MonkeyPatch, *, everywhere: bool) -> None:
    """Use the loops for all votes, in threads on some clusters each; or for none."""
    monkeypatch.setattr(covariance, "COMPILED_FROM", 0 if everywhere else np.inf)
    monkeypatch.setattr(covariance, "THREADS_FROM", 0)
    monkeypatch.setattr(covariance, "ROWS_AT_ONCE", 100)


def crowds(rng: np.random.Generator) -> dict[str, list[Row]]:
    """Voters alike, one who cast most, a vote each, a model of one voter, and many models."""
    plain = random_votes(rng, n=600)
    heavy = [(a, b, o, "v0" if i % 3 else v) for i, (a, b, o, v) in enumerate(plain)]
    alone = [(a, b, o, str(i)) for i, (a, b, o, _) in enumerate(plain)]
    fan = [*plain, ("new", "m0", "model_a", "fan"), ("new", "m1", "model_b", "fan")]
    wide = random_votes(rng, n=3000, n_models=30, n_voters=1000)
    return {"plain": plain, "heavy": heavy, "alone": alone, "fan": fan, "wide": wide}


def styled(rng: np.random.Generator, data: Comparisons, n_features: int) -> Comparisons:
    """Return the same cells in some order, each with features."""
    cells = data.subset(rng.permutation(len(data.votes)))
    names = tuple(f"style {i}" for i in range(n_features))
    features = rng.normal(size=(len(data.votes), n_features))
    return replace(cells, features=features, feature_names=names)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("n_features", "options"),
    [
        (0, {}), (0, {"ridge": 2.0}), (0, {"order_effect": True}), (3, {}),
        (2, {"ridge": 2.0, "order_effect": True}),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("kind", ["plain", "heavy", "alone", "fan", "wide"])
def test_compiled_loops_leave_out_voters_as_numpy_does(
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    n_features: int,
    options: dict[str, Any],
) -> None:
    data = votes(crowds(rng)[kind])
    data = styled(rng, data, n_features) if n_features else data
    fitted, groups = fit(data, **options), grouping(data, "voter")
    vectors = rng.normal(size=(len(fitted.x), 3))
    compiled(monkeypatch, everywhere=False)
    plain, lengths = jackknife(fitted, data, groups)
    information = np.vstack([*information_by_cluster(fitted, data, groups, vectors)])
    squared = squared_information(fitted, data, groups, vectors)
    compiled(monkeypatch, everywhere=True)
    ours, moved = jackknife(fitted, data, groups)
    assert ours == pytest.approx(plain, rel=1e-8, abs=1e-12)
    assert moved == pytest.approx(lengths, rel=1e-8)
    parts = [*information_by_cluster(fitted, data, groups, vectors)]
    assert np.vstack(parts) == pytest.approx(information, rel=1e-12)
    assert squared_information(fitted, data, groups, vectors) == pytest.approx(squared, rel=1e-12)


def test_compiled_loops_take_clusters_in_any_order(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = Design(n_voters=40).draw(rng)
    order = rng.permutation(len(data.votes))
    shuffled = data.subset(order)
    fitted = fit(data)
    compiled(monkeypatch, everywhere=True)
    ours, _ = jackknife(fitted, shuffled, grouping(shuffled, "voter"))
    same, _ = jackknife(fitted, data, grouping(data, "voter"))
    assert ours == pytest.approx(same, rel=1e-9)


def same_board(one: Votes, other: Votes, *, rel: float = 1e-9, **options: Any) -> None:
    reports = [rate(votes, RateOptions(**options)) for votes in (one, other)]
    numbers, rest = zip(*map(_parted, reports), strict=True)
    np.testing.assert_allclose(numbers[0], numbers[1], rtol=rel)
    assert rest[0] == rest[1]


def _parted(report: Report) -> tuple[list[float], list[object]]:
    seen, rows = report.votes, report.ratings
    numbers = [seen.effective_voters, seen.top_voter_share, report.design_effect.voter]
    for row in rows:
        numbers += [row.rating, row.se, row.df, row.effective_voters, row.lower, row.upper]
        numbers += [row.quasi_se]
    ranks = [(row.model, row.rank, row.rank_low, row.rank_high, row.votes) for row in rows]
    return [np.nan if x is None else x for x in numbers], [seen.voters, report.warnings, *ranks]


@settings(deadline=None, max_examples=12)
@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.integers(2, 60), st.booleans())
def test_any_votes_in_parts_by_voter_give_the_board_of_the_whole(
    seed: int, n_parts: int, n_voters: int, loops: bool
) -> None:
    rows = random_votes(np.random.default_rng(seed), n=300, n_voters=n_voters)
    data = votes(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contrasts, "WILD_UP_TO", 0)
        compiled(patch, everywhere=loops)
        same_board(split(data, n_parts), Votes(data))


@pytest.mark.parametrize(
    "options",
    [
        {"ties": "davidson"},
        {"order_effect": True},
        {"ridge": 1.0, "ties": "rao-kupper"},
        {"reference": "m0"},
    ],
    ids=str,
)
def test_every_model_of_ties_can_be_rated_in_parts(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    monkeypatch.setattr(contrasts, "WILD_UP_TO", 0)
    data = votes(random_votes(rng, n=500, n_voters=30))
    same_board(split(data, 3), Votes(data), rel=1e-7, **options)


def test_a_single_voter_in_parts_is_refused_or_warned_of_as_in_one(
    rng: np.random.Generator,
) -> None:
    rows = random_votes(rng, n=300, n_voters=1)
    data = votes([*rows, ("m0", "m1", "model_a", "other")])
    report = rate(split(data, 2))
    assert (report.warnings, report.votes.voters) == (rate(Votes(data)).warnings, 2)
    with pytest.raises(DataError, match="two voters"):
        infer(fit(data), data.merged(), ("voter",), parts=Split(votes(rows), 1))


def test_pairs_with_few_voters_behind_them_are_counted_in_parts(rng: np.random.Generator) -> None:
    new = [("new", f"m{i % 3}", "model_a" if i % 2 else "model_b", f"v{i % 4}") for i in range(24)]
    data = votes([*random_votes(rng, n=900, n_voters=60), *new])
    fitted = fit(data)

    def few(inference: Inference) -> tuple[Any, ...]:
        each = inference.pairs.each
        return tuple(value[each.effective < 15] for value in (each.effective, each.variance))

    ours = few(infer(fitted, data.merged(), ("voter",), parts=Split(data, 3)))
    same = few(infer(fitted, data, ("voter",)))
    assert len(same[0]) > 3
    for one, other in zip(ours, same, strict=True):
        assert one == pytest.approx(other, rel=1e-9)


def test_linear_algebra_of_a_rating_runs_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def noted(work: Callable[..., Any]) -> Callable[..., Any]:
        def beside(*args: Any, **kwargs: Any) -> Any:
            seen.extend(threads())
            return work(*args, **kwargs)

        return beside

    def threads() -> list[int]:
        return [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]

    for module, name in (
        (fitting, "minimise"), (contrasts, "jackknife"), (contrasts, "information_by_cluster"),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, noted(getattr(module, name)))
    data = votes(random_votes(np.random.default_rng(0), n=300, n_models=4, n_voters=30))
    with threadpool_limits(2, "blas"):
        infer(fit(data), data, ("voter",)).ratings()
        assert {*threads()} == {2}
    assert len(seen) >= 3
    assert {*seen} == {1}
