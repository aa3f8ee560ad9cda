"""Writing a report: HTML, PDF, paper figures, LaTeX, tables."""
