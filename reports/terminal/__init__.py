"""What the terminal shows: scoreboard, curves, live progress."""
