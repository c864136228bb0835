"""The program: where votes come from, where they are kept, how they are shown and published."""

__version__ = "0.1.0"
