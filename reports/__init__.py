"""Draws: terminal, figures, tables, HTML, PDF. No torch."""
