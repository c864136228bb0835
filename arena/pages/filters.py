"""Numbers, money and times as people read them; spaces before units do not break."""

from datetime import UTC, datetime, timedelta
from math import isfinite

from arena.catalogue import Words
from rating.sentences import Sentence, counted

NOT_KNOWN = "–"
SPACE = "\N{NO-BREAK SPACE}"
MINUS = "\N{MINUS SIGN}"
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


LABELS = {
    "code": Sentence("Code"),
    "maths": Sentence("Maths"),
    "creative": Sentence("Creative writing"),
    "translation": Sentence("Translation"),
    "extraction": Sentence("Extraction"),
    "roleplay": Sentence("Role play"),
    "other": Sentence("Everything else"),
    "asking": Sentence("Asking"),
    "quizzing": Sentence("Quizzing"),
    "playing": Sentence("Playing"),
    "unknown": Sentence("Language not recognised"),
    "rare": Sentence("Rarer languages"),
}
"""What people read for the value of a label; a language is called by its name."""
OF_FACET = {
    ("hard", "yes"): Sentence("Hard"),
    ("hard", "no"): Sentence("Not hard"),
    ("instructions", "yes"): Sentence("With instructions"),
    ("instructions", "no"): Sentence("Without instructions"),
    ("refusal", "none"): Sentence("No refusals"),
    ("refusal", "a"): Sentence("Only A declines"),
    ("refusal", "b"): Sentence("Only B declines"),
    ("refusal", "both"): Sentence("Both decline"),
}
"""The same for values that say nothing without their label."""
FACETS = {
    "category": Sentence("Category"),
    "language": Sentence("Language"),
    "intent": Sentence("Intent"),
    "hard": Sentence("Difficulty"),
    "instructions": Sentence("Instructions"),
    "refusal": Sentence("Refusals"),
}


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


def percent_range(low: float, high: float) -> str:
    """Interval of a share, in whole percent.

    Examples
    --------
    >>> percent_range(0.668, 0.752), percent_range(0.401, 0.404)
    ('67–75', '40')
    """
    ends = (f"{100 * low:.0f}", f"{100 * high:.0f}")
    return ends[0] if ends[0] == ends[1] else "–".join(ends)


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


class Filters:
    """Those that depend on the language.

    Examples
    --------
    >>> from arena.catalogue import words_in
    >>> from arena.domain.words import Language
    >>> english, german = (Filters(words_in(language)) for language in Language)
    >>> english.number(2184), german.number(2184), german.number(0.667, 2)
    ('2,184', '2.184', '0,67')
    >>> english.points(1183.6), german.points(1183.6), english.points(-12.2)
    ('1,184', '1.184', '−12')
    >>> english.short(0.0173), german.short(0.5), english.short(20.0)
    ('0.0173', '0,5', '20')
    >>> english.about(7), english.about(287), german.about(12_345)
    ('7', '290', '12.000')
    >>> english.price(41.37), english.price(0.4137), english.price(None)
    ('$41.00', '$0.41', '–')
    >>> [english.signed(x) for x in (8.6, -12.2, 0.2, float("inf"), -float("inf"))]
    ['+9', '−12', '0', '+∞', '−∞']
    >>> english.half_width(1000, 988.2, 1012.1).replace(SPACE, " ")
    '± 12'
    >>> english.half_width(1000, 989, 1014).replace(SPACE, " ")
    '+14 −11'
    >>> [english.money(x) for x in (0.41, 3.1, 0.001, 0.0, 128.4, None)]
    ['$0.41', '$3.10', '<$0.01', '$0.00', '$128', '–']
    >>> [german.money(x).replace(SPACE, " ") for x in (0.41, 0.001, 1284.0)]
    ['0,41 $', '<0,01 $', '1.284 $']
    >>> [english.seconds(x).replace(SPACE, " ") for x in (0.91, 9.96, 11.2, 0.01)]
    ['0.9 s', '10 s', '11 s', '<0.1 s']
    >>> english.label("creative"), english.label("fr"), german.label("fr"), english.label("zz")
    ('Creative writing', 'French', 'Französisch', 'Zz')
    >>> english.label("code&yes", "category&hard"), english.label("no", "hard")
    ('Code, Hard', 'Not hard')
    >>> then, now = datetime(2026, 5, 3, tzinfo=UTC), datetime(2026, 6, 14, 14, 20, tzinfo=UTC)
    >>> english.day(then, now), german.day(then, now), english.moment(now)
    ('3 May', '3. Mai', '14 June 2026, 14:20 UTC')
    >>> english.ago(now, now + 2 * MINUTE), german.ago(now, now + 25 * HOUR)
    ('2 minutes ago', 'vor 1 Tag')
    """

    def __init__(self, words: Words) -> None:
        self._words = words

    def label(self, value: str, facet: str = "") -> str:
        """Name the value of a label; of a facet of two, both."""
        parts, values = facet.split("&"), value.split("&")
        if len(parts) == len(values) > 1:
            named = (self.label(one, part) for part, one in zip(parts, values, strict=True))
            return ", ".join(named)
        sentence = OF_FACET.get((facet, value)) or LABELS.get(value)
        return self._words(sentence) if sentence else self._words.language_name(value)

    def number(self, value: float, digits: int = 0) -> str:
        """Write a number, with so many digits after the point."""
        return self._words.number(f"{value:,.{digits}f}").replace("-", MINUS)

    def points(self, value: float) -> str:
        """Points without decimals, which no board can support."""
        if not isfinite(value):
            return "∞" if value > 0 else f"{MINUS}∞"
        return self._words.number(f"{round(value):,}").replace("-", MINUS)

    def short(self, value: float) -> str:
        """Write a weight, or a mark of an axis, without digits that it does not have."""
        return self._words.number(f"{value:,.3g}").replace("-", MINUS)

    def about(self, n: int) -> str:
        """Count in two digits, as far as an extrapolation can be trusted."""
        return self.number(round(float(f"{n:.2g}")))

    def signed(self, value: float) -> str:
        """Points gained or lost."""
        written = self.points(value)
        return f"+{written}" if value > 0 and written != "0" else written

    def half_width(self, rating: float, lower: float, upper: float) -> str:
        """Interval around a rating: one number where both sides round to the same."""
        above, below = self.points(upper - rating), self.points(rating - lower)
        return f"±{SPACE}{above}" if above == below else f"+{above}{SPACE}{MINUS}{below}"

    def difference(self, value: float) -> str:
        """Write a small difference, in thousandths.

        >>> from arena.catalogue import words_in
        >>> from arena.domain.words import Language
        >>> Filters(words_in(Language.EN)).difference(-0.0029)
        '−0.003'
        """
        written = self.number(abs(value), 3)
        sign = "" if round(value, 3) == 0 else "+" if value > 0 else MINUS
        return f"{sign}{written}"

    def money(self, dollars: float | None) -> str:
        """US dollars, in cents below 100."""
        if dollars is None:
            return NOT_KNOWN
        if 0 < dollars < 0.005:
            return f"<{self._dollars(0.01, 2)}"
        return self._dollars(dollars, 2 if dollars < 99.995 else 0)

    def price(self, dollars: float | None) -> str:
        """US dollars of two digits, where more would tell of single answers."""
        return self.money(None if dollars is None else float(f"{dollars:.2g}"))

    def _dollars(self, amount: float, digits: int) -> str:
        return self._words(Sentence("$%(amount)s", amount=self.number(amount, digits)))

    def seconds(self, value: float | None) -> str:
        """Seconds, in tenths below ten."""
        if value is None:
            return NOT_KNOWN
        if value < 0.05:
            return f"<{self.number(0.1, 1)}{SPACE}s"
        return f"{self.number(value, 1 if value < 9.95 else 0)}{SPACE}s"

    def day(self, when: datetime, now: datetime) -> str:
        """Date in UTC, with the year unless it is this one."""
        then = when.astimezone(UTC)
        return self._words.day(then, year=then.year != now.astimezone(UTC).year)

    def moment(self, when: datetime) -> str:
        """Date and time in UTC."""
        then = when.astimezone(UTC)
        return f"{self._words.day(then, year=True)}, {then:%H:%M} UTC"

    def ago(self, when: datetime, now: datetime) -> str:
        """Time since a moment, down to the minute; a date after a fortnight."""
        elapsed = now - when
        if elapsed < MINUTE:
            words = Sentence("just now")
        elif elapsed < HOUR:
            words = counted("%(n)s minute ago", "%(n)s minutes ago", elapsed // MINUTE)
        elif elapsed < DAY:
            words = counted("%(n)s hour ago", "%(n)s hours ago", elapsed // HOUR)
        elif elapsed < 14 * DAY:
            words = counted("%(n)s day ago", "%(n)s days ago", elapsed // DAY)
        else:
            words = Sentence("on %(day)s", day=self.day(when, now))
        return self._words(words)
