"""What the probability of a vote is, and the parameters under which the votes are likeliest."""
