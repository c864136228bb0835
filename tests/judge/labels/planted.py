"""Prompts about planted topics."""

import numpy as np

SUBJECTS = {
    "bread": "dough yeast flour oven crust knead rise sourdough bake loaf",
    "birds": "sparrow feather nest migrate wing beak robin eagle heron flock",
    "space": "planet orbit rocket moon comet telescope galaxy gravity lunar asteroid",
    "chess": "rook bishop pawn checkmate gambit castle knight endgame opening queen",
    "music": "guitar chord melody rhythm drum bass piano octave tempo violin",
    "garden": "tomato soil compost prune seedling mulch weed rose greenhouse watering",
    "taxes": "deduction income refund audit receipt payroll invoice accountant fiscal ledger",
    "sailing": "mast anchor rudder harbour tide keel jib crew mooring regatta",
}


def planted(n: int, rng: np.random.Generator, words: int = 7) -> tuple[list[str], list[str]]:
    """Prompts of words of one subject each, with a few of all, and their subjects."""
    names = list(SUBJECTS)
    everywhere = np.array(["today", "beginner", "quick", "friend", "evening", "plan"])
    subjects = [names[i] for i in rng.integers(len(names), size=n)]
    texts = [
        "Please tell me about "
        + " ".join([*rng.choice(SUBJECTS[subject].split(), words), *rng.choice(everywhere, 2)])
        for subject in subjects
    ]
    return texts, subjects
