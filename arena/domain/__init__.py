"""The arena's values: frozen, without I/O, known to every other room."""
