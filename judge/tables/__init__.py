"""Verdicts, cases and marks from files."""
