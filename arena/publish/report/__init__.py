"""A study as a report: one page, and its tables beside it."""
