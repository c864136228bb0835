"""Gold battles: two recorded answers of which one is known to be right, to see who votes how.

The record marks them by the set that their prompt is of, which a vote binds, so that what was
right cannot be changed later either.
"""

from arena.domain.vote import Choice

GOLD = "gold:"
"""How the sets of such prompts begin; the right answer follows, as a vote for it is written."""
GONE_ON = "gold:gone-on"
"""The set of one that went on with other models: nothing is known to be right there."""
OWNER = "gold~"
"""How the ids of those who gave the answers begin: no model of a roster can have such an id."""


def set_of(right: Choice) -> str:
    """Name the set of a gold battle by its right answer.

    >>> set_of(Choice.A)
    'gold:model_a'
    """
    return f"{GOLD}{right}"


def is_gold(prompt_set: str | None) -> bool:
    """Tell whether a battle is a gold battle, or began as one."""
    return prompt_set is not None and prompt_set.startswith(GOLD)


def right_of(prompt_set: str | None) -> Choice | None:
    """Give the vote that is right; None where nothing is known to be.

    >>> right_of("gold:model_b"), right_of("recorded"), right_of(GONE_ON)
    (<Choice.B: 'model_b'>, None, None)
    """
    named = (prompt_set or "").removeprefix(GOLD)
    return Choice(named) if is_gold(prompt_set) and named in {*Choice} else None
