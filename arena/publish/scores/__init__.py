"""Scores of models from elsewhere against the arena's ratings."""
