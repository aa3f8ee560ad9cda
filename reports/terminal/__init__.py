"""What the terminal shows: scoreboard, learning curves, live progress, probe tables."""
