from .budget import Price as Price
from .face import JudgeRun as JudgeRun
from .face import StudyOfJudges as StudyOfJudges
from .face import Verdicts as Verdicts
from .face import read_cases as read_cases
from .face import run as run
from .face import study as study
from .methods import method as method
