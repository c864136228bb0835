"""The GitHub action, the hooks of pre-commit and the page for coding agents do what they say."""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.arena.test_gate_command import write
from tests.command import Command
from tests.deploy.tools import DEPLOY, ENVIRONMENT, ROOT, assert_content

ACTION = DEPLOY / "action" / "action.yml"
BASH = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c")
"""As GitHub runs the lines of a step."""
WORSE = "compare old.csv new.csv"
OPEN = "compare new.csv old.csv --margin 0.1 --require equivalent"
GATE = "gate --candidate umber --incumbent basalt --margin 40 votes.csv"


def loaded(path: Path) -> Any:
    return YAML(typ="safe", pure=True).load(path.read_text("utf-8"))


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    for name in ("new.csv", "old.csv"):
        shutil.copy(ROOT / "docs/examples" / name, tmp_path)
    write(tmp_path, 0.6)
    return tmp_path


def ran(folder: Path, words: list[str], **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words,
        cwd=folder,
        env=os.environ | ENVIRONMENT | env,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def acted(folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run the action's script; its summary is ``summary.md``."""
    (script,) = (
        step["run"] for step in loaded(ACTION)["runs"]["steps"] if "COMMAND" in step.get("env", {})
    )
    return ran(folder, [*BASH, script], **{"GITHUB_STEP_SUMMARY": "summary.md"} | env)


def test_the_action_is_one_of_github_s_and_its_lines_are_clean() -> None:
    assert_content("check-jsonschema", "--builtin-schema", "vendor.github-actions", ACTION)
    for step in loaded(ACTION)["runs"]["steps"]:
        if "run" in step:
            assert "${{" not in step["run"], "what a user gives is no part of the script"
            done = subprocess.run(
                ["shellcheck", "--shell=bash", "-"],
                input=step["run"],
                env=ENVIRONMENT,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stdout


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("command", "inconclusive", "code", "head"),
    [
        (WORSE, "pass", 1, "### Fails: old scores lower than new."),
        ("compare new.csv old.csv", "fail", 0, "### Passes: new scores higher than old."),
        (OPEN, "pass", 0, "### Inconclusive: new scores higher than old."),
        (OPEN, "fail", 3, "### Inconclusive: new scores higher than old."),
        (f"{GATE} --looks 2 --planned 100000", "fail", 3, "### Inconclusive: umber may or may"),
        (GATE, "fail", 0, "### Passes: umber is better than basalt."),
    ],
)
def test_the_action_writes_the_summary_and_fails_unless_the_requirement_is_shown(
    runs: Path, command: str, inconclusive: str, code: int, head: str
) -> None:
    done = acted(runs, COMMAND=command, INCONCLUSIVE=inconclusive)
    assert done.returncode == code, done.stderr
    assert (runs / "summary.md").read_text("utf-8").startswith(head)


def test_a_command_is_split_as_in_a_shell_over_all_of_its_lines(runs: Path) -> None:
    (runs / "new.csv").rename(runs / "a new.csv")
    command = (
        "compare 'a new.csv' old.csv\n--margin 0.5 --require not-worse\n--where \"score < '2'\"\n"
    )
    done = acted(runs, COMMAND=command, INCONCLUSIVE="fail")
    assert done.returncode == 0, done.stderr
    assert "Required: not worse" in (runs / "summary.md").read_text("utf-8")


def test_what_a_user_gives_is_never_run_by_the_shell(runs: Path) -> None:
    done = acted(runs, COMMAND="compare $(touch x) ; touch y", INCONCLUSIVE="fail")
    assert done.returncode == 2
    assert not {"x", "y"} & {path.name for path in runs.iterdir()}


@pytest.mark.parametrize(("hook", "words"), [("arena-gate", GATE), ("arena-compare", OPEN)])
def test_the_hooks_of_pre_commit_run_the_commands(runs: Path, hook: str, words: str) -> None:
    hooks = {one["id"]: one for one in loaded(ROOT / ".pre-commit-hooks.yaml")}
    assert {(one["language"], one["pass_filenames"]) for one in hooks.values()} == {
        ("python", False)
    }
    arguments = words.split()[1:]
    done = ran(runs, [*hooks[hook]["entry"].split(), *arguments])
    assert done.returncode == (0 if hook == "arena-gate" else 3), done.stderr


def test_the_commands_of_the_page_for_agents_run(command: Command, runs: Path) -> None:
    page = (ROOT / "SKILL.md").read_text("utf-8")
    front = page.split("---\n")[1]
    assert re.match(r"name: [a-z-]+\ndescription: .{1,1024}\n\Z", front)
    (block,) = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    codes = [command(*shlex.split(line)[1:]).returncode for line in block.splitlines()]
    assert codes == [0] * 6
    shown = set(re.findall(r"`(arena \w+)`", page))
    assert {" ".join(line.split()[:2]) for line in block.splitlines()} == shown


def test_the_rows_of_exit_codes_are_those_of_the_commands(command: Command, runs: Path) -> None:
    page = (ROOT / "SKILL.md").read_text("utf-8")
    assert re.findall(r"^\| (\d) \|", page, re.MULTILINE) == ["0", "1", "2", "3"]
    lines = ("compare new.csv old.csv", WORSE, "compare new.csv", OPEN)
    assert [command(*line.split()).returncode for line in lines] == [0, 1, 2, 3]
