"""Is this evaluator any good: the five-axis card and the reliability audit."""
