"""Runs, studies and cards as reports: one page, and its tables beside it."""
