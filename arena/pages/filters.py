"""Numbers, money and times as people read them; spaces before units do not break."""

from datetime import UTC, datetime, timedelta
from math import isfinite

NOT_KNOWN = "–"
SPACE = "\N{NO-BREAK SPACE}"
MINUS = "\N{MINUS SIGN}"
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def plural(n: int, one: str, many: str | None = None) -> str:
    """Count and noun.

    Examples
    --------
    >>> plural(1, "vote"), plural(2184, "vote"), plural(56, "person", "people")
    ('1 vote', '2,184 votes', '56 people')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def points(value: float) -> str:
    """Points without decimals, which no board can support.

    Examples
    --------
    >>> points(1183.6), points(-12.2)
    ('1,184', '−12')
    """
    if not isfinite(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    return f"{round(value):,}".replace("-", MINUS)


def about(n: int) -> str:
    """Count in two digits, as far as an extrapolation can be trusted.

    Examples
    --------
    >>> about(7), about(287), about(12_345)
    ('7', '290', '12,000')
    """
    return f"{round(float(f'{n:.2g}')):,}"


def signed(value: float) -> str:
    """Points gained or lost.

    Examples
    --------
    >>> signed(8.6), signed(-12.2), signed(0.2)
    ('+9', '−12', '0')
    """
    return f"+{points(value)}" if round(value) > 0 else points(value)


def percent_range(low: float, high: float) -> str:
    """Interval of a share, in whole percent.

    Examples
    --------
    >>> percent_range(0.668, 0.752), percent_range(0.401, 0.404)
    ('67–75', '40')
    """
    ends = (f"{100 * low:.0f}", f"{100 * high:.0f}")
    return ends[0] if ends[0] == ends[1] else "–".join(ends)


def half_width(rating: float, lower: float, upper: float) -> str:
    """Interval around a rating: one number where both sides round to the same.

    Examples
    --------
    >>> half_width(1000, 988.2, 1012.1).replace(SPACE, " ")
    '± 12'
    >>> half_width(1000, 989, 1014).replace(SPACE, " ")
    '+14 −11'
    """
    above, below = points(upper - rating), points(rating - lower)
    return f"±{SPACE}{above}" if above == below else f"+{above}{SPACE}{MINUS}{below}"


def rank_range(low: int | None, high: int | None) -> str:
    """Ranks that the votes allow: ``2–4``, or one number.

    Examples
    --------
    >>> rank_range(2, 4), rank_range(1, 1), rank_range(None, None)
    ('2–4', '1', '–')
    """
    if low is None or high is None:
        return NOT_KNOWN
    return str(low) if low == high else f"{low}–{high}"


def percent(share: float | None) -> str:
    """Whole percent; what is not quite nothing or everything is not rounded to it.

    Examples
    --------
    >>> [percent(x).replace(SPACE, " ") for x in (0.714, 0.0, 0.001, 0.999, 1.0)]
    ['71 %', '0 %', '<1 %', '>99 %', '100 %']
    """
    if share is None:
        return NOT_KNOWN
    if 0 < share <= 0.005:
        return f"<1{SPACE}%"
    if 0.995 <= share < 1:
        return f">99{SPACE}%"
    return f"{100 * share:.0f}{SPACE}%"


def money(dollars: float | None) -> str:
    """US dollars, in cents below 100.

    Examples
    --------
    >>> [money(x) for x in (0.41, 3.1, 0.001, 0.0, 128.4, None)]
    ['$0.41', '$3.10', '<$0.01', '$0.00', '$128', '–']
    """
    if dollars is None:
        return NOT_KNOWN
    if 0 < dollars < 0.005:
        return "<$0.01"
    return f"${dollars:,.2f}" if dollars < 99.995 else f"${dollars:,.0f}"


def seconds(value: float | None) -> str:
    """Seconds, in tenths below ten.

    Examples
    --------
    >>> [seconds(x).replace(SPACE, " ") for x in (0.91, 9.96, 11.2, 0.01)]
    ['0.9 s', '10 s', '11 s', '<0.1 s']
    """
    if value is None:
        return NOT_KNOWN
    if value < 0.05:
        return f"<0.1{SPACE}s"
    return f"{value:.1f}{SPACE}s" if value < 9.95 else f"{value:,.0f}{SPACE}s"


def day(when: datetime, now: datetime) -> str:
    """Date in UTC, with the year unless it is this one.

    Examples
    --------
    >>> day(datetime(2026, 5, 3, tzinfo=UTC), datetime(2026, 6, 14, tzinfo=UTC))
    '3 May'
    """
    then = when.astimezone(UTC)
    year = "" if then.year == now.astimezone(UTC).year else f" {then.year}"
    return f"{then.day} {then:%B}{year}"


def moment(when: datetime) -> str:
    """Date and time in UTC.

    Examples
    --------
    >>> moment(datetime(2026, 6, 14, 14, 20, tzinfo=UTC))
    '14 June 2026, 14:20 UTC'
    """
    then = when.astimezone(UTC)
    return f"{then.day} {then:%B %Y, %H:%M} UTC"


def ago(when: datetime, now: datetime) -> str:
    """Time since a moment, down to the minute; a date after a fortnight.

    Examples
    --------
    >>> noon = datetime(2026, 6, 14, 12, tzinfo=UTC)
    >>> ago(noon, noon + 2 * MINUTE), ago(noon, noon + 25 * HOUR), ago(noon, noon)
    ('2 minutes ago', '1 day ago', 'just now')
    """
    elapsed = now - when
    if elapsed < MINUTE:
        return "just now"
    if elapsed < HOUR:
        return f"{plural(elapsed // MINUTE, 'minute')} ago"
    if elapsed < DAY:
        return f"{plural(elapsed // HOUR, 'hour')} ago"
    if elapsed < 14 * DAY:
        return f"{plural(elapsed // DAY, 'day')} ago"
    return f"on {day(when, now)}"
