"""Judges at work: cases from battles, endpoints and journals for runs; no web."""

from arena.judging.places import endpoint, journal

__all__ = ["endpoint", "journal"]
