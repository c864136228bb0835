"""The boards of the live log."""
