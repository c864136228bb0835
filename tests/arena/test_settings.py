from dataclasses import asdict
from datetime import timedelta
from pathlib import Path

import pytest

from arena.app import create_app
from arena.domain.battle import Pacing
from arena.domain.people import Perishable, Role
from arena.errors import SettingsError
from arena.parts import rules_of
from arena.settings import Settings, read_keys, read_roster, read_settings
from tests.sqlite import new_sqlite

X = '[[models]]\nid = "x"\nname = "X"\nendpoint = "http://localhost/v1"\nmodel = "m"\n'
Y = X.replace('"x"', '"y"').replace('"X"', '"Y"')


def write(folder: Path, text: str) -> Path:
    path = folder / "roster.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_roster_gives_its_models(tmp_path: Path) -> None:
    extra = (
        'organisation = "Rocks"\nkind = "system"\nweight = 2\nlicence = "MIT"\n'
        'system_prompt = "Be brief."\ndecoding = { temperature = 0.2, max_tokens = 900 }\n'
        "price = { input = 1, output = 2.5, date = 2026-01-31 }\n"
        'contamination_report = "https://rocks.example/report?of=x#data"\n'
    )
    roster = read_roster(write(tmp_path, X + extra + Y))
    assert [one.id for one in roster] == ["x", "y"]
    model, other = roster
    assert (model.kind, model.weight, model.organisation) == ("system", 2, "Rocks")
    assert model.decoding == {"temperature": 0.2, "max_tokens": 900}
    assert model.contamination_report == "https://rocks.example/report?of=x#data"
    assert other.contamination_report is None
    assert model.price is not None
    assert model.price.date.isoformat() == "2026-01-31"


def test_a_recording_is_found_beside_its_roster(tmp_path: Path) -> None:
    text = '[[models]]\nid = "r"\nname = "R"\nendpoint = "recorded://"\nrecording = "r.json"\n'
    model, _ = read_roster(write(tmp_path, text.replace("recorded://", "recorded://files") + X))
    assert model.recording == str(tmp_path / "r.json")
    assert model.model == "r"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[models]\n", ["not TOML", "line 1"]),
        ("models = 3", ["'models'", "3"]),
        (X + "[limits]\nn = 1", ["unknown key 'limits'"]),
        (X, ["two models, got 1"]),
        (X + "colour = 'red'\n" + Y, ["'x'", "unknown key 'colour'", "'red'"]),
        (X + X.replace('"X"', '"Z"'), ["'id'", "'x' twice"]),
        (X + Y.replace('"y"', '"X"'), ["'id'", "twice"]),
        (X + Y.replace('"Y"', '"X"'), ["'name'", "'X' twice"]),
        (X + "weight = -1\n" + Y, ["'weight'", "-1"]),
        *(
            (
                f"{X}contamination_report = '{url}'\n{Y}",
                ["'contamination_report'", url, "https://"],
            )
            for url in (
                "javascript:alert(1)",
                "data:text/html,x",
                "//x.org",
                "x.org",
                "ftp://x.org",
                "",
                "https://",
                "https:///x",
                "https://x.org/a b",
                "https://ada:pw@x.org/",
                " http://x",
                'https://x.org/"onclick="x', "https://x.org/<b>",
            )
        ),
        (X + "weight = 'much'\n" + Y, ["'weight'", "'much'"]),
        (X + "price = { input = 1 }\n" + Y, ["'price.output' is missing"]),
        (X + "price = { input = 1, output = -2, date = 2026-01-01 }\n" + Y, ["'price'", "-2"]),
        (
            X + "price = { input = 1, output = inf, date = 2026-01-01 }\n" + Y,
            ["'price'", "not negative and finite: 1.0, inf"],
        ),
        (X + "price = { input = nan, output = 2, date = 2026-01-01 }\n" + Y, ["finite: nan, 2.0"]),
        (
            X + "price = { input = 1, output = 2, date = 2026-01-01, per = 1 }\n" + Y,
            ["'price.per'"],
        ),
        (X + "price = { input = 1, output = 2, date = 'soon' }\n" + Y, ["'price.date'", "'soon'"]),
        (X + "kind = 'robot'\n" + Y, ["'kind'", "'robot'"]),
        (X.replace("http://", "ftp://") + Y, ["'endpoint'", "ftp://localhost/v1"]),
        (X.replace("http://localhost", "local://other") + Y, ["local://smollm2/v1 with", "other"]),
        (X.replace("http://localhost", "local://smollm2") + Y, ["the only local model"]),
        (X.replace('id = "x"\n', "") + Y, ["number 1", "'id' is missing"]),
        (X.replace('"x"', '" x"') + Y, ["'id'", "' x'"]),
        (X + "recording = 'r.json'\n" + Y, ["'recording'", "'r.json'"]),
        (X + "characters_per_s = 0\n" + Y, ["'characters_per_s'", "0"]),
        (X.replace("http://", "recorded://") + Y, ["'recording'", "a file for a recorded://"]),
        (X + "declared_order = 1\n" + Y, ["'declared_order'", "variants of a family"]),
        (X + "family = 'f'\ndeclared_order = 0\n" + Y, ["'declared_order'", "from 1 to"]),
        (X + f"family = '{'f' * 101}'\n" + Y, ["'family'", "at most 100 characters"]),
        (X + "decoding = { max_tokens = 0 }\n" + Y, ["'decoding.max_tokens'", "from 1 to 10"]),
        (X + "weight = inf\n" + Y, ["'weight'", "from 0 to 1,000,000, got inf"]),
        (X + "decoding = { temperature = inf }\n" + Y, ["'decoding.temperature'", "got inf"]),
        (X + "api_key_env = 'arena_secret_key'\n" + Y, ["'api_key_env'", "own settings"]),
        (X.replace("//localhost", "//ada:pw@localhost") + Y, ["'endpoint'", "without a user"]),
        (X + "without = ['messages']\n" + Y, ["'without'", "messages", "stream_options, system"]),
        (X + "without = 'seed'\n" + Y, ["'without'", "'seed'"]),
        (
            X + "without = ['user', 'store', 'seed']\ndecoding = { seed = 7, n = 1 }\n" + Y,
            ["'without'", "decoding does not set", "seed"],
        ),
        (X + "api_key_header = 'Host'\napi_key_env = 'K'\n" + Y, ["'api_key_header'", "'Host'"]),
        (X + "api_key_header = 'api-key'\n" + Y, ["'api_key_header'", "api_key_env"]),
        (X.replace("//localhost", "//evil\\\\@localhost") + Y, ["'endpoint'", "without a user"]),
    ],
)  # fmt: skip
def test_a_bad_roster_names_file_key_and_value(
    tmp_path: Path, text: str, words: list[str]
) -> None:
    with pytest.raises(SettingsError) as raised:
        read_roster(write(tmp_path, text))
    message = str(raised.value)
    assert "roster.toml" in message
    assert "\n" not in message
    assert [word for word in words if word not in message] == [], message


def test_a_missing_roster_is_said(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"nowhere.toml': there is no such file"):
        read_roster(tmp_path / "nowhere.toml")


def test_a_missing_key_names_the_variable_and_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    roster = read_roster(write(tmp_path, X + "api_key_env = 'SOME_KEY'\n" + Y))
    monkeypatch.delenv("SOME_KEY", raising=False)
    with pytest.raises(SettingsError, match="'x' needs the key 'SOME_KEY'"):
        read_keys(roster)
    monkeypatch.setenv("SOME_KEY", "secret")
    assert read_keys(roster) == {"SOME_KEY": "secret"}


def test_options_go_before_the_environment_and_both_before_defaults(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ARENA_PORT", "1234")
    monkeypatch.setenv("ARENA_PACING", "both-done")
    assert read_settings().port == 1234
    assert read_settings(port=99, host=None).port == 99
    assert read_settings().pacing is Pacing.BOTH_DONE
    assert read_settings().host == "127.0.0.1"


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("ARENA_PORT", "many", "ARENA_PORT.*'many'"),
        ("ARENA_PACING", "fast", "ARENA_PACING.*'fast'"),
        ("ARENA_CHARACTERS_PER_S", "0", "ARENA_CHARACTERS_PER_S.*'0'"),
        ("ARENA_TRUSTED_PROXIES", "nginx", "ARENA_TRUSTED_PROXIES.*'nginx'"),
        ("ARENA_HOSTS", "a.org, b.org:80", "ARENA_HOSTS: 'b.org:80' must be a name .* alone"),
        ("ARENA_HOSTS", "https://a.org", "ARENA_HOSTS: 'https://a.org' must be"),
        ("ARENA_HOSTS", "*", r"ARENA_HOSTS: '\*' must be"),
    ],
)
def test_a_bad_variable_is_named_with_its_value(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, words: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=words):
        read_settings()


@pytest.mark.parametrize("name", sorted(Settings.model_fields))
def test_a_misspelt_setting_is_refused_with_its_right_name(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    right, wrong = f"ARENA_{name.upper()}", f"ARENA_{name[0].upper()}{name.upper()}"
    monkeypatch.setenv(wrong, "value")
    with pytest.raises(SettingsError, match=rf"^{wrong} is no setting. .* {right}\?"):
        read_settings()


def test_an_empty_variable_counts_as_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Docker compose passes such a one where a file of settings lacks it."""
    before = read_settings()
    for name in Settings.model_fields:
        monkeypatch.setenv(f"ARENA_{name.upper()}", "")
    monkeypatch.setenv("ARENA_SECRET_KEY_FILE", "")
    assert read_settings() == before


def test_blanks_and_line_breaks_around_a_value_are_no_part_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Secrets of Kubernetes often end in a line break."""
    monkeypatch.setenv("ARENA_OIDC_CLIENT_SECRET", " hush\n")
    monkeypatch.setenv("ARENA_DATABASE", "sqlite:///a.db\r\n")
    secret = read_settings().oidc_client_secret
    assert secret is not None
    assert secret.get_secret_value() == "hush"
    assert read_settings().database == "sqlite:///a.db"


def test_variables_that_kubernetes_sets_for_a_service_are_no_settings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It names services in the variables of every container: this one, and "arena-postgres"."""
    for name in ("ARENA", "ARENA_METRICS", "ARENA_POSTGRES"):
        monkeypatch.setenv(f"{name}_SERVICE_HOST", "10.0.0.1")
        monkeypatch.setenv(f"{name}_SERVICE_PORT_HTTP", "80")
        monkeypatch.setenv(f"{name}_PORT", "tcp://10.0.0.1:80")
        monkeypatch.setenv(f"{name}_PORT_80_TCP_ADDR", "10.0.0.1")
    assert (read_settings().port, read_settings().metrics_port) == (7860, None)


def test_secrets_and_the_database_are_read_from_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hidden = (("SECRET_KEY", "hush"), ("OIDC_CLIENT_SECRET", "hush"))
    for name, content in (*hidden, ("DATABASE", "sqlite:///of-file.db")):
        file = tmp_path / name
        file.write_text(f"{content}\n")
        monkeypatch.setenv(f"ARENA_{name}_FILE", str(file))
    assert read_settings().signing_key() == "hush"
    assert read_settings().oidc_client_secret == read_settings().secret_key
    assert read_settings().database == "sqlite:///of-file.db"
    assert read_settings(database="sqlite:///given.db").database == "sqlite:///given.db"
    monkeypatch.setenv("ARENA_DATABASE", "sqlite:///of-the-image.db")
    assert read_settings().database == "sqlite:///of-file.db"
    (tmp_path / "SECRET_KEY").write_text("\n")
    with pytest.raises(SettingsError, match=r"^ARENA_SECRET_KEY_FILE: .*SECRET_KEY' is empty"):
        read_settings()


def test_hosts_are_read_as_a_browser_writes_them() -> None:
    names = read_settings(hosts="Arena.Example.org, [2001:DB8::7],,192.0.2.7").host_names()
    assert names == {"arena.example.org", "2001:db8::7", "192.0.2.7"}


def test_the_secret_key_does_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARENA_SECRET_KEY", "hush")
    settings = read_settings()
    assert "hush" not in repr(settings)
    assert settings.signing_key() == "hush"
    monkeypatch.delenv("ARENA_SECRET_KEY")
    assert read_settings().signing_key() != read_settings().signing_key()


def test_weighted_draws_need_two_models_of_weight(tmp_path: Path) -> None:
    roster = write(tmp_path, f"{X}weight = 0\n{Y}")
    settings = read_settings(
        database=new_sqlite(tmp_path), roster=roster, sampler="weighted", page=False
    )
    with pytest.raises(SettingsError, match="two models of weight above 0, and the roster has 1"):
        create_app(settings)


@pytest.mark.parametrize("value", ["inf", "-inf", "nan", "1e400", "1e300"])
def test_no_setting_takes_a_number_that_is_not_finite_or_beyond_all_measure(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    numbers = [name for name, one in Settings.model_fields.items() if takes_number(one.annotation)]
    assert {"max_dollars_per_day", "answer_timeout_s", "connections", "gold_share"} < {*numbers}
    for name in numbers:
        with monkeypatch.context() as patch:
            patch.setenv(f"ARENA_{name.upper()}", value)
            with pytest.raises(SettingsError, match=f"ARENA_{name.upper()}: .* got '{value}'"):
                read_settings()


def takes_number(annotation: object) -> bool:
    kinds = {annotation, *getattr(annotation, "__args__", ())}
    return bool(kinds & {int, float})


@pytest.mark.parametrize("share", ["0", "1.01", "-0.1"])
def test_a_share_of_exploration_lies_above_0_and_at_most_1(
    monkeypatch: pytest.MonkeyPatch, share: str
) -> None:
    monkeypatch.setenv("ARENA_EXPLORATION", share)
    with pytest.raises(SettingsError, match=f"ARENA_EXPLORATION: .* got '{share}'"):
        read_settings()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"race": "a,b"}, "belong together"),
        ({"sampler": "race"}, "belong together"),
        ({"sampler": "gain", "race": "a,b"}, "belong together"),
        ({"sampler": "race", "race": "a"}, "name two models by their ids"),
        ({"sampler": "race", "race": ","}, "name two models by their ids"),
        ({"sampler": "race", "race": "a,a"}, "name two models by their ids"),
        ({"sampler": "race", "race": "a,b,c"}, "name two models by their ids"),
    ],
)
def test_a_race_is_between_two_models_and_has_its_sampler(
    given: dict[str, str], words: str
) -> None:
    with pytest.raises(SettingsError, match=words):
        read_settings(**given)
    assert read_settings(sampler="race", race=" a , b").between() == ("a", "b")
    assert read_settings().between() is None


def test_models_that_race_have_to_battle(tmp_path: Path) -> None:
    settings = read_settings(database=new_sqlite(tmp_path), sampler="race", race="toy-x,gone")
    with pytest.raises(SettingsError, match=r"ARENA_RACE: no model '(toy-x|gone)' battles here"):
        create_app(settings)


def test_each_setting_is_the_limit_or_the_role_that_it_names() -> None:
    sizes = ("response_bytes", "numbers_bytes", "line_bytes", "response_header_bytes")
    most = {f"max_{name}": n for n, name in enumerate((*sizes, "reasoning_chars"), 1)}
    calls = {"max_prompt_chars": 8, "max_answer_chars": 9, "answer_timeout_s": 10}
    paces = {"prior_delay_s": 11, "prior_characters_per_s": 12, "characters_per_s": 13}
    draws = {"sampler": "gain", "exploration": 0.5, "pacing": "raw", "pace_pool": "roster"}
    plays = calls | paces | draws | {"reasons": "before"}
    days = {"keep_words_days": 6, "keep_unvoted_days": 7, "vote_within_hours": 5}
    roles = {"admins": "Ada", "researchers": "Eve,BOB "}
    given = read_settings(**most, **plays, **days, **roles)
    assert list(asdict(given.budgets()).values()) == [1, 2, 3, 4, 5]
    assert asdict(given.call_limits()) == calls
    assert given.retention_days() == {Perishable.WORDS: 6, Perishable.UNVOTED: 7}
    assert given.vote_within() == timedelta(hours=5)
    rules = plays | {"race": None, "vote_within": timedelta(hours=5)}
    assert asdict(rules_of(given)).items() >= rules.items()
    of = [given.named_roles().role(name) for name in ("ADA", "bob", "cleo")]
    assert of == [Role.ADMIN, Role.RESEARCHER, Role.VOTER]
