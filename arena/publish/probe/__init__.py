"""Is the measure any good: cards of measures and judges, audits of boards."""
