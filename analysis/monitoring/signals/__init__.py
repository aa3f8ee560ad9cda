"""The signals: one file per role; a signal of one's own is a file beside them."""
