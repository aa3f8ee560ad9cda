"""The grammar and the catalog: how everything a user can name is spelled, listed and loaded."""
