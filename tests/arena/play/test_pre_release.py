"""A pre-release battles unnamed: nothing that anybody can read holds its name until it has it."""

import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlmodel import col, select

from arena.domain.model import Release
from arena.errors import RoomError, SettingsError
from arena.settings import models_in
from arena.store import people, roster
from arena.store.store import Store
from arena.store.tables import ModelEventRow, ModelRow, fingerprint
from tests.command import Command
from tests.faulty_server import Behaviour, FaultyServer, faulty_server
from tests.process import until
from tests.serving import Served, Visitor, serve, write_roster

SECRETS = ("Basalt Nine", "Rocks Secret", "basalt-9", "secret-licence")
TABLE = """

[[models]]
id = "maple"
name = "Basalt Nine"
organisation = "Rocks Secret"
licence = "secret-licence"
model = "basalt-9"
endpoint = "{url}"
family = "Basalt Nine family"
release = "{release}"
"""
PAGES = (
    "/", "/leaderboard", "/leaderboard.json", "/leaderboard.csv", "/api/v1/leaderboard",
    "/battles", "/votes", "/models", "/method", "/value", "/mix", "/topics", "/study",
    "/leaderboard?category=code",
)  # fmt: skip


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with faulty_server({n: Behaviour(text=f"So says {n[0]}. ") for n in ("x", "basalt-9")}) as one:
        yield one


def roster_of(folder: Path, server: FaultyServer, release: str, *others: str) -> Path:
    path = write_roster(folder / "roster.toml", server, *others)
    with path.open("a") as file:
        file.write(TABLE.format(url=server.url, release=release))
    return path


def release(database: str, to: Release) -> None:
    with closing(Store(database)) as store, store.writing() as session:
        roster.release(session, "maple", to, people.TERMINAL, datetime.now(UTC))


def read_by_anybody(served: Served, visitor: Visitor, battles: list[str]) -> str:
    pages = [*PAGES, *(f"/battles/{one}" for one in battles)]
    pages += [f"/api/v1/battles/{one}" for one in battles]
    return "\n".join(visitor.get(page).text for page in pages)


def test_no_page_api_or_export_names_a_pre_release_until_it_is_released(
    server: FaultyServer, database_url: str, tmp_path: Path, command: Command
) -> None:
    file = roster_of(tmp_path, server, "pre-release", "x")
    settings = {"roster": file, "database": database_url, "characters_per_s": 50_000}
    with serve(**settings) as served, served.visitor() as visitor:
        battles, reveals = [], []
        for n in range(6):
            battles.append(visitor.play())
            answer = visitor.vote(battles[-1], ("model_a", "model_b", "tie")[n % 3])
            reveals.append(answer.text)
            assert '"maple"' in answer.text
        visitor.board(votes=6)
        seen = read_by_anybody(served, visitor, battles) + "".join(reveals)
        for kind in ("battles", "answers", "votes", "ratings"):
            at = tmp_path / f"{kind}.csv"
            command("export", kind, "--to", str(at), "--database", database_url)
            seen += at.read_text() + (tmp_path / f"{kind}.csv.card.md").read_text()
        assert "maple" in seen
        assert "pre-release" in visitor.get("/leaderboard").text
        for secret in SECRETS:
            assert secret not in seen, secret
        with closing(Store(database_url)) as store, store.reading() as session:
            row = session.get(ModelRow, "maple")
            (model,) = (e.model for e in roster.entries(session) if e.model.id == "maple")
        assert row is not None
        assert row.fingerprint in seen, "it is bound by every vote"
        assert row.fingerprint != fingerprint(model), "names could be tried on it"
        release(database_url, Release.RELEASED)
        until(lambda: "Basalt Nine" in visitor.get("/leaderboard").text)
        assert "Basalt Nine" in visitor.get(f"/battles/{battles[0]}").text
        assert "released" in visitor.get("/models").text
        names = set()
        while "Basalt Nine" not in names:
            models = visitor.vote(visitor.play(), "tie").json()["models"]
            names |= {models[side]["name"] for side in "ab"}
        board = visitor.get("/leaderboard.json").json()
        assert {row["stage"] for row in board["ratings"]} == {"provisional"}
    with serve(**settings), closing(Store(database_url)) as store, store.reading() as session:
        row = session.get(ModelRow, "maple")
        assert row is not None
        assert row.name == "Basalt Nine", "the file does not take it back"
        events = session.exec(
            select(ModelEventRow.event)
            .where(ModelEventRow.model_id == "maple")
            .order_by(col(ModelEventRow.id))
        ).all()
        assert "changed" not in events
        assert [e for e in events if e != "provisional"] == ["added", "pre-release", "released"]


def test_a_hidden_model_is_neither_drawn_nor_shown_until_it_is_let_in(
    server: FaultyServer, tmp_path: Path, database_url: str
) -> None:
    server.behaviours["y"] = Behaviour(text="So says y. ")
    file = roster_of(tmp_path, server, "hidden", "x", "y")
    with (
        serve(roster=file, database=database_url, characters_per_s=50_000) as served,
        served.visitor() as visitor,
    ):
        battles = [visitor.play() for _ in range(3)]
        for battle in battles:
            assert "maple" not in visitor.vote(battle, "tie").text
        seen = read_by_anybody(served, visitor, battles)
        assert "maple" not in seen
        assert not any(secret in seen for secret in SECRETS)
        release(database_url, Release.PRE_RELEASE)
        deadline = time.monotonic() + 60
        while "maple" not in visitor.vote(visitor.play(), "tie").text:
            assert time.monotonic() < deadline
        assert "maple" in visitor.get("/models").text


def test_a_release_is_not_taken_back(
    server: FaultyServer, tmp_path: Path, command: Command, database_url: str
) -> None:
    file = roster_of(tmp_path, server, "hidden", "x", "y")
    with closing(Store(database_url)) as store, store.writing() as session:
        roster.take_over(session, models_in(file.read_text(), file), datetime.now(UTC))
    at = ("--database", database_url)
    shown = command("models", "release", "maple", *at, COLUMNS="160").stdout
    assert "│ maple │ Basalt Nine │ enabled  │ released │" in shown
    again = command("models", "pre-release", "maple", *at)
    assert again.returncode == 2
    assert "'maple' is released already: a release is not taken back." in again.stderr
    with (
        closing(Store(database_url)) as store,
        store.writing() as session,
        pytest.raises(RoomError, match="The roster has no model 'maple-2'"),
    ):
        roster.release(session, "maple-2", Release.RELEASED, "x", datetime.now(UTC))


@pytest.mark.parametrize("model_id", ["basalt-7", "my-Rocks", "nine-1", "Granite_7"])
def test_an_id_that_gives_the_name_away_is_refused(model_id: str, tmp_path: Path) -> None:
    table = TABLE.replace('"maple"', f'"{model_id}"').replace("basalt-9", "granite-9")
    text = table.format(url="https://h/v1", release="pre-release")
    with pytest.raises(SettingsError, match="give away the name"):
        models_in(text, tmp_path / "roster.toml")
    assert models_in(text.replace('"pre-release"', '"released"'), tmp_path / "roster.toml")
