"""Scoring of text answers: numbers, expressions, LaTeX, judges."""
