"""What is wrong with a fit, or with the votes: pairs, voters, and what a rank hangs on."""
