"""Words that a study and its report share."""


def plural(n: int, word: str) -> str:
    """Count things.

    >>> plural(1, "item"), plural(1200, "item")
    ('1 item', '1,200 items')
    """
    return f"{n:,} {word}" if n == 1 else f"{n:,} {word}s"
