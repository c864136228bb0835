"""Limits of use, and the pseudonymous identities of visitors by which they are counted.

`Limits` counts what is taken per hour and day, `Places` and `Raters` what is held at a time in
this process. `Identity` signs a visitor's random id into a cookie, and `Addresses` hashes network
addresses with a salt of the day, for limits only.
"""

import hashlib
import hmac
import threading
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from http.cookies import SimpleCookie
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TypeVar
from weakref import WeakValueDictionary

from itsdangerous import BadSignature, URLSafeSerializer

from arena.domain.people import Person
from arena.domain.study import HOLD
from arena.domain.vote import Voter
from arena.errors import BusyError, FullError, LimitError
from rating.sentences import Sentence, counted

# Limits

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
WIDER = 4
"""Addresses' worth of everything for the larger network around an address of IPv6."""


K = TypeVar("K")
Use = tuple[datetime, float]
"""Something taken at a moment, and how much: one prompt, or dollars."""


def free_at(used: Sequence[Use], most: float, window: timedelta, now: datetime) -> datetime | None:
    """Tell when less than ``most`` will have been used within the window; None if that is now.

    Parameters
    ----------
    used : sequence of (datetime, float)
        Moments and amounts, oldest first; what is older than the window does not matter.

    Examples
    --------
    >>> noon = datetime(2026, 5, 3, 12)
    >>> used = [(noon - timedelta(minutes=40), 1), (noon - timedelta(minutes=10), 1)]
    >>> free_at(used, 2, HOUR, noon)
    datetime.datetime(2026, 5, 3, 12, 20)
    >>> free_at(used, 3, HOUR, noon)
    """
    recent = [(at, amount) for at, amount in used if at > now - window]
    total = sum(amount for _, amount in recent)
    if total < most:
        return None
    for at, amount in recent:
        total -= amount
        if total < most:
            return at + window
    return now + window


def shares(address: str | None, network: str | None, per_address: int) -> dict[str, int]:
    """Give what an address, and the larger network around it, may have; None is not known.

    Examples
    --------
    >>> shares("2001:db8:1:2::/64", "2001:db8:1::/48", 10)
    {'2001:db8:1:2::/64': 10, '2001:db8:1::/48': 40}
    """
    most = {address: per_address, network: WIDER * per_address}
    return {place: number for place, number in most.items() if place is not None}


class Limits:
    """Admits what asks the models: a battle, a further turn, a new attempt.

    What a voter took and what was spent is read from the log, and so outlives a restart;
    addresses are counted here, and are forgotten after an hour.

    Parameters
    ----------
    prompts_of : callable
        Moments of a voter's prompts, by the voter's id and since when.
    spent : callable
        Dollars that answers cost, since when, to a voter by their id or to all.
    per_voter, per_address : int
        Battles an hour; each further turn counts like a battle. A new attempt at a turn
        counts for the address alone.
    dollars_a_day : float or None
        Spent on answers, all visitors together; None sets no limit.
    """

    def __init__(
        self,
        *,
        prompts_of: Callable[[str, datetime], Sequence[datetime]],
        spent: Callable[[datetime, str | None], Sequence[Use]],
        now: Callable[[], datetime],
        per_voter: int = 30,
        per_address: int = 120,
        dollars_a_day: float | None = None,
        dollars_per_voter_day: float | None = None,
    ) -> None:
        self._per_voter, self._per_address = per_voter, per_address
        self._dollars_a_day, self._dollars_per_voter_day = dollars_a_day, dollars_per_voter_day
        self._prompts_of = prompts_of
        self._spent = spent
        self._now = now
        self._lock = threading.Lock()
        self._turns: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()
        self._by_address: deque[tuple[datetime, str]] = deque()

    @contextmanager
    def admit(self, voter: Voter) -> Iterator[None]:
        """Hold a place while something is written down; blocks, so not on the loop.

        A voter's requests pass one at a time, so that no two take the same last place.

        Raises
        ------
        LimitError
            With words for the visitor, and when the next place is free.
        """
        turn = self._turn_of(voter.id)  # kept by name: the dictionary alone lets it go
        with turn:
            now = self._now()
            self._refuse_voter(voter, now)
            self._refuse_spending(voter, now)
            with self._place(voter, now):
                yield

    def _turn_of(self, voter_id: str) -> threading.Lock:
        with self._lock:
            return self._turns.setdefault(voter_id, threading.Lock())

    @contextmanager
    def _place(self, voter: Voter, now: datetime) -> Iterator[None]:
        """Take a place of an address and of its network, and give it back if it is not used."""
        places = shares(voter.address, voter.network, self._per_address)
        taken = [(now, place) for place in places]
        with self._lock:
            self._forget(now - HOUR)
            for _, place in taken:
                self._refuse_address(place, places[place], now)
            self._by_address.extend(taken)
        try:
            yield
        except BaseException:
            with self._lock:
                for one in taken:
                    self._by_address.remove(one)
            raise

    def _forget(self, before: datetime) -> None:
        while self._by_address and self._by_address[0][0] <= before:
            self._by_address.popleft()

    def _refuse_voter(self, voter: Voter, now: datetime) -> None:
        used = [(at, 1.0) for at in self._prompts_of(voter.id, now - HOUR)]
        number = _battles(self._per_voter)
        reached = Sentence("Your limit is %(battles)s per hour.", battles=number)
        _refuse(used, self._per_voter, HOUR, now, reached)

    def _refuse_address(self, address: str, most: int, now: datetime) -> None:
        used = [(at, 1.0) for at, other in self._by_address if other == address]
        reached = Sentence("Your network's limit is %(battles)s per hour.", battles=_battles(most))
        _refuse(used, most, HOUR, now, reached)

    def _refuse_spending(self, voter: Voter, now: datetime) -> None:
        of_all = Sentence("The arena has reached its cost limit for a day.")
        of_one = Sentence("Answers to your prompts have reached the cost limit for a day.")
        for most, whose, reached in (
            (self._dollars_a_day, None, of_all),
            (self._dollars_per_voter_day, voter.id, of_one),
        ):
            if most is not None:
                _refuse(self._spent(now - DAY, whose), most, DAY, now, reached)


def _refuse(
    used: Sequence[Use], most: float, window: timedelta, now: datetime, reached: Sentence
) -> None:
    if (free := free_at(used, most, window, now)) is not None:
        raise LimitError(reached, free)


def _battles(number: int) -> Sentence:
    return counted("%(n)s battle", "%(n)s battles", number)


RUNNING = (
    Sentence(
        "%(n)s of your battles may be answered at a time. Wait until one has ended, or stop one."
    ),
    Sentence(
        "%(n)s of your network's battles may be answered at a time. Wait until one has ended, or "
        "stop one."
    ),
    Sentence(
        "The arena is full: %(n)s of its battles may be answered at a time. Try again in a minute."
    ),
)
STREAMS = (
    Sentence(
        "%(n)s of your streams may be open at a time. Close a page or a stream that shows a "
        "battle."
    ),
    Sentence(
        "%(n)s of your network's streams may be open at a time. Close a page or a stream that "
        "shows a battle."
    ),
    Sentence(
        "The arena is full: %(n)s of its streams may be open at a time. Try again in a minute."
    ),
)
"""Refusals where one visitor, one network or all together hold as much as they may."""
RATERS_OF_NETWORK = Sentence(
    "Your network has reached %(n)s raters of this study at a time. Try again in a few minutes, "
    "or from another network."
)
NEW_RATERS_OF_NETWORK = Sentence("Your network has reached %(n)s new raters in an hour.")


class Places:
    """Counts the places that are held in this process.

    It belongs to one event loop, and nobody waits for a place: there is one, or it is refused.

    Examples
    --------
    >>> places = Places(RUNNING, per_voter=1, per_address=2, in_all=2)
    >>> with places.hold(Voter("ada")), places.hold(Voter("ada")):  # doctest: +ELLIPSIS
    ...     pass
    Traceback (most recent call last):
        ...
    arena.errors.BusyError: 1 of your battles may be answered at a time. Wait until ...
    """

    def __init__(
        self,
        refusals: tuple[Sentence, Sentence, Sentence],
        *,
        per_voter: int,
        per_address: int,
        in_all: int,
    ) -> None:
        self._of_voter, self._of_network, self._of_all = refusals
        self._per_voter, self._per_address, self._in_all = per_voter, per_address, in_all
        self._by_voter: Counter[str] = Counter()
        self._by_network: Counter[str] = Counter()

    @contextmanager
    def hold(self, voter: Voter) -> Iterator[None]:
        """Hold a place of a visitor.

        Raises
        ------
        BusyError
            If the visitor, or their network, holds as many as they may.
        FullError
            If all places are taken.
        """
        networks = shares(voter.address, voter.network, self._per_address)
        self._refuse(voter, networks)
        self._by_voter[voter.id] += 1
        self._by_network.update(networks.keys())
        try:
            yield
        finally:
            _give_back(self._by_voter, voter.id)
            for network in networks:
                _give_back(self._by_network, network)

    def _refuse(self, voter: Voter, networks: Mapping[str, int]) -> None:
        if self._by_voter[voter.id] >= (most := self._per_voter):
            raise BusyError(Sentence(self._of_voter, n=most))
        for network, most in networks.items():
            if self._by_network[network] >= most:
                raise BusyError(Sentence(self._of_network, n=most))
        if self._by_voter.total() >= (most := self._in_all):
            raise FullError(Sentence(self._of_all, n=most))


def _give_back(held: Counter[K], whose: K) -> None:
    held[whose] -= 1
    if not held[whose]:
        del held[whose]


class Raters:
    """Who rates in studies at a time, in this process, and from which network.

    Cookies are free, so one person could reserve all of a study. The raters of one network are
    limited: those of a study at a time, and those who begin in an hour. A rater counts until they
    leave, or until `HOLD` after their last request. Only hashes of addresses are kept.

    Parameters
    ----------
    at_a_time, per_hour : int
        For an address; the larger network around one of IPv6 has more: see `shares`.
    """

    def __init__(self, at_a_time: int, per_hour: int, now: Callable[[], datetime]) -> None:
        self._at_a_time = at_a_time
        self._per_hour = per_hour
        self._now = now
        self._lock = threading.Lock()
        self._raters: dict[tuple[str, str], tuple[datetime, tuple[str, ...]]] = {}
        self._by_network: Counter[tuple[str, str]] = Counter()
        self._begun: deque[tuple[datetime, tuple[str, str]]] = deque()

    @contextmanager
    def admit(self, study: str, voter: Voter, *, begins: bool) -> Iterator[None]:
        """Take a rater's place while they are given an item, and give it back if that fails.

        Parameters
        ----------
        begins : bool
            Whether they have rated nothing in the study and hold nothing of it.

        Raises
        ------
        BusyError
            If their network has as many raters at a time as it may.
        LimitError
            If as many have begun there in an hour as may.
        """
        now = self._now()
        with self._lock:
            self._forget(now)
            known = (study, voter.id) in self._raters
            begun = [] if known else self._enter(study, voter, now, begins=begins)
            self._keep(study, voter.id, now)
        try:
            yield
        except BaseException:
            with self._lock:
                for one in begun:
                    self._begun.remove(one)
                if not known:
                    self._leave((study, voter.id))
            raise

    def stay(self, study: str, voter: str) -> None:
        """Note that a rater did something."""
        with self._lock:
            if (study, voter) in self._raters:
                self._keep(study, voter, self._now())

    def leave(self, study: str, voter: str) -> None:
        """Give a rater's place to others of their network."""
        with self._lock:
            self._leave((study, voter))

    def _enter(
        self, study: str, voter: Voter, now: datetime, *, begins: bool
    ) -> list[tuple[datetime, tuple[str, str]]]:
        """Count a new rater; returns the entries of `_begun` that were added."""
        places = shares(voter.address, voter.network, self._at_a_time)
        for place, most in places.items():
            if self._by_network[study, place] >= most:
                raise BusyError(Sentence(RATERS_OF_NETWORK, n=most))
        begun = [(now, (study, place)) for place in places] if begins else []
        for place, most in shares(voter.address, voter.network, self._per_hour).items():
            used = [(at, 1.0) for at, other in self._begun if other == (study, place)]
            if begins and (free := free_at(used, most, HOUR, now)) is not None:
                raise LimitError(Sentence(NEW_RATERS_OF_NETWORK, n=most), free)
        self._begun.extend(begun)
        self._by_network.update((study, place) for place in places)
        self._raters[study, voter.id] = now, tuple(places)
        return begun

    def _keep(self, study: str, voter: str, now: datetime) -> None:
        _, places = self._raters.pop((study, voter))
        self._raters[study, voter] = now + HOLD, places  # last, for all are kept equally long

    def _leave(self, rater: tuple[str, str]) -> None:
        _, places = self._raters.pop(rater, (None, ()))
        for place in places:
            _give_back(self._by_network, (rater[0], place))

    def _forget(self, now: datetime) -> None:
        while self._raters and next(iter(self._raters.values()))[0] <= now:
            self._leave(next(iter(self._raters)))
        while self._begun and self._begun[0][0] <= now - HOUR:
            self._begun.popleft()


# Identities

COOKIE = "arena_voter"
OWN_HOST = "__Host-"
"""Over https: by this prefix a browser takes it from the arena's own host alone, and keeps it so.

Any other cookie can be laid on a visitor by a sibling host, who would read their battles then, or
sign them in as another user.
"""
MAX_AGE_S = 365 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Claim:
    """The voter that a cookie identifies.

    Attributes
    ----------
    voter : str
        Id as a voter.
    sessions : int or None
        Number that a person's devices carried when they signed in; None of the anonymous.
    session : str
        Id of this session of a person; empty for cookies of version 0.1.
    began : int
        Unix time at which the person signed in; 0 for cookies of version 0.1.
    """

    voter: str
    sessions: int | None = None
    session: str = ""
    began: int = 0


@dataclass(frozen=True, slots=True)
class Identity:
    """Signs and reads visitors' cookies.

    That of an anonymous visitor holds a random id; the log holds its HMAC. So the log cannot
    forge a cookie, and without the secret a cookie cannot be matched to the log. That of a person
    known to the arena holds their id as a voter, the number of their sessions, and the id and
    the beginning of this one.
    """

    secret: str

    def issue(self) -> str:
        """Make a new visitor's cookie."""
        return self._signer.dumps(uuid.uuid4().hex)

    def issue_to(self, person: Person, now: datetime) -> str:
        """Make the cookie of a person's device."""
        began = int(now.timestamp())
        return self._signer.dumps([person.id, person.sessions, uuid.uuid4().hex, began])

    def read(self, cookie: str) -> Claim | None:
        """Tell whose cookie it is; None when it was not signed by us."""
        try:
            content = self._signer.loads(cookie)
        except BadSignature:
            return None
        if isinstance(content, list):
            return Claim(*content)
        return Claim(self._pseudonym(str(content)))

    def subject(self, issuer: str, name: str) -> str:
        """Hash the issuer's subject of a user, so that the log does not reveal it."""
        key = hmac.digest(self.secret.encode(), b"arena.person", hashlib.sha256)
        return hmac.new(key, f"{issuer}\n{name}".encode(), hashlib.sha256).hexdigest()

    @property
    def _signer(self) -> URLSafeSerializer:
        return URLSafeSerializer(self.secret, salt="arena.voter")

    def _pseudonym(self, visitor: str) -> str:
        return hmac.new(self.secret.encode(), visitor.encode(), hashlib.sha256).hexdigest()[:32]


def cookie_name(scheme: str, name: str = COOKIE) -> str:
    """Give the name of visitors' cookies over http or https."""
    return f"{OWN_HOST}{name}" if scheme == "https" else name


def cookie_called(name: str, lines: Iterable[str]) -> str | None:
    """Give the value of a cookie in the lines of `Cookie`; None without one, or where two differ.

    Browsers send one for each path and host that it was set for: of two, one may have been laid
    there by another site, and then neither says anything.

    Examples
    --------
    >>> cookie_called("voter", ["voter=mine; other=1", "voter=mine"])
    'mine'
    >>> cookie_called("voter", ["voter=mine; voter=theirs"])
    """
    pairs = (pair.partition("=") for line in lines for pair in line.split(";"))
    values = {value.strip() for key, _, value in pairs if key.strip() == name}
    return values.pop() if len(values) == 1 else None


def cookie_header(scheme: str, value: str, max_age_s: int = MAX_AGE_S, name: str = COOKIE) -> str:
    """Write the header that sets a cookie of the arena's own; an age of 0 ends it."""
    secure, name = scheme == "https", cookie_name(scheme, name)
    cookie: SimpleCookie = SimpleCookie({name: value})
    morsel = cookie[name]
    morsel["path"] = "/"
    morsel["max-age"] = max_age_s
    morsel["httponly"] = True
    morsel["samesite"] = "Lax"
    morsel["secure"] = secure
    return morsel.OutputString()


@dataclass(frozen=True, slots=True)
class Addresses:
    """Turns network addresses into hashes, with a salt that is another one each day.

    Attributes
    ----------
    now : callable
        Time now, in UTC.
    """

    secret: str
    now: Callable[[], datetime]

    def pseudonym(self, address: str) -> str:
        """Hash an address; of IPv6 the network of 64 bits, which one visitor has to themself."""
        return self._hash(place_of(address))

    def network_pseudonym(self, address: str) -> str | None:
        """Hash the network of 48 bits, of which one household or firm may have all; IPv6 only."""
        network = network_of(address)
        return None if network is None else self._hash(network)

    def _hash(self, text: str) -> str:
        salt = hmac.digest(self.secret.encode(), f"{self.now():%Y-%m-%d}".encode(), hashlib.sha256)
        return hmac.new(salt, text.encode(), hashlib.sha256).hexdigest()[:32]


def place_of(address: str) -> str:
    """Give what one visitor has to themself: an address, or of IPv6 the network of 64 bits.

    Examples
    --------
    >>> place_of("2001:db8:1:2:3:4:5:6")
    '2001:db8:1:2::/64'
    """
    parsed = parsed_address(address.partition("%")[0])
    return _network(parsed, 64) if isinstance(parsed, IPv6Address) else str(parsed)


def network_of(address: str) -> str | None:
    """Give the network of 48 bits around an address of IPv6; None of any other."""
    parsed = parsed_address(address.partition("%")[0])
    return _network(parsed, 48) if isinstance(parsed, IPv6Address) else None


def parsed_address(text: str) -> IPv4Address | IPv6Address | str:
    """Read an address, one of IPv4 within IPv6 as the former; what is none stays a text."""
    try:
        parsed = ip_address(text)
    except ValueError:
        return text
    return getattr(parsed, "ipv4_mapped", None) or parsed


def _network(address: IPv6Address, bits: int) -> str:
    return str(ip_network((address, bits), strict=False))
