"""Votes between an answer that follows instructions and one that does not."""

from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit

from judge.ifeval import CHECKERS, Task, read_task
from judge.studies.gold import (
    GoldVote,
    InstructedVote,
    ReadVote,
    check_votes,
    read_votes_with_texts,
    study_instructed,
)
from judge.tables.cases import read_tasks
from rating.errors import DataError
from rating.outcome import Outcome
from tests.judge.studies.labels import holds

PROMPT = "Name two fruits. No commas, at least 3 words."
TASK = read_task(
    {
        "prompt": PROMPT,
        "instruction_id_list": ["punctuation:no_comma", "length_constraints:number_words"],
        "kwargs": [{}, {"num_words": 3, "relation": "at least"}],
    }
)
TASKS = {PROMPT: TASK}
BOTH, COMMA, SHORT = "Apples and pears.", "Apples, pears, and plums.", "Apples!"
COMMAS, WORDS = TASK.instructions[0].id, TASK.instructions[1].id


def vote(a: str, b: str, choice: Outcome, voter: str = "u", task: Task = TASK) -> ReadVote:
    return ReadVote(voter, task.prompt, a, b, choice)


def test_who_alone_follows_is_known_by_instruction_and_in_all() -> None:
    a, b, tie, _ = Outcome
    read, unread = check_votes(
        [
            vote(BOTH, COMMA, b, "1"),
            vote(SHORT, BOTH, b, "2"),
            vote(SHORT, COMMA, a, "3"),
            vote(BOTH, BOTH + " Yes.", a, "4"),
            vote(COMMA, BOTH, tie, "5"),
            ReadVote("6", "another prompt", BOTH, COMMA, a),
        ],
        TASKS,
    )
    assert unread == 0
    assert [one.right for one, _ in read] == [a, b, tie, tie, b]
    assert [dict(kinds) for _, kinds in read] == [
        {COMMAS: a},
        {WORDS: b},
        {COMMAS: a, WORDS: b},
        {},
        {COMMAS: b},
    ]
    study = study_instructed(read)
    gold, plain = study.gold, study.to_dict()
    assert (plain["follower"], plain["alike"], plain["prompts"]) == (1, 2, 1)
    assert (gold.votes, gold.right, gold.undecided, gold.level_pairs) == (3, 1, 1, 2)
    assert gold.wrong.value == pytest.approx(1 / 3)
    by_kind = {id: (one.value, one.n) for id, one in study.by_kind.items()}
    assert [*by_kind.items()] == [(COMMAS, (1 / 3, 3)), (WORDS, (0.5, 2))]
    assert "(3 voters, 1 prompt)" in study.sentences[0]


def test_what_cannot_be_checked_is_counted_and_in_no_share() -> None:
    french = read_task(
        {
            "prompt": "Say it in French.",
            "instruction_id_list": ["language:response_language"],
            "kwargs": [{"language": "fr"}],
        }
    )
    votes = [vote("42", "Il fait beau et nous sommes contents.", Outcome.A, task=french)]
    read, unread = check_votes(votes, {french.prompt: french})
    assert (read, unread) == ([], 1)
    study = study_instructed(read, unread)
    assert (study.to_dict()["unread"], study.gold.wrong.value) == (1, None)
    assert study.sentences[0].startswith("No vote compares")


def test_a_voters_first_vote_on_a_prompt_counts() -> None:
    votes = [vote(BOTH, COMMA, Outcome.A), vote(BOTH, COMMA, Outcome.B)]
    study = study_instructed(check_votes(votes, TASKS)[0])
    assert (study.gold.votes, study.gold.wrong.value, study.by_kind[COMMAS].n) == (1, 0.0, 1)
    assert study.sentences[0].endswith(
        "0% (0–98) of 1 vote prefer the one that does not, 100% the one that does, and 0% "
        "neither (1 voter, 1 prompt)."
    )


def cast(
    rng: np.random.Generator,
    kinds: dict[str, float],
    *,
    voters: int,
    prompts: int,
    each: int,
    spread: float = 0.5,
    taste: float = 0.0,
) -> list[InstructedVote]:
    """Let voters prefer the violator at the log-odds of its kind, more or less by who and what."""
    of_voter, of_prompt = rng.normal(0, spread, voters), rng.normal(0, spread, prompts)
    ids = [*kinds]
    of_kind = rng.integers(len(ids), size=prompts)
    votes: list[InstructedVote] = []
    for voter in range(voters):
        for prompt in rng.choice(prompts, min(each, prompts), replace=False):
            id, gap = ids[of_kind[prompt]], rng.uniform(-2, 2)
            right = Outcome.A if rng.random() < 0.5 else Outcome.B
            log_odds = kinds[id] + taste * gap + of_voter[voter] + of_prompt[prompt]
            choice = right.swapped() if rng.random() < expit(log_odds) else right
            lengths = (100, round(100 * 2**gap))
            gold = GoldVote(
                f"v{voter}",
                f"p{prompt}",
                right,
                choice,
                *(lengths if right is Outcome.A else lengths[::-1]),
            )
            votes.append((gold, {id: right}))
    return votes


def test_what_voters_were_planted_to_notice_is_recovered_by_kind_and_length() -> None:
    rng = np.random.default_rng(1)
    planted = {COMMAS: 0.0, WORDS: -1.5, "detectable_format:json_format": -3.0}
    study = study_instructed(
        cast(rng, planted, voters=150, prompts=200, each=100, spread=0.0, taste=0.5)
    )
    gaps = rng.uniform(-2, 2, 100_000)
    for id, one in study.by_kind.items():
        truth = expit(planted[id] + 0.5 * gaps).mean()
        assert one.value == pytest.approx(truth, abs=0.03)
    taste = study_instructed(
        cast(rng, {WORDS: -1.0}, voters=150, prompts=200, each=60, spread=0.0, taste=0.5)
    ).gold.taste
    assert taste is not None
    assert taste.value == pytest.approx(0.5, abs=0.08)


@pytest.mark.slow
@pytest.mark.parametrize(("voters", "prompts"), [(40, 200), (120, 60), (60, 100)])
def test_intervals_by_kind_cover_other_voters_and_prompts(voters: int, prompts: int) -> None:
    rng, spread, runs = np.random.default_rng(voters), 0.6, 300
    planted = {COMMAS: 0.0, WORDS: -1.5}
    effects = rng.normal(0, spread * np.sqrt(2), 400_000)
    truths = {id: float(expit(level + effects).mean()) for id, level in planted.items()}
    covered = dict.fromkeys(planted, 0)
    for _ in range(runs):
        votes = cast(rng, planted, voters=voters, prompts=prompts, each=20, spread=spread)
        for id, one in study_instructed(votes).by_kind.items():
            covered[id] += holds(one, truths[id])
    assert all(0.92 <= n / runs <= 0.985 for n in covered.values()), covered


def test_files_that_hold_no_votes_or_no_instructions_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "file.jsonl"
    file.write_text('{"prompt": "x", "voter": "u", "winner": "left"}', encoding="utf-8")
    with pytest.raises(DataError, match="no column 'instruction_id_list'"):
        read_tasks(file)
    with pytest.raises(DataError, match="no column 'response_a'"):
        read_votes_with_texts(file)


def test_every_instruction_has_words() -> None:
    from arena.domain.battle import KINDS

    assert {*KINDS} == {*CHECKERS}
