"""The figures: each module draws one family from a `Study` onto a `Sheet`."""
