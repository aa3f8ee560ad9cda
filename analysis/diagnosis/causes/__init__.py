"""Possible causes, each a function from the story of a run to evidence and counter-evidence."""
