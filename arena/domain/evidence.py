"""What a board rests on, as plain values: what would overturn it, how it fits, how it came."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Fewest:
    """How few votes, voters or prompts two models would change places without.

    Attributes
    ----------
    k : int or None
        Found, and confirmed by a new fit: fewer may do. None if no number that was tried did.
    tried : int
        The most that were taken away together.
    of : int
        How many there are.
    """

    k: int | None
    tried: int
    of: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """What holds one model above its neighbour on the board.

    Attributes
    ----------
    above, below : str
        Model ids.
    lead : float
        Points.
    votes, voters, prompts : Fewest or None
        What the order would turn without; None where they are not all known, or just one.
    separated : bool
        Whether the lead exceeds what chance explains, this pair by itself.
    more_votes : int or None
        Votes to come on the whole board, from more people, until it would; 0 if it does, None
        if the two are level.
    """

    above: str
    below: str
    lead: float
    votes: Fewest
    voters: Fewest | None
    prompts: Fewest | None
    separated: bool
    more_votes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Misfit:
    """A pair whose votes are not what the ratings make one expect.

    Attributes
    ----------
    row, column : str
        Model ids.
    share, expected : float
        Of the ``n`` votes: what the row won, ties half, and what the ratings say.
    """

    row: str
    column: str
    share: float
    expected: float
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FitCheck:
    """How the votes on each pair agree with one rating a model.

    Attributes
    ----------
    pairs : int
        Pairs with votes enough to look at, whatever the ratings make of them.
    far : int
        Those more than two standard errors from what the ratings say.
    by_chance : float or None
        As many would be on average if one rating a model described all votes, with voters like
        these; None where too few people voted to know.
    p : float or None
        Probability that all pairs together would lie as far off, or further; None as above.
    left_out : int
        Pairs that met, but too rarely, or that the ratings follow whatever their votes.
    worst : tuple of Misfit
        The furthest of those that are far, furthest first.
    """

    pairs: int
    far: int
    by_chance: float | None
    p: float | None
    left_out: int
    worst: tuple[Misfit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRating:
    """A model's rating and interval at some moment, in points."""

    model: str
    rating: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The board as it was.

    Attributes
    ----------
    votes : int
        Counted votes before ``when`` that its ratings rest on.
    ratings : tuple of PastRating
        Best first; none if the votes identified none yet.
    """

    when: datetime
    votes: int
    ratings: tuple[PastRating, ...]
