"""Published boards: what is changed in the folder is named, whoever changed it."""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pytest

from arena.boards.bundle import FILES, MANIFEST, MOST_PROBLEMS, VOTES, check_bundle
from arena.boards.export import COLUMNS
from arena.domain.model import Model, Release
from arena.domain.study import Statements
from arena.domain.vote import SIMULATED
from arena.errors import BrokenRecordError
from arena.pages.studies import bundle_page
from arena.store import erasing, people, roster
from arena.store.store import Store
from rating import __version__
from rating.errors import DataError
from tests.arena.boards.published import (
    STATEMENTS,
    change,
    fill,
    nudge,
    problems,
    publish_into,
    remake,
    seal,
)
from tests.arena.store.battles import MODELS, NOW
from tests.arena.store.test_tampering import NOT_BOUND
from tests.arena.test_verify_command import change as change_database
from tests.sqlite import new_sqlite


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle that nobody has touched, and the database behind it."""
    folder = tmp_path_factory.mktemp("published")
    url = new_sqlite(folder)
    fill(url)
    publish_into(url, folder / "board")
    return folder


@pytest.fixture
def bundle(whole: Path, tmp_path: Path) -> Path:
    """A copy, to be changed."""
    return Path(shutil.copytree(whole / "board", tmp_path / "board"))


def test_a_bundle_is_whole_on_either_kind_of_database(database_url: str, tmp_path: Path) -> None:
    fill(database_url)
    written = publish_into(database_url, tmp_path / "board")
    assert sorted(file.name for file in (tmp_path / "board").iterdir()) == sorted(
        (*FILES, MANIFEST)
    )
    checked = check_bundle(tmp_path / "board", bundle_page)
    assert (checked.problems, checked.notes) == ([], [])
    assert (checked.models, checked.votes) == (2, 20) == (written.models, written.votes)
    assert (checked.hash, checked.head, checked.links) == (written.hash, written.head, 23)
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith(".")] == []


def test_a_board_is_published_after_votes_were_deleted(tmp_path: Path) -> None:
    url = new_sqlite(tmp_path)
    fill(url)
    with closing(Store(url)) as store, store.writing() as session:
        assert erasing.take_out(session, [1, 2], NOW) == 2
    assert publish_into(url, tmp_path / "board").votes == 18
    assert problems(tmp_path / "board") == []


@pytest.mark.usefixtures("a_common_umask")
def test_everybody_can_read_a_published_folder(tmp_path: Path) -> None:
    url = new_sqlite(tmp_path)
    fill(url)
    publish_into(url, tmp_path / "board")
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "board").iterdir()}
    assert modes == dict.fromkeys((*FILES, MANIFEST), 0o644)


def test_a_hidden_model_is_in_no_file_and_an_unnamed_one_by_its_id_alone(tmp_path: Path) -> None:
    url, folder = new_sqlite(tmp_path), tmp_path / "board"
    fill(url)
    unnamed = Model(id="onyx", name="Hush 1", endpoint="pocket://x", model="unigram")
    unnamed = replace(unnamed, release=Release.PRE_RELEASE, family="stones")
    hidden = replace(unnamed, id="flint", name="Hush 2", release=Release.HIDDEN)
    with closing(Store(url)) as store, store.writing() as session:
        roster.add(session, [*MODELS, unnamed, hidden], people.TERMINAL, NOW)
    publish_into(url, folder)
    assert problems(folder) == []
    written = b"".join(file.read_bytes() for file in folder.iterdir())
    assert b"onyx" in written
    assert b"flint" not in written
    assert b"Hush" not in written


def test_a_hash_that_somebody_noted_is_in_the_chain_or_stands_for_the_folder(bundle: Path) -> None:
    checked = check_bundle(bundle, bundle_page)
    assert check_bundle(bundle, bundle_page, checked.head[:9]).noted == 23
    assert check_bundle(bundle, bundle_page, (checked.hash or "")[:9]).problems == []
    assert "rewritten" in check_bundle(bundle, bundle_page, "c0ffee00").problems[0]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", [*FILES, MANIFEST])
@pytest.mark.parametrize("place", [0.05, 0.5, 0.95])
def test_one_byte_of_any_file_is_named(bundle: Path, name: str, place: float) -> None:
    file = bundle / name
    content = bytearray(file.read_bytes())
    content[int(place * len(content))] ^= 1
    file.write_bytes(content)
    assert any(name in problem for problem in problems(bundle))


def swap(folder: Path) -> None:
    lines = (folder / "board.csv").read_bytes().split(b"\n")
    lines[1:3] = lines[2:0:-1]
    (folder / "board.csv").write_bytes(b"\n".join(lines))


def votes(sql: str) -> Callable[[Path], None]:
    """Rewrite the votes by SQL."""

    def act(folder: Path) -> None:
        with duckdb.connect() as connection:
            connection.read_parquet(str(folder / VOTES)).create_view("votes")
            connection.sql(sql).write_parquet(str(folder / "new.parquet"))
        (folder / "new.parquet").replace(folder / VOTES)

    return act


def edited(name: str, act: Callable[[Any], object]) -> Callable[[Path], None]:
    return lambda folder: change(folder, name, act)


def garbled(folder: Path) -> None:
    content = (folder / VOTES).read_bytes()
    (folder / VOTES).write_bytes(content.replace(b"prompt_set", b"prompt_\xff\xfet"))


def on_page(folder: Path) -> None:
    page = (folder / "index.html").read_text()
    (folder / "index.html").write_text(page.replace("Four of us", "Four experts"))


def gone(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def linked(folder: Path) -> None:
    (folder / "card.json").rename(folder.parent / "card.json")
    (folder / "card.json").symlink_to(folder.parent / "card.json")


def beside(name: str, content: str = "x") -> Callable[[Path], None]:
    def act(folder: Path) -> None:
        (folder / name).write_text(content)

    return act


def nested(folder: Path) -> None:
    (folder / "more").mkdir()


OF_CHAIN = {"link_kind", "link", "links", "content", "hash", "left_out"}
STATED = {"policy", "since", "until", "all_votes"}
SHOWN = [name for name in COLUMNS if name not in OF_CHAIN | STATED]
"""Columns that are empty in a row of hashes only."""

HIDDEN = ", ".join(
    f"if(winner = 'model_b', {new}, {name}) AS {name}"
    for name, new in {**dict.fromkeys(SHOWN, "NULL"), "left_out": "'skipped'"}.items()
)
PERSON_OF_V0 = "(SELECT any_value(person) FROM votes WHERE voter = 'v0')"


def put(new: str, column: str) -> str:
    """Give SQL that puts a value into a column of the votes."""
    return f"SELECT * REPLACE ({new} AS {column}) FROM votes"


def recorded(link: int) -> str:
    return f"Link {link}, the vote on battle 'b{link - 1}', is not as it was recorded"


OF_VOTES = {
    "a vote that is gone": ("FROM votes WHERE link <> 7", "Link 7 of the chain is missing"),
    "the newest votes": (f"{put('19', 'links')} WHERE link < 20", "its chain ends at link 19"),
    "a vote that is another": (put("if(link = 1, 'tie', winner)", "winner"), recorded(1)),
    "a moment that no calendar has": (put("TIMESTAMP '290000-01-01'", "ts"), ""),
    "other columns": ("SELECT link, hash FROM votes", ".* has no column"),
    "columns of another kind": (
        "SELECT * REPLACE ([winner] AS winner, {'a': ts} AS ts) FROM votes",
        "",
    ),
    "no votes at all": ("FROM votes LIMIT 0", "its chain ends at link 0"),
    "votes that are hashes only": (
        f"SELECT * REPLACE ({HIDDEN}) FROM votes",
        "5 of 22 votes are hashes only, the first at link 2",
    ),
    "a vote that is said to be outside": (
        put("if(link = 2, 'outside the days', left_out)", "left_out"),
        "Link 2, the vote on battle 'b1', has 'outside the days' in left_out",
    ),
    "days of the votes that hold all of them": (
        put("TIMESTAMP '2020-01-01'", "since"),
        "it is not of all votes that a board is made of",
    ),
    "an excluded vote that is another": (
        put("replace(excluded_vote, 'quartz', 'basalt')", "excluded_vote"),
        recorded(21),
    ),
    "an excluded vote that is hashes only": (
        put("NULL", "excluded_vote"),
        "2 of 22 votes are hashes only",
    ),
    "an exclusion that is gone": (
        "FROM votes WHERE exclusion IS NULL",
        "its chain ends at link 22",
    ),
    "the reason of an exclusion": (
        put("replace(exclusion, 'ours', 'x')", "exclusion"),
        "Link 23, an exclusion, is not as it was recorded",
    ),
    "a voter": (put("if(link = 3, 'v9', voter)", "voter"), recorded(3)),
    "a prompt": (put("if(link = 3, 'p9', prompt_id)", "prompt_id"), recorded(3)),
    "a day": (put("ts - INTERVAL 1 DAY", "ts"), recorded(1)),
}
"""SQL that rewrites the votes, and what is said of them then."""
OF_BOARD: dict[str, tuple[Callable[[Any], object], str]] = {
    "an interval that is narrower": (
        lambda b: b["ratings"][0].update(lower=b["ratings"][0]["rating"]),
        r"ratings\.\w+\.lower is .*, and the votes give",
    ),
    "a rating off by a hundred-thousandth of a point": (
        lambda b: b["ratings"][1].update(rating=b["ratings"][1]["rating"] + 1e-5),
        r"ratings\.\w+\.rating is .*, and the votes give",
    ),
    "a column of one row": (
        lambda b: b["ratings"][1].pop("voter_rank"),
        "its ratings have not all the same columns",
    ),
    "two rows of the board": (lambda b: b["ratings"].reverse(), r"ratings\.\w+\.model is"),
    "another level": (
        lambda b: b["method"].update(level=0.9),
        r"method\.level is 0\.9, and the votes give 0\.95",
    ),
    "a rule of the policy": (lambda b: b["method"]["policy_rules"].pop(), r"method\.policy_rules"),
    "a warning that is gone": (
        lambda b: b["warnings"].pop(),
        r"warnings\.\d+ is None, and the votes give",
    ),
    "a count of excluded votes": (
        lambda b: b["votes"]["dropped"].update(skipped=0),
        r"votes\.dropped\.skipped is 0, and the votes give 1",
    ),
    "more in the board": (lambda b: b.update(more=1), "'more' does not fit"),
    "ratings without end": (
        lambda b: b["ratings"][0].update(rating=1e308),
        r"ratings\.\w+\.rating is 1e\+308",
    ),
}
OF_CARD: dict[str, tuple[Callable[[Any], object], str]] = {
    "a count on the card": (
        lambda card: card["outputs"]["choices"].update(tie=17),
        r": outputs\.choices\.tie is 17, and the votes give",
    ),
    "a statement that is gone": (
        lambda card: card["statements"].update(weaknesses=""),
        " lacks weaknesses",
    ),
    "more on the card": (lambda card: card.update(more=1), " holds more than a card"),
    "the end of the chain on the card": (
        lambda card: card["interpretation"].update(chain_links=22),
        r": the end of its chain is another than in manifest\.json",
    ),
}
OF_MANIFEST: dict[str, tuple[Callable[[Any], object], str]] = {
    "an option": (
        lambda m: m["options"].update(level=0.9),
        r"the option 'level' is 0\.9, and this version rates with 0\.95",
    ),
    "an option that is gone": (
        lambda m: m["options"].pop("until"),
        "the option 'until' is 'missing', and this version rates with None",
    ),
    "another policy": (
        lambda m: m.update(policy="default-v1"),
        r"board\.json: its policy is 'default-v3', in manifest\.json 'default-v1'",
    ),
    "no such policy": (lambda m: m.update(policy="mine"), "there is no policy 'mine'"),
    "another moment": (
        lambda m: m.update(made="2020-01-01T00:00:00+00:00"),
        r"board\.json: its moment is",
    ),
    "a rule that was held": (
        lambda m: m["state"].update(held={"rings": 0.3}),
        r"board\.json: warnings",
    ),
    "the link that the board is of": (
        lambda m: m["state"].update(head="0" * 64),
        r"manifest\.json: its board is of another link than the newest",
    ),
    "voters who are known": (
        lambda m: m["state"].update(known=7),
        r"board\.json: method\.version is",
    ),
    "links in the manifest": (
        lambda m: m["chain"].update(links=22),
        r"votes\.parquet: its chain ends at link 23, and in manifest\.json at 22",
    ),
    "a model that is not in the roster any more": (
        lambda m: m["state"]["entrants"].update(basalt={"retired": True}),
        r"(board|manifest)\.json: ",
    ),
}
SEALED: dict[str, tuple[Callable[[Path], None], str]] = {
    **{
        name: (votes(sql), rf"votes\.parquet: {sentence}")
        for name, (sql, sentence) in OF_VOTES.items()
    },
    **{n: (edited("board.json", act), rf"board\.json: {s}") for n, (act, s) in OF_BOARD.items()},
    **{
        n: (edited("card.json", act), rf"card\.json{sentence}")
        for n, (act, sentence) in OF_CARD.items()
    },
    **{name: (edited(MANIFEST, act), sentence) for name, (act, sentence) in OF_MANIFEST.items()},
    "a rating that is another": (nudge, r"board\.json: ratings\.\w+\.rating is 9001\.0, and the"),
    "two rows of the table": (swap, r"board\.csv: line 2 is not that of board\.json"),
    "a column whose name is no text": (garbled, r"votes\.parquet: .* it is damaged"),
    "a label": (
        votes(put("if(link = 1, 'maths', category)", "category")),
        r"card\.json: inputs\.categories\.maths is None",
    ),
    "words on the page": (on_page, r"index\.html does not show what board\.json and card\.json"),
    "the voters behind persons": (
        votes(put(f"if(voter = 'v1', {PERSON_OF_V0}, person)", "person")),
        r"board\.json: votes\.voters is 4, and the votes give 3",
    ),
    "a file that is gone": (gone("board.csv"), r"board\.csv is missing"),
    "a file too many": (beside("notes.txt"), r"'notes\.txt' is in the folder"),
    "a file of a hostile name": (
        beside("\x1b[2J<b>.txt"),
        r"'\\x1b\[2J<b>\.txt' is in the folder",
    ),
    "a folder in it": (nested, r"'more' is in the folder"),
    "a link": (linked, r"card\.json is a link: it was not read"),
    "a text that is half a pair": (
        beside("card.json", '{\n  "a": "\\ud800"\n}\n'),
        r"card\.json is not written as",
    ),
    "numbers that are none": (
        beside("board.json", '{"ratings": [NaN]}'),
        r"board\.json cannot be read",
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", SEALED)
def test_what_was_changed_by_somebody_who_seals_it_again_is_named(bundle: Path, name: str) -> None:
    act, pattern = SEALED[name]
    act(bundle)
    seal(bundle)
    named = problems(bundle)
    assert [problem for problem in named if re.search(pattern, problem)], named
    assert not any("is not as it was published" in problem for problem in named)


UNBOUND = {"price_per_1000", "median_s", "statements", "calls", "code"}  # fmt: skip
"""What only the folder itself says, by names that SECURITY.md lists."""


def leaves(plain: Any, *path: Any) -> Iterator[tuple[Any, ...]]:
    """Give the places of all values."""
    match plain:
        case dict():
            for name, value in plain.items():
                yield from leaves(value, *path, name)
        case list():
            for place, value in enumerate(plain):
                yield from leaves(value, *path, place)
        case _:
            yield path


def other(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
    return 0.25 if value is None else f"{value}x"


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["board.json", "card.json", MANIFEST])
def test_every_changed_value_is_named_or_listed_by_whoever_writes_the_rest_anew(
    bundle: Path, tmp_path: Path, name: str
) -> None:
    loose = set()
    for number, path in enumerate(leaves(json.loads((bundle / name).read_text()))):
        if name == MANIFEST and path[0] in ("files", "hash"):
            continue  # which `seal` writes

        def act(plain: Any, path: tuple[Any, ...] = path) -> None:
            for part in path[:-1]:
                plain = plain[part]
            plain[path[-1]] = other(plain[path[-1]])

        folder = Path(shutil.copytree(bundle, tmp_path / str(number)))
        change(folder, name, act)
        remake(folder)
        with suppress(ValueError):
            seal(folder)
        if not problems(folder):
            loose |= UNBOUND & {*path} or {".".join(map(str, path))}
    assert loose <= UNBOUND
    assert all(f"`{one}`" in NOT_BOUND for one in loose)


def renamed(folder: Path) -> None:
    """Give a model another name in all files."""
    for name in ("board.json", "card.json"):
        text = (folder / name).read_text()
        assert '"Basalt"' in text
        (folder / name).write_text(text.replace('"Basalt"', '"Azurite"'))


def relabelled(folder: Path) -> None:
    """Say that prompts on code are on maths, in the votes and on the card."""
    new = "if(category = 'code', 'maths', category) AS category"
    votes(f"SELECT * REPLACE ({new}) FROM votes")(folder)
    text = (folder / "card.json").read_text()
    assert '"code": ' in text
    (folder / "card.json").write_text(text.replace('"code": ', '"maths": ', 1))


@pytest.mark.parametrize(("act", "field"), [(renamed, "model"), (relabelled, "prompt_label")])
def test_what_no_hash_binds_is_listed(
    bundle: Path, act: Callable[[Path], None], field: str
) -> None:
    act(bundle)
    remake(bundle)
    seal(bundle)
    assert problems(bundle) == []
    assert f"`{field}`" in NOT_BOUND


def manifest(**values: object) -> str:
    return json.dumps(values)


HOSTILE: dict[str, str | bytes] = {
    "nothing": "",
    "no object": "[1, 2]",
    "large": " " * (1 << 21),
    "deep": '{"a":' * 100_000 + "1" + "}" * 100_000,
    "not UTF-8": b"\xff\xfe\x00",
    "wrong types": manifest(format=1, arena=[], policy={}, files=[]),
    "a great number": '{"format": 1' + "0" * 6000 + "}",
    "more keys": '{"format": "arena-bundle-1", "more": 1}',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_manifest_is_named_and_the_rest_is_checked(bundle: Path, name: str) -> None:
    content = HOSTILE[name]
    raw = content if isinstance(content, bytes) else content.encode()
    (bundle / MANIFEST).write_bytes(raw)
    swap(bundle)
    named = problems(bundle)
    assert named[0].startswith("manifest.json")
    assert max(map(len, named)) < 400
    assert "board.csv: line 2 is not that of board.json." in named


@pytest.mark.sampled(2)
@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", "a/../b", "board.csv/", "\x1b[31m"])
def test_a_path_in_the_manifest_is_named_and_not_followed(bundle: Path, path: str) -> None:
    seal(bundle)
    change(bundle, MANIFEST, lambda plain: plain["files"].update({path: "0" * 64}))
    assert f"{MANIFEST} names {path!r}, and no bundle has such a file." in problems(bundle)


def test_a_file_that_the_manifest_does_not_name_is_named(bundle: Path) -> None:
    change(bundle, MANIFEST, lambda plain: plain["files"].pop("card.json"))
    assert f"{MANIFEST} does not name card.json." in problems(bundle)


def test_all_that_is_wrong_is_named_up_to_a_limit(bundle: Path) -> None:
    nudge(bundle)
    swap(bundle)
    beside("notes.txt")(bundle)
    named = " ".join(problems(bundle))
    for words in ("notes.txt", "board.json is not as it was", "board.csv: line 2", "9001.0"):
        assert words in named
    rows = b"\n".join(b"x" for _ in range(2 * MOST_PROBLEMS))
    (bundle / "board.csv").write_bytes(rows)
    named_too = problems(bundle)
    assert len(named_too) == MOST_PROBLEMS + 1
    assert re.fullmatch(r"And [\d,]+ more problems\.", named_too[-1])


def test_what_is_no_bundle_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"it has no manifest\.json"):
        problems(tmp_path)
    with pytest.raises(DataError, match="No such file"):
        problems(tmp_path / "nowhere")


def test_votes_that_are_withheld_can_be_put_into_the_folder(whole: Path, tmp_path: Path) -> None:
    url, folder, votes_to = new_sqlite(whole), tmp_path / "board", tmp_path / "votes.parquet"
    publish_into(url, folder, votes_to=votes_to)
    checked = check_bundle(folder, bundle_page)
    assert checked.problems == []
    assert checked.notes == [
        "votes.parquet is not there: the board was not rated again, and its chain not followed."
    ]
    assert "Only the hash of votes.parquet was published" in (folder / "index.html").read_text()
    assert check_bundle(folder, bundle_page, (checked.hash or "")[:8]).problems == []
    assert "no chain is there" in check_bundle(folder, bundle_page, "c0ffee00").problems[0]
    shutil.copy(votes_to, folder)
    assert check_bundle(folder, bundle_page).votes == 20
    (folder / VOTES).write_bytes((folder / VOTES).read_bytes() + b"x")
    assert "votes.parquet is not as it was published: its hash is another." in problems(folder)
    with pytest.raises(DataError, match="is not there yet"):
        publish_into(url, tmp_path / "more", votes_to=votes_to)


def test_a_board_of_another_version_is_checked_but_for_its_page(bundle: Path) -> None:
    change(bundle, MANIFEST, lambda plain: plain.update(arena="0.0.9"))
    for name, place in (("board.json", "method"), ("card.json", "interpretation")):
        change(bundle, name, partial(_older, place))
    csv = (bundle / "board.csv").read_text()
    (bundle / "board.csv").write_text(csv.replace(f"-{__version__},", "-0.0.9,"), newline="")
    seal(bundle)
    checked = check_bundle(bundle, bundle_page)
    assert checked.problems == []
    assert "index.html was written by arena 0.0.9" in checked.notes[0]


def _older(place: str, whole: dict[str, Any]) -> None:
    plain = whole[place]
    plain["version"] = plain["version"].replace(f"-{__version__}", "-0.0.9")


def test_nothing_is_published_while_the_card_lacks_something(tmp_path: Path) -> None:
    url = new_sqlite(tmp_path)
    with pytest.raises(DataError, match="inputs, calls, outputs, interpretation, not_claimed"):
        publish_into(url, tmp_path / "board", replace(STATEMENTS, not_claimed=""))
    fill(url)
    names = "purpose, purpose_sentence, not_claimed, who_voted, weaknesses"
    with pytest.raises(DataError, match=f"the card lacks {names}"):
        publish_into(url, tmp_path / "board", Statements())
    with pytest.raises(DataError, match="inputs, calls, outputs, interpretation"):
        publish_into(url, tmp_path / "board", policy=SIMULATED)
    assert {file.name for file in tmp_path.iterdir()} <= {"arena.db", "arena.db-lock"}


def test_a_record_that_was_changed_is_not_published(tmp_path: Path) -> None:
    url = new_sqlite(tmp_path)
    fill(url)
    change_database(url)
    with pytest.raises(BrokenRecordError, match="the vote log could not be verified"):
        publish_into(url, tmp_path / "board")
    assert not (tmp_path / "board").exists()


def test_a_folder_that_is_taken_stays_as_it_is(whole: Path, tmp_path: Path) -> None:
    url = new_sqlite(whole)
    (tmp_path / "taken").mkdir()
    publish_into(url, tmp_path / "taken")  # an empty one is as good as none
    with pytest.raises(DataError, match="it is not empty"):
        publish_into(url, tmp_path / "taken")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "taken")
    for name in ("file", "link"):
        with pytest.raises(DataError, match="it is no folder"):
            publish_into(url, tmp_path / name)
    with pytest.raises(DataError, match="No such file or directory"):
        publish_into(url, tmp_path / "no" / "board")
    assert (tmp_path / "file").read_text() == "mine"
    assert problems(tmp_path / "taken") == []


def test_the_page_of_a_bundle_loads_nothing_and_runs_nothing(bundle: Path) -> None:
    page = (bundle / "index.html").read_text()
    assert "default-src 'none'" in page
    assert not re.search(r"""(src|href)=["'](?!#|[a-z]+\.(json|csv|parquet)["'])""", page)
    assert not re.search(r"<script|\son\w+=|@import|url\((?!data:)", page)
    assert "We choose &lt;one&gt; &amp; pay." in page
    assert "sk-secret" not in page + (bundle / "card.json").read_text()
    assert "pocket://" not in page + (bundle / "card.json").read_text()
