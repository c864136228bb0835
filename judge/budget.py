"""What a run will cost, before and while it is paid for."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from string import ascii_letters, digits
from typing import Any, ClassVar

from judge.completion import Reply, Request
from rating.errors import DataError

TOKENS_PER_CHARACTER = {
    "words": 0.2,
    "digit": 1.0,
    "mark": 0.45,
    "accented": 2.0,
    "alphabet": 0.4,
    "ideograph": 0.95,
}
"""Tokens that one character makes, by kind; words are ASCII letters and the blanks between them.

The ASCII kinds are fitted to o200k_base on 800 answers of 59 models to prompts of people
(llmfao). On other texts, the answers of four models to AlpacaEval's instructions and this
project's code, the total is then met within 6 % by o200k_base and cl100k_base; as one kind, ASCII
was 20 to 26 % too much of such answers, for prose has longer words and fewer marks than manuals.
The others come from a 20-30,000 character tutorial in 19 languages, by o200k_base. Older
tokenisers (cl100k_base) make up to twice as many tokens of Greek, Cyrillic and Korean: calibrate.
"""

TOKENS_PER_MESSAGE = 4
"""Role and separators around a message, as OpenAI's chat format adds them."""

_WORDS, _DIGITS = f"{ascii_letters} ".encode(), digits.encode()
_ASCII_TO, _ACCENTED_TO, _ALPHABET_TO = 0x80, 0x250, 0x2E80


@dataclass(frozen=True, slots=True)
class Price:
    """What a model charges, as read on a date.

    Attributes
    ----------
    input, output : float
        US dollars per million tokens.
    date : datetime.date
        Day on which the price was read.
    """

    input: float
    output: float
    date: date

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    def __post_init__(self) -> None:
        if not (0 <= self.input < math.inf and 0 <= self.output < math.inf):
            raise DataError(f"A price is not negative and finite: {self.input}, {self.output}.")

    def cost(self, tokens_in: float, tokens_out: float) -> float:
        """Return dollars for so many tokens.

        Examples
        --------
        >>> Price(input=10.0, output=30.0, date=date(2024, 4, 9)).cost(1_000, 1)
        0.01003
        """
        return (tokens_in * self.input + tokens_out * self.output) / 1_000_000


@dataclass(frozen=True, slots=True)
class Calibration:
    """What recorded replies say about the rule of characters.

    Attributes
    ----------
    n : int
        Replies it rests on; with none the rule stands as it is.
    ratio_in : float
        Tokens counted by the endpoint over tokens by the rule.
    tokens_out : float or None
        Mean tokens of a reply; None without replies.
    """

    n: int = 0
    ratio_in: float = 1.0
    tokens_out: float | None = None


@dataclass(frozen=True, slots=True)
class Estimate:
    """What is still to be asked, and what it will cost.

    Attributes
    ----------
    n_calls : int
        Calls without a recorded reply; further attempts after unreadable replies come on top.
    tokens_in, tokens_out : float
        Expected, over all of these calls.
    cost_usd : float or None
        None without a price.
    calibration : Calibration
        What the tokens rest on.
    """

    n_calls: int
    tokens_in: float
    tokens_out: float
    cost_usd: float | None
    calibration: Calibration

    def __add__(self, other: "Estimate") -> "Estimate":
        """Return the estimate of both together, on the calibration of more replies."""
        costs = (self.cost_usd, other.cost_usd)
        known = [cost for cost in costs if cost is not None]
        return Estimate(
            self.n_calls + other.n_calls,
            self.tokens_in + other.tokens_in,
            self.tokens_out + other.tokens_out,
            sum(known) if len(known) == len(costs) else None,
            max(self.calibration, other.calibration, key=lambda each: each.n),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "n_calls": self.n_calls,
            "tokens_in": round(self.tokens_in),
            "tokens_out": round(self.tokens_out),
            "cost_usd": self.cost_usd,
            "calibrated_on": self.calibration.n,
        }


def tokens_by_rule(text: str) -> float:
    """Estimate the tokens of a text from its characters (see `TOKENS_PER_CHARACTER`).

    Examples
    --------
    >>> round(tokens_by_rule("a" * 1000)), round(tokens_by_rule("字" * 1000))
    (200, 950)
    """
    each = TOKENS_PER_CHARACTER
    ascii_only = text.encode("ascii", errors="ignore")
    not_words = ascii_only.translate(None, _WORDS)
    marks = not_words.translate(None, _DIGITS)
    n_digits = len(not_words) - len(marks)
    words = len(ascii_only) - len(not_words)
    total = words * each["words"] + n_digits * each["digit"] + len(marks) * each["mark"]
    return total if len(ascii_only) == len(text) else total + _beyond_ascii(text)


def _beyond_ascii(text: str) -> float:
    counts = Counter(text)
    accented = sum(n for char, n in counts.items() if _ASCII_TO <= ord(char) < _ACCENTED_TO)
    alphabet = sum(n for char, n in counts.items() if _ACCENTED_TO <= ord(char) < _ALPHABET_TO)
    ideographs = sum(n for char, n in counts.items() if ord(char) >= _ALPHABET_TO)
    each = TOKENS_PER_CHARACTER
    return (
        accented * each["accented"] + alphabet * each["alphabet"] + ideographs * each["ideograph"]
    )


def request_tokens(request: Request) -> float:
    """Estimate the tokens of a request by the rule."""
    texts = sum(tokens_by_rule(turn.content) for turn in request.messages)
    return texts + TOKENS_PER_MESSAGE * len(request.messages)


def calibrate(replies: Iterable[tuple[float, Reply]]) -> Calibration:
    """Compare the rule with what the endpoint counted; replies without counts are left out.

    Parameters
    ----------
    replies : iterable of (float, Reply)
        The request's tokens by the rule (`request_tokens`), and what came back.
    """
    counted = [
        (by_rule, reply.tokens_in, reply.tokens_out)
        for by_rule, reply in replies
        if reply.tokens_in is not None and reply.tokens_out is not None
    ]
    if not counted:
        return Calibration()
    rule, tokens_in, tokens_out = (math.fsum(column) for column in zip(*counted, strict=True))
    return Calibration(len(counted), tokens_in / rule, tokens_out / len(counted))


def estimate(
    by_rule: Sequence[float],
    *,
    tokens_out: float,
    price: Price | None = None,
    calibration: Calibration = Calibration(),
) -> Estimate:
    """Estimate calls, tokens and cost of requests that are still to be sent.

    Parameters
    ----------
    by_rule : sequence of float
        Tokens of each request by the rule (`request_tokens`).
    tokens_out : float
        Expected tokens of a reply, where there is no calibration.

    Examples
    --------
    >>> price = Price(10.0, 30.0, date(2024, 4, 9))
    >>> expected = estimate([100.0, 300.0], tokens_out=1, price=price)
    >>> expected.n_calls, expected.cost_usd
    (2, 0.00406)
    """
    total_in = sum(by_rule) * calibration.ratio_in
    each = calibration.tokens_out if calibration.tokens_out is not None else tokens_out
    total_out = each * len(by_rule)
    cost = price.cost(total_in, total_out) if price else None
    return Estimate(len(by_rule), total_in, total_out, cost, calibration)


class Ledger:
    """Dollars booked and dollars promised, under a limit.

    A call's estimate is set aside before it is made and given back for its true cost after it.
    So the limit holds unless a call costs more than was estimated, and a run ends with at most
    the promised calls' slack unspent.

    Parameters
    ----------
    price : Price or None
        None counts nothing.
    limit_usd : float or None
        None sets no limit.
    tokens_out : float
        Expected tokens of a reply; the mean of the replies booked takes its place.

    Raises
    ------
    DataError
        If there is a limit without a price, or a limit that is no amount of money.
    """

    def __init__(self, price: Price | None, limit_usd: float | None, *, tokens_out: float) -> None:
        if limit_usd is not None and price is None:
            raise DataError("A budget needs a price: say what the judge charges.")
        if limit_usd is not None and not limit_usd >= 0:
            raise DataError(f"A budget is an amount of money, not {limit_usd}.")
        self._price, self._limit = price, limit_usd
        self._expected_out, self._n, self._out = tokens_out, 0, 0.0
        self._promised: dict[int, float] = {}
        self.spent_usd = 0.0
        self.n_estimated = 0
        """Replies whose tokens the endpoint did not count, booked at the rule's estimate."""

    def promise(self, call: int, request: Request) -> bool:
        """Set a call's estimate aside; False if the limit does not allow for it."""
        if self._limit is None:
            return True
        expected = self._cost(request_tokens(request), self._mean_out())
        total = self.spent_usd + sum(self._promised.values()) + expected
        if total > self._limit:
            return False
        self._promised[call] = expected
        return True

    def withdraw(self, call: int) -> None:
        """Give back what was set aside for a call that brought no reply."""
        self._promised.pop(call, None)

    def book(self, call: int, request: Request, reply: Reply) -> float | None:
        """Book a reply in place of its promise, and return its cost; None without a price."""
        self.withdraw(call)
        cost = cost_of(request, reply, self._price)
        self.n_estimated += reply.tokens_in is None or reply.tokens_out is None
        self._n, self._out = self._n + 1, self._out + _tokens_out(reply)
        self.spent_usd += cost or 0.0
        return cost

    def _mean_out(self) -> float:
        return self._out / self._n if self._n else self._expected_out

    def _cost(self, tokens_in: float, tokens_out: float) -> float:
        return self._price.cost(tokens_in, tokens_out) if self._price else 0.0


def cost_of(request: Request, reply: Reply, price: Price | None) -> float | None:
    """Return what a reply cost: by the endpoint's count of tokens, or by the rule without one."""
    if price is None:
        return None
    tokens_in = request_tokens(request) if reply.tokens_in is None else reply.tokens_in
    return price.cost(tokens_in, _tokens_out(reply))


def _tokens_out(reply: Reply) -> float:
    return tokens_by_rule(reply.text) if reply.tokens_out is None else reply.tokens_out
