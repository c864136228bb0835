"""A judge beside people: votes and verdicts read, compared, and told."""
