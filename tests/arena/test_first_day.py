"""The day of a new admin who has read the guides run.md and operate.md, in terminal and pages."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path

import pytest

from tests.command import Command, refused
from tests.faulty_server import Behaviour, FaultyServer, faulty_server
from tests.serving import Served, Visitor, serve, write_roster

EXPIRED = "Incorrect API key provided: it expired on 2026-11-20. Renew it at https://keys.example"
SECRET = "k" * 32


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    """An endpoint of which all models ask for a key."""
    texts = {name: f"So says {name}. " * 20 for name in ("basalt", "quartz", "mica")}
    with faulty_server({name: Behaviour(text=t, key="sk-1") for name, t in texts.items()}) as one:
        yield one


def renew(server: FaultyServer, key: str) -> None:
    """Let the endpoint take no other key from here on."""
    for name in server.behaviours:
        server.behaviours[name] = Behaviour(
            text=f"So says {name}. " * 20, key=key, error={"message": EXPIRED}
        )


def votes_of(served: Served, n: int) -> None:
    """Let somebody new vote so often."""
    with served.visitor() as visitor:
        for _ in range(n):
            visitor.vote(visitor.play(), "model_a")


def words(admin: Visitor, path: str) -> str:
    answer = admin.get(path)
    assert answer.status_code == 200, answer.text
    return re.sub(r"\s+", " ", unescape(re.sub("<[^>]+>", " ", answer.text)))


@pytest.mark.slow
def test_a_new_admin_does_all_that_the_docs_say_of_a_day(
    command: Command, tmp_path: Path, server: FaultyServer
) -> None:
    key = {"api_key_env": "ROCKS_KEY"}
    roster = write_roster(tmp_path / "roster.toml", server, "basalt", "quartz", **key)
    new = write_roster(tmp_path / "new.toml", server, "mica", **key)
    check = ("models", "check", "--roster")
    refused(command(*check, str(roster)), "'ROCKS_KEY'", "ARENA_KEYS")
    keys = tmp_path / "keys.env"
    keys.write_text("ROCKS_KEY=sk-1\n")
    keys.chmod(0o600)
    team = f"sqlite:///{tmp_path / 'team.db'}"
    here = {"ARENA_DATABASE": team, "ARENA_KEYS": str(keys), "ARENA_SECRET_KEY": SECRET}
    assert command(*check, str(roster), **here).returncode == 0

    with serve(
        database=team, roster=roster, keys=keys, secret_key=SECRET, characters_per_s=50_000
    ) as served:
        export = ("export", "votes", "--to", "x.csv")
        for asked in (("people", "invite", "Ada"), export, ("status",)):
            refused(command(*asked), "'arena.db'", "--database", "ARENA_DATABASE")
        assert not (tmp_path / "arena.db").exists()
        invite = command("people", "invite", "Ada", "--role", "admin", "--url", served.url, **here)
        admin = served.visitor()
        assert admin.post(invite.stdout.split()[0].removeprefix(served.url)).status_code == 303
        assert 'href="/admin"' in admin.get("/votes").text

        # a model is added, by the terminal, while people vote
        votes_of(served, 3)
        refused(command("models", "disable", "mica", **here), "'mica'", "id-basalt, id-quartz")
        assert "id-mica" in command("models", "add", str(new), **here).stdout

        # its key has expired, as the terminal and the page say, and say where to mend it
        renew(server, "sk-2")
        visitor = served.visitor()
        visitor.follow(visitor.open())
        status = " ".join(command("status", **here).stdout.split())
        assert re.search(rf"id-\w+: key refused, 1 time, .*{re.escape(EXPIRED)}", status)
        assert "in the file that ARENA_KEYS names" in status
        page = words(admin, "/admin")
        assert "key refused" in page
        assert EXPIRED in page
        assert "in the file that ARENA_KEYS names" in page
        alone = command(*check, str(new), **here)
        assert (alone.returncode, EXPIRED.split()[0] in alone.stdout) == (1, True)

        # it is mended, and nothing was restarted
        keys.write_text("ROCKS_KEY=sk-2\n")
        assert command(*check, str(new), **here).returncode == 0
        assert admin.post("/admin/models/test").text.count("It answered within") == 3
        votes_of(served, 2)

        # a voter is excluded by the terminal, taken in on the page, and excluded there
        assert served.visitor().board(votes=5)
        rows = command("voters", team, "--format", "csv", **here).stdout.splitlines()[1:]
        voter = next(line.split(",")[0] for line in rows if line.split(",")[1] == "3")
        assert voter[:12] in words(admin, "/admin/voters")
        out = command("exclude", voter[:8], "--reason", "a test of ours", **here)
        assert "3 votes are excluded" in out.stdout
        assert f"{voter[:12]} 3 votes: a test of ours" in words(admin, "/admin/voters")
        for deed in ("readmit", "exclude"):
            form = {"target": voter, "reason": "thought again"}
            assert admin.post(f"/admin/{deed}", data=form).status_code == 303
        board = served.visitor().board(votes=2)
        refused(command("exclude", voter[:7], "--reason", "x", **here), "8 characters", "csv")

        # the month is exported, and nothing of the one before
        now = datetime.now(UTC)
        yesterday, tomorrow = (f"{now + timedelta(days=days):%Y-%m-%d}" for days in (-1, 1))
        days = ("--since", yesterday, "--until", tomorrow)
        before = ("--until", days[1])
        for span, n in ((days, 2), (before, 0)):
            done = command("export", "votes", "--to", "month.csv", *span, **here)
            assert f"month.csv: {n} of" in done.stdout
            assert "vote log verified, " in command("verify", "month.csv").stdout
            done = command("export", "battles", "--to", "month.parquet", *span, **here)
            assert f"month.parquet: {n} battles" in done.stdout
        back = (*days[:2], "--until", "2020-01-01")
        refused(command("export", "votes", "--to", "x.csv", *back, **here), "is not after --since")

        form = {"what": "battles", "ending": "csv", "since": days[1], "until": days[3]}
        made = admin.post("/admin/exports", data=form)
        assert made.headers["content-disposition"] == 'attachment; filename="battles.csv"'
        assert made.text.count(",voted,") == 2
        odd = {"until": days[1]}, {"since": "tomorrow"}, {"what": "keys"}, {"ending": "exe"}
        reasons = "Nothing lies between", "is no day", "Choose", "Choose"
        for wrong, why in zip(odd, reasons, strict=True):
            answer = admin.post("/admin/exports", data=form | wrong)
            assert (answer.status_code, why in answer.text) == (422, True)

        # what was done stands in the log, and a backup is made while the arena serves
        log = words(admin, "/admin/log")
        acts = "invited Ada", "added the model id-mica", f"excluded votes of {voter}"
        for act in (*acts, "exported battles"):
            assert act in log
        assert "reason: thought again" in log
        assert command("backup", "--to", "team-backup.db", **here).returncode == 0
        refused(command("restore", "team-backup.db", **here), "is in use", "new database")
        admin.client.close()
        visitor.client.close()

    # it is restored, and served with the same secret: the same board, and the same admin
    restored = f"sqlite:///{tmp_path / 'restored.db'}"
    assert command("restore", "team-backup.db", "--database", restored).returncode == 0
    assert "vote log verified, " in command("verify", restored).stdout
    with (
        serve(database=restored, roster=roster, keys=keys, secret_key=SECRET) as served,
        served.visitor() as again,
    ):
        assert again.board(votes=2)["data_hash"] == board["data_hash"]
        again.client.cookies = admin.client.cookies
        assert again.get("/admin").status_code == 200
        counted = json.loads(command("status", "--format", "json", "--database", restored).stdout)
        assert counted["votes"] == 5
