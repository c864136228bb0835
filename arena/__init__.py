"""People and battles: the arena, its pages and its commands."""
