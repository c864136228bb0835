"""Models come and go while the arena runs: every process agrees, and no battle is broken off."""

import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from html import unescape
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url
from sqlmodel import col, select

from arena.domain.model import Standing
from arena.domain.people import Role
from arena.errors import SettingsError
from arena.settings import Keys
from arena.store import people, roster
from arena.store.store import Store
from arena.store.tables import BattleRow, ModelEventRow
from tests.arena.store.battles import NOW
from tests.command import Command, refused
from tests.faulty_server import Behaviour, FaultyServer, faulty_server
from tests.process import until
from tests.serving import Served, Visitor, invited, serve, side_text, write_roster
from tests.sqlite import new_sqlite


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    behaviours = {name: Behaviour(text=f"So says {name}. " * 5) for name in "xyz"}
    slow = Behaviour(text="Slowly does it. " * 8, chunk_size=4, delay_s=0.1)
    with faulty_server(behaviours | {"slow": slow}) as server:
        yield server


def drawn(visitor: Visitor, battles: int = 12) -> set[str]:
    """Vote on battles; gives the names of the models that were drawn."""
    names = set()
    for _ in range(battles):
        models = visitor.vote(visitor.play(), "tie").json()["models"]
        names |= {models[side]["name"] for side in "ab"}
    return names


def draws(visitor: Visitor, names: set[str]) -> None:
    """Wait until these models are drawn and no others."""
    until(lambda: drawn(visitor, 4) == names)


def change(database: str, model: str, standing: Standing, weight: float | None = None) -> None:
    with closing(Store(database)) as store, store.writing() as session:
        roster.change(session, model, people.TERMINAL, NOW, standing=standing, weight=weight)


@pytest.fixture
def served(server: FaultyServer, tmp_path: Path, database_url: str) -> Iterator[Served]:
    file = write_roster(tmp_path / "roster.toml", server, "x", "y", "slow")
    with serve(roster=file, database=database_url, characters_per_s=50_000) as served:
        yield served


@pytest.mark.slow
def test_two_processes_draw_the_same_models_seconds_after_a_change(
    server: FaultyServer, database_url: str, tmp_path: Path, command: Command
) -> None:
    first = write_roster(tmp_path / "first.toml", server, "x", "y")
    more = write_roster(tmp_path / "more.toml", server, "z")
    settings = {"database": database_url, "roster": first, "characters_per_s": 50_000}
    with serve(**settings) as one, serve(**settings) as two, ExitStack() as stack:
        visitors = [stack.enter_context(served.visitor()) for served in (one, two)]
        assert all(drawn(visitor, 2) == {"Name x", "Name y"} for visitor in visitors)
        at = ("--database", database_url)
        command("models", "add", str(more), *at)
        command("models", "disable", "id-x", *at)
        for visitor in visitors:
            draws(visitor, {"Name y", "Name z"})
        command("models", "enable", "id-x", *at)
        command("models", "retire", "id-y", *at)
        time.sleep(3)  # until then, a battle of the retired model may be refused
        for visitor in visitors:
            draws(visitor, {"Name x", "Name z"})


@pytest.mark.slow
def test_a_battle_of_a_model_that_is_disabled_meanwhile_ends_and_goes_on(served: Served) -> None:
    change(served.database, "id-x", Standing.DISABLED)
    time.sleep(3)
    with served.visitor() as visitor:
        battle = visitor.open()
        change(served.database, "id-x", Standing.ENABLED)
        change(served.database, "id-slow", Standing.DISABLED)
        time.sleep(3)
        events = visitor.follow(battle)
        assert events[-1].event == "ready"
        assert {side_text(events, side) for side in "ab"} == {
            "Slowly does it. " * 8,
            "So says y. " * 5,
        }
        more = visitor.post(f"/api/v1/battles/{battle}/turns", json={"prompt": "And then?"})
        assert more.status_code == 201
        assert visitor.follow(battle)[-1].event == "ready"
        assert drawn(visitor, 2) == {"Name x", "Name y"}
        change(served.database, "id-slow", Standing.RETIRED)
        time.sleep(3)
        more = visitor.post(f"/api/v1/battles/{battle}/turns", json={"prompt": "And then?"})
        assert more.status_code == 409
        assert visitor.vote(battle, "tie").status_code == 200


def test_the_probability_of_a_pair_is_exact_before_and_after_a_change(served: Served) -> None:
    with served.visitor() as visitor:
        visitor.play()
        assert probabilities(served) == [pytest.approx(1 / 3)]
        change(served.database, "id-slow", Standing.DISABLED)
        until(lambda: bool(visitor.play()) and probabilities(served)[-1] == 1.0)
    assert set(probabilities(served)[:-1]) == {probabilities(served)[0]}


def probabilities(served: Served) -> list[float]:
    with closing(Store(served.database)) as store, store.reading() as session:
        return list(session.exec(select(BattleRow.pair_probability).order_by(col(BattleRow.id))))


def test_the_file_says_at_each_start_who_there_is_and_the_store_who_battles(
    server: FaultyServer, tmp_path: Path, database_url: str
) -> None:
    file = write_roster(tmp_path / "roster.toml", server, "x", "y", "z")
    settings = {"roster": file, "database": database_url, "characters_per_s": 50_000}
    with serve(**settings):
        change(database_url, "id-y", Standing.DISABLED, weight=2.5)
    with faulty_server({"w": Behaviour(text="So says w."), "x": Behaviour()}) as elsewhere:
        write_roster(file, elsewhere, "x", "y", "w")
        for _ in range(2):
            with serve(**settings) as served, served.visitor() as visitor:
                assert drawn(visitor, 6) == {"Name x", "Name z", "Name w"}
        with closing(Store(database_url)) as store:
            stored = {one.model.id: one for one in store.read(roster.entries)}
            acts = store.read(people.acts)[0]
        assert stored["id-x"].model.endpoint == elsewhere.url
        assert stored["id-y"].model.weight == 2.5
        assert stored["id-y"].standing is Standing.DISABLED
        added = [one.subject for one in acts if one.act == "add model"]
        assert sorted(added) == ["id-w", "id-x", "id-y"], "once, at the start after the change"
    with (
        serve(database=database_url, characters_per_s=50_000) as served,
        served.visitor() as visitor,
    ):
        assert visitor.get("/health/ready").status_code == 200


BROKEN = {
    "a": ("weight", "9e999", "key 'weight' must be a number from 0 to 1,000,000, got inf"),
    "b": ("weight", "-1", "key 'weight' must be a number from 0 to 1,000,000, got -1.0"),
    "c": ("standing", "'gone'", "'gone' is not a valid Standing"),
    "d": ("entry", "'{}'", "key 'id': "),
    "e": ("entry", "'[]'", "it is no table."),
    "f": ("entry", "'{'", "Expecting property name"),
    "g": (
        "entry",
        "json_set(entry, '$.decoding', json('{\"temperature\": 9e999}'))",
        "key 'decoding.temperature' must be a number from 0 to 100, got inf",
    ),
}


def test_a_stored_entry_that_is_no_model_is_left_out_named_and_mended(
    server: FaultyServer, tmp_path: Path, command: Command, caplog: pytest.LogCaptureFixture
) -> None:
    file = write_roster(tmp_path / "roster.toml", server, "x", "y", *BROKEN)
    database = new_sqlite(tmp_path)
    settings = {"database": database, "characters_per_s": 50_000, "secret_key": "k" * 32}
    with serve(roster=file, **settings):
        pass
    with closing(sqlite3.connect(str(make_url(database).database))) as connection, connection:
        for name, (column, value, _why) in BROKEN.items():
            connection.execute(
                f"UPDATE roster_entry SET {column} = {value} WHERE model_id = 'id-{name}'"
            )
    with serve(**settings) as served, served.visitor() as admin:
        assert drawn(admin, 4) == {"Name x", "Name y"}
        admin.post(invited(served, Role.ADMIN))
        for name, (_column, _value, why) in BROKEN.items():
            line = f"The stored entry of 'id-{name}' is not used: {why}"
            page = unescape(admin.get("/admin/models").text)
            assert line in caplog.text
            assert line in page
            retire = {"model": f"id-{name}", "standing": "retired"}
            assert admin.post("/admin/models/place", data=retire).status_code == 303
            assert f"'id-{name}' is not used" not in unescape(admin.get("/admin/models").text)
        assert "is not used" not in admin.get("/admin/models").text
    done = command("models", "add", str(file), "--database", database)
    assert done.returncode == 0, done.stderr
    for name in BROKEN:
        command("models", "enable", f"id-{name}", "--database", database)
    with closing(Store(database)) as store:
        assert {one.model.id: one.standing for one in store.read(roster.entries)} == {
            f"id-{name}": "enabled" for name in ("x", "y", *BROKEN)
        }


def test_too_few_stored_models_stop_the_start_and_the_broken_are_named(
    server: FaultyServer, tmp_path: Path
) -> None:
    file = write_roster(tmp_path / "roster.toml", server, "x", "y")
    database = new_sqlite(tmp_path)
    with serve(roster=file, database=database):
        pass
    with closing(sqlite3.connect(str(make_url(database).database))) as connection, connection:
        connection.execute("UPDATE roster_entry SET weight = 9e999")
    with (
        pytest.raises(SettingsError, match=r"fewer than two .* 'id-x' .* 'id-y' is not used"),
        serve(database=database),
    ):
        pass
    with serve(roster=file, database=database), closing(Store(database)) as store:
        assert len(store.read(roster.entries)) == 2, "the file mends them"


def test_a_file_of_two_models_of_one_name_is_refused_at_the_start(
    server: FaultyServer, tmp_path: Path
) -> None:
    file = write_roster(tmp_path / "roster.toml", server, "x", "y")
    settings = {"roster": file, "database": new_sqlite(tmp_path)}
    with serve(**settings):
        pass
    file.write_text(file.read_text().replace('"id-x"', '"id-other"'))
    with (
        pytest.raises(SettingsError, match="would have the same name 'Name x'"),
        serve(**settings),
    ):
        pass


def test_what_would_leave_fewer_than_two_is_refused_and_nothing_is_written(
    command: Command, served: Served
) -> None:
    at = ("--database", served.database)
    assert "disabled" in command("models", "disable", "id-x", *at).stdout
    for words in (("retire", "id-y"), ("disable", "id-slow")):
        refused(command("models", *words, *at), "A battle needs two models")
    refused(command("models", "retire", "no\x1bsuch", *at), "The roster has no model 'no")
    refused(command("models", "weight", "id-y", "nan", *at), "'nan' is no finite number")
    refused(command("models", "weight", "id-y", "1e7", *at), "A weight is a number", "1e+07")
    refused(command("models", "weight", "id-y", "-1", *at), "A weight is a number")
    assert "2.5" in command("models", "weight", "id-y", "2.5", *at).stdout
    with closing(Store(served.database)) as store, store.reading() as session:
        standing = [one.standing for one in roster.entries(session)]
        acts = [(one.act, one.subject) for one in people.acts(session)[0]]
        events = session.exec(select(ModelEventRow).order_by(col(ModelEventRow.id))).all()
    assert standing == ["disabled", "enabled", "enabled"]
    assert acts == [("weigh model", "id-y"), ("disable model", "id-x")]
    assert [(one.model_id, one.event) for one in events[3:]] == [
        ("id-x", "disabled"),
        ("id-y", "weighed"),
    ]


def test_two_models_of_one_name_are_refused(
    command: Command, served: Served, server: FaultyServer, tmp_path: Path
) -> None:
    twin = write_roster(tmp_path / "twin.toml", server, "z", name="NAME X")
    text = twin.read_text().replace('name = "Name z"\n', "")
    twin.write_text(text)
    refused(
        command("models", "add", str(twin), "--database", served.database),
        "id-x and id-z would have the same name 'NAME X'",
    )
    at = ("--database", served.database)
    other = write_roster(tmp_path / "other.toml", server, "y", system_prompt="Be brief.")
    command("models", "weight", "id-y", "2.5", *at)
    added = command("models", "add", str(other), *at, COLUMNS="200")
    assert added.stderr == "id-y answers differently from before: give it a new id.\n"
    assert re.search(r"id-y .* 2\.5 ", added.stdout), "the weight stays"
    with closing(Store(served.database)) as store:
        assert len(store.read(roster.entries)) == 3


def test_a_key_is_mended_in_its_file_without_a_restart_and_stored_nowhere(
    server: FaultyServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("X_KEY", "sk-of-the-environment")
    keys = tmp_path / "keys.env"
    keys.write_text("# of ours\n\nX_KEY=sk-old\n")
    keys.chmod(0o600)
    file = write_roster(tmp_path / "roster.toml", server, "x", "y", api_key_env="X_KEY")
    database = new_sqlite(tmp_path)
    with (
        serve(roster=file, database=database, keys=keys, characters_per_s=50_000) as served,
        served.visitor() as visitor,
    ):
        visitor.play()
        assert authorized(server) == {"Bearer sk-old"}
        keys.write_text("X_KEY='sk-new'\n")
        visitor.play()
        assert authorized(server) == {"Bearer sk-old", "Bearer sk-new"}
        keys.write_text("X_KEY=\n")
        visitor.play()
        assert authorized(server) == {"Bearer sk-old", "Bearer sk-new"}
    whole = Path(database.removeprefix("sqlite:///")).read_bytes()
    assert b"X_KEY" in whole
    assert b"sk-" not in whole


def authorized(server: FaultyServer) -> set[str]:
    return {request.headers["authorization"] for request in server.requests}


@pytest.mark.parametrize(("mode", "warned"), [(0o600, False), (0o440, False), (0o444, True)])
def test_a_file_of_keys_that_everybody_can_read_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, mode: int, warned: bool
) -> None:
    keys = tmp_path / "keys.env"
    keys.write_text("X_KEY=sk-1\n")
    keys.chmod(mode)
    assert dict(Keys((), keys)) == {"X_KEY": "sk-1"}
    assert ("chmod 600" in caplog.text) is warned
    assert "sk-1" not in caplog.text


def test_a_file_of_keys_that_cannot_be_read_is_refused_at_the_start(tmp_path: Path) -> None:
    keys = tmp_path / "keys.env"
    keys.write_text("sk-1\n")
    with pytest.raises(SettingsError, match=r"line 1 of .* is not NAME=VALUE") as raised:
        Keys((), keys)
    assert "sk-1" not in str(raised.value)
    with pytest.raises(SettingsError, match="cannot be read"):
        Keys((), tmp_path / "none")


def test_the_check_of_models_takes_the_keys_of_the_file(
    command: Command, server: FaultyServer, tmp_path: Path
) -> None:
    keys = tmp_path / "keys.env"
    keys.write_text("X_KEY=sk-file\n")
    keys.chmod(0o600)
    file = write_roster(tmp_path / "roster.toml", server, "x", "y", api_key_env="X_KEY")
    checked = command("models", "check", "--roster", str(file), ARENA_KEYS=str(keys))
    assert checked.stdout.count("answered") == 2
    assert authorized(server) == {"Bearer sk-file"}


@pytest.mark.slow
def test_a_model_that_retires_is_marked_on_the_board_within_seconds(served: Served) -> None:
    with served.visitor() as visitor:
        for n in range(8):
            visitor.vote(visitor.play(), ("model_a", "model_b", "tie")[n % 3])
        change(served.database, "id-y", Standing.RETIRED)
        until(lambda: '<span class="badge">retired</span>' in visitor.get("/leaderboard").text)
