"""The live path: a prompt, two answers, a vote."""
