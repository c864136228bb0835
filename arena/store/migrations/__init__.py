"""The schema's history, run by `arena.store.schema` when a database is opened."""
