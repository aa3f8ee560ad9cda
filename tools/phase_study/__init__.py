"""The phase study: which learning rate survives which lag."""
