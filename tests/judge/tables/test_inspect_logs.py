"""Logs that Inspect wrote are answers and marks to a judge; without Inspect a sentence says so.

Inspect asks for older libraries than the tests' own: what reads its files runs in an environment
that ``make peers`` makes.
"""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from judge.labels.accuracy import names_in_runs
from judge.scoring.annotated import judge_score
from judge.tables.agent_runs import read_agent_runs
from judge.tables.cases import read_cases, read_responses
from judge.tables.inspect_logs import plain_log, rows_in, runs_of
from judge.tables.items import read_answers
from rating.errors import DataError
from rating.tables.counts import read_votes
from rating.tables.files import Files
from tests import inspect_samples
from tests.inspect_samples import message, sample
from tests.rating.tables.sources import messages_of

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


def written(path: Path, plain: dict[str, Any]) -> Path:
    """Let Inspect write a log of plain data."""
    from inspect_ai.log import EvalLog, EvalPlan, EvalSample, EvalSpec, write_eval_log

    spec = {"created": "2026-11-25T12:00:00+00:00", "dataset": {}, "config": {}} | plain["eval"]
    halted = {"traceback": "", "traceback_ansi": ""}
    samples = [
        EvalSample.model_validate(
            {name: value for name, value in one.items() if name != "events"}
            | ({"error": one["error"] | halted} if one.get("error") else {})
        )
        for one in plain["samples"]
    ]
    log = EvalLog(
        eval=EvalSpec.model_validate(spec),
        plan=EvalPlan.model_validate(plain["plan"]),
        samples=samples,
        status="success",
    )
    write_eval_log(log, str(path))
    return path


def agent_log(folder: Path, model: str, answers: list[str], **settings: Any) -> Path:
    """Let Inspect run an agent that multiplies, once in vain, and submits its answer."""
    from inspect_ai import Task, eval
    from inspect_ai.agent import react
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import includes
    from inspect_ai.tool import Tool, tool

    @tool  # type: ignore[untyped-decorator]
    def times() -> Tool:
        async def execute(a: int, b: int) -> str:
            """Multiply.

            Args:
                a: A number.
                b: Another one.
            """
            return str(a * b)

        return execute

    def called(name: str, arguments: dict[str, Any]) -> ModelOutput:
        output = ModelOutput.for_tool_call(model, name, arguments, content=f"I {name}.")
        output.usage = ModelUsage(total_tokens=3, total_cost=0.125)
        return output

    outputs = [
        called(name, arguments)
        for answer in answers
        for name, arguments in (
            ("times", {"a": "six", "b": 7}),
            ("times", {"a": 6, "b": 7}),
            ("submit", {"answer": answer}),
        )
    ]
    samples = [Sample(id=f"q{n}", input="What is 6 times 7?", target="42") for n in (1, 2)]
    (log,) = eval(
        Task(dataset=samples, scorer=includes(), name="sums"),
        model=get_model(f"mockllm/{model}", custom_outputs=outputs),
        solver=react(prompt="Use tools.", tools=[times()]),
        log_dir=str(folder),
        display="none",
        max_samples=1,
        **settings,
    )
    assert log.status == "success", log.error
    return Path(log.location)


@pytest.mark.skipif(HAS_INSPECT, reason="Inspect is there")
def test_without_inspect_a_sentence_says_what_to_install(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    with ZipFile(path, "w") as log:
        log.writestr("header.json", "{}")
    for read in (lambda: read_responses([path]), lambda: read_agent_runs(path)):
        with pytest.raises(DataError, match=r"pip install 'blind-arena\[inspect\]'"):
            read()


def test_gold_runs_are_no_logs_of_inspect(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    path.write_bytes(b"PK")
    with pytest.raises(DataError, match="says of no run that it is the right choice"):
        read_agent_runs(path, gold=True)


def test_a_log_holds_no_votes(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    path.write_bytes(b"PK\0")
    for source in (path, Files((path,), where="x = 1")):
        with pytest.raises(DataError, match="log of Inspect, no votes"):
            read_votes(source)


class TestWithInspect:
    pytestmark = with_inspect

    def test_scores_are_those_of_all_samples_with_none_after_an_error(
        self, tmp_path: Path
    ) -> None:
        """In a process of its own, so that Inspect was not imported before."""
        answers = [("0", "C"), (HOSTILE * 9, "P"), ("", "I"), ("out", None), ("8", "N")]
        path = log(tmp_path, "org/one", answers)
        words = "from judge.tables.inspect_logs import scores_in; import json, pathlib, sys; "
        words += "print(json.dumps(scores_in(pathlib.Path(sys.argv[1]))))"
        done = subprocess.run(
            [sys.executable, "-c", words, str(path)], capture_output=True, text=True, check=True
        )
        rows = json.loads(done.stdout)
        assert [row.get("score") for row in rows] == [1.0, 0.5, 0.0, None, 0.0]
        assert {(row["model"], row["repeat"]) for row in rows} == {("org/one", 1)}
        assert rows[0]["item"] == "sums: 0"

    def test_samples_are_answers_with_marks(self, tmp_path: Path) -> None:
        answers = [("0", "C"), (HOSTILE, "P"), ("", "I"), ("out", None), ("8", "N"), ("?", "X")]
        path = log(tmp_path, "org/one", answers)
        rows, words = messages_of(rows_in, path)
        left_out = "1 halted by an error, 1 without an answer"
        assert words == [f"{path} is read as Inspect's log; rows excluded: {left_out}"]
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
        assert [case.models for case in cases] == [("one", "two")] * 3
        assert cases[1].case.response_b == "two says"
        assert (cases[1].case.prompt[-1].content, cases[2].case.reference) == (HOSTILE, "4")
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

    def test_runs_of_a_log_are_those_of_its_plain_data(self, tmp_path: Path) -> None:
        limit = {"type": "message", "limit": 4}
        halted: dict[str, Any] = {"error": {"message": "out"}, "output": {}}
        plain = inspect_samples.log(
            "lab/one",
            [
                sample(1, "7"),
                sample(2, inspect_samples.HOSTILE, [], epoch=2, store={"k": 1}, files=["a"]),
                sample(3, "", [], limit=limit, scores=None),
                sample(4, "28", [], input=[message("user", "4 · 7?")], model_usage={}),
                sample(5, "35", **halted),
            ],
            task_args_passed={"attempts": 2},
        )
        path = written(tmp_path / "one.eval", plain)
        read, expected = runs_of([(path, plain_log(path))]), runs_of([(path, plain)])
        entries = [sorted(json.loads(json.dumps(one.entries))) for one in (read, expected)]
        assert entries[0] == entries[1]
        assert len(read.entries) == 4
        assert read.left_out == expected.left_out == {"halted by an error": 1}
        del expected.uncarried["events"]  # the log that is written here has none
        assert +read.uncarried == +expected.uncarried

    @pytest.mark.filterwarnings("ignore")  # of what Inspect itself runs on
    def test_an_agent_that_inspect_ran_is_a_run(self, tmp_path: Path) -> None:
        one = agent_log(tmp_path, "slate", ["42", "41"] * 2, epochs=2)
        other = agent_log(tmp_path, "basalt", ["42"] * 4, epochs=2)
        items, words = messages_of(read_agent_runs, Files((one, other)))
        assert words[0].endswith("(2 files) is read as runs of Inspect's log; rows excluded: none")
        assert "events" in words[1]
        expected = [("q1 (1)", "q1"), ("q1 (2)", "q1"), ("q2 (1)", "q2"), ("q2 (2)", "q2")]
        assert sorted((item.item, item.prompt_id) for item in items) == expected
        response = items[0].responses[1]
        assert response.model == "mockllm/slate · react"
        assert response.turns[0].content.endswith("42")
        run = response.run
        assert run is not None
        assert (run.cost, run.marks) == (0.375, {"includes": 1.0})
        assert run.seconds is not None
        assert [(step.kind, step.name) for step in run.steps] == [
            ("system", ""), ("message", ""), ("tool_call", "times"), ("error", "times"),
            ("message", ""), ("tool_call", "times"), ("tool_result", "times"),
        ]  # fmt: skip
        assert json.loads(run.steps[5].arguments) == {"a": 6, "b": 7}
        assert names_in_runs(items) == []
