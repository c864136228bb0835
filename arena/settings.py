"""Settings from the command line, the environment and the roster: read here, nowhere else."""

import logging
import os
import re
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from datetime import timedelta
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, SecretStr, TypeAdapter, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from arena.catalogue import Language
from arena.domain.battle import VOTE_WITHIN, PacePool, Pacing, Sampler, WhenAsked
from arena.domain.model import LISTED_AFTER, Model, Roster, first_fault
from arena.domain.people import Known, Perishable, Provider
from arena.domain.study import CallLimits, Purpose, Statements
from arena.endpoints.sse import Budgets
from arena.endpoints.trial import LOCAL, PROVIDERS, Server, entry_of
from arena.errors import SettingsError
from rating.errors import DataError
from rating.tables.files import parsed, parsed_toml, read_text, storable

if TYPE_CHECKING:
    from judge.labels.safety import SafetyTable
    from judge.report.cards import ProbePage

logger = logging.getLogger(__name__)

DAY_S = 86_400
DEMO_DATABASE = "sqlite:///arena-demo.db"
MOST = 2**31 - 1
"""Most of any number that has no smaller bound."""
LONGEST_STATEMENT = 5000
"""Characters of a statement on the evaluation card."""
FROM_FILES = ("secret_key", "oidc_client_secret", "database")
"""Settings that ``ARENA_<NAME>_FILE`` can give: the content of a file, such as a Docker secret."""
OF_SERVICES = re.compile(r"ARENA_(\w+_)?(SERVICE_(HOST=|PORT[=_])|PORT(_\d+_[A-Z]+|=\w+://))")
"""What Kubernetes sets for services "arena" and "arena-…": ``ARENA_PORT=tcp://10.0.0.1:80``."""
HOST_NAME = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*|\[?[0-9A-Fa-f:.]+\]?")
_MODEL = TypeAdapter(Model)


class Settings(BaseSettings):
    """Every setting, also as ``ARENA_<NAME>`` in the environment.

    What each means is written below it: ``docs/reference/settings.md`` is made of that.
    """

    model_config = SettingsConfigDict(
        env_prefix="ARENA_",
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        allow_inf_nan=False,
        str_strip_whitespace=True,
    )

    host: str = "127.0.0.1"
    """Address to listen on; `0.0.0.0` for IPv4, `::` for IPv4 and IPv6."""
    port: int = Field(7860, ge=0, le=65535)
    """Port; 0 chooses a free one."""
    hosts: str = ""
    """Host names by which visitors call the arena, separated by commas, without port."""
    database: str = "sqlite:///arena.db"
    """URL of the database: `sqlite:///FILE` or `postgresql://USER:PASSWORD@HOST/NAME`."""
    secret_key: SecretStr | None = None
    """Signs cookies; without it, visitors count as new voters after a restart."""
    lock_timeout_s: float = Field(15.0, gt=0, le=DAY_S)
    """Longest wait for other writers; then the answer is 503, and nothing is saved."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Least severe messages in the log."""
    metrics_host: str = "127.0.0.1"
    """Address on which metrics for Prometheus are served."""
    metrics_port: int | None = Field(None, ge=1, le=65535)
    """Port of the metrics; without it none are served."""
    otel: bool = False
    """Send an event of each battle and verdict by OpenTelemetry (extra `otel`)."""
    shutdown_grace_s: float = Field(10.0, ge=0, le=DAY_S)
    """Time for running battles after SIGTERM or SIGINT."""
    trusted_proxies: str = ""
    """Addresses or networks of your proxies, separated by commas."""
    members_only: bool = False
    """Only users, invited or signed in, may enter."""
    admins: str = ""
    """Administrators, separated by commas: names from the proxy, or verified email addresses."""
    researchers: str = ""
    """Researchers, in the same form."""
    session_days: int = Field(365, ge=1, le=400)
    """Days until users must sign in again."""
    user_header: str = Field("", pattern="^[A-Za-z0-9-]*$")
    """Header with the user's name from a trusted proxy, such as `Remote-User`."""
    oidc_issuer: str | None = Field(None, pattern="^https?://[^ ]+$")
    """URL of an OpenID Connect provider."""
    oidc_client_id: str | None = None
    """Client id of the arena at the provider."""
    oidc_client_secret: SecretStr | None = None
    """Client secret, if the provider gave one."""
    oidc_name: str = "OpenID"
    """Label of the button that signs in."""
    oidc_trust_mail: bool = False
    """Accept unverified email addresses; Entra ID marks none as verified."""
    oidc_domains: str = ""
    """Email domains that may enter, separated by commas."""
    oidc_groups: str = ""
    """Groups that may enter, from the claim `groups` or `roles`."""
    oidc_admin_groups: str = ""
    """Groups whose members are administrators."""
    roster: Path | None = None
    """Roster file; without one the models in the database are used, else toys."""
    keys: Path | None = None
    """File of `NAME=VALUE` lines with API keys; overrides the environment."""
    sampler: Sampler = Sampler.UNIFORM
    """Rule that draws the two models of a battle."""
    exploration: float = Field(0.1, gt=0, le=1)
    """Share of draws in which all pairs are equally likely."""
    race: str = ""
    """Ids of the two models of the sampler `race`, such as `basalt,quartz`."""
    pacing: Pacing = Pacing.PACED
    """Pace at which both answers appear."""
    characters_per_s: float = Field(150.0, gt=0, le=MOST)
    """Fastest pace, in characters per second."""
    pace_pool: PacePool = PacePool.PAIR
    """Models whose answers decide the pace."""
    prior_delay_s: float = Field(1.0, ge=0, le=DAY_S)
    """Assumed delay of a model without answers."""
    prior_characters_per_s: float | None = Field(None, gt=0, le=MOST)
    """Assumed speed of a model without answers; without it, the fastest pace."""
    first_token_timeout_s: float = Field(30.0, gt=0, le=DAY_S)
    """Longest wait for the first token, reasoning included."""
    idle_timeout_s: float = Field(30.0, gt=0, le=DAY_S)
    """Longest silence within an answer."""
    answer_timeout_s: float = Field(180.0, gt=0, le=DAY_S)
    """Longest time of an answer."""
    max_response_bytes: int = Field(4_194_304, gt=0, le=MOST)
    """Largest response of an endpoint."""
    max_numbers_bytes: int = Field(67_108_864, gt=0, le=MOST)
    """Largest embeddings, or reply of a judge with log-probabilities."""
    max_line_bytes: int = Field(262_144, gt=0, le=MOST)
    """Largest line or event of an endpoint's stream."""
    max_response_header_bytes: int = Field(65_536, gt=0, le=MOST)
    """Largest headers of an endpoint's response, together."""
    max_reasoning_chars: int = Field(200_000, gt=0, le=MOST)
    """Most characters of reasoning in an answer."""
    page: bool = True
    """Serve the battle page besides the API."""
    chat: str = Field("", pattern="^(/[A-Za-z0-9_-]+)*$")
    """Path of a [Gradio chat](../guides/embed.md#gradio-chat) besides the page."""
    language: Language = Language.EN
    """Language for browsers that ask for neither."""
    show_battles: bool = True
    """Visitors can read battles with a vote, without the voter."""
    reasons: WhenAsked = WhenAsked.AFTER
    """When the page asks for reasons: before or after it shows the names, or never."""
    vote_within_hours: int = Field(VOTE_WITHIN // timedelta(hours=1), ge=1, le=8760)
    """Hours after which a battle without a vote closes."""
    listed_after: int = Field(LISTED_AFTER, ge=0, le=MOST)
    """Counted votes below which a model is "provisional"; 50 votes give ±100 points at best."""
    gold: Path | None = None
    """File of gold battles."""
    gold_share: float = Field(0.03, ge=0, le=0.05)
    """Largest share of gold battles."""
    instructions: Path | None = None
    """File of prompts with checkable instructions."""
    card: Path | None = None
    """TOML file of statements on the evaluation card at `/evaluation`."""
    cards: Path | None = None
    """Folder of probe reports (JSON), shown at `/cards`."""
    safety: Path | None = None
    """File or folder of `arena safety --out`, shown at `/value`."""
    newcomers: Path | None = None
    """Cold-start ratings, a JSON file or a folder, shown until 30 votes rate the model."""
    study: Path | None = None
    """`report.html` of `arena study judge`, shown at `/study`."""
    keep_words_days: int | None = Field(None, ge=2, le=36_500)
    """Days after which texts of battles are erased; votes stay."""
    keep_unvoted_days: int | None = Field(None, ge=2, le=36_500)
    """Days after which battles without a vote are deleted."""
    max_dollars_per_day: float | None = Field(None, gt=0, le=MOST)
    """No new battles once the answers of the last 24 hours cost this many dollars."""
    cost_per_voter_day: float | None = Field(None, gt=0, le=MOST)
    """The same for the answers to one voter."""
    max_prompt_chars: int = Field(20_000, gt=0, le=MOST)
    """Longest prompt."""
    max_answer_chars: int = Field(40_000, gt=0, le=MOST)
    """Longest answer; the rest is cut."""
    battles_per_voter_hour: int = Field(500, gt=0, le=MOST)
    """Battles per visitor and hour."""
    battles_per_address_hour: int = Field(2000, gt=0, le=MOST)
    """Battles per address and hour."""
    running_per_voter: int = Field(3, gt=0, le=MOST)
    """Running battles per visitor."""
    running_per_address: int = Field(30, gt=0, le=MOST)
    """Running battles per address."""
    running_battles: int = Field(400, gt=0, le=500)
    """Running battles of all visitors."""
    streams_per_voter: int = Field(5, gt=0, le=MOST)
    """Open streams per visitor."""
    streams_per_address: int = Field(50, gt=0, le=MOST)
    """Open streams per address."""
    streams: int = Field(500, gt=0, le=MOST)
    """Open streams of all visitors."""
    raters_per_address: int = Field(40, gt=0, le=MOST)
    """Raters of a study at a time per address."""
    new_raters_per_address_hour: int = Field(120, gt=0, le=MOST)
    """New raters of a study per address and hour."""
    connections: int = Field(1000, gt=0, le=MOST)
    """Client connections; idle and slow ones make room, else 503."""
    connections_per_address: int = Field(125, gt=0, le=MOST)
    """Client connections per address; a trusted proxy may use all."""
    max_body_bytes: int = Field(1_048_576, gt=0, le=MOST)
    """Largest body of a request."""
    max_header_bytes: int = Field(32_768, gt=0, le=MOST)
    """Largest address and headers of a request, together."""
    header_timeout_s: float = Field(10.0, gt=0, le=DAY_S)
    """Time to send the headers."""
    body_timeout_s: float = Field(30.0, gt=0, le=DAY_S)
    """Time to send the body."""
    unread_timeout_s: float = Field(30.0, gt=0, le=DAY_S)
    """Time without reading a response that is ready; then the connection closes."""

    @field_validator("trusted_proxies")
    @classmethod
    def _read_networks(cls, value: str) -> str:
        """Refuse what is neither an address nor a network."""
        for network in _items(value):
            ip_network(network)
        return value

    @field_validator("hosts")
    @classmethod
    def _read_hosts(cls, value: str) -> str:
        """Refuse what no browser would send as the name of a host."""
        for host in _items(value):
            if not HOST_NAME.fullmatch(host):
                msg = f"{host!r} must be a name or an address alone, without scheme and port"
                raise ValueError(msg)
        return value

    def named_roles(self) -> Known:
        """Give who has a role by the settings."""
        return Known(_lower(self.admins), _lower(self.researchers))

    def provider(self) -> Provider | None:
        """Give where people sign in; None if nowhere."""
        if self.oidc_issuer is None or self.oidc_client_id is None:
            return None
        secret = self.oidc_client_secret
        return Provider(
            issuer=self.oidc_issuer.rstrip("/"),
            client_id=self.oidc_client_id,
            client_secret=secret.get_secret_value() if secret else None,
            name=self.oidc_name,
            trusts_mail=self.oidc_trust_mail,
            domains=_lower(self.oidc_domains),
            groups=_lower(self.oidc_groups),
            admin_groups=_lower(self.oidc_admin_groups),
        )

    def retention_days(self) -> dict[Perishable, int | None]:
        """Give for how many days what is kept."""
        return {Perishable.WORDS: self.keep_words_days, Perishable.UNVOTED: self.keep_unvoted_days}

    def vote_within(self) -> timedelta:
        """Give how long a battle takes a vote after its models were last asked."""
        return timedelta(hours=self.vote_within_hours)

    def host_names(self) -> frozenset[str]:
        """Give the names by which visitors call the arena, as a browser writes them."""
        return frozenset(host.strip("[]").lower() for host in _items(self.hosts))

    def proxy_networks(self) -> tuple[IPv4Network | IPv6Network, ...]:
        """Give the networks of the trusted proxies."""
        return tuple(map(ip_network, _items(self.trusted_proxies)))

    def signing_key(self) -> str:
        """Give the secret key, or a random one where none is set."""
        return self.secret_key.get_secret_value() if self.secret_key else secrets.token_hex(32)

    def call_limits(self) -> CallLimits:
        """Give the bounds within which models are asked, for the evaluation card."""
        return CallLimits(
            max_prompt_chars=self.max_prompt_chars,
            max_answer_chars=self.max_answer_chars,
            answer_timeout_s=self.answer_timeout_s,
        )

    def between(self) -> tuple[str, str] | None:
        """Give the ids of the two models that race; None where none do.

        Raises
        ------
        SettingsError
            If they are not two, or ARENA_SAMPLER is another one.
        """
        if self.sampler is not Sampler.RACE and not self.race:
            return None
        if self.sampler is not Sampler.RACE or not self.race:
            raise SettingsError(
                "ARENA_SAMPLER=race and ARENA_RACE belong together: set both, as in "
                "ARENA_RACE=basalt,quartz, or neither."
            )
        first, *rest = _items(self.race) or [""]
        if len(rest) != 1 or first in rest:
            msg = f"ARENA_RACE={self.race!r}: name two models by their ids, as in basalt,quartz."
            raise SettingsError(msg)
        return first, rest[0]

    def budgets(self) -> Budgets:
        """Give what an endpoint may send."""
        return Budgets(
            response_bytes=self.max_response_bytes,
            numbers_bytes=self.max_numbers_bytes,
            line_bytes=self.max_line_bytes,
            header_bytes=self.max_response_header_bytes,
            reasoning_chars=self.max_reasoning_chars,
        )


def read_settings(**given: object) -> Settings:
    """Read the settings; what is given and not None goes before the environment.

    Raises
    ------
    SettingsError
        Naming the setting and its value.
    """
    known = {f"ARENA_{name.upper()}" for name in Settings.model_fields}
    known |= (files := {f"ARENA_{name.upper()}_FILE": name for name in FROM_FILES}).keys()
    for name, value in sorted(os.environ.items()):
        if OF_SERVICES.match(f"{name}={value}"):
            del os.environ[name]  # it may have the name of a setting
        elif re.match("ARENA_(?!TESTS_)", name) and name not in known:
            from rapidfuzz import process  # 4 MB, and only who misspells needs it

            nearest = process.extractOne(name, known)[0]
            msg = f"{name} is no setting. Did you mean {nearest}? Correct it, or unset it."
            raise SettingsError(msg)
    for variable, name in files.items():
        if given.get(name) is None and (file := os.environ.get(variable)):
            given[name] = read_text(Path(file), SettingsError).strip()
            if not given[name]:
                raise SettingsError(f"{variable}: {file!r} is empty. Write the setting into it.")
    try:
        settings = Settings.model_validate({name: v for name, v in given.items() if v is not None})
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        where = (
            f"--{name.replace('_', '-')}"
            if given.get(name) is not None
            else f"ARENA_{name.upper()}"
        )
        msg = f"{where}: {_plain_message(first['msg'])}, got {first['input']!r}."
        raise SettingsError(msg) from error
    _check_sign_in(settings)
    settings.between()
    return settings


def demo_settings(**given: object) -> Settings:
    """Read the settings, with a database of the demo's own unless one is named."""
    settings = read_settings(**given)
    own = {} if "database" in settings.model_fields_set else {"database": DEMO_DATABASE}
    return settings.model_copy(update=own)


def _check_sign_in(settings: Settings) -> None:
    """Refuse ways in that could not work, or that anybody could take."""
    if settings.user_header and not settings.trusted_proxies:
        raise SettingsError(
            f"ARENA_USER_HEADER={settings.user_header!r} is believed of trusted proxies alone, "
            "and there is none: name yours in ARENA_TRUSTED_PROXIES."
        )
    if settings.user_header and not all(one.prefixlen for one in settings.proxy_networks()):
        raise SettingsError(
            f"ARENA_TRUSTED_PROXIES={settings.trusted_proxies!r} has every address, so anybody "
            f"could say by ARENA_USER_HEADER={settings.user_header!r} who they are: name the "
            "address of your proxy."
        )
    if (settings.oidc_issuer is None) != (settings.oidc_client_id is None):
        msg = "ARENA_OIDC_ISSUER and ARENA_OIDC_CLIENT_ID belong together: set both or neither."
        raise SettingsError(msg)
    if settings.secret_key is None and (settings.user_header or settings.oidc_issuer):
        raise SettingsError(
            "People are known again by a hash that ARENA_SECRET_KEY makes, and it is not set: "
            "set it before they sign in."
        )


def read_roster(path: Path, *, to_battle: bool = True) -> Roster:
    """Read a roster: a TOML file with one ``[[models]]`` table a model.

    Parameters
    ----------
    to_battle : bool
        Whether its models are to battle, for which it needs two; a judge may be alone.

    Raises
    ------
    SettingsError
        Naming the file, the key and the value.
    """
    models = models_in(read_text(path, SettingsError), path)
    if to_battle and len(models) < 2:
        msg = f"{path}: a battle needs two models, got {len(models)}. Add a [[models]] table."
        raise SettingsError(msg)
    return Roster(models)


def models_in(text: str, path: Path) -> tuple[Model, ...]:
    """Read the models of a roster that is a text; ``path`` is what errors call it.

    Raises
    ------
    SettingsError
        Naming the path, the key and the value.
    """
    return models_of(_tables(text, path), path)


def models_of(entries: Iterable[Mapping[str, Any]], path: Path) -> tuple[Model, ...]:
    """Read the models of a roster's tables: see `models_in`."""
    models = tuple(_model(path, number, {**entry}) for number, entry in enumerate(entries, 1))
    _refuse_twins(path, "id", [model.id for model in models])
    _refuse_twins(path, "name", [model.name for model in models])
    declared = [f"{m.family}: {m.declared_order}" for m in models if m.declared_order is not None]
    _refuse_twins(path, "declared_order", declared)
    return models


class Keys(Mapping[str, str]):
    """API keys by name: those of a file, read again when it changes, before the environment's.

    Parameters
    ----------
    names : iterable of str
        Those to look for in the environment when all are asked for.
    file : Path or None
        Lines of ``NAME=VALUE``; a warning is logged if everybody can read them.

    Raises
    ------
    SettingsError
        If the file cannot be read. Later, what is wrong with it is
        logged, and the keys that were read before stay.
    """

    def __init__(self, names: Iterable[str], file: Path | None = None) -> None:
        self._names = frozenset(names)
        self._file = file
        self._state: object = None
        self.of_file: Mapping[str, str] = {}
        self._look()

    def __getitem__(self, name: str) -> str:
        """Give a key as it is now."""
        try:
            self._look()
        except SettingsError as error:
            logger.error("The keys that were read before stay: %s", error)  # noqa: TRY400
        return self.of_file.get(name) or os.environ[name]

    def __iter__(self) -> Iterator[str]:
        """Give the names of the keys that there are."""
        return (name for name in {*self.of_file, *self._names} if self.get(name))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _look(self) -> None:
        if self._file is None:
            return
        try:
            stat = self._file.stat()
        except OSError as error:
            self._state = None
            msg = f"ARENA_KEYS: {str(self._file)!r} cannot be read: {error.strerror}."
            raise SettingsError(msg) from error
        state = (stat.st_mtime_ns, stat.st_size, stat.st_ino, stat.st_mode)
        if state == self._state:
            return
        self._state = state
        if stat.st_mode & 0o007:
            logger.warning("ARENA_KEYS: everybody can read '%s'. Run chmod 600 on it.", self._file)
        self.of_file = _keys_in(self._file)


def _keys_in(file: Path) -> dict[str, str]:
    keys = {}
    for number, line in enumerate(read_text(file, SettingsError).splitlines(), 1):
        name, equals, key = line.strip().partition("=")
        if not name or name.startswith("#"):
            continue
        if not equals or not key.strip():  # the line is not quoted: it may hold a key
            msg = f"ARENA_KEYS: line {number} of {str(file)!r} is not NAME=VALUE. Mend it."
            raise SettingsError(msg)
        keys[name.strip()] = key.strip().strip("\"'")
    return keys


def read_keys(models: Iterable[Model], file: Path | None = None) -> Keys:
    """Read the models' API keys by the names the roster gives: see `Keys`.

    Raises
    ------
    SettingsError
        Naming the first model and variable that is missing, or what is wrong with the file.
    """
    needing = [(model.id, model.api_key_env) for model in models if model.api_key_env]
    keys = Keys((name for _, name in needing), file)
    for model_id, name in needing:
        if not keys.get(name):
            raise SettingsError(
                f"Model {model_id!r} needs the key {name!r}, which is set nowhere. Put it into "
                "the file that ARENA_KEYS names or into the environment, or remove api_key_env "
                "from the roster."
            )
    return keys


def read_servers() -> tuple[Server, ...]:
    """Give the servers on this machine where models may answer, and what OPENAI_BASE_URL names."""
    named = _read_openai()
    return (*LOCAL, named) if named else LOCAL


def provider_model(name: str) -> Model | None:
    """Give the model that a name such as openai/gpt-5 means; None if no provider is named.

    ``OPENAI_BASE_URL`` and its like replace the provider's address.

    Raises
    ------
    SettingsError
        If the address cannot be one, or holds a key.
    """
    provider, _, model = name.partition("/")
    if provider not in PROVIDERS or not model:
        return None
    server, variable = PROVIDERS[provider], f"{provider.upper()}_BASE_URL"
    url = os.environ.get(variable, server.url).rstrip("/")
    entry = entry_of(replace(server, url=url), model, name)
    if fault := first_fault(entry):
        raise SettingsError(f"{variable}: {fault}")
    return entry


def _read_openai() -> Server | None:
    """Read the server that OPENAI_BASE_URL names, with the key of OPENAI_API_KEY if there is one.

    A key alone names no server: a demo must not spend money because a key lies about.

    Raises
    ------
    SettingsError
        If the address cannot be one, or holds a key.
    """
    key, url = os.environ.get("OPENAI_API_KEY"), os.environ.get("OPENAI_BASE_URL")
    if not url:
        return None
    if fault := first_fault(Model(id="OpenAI", name="OpenAI", endpoint=url, model="any")):
        raise SettingsError(f"OPENAI_BASE_URL: {fault}")
    return Server("OpenAI", url.rstrip("/"), "OPENAI_API_KEY" if key else None, key or None)


def read_statements(path: Path | None) -> Statements:
    """Read the operator's statements on the evaluation; of no file, nothing.

    Keys are those of `Statements`, each a text; one that is missing stays empty, and the card
    says so.

    Raises
    ------
    SettingsError
        Naming the file, the key and the value.
    """
    if path is None:
        return Statements()
    content = parsed_toml(read_text(path, SettingsError), str(path), SettingsError)
    known = [one.name for one in fields(Statements)]
    for key, value in content.items():
        if key not in known:
            raise SettingsError(f"{path}: unknown key {key!r}: a card has {', '.join(known)}.")
        if not isinstance(value, str) or len(value) > LONGEST_STATEMENT:
            raise SettingsError(
                f"{path}: key {key!r} must be a text of at most {LONGEST_STATEMENT:,} characters, "
                f"got {str(value)[:80]!r}."
            )
    texts = {key: storable(value).strip() for key, value in content.items()}
    if (purpose := texts.pop("purpose", "")) and purpose not in list(Purpose):
        msg = f"{path}: key 'purpose' must be one of {', '.join(Purpose)}, got {purpose!r}."
        raise SettingsError(msg)
    return Statements(purpose=Purpose(purpose) if purpose else None, **texts)


def read_cards(folder: Path) -> "tuple[ProbePage, ...]":
    """Read the cards of every JSON file of a folder, by name.

    Raises
    ------
    SettingsError
        If there is no such folder, or a file in it holds no cards.
    """
    if not folder.is_dir():
        raise SettingsError(f"ARENA_CARDS: {str(folder)!r} is no folder. Make or unset it.")
    return tuple(_card_page(file) for file in sorted(folder.glob("*.json")))


def read_refusals(path: Path) -> "SafetyTable":
    """Read what `arena safety` wrote, of a file or of every JSON file of a folder.

    Raises
    ------
    SettingsError
        If there is no such file or folder, or it holds something else.
    """
    from judge.labels.safety import read_safety  # most commands do without

    try:
        return read_safety(path)
    except DataError as error:
        raise SettingsError(f"ARENA_SAFETY: {error}") from error


def _lower(names: str) -> frozenset[str]:
    return frozenset(name.casefold() for name in _items(names))


def _items(text: str) -> list[str]:
    return [item for item in map(str.strip, text.split(",")) if item]


def _tables(text: str, path: Path) -> list[dict[str, Any]]:
    content = parsed_toml(text, str(path), SettingsError)
    if unknown := sorted(content.keys() - {"models"}):
        msg = f"{path}: unknown key {unknown[0]!r}; a roster holds [[models]] tables only."
        raise SettingsError(msg)
    entries = content.get("models")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise SettingsError(f"{path}: key 'models' must be [[models]] tables, got {entries!r}.")
    return entries


def _card_page(file: Path) -> "ProbePage":
    from judge.report.cards import page_of  # most commands do without

    content = parsed(read_text(file, SettingsError), f"ARENA_CARDS: {str(file)!r}", SettingsError)
    try:
        return page_of(content)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        wrote = "`arena probe` or `arena judge probe` wrote"
        msg = f"ARENA_CARDS: {str(file)!r} holds no cards that {wrote} ({error!r})."
        raise SettingsError(msg) from error


def _model(path: Path, number: int, entry: dict[str, Any]) -> Model:
    if str(entry.get("endpoint", "")).startswith("recorded://"):
        entry = {"model": entry.get("id")} | entry
    try:
        model = _MODEL.validate_python(entry)
    except ValidationError as error:
        raise SettingsError(_describe(path, number, entry, error)) from error
    if fault := first_fault(model):
        raise SettingsError(f"{path}: model {model.id!r}: {fault}")
    recording = model.recording and str(path.parent / model.recording)
    return replace(model, recording=recording)


def _describe(path: Path, number: int, entry: dict[str, Any], error: ValidationError) -> str:
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    where = f"{path}: model {entry.get('id', f'number {number}')!r}: "
    match first["type"]:
        case "missing" | "missing_argument":
            return f"{where}key {key!r} is missing."
        case "unexpected_keyword_argument" | "extra_forbidden":
            return (
                f"{where}unknown key {key!r} with value {first['input']!r}. Remove or rename it."
            )
        case _:
            return f"{where}key {key!r}: {_plain_message(first['msg'])}, got {first['input']!r}."


def _refuse_twins(path: Path, key: str, values: list[str]) -> None:
    counts = Counter(value.strip().casefold() for value in values)
    twins = [value for value in values if counts[value.strip().casefold()] > 1]
    if twins:
        msg = f"{path}: key {key!r} must differ between models, got {twins[0]!r} twice."
        raise SettingsError(msg)


def _plain_message(text: str) -> str:
    return text.removeprefix("Value error, ").strip().rstrip(".").replace("\n", " ")
