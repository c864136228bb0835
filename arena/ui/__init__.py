"""The battle page."""
