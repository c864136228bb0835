"""Votes from files, and boards to files."""
