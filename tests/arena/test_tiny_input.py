"""What the commands print of next to no data: no figure that means nothing, and few warnings."""

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from rating.sentences import MOST_WARNINGS
from tests.command import invoke

MODELS = ("w", "x", "y", "z")
OUTCOMES = ("model_a", "model_b", "tie")
Vote = tuple[str, str, str, str, str]


def drawn(rng: random.Random, n: int, voters: int, models: int = 4) -> list[Vote]:
    """Draw votes by coin: prompt, side A, side B, winner, voter."""
    sides = [rng.sample(MODELS[:models], 2) for _ in range(n)]
    return [
        (f"p{i}", a, b, rng.choice(OUTCOMES), f"v{i % voters}") for i, (a, b) in enumerate(sides)
    ]


def decided(votes: list[Vote], outcome: Callable[[str, str, str], str]) -> list[Vote]:
    return [(p, a, b, outcome(a, b, winner), v) for p, a, b, winner, v in votes]


def ahead(a: str, b: str, winner: str) -> str:
    """Let one model win whenever it appears."""
    return "model_a" if a == "w" else "model_b" if b == "w" else winner


INPUTS: dict[str, Callable[[random.Random], list[Vote]]] = {
    "two votes": lambda rng: decided(drawn(rng, 2, 1, 2), ahead),
    "one voter": lambda rng: drawn(rng, 12, 1),
    "ties alone": lambda rng: decided(drawn(rng, 12, 3), lambda *_: "tie"),
    "one always wins": lambda rng: decided(drawn(rng, 30, 5), ahead),
    "eleven votes": lambda rng: drawn(rng, 11, 4),
    "four items": lambda rng: [
        (*vote[:4], voter) for vote in drawn(rng, 4, 1, 3) for voter in ("u", "v")
    ],
    "sixteen voters": lambda rng: drawn(rng, 32, 16),
}
COMMANDS = [
    "rate votes.csv", "rate votes.csv --by category", "rate votes.csv --cluster voter",
    "race votes.csv --between w,x", "plan votes.csv", "attack votes.csv --runs 1",
    "gate --candidate w --incumbent x --margin 20 votes.csv",
    "voters votes.csv", "value votes.csv", "mix votes.csv --mix c=.5,d=.5",
    "factors votes.csv --by scaffold,tool", "rank rankings.csv", "reasons votes.csv",
    "study judge votes.csv one.csv", "study judge votes.csv three.csv",
    "study judge votes.csv one.csv --format md", "study judge votes.csv one.csv --format html",
    "study panel three.csv --votes votes.csv", "study panel three.csv",
    "newcomer --votes votes.csv --verdicts one.csv --model w",
    "judge score one.csv --method pairwise", "judge score annotations.csv",
    "judge score three.csv --method pairwise", "study scores benchmarks.csv votes.csv",
    "gold gold.csv", "probe prompts votes.csv --by category", "probe judge runs.csv",
]  # fmt: skip
JSON = [f"{one} --format json" for one in COMMANDS if "--format" not in one]

FORBIDDEN = {
    "no width": r"± ?0(\.0+)?(?![.\d])"
    r"|(?<![\d.,+−-])([+−-]?\d+(?:\.\d+)?)(?: to |–)\2(?![.\d]| %)",
    "two percent signs": r"% \([^()]*\) ?%",
    "a share below 0": r"[−-]\d+(\.\d+)? ?%|\([−-]\d+ ?(–|to) ?[\d.]+ ?%?\) of",
    "any 0 new accounts": r"\bany 0\b",
    "a value of Python": r"\b((None|nan|inf|True|False)\b|np\.\w+|array\(|dtype)|\[['\d]",
}
SENTENCE = re.compile(r'(?<=")[^"\n<>]* [^"\n<>]*(?=")|(?<=>)[^<>]* [^<>]*(?=<)')
"""Of JSON or HTML."""
QUICK = ("two votes", "ties alone", "four items")
FEW_PROMPTS = ("two votes", "one voter", "ties alone", "eleven votes", "four items")
ONE_SENTENCE = ("attack", "study judge", "study panel")


def written(folder: Path, votes: list[Vote]) -> None:
    """Write the votes, verdicts on the same items, and the other tables that commands take."""
    rng = random.Random(2)
    first = {vote[:3]: vote[3] for vote in reversed(votes)}
    verdicts = [
        (item, judge, order, winner if judge == "owl" else rng.choice(OUTCOMES))
        for judge in ("owl", "elk", "jay")
        for item, winner in first.items()
        for order in ("ab", "ba")
    ]
    tables = {
        "votes": [
            "item_id,prompt_id,model_a,model_b,winner,voter,category,cost_a,cost_b,scaffold_a,"
            "scaffold_b,tool_a,tool_b,reasons_a,reasons_b,voter_intent",
            *(
                f"{p}{a}{b},{p},{a},{b},{winner},{voter},{'cd'[i % 2]},.1,.2,s{a in 'wx'},"
                f"s{b in 'wx'},t{a in 'wy'},t{b in 'wy'},useful,,{('ask', 'test')[i % 2]}"
                for i, (p, a, b, winner, voter) in enumerate(votes)
            ),
        ],
        "rankings": [
            "voter,ranking",
            *(
                f"{v},{b} > {a}" if winner == "model_b" else f"{v},{a} {sign(winner)} {b}"
                for _, a, b, winner, v in votes
            ),
        ],
        "annotations": [
            "instruction,generator_1,generator_2,preference,output_1,output_2",
            *(
                f"{p},{a},{b},{(1, 2, 1.5)[OUTCOMES.index(winner)]},one,two"
                for p, a, b, winner, _ in votes
            ),
        ],
        "gold": ["voter,prompt,winner,gold", *(f"{v},{p},{w},A>B" for p, _, _, w, v in votes)],
        "benchmarks": ["model,one,two", *(f"{m},{i},{i * 7 % 5}" for i, m in enumerate(MODELS))],
    }
    head = "item_id,prompt_id,model_a,model_b,winner,judge,order"
    rows = {
        judge: [
            f"{p}{a}{b},{p},{a},{b},{winner},{judge},{order}"
            for (p, a, b), who, order, winner in verdicts
            if who == judge
        ]
        for judge in ("owl", "elk", "jay")
    }
    tables |= {
        "one": [head, *rows["owl"]],
        "three": [head, *rows["owl"], *rows["elk"], *rows["jay"]],
    }
    runs = [f"{run},{row}" for run in range(3) for row in rows["owl"]]
    tables["runs"] = [f"run,{head}", *runs]
    for name, lines in tables.items():
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def sign(winner: str) -> str:
    return "=" if winner == "tie" else ">"


def faults(text: str) -> list[str]:
    """Give what no output may hold."""
    seen = [
        f"{what}: {line.strip()}"
        for what, pattern in FORBIDDEN.items()
        for line in text.splitlines()
        if re.search(pattern, line)
    ]
    warned = sum(line.startswith("! ") for line in text.splitlines())
    seen += [f"{warned} warnings"] if warned > MOST_WARNINGS + 1 else []
    for table in re.findall(r"^┏.*?^└[^\n]*", text, re.MULTILINE | re.DOTALL):
        cells = [row.split("│")[2:-1] for row in table.splitlines() if row.startswith("│")]
        if not any(cell.strip(" –") for row in cells for cell in row):
            seen.append(f"a table of dashes: {table}")
    return seen


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in INPUTS],
)
def test_little_data_give_no_figure_without_meaning(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, INPUTS[name](random.Random(1)))
    monkeypatch.chdir(tmp_path)
    wrong = []
    for words in (*COMMANDS, *([] if name in QUICK else JSON)):
        result = invoke(words.split(), columns=200)
        text = result.stdout + result.stderr
        assert result.returncode in (0, 2, 3), (words, text)
        is_text = "--format" not in words or words.endswith("md")
        texts = text if is_text else "\n".join(SENTENCE.findall(text))
        wrong += [f"arena {words}: {fault}" for fault in faults(texts)]
        if words.startswith(ONE_SENTENCE) and is_text and name in FEW_PROMPTS:
            assert "┏" not in text, words
            assert "! " not in text, words
    assert not wrong, "\n".join(wrong)
