"""Studies by people, as those who rate and those who look on see them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from arena.domain.remarks import CONFIDENCE, LONGEST_COMMENT, Reason
from arena.domain.study import Next, Shown, Standing, StudyPlan, StudyRemarks
from arena.domain.vote import Voter
from arena.guard.limits import Raters
from arena.store import studies
from arena.store.store import Store
from rating.tables.escaping import storable


@dataclass(frozen=True, slots=True)
class Studies:
    """The studies of an arena; its methods block, and raise `UnknownStudyError` of others.

    Attributes
    ----------
    now : callable
        Time now, in UTC.
    raters : Raters
        Who rates now, to bound how many one network may have.
    """

    store: Store
    now: Callable[[], datetime]
    raters: Raters

    def is_any(self) -> bool:
        """Tell whether there is a study."""
        return self.store.read(studies.is_any)

    def standings(self, voter: Voter | None) -> list[Standing]:
        """Say of all studies where somebody stands, the newest first."""
        return [self.standing(name, voter) for name in self.store.read(studies.names)]

    def standing(self, name: str, voter: Voter | None) -> Standing:
        """Say where somebody stands."""
        plan, chosen, done, looked = self.store.read(
            studies.standing, name, voter.id if voter else None, self.now()
        )
        return Standing(plan, chosen.stage, done, chosen.left, done > 0, looked)

    def give(self, name: str, voter: Voter) -> tuple[Next, Shown | None]:
        """Give a rater their next item.

        Raises
        ------
        RatingRefusedError
            If they have looked at the figures.
        BusyError, LimitError
            If their network has as many raters as it may.
        """
        begins = not self.store.read(studies.has_begun, name, voter.id)
        with self.raters.admit(name, voter, begins=begins), self.store.writing() as session:
            given = studies.give(session, name, voter, self.now())
        if given[1] is None:
            self.raters.leave(name, voter.id)
        return given

    def rate(
        self,
        name: str,
        voter: Voter,
        token: int,
        key: str,
        choice: str | Sequence[Sequence[int]],
    ) -> None:
        """Commit a rating: see `arena.store.studies.rate`."""
        with self.store.writing() as session:
            studies.rate(session, name, voter.id, token, key, choice, self.now())
        self.raters.stay(name, voter.id)

    def leave(self, name: str, voter: Voter) -> None:
        """Let others rate what waits for a rater; what they rated stays."""
        with self.store.writing() as session:
            studies.leave(session, name, voter.id)
        self.raters.leave(name, voter.id)

    def rated(self, name: str, voter: Voter, token: int) -> Shown:
        """Read an item that a rater has rated."""
        return self.store.read(studies.rated, name, voter.id, token, self.now())

    def remark(self, name: str, voter: Voter, token: int, remarks: StudyRemarks) -> None:
        """Commit what is said beside a choice, as far as the study asks for it."""
        plan = self.plan(name)
        with self.store.writing() as session:
            studies.remark(session, name, voter.id, token, _fitting(remarks, plan))

    def plan(self, name: str) -> StudyPlan:
        """Read what a study is to be."""
        return self.store.read(studies.plan_of, name)

    def may_look(self, name: str, voter: Voter) -> bool:
        """Note that somebody looks at the figures, unless they have items of their own to rate.

        Whoever has looked can no longer rate.
        """
        with self.store.writing() as session:
            return studies.look(session, name, voter, self.now())


def _fitting(remarks: StudyRemarks, plan: StudyPlan) -> StudyRemarks:
    """Leave out what no form of ours sends."""
    answers = {one.name: one.answers for one in plan.rubric}
    return StudyRemarks(
        {
            side: [reason.value for reason in Reason if reason in some]
            for side, some in remarks.reasons.items()
        },
        storable(remarks.comment.strip())[:LONGEST_COMMENT],
        remarks.confidence if remarks.confidence in CONFIDENCE else None,
        {
            name: remarks.rubric[name]
            for name in answers
            if remarks.rubric.get(name) in answers[name]
        },
    )
