"""How sentences and tables write numbers."""

from collections.abc import Callable, Sequence

from judge.studies.items import Estimate

NONE = "–"


def percent(value: float | None) -> str:
    """Write a share.

    >>> percent(0.6597), percent(None)
    ('66 %', '–')
    """
    return NONE if value is None else f"{100 * value:.0f} %"


def percent_of(found: Estimate) -> str:
    """Write a share with its interval.

    >>> percent_of(Estimate(0.6597, 0.62, 0.697, 10))
    '66 % (62–70)'
    """
    return _with_ends(found, percent(found.value), lambda x: f"{100 * x:.0f}")


def gap_of(found: Estimate) -> str:
    """Write a difference of two shares, in points of a per cent.

    >>> gap_of(Estimate(-0.05, -0.1, 0.004, 10))
    '−5 (−10 to +0)'
    """
    return _signed(found, 100)


def points_of(found: Estimate | None) -> str:
    """Write a difference of ratings.

    >>> points_of(Estimate(41.6, 30.2, 53, 10))
    '+42 (+30 to +53)'
    """
    return NONE if found is None else _signed(found, 1)


def number_of(found: Estimate, digits: int = 2) -> str:
    """Write a coefficient with its interval.

    >>> number_of(Estimate(0.476, 0.43, 0.52, 10))
    '0.48 (0.43 to 0.52)'
    """
    if found.value is None:
        return NONE
    return _with_ends(
        found, minus(f"{found.value:.{digits}f}"), lambda x: f"{x:.{digits}f}", " to "
    )


def minus(text: str) -> str:
    """Write a minus where a hyphen stands for one."""
    return text.replace("-", "−")


def listed(parts: Sequence[str]) -> str:
    """Join parts of a sentence.

    >>> listed(["x", "y", "z"])
    'x, y and z'
    """
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def _signed(found: Estimate, times: float) -> str:
    if found.value is None:
        return NONE

    def signed(x: float) -> str:
        return minus(f"{times * x:+.0f}")

    return _with_ends(found, signed(found.value), signed, " to ")


def _with_ends(
    found: Estimate, said: str, write: Callable[[float], str], between: str = "–"
) -> str:
    if found.value is None or found.lower is None or found.upper is None:
        return said
    return f"{said} ({minus(write(found.lower))}{between}{minus(write(found.upper))})"


def plural(n: int, word: str) -> str:
    """Count things.

    >>> plural(1, "item"), plural(1200, "item")
    ('1 item', '1,200 items')
    """
    return f"{n:,} {word}" if n == 1 else f"{n:,} {word}s"
