"""Cost of a run, estimated beforehand and limited while it is paid for.

`estimate` gives calls, tokens and dollars of requests that are still to be sent, with a rule of
tokens per character that `calibrate` compares with recorded replies. `Ledger` books what replies
cost, and keeps a run under its limit.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from string import ascii_letters, digits
from typing import Any, ClassVar

from judge.case import Reply, Request
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
project's code, the total is then met within 6% by o200k_base and cl100k_base; as one kind, ASCII
was 20 to 26% too much of such answers, for prose has longer words and fewer marks than manuals.
The others come from a 20-30,000 character tutorial in 19 languages, by o200k_base. Older
tokenisers (cl100k_base) make up to twice as many tokens of Greek, Cyrillic and Korean: calibrate.
"""

TOKENS_PER_MESSAGE = 4
TOKENS_PER_IMAGE = 1600
"""Of a large one, as providers count: what is small or low in detail takes fewer."""
"""Role and separators around a message, as OpenAI's chat format adds them."""

MOST_PRICE = 1_000_000
"""US dollars per million tokens, or one dollar per token: more is a mistake."""

_WORDS, _DIGITS = f"{ascii_letters} ".encode(), digits.encode()
_ASCII_TO, _ACCENTED_TO, _ALPHABET_TO = 0x80, 0x250, 0x2E80


@dataclass(frozen=True, slots=True)
class Price:
    """Price of a model on a date.

    Attributes
    ----------
    input, output : float
        US dollars per million tokens.
    date : datetime.date
        Day on which the price was read.
    reasoning : float or None
        Price of reasoning tokens; None if they cost the same as other output.
    """

    input: float
    output: float
    date: date
    reasoning: float | None = None

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    def __post_init__(self) -> None:
        prices = [self.input, self.output, *([] if self.reasoning is None else [self.reasoning])]
        quoted = ", ".join(map(str, prices))
        if not all(0 <= price < math.inf for price in prices):
            raise DataError(f"A price is not negative and finite: {quoted}.")
        if max(prices) > MOST_PRICE:
            raise DataError(f"A price is at most {MOST_PRICE:,} US dollars: {quoted}.")

    def cost(self, tokens_in: float, tokens_out: float, tokens_thinking: float = 0) -> float:
        """Return dollars for this many tokens; those of thoughts are among those that come out.

        Examples
        --------
        >>> Price(input=10.0, output=30.0, date=date(2024, 4, 9)).cost(1_000, 1)
        0.01003
        """
        more = 0.0 if self.reasoning is None else self.reasoning - self.output
        return (
            tokens_in * self.input + tokens_out * self.output + tokens_thinking * more
        ) / 1_000_000

    @property
    def highest_output(self) -> float:
        """Dearest token that can come out, per million."""
        return max(self.output, self.reasoning or 0.0)


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
    n_images = sum(len(turn.images) for turn in request.messages)
    return texts + TOKENS_PER_MESSAGE * len(request.messages) + TOKENS_PER_IMAGE * n_images


def calibrate(replies: Iterable[tuple[float, Reply]]) -> Calibration:
    """Compare the rule with what the endpoint counted; replies without counts are excluded.

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


RATIO_IN = 2.0
"""Tokens of a request over those by the rule, at most, until `SEEN` replies say more.

Older tokenisers make up to twice as many of some scripts: see `TOKENS_PER_CHARACTER`.
"""
SEEN, BEYOND = 20, 1.25
"""Replies after which the largest ratio among them, and a quarter more, takes its place."""

RATIO_OUT = 1.5
"""Tokens of a reply over those of the longest so far, at most, once one went beyond its limit."""


class Ledger:
    """Dollars booked and dollars promised, under a limit.

    The most that a call can cost is reserved before it is made, and given back for its true cost
    after it: the limit holds however long a judge thinks. An endpoint that goes beyond the limit
    of tokens which it was given is taken at what it was seen to do; so nothing else is promised
    before the first reply has come.

    Parameters
    ----------
    price : Price or None
        None counts nothing.
    limit_usd : float or None
        None sets no limit.

    Raises
    ------
    DataError
        If there is a limit without a price, or a limit that is no amount of money.
    """

    def __init__(self, price: Price | None, limit_usd: float | None) -> None:
        if limit_usd is not None and price is None:
            raise DataError("A budget needs a price: state what the judge charges.")
        if limit_usd is not None and not limit_usd >= 0:
            raise DataError(f"A budget is an amount of money, not {limit_usd}.")
        self._price, self._limit = price, limit_usd
        self._n, self._n_counted, self._ratio_in, self._longest = 0, 0, 0.0, 0.0
        self._promised: dict[int, float] = {}
        self.spent_usd = 0.0
        self.n_estimated = 0
        """Replies whose tokens the endpoint did not count, booked at the rule's estimate."""

    @property
    def waits(self) -> bool:
        """Whether a call is under way whose true cost may make room for another."""
        return bool(self._promised)

    @property
    def left_usd(self) -> float:
        """What is neither spent nor promised; without a limit there is no end."""
        if self._limit is None:
            return math.inf
        return self._limit - self.spent_usd - math.fsum(self._promised.values())

    def most_usd(self, request: Request, most_tokens: int) -> float:
        """Return the most that a call can cost."""
        if self._price is None:
            return 0.0
        longest = self._longest if self._longest <= most_tokens else RATIO_OUT * self._longest
        ratio = BEYOND * self._ratio_in
        if self._n_counted < SEEN:
            ratio = max(ratio, RATIO_IN)
        tokens_in = request_tokens(request) * ratio
        out = max(most_tokens, longest) * self._price.highest_output / 1_000_000
        return self._price.cost(tokens_in, 0) + out

    def promise(self, call: int, request: Request, most_tokens: int) -> bool:
        """Set the most that a call can cost aside; False if the limit does not allow for it.

        Parameters
        ----------
        most_tokens : int
            That the reply may have, thoughts included.
        """
        if self._limit is None:
            return True
        most = self.most_usd(request, most_tokens)
        if most > self.left_usd or (self._promised and not self._n):
            return False
        self._promised[call] = most
        return True

    def withdraw(self, call: int) -> None:
        """Give back what was reserved for a call that brought no reply."""
        self._promised.pop(call, None)

    def book(self, call: int, request: Request, reply: Reply) -> float | None:
        """Book a reply in place of its promise, and return its cost; None without a price."""
        self.withdraw(call)
        cost = cost_of(request, reply, self._price)
        self.n_estimated += reply.tokens_in is None or reply.tokens_out is None
        self._n, self._longest = self._n + 1, max(self._longest, _tokens_out(reply))
        if self._limit is not None and reply.tokens_in is not None:
            self._n_counted += 1
            self._ratio_in = max(self._ratio_in, reply.tokens_in / request_tokens(request))
        self.spent_usd += cost or 0.0
        return cost


def cost_of(request: Request, reply: Reply, price: Price | None) -> float | None:
    """Return what a reply cost: by the endpoint's count of tokens, or by the rule without one."""
    if price is None:
        return None
    tokens_in = request_tokens(request) if reply.tokens_in is None else reply.tokens_in
    whole = price.cost(tokens_in, _tokens_out(reply), reply.tokens_thinking or 0)
    return whole * (1 - reply.discount)


def _tokens_out(reply: Reply) -> float:
    return tokens_by_rule(reply.text) if reply.tokens_out is None else reply.tokens_out
