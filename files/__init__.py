"""How files are written, verified and locked. Nothing here knows what a file means."""
