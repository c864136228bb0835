"""What a machine would say, and how far that agrees with people."""
