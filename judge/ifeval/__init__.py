"""Instructions whose following can be checked without a model (IFEval)."""

from judge.ifeval.checks import (
    CHECKERS,
    Accuracy,
    Checked,
    Instruction,
    Share,
    Task,
    accuracy,
    accuracy_by_instruction,
    check,
    read_task,
)

__all__ = [
    "CHECKERS",
    "Accuracy",
    "Checked",
    "Instruction",
    "Share",
    "Task",
    "accuracy",
    "accuracy_by_instruction",
    "check",
    "read_task",
]
