"""Items of text tasks: read from files or generated."""
