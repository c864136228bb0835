"""Which failures are tried again, how often, and after how long."""

from collections.abc import Mapping

import numpy as np

from judge.errors import CallError, FailureClass

TRIES: Mapping[FailureClass, int] = {
    FailureClass.RATE_LIMIT: 10,
    FailureClass.OVERLOADED: 8,
    FailureClass.TRANSPORT: 5,
}
"""Most tries of one call, by the class of the last failure; a class not named is final.

A request that was rejected will be rejected again. An error that an endpoint repeats for one
request, and for that one only, ends after a few tries rather than never.
"""

ANEW = frozenset({FailureClass.UNPARSED, FailureClass.TRUNCATED})
"""Replies after which the question is put once more, as another call: the words were at fault.

A refusal and missing log-probabilities would come again, and would be paid for again.
"""

LONGEST_WAIT_S = 300.0
"""An endpoint that asks for more than this is not waited for; the case fails as rate-limited."""

_FIRST_S, _MOST_S = 0.5, 60.0


def wait_before_retry(error: CallError, tries: int, rng: np.random.Generator) -> float | None:
    """Return the seconds to wait before another try, or None if there is to be none.

    The wait that the endpoint asked for, if it did; else doubling from half a second to a minute,
    of which a random half is left out, so that callers who failed together do not come back
    together.

    Parameters
    ----------
    tries : int
        Tries made so far, at least one.

    References
    ----------
    .. [1] M. Brooker, "Exponential backoff and jitter", AWS Architecture Blog, 2015 ("equal
       jitter").
    """
    if tries >= TRIES.get(error.failure, 1):
        return None
    if error.retry_after_s is not None:
        return error.retry_after_s if error.retry_after_s <= LONGEST_WAIT_S else None
    longest = min(_MOST_S, _FIRST_S * 2 ** (tries - 1))
    return float(longest * rng.uniform(0.5, 1.0))
