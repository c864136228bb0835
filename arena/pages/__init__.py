"""The reading pages: leaderboard, battles, my battles, method; without any script."""
