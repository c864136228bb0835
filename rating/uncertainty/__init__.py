"""How far strengths, ranks and win rates may be off."""
