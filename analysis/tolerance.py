"""When two computed numbers count as equal, and when a share reaches a bound: never by the luck of rounding."""

EQUAL = 1e-9
"""Rewards, scores and shares that differ by less are equal.

They are means of a few thousand numbers at most, so rounding moves them by about 1e-13, while two different means of
0/1 rewards over any batch that fits a machine are further apart than 1e-9.
"""
