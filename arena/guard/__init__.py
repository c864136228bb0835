"""What keeps the arena honest: who a visitor is, and what is never told."""
