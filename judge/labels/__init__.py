"""What prompts ask for: taggers, and how right they are on samples that were labelled by hand.

A room of `judge`, since a tagger judges a text as a checker of `judge.ifeval` does, whose language
detector and instructions it takes; and above `judge.studies`, whose correction of a rate by its
errors it needs. Nothing here knows a database: the arena stores labels, and pins their version.
"""
