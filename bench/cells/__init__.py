"""What a cell is: its configuration, key, grid, results folder, and the objects it opens."""
