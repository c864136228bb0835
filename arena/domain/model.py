"""Models as the arena knows them: roster entries, versions of applications, gold authors.

`Model` is an entry of a roster; `first_fault` checks one, wherever it comes from, and `public`
gives it as others may know it. The others have `BESIDE` in their ids, which no entry of a roster
can have. The record marks gold battles, and battles of applications, by the set that their prompt
is of. A vote binds that set, so it cannot be changed later.
"""

import hmac
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import date, datetime
from enum import StrEnum
from typing import ClassVar
from urllib.parse import unquote, urlsplit

from arena.domain.vote import Choice, FailureClass, Voter, VoterKind
from judge.budget import Price
from judge.calls import PLAIN, Profile

# Roster

BESIDE = "~"
"""In the ids of those who are in no roster: no model of one can have it."""
MODEL_ID = re.compile(r"[A-Za-z0-9][\w.:/@+ ()-]*")
ENDPOINT = re.compile(r"(https?|local|pocket|recorded)://[^\s/?#@\\]+([/?#]\S*)?")
SECRET = re.compile(
    r"key|token|secret|passw|auth|credential|^(?:sig|signature|code)$", re.IGNORECASE
)
"""Names in a query whose values are secrets: an address is shown on pages and in logs."""
HEADER = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,99}")
OUR_HEADERS = frozenset(
    {
        "accept", "accept-encoding", "connection", "content-encoding", "content-length",
        "content-type", "cookie", "expect", "host", "keep-alive", "proxy-authorization",
        "te", "trailer", "transfer-encoding", "upgrade", "user-agent",
    }
)  # fmt: skip
"""Headers that are of the request itself, in lower case: no key can go there."""
REPORT = re.compile(r"https?://[^\s/?#@\\\"'<>]+(?:[/?#][^\s\"'<>]*)?", re.IGNORECASE)
MOST_WEIGHT = 1_000_000
MOST_NUMBER = 2**63 - 1
"""Most that a number in ``decoding`` may be: what others read as JSON takes no more."""
BOUNDS = {
    "temperature": (0, 100),
    "top_p": (0, 1),
    "min_p": (0, 1),
    "max_tokens": (1, 10_000_000),
    "max_completion_tokens": (1, 10_000_000),
}
"""Least and most of values of ``decoding`` that endpoints call by one name."""
SYSTEM = "system"
"""Stands for messages of the role ``system``, where parameters are named."""
TOKEN_LIMITS = ("max_tokens", "max_completion_tokens")
"""Names of the limit of tokens: without one, the other is sent."""
OPTIONAL = frozenset(
    {
        *TOKEN_LIMITS,
        SYSTEM, "stream_options", "temperature", "top_p", "top_k", "min_p", "seed", "stop",
        "logprobs", "top_logprobs", "response_format", "dimensions", "encoding_format",
        "frequency_penalty", "presence_penalty", "repetition_penalty", "logit_bias",
        "parallel_tool_calls", "service_tier", "store", "metadata", "user", "n",
    }
)  # fmt: skip
"""What a request can do without.

Not among them: what decides how a model thinks (``reasoning_effort``, ``thinking``) or what it
works with (``tools``, ``chat_template_kwargs``). Without these it would be another model.
"""
LISTED_AFTER = 50
"""Counted votes from which a model is more than provisional on the leaderboard."""


class Kind(StrEnum):
    """Whether an entry answers as a bare model or as a system around one."""

    MODEL = "model"
    SYSTEM = "system"


class Release(StrEnum):
    """Whether an entry of the roster may be known, and by which name; it only moves on.

    Hidden: prepared, and not drawn. Pre-release: drawn, and shown by its id alone, also after a
    vote. Released: shown by its name.
    """

    HIDDEN = "hidden"
    PRE_RELEASE = "pre-release"
    RELEASED = "released"


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One entry of the roster: change anything that answers and it is another id.

    Attributes
    ----------
    id : str
        Key in the log and on the boards.
    endpoint : str
        Base URL: ``https://host/v1``, or the built-in ``local://``, ``pocket://`` and
        ``recorded://``.
    model : str
        The model's name at its endpoint.
    api_key_env : str or None
        Name of the environment variable that holds the key; None sends no key.
    api_key_header : str or None
        Name of the header in which the bare key is sent; None sends it as a bearer token.
    decoding : mapping
        Sent as they stand: temperature, max_tokens and the like.
    without : tuple of str
        Of `OPTIONAL`, what is never sent: the endpoint does not take it.
    price : Price or None
        None when unknown: a cost is then not computed, rather than called zero.
    weight : float
        Relative probability of being drawn by weighted sampling.
    recording : str or None
        File of recorded outputs that a ``recorded://`` endpoint replays.
    characters_per_s : float
        Pace of that replay.
    cutoff : date or None
        Day after which nothing that was written can have been learnt; None when unknown.
    contamination_report : str or None
        Address (http or https) of what its maker says of test data in its training data.
    family : str
        Name that it has in common with the other variants its producer tests; empty for none.
    declared_order : int or None
        Its place among them as the producer declares it, 1 for the one that is to be the best.
    release : Release
        How it enters; what became of that later says its `Entry`.
    judging : Profile
        What its endpoint takes when it is asked as a judge.
    """

    id: str
    name: str
    endpoint: str
    model: str
    organisation: str = ""
    kind: Kind = Kind.MODEL
    api_key_env: str | None = None
    system_prompt: str = ""
    api_key_header: str | None = None
    decoding: Mapping[str, object] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    price: Price | None = None
    weight: float = 1.0
    licence: str = ""
    recording: str | None = None
    characters_per_s: float = 400.0
    cutoff: date | None = None
    contamination_report: str | None = None
    family: str = ""
    declared_order: int | None = None
    release: Release = Release.RELEASED
    judging: Profile = PLAIN

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    @property
    def lacking(self) -> list[str]:
        """Of what it is asked without, the parameters that decide how it answers."""
        return sorted({*self.without} - {"stream_options"})


def first_fault(model: Model) -> str | None:
    """Give the first thing that is wrong with a model, wherever it comes from; None if it is fit.

    It names the key of the roster, such as ``decoding.temperature``, and quotes the value.

    Examples
    --------
    >>> model = Model(id="m", name="M", endpoint="https://h/v1", model="m", weight=float("inf"))
    >>> first_fault(model)
    "key 'weight' must be a number from 0 to 1,000,000, got inf."
    """
    key, value, wanted = next(_faults(model), ("", None, ""))
    return f"key {key!r} must be {wanted}, got {repr(value)[:100]}." if key else None


def _faults(model: Model) -> Iterator[tuple[str, object, str]]:
    """Give a key, its value, and what that must be instead."""
    for key, holds, wanted in (
        ("id", MODEL_ID.fullmatch(model.id), "letters, digits and . : / @ + - _"),
        ("name", model.name.strip(), "a name that people can read"),
        (
            "endpoint",
            ENDPOINT.fullmatch(model.endpoint),
            "http(s)://, local://, pocket:// or recorded:// and an address, without a user or a "
            "password",
        ),
        (
            "endpoint",
            not model.endpoint.startswith("local://")
            or (model.endpoint, model.model) == ("local://smollm2/v1", "smollm2"),
            "local://smollm2/v1 with the model smollm2, which is the only local model",
        ),
        (
            "endpoint",
            "#" not in model.endpoint,
            "an address without a fragment (#...), which is sent nowhere",
        ),
        (
            "endpoint",
            not any(map(SECRET.search, _query_names(model.endpoint))),
            "an address without a key in its query: name the key in api_key_env, and the header "
            "that takes it in api_key_header",
        ),
        (
            "api_key_env",
            not (model.api_key_env or "").upper().startswith("ARENA_"),
            "the name of a model's key, and of none of the arena's own settings",
        ),
        (
            "api_key_header",
            model.api_key_header is None
            or (
                HEADER.fullmatch(model.api_key_header)
                and model.api_key_header.lower() not in OUR_HEADERS
            ),
            "the name of a header for the key, such as api-key, and none that is sent anyway",
        ),
        (
            "api_key_header",
            model.api_key_header is None or model.api_key_env,
            "absent where api_key_env names no key",
        ),
        (
            "without",
            OPTIONAL.issuperset(model.without),
            f"a list of parameters that a request can do without: {', '.join(sorted(OPTIONAL))}",
        ),
        (
            "without",
            not model.decoding.keys() & {*model.without},
            "a list of parameters that decoding does not set",
        ),
        ("weight", 0 <= model.weight <= MOST_WEIGHT, f"a number from 0 to {MOST_WEIGHT:,}"),
        (
            "characters_per_s",
            0.1 <= model.characters_per_s <= 1e9,
            "a number from 0.1 to 1,000,000,000",
        ),
        (
            "recording",
            (model.recording is not None) == model.endpoint.startswith("recorded://"),
            "a file for a recorded:// endpoint, and for no other",
        ),
        (
            "id",
            model.release is Release.RELEASED or not _given_away(model),
            "one that does not give away the name, organisation or model until it is released",
        ),
        ("family", len(model.family) <= 100, "a name of at most 100 characters"),
        (
            "declared_order",
            model.declared_order is None
            or (model.family and 0 < model.declared_order <= 1_000_000),
            "a place from 1 to 1,000,000 among the variants of a family",
        ),
        (
            "contamination_report",
            model.contamination_report is None or REPORT.fullmatch(model.contamination_report),
            "http:// or https:// and an address",
        ),
    ):
        if not holds:
            value = getattr(model, key)
            value = _masked(value) if key == "endpoint" else value
            yield key, [*value] if key == "without" else value, wanted
    for name in (one.name for one in fields(model)):
        if isinstance(text := getattr(model, name), str) and "\0" in text:
            yield name, text, "a text without the character U+0000"
    yield from _faults_of_decoding("decoding", model.decoding)


def _masked(endpoint: str) -> str:
    """Give an address as it may be shown: without a user, a password, a query or a fragment.

    Examples
    --------
    >>> _masked("https://me:secret@host/v1?key=secret")
    'https://...@host/v1?...'
    """
    return re.sub(r"([?#]).*", r"\1...", re.sub(r"//[^/?#]*@", "//...@", endpoint))


def _query_names(endpoint: str) -> list[str]:
    query = endpoint.partition("#")[0].partition("?")[2]
    return [unquote(part.partition("=")[0]) for part in query.split("&")]


def _given_away(model: Model) -> bool:
    """Tell whether the id, by which a model is shown until it is released, states which it is."""
    parts = re.findall(r"[a-z0-9]{3,}", f"{model.name} {model.organisation} {model.model}".lower())
    return any(part in model.id.lower() for part in parts)


def _faults_of_decoding(key: str, value: object) -> Iterator[tuple[str, object, str]]:
    """Name what JSON cannot hold, and numbers that no endpoint takes."""
    least, most = BOUNDS.get(key.removeprefix("decoding."), (-MOST_NUMBER, MOST_NUMBER))
    bounded = key.removeprefix("decoding.") in BOUNDS
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield from _faults_of_decoding(f"{key}.{name}", part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _faults_of_decoding(key, part)
    elif isinstance(value, int | float) and not (bounded and isinstance(value, bool)):
        if not least <= value <= most:
            yield key, value, f"a number from {least:,} to {most:,}"
    elif bounded or not isinstance(value, str | None):
        wanted = f"a number from {least:,} to {most:,}" if bounded else "a value of JSON"
        yield key, value, wanted


class Standing(StrEnum):
    """Whether an entry of the roster is drawn."""

    ENABLED = "enabled"
    DISABLED = "disabled"
    RETIRED = "retired"


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the roster as the store has it.

    Attributes
    ----------
    model : Model
        With the weight that it has now.
    standing : Standing
        Battles of a disabled model go on, and new ones do not draw it; a retired one has left.
    release : Release
    released : datetime or None
        When a pre-release got its name; None for any other.
    paused : FailureClass or None
        The failure for which the arena itself has disabled it; None where people decided.
    """

    model: Model
    standing: Standing
    updated: datetime
    release: Release = Release.RELEASED
    released: datetime | None = None
    paused: FailureClass | None = None

    @property
    def drawn(self) -> bool:
        """Whether new battles may have it."""
        return self.standing is Standing.ENABLED and self.release is not Release.HIDDEN

    @property
    def public(self) -> Model:
        """The model as others may know it."""
        return public(self.model, self.release)


def public(model: Model, release: Release) -> Model:
    """Give a model as others may know it: by its id alone until it is released.

    Examples
    --------
    >>> new = Model(id="maple", name="Basalt 9", endpoint="https://h/v1", model="basalt-9")
    >>> public(new, Release.PRE_RELEASE).name
    'maple'
    """
    if release is Release.RELEASED:
        return model
    unnamed = {"organisation": "", "licence": "", "cutoff": None, "contamination_report": None}
    return replace(model, name=model.id, **unnamed)  # type: ignore[arg-type]


class Stage(StrEnum):
    """How far a model has come on the leaderboard."""

    PRE_RELEASE = "pre-release"
    PROVISIONAL = "provisional"
    REGULAR = "listed"
    RETIRED = "retired"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrant:
    """What a board has of a model beside its votes.

    Attributes
    ----------
    retired : bool
        Whether it has left the roster.
    release : Release
    released : datetime or None
        When a pre-release got its name: earlier votes are none for its place.
    family : str
        Name of the variants of which it is one; empty for none.
    declared_order : int or None
        Its place among them, as its producer declared it.
    otherwise : tuple of (datetime, datetime)
        From when until when it answered otherwise than now, under the same id.
    """

    retired: bool = False
    release: Release = Release.RELEASED
    released: datetime | None = None
    family: str = ""
    declared_order: int | None = None
    otherwise: tuple[tuple[datetime, datetime], ...] = ()

    def stage(self, votes: int, enough: int) -> Stage:
        """Describe how far it has come with this many counted votes since it has its name."""
        if self.retired:
            return Stage.RETIRED
        if self.release is not Release.RELEASED:
            return Stage.PRE_RELEASE
        return Stage.REGULAR if votes >= enough else Stage.PROVISIONAL


Roster = tuple[Model, ...]
"""The models that battle, in their order."""


# Gold battles: two recorded answers, of which one is known to be right

GOLD = "gold:"
"""How the sets of gold prompts begin; the right answer follows, as a vote for it is written."""
GONE_ON = "gold:gone-on"
"""The set of one that went on with other models: nothing is known to be right there."""
OWNER = "gold~"
"""How the ids of those who gave the answers begin: no model of a roster can have such an id."""


def set_of(right: Choice) -> str:
    """Name the set of a gold battle by its right answer.

    >>> set_of(Choice.A)
    'gold:model_a'
    """
    return f"{GOLD}{right}"


def is_gold(prompt_set: str | None) -> bool:
    """Tell whether a battle is a gold battle, or began as one."""
    return prompt_set is not None and prompt_set.startswith(GOLD)


def right_of(prompt_set: str | None) -> Choice | None:
    """Give the vote that is right; None where nothing is known to be.

    >>> right_of("gold:model_b"), right_of("recorded"), right_of(GONE_ON)
    (<Choice.B: 'model_b'>, None, None)
    """
    named = (prompt_set or "").removeprefix(GOLD)
    return Choice(named) if is_gold(prompt_set) and named in {*Choice} else None


# Applications that send votes

SET = "source:"
"""How the sets of prompts of a source begin; its name follows."""
NAME = re.compile("[a-z0-9][a-z0-9-]{0,39}")
HOST = re.compile("[a-z0-9._-]+|[0-9a-f:.]+")
MOST_VERSIONS = 100
"""Versions of one source: a board of thousands would be of mistyped names."""
MOST_ORIGINS = 20


@dataclass(frozen=True, slots=True)
class Source:
    """An application that is registered; a vote binds its set and the kind of its voters.

    Attributes
    ----------
    origins : tuple of str
        Of the pages that may show its pairs, as browsers write them.
    per_hour : int
        Comparisons and pairs that it may send within an hour.
    share : float
        Share of the turns on which it is to show a pair.
    paused : datetime or None
        Since when it is let in no more until it is resumed.
    salt : str
        Secret behind the ids of its raters, and the draw of its turns.
    revoked : datetime or None
        Since when its token and its pages are let in no more.
    """

    id: int
    name: str
    origins: tuple[str, ...]
    per_hour: int
    share: float
    created: datetime
    revoked: datetime | None
    salt: str = field(repr=False)
    paused: datetime | None = None

    def voter(self, rater: str) -> Voter:
        """Give the voter that a rater is, by the source's own id of them: always the same."""
        return Voter(self._keyed("rater", rater)[:32], VoterKind.APPLICATION)

    def shows(self, turn: str) -> bool:
        """Return whether a pair is to be shown on a turn: of one turn always the same.

        The draw is uniform over turns, and nobody without the salt can predict it.
        """
        return int(self._keyed("turn", turn)[:16], 16) < self.share * 2**64

    def model(self, version: str) -> Model:
        """Give the model that a version is: what answers in an application is a system.

        >>> support = Source(1, "support", (), 1, 0.1, datetime(2026, 5, 3), None, "")
        >>> support.model("v7").id
        'support~v7'
        """
        return Model(
            id=f"{self.name}{BESIDE}{version}",
            name=version,
            organisation=self.name,
            endpoint=f"{SET}{self.name}",
            model=version,
            kind=Kind.SYSTEM,
        )

    def _keyed(self, what: str, text: str) -> str:
        return hmac.new(self.salt.encode(), f"{what}\n{text}".encode(), "sha256").hexdigest()


@dataclass(frozen=True, slots=True)
class VersionAnswer:
    """What a version of the application answered."""

    version: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two answers to one prompt, as a source sends them; all texts are `storable`.

    Attributes
    ----------
    key : str
        Of the source's making: what is sent again under it is the same pair.
    a, b : VersionAnswer
        As they are shown; of a pair without a vote, before the sides are drawn.
    rater : str
        Who reads it, by an id of the source's own.
    choice : Choice or None
        What the rater said of it, after how many ``seconds``; None of a pair that a page shows.
    """

    key: str
    prompt: str
    a: VersionAnswer
    b: VersionAnswer
    rater: str
    choice: Choice | None = None
    seconds: float = 0.0


def is_name(text: str) -> bool:
    """Tell whether a source may have a name.

    >>> is_name("support-bot"), is_name("Support"), is_name("gold")
    (True, False, False)
    """
    return NAME.fullmatch(text) is not None and text + BESIDE != OWNER


def origin_of(address: str) -> str | None:
    """Give the origin of an address as browsers write it; None where it is more, or none.

    >>> origin_of("https://App.Example.org:443/"), origin_of("http://localhost:8000")
    ('https://app.example.org', 'http://localhost:8000')
    >>> origin_of("app.example.org"), origin_of("https://app.example.org/chat"), origin_of("*")
    (None, None, None)
    """
    try:
        parts = urlsplit(address)
        port, host = parts.port, parts.hostname
    except ValueError:
        return None
    beyond = parts.path.strip("/") or parts.query or parts.fragment or parts.username
    if parts.scheme not in ("http", "https") or not HOST.fullmatch(host or "") or beyond:
        return None
    default = {"http": 80, "https": 443}[parts.scheme]
    name = f"[{host}]" if ":" in str(host) else host
    return f"{parts.scheme}://{name}" + ("" if port in (None, default) else f":{port}")
