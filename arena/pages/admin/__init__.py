"""The admin room: pages for those who run the arena."""
