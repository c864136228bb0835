"""The schema's history, run by `arena.store.engine` when a database is opened."""
