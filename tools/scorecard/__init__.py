"""The reproduction scorecard: published facts, the runs that test them, and the rules that judge them."""
