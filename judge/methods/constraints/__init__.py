"""Instructions whose following can be checked without a model (IFEval)."""

from judge.methods.constraints.accuracy import Accuracy, Share, accuracy, accuracy_by_instruction
from judge.methods.constraints.checking import Checked, check
from judge.methods.constraints.instructions import CHECKERS, Instruction, Task, read_task

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
