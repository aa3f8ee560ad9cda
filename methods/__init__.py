"""The gradient coefficients of every stabilizer: pure tensor maths, torch only."""
