"""The signals: one file per signal, called what a user types."""
