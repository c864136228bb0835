"""Votes that applications send, over real HTTP, on both databases."""

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from sqlmodel import col, update

from arena.domain.model import MOST_VERSIONS, Source, is_name, origin_of
from arena.domain.people import Perishable
from arena.domain.vote import APPLICATIONS, DEFAULT, Policy
from arena.errors import EXPIRED
from arena.guard.access import token_hash
from arena.store import battles, blocks, erasing, log, people, roster, sources
from arena.store.store import Store
from arena.store.tables import SourcePairRow
from arena.store.verify import verify
from tests.arena.store.battles import at_once
from tests.command import Command, refused
from tests.process import until
from tests.serving import Served, client_of, let_expire, quick_arena
from tests.sources import PAGE, Application, comparison, registered

OUTCOMES = ("model_a", "model_b", "tie", "both_bad")
ELSEWHERE = "https://evil.example"
BEFORE_THE_VOTE = {"state", "a", "b", "vote", "language", "words"}


@pytest.fixture(scope="module")
def served(either_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """An arena on each kind of database; every test has an application of its own."""
    with quick_arena(tmp_path_factory.mktemp("sources"), database=either_database) as served:
        yield served


@pytest.fixture
def application(served: Served) -> Application:
    return registered(served)


@dataclass(frozen=True, slots=True)
class Logged:
    """A vote of an application in the log."""

    battle: str
    voter: str
    models: tuple[str, str]
    outcome: str
    left_out: str | None


def logged(
    served: Served, application: Application, policy: Policy = APPLICATIONS
) -> list[Logged]:
    """Read the votes of an application, from a record that verifies."""
    with closing(Store(served.database)) as store:
        assert store.read(verify).problem is None
        votes = store.read(blocks.columns, policy)
    roles = ("battle", "voter", "model_a", "model_b", "winner", "left_out")
    rows = zip(*map(votes.values, roles), strict=True)
    return [
        Logged(battle, voter, (a, b), *more)
        for battle, voter, a, b, *more in rows
        if a.startswith(f"{application.name}~")
    ]


def embedded(
    served: Served, path: str, key: str, origin: str | None = PAGE, **kwargs: Any
) -> httpx2.Response:
    """Ask as the script does from a page of an origin."""
    headers = {"Authorization": f"Bearer {key}"} | ({"Origin": origin} if origin else {})
    method = "POST" if "json" in kwargs else "GET"
    with client_of(served.url) as client:
        return client.request(method, f"/embed/pairs/{path}", headers=headers, **kwargs)


def test_a_comparison_is_in_the_chain_and_counts_for_applications_alone(
    served: Served, application: Application
) -> None:
    answer = application.compare()
    assert answer.status_code == 201, answer.text
    versions = f"{application.name}~v7", f"{application.name}~v8"
    sent = answer.json()
    vote = Logged(sent["battle_id"], sent["voter"], versions, "model_b", None)
    assert logged(served, application) == [vote]
    out = replace(vote, left_out="voter of an application")
    assert logged(served, application, DEFAULT) == [out]
    with closing(Store(served.database)) as store:
        shown = store.read(battles.battle, APPLICATIONS, vote.battle)
    assert shown is not None
    assert shown.vote.seconds == pytest.approx(8.5)


def test_twenty_resends_at_once_are_one_vote(served: Served, application: Application) -> None:
    body, answers = comparison(), []

    def send(_: int) -> None:
        answers.append(application.ask("POST", "comparisons", json=body))

    at_once(20, send)
    assert sorted(one.status_code for one in answers) == [200] * 19 + [201]
    assert len({one.text for one in answers}) == 1
    assert len(logged(served, application)) == 1


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"prompt": "Where?"}, "prompt"),
        ({"outcome": "tie"}, "outcome"),
        ({"rater": "u-2"}, "rater"),
        ({"a": {"version": "v7", "text": "Gone."}}, "answers"),
        ({"b": {"version": "v9", "text": "It arrives tomorrow."}}, "answers"),
        (
            {
                "a": {"version": "v8", "text": "It arrives tomorrow."},
                "b": {"version": "v7", "text": "It is on its way."},
            },
            "sides",
        ),
    ],
)
def test_another_body_under_the_same_key_is_refused_by_what_differs(
    served: Served, changed: dict[str, Any], named: str
) -> None:
    application = registered(served)
    first = application.compare(key="k")
    again = application.compare(key="k", **changed)
    assert again.status_code == 409
    assert again.json()["detail"] == (
        f"The key 'k' was sent before, with other values of: {named}. Send what is new under a "
        "key of its own."
    )
    assert application.compare(key="k").json() == first.json()


def test_keys_of_pairs_and_of_other_applications_are_others(served: Served) -> None:
    one, other = registered(served), registered(served)
    sent = [one.compare(key="k"), other.compare(key="k"), one.open_pair(key="k")]
    assert [answer.status_code for answer in sent] == [201] * 3


def test_nobody_sends_without_a_token_that_is_let_in(served: Served, command: Command) -> None:
    application = registered(served)
    for given in ("", "Bearer", "Bearer wrong", application.token, f"Bearer {application.token}é"):
        with client_of(served.url) as client:
            headers = [(b"authorization", given.encode("latin1"))]
            answer = client.post("/api/v1/comparisons", json=comparison(), headers=headers)
        assert answer.status_code == 401
        assert "arena sources add" in answer.json()["detail"]
    command("sources", "revoke", application.name, "--database", served.database)
    assert application.compare().status_code == 401


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"b": {"version": "v7", "text": "Another."}}, "Both answers are of the version 'v7'"),
        ({"a": {"version": "v7", "text": " "}}, "The answer of 'v7' is empty"),
        ({"prompt": ""}, "The prompt is empty"),
        ({"prompt": "x" * 20_001}, "The prompt has 20,001 characters; up to 20,000 can be sent"),
        ({"a": {"version": "v 7", "text": "x"}}, "a.version: String should match pattern"),
        ({"a": {"version": "gold~x", "text": "x"}}, "a.version: String should match pattern"),
        ({"outcome": "a"}, "outcome: Input should be 'model_a', 'model_b', 'tie', 'both_bad'"),
        ({"rater": ""}, "rater: String should have at least 1 character"),
        ({"key": "k" * 201}, "key: String should have at most 200 characters"),
        ({"seconds": -1}, "seconds: Input should be greater than or equal to 0"),
        ({"choice": "tie"}, "choice: Extra inputs are not permitted"),
    ],
)
def test_what_is_no_comparison_is_refused_with_the_field(
    served: Served, changed: dict[str, Any], why: str
) -> None:
    application = registered(served)
    answer = application.compare(**changed)
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith(why)
    assert logged(served, application) == []


def test_the_longest_texts_are_accepted_and_one_character_more_is_refused(served: Served) -> None:
    application = registered(served)
    most = {"prompt": "x" * 20_000, "a": {"version": "v7", "text": "x" * 40_000}}
    assert application.compare(key="k" * 200, rater="u" * 200, **most).status_code == 201
    longer = application.compare(a={"version": "v7", "text": "x" * 40_001})
    assert longer.status_code == 422
    assert longer.json()["detail"] == (
        "The answer of 'v7' has 40,001 characters; up to 40,000 can be sent."
    )


def test_hostile_text_is_stored_as_what_can_be_stored_and_sent_again(
    served: Served, application: Application
) -> None:
    body = json.dumps(comparison(prompt="a\x00", rater="\x00", key="\x00")).encode()
    headers = {"Authorization": f"Bearer {application.token}", "Content-Type": "application/json"}
    with client_of(served.url) as client:
        answers = [
            client.post("/api/v1/comparisons", content=body, headers=headers) for _ in range(2)
        ]
    assert [one.status_code for one in answers] == [201, 200]
    assert len(logged(served, application)) == 1


def test_an_application_sends_as_much_an_hour_as_it_may(served: Served) -> None:
    application = registered(served, per_hour=2)
    first = application.compare(key="1")
    assert application.open_pair(key="2").status_code == 201
    beyond = application.compare(key="3")
    assert beyond.status_code == 429
    assert 3000 < int(beyond.headers["retry-after"]) <= 3660
    assert (
        f"The source {application.name} has sent 2 comparisons within an hour."
        in beyond.json()["detail"]
    )
    assert application.compare(key="1").json() == first.json()
    assert registered(served).compare().status_code == 201
    with closing(Store(served.database)) as store, store.writing() as session:
        of_first = col(SourcePairRow.key_hash) == token_hash("comparison\n1")
        earlier = datetime.now(UTC) - timedelta(minutes=50)
        session.exec(update(SourcePairRow).where(of_first).values(created=earlier))
    assert 500 < int(application.compare(key="3").headers["retry-after"]) <= 660


def test_a_rater_is_one_voter_of_one_application(served: Served, application: Application) -> None:
    others = [application.compare(rater=rater) for rater in ("u-1", "u-1", "u-2")]
    elsewhere = registered(served).compare(rater="u-1")
    first, again, other = (answer.json()["voter"] for answer in others)
    assert first == again
    assert len({first, other, elsewhere.json()["voter"]}) == 3


def test_an_application_has_no_more_versions_than_a_board_can_show(served: Served) -> None:
    application = registered(served)
    for n in range(0, MOST_VERSIONS, 2):
        a, b = ({"version": f"v{n + k}", "text": "x"} for k in (0, 1))
        assert application.compare(a=a, b=b).status_code == 201
    beyond = application.compare(a={"version": "v7", "text": "x"}, b={"version": "v", "text": "y"})
    assert beyond.status_code == 422
    assert beyond.json()["detail"].startswith("The source has 100 versions, which is the most")


def test_versions_stand_on_the_board_of_applications_alone(
    served: Served, application: Application
) -> None:
    battle = application.compare().json()["battle_id"]
    with served.visitor() as ada:
        ada.board(votes=0)
        pages = [ada.get(path) for path in ("/leaderboard", "/models", "/method", "/battles")]
        hidden = [
            ada.get(path) for path in ("/battles?policy=applications-v1", f"/battles/{battle}")
        ]
        own = "/leaderboard?policy=applications-v1"
        until(lambda: f"{application.name}~v7" in ada.get(own).text)
        assert 'href="/battles' not in ada.get(own).text
    assert [page.status_code for page in pages] == [200] * 4
    assert [page.status_code for page in hidden] == [404] * 2
    assert not [page for page in (*pages, *hidden) if "~v7" in page.text or "parcel" in page.text]
    with closing(Store(served.database)) as store:
        here = [one.id for one in store.read(log.models, DEFAULT.kinds)]
        there = [one.id for one in store.read(log.models, APPLICATIONS.kinds)]
        assert store.read(roster.entrants) == {}
    assert here == ["id-x", "id-y", "id-z"]
    assert f"{application.name}~v7" in there
    assert not set(here) & set(there)


def test_a_pair_that_is_sent_again_is_the_same_pair(
    served: Served, application: Application
) -> None:
    first, again = (application.open_pair(key="k") for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    other = application.open_pair(key="k", rater="u-2")
    assert other.status_code == 409
    assert "rater" in other.json()["detail"]


def test_a_page_reads_a_pair_blind_and_votes_once(
    served: Served, application: Application
) -> None:
    made = application.open_pair().json()
    pair, key = made["pair"], made["key"]
    before = embedded(served, pair, key)
    assert before.status_code == 200
    assert before.headers["access-control-allow-origin"] == PAGE
    assert before.headers["cache-control"] == "no-store"
    assert set(before.json()) == BEFORE_THE_VOTE
    words = [before.json()["words"][name] for name in ("tie", "even", "both_bad", "neither")]
    assert words == ["Tie", "a tie", "Both are bad", "both were bad"]
    assert not [word for word in ("v7", "v8", application.name, "~") if word in before.text]
    assert "<strong>on its way</strong>" in before.json()["a"] + before.json()["b"]
    votes = [embedded(served, f"{pair}/vote", key, json={"outcome": "model_a"}) for _ in range(3)]
    assert [vote.status_code for vote in votes] == [200] * 3
    assert len({vote.text for vote in votes}) == 1
    shown = votes[0].json()["versions"]
    assert sorted(shown.values()) == ["v7", "v8"]
    assert ("way" in before.json()["a"]) == (shown["a"] == "v7")
    other = embedded(served, f"{pair}/vote", key, json={"outcome": "tie"})
    assert other.status_code == 409
    assert other.headers["access-control-allow-origin"] == PAGE
    assert embedded(served, pair, key).json()["vote"] == votes[0].json()
    assert [vote.outcome for vote in logged(served, application)] == ["model_a"]


def test_the_arena_draws_who_stands_where(served: Served) -> None:
    application = registered(served)
    for _ in range(24):
        made = application.open_pair().json()
        embedded(served, f"{made['pair']}/vote", made["key"], json={"outcome": "tie"})
    shown = {vote.models for vote in logged(served, application)}
    assert len(shown) == 2  # all alike: 1 in 8 million


def test_twenty_votes_at_once_are_one(served: Served, application: Application) -> None:
    made, answers = application.open_pair().json(), []

    def vote(n: int) -> None:
        outcome = {"outcome": OUTCOMES[n % 4]}
        answers.append(embedded(served, f"{made['pair']}/vote", made["key"], json=outcome))

    at_once(20, vote)
    assert sorted(answer.status_code for answer in answers) == [200] * 5 + [409] * 15
    assert len(logged(served, application)) == 1


def test_a_skip_names_nobody_and_counts_nowhere(served: Served) -> None:
    made = registered(served).open_pair().json()
    answer = embedded(served, f"{made['pair']}/vote", made["key"], json={"outcome": "skip"})
    assert answer.json() == {"outcome": "skip", "versions": None}
    again = embedded(served, made["pair"], made["key"])
    assert again.json()["vote"] == answer.json()
    assert not [word for word in ("v7", "v8") if word in again.text]


@pytest.mark.parametrize(
    "origin", [None, "null", ELSEWHERE, f"{PAGE}:8443", "http://app.example.org"]
)
def test_a_page_of_another_origin_gets_nothing(served: Served, origin: str | None) -> None:
    application = registered(served)
    registered(served, origins=[ELSEWHERE])
    made = application.open_pair().json()
    pair, key = made["pair"], made["key"]
    asked = {"Access-Control-Request-Method": "POST"} | ({"Origin": origin} if origin else {})
    with client_of(served.url) as client:
        answers = [
            client.options(f"/embed/pairs/{pair}", headers=asked),
            client.options(f"/embed/pairs/{pair}/vote", headers=asked),
            embedded(served, pair, key, origin),
            embedded(served, f"{pair}/vote", key, origin, json={"outcome": "tie"}),
        ]
    assert [answer.status_code for answer in answers] == [403] * 4
    assert not [name for a in answers for name in a.headers if name.startswith("access-control")]
    assert not [answer for answer in answers if "way" in answer.text]
    assert logged(served, application) == []


@pytest.mark.parametrize("path", ["", "/vote"])
def test_a_preflight_of_a_registered_page_allows_what_the_script_sends(
    served: Served, path: str
) -> None:
    made = registered(served).open_pair().json()
    with client_of(served.url) as client:
        answer = client.options(f"/embed/pairs/{made['pair']}{path}", headers={"Origin": PAGE})
    assert answer.status_code == 204
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert "access-control-allow-credentials" not in answer.headers
    assert answer.headers["access-control-allow-headers"].startswith("authorization")
    assert answer.headers["vary"] == "Origin"


def test_cookies_say_nothing_to_what_applications_and_their_pages_ask(served: Served) -> None:
    application = registered(served)
    made = application.open_pair().json()
    with served.visitor() as ada:
        ada.play()
        cookies = dict(ada.client.cookies)
    with client_of(served.url, cookies=cookies) as client:
        look = client.get(
            f"/embed/pairs/{made['pair']}",
            headers={"Origin": PAGE, "Authorization": f"Bearer {made['key']}"},
        )
        sent = client.post(
            "/api/v1/comparisons",
            json=comparison(),
            headers={"Authorization": f"Bearer {application.token}"},
        )
    assert (look.status_code, sent.status_code) == (200, 201)
    assert not [answer for answer in (look, sent) if "set-cookie" in answer.headers]
    assert sent.json()["voter"] == made["voter"]


@pytest.mark.parametrize("key", ["wrong", "0" * 64])
def test_without_its_key_a_pair_is_not_read_nor_voted_on(served: Served, key: str) -> None:
    application = registered(served)
    pair = application.open_pair().json()["pair"]
    answers = [
        embedded(served, pair, key),
        embedded(served, f"{pair}/vote", key, json={"outcome": "tie"}),
    ]
    assert {answer.status_code for answer in answers} <= {401, 404}
    sent = application.compare().json()["battle_id"]
    assert embedded(served, sent, key).status_code in (401, 404)


def test_a_revoked_application_shows_nothing_more(served: Served, command: Command) -> None:
    application = registered(served)
    made = application.open_pair().json()
    done = command("sources", "revoke", application.name, "--database", served.database)
    assert done.stdout == f"{application.name} can send no more votes. Its votes stay.\n"
    assert embedded(served, made["pair"], made["key"]).status_code == 403
    refused(
        command("sources", "revoke", application.name, "--database", served.database),
        repr(application.name),
    )


def test_a_paused_application_sends_and_shows_nothing_until_it_is_resumed(
    served: Served, command: Command
) -> None:
    application, at = registered(served), ("--database", served.database)
    made = application.open_pair().json()
    done = command("sources", "change", application.name, "--pause", *at)
    assert done.stderr.startswith(f"{application.name} is paused. Up to 600 votes and pairs")
    answers = [
        application.compare(key="k"),
        application.open_pair(),
        application.ask("GET", "share", params={"turn": "c1/1"}),
    ]
    assert [answer.status_code for answer in answers] == [403] * 3
    assert f"{application.name} is paused here" in answers[0].json()["detail"]
    assert embedded(served, made["pair"], made["key"]).status_code == 403
    rows = json.loads(command("sources", "list", "--format", "json", *at).stdout)["sources"]
    assert [bool(row["paused"]) for row in rows if row["name"] == application.name] == [True]
    command("sources", "change", application.name, "--resume", *at)
    assert application.compare(key="k").status_code == 201
    assert embedded(served, made["pair"], made["key"]).status_code == 200


def test_a_new_token_takes_the_place_of_the_old_one(served: Served, command: Command) -> None:
    application = registered(served)
    made = application.open_pair(key="p").json()
    change = ("sources", "change", application.name, "--database", served.database)
    token = command(*change, "--new-token").stdout.strip()
    assert application.compare().status_code == 401
    renewed = Application(served.url, application.name, token)
    assert renewed.compare().status_code == 201
    assert embedded(served, made["pair"], made["key"]).status_code == 200
    again = renewed.open_pair(key="p").json()
    assert again["pair"] == made["pair"]
    assert embedded(served, made["pair"], made["key"]).status_code in (401, 404)
    assert embedded(served, again["pair"], again["key"]).status_code == 200
    with closing(Store(served.database)) as store:
        notes = [act for act in store.read(people.acts)[0] if act.subject == application.name]
    assert notes[0].detail["new_token"] is True
    assert token_hash(token) not in json.dumps(notes[0].detail)
    assert token not in json.dumps(notes[0].detail)


def test_origins_share_and_amount_of_an_application_change(
    served: Served, command: Command
) -> None:
    application, at = registered(served), ("--database", served.database)
    made = application.open_pair().json()
    change = ("sources", "change", application.name, *at)
    done = command(*change, "--add-origin", ELSEWHERE, "--remove-origin", PAGE, "--share", "0")
    assert done.stderr == (
        f"{application.name} is let in. Up to 600 votes and pairs per hour; pairs on 0% "
        f"of its turns, shown by {ELSEWHERE}.\n"
    )
    assert embedded(served, made["pair"], made["key"]).status_code == 403
    turn = application.ask("GET", "share", params={"turn": "c1/1"}).json()
    assert turn == {"turn": "c1/1", "show": False, "share": 0.0}
    command(*change, "--per-hour", "1")
    assert application.compare().status_code == 429
    refused(command(*change), "use an option")
    refused(command(*change, "--remove-origin", PAGE), f"it has: {ELSEWHERE}")
    refused(command(*change, "--add-origin", "app"), "'app' is not an origin")
    many = [word for n in range(20) for word in ("--add-origin", f"https://o{n}.example.org")]
    refused(command(*change, *many), "would have 21")
    refused(command("sources", "change", "nobody", "--pause", *at), "'nobody'")
    command("sources", "revoke", application.name, *at)
    refused(command(*change, "--resume"), repr(application.name))


def test_words_of_a_rater_go_and_their_votes_stay(
    served: Served, application: Application
) -> None:
    sent, made = application.compare(key="k"), application.open_pair(key="p").json()
    with closing(Store(served.database)) as store, store.writing() as session:
        theirs = erasing.voters_of(session, made["voter"])
        erasing.erase(session, theirs, (), people.TERMINAL, datetime.now(UTC), forget=True)
    assert [vote.battle for vote in logged(served, application)] == [sent.json()["battle_id"]]
    gone = (
        application.compare(key="k"),
        application.open_pair(key="p"),
        embedded(served, made["pair"], made["key"]),
        embedded(served, f"{made['pair']}/vote", made["key"], json={"outcome": "tie"}),
    )
    assert [answer.status_code for answer in gone] == [409] * 4
    assert {answer.json()["detail"][:38] for answer in gone} == {
        "The texts of this battle were deleted."
    }


def test_pairs_that_nobody_voted_on_go_by_retention(
    served: Served, application: Application
) -> None:
    pair = application.open_pair().json()["pair"]
    voted = application.compare().json()["battle_id"]
    with closing(Store(served.database)) as store:
        later = datetime.now(UTC) + timedelta(days=40)
        assert erasing.expire(store, Perishable.UNVOTED, 30, "upkeep", later) > 0
        assert store.read(sources.pair_called, pair) is None
        assert store.read(sources.pair_called, voted) is not None


def test_a_pair_that_nobody_voted_on_in_time_is_closed(
    served: Served, application: Application
) -> None:
    made = application.open_pair().json()
    pair, key = made["pair"], made["key"]
    let_expire(served, pair)
    vote = embedded(served, f"{pair}/vote", key, json={"outcome": "tie"})
    for answer in (vote, embedded(served, pair, key)):
        assert (answer.status_code, answer.json()["detail"]) == (409, EXPIRED)
    assert logged(served, application) == []


def test_a_vote_that_comes_along_with_its_answers_is_never_late(tmp_path: Path) -> None:
    with quick_arena(tmp_path, vote_within_hours=1) as served:
        assert registered(served).compare(seconds=2 * 3600).status_code == 201


def test_where_members_alone_come_in_applications_do(tmp_path: Path, database_url: str) -> None:
    with quick_arena(tmp_path, database=database_url, members_only=True) as served:
        application = registered(served)
        made = application.open_pair().json()
        assert application.compare().status_code == 201
        assert embedded(served, made["pair"], made["key"]).status_code == 200
        with served.visitor() as nobody:
            assert nobody.get("/embed.js").status_code == 200
            assert nobody.get("/api/v1/leaderboard").status_code == 401


def test_what_is_exported_verifies_and_is_gated(quick: Served, command: Command) -> None:
    application = registered(quick, "support")
    for n in range(12):
        application.compare(outcome=OUTCOMES[n % 4], rater=f"u-{n % 5}")
    policy, at = ("--policy", "applications-v1"), ("--database", quick.database)
    done = command("export", "votes", "--to", "v.csv", *policy, *at)
    assert done.stdout.startswith("v.csv: 12 of 12 logged votes, policy applications-v1.\n")
    assert command("verify", "v.csv").returncode == 0
    for what in ("battles", "answers"):
        assert command("export", what, "--to", f"{what}.csv", *policy, *at).returncode == 0
    rated = command("rate", quick.database, *policy, "--format", "csv").stdout
    assert "support~v8" in rated
    where = "prompt_set = 'source:support'"
    assert command("rate", "v.csv", "--where", where, "--format", "csv").stdout == rated
    pair = ("--candidate", "support~v8", "--incumbent", "support~v7", "--margin", "20")
    asked = command("gate", *pair, quick.database, *policy, "--format", "json")
    assert asked.returncode == 3, asked.stderr
    assert json.loads(asked.stdout)["candidate"] == "support~v8"
    refused(command("gate", *pair, quick.database), "12 dropped (voter of an application)")
    refused(command("gate", *pair, "v.csv", *policy), "--policy")


def test_applications_are_registered_once_and_seen(quick: Served, command: Command) -> None:
    at = ("--database", quick.database)
    given = ("--origin", "https://App.example.org/", "--share", ".05", "--per-hour", "2000")
    done = command("sources", "add", "support", *given, *at)
    token = done.stdout.strip()
    assert done.stderr.endswith(
        "shown only once. Up to 2,000 votes and pairs per hour; pairs on 5% of its turns, shown "
        f"by {PAGE}.\n"
    )
    application = Application(quick.url, "support", token)
    assert [application.compare().status_code, application.open_pair().status_code] == [201] * 2
    refused(command("sources", "add", "support", *at), "'support'")
    for name in ("Support", "gold", "a b", ""):
        refused(command("sources", "add", name, *at), repr(name))
    for origin in ("app.example.org", "https://app.example.org/chat", "https://*.example.org"):
        refused(command("sources", "add", "search", "--origin", origin, *at), repr(origin))
    (row,) = json.loads(command("sources", "list", "--format", "json", *at).stdout)["sources"]
    assert row.pop("created").startswith("20")
    assert row == {
        "name": "support",
        "origins": [PAGE],
        "share": 0.05,
        "per_hour": 2000,
        "revoked": None,
        "paused": None,
        "sent": 2,
        "votes": 1,
    }
    shown = command("sources", "list", *at, COLUMNS="200").stdout
    assert token not in shown
    cells = [cell.strip() for cell in shown.split("│")]
    assert f"support {PAGE} 5% 2,000 2 1" in " ".join(cells)
    with closing(Store(quick.database)) as store:
        (act,) = store.read(people.acts)[0]
    assert (act.act, act.subject) == ("add source", "support")
    few = "Up to 600 votes and pairs per hour; pairs on 10% of its turns, shown by no pages.\n"
    assert command("sources", "add", "search", *at).stderr.endswith(few)


def test_turns_are_drawn_by_the_share_and_always_alike(served: Served) -> None:
    application = registered(served, share=0.25)
    asked = [application.ask("GET", "share", params={"turn": "c17/3"}).json() for _ in range(2)]
    assert asked[0] == asked[1]
    assert asked[0]["share"] == 0.25
    shows = [source("salt", 0.25).shows(f"c{n}/1") for n in range(4000)]
    assert abs(sum(shows) - 1000) < 5 * (4000 * 0.25 * 0.75) ** 0.5
    other = [source("pepper", 0.25).shows(f"c{n}/1") for n in range(4000)]
    assert abs(sum(a and b for a, b in zip(shows, other, strict=True)) - 250) < 80
    assert not any(source("salt", 0).shows(f"{n}") for n in range(100))
    assert all(source("salt", 1).shows(f"{n}") for n in range(100))


def source(salt: str, share: float) -> Source:
    return Source(1, "support", (), 1, share, datetime(2026, 5, 3, tzinfo=UTC), None, salt)


def test_an_origin_is_what_a_browser_writes() -> None:
    assert origin_of("HTTPS://App.Example.org:443") == "https://app.example.org"
    assert origin_of("http://[::1]:8000") == "http://[::1]:8000"
    assert origin_of("http://localhost:80") == "http://localhost"
    for none in ("", "*", "null", "https://", "https://u@h.org", "https://h.org:x", "file:///x"):
        assert origin_of(none) is None
    assert not is_name("support~v7")
