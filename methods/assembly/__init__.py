"""A method assembled from its parts, read from an expression, described and written anew."""
