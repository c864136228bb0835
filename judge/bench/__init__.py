"""A bench: models answer the prompts of a benchmark, a judge compares or marks the answers."""
