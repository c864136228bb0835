"""Published methods of judging: how each asks, and how it reads."""

from judge.methods.alpaca_eval import AlpacaEval
from judge.methods.arena_hard import ArenaHard
from judge.methods.checklist import Checklist, ChecklistWriter, unanswered, written
from judge.methods.pairwise import Pairwise
from judge.methods.rubric import Rubric
from judge.methods.wildbench import WildBenchReward, WildBenchScore, margined

__all__ = [
    "AlpacaEval",
    "ArenaHard",
    "Checklist",
    "ChecklistWriter",
    "Pairwise",
    "Rubric",
    "WildBenchReward",
    "WildBenchScore",
    "margined",
    "unanswered",
    "written",
]
