"""A study whose names, prompts, answers and verdicts' reasons are all hostile."""

import csv
from pathlib import Path

from judge.render.pages import SITE_HEAD
from judge.studies.one_judge import Study, study_judges
from judge.studies.options import StudyOptions
from tests.judge.render.test_markdown import GOLDEN, HOSTILE

GOLDEN_TEXTS = [(GOLDEN / f"{name}.md").read_text() for name in ("everything", "scripts", "maths")]
JUDGE = f"<script>alert('judge')</script>{SITE_HEAD}"
MODELS = ("<img src=x onerror=alert(1)>", 'x" onmouseover="alert(1)')
EXAMPLES = 6


def hostile_study(folder: Path) -> Study:
    """Hold a judge that is always wrong against people, on as many prompts as are shown."""
    side, size = ("model_a", "model_b"), -(-len(HOSTILE) // EXAMPLES)
    votes, verdicts = [], []
    for n in range(EXAMPLES):
        attack = "\n\n".join(HOSTILE[n * size : (n + 1) * size])
        item = {"prompt_id": f"p{n}{SITE_HEAD}", "model_a": MODELS[0], "model_b": MODELS[1]}
        texts = {
            "prompt": attack,
            "response_a": f"{GOLDEN_TEXTS[n % 3]}\n\n{attack}",
            "response_b": attack,
        }
        votes += [item | texts | {"winner": side[0], "voter": f"v{v}"} for v in range(3)]
        verdicts.append(item | {"winner": side[1], "judge": JUDGE, "reason": attack})
    for name, rows in (("votes.csv", votes), ("verdicts.csv", verdicts)):
        with (folder / name).open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    files = (str(folder / "votes.csv"), str(folder / "verdicts.csv"))
    return study_judges(*files, StudyOptions(rounds=40))
