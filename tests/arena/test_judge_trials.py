"""A judge's run amid faults, killed with kill -9 and begun again: the server counts."""

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest
from sqlmodel import select

from arena.store.store import Store
from arena.store.tables import JudgementClaimRow, JudgementRow
from tests.command import csv_rows
from tests.faulty_judge import FaultyJudge, good_and_poor
from tests.faulty_server import FaultyServer, faulty_server
from tests.postgresql import new_database
from tests.process import Process, until

ROSTER = """
[[models]]
id = "judge"
name = "Judge"
endpoint = "{url}"
model = "judge"
"""
AT_ONCE = 16
UNREAD = {"rejected", "transport", "refusal", "no_logprobs", "unparsed"}
TITLE = "judge's runs amid faults, killed with kill -9"


@dataclass(slots=True)
class Tally:
    """What a trial came to.

    Attributes
    ----------
    in_flight : int
        Answers that were on their way to a process, or not yet written, when it was killed.
    twice : int
        Answers paid for again for any other reason.
    """

    database: str
    cases: int
    kills: int
    requests: int
    answered: int
    in_flight: int
    twice: int


class Trial:
    """Pairs, a faulty judge, and a database; runs are started and killed at will."""

    def __init__(self, folder: Path, database: str, server: FaultyServer, n_cases: int) -> None:
        self.folder, self.database, self.server, self.n_cases = folder, database, server, n_cases
        self.lost: Counter[str] = Counter()
        pairs = "\n".join(map(json.dumps, good_and_poor(n_cases)))
        (folder / "pairs.jsonl").write_text(pairs, encoding="utf-8")
        (folder / "roster.toml").write_text(ROSTER.format(url=server.url), encoding="utf-8")

    @contextmanager
    def run(self, *, helping: bool = False) -> Iterator[Process]:
        """Start `arena judge run`, or `arena judge work` to help it, and see that it ends."""
        words = ["work"] if helping else ["run", "--out", "found.csv"]
        words += ["--method", "alpaca_eval", "--judge", "judge", "--cases", "pairs.jsonl"]
        words += ["--roster", "roster.toml", "--database", self.database]
        words += ["--concurrency", str(AT_ONCE)]
        with (
            (self.folder / "noise.log").open("ab") as noise,
            Process(["judge", *words], self.folder, log=noise) as process,
        ):
            yield process

    def to_the_end(self, process: Process, within_s: float = 240.0) -> None:
        assert process.wait(within_s) == 0, (self.folder / "noise.log").read_text()

    def kill(self, process: Process) -> None:
        """Kill a process, and note what was answered to it in vain."""
        assert process.poll() is None, "it had ended before it could be killed"
        process.kill()
        process.wait()

    def note_lost(self) -> None:
        """Note what was answered and is not kept, once nobody asks any more."""
        until(lambda: self.server.under_way == 0)
        new = self.server.answered - self.stored() - self.lost
        assert new.total() <= 2 * AT_ONCE, "more than was under way is lost"
        self.lost += new

    def stored(self) -> Counter[str]:
        with closing(Store(self.database)) as store, store.reading() as session:
            requests = session.exec(select(JudgementRow.request)).all()
        return Counter(row["messages"][-1][1] for row in requests)

    def claimants(self) -> set[int]:
        with closing(Store(self.database)) as store, store.reading() as session:
            return set(session.exec(select(JudgementClaimRow.process)).all())

    def tally(self, kills: int) -> Tally:
        return Tally(
            database=self.database.partition(":")[0],
            cases=self.n_cases,
            kills=kills,
            requests=len(self.server.requests),
            answered=self.server.answered.total(),
            in_flight=self.lost.total(),
            twice=(self.server.answered - self.stored() - self.lost).total(),
        )


def judged_once(file: Path, n_cases: int) -> Counter[str]:
    """Check that every case has its three rows, and each the verdict or no verdict at all."""
    rows = csv_rows(file.parent, file.name)
    named = Counter((row["battle_id"], row["order"]) for row in rows)
    assert set(named.values()) == {1}
    assert set(named) == {(f"b{i}", o) for i in range(n_cases) for o in ("ab", "ba", "both")}
    asked = [row for row in rows if row["order"] != "both"]
    for row in asked:
        better = "model_a" if int(row["battle_id"][1:]) % 2 else "model_b"
        assert row["winner"] == (better if row["status"] == "read" else "")
    return Counter(row["status"] for row in asked)


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with faulty_server({"judge": FaultyJudge(seed=7)}) as running:
        yield running


@pytest.mark.parametrize(
    ("n_cases", "kills"),
    [(60, 1), pytest.param(2000, 10, marks=[pytest.mark.slow, pytest.mark.timeout(900)])],
)
def test_a_run_amid_faults_that_is_killed_again_and_again_pays_for_no_answer_twice(
    database_url: str,
    tmp_path: Path,
    server: FaultyServer,
    n_cases: int,
    kills: int,
    record_property: Callable[[str, object], None],
) -> None:
    doomed = 0.0 if kills == 1 else 0.01  # it takes seconds to give up a case
    server.behaviours["judge"] = FaultyJudge(seed=7, doomed=doomed)
    trial = Trial(tmp_path, database_url, server, n_cases)
    rng = random.Random(5)
    for n in range(kills):
        enough = int(2 * n_cases * (n + rng.uniform(0.6, 1.0)) / (kills + 1))
        with trial.run() as process:
            until(lambda enough=enough: server.answered.total() >= enough)  # type: ignore[misc]
            trial.kill(process)
        trial.note_lost()
    with trial.run() as process:
        trial.to_the_end(process)
    result = judged_once(tmp_path / "found.csv", n_cases)
    tally = trial.tally(kills)
    record_property(TITLE, asdict(tally))
    assert server.answered == trial.stored() + trial.lost, "an answer was paid for twice"
    assert tally.twice == 0
    assert trial.claimants() == set()
    assert set(result) <= UNREAD | {"read"}
    assert result["read"] > 0.85 * 2 * n_cases
    if kills > 1:
        assert set(result) == UNREAD | {"read"}
        assert tally.in_flight, "no kill came in the middle of an answer"


def ended(trial: Trial) -> None:
    judged_once(trial.folder / "found.csv", trial.n_cases)
    assert trial.claimants() == set()
    assert trial.server.answered == trial.stored() + trial.lost


@pytest.fixture
def patient(server: FaultyServer) -> FaultyJudge:
    """Make the judge slow, so that no process is done before another one has begun."""
    judge = FaultyJudge(seed=7, delay_s=1.0)
    server.behaviours["judge"] = judge
    return judge


@pytest.mark.slow
def test_a_run_and_a_worker_on_one_database_share_the_cases(
    database_url: str, tmp_path: Path, server: FaultyServer, patient: FaultyJudge
) -> None:
    trial = Trial(tmp_path, database_url, server, 80)
    with trial.run() as one, trial.run(helping=True) as other:
        until(lambda: len(trial.claimants()) == 2)
        patient.delay_s = 0.02
        trial.to_the_end(one)
        trial.to_the_end(other)
    ended(trial)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_questions_of_a_killed_worker_return_to_the_run_that_lives(
    database_url: str,
    tmp_path: Path,
    server: FaultyServer,
    patient: FaultyJudge,
    record_property: Callable[[str, object], None],
) -> None:
    trial = Trial(tmp_path, database_url, server, 500)
    with trial.run(helping=True) as worker, trial.run() as living:
        until(lambda: len(trial.claimants()) == 2)
        patient.delay_s = 0.1
        until(lambda: server.answered.total() >= 200)
        patient.delay_s = 10.0  # the worker is killed while both wait for answers
        until(lambda: len(trial.claimants()) == 2 and server.under_way > AT_ONCE)
        trial.kill(worker)
        patient.delay_s = 0.1
        trial.to_the_end(living)
    trial.note_lost()
    record_property(TITLE, asdict(trial.tally(1)))
    ended(trial)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_four_workers_on_postgresql_pay_for_nothing_twice_when_one_is_killed(
    postgresql: str,
    postgresql_template: str,
    tmp_path: Path,
    server: FaultyServer,
    patient: FaultyJudge,
    record_property: Callable[[str, object], None],
) -> None:
    """As the Job of deploy/kubernetes runs them."""
    with new_database(postgresql, postgresql_template) as url, ExitStack() as stack:
        trial = Trial(tmp_path, url, server, 1000)
        workers = [stack.enter_context(trial.run(helping=True)) for _ in range(4)]
        until(lambda: len(trial.claimants()) == 4)
        patient.delay_s = 0.05
        until(lambda: server.answered.total() >= 400)
        trial.kill(workers.pop())
        for worker in workers:
            trial.to_the_end(worker)
        trial.note_lost()
        answered = server.answered.total()
        with trial.run() as last:
            trial.to_the_end(last)
        assert server.answered.total() == answered, "nothing was left to ask"
        tally = trial.tally(1)
        record_property(TITLE, asdict(tally))
        assert tally.twice == 0
        ended(trial)
