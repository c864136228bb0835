"""Published methods of judging: how each asks, and how it reads."""

from judge.methods.checklist import (
    Checklist,
    ChecklistWriter,
    Rubric,
    WildBenchReward,
    WildBenchScore,
    margined,
    unanswered,
    written,
)
from judge.methods.named import PAIRS, SINGLES, Named, method
from judge.methods.pairwise import AlpacaEval, ArenaHard, Pairwise

__all__ = [
    "PAIRS",
    "SINGLES",
    "AlpacaEval",
    "ArenaHard",
    "Checklist",
    "ChecklistWriter",
    "Named",
    "Pairwise",
    "Rubric",
    "WildBenchReward",
    "WildBenchScore",
    "margined",
    "method",
    "unanswered",
    "written",
]
