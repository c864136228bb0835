"""Which pairs to show next, and how many votes a claim needs."""
