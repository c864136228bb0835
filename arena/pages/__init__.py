"""The reading pages: leaderboard, battles, my votes, method; without any script."""
