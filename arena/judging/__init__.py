"""Judges at work: cases in, verdicts out, over the endpoints and the journal; no web."""
