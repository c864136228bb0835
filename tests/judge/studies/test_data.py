"""Votes and verdicts of the same items: what is matched, which way round, and what is refused."""

from pathlib import Path

import duckdb
import numpy as np
import pytest

from arena.boards.fitted import votes_of
from arena.domain.vote import Choice
from arena.store.store import Store
from judge.case import Case, Message
from judge.studies.data import StudyData, judge_of, read_study, repetition
from judge.studies.rows import REPEATED, VOTED_AGAIN
from rating.errors import DataError
from rating.tables.columns import UNLABELLED
from tests.arena.store.battles import MODELS, NOW, ballot, ready
from tests.rating.tables.sources import as_many

VOTES = """prompt_id,model_a,model_b,winner,voter
p1,flint,basalt,model_a,ada
p1,basalt,flint,model_b,bob
p2,basalt,flint,tie,ada
p2,basalt,quartz,both_bad,bob
"""
VERDICTS = """prompt_id,model_a,model_b,winner,judge
p1,basalt,flint,model_a,owl
p2,flint,basalt,model_a,owl
p2,basalt,quartz,,owl
p3,basalt,flint,tie,owl
"""


class Files:
    """Writes a file of votes and one of verdicts, and reads the two."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(
        self,
        votes: str = VOTES,
        verdicts: str = VERDICTS,
        *,
        voters: str | None = None,
        by: str | None = None,
    ) -> StudyData:
        names = []
        for name, text in (("votes.csv", votes), ("verdicts.csv", verdicts)):
            path = self.folder / name
            path.write_text(text, encoding="utf-8")
            names.append(str(path))
        return read_study(*names, voters=voters, by=by)


@pytest.fixture
def study(tmp_path: Path) -> Files:
    return Files(tmp_path)


def labels(data: StudyData) -> list[tuple[str, str, str, int]]:
    """What people said: the prompt, side A, side B, and the label."""
    named = []
    for item, label in zip(data.people.item, data.people.label, strict=True):
        a, b = (data.items.models[model] for model in data.items.pairs[item])
        named.append((data.prompts[data.items.prompt[item]], a, b, int(label)))
    return named


def test_both_sides_are_turned_to_those_of_the_item(study: Files) -> None:
    assert labels(study()) == [
        ("p1", "basalt", "flint", -1),
        ("p1", "basalt", "flint", -1),
        ("p2", "basalt", "flint", 0),
        ("p2", "basalt", "quartz", 0),
    ]


def test_who_stood_on_the_left_is_turned_with_the_sides(study: Files) -> None:
    assert study().people.first.tolist() == [-1, 1, 1, 1]


def test_items_are_a_prompt_and_an_unordered_pair_where_there_is_no_item_id(study: Files) -> None:
    data = study()
    assert (data.keyed_by, data.items.n, data.items.n_prompts) == ("prompt and pair", 4, 3)
    rows = [own.tolist() for own in data.source_rows]
    assert rows == [[1, 3, 4, -1], [1, 2, 3, 4]], "the first of each item"


def test_an_item_id_parts_what_prompt_and_pair_do_not(study: Files) -> None:
    columns = "item_id,prompt_id,model_a,model_b,winner\n"
    votes = columns + "p1-t1,p1,x,y,model_a\np1-t2,p1,x,y,model_b\n"
    verdicts = columns + "p1-t1,p1,y,x,model_b\np1-t2,p1,x,y,tie\n"
    data = study(votes, verdicts)
    assert (data.keyed_by, data.items.n, data.items.n_prompts) == ("item_id", 2, 1)
    assert data.people.label.tolist() == [1, -1]
    assert data.judges[0].verdicts.label.tolist() == [1, 0]


def test_battles_are_matched_by_their_id_where_prompts_were_typed(study: Files) -> None:
    votes = "battle_id,prompt_id,model_a,model_b,winner\nb1,,x,y,model_a\nb2,,y,x,tie\n"
    verdicts = "battle_id,prompt_id,model_a,model_b,winner\nb2,h2,y,x,model_a\nb1,h1,x,y,tie\n"
    data = study(votes, verdicts)
    assert (data.keyed_by, data.items.n, data.items.n_prompts) == ("battle_id", 2, 2)
    assert data.people.item.tolist() == data.judges[0].verdicts.item.tolist()[::-1]


TEXTS = ("Why is basalt black?", "Is flint hard?")
HASHES = [Case((Message("user", text),), "").prompt_id[:16] for text in TEXTS]
BY = "Votes and verdicts are matched by "


def rows_of(head: str, *names: str) -> str:
    rows = [f"{name},{pair}" for name, pair in zip(names, ("x,y,model_a", "y,x,tie"), strict=True)]
    return "\n".join([f"{head},model_a,model_b,winner", *rows])


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(
    ("ours", "theirs", "by"),
    [
        (("question_id", "q1", "q2"), ("prompt_id", "q1", "q3"), ""),
        (("item_id,prompt_id", "a,q1", "b,q2"), ("item_id,prompt_id", "1,q1", "2,q3"), "prompt"),
        (("prompt_id,question_id", "1,q1", "2,q2"), ("prompt_id", "q1", "q3"), "question_id of"),
        (("item_id", "q1", "q2"), ("prompt_id", "q1", "q3"), "item_id of"),
        (("item_id", "q1", "q2"), ("battle_id", "q1", "q3"), "item_id of"),
        (("item_id,prompt_id", "q1,", "q2,"), ("item_id,prompt_id", "q1,p", "q3,p"), ""),
        (("prompt", *TEXTS), ("prompt_id", HASHES[0], "h"), "prompt text and pair"),
        (("question_id,prompt", f"1,{TEXTS[0]}", "2,?"), ("prompt", *TEXTS), "prompt text"),
    ],
)
def test_an_item_is_the_same_whatever_its_id_is_called(
    study: Files, ours: tuple[str, ...], theirs: tuple[str, ...], by: str, *, swapped: bool
) -> None:
    tables = (rows_of(*ours), rows_of(*theirs))
    data = study(*(tables[::-1] if swapped else tables))
    shared = {*data.people.item.tolist()} & {*data.judges[0].verdicts.item.tolist()}
    assert (data.items.n, len(shared), data.items.n_prompts) == (3, 1, 3 - ("q1,p" in theirs))
    note = [warning for warning in data.warnings if BY in warning]
    if swapped and " of" in by:
        by = f"{theirs[0]} of votes"
    assert [by in one for one in note] == [True] * bool(by)


def test_a_prompt_that_is_matched_by_its_text_keeps_the_name_that_votes_give_it(
    study: Files,
) -> None:
    data = study(rows_of("prompt", *TEXTS), rows_of("prompt_id", HASHES[0], "h"))
    assert sorted(data.prompts) == sorted([*TEXTS, "h"])


def test_rows_without_the_id_are_excluded_and_counted(study: Files) -> None:
    data = study(rows_of("item_id", "i", ""), rows_of("item_id", "i", "j"))
    assert (data.people.n, data.judges[0].verdicts.n, data.items.n) == (1, 2, 2)
    assert "1 vote excluded: without item_id." in data.warnings
    assert any(text.startswith("2 items have no prompt: each is") for text in data.warnings)


def test_an_unread_verdict_is_counted_and_is_no_tie(study: Files) -> None:
    judge = study().judges[0]
    assert (judge.name, judge.n_unread) == ("owl", 1)
    assert judge.verdicts.label.tolist() == [1, -1, 0]
    assert judge.verdicts.first.tolist() == [1, -1, 1], "pairs stand both ways: A is first"


def test_both_orders_go_apart_and_their_verdict_into_agreement(study: Files) -> None:
    verdicts = (
        "prompt_id,model_a,model_b,winner,order,preference\n"
        "p1,flint,basalt,model_a,ab,0.9\n"
        "p1,flint,basalt,model_b,ba,0.2\n"
        "p1,flint,basalt,tie,both,0.55\n"
    )
    judge = study(verdicts=verdicts).judges[0]
    assert (judge.verdicts.label.tolist(), judge.verdicts.first.tolist()) == ([0], [0])
    assert judge.in_orders.label.tolist() == [-1, 1]
    assert judge.in_orders.first.tolist() == [-1, 1]
    assert judge.in_orders.probability == pytest.approx([0.1, 0.8])


def test_an_unread_verdict_over_both_orders_counts_once(study: Files) -> None:
    verdicts = (
        "prompt_id,model_a,model_b,winner,order\n"
        "p1,flint,basalt,model_a,ab\np1,flint,basalt,,ba\np1,flint,basalt,,both\n"
    )
    judge = study(verdicts=verdicts).judges[0]
    assert (judge.verdicts.n, judge.in_orders.n, judge.n_unread) == (0, 1, 1)


RUN = """battle_id,prompt_id,model_a,model_b,winner,judge,method,order,status
b1,p1,flint,basalt,model_a,owl,pairwise,ab,read
b1,p1,flint,basalt,model_b,owl,pairwise,ba,read
b1,p1,flint,basalt,tie,owl,pairwise,both,read
b2,p2,basalt,flint,model_a,owl,pairwise,ba,read
b3,p2,basalt,quartz,,owl,pairwise,ab,unparsed
"""
"""A judge's run that asked some cases in one order."""


def test_a_case_asked_in_one_order_agrees_by_that_one(study: Files) -> None:
    judge = study(verdicts=RUN).judges[0]
    assert (judge.verdicts.item.tolist(), judge.verdicts.label.tolist()) == ([0, 1], [0, 1])
    assert (judge.in_orders.n, judge.n_unread) == (3, 1)


def test_another_judge_s_rows_of_both_leave_single_orders_alone(study: Files) -> None:
    verdicts = (
        "prompt_id,model_a,model_b,winner,judge,order\n"
        "p1,flint,basalt,model_a,crow,ab\np1,flint,basalt,tie,owl,both\n"
        "p1,flint,basalt,model_a,owl,ab\n"
    )
    judges = study(verdicts=verdicts).judges
    assert [(judge.name, judge.verdicts.n) for judge in judges] == [("crow", 1), ("owl", 1)]


def test_a_judge_s_run_in_place_of_votes_is_one_vote_a_case(study: Files) -> None:
    data = study(votes=RUN)
    assert labels(data) == [("p1", "basalt", "flint", 0), ("p2", "basalt", "flint", 1)]
    assert "2 votes excluded: one order of a case judged in both." in data.warnings
    assert "1 vote excluded: no verdict: unparsed." in data.warnings


def test_sides_that_never_vary_say_nothing_of_the_order(study: Files) -> None:
    data = study(verdicts="prompt_id,model_a,model_b,winner\np1,basalt,flint,model_a\n")
    assert data.judges[0].in_orders.first.tolist() == [0]
    assert any("order of answers on the judge is unknown" in w for w in data.warnings)


def test_each_judge_has_its_own_verdicts(study: Files) -> None:
    data = study(verdicts=VERDICTS + "p1,basalt,flint,model_b,crow\n")
    assert [(judge.name, judge.verdicts.n) for judge in data.judges] == [("crow", 1), ("owl", 3)]
    assert judge_of(data, "owl") is data.judges[1]
    with pytest.raises(DataError, match="several judges: choose one of 'crow', 'owl' with --ju"):
        judge_of(data, None)


TWICE = VERDICTS.splitlines()[1]


@pytest.mark.parametrize(
    ("columns", "rows", "judges"),
    [
        ("method", ("pairwise", "rubric"), {"owl, pairwise": 1, "owl, rubric": 1}),
        ("template", (9 * "a", 9 * "b"), {"owl, aaaaaaaa": 1, "owl, bbbbbbbb": 1}),
        ("method,template", ("m,a", "m,b"), {"owl, a": 1, "owl, b": 1}),
        ("battle_id,voter", ("1,", "1,"), {"owl": 1}),
        ("item_id", ("i", "i"), {"owl": 1}),
        ("run", ("1", "2"), {"owl": 2}),
        ("battle_id,run", ("1,1", "1,2"), {"owl": 2}),
        ("item_id,method", ("i,rubric", "i,m"), {"owl, m": 1, "owl, rubric": 1}),
    ],
)
def test_what_one_judge_was_asked_in_two_ways_is_not_averaged(
    study: Files, columns: str, rows: tuple[str, str], judges: dict[str, int]
) -> None:
    verdicts = [f"{VERDICTS.splitlines()[0]},{columns}", *(f"{TWICE},{row}" for row in rows)]
    data = study(verdicts="\n".join(verdicts), by="pair")
    for part in (data, data.groups["basalt / flint"]):
        assert {judge.name: judge.verdicts.n for judge in part.judges} == judges
    note = {
        1: f"1 verdict excluded: {REPEATED}.",
        2: "Repeated verdicts of one judge on the same item, counted: 1.",
    }
    assert [one for one in data.warnings if "verdict" in one and "order" not in one] == [
        *filter(None, [note.get(judges.get("owl", 0))])
    ]


@pytest.mark.parametrize(
    ("column", "ids", "n", "note"),
    [
        ("battle_id", "bbc", 2, f"1 vote excluded: {VOTED_AGAIN}."),
        ("item_id", "bbc", 3, "Repeated by the same voter on the same item: 1 vote. Only"),
        ("battle_id", "bcd", 3, ""),
    ],
)
def test_a_vote_that_is_twice_in_the_file_is_counted(
    study: Files, column: str, ids: str, n: int, note: str
) -> None:
    verdicts = f"{column},model_a,model_b,winner\nb,y,x,tie\n"
    votes = "".join(f"{one},x,y,tie,{voter}\n" for voter in ("ada", "") for one in ids)
    data = study(f"{column},model_a,model_b,winner,voter\n{votes}", verdicts)
    assert data.people.n == n + 3  # those of nobody in particular may be of several people
    assert [one[: len(note)] for one in data.warnings if "vote" in one] == [note] * bool(note)


def test_voters_are_chosen_by_a_pattern(study: Files) -> None:
    assert study(voters="a*").people.n == 2
    with pytest.raises(
        DataError, match=r"No voter of .* matches 'expert_\*'; there are 'ada', 'bob'"
    ):
        study(voters="expert_*")
    with pytest.raises(DataError, match="does not name its voters"):
        study("prompt_id,model_a,model_b,winner\np1,flint,basalt,tie\n", voters="a*")


def test_voters_who_are_not_named_are_each_somebody_else(study: Files) -> None:
    votes = "prompt_id,model_a,model_b,winner\n" + 3 * "p1,flint,basalt,tie\n"
    assert len(set(study(votes).people.rater.tolist())) == 3


def test_groups_take_the_column_of_either_file(study: Files) -> None:
    lines = VOTES.splitlines()
    votes = "\n".join([lines[0] + ",kind", *(f"{row},{row[:2]}" for row in lines[1:])])
    groups = study(votes, by="kind").groups
    assert {name: (one.people.n, one.judges[0].n_unread) for name, one in groups.items()} == {
        "p1": (2, 0),
        "p2": (2, 1),
    }
    assert groups["p1"].items.models == ("basalt", "flint")
    assert [*study(votes.replace(",p2", ","), by="kind").groups] == ["p1", UNLABELLED]
    assert study(VOTES, VERDICTS, by="judge").groups["owl"].people.n == 4
    with pytest.raises(DataError, match="There is no column 'colour'"):
        study(by="colour")


def test_groups_are_of_the_two_models_where_no_column_is_called_pair(study: Files) -> None:
    groups = study(by="pair").groups
    assert {name: one.people.n for name, one in groups.items()} == {
        "basalt / flint": 3,
        "basalt / quartz": 1,
    }
    assert [one.judges[0].n_unread for one in groups.values()] == [0, 1]


def test_the_votes_of_a_database_are_read(study: Files, database_url: str) -> None:
    store = Store(database_url)
    store.hold_lease()
    store.register(MODELS, NOW)
    for number, choice in enumerate((Choice.A, Choice.TIE, Choice.B, Choice.SKIP)):
        store.cast(ballot(ready(store, f"b{number}"), choice))
    store.close()
    verdicts = study.folder / "verdicts.csv"
    head = "prompt_id,model_a,model_b,winner\n"
    verdicts.write_text(head + "p1,quartz,basalt,model_a\n", encoding="utf-8")
    data = read_study(votes_of(database_url), str(verdicts))
    assert (data.people.label.tolist(), data.voters_known) == ([1, 0, -1], True)
    assert data.judges[0].verdicts.label.tolist() == [-1]


def test_lengths_are_compared_in_doublings_of_side_a(study: Files) -> None:
    votes = "prompt_id,model_a,model_b,winner,len_a,len_b\np1,flint,basalt,tie,100,400\n"
    data = study(votes)
    gap = data.items.gaps["length"]
    assert gap[data.people.item[0]] == pytest.approx(2)
    assert np.isnan(gap).sum() == data.items.n - 1


def test_lengths_are_those_of_the_first_vote_and_else_those_of_a_verdict(study: Files) -> None:
    head = "prompt_id,model_a,model_b,winner,len_a,len_b\n"
    votes = "p1,flint,basalt,tie,100,400\np1,basalt,flint,tie,100,100\np2,basalt,flint,tie,,\n"
    verdicts = "p1,basalt,flint,tie,50,800\np2,flint,basalt,tie,100,800\n"
    data = study(head + votes, head + verdicts)
    prompts = [data.prompts[number] for number in data.items.prompt]
    gaps = dict(zip(prompts, data.items.gaps["length"].tolist(), strict=True))
    assert gaps == pytest.approx({"p1": 2, "p2": 3})


def test_texts_are_measured_where_there_are_no_lengths(study: Files) -> None:
    votes = (
        "prompt_id,model_a,model_b,winner,response_a,response_b\n"
        'p1,basalt,flint,tie,"# A\n- **b**",plain\n'
    )
    data = study(votes)
    item = data.people.item[0]
    assert data.items.gaps["length"][item] == pytest.approx(np.log2(11 / 5))
    assert data.items.gaps["format"][item] == 2  # a heading, a list item and bold: 1 + 3 to 1


def test_the_order_of_rows_leaves_no_trace_in_the_items(study: Files) -> None:
    head, *rows = VOTES.splitlines()
    data, turned = study(), study("\n".join([head, *rows[::-1]]))
    assert data.items.pairs.tolist() == turned.items.pairs.tolist()
    assert sorted(labels(data)) == sorted(labels(turned))


def test_a_file_of_parquet_is_read_like_one_of_text(study: Files) -> None:
    expected = study()
    table = study.folder / "votes.parquet"
    source = str(study.folder / "votes.csv")
    duckdb.read_csv(source).write_parquet(str(table))
    data = read_study(str(table), str(study.folder / "verdicts.csv"))
    assert labels(data) == labels(expected)


def test_many_rows_are_read_as_few_are(study: Files) -> None:
    few, few_of_a_run = study(), study(votes=RUN)
    with as_many():
        many, many_of_a_run = study(), study(votes=RUN)
    assert labels(many) == labels(few)
    assert many.people.rater.tolist() == few.people.rater.tolist()
    assert many.judges[0].verdicts.label.tolist() == few.judges[0].verdicts.label.tolist()
    assert labels(many_of_a_run) == labels(few_of_a_run)
    assert many_of_a_run.warnings == few_of_a_run.warnings


def texts_of(shift: int, n: int = 12) -> str:
    rows = [f"{row + shift},What is {row} + {row}?,x,y,tie,own" for row in range(n)]
    return "\n".join(["item_id,prompt,model_a,model_b,winner,judge", *rows, ""])


def test_a_prompt_that_is_written_another_way_joins_by_its_id(study: Files) -> None:
    votes = texts_of(0).replace(",judge", ",who").replace(",own", ",ada")
    data = study(votes=votes, verdicts=texts_of(0).replace("What is", "Tell me:"))
    assert data.items.n == 12
    assert not [text for text in data.warnings if "the prompt of another item" in text]
    one = texts_of(0, 20).replace("4,What is 4 + 4", "4,What is 3 + 3").replace("14,", "x,")
    data = study(
        votes=texts_of(0, 20).replace(",judge", ",who").replace(",own", ",ada"), verdicts=one
    )
    (warning,) = [text for text in data.warnings if "the prompt of another item" in text]
    assert "Of 19 items that are in both by item_id, 1 have the prompt of another" in warning


@pytest.mark.parametrize(
    ("votes", "verdicts", "message"),
    [
        (
            "model_a,model_b,winner\nx,y,tie\n",
            VERDICTS,
            "Neither an item_id, a prompt_id nor .*votes.csv' has none and .*verdicts.csv' "
            "has prompt_id 'p1'. Give both files the same item_id",
        ),
        (
            rows_of("item_id,prompt_id", "q1,a", "q2,b"),
            rows_of("item_id,prompt_id", f"1,{'long' * 99}", "2,d"),
            "by item_id, 'q1' in .*votes.csv' and '1' in .*verdicts.csv'; by prompt and pair, 'a' "
            f"with 'x' and 'y' in .*votes.csv' and '{'long' * 20}' with 'x' and 'y' in ",
        ),
        (
            texts_of(0),
            texts_of(1),
            "Of 11 items that are in both by item_id, 11 have the prompt of another item in the "
            "other file, such as row 2 of .*votes.csv' and row 1 of .*verdicts.csv'",
        ),
        (VOTES.replace("tie", "draw"), VERDICTS, "Unknown labels in the winner: 'draw'"),
        (VOTES.replace("tie", ""), VERDICTS, "The winner is missing or blank in 1 vote"),
        (VOTES, VERDICTS.replace("basalt", "Basalt"), "characters that look alike"),
        (VOTES, VERDICTS.replace("owl", "", 1), "No judge is named in 1 verdict of .*, and"),
        (
            VOTES,
            "prompt_id,model_a,model_b,winner,order\np1,flint,basalt,tie,first\n",
            "The order of .* is 'first': give ab, ba or both",
        ),
        (
            VOTES,
            "prompt_id,model_a,model_b,winner,preference\np1,flint,basalt,tie,1.5\n",
            r"A preference of .* is 1\.5",
        ),
        (
            "item_id,model_a,model_b,winner\ni,x,y,tie\n",
            "item_id,model_a,model_b,winner\ni,x,z,tie\n",
            "Item 'i' in .*verdicts.csv' is on other models",
        ),
    ],
)
def test_what_cannot_be_matched_is_quoted(
    study: Files, votes: str, verdicts: str, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        study(votes, verdicts)


def test_repetitions_are_numbered_within_their_key() -> None:
    assert repetition(np.array([5, 5, 2, 5])).tolist() == [0, 1, 0, 2]
