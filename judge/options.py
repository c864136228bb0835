"""How to run: what may be asked at a time, how often, and for how much."""

from dataclasses import dataclass, field

from judge.budget import Price
from judge.errors import FailureClass
from rating.errors import DataError


@dataclass(frozen=True, slots=True)
class RateLimits:
    """What an endpoint allows; None is no limit."""

    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None

    def __post_init__(self) -> None:
        for limit in (self.requests_per_minute, self.tokens_per_minute):
            if limit is not None and not limit > 0:
                raise DataError(f"A rate limit is positive, not {limit}; leave it out for none.")


NO_LIMITS = RateLimits()


ANEW = frozenset({FailureClass.UNPARSED, FailureClass.TRUNCATED})
"""Replies after which the question is put once more, as another call: the words were at fault.

A refusal and missing log-probabilities would come again, and would be paid for again.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to run.

    Attributes
    ----------
    judge : str
        What answers, down to its revision; part of every key.
    seed : str
        Secret of these runs: fences and orders are drawn from it. The same seed finds the same
        calls again, so keep it with the journal and show it to nobody.
    concurrency : int
        Most requests at a time.
    swap_share : float
        Share of the cases asked in both orders; the rest are asked in one.
    as_given : bool
        Ask every case with its side A first and in no other order, whatever the share: for cases
        whose order is part of the question.
    attempts : int
        Replies paid for, at most, until one can be read. Those of earlier runs count: to ask on
        after failures that the journal holds, allow for more.
    anew : frozenset of FailureClass
        Replies after which the question is put once more. Add a class here, and an attempt, when
        the endpoint has been mended: refusals and missing log-probabilities stand otherwise.
    price : Price or None
        None counts no money.
    limit_usd : float or None
        Most that this run may spend; replies of earlier runs are not counted.
    limits : RateLimits
        What the endpoint allows.
    """

    judge: str
    seed: str = field(repr=False)
    concurrency: int = 16
    swap_share: float = 1.0
    as_given: bool = False
    attempts: int = 2
    anew: frozenset[FailureClass] = ANEW
    price: Price | None = None
    limit_usd: float | None = None
    limits: RateLimits = NO_LIMITS

    def __post_init__(self) -> None:
        if self.concurrency < 1 or self.attempts < 1:
            raise DataError(
                "Concurrency and attempts are at least 1,"
                f" not {self.concurrency} and {self.attempts}."
            )
