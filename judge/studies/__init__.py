"""Judge against people, and what both make of length, order and difficulty."""
