"""Logs that Inspect wrote are answers and marks to a judge; without Inspect a sentence says so.

Inspect asks for older libraries than the tests' own: what reads its files runs in an environment
that ``make peers`` makes.
"""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from judge.scoring.annotated import judge_score
from judge.tables.cases import read_cases, read_responses
from judge.tables.inspect_logs import rows_in
from judge.tables.items import read_answers
from rating.errors import DataError
from rating.tables.counts import read_votes
from rating.tables.files import Files
from rating.tables.peers import noticing

HAS_INSPECT = importlib.util.find_spec("inspect_ai") is not None
with_inspect = [
    pytest.mark.slow,
    pytest.mark.skipif(not HAS_INSPECT, reason="Inspect is not in this environment: make peers"),
]
HOSTILE = 'שלום\u202e "x",\n\t=1+1 👩\u200d🚀 ' + "long " * 20_000


def log(
    folder: Path, model: str, answers: list[Any], scorers: tuple[str, ...] = ("match",)
) -> Path:
    """Let Inspect write a log: questions in text and in messages, one of them with an error."""
    from inspect_ai.log import (
        EvalConfig,
        EvalDataset,
        EvalError,
        EvalLog,
        EvalSample,
        EvalSpec,
        write_eval_log,
    )
    from inspect_ai.model import ChatMessageSystem, ChatMessageUser, ModelOutput
    from inspect_ai.scorer import Score

    talk = [ChatMessageSystem(content="Be brief."), ChatMessageUser(content=HOSTILE)]
    samples = []
    for n, (answer, value) in enumerate(answers):
        halted = EvalError(message="out", traceback="", traceback_ansi="")
        samples.append(
            EvalSample(
                id=n,
                epoch=1,
                input=talk if n == 1 else f"What is {n} + {n}?",
                target=str(2 * n),
                output=ModelOutput.from_content(model, answer),
                scores={name: Score(value=value) for name in scorers} if value is not None else {},
                error=halted if value is None else None,
            )
        )
    spec = EvalSpec(
        created="2026-11-25T12:00:00+00:00",
        task="sums",
        dataset=EvalDataset(),
        model=model,
        config=EvalConfig(),
    )
    path = folder / f"{model.replace('/', '-')}.eval"
    write_eval_log(EvalLog(eval=spec, samples=samples, status="success"), str(path))
    return path


@pytest.mark.skipif(HAS_INSPECT, reason="Inspect is there")
def test_without_inspect_a_sentence_says_what_to_install(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    path.write_bytes(b"PK")
    with pytest.raises(DataError, match=r"pip install '\.\[inspect\]'"):
        read_responses([path])


def test_a_log_holds_no_votes(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    path.write_bytes(b"PK\0")
    for source in (path, Files((path,), where="x = 1")):
        with pytest.raises(DataError, match="log of Inspect, no votes"):
            read_votes(source)


class TestWithInspect:
    pytestmark = with_inspect

    def test_samples_are_answers_with_marks(self, tmp_path: Path) -> None:
        answers = [("0", "C"), (HOSTILE, "P"), ("", "I"), ("out", None), ("8", "N"), ("?", "X")]
        path = log(tmp_path, "org/one", answers)
        words: list[str] = []
        with noticing(words.append):
            rows = rows_in(path)
        left_out = "1 halted by an error, 1 without an answer"
        assert words == [f"{path} is read as Inspect's log; rows left out: {left_out}"]
        assert [row["id"] for row in rows] == ["0", "1", "4", "5"]
        assert [row["score"] for row in rows] == [1.0, 0.5, 0.0, None]
        assert {row["judge"] for row in rows} == {"match"}
        assert rows[1]["response"] == HOSTILE
        assert rows[1]["prompt"] == [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": HOSTILE},
        ]
        assert rows[2]["reference"] == "8"

    def test_two_logs_are_pairs_for_a_judge(self, tmp_path: Path) -> None:
        paths = [
            log(tmp_path, model, [("0", "C"), (f"{model} says", "C"), ("4", "I")])
            for model in ("one", "two")
        ]
        cases = read_cases(paths)
        assert [(case.model_a, case.model_b) for case in cases] == [("one", "two")] * 3
        assert cases[1].case.response_b == "two says"
        assert cases[1].case.prompt[-1].content == HOSTILE
        assert cases[2].case.reference == "4"
        assert {*read_answers(paths)} == {"one", "two"}
        assert len(read_responses([Files((tmp_path,))])) == 6

    def test_marks_of_one_scorer_are_averaged_by_model(self, tmp_path: Path) -> None:
        log(tmp_path, "one", [("0", "C"), ("2", "I"), ("4", 1), ("6", True)])
        result = judge_score(Files((tmp_path,)), method="marks")
        assert [(row["model"], row["n"], row["score"]) for row in result["models"]] == [
            ("one", 4, 0.75)
        ]

    def test_of_several_scorers_one_is_chosen(self, tmp_path: Path) -> None:
        path = log(tmp_path, "one", [("0", "C"), ("2", "I")], ("match", "model graded"))
        assert "score" not in rows_in(path)[0]
        chosen = Files((path,), columns=(("score", "model graded"),))
        assert judge_score(chosen, method="marks")["models"][0]["score"] == 0.5

    def test_a_damaged_log_is_refused_with_its_path(self, tmp_path: Path) -> None:
        path = log(tmp_path, "one", [("0", "C")])
        path.write_bytes(path.read_bytes()[:200])
        with pytest.raises(DataError, match=r"Inspect cannot read its log .*one\.eval"):
            read_responses([path])
