"""What would overturn a rank: votes, voters or prompts taken away, and votes still to come."""

from arena.boards.fitted import OPTIONS, Fitted
from arena.domain.evidence import Fewest, Hold
from rating import Comparisons, Flip, NeighbourGap, fewest_to_flip, neighbour_gaps
from rating.diagnosis.influence import Unit
from rating.scale import POINTS_PER_NAT

MOST_PAIRS = 10
"""Neighbours looked at, from the top: the cost of a board stays within bounds."""
MOST_BY_PROMPT = 50_000
"""Votes up to which prompts are taken away: few and heavy, each costs a fit of its own."""
MOST_TAKEN = 1000
"""Votes, voters or prompts that are taken away together, at most."""


def holds(fitted: Fitted) -> tuple[Hold, ...]:
    """Say what holds each model above the next, for the first `MOST_PAIRS` neighbours.

    See `rating.diagnosis.influence.fewest_to_flip` and `rating.planning.votes.neighbour_gaps`.
    """
    data, models = fitted.data, fitted.fit.models
    gaps = neighbour_gaps(fitted.inference, level=OPTIONS.level)[:MOST_PAIRS]
    pairs = [(models[gap.ahead], models[gap.behind]) for gap in gaps]
    by_prompt = _by_prompt(fitted)
    votes = _fewest(fitted, data, "vote", pairs, data.n_votes)
    voters = _fewest(fitted, data, "voter", pairs, data.n_voters)
    prompts = _fewest(fitted, by_prompt, "prompt", pairs, by_prompt.n_prompts)
    return tuple(
        _hold(pair, gap, votes[pair], voters.get(pair), prompts.get(pair))
        for pair, gap in zip(pairs, gaps, strict=True)
    )


def _hold(
    pair: tuple[str, str],
    gap: NeighbourGap,
    votes: Fewest,
    voters: Fewest | None,
    prompts: Fewest | None,
) -> Hold:
    return Hold(
        above=pair[0],
        below=pair[1],
        lead=gap.gap * POINTS_PER_NAT,
        votes=votes,
        voters=voters,
        prompts=prompts,
        separated=gap.separated,
        more_votes=gap.more_votes,
    )


def _fewest(
    fitted: Fitted, data: Comparisons, unit: Unit, pairs: list[tuple[str, str]], of: int
) -> dict[tuple[str, str], Fewest]:
    """Find the fewest of each pair; nothing where there are not two clusters to tell apart."""
    if unit != "vote" and of < 2:
        return {}
    found = fewest_to_flip(fitted.fit, data, unit=unit, pairs=pairs, at_most=MOST_TAKEN)
    return {(flip.above, flip.below): _few(flip, of) for flip in found}


def _few(flip: Flip, of: int) -> Fewest:
    return Fewest(k=flip.k, tried=flip.tried, of=of)


def _by_prompt(fitted: Fitted) -> Comparisons:
    """Give the votes with their prompts; without, where these are not known, or votes too many."""
    if fitted.data.n_votes > MOST_BY_PROMPT or fitted.data.prompt is None:
        return fitted.data.merged()
    return fitted.data
