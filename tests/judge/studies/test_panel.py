"""How many independent judges a panel is worth: figures, words, and what does not change them."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import poisson_binom

from judge.studies.options import StudyOptions
from judge.studies.panel import (
    card,
    error_correlations,
    family_of,
    independent_majority,
    ordered,
    study_panel,
)
from rating.errors import DataError
from rating.tables.files import Files
from tests.judge.published import rows
from tests.judge.studies.labels import ends, holds
from tests.judge.studies.panels import (
    HEAD,
    by_people,
    errors_of,
    judged_by_people,
    labelled,
    latent,
    studied,
    true_n_eff,
    written,
)

QUICK = StudyOptions(rounds=100)
GOLDEN = {
    "Vanilla": (6, 323, 0.370, 2.11, (0.521, 0.746, 0.506, 0.539), 0.032),
    "CoT": (6, 323, 0.321, 2.31, (0.503, 0.709, 0.508, 0.505), -0.002),
    "Metrics_Reference": (6, 323, 0.271, 2.55, (0.565, 0.808, 0.559, 0.622), 0.064),
    "Vanilla_2shot": (5, 234, 0.388, 1.96, (0.580, 0.863, 0.543, 0.652), 0.110),
    "GPT-4": (15, 234, 0.533, 1.77, (0.850, 0.897, 0.868, 0.999), 0.132),
    "PaLM2": (8, 234, 0.636, 1.47, (0.682, 0.756, 0.677, 0.851), 0.174),
}
"""By strategy, or by model over its strategies: k, items, mean correlation of errors, n_eff,
accuracy (mean, best, majority, independent), and the gap."""
SHARES = ("mean", "best", "majority", "independent")


def llmbar(published_data: Path, panel: str, unparsed: str) -> list[tuple[str, ...]]:
    """Give verdicts with output_1 first, on the items that all judges of a panel were asked."""
    by_model = panel in ("GPT-4", "PaLM2")
    chosen = [
        row
        for row in rows(published_data / "judge" / "llmbar_swap.parquet")
        if row["llm" if by_model else "strategy"] == panel
    ]
    side = {"1": "model_a", "2": "model_b", "None": unparsed}
    return [
        (
            f"{row['subset']}/{row['i']}",
            "output_1", "output_2", side[row["w_ab"]], side[row["label"]],
            row["strategy" if by_model else "llm"],
        )
        for row in chosen
    ]  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.published
@pytest.mark.parametrize("name", GOLDEN)
def test_panels_on_llmbar_have_the_figures_of_their_table(
    name: str, published_data: Path, tmp_path: Path
) -> None:
    # The table counts what could not be parsed as wrong: as a tie here, which no label is.
    verdicts = llmbar(published_data, name, "tie")
    judges = {row[-1] for row in verdicts}
    asked = {judge: {row[0] for row in verdicts if row[-1] == judge} for judge in judges}
    common = set.intersection(*asked.values())
    panel = studied(tmp_path, [row for row in verdicts if row[0] in common])
    k, items, rho, n_eff, shares, gap = GOLDEN[name]
    one = panel.to_dict()
    assert (one["k"], one["items"]) == (k, items)
    assert one["n_eff"] == pytest.approx(n_eff, abs=0.02)
    assert one["mean_correlation"] == pytest.approx(rho, abs=0.0005 + 1e-9)
    assert [one["accuracy"][share] for share in SHARES] == pytest.approx(shares, abs=0.0005 + 1e-9)
    assert one["gap"] == pytest.approx(gap, abs=0.0005 + 1e-9)


@pytest.mark.published
def test_what_could_not_be_parsed_is_no_error_and_is_counted(
    published_data: Path, tmp_path: Path
) -> None:
    panel = studied(tmp_path, llmbar(published_data, "CoT", ""))
    one = panel.to_dict()
    assert (one["items"], one["items_with_truth"], one["unread"]) == (313, 323, 10)
    assert one["n_eff"] == pytest.approx(2.270, abs=0.001)
    assert {row["judge"]: row["unread"] for row in one["judges"]}["Falcon"] == 3
    assert one["sentences"][-1] == (
        "10 of 1,938 verdicts were not parsed: excluded, not counted as errors. 10 "
        "items of 323 are excluded, because not every judge has a parsed verdict there."
    )


def test_a_panel_worked_out_by_hand() -> None:
    # Errors of three judges on four items, often; most are right on items 0 and 1.
    wrong = np.tile(np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [1, 0, 1]], dtype=bool), (100, 1))
    one = card(errors_of(wrong), QUICK)
    first, second, third = 1 / 3, 1 / 3, -1 / 3  # phi of the 2 x 2 tables
    rho = (first + second + third) / 3
    assert one.mean_correlation.value == pytest.approx(rho)
    assert one.n_eff.value == pytest.approx(3 / (1 + 2 * rho))
    assert (one.mean.value, one.best.value, one.majority.value) == pytest.approx(
        (7 / 12, 3 / 4, 1 / 2)
    )
    p = (0.25, 0.75, 0.75)  # two or three of them right
    right = p[0] * p[1] * (1 - p[2]) * 2 + (1 - p[0]) * p[1] * p[2] + p[0] * p[1] * p[2]
    assert one.independent.value == pytest.approx(right)
    assert one.gap.value == pytest.approx(right - 0.5)


@settings(max_examples=50)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=9))
def test_the_majority_of_independent_judges_is_poisson_binomial(accuracy: list[float]) -> None:
    k, n_right = len(accuracy), poisson_binom(accuracy)
    want = n_right.sf(k // 2) if k % 2 else n_right.sf(k // 2) + n_right.pmf(k // 2) / 2
    assert independent_majority(np.array([accuracy]))[0] == pytest.approx(want, abs=1e-9)


def test_judges_with_a_shared_latent_factor_are_worth_what_it_says() -> None:
    rng = np.random.default_rng(2)
    for loading in (0.3, 0.6, 0.85):
        one = card(errors_of(latent(rng, 4000, [0.3] * 9, loading)), QUICK)
        assert one.n_eff.value == pytest.approx(true_n_eff(0.3, loading, 9), abs=0.2)


def test_a_judge_given_twice_leaves_the_worth_of_a_panel_as_it_is(tmp_path: Path) -> None:
    wrong = latent(np.random.default_rng(3), 2000, [0.3] * 9, 0.75)
    once = card(errors_of(wrong), QUICK)
    twice = card(errors_of(np.column_stack([wrong, wrong[:, 4]])), QUICK)
    assert (once.k, twice.k) == (9, 10)
    assert twice.n_eff.value == pytest.approx(once.n_eff.value, abs=0.05)
    every = card(errors_of(np.column_stack([wrong, wrong])), QUICK)
    assert every.n_eff.value == pytest.approx(once.n_eff.value, abs=1e-9)
    rows = labelled(np.column_stack([wrong, wrong[:, 4]])[:200])
    assert (
        "j4 and j9 err on the same items: one of the two is redundant."
        in studied(tmp_path, rows).to_dict()["warnings"]
    )


def test_other_names_and_other_orders_of_rows_give_the_same_numbers(tmp_path: Path) -> None:
    wrong = latent(np.random.default_rng(5), 300, [0.2, 0.3, 0.35, 0.4], 0.6)
    names = ["gpt-4", "claude", "llama", "qwen"]
    plain = studied(tmp_path, labelled(wrong, names))
    renamed = dict(zip(names, ["delta", "alpha", "omega", "beta"], strict=True))
    rows = [(*row[:-1], renamed[row[-1]]) for row in labelled(wrong, names)]
    np.random.default_rng(1).shuffle(rows)
    other = studied(tmp_path, rows)
    for ours, theirs in zip(*(one.card.to_dict().values() for one in (plain, other)), strict=True):
        assert theirs == pytest.approx(ours, abs=1e-9)
    for ours, theirs in ((plain.by_n_eff, other.by_n_eff), (plain.by_accuracy, other.by_accuracy)):
        assert [renamed[one["judge"]] for one in ours] == [one["judge"] for one in theirs]
    both = plain.to_dict()["correlations"], other.to_dict()["correlations"]
    ours, theirs = ({frozenset((p["a"], p["b"])): p["value"] for p in pairs} for pairs in both)
    for pair, value in ours.items():
        assert theirs[frozenset(renamed[name] for name in pair)] == pytest.approx(value)


def test_sides_turned_round_give_the_same_numbers(tmp_path: Path) -> None:
    turned = {"model_a": "model_b", "model_b": "model_a"}
    wrong = latent(np.random.default_rng(6), 200, [0.3] * 3, 0.5)
    rows = labelled(wrong)
    swapped = [
        (row[0], row[2], row[1], turned[row[3]], turned[row[4]], row[5]) if n % 3 else row
        for n, row in enumerate(rows)
    ]
    assert studied(tmp_path, swapped).card == studied(tmp_path, rows).card


def test_a_panel_of_one_is_worth_one_and_has_no_gap(tmp_path: Path) -> None:
    wrong = np.random.default_rng(7).random((60, 1)) < 0.3
    panel = studied(tmp_path, labelled(wrong))
    one = panel.to_dict()
    assert (one["k"], one["n_eff"], one["mean_correlation"], one["gap"]) == (1, 1.0, None, 0.0)
    assert len({*(one["accuracy"][share] for share in SHARES)}) == 1
    assert panel.headline == "A panel of one judge is equivalent to one judge."
    assert len(panel.sentences) == 1
    assert one["without_family"] == {}


def test_a_judge_without_errors_has_no_correlation_and_is_named(tmp_path: Path) -> None:
    wrong = np.random.default_rng(8).random((80, 3)) < 0.4
    wrong[:, 0] = False
    panel = studied(tmp_path, labelled(wrong))
    assert math.isnan(panel.correlations[0, 1])
    assert panel.card.mean_correlation.value == pytest.approx(panel.correlations[1, 2])
    assert any(text.startswith("j0 errs on none or on all") for text in panel.warnings)
    wrong[:] = False
    nobody = studied(tmp_path, labelled(wrong))
    assert nobody.card.n_eff.value is None
    assert nobody.headline.endswith(
        "because the mean correlation of their errors is not determined."
    )


def test_opposite_coins_and_few_items_are_worth_nothing_that_is_stated(tmp_path: Path) -> None:
    coin = np.random.default_rng(4).random(40) < 0.5
    panel = studied(tmp_path, labelled(np.column_stack([coin, ~coin, np.roll(coin, 1)])))
    assert panel.card.n_eff.value is None
    assert "not estimated, because" in panel.headline
    coins = np.random.default_rng(5).random((200, 3)) < 0.5
    assert studied(tmp_path, labelled(coins)).card.n_eff.value is None
    few = studied(tmp_path, labelled(np.random.default_rng(20).random((19, 3)) < 0.3)).to_dict()
    assert few["n_eff"] is None


def test_the_number_of_judges_is_from_one_to_all_of_them(tmp_path: Path) -> None:
    good = np.random.default_rng(6).random((60, 3)) < 0.2
    one = studied(tmp_path, labelled(good)).card
    lower, upper = ends(one.n_eff)
    assert 1 <= lower <= (one.n_eff.value or 0) <= upper <= 3
    same = np.repeat([[False, True, True]], 30, axis=0)
    assert studied(tmp_path, labelled(same)).card.best.lower is not None


def test_whom_to_add_next_is_the_most_independent_or_the_most_helpful_judge() -> None:
    rng = np.random.default_rng(9)
    best = rng.random(3000) < 0.1
    copy = best ^ (rng.random(3000) < 0.01)
    other, third = rng.random((2, 3000)) < np.array([[0.2], [0.25]])
    errors = errors_of(np.column_stack([copy, best, other, third]))
    by_n_eff = ordered(errors, "n_eff")
    assert by_n_eff[0]["judge"] == "j1"
    assert {one["judge"] for one in by_n_eff[1:3]} == {"j2", "j3"}
    assert by_n_eff[-1]["judge"] == "j0"
    assert by_n_eff[-1]["n_eff"] == pytest.approx(card(errors, QUICK).n_eff.value)
    by_accuracy = ordered(errors, "accuracy")
    assert by_accuracy[0]["accuracy"] == pytest.approx(1 - best.mean())
    assert by_accuracy[-1]["accuracy"] == pytest.approx(card(errors, QUICK).majority.value)


def test_without_a_family_the_panel_is_that_of_the_others(tmp_path: Path) -> None:
    wrong = latent(np.random.default_rng(10), 300, [0.3] * 4, 0.5)
    rows = labelled(wrong, ["gpt-4", "openai/gpt-3.5", "claude-2", "Llama3"])
    panel = studied(tmp_path, rows)
    assert {j.name: j.family for j in panel.judges}["openai/gpt-3.5"] == "gpt"
    assert {name: one.k for name, one in panel.without_family.items()} == {
        "claude": 3,
        "gpt": 2,
        "llama": 3,
    }
    alone = studied(tmp_path, [row for row in rows if "gpt" not in row[-1]])
    assert panel.without_family["gpt"] == alone.card


def test_a_column_says_who_is_family(tmp_path: Path) -> None:
    wrong = latent(np.random.default_rng(10), 60, [0.3] * 3, 0.5)
    family = {"j0": "north", "j1": "south", "j2": "north"}
    rows = [(*row, family[row[-1]]) for row in labelled(wrong)]
    files = written(tmp_path / "v.csv", rows, f"{HEAD},family")
    assert study_panel([files], None, QUICK).without_family.keys() == {"north", "south"}
    rows[0] = (*rows[0][:-1], "south")
    files = written(tmp_path / "v.csv", rows, f"{HEAD},family")
    with pytest.raises(DataError, match="'j0' is of the families 'north' and 'south'"):
        study_panel([files], None, QUICK)


def planted(tmp_path: Path, wrong: np.ndarray) -> tuple[str, tuple[str, ...]]:
    panel = studied(tmp_path, labelled(wrong), rounds=400)
    return panel.headline, panel.sentences


def test_the_sentences_say_what_is_planted(tmp_path: Path) -> None:
    rng = np.random.default_rng(11)
    independent = rng.random((600, 7)) < 0.3
    headline, sentences = planted(tmp_path, independent)
    assert headline.startswith("These 7 judges are equivalent to ")
    assert "The panel is right more often than" in sentences[1]
    assert "we do not find that shared errors cost the panel anything" in sentences[2]
    assert "Added one by one, " in sentences[3]
    together = latent(rng, 600, [0.1, 0.4, 0.4, 0.4, 0.4], 0.9)
    _, sentences = planted(tmp_path, together)
    assert "j0 alone is right more often than the panel" in sentences[1]
    assert "shared errors cost the panel +" in sentences[2]
    assert "Adding judges one by one never beats j0 alone" in sentences[3]
    opposite = np.zeros((600, 3), dtype=bool)
    opposite[np.arange(600), np.arange(600) % 3] = True  # never two at once
    _, sentences = planted(tmp_path, opposite)
    assert "less often than this panel" in sentences[2]
    _, sentences = planted(tmp_path, independent[:, :2])
    assert "needs three judges" in sentences[2]


def test_nothing_is_claimed_from_few_prompts(tmp_path: Path) -> None:
    wrong = np.random.default_rng(20).random((19, 3)) < 0.3
    headline, sentences = planted(tmp_path, wrong)
    assert headline == (
        "The independent judges that these 3 are worth cannot be estimated from 19 prompts."
    )
    assert len(sentences) == 1


def test_no_interval_of_a_claim_holds_zero_for_alike_judges(tmp_path: Path) -> None:
    wrong = latent(np.random.default_rng(12), 400, [0.3] * 3, 0.99)
    _, sentences = planted(tmp_path, wrong)
    assert "We do not find a difference between the panel and" in sentences[1]


def test_people_are_the_truth_by_their_majority(tmp_path: Path) -> None:
    votes = [
        ("a", "x", "y", "model_a", "v1"),
        ("a", "x", "y", "model_a", "v2"),
        ("a", "x", "y", "model_b", "v3"),
        ("b", "x", "y", "model_b", "v1"),
        ("b", "y", "x", "model_b", "v2"),  # split: a tie
        ("c", "x", "y", "model_b", "v1"),
    ]
    cast = written(tmp_path / "votes.csv", votes, "item_id,model_a,model_b,winner,voter")
    verdicts = [
        (item, "x", "y", winner, judge)
        for judge, winners in {
            "owl": ("model_a", "tie", "model_a"),
            "jay": ("model_b", "model_a", "model_b"),
        }.items()
        for item, winner in zip("abc", winners, strict=True)
    ]
    verdicts.append(("d", "x", "y", "tie", "owl"))  # on an item that nobody voted on
    given = written(tmp_path / "v.csv", verdicts, "item_id,model_a,model_b,winner,judge")
    panel = study_panel([given], cast, QUICK)
    assert [judge.without for judge in panel.judges] == [0, 0]
    assert {judge.name: judge.accuracy.value for judge in panel.judges} == pytest.approx(
        {"owl": 2 / 3, "jay": 1 / 3}
    )
    assert panel.n_ties == 1
    assert "On 1 item of these the truth is a tie" in panel.sentences[1]
    assert panel.to_dict()["against"] == "people"
    third = study_panel([given], cast, StudyOptions(rounds=100, voters="v3"))
    assert (third.n_items, [judge.accuracy.value for judge in third.judges]) == (1, [1.0, 0.0])


def test_files_without_judges_are_judges_by_their_names_and_methods_are_judges(
    tmp_path: Path,
) -> None:
    wrong = np.random.default_rng(13).random((40, 2)) < 0.3
    rows = labelled(wrong, ["owl", "jay"])
    bare = HEAD.removesuffix(",judge")
    apart = [
        written(tmp_path / f"{name}.csv", [r[:-1] for r in rows if r[-1] == name], bare)
        for name in ("owl", "jay")
    ]
    assert [j.name for j in study_panel(apart, None, QUICK).judges] == ["jay", "owl"]
    methods = [(*row[:-1], "gpt-4", f"method-{row[-1]}") for row in rows]
    files = written(tmp_path / "m.csv", methods, f"{HEAD},method")
    panel = study_panel([files], None, QUICK)
    assert [j.name for j in panel.judges] == ["gpt-4, method-jay", "gpt-4, method-owl"]
    assert {j.family for j in panel.judges} == {"gpt"}
    assert panel.card == study_panel(apart, None, QUICK).card


def test_both_orders_of_a_case_count_once(tmp_path: Path) -> None:
    head = f"{HEAD},order,battle_id"
    rows = [
        ("a", "x", "y", "model_a", "model_a", "owl", "ab", "1"),
        ("a", "x", "y", "model_b", "model_a", "owl", "ba", "1"),
        ("a", "x", "y", "tie", "model_a", "owl", "both", "1"),
        ("b", "x", "y", "model_b", "model_b", "owl", "ab", "2"),
        ("b", "x", "y", "model_b", "model_b", "owl", "ba", "2"),
        ("b", "x", "y", "model_b", "model_b", "owl", "both", "2"),
    ]
    panel = study_panel([written(tmp_path / "v.csv", rows, head)], None, QUICK)
    assert (panel.n_items, panel.card.majority.value) == (2, 0.5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: [(*r[:4], "", r[5]) for r in rows], "The column 'label' .* holds no label"),
        (lambda rows: [(*r[:4], "left", r[5]) for r in rows], "Unknown labels .*'left'"),
        (
            lambda rows: [*rows, (*rows[0][:4], "model_b", "j9")],
            "The item of 'x' and 'y' has two labels that differ",
        ),
        (
            lambda rows: [r for r in rows if (r[0] < "i2") == (r[5] == "j0")],
            "No item has a parsed verdict of all 2 judges: 'j0'",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_value(
    change: object, message: str, tmp_path: Path
) -> None:
    rows = labelled(np.random.default_rng(14).random((30, 2)) < 0.3)
    with pytest.raises(DataError, match=message):
        studied(tmp_path, change(rows))  # type: ignore[operator]


def test_without_votes_or_labels_it_is_said_what_is_missing(tmp_path: Path) -> None:
    files = written(tmp_path / "v.csv", [("a", "x", "y", "model_a")], HEAD.rsplit(",", 2)[0])
    with pytest.raises(DataError, match="name votes of people by --votes, or give the right"):
        study_panel([files], None, QUICK)
    with pytest.raises(DataError, match="'expert_\\*' selects votes of people"):
        study_panel([files], None, StudyOptions(voters="expert_*"))


def test_labels_are_read_from_another_column_and_in_other_words(tmp_path: Path) -> None:
    rows = [("a", "x", "y", "one", "two", "owl"), ("b", "x", "y", "two", "two", "owl")]
    files = written(tmp_path / "v.csv", rows, HEAD.replace("label", "gold"))
    files = Files(
        files.paths, (("label", "gold"),), labels=(("one", "model_a"), ("two", "model_b"))
    )
    assert study_panel([files], None, QUICK).card.majority.value == 0.5


words = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@settings(max_examples=200)
@given(words)
def test_every_name_has_a_family_that_its_provider_and_method_do_not_change(name: str) -> None:
    family = family_of(name)
    assert bool(family) == bool(name)
    if name.strip("/, \t") and "/" not in name and "," not in name and name == name.strip():
        assert family_of(f"provider/{name}") == family
        assert family_of(f"{name}, method") == family


@settings(max_examples=20, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["model_a", "model_b", "tie", "both_bad", ""]), st.booleans()),
        min_size=4,
        max_size=20,
    )
)
def test_whatever_verdicts_are_read_all_are_counted_once(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[str, bool]]
) -> None:
    folder = tmp_path_factory.mktemp("panel")
    rows = [
        (f"i{item}", "x", "y", winner, "model_a" if right else "tie", "owl")
        for item, (winner, right) in enumerate(drawn)
    ]
    unread = sum(not winner for winner, _ in drawn)
    if unread == len(drawn):
        with pytest.raises(DataError):
            studied(folder, rows)
        return
    panel = studied(folder, rows)
    (judge,) = panel.judges
    assert (judge.n_verdicts, judge.n_unread) == (len(drawn), unread)
    assert panel.n_items == len(drawn) - unread
    right = sum(
        winner != "" and (winner == "model_a" if of_a else winner in ("tie", "both_bad"))
        for winner, of_a in drawn
    )
    assert panel.card.majority.value == pytest.approx(right / panel.n_items)


def test_correlations_are_those_of_numpy() -> None:
    wrong = latent(np.random.default_rng(15), 500, [0.2, 0.5, 0.7], 0.4)
    matrix = error_correlations(errors_of(wrong))
    np.fill_diagonal(matrix, 1.0)
    np.testing.assert_allclose(matrix, np.corrcoef(wrong.T.astype(float)))


def test_votes_give_a_lower_figure_of_independent_judges_and_no_gap(tmp_path: Path) -> None:
    """Five independent judges, and people, are right in 0.75: by two votes that is seen.

    Taking one vote for the truth, errors correlate by (1/4 - 1/16) / (1 - 1/16) = 1/5 and the
    five are worth 5 / 1.8; with the errors of people taken off they are worth 5.
    """
    votes, verdict = by_people(np.random.default_rng(1), 600, 2, [0.75] * 5)
    double = judged_by_people(tmp_path, votes, verdict)
    single = judged_by_people(tmp_path, votes[:, :1], verdict)
    assert single.card.n_eff.value == pytest.approx(5 / 1.8, abs=0.3)
    assert single.headline.startswith("With votes taken as the truth, these 5 judges are ")
    assert "a lower bound" in single.headline
    assert single.headline.endswith("errors of people count as shared errors.")
    assert single.card.at_most.value is None
    assert not any("an upper bound" in text for text in single.sentences)
    assert holds(double.card.at_most, 5)
    assert ends(double.card.at_most)[0] < 5
    assert any("an upper bound" in text for text in double.sentences)
    for panel in (single, double):
        assert ends(panel.card.n_eff)[1] < 5
        assert panel.card.gap.value is panel.card.independent.value is None
        assert not any("shared errors" in text for text in panel.sentences)
        assert panel.to_dict()["gap"] is None


def test_several_votes_of_one_person_are_not_those_of_two(tmp_path: Path) -> None:
    votes, verdict = by_people(np.random.default_rng(2), 60, 1, [0.75] * 3)
    judged_by_people(tmp_path, votes, verdict)
    file = tmp_path / "votes.csv"
    head, *lines = file.read_text(encoding="utf-8").splitlines()
    file.write_text("\n".join([head, *lines, *lines]) + "\n", encoding="utf-8")
    panel = study_panel([Files((str(tmp_path / "verdicts.csv"),))], Files((str(file),)), QUICK)
    assert panel.card.at_most.value is None


def test_people_who_hardly_agree_give_no_upper_figure(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    _, verdict = by_people(rng, 100, 2, [0.75] * 3)
    panel = judged_by_people(tmp_path, rng.choice([-1, 1], (100, 2)), verdict)
    assert panel.card.at_most.value is None
    assert panel.card.n_eff.value is not None
