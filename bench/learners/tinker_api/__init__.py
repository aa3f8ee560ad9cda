"""Training through the Tinker API: the connection, the data it takes, and a policy whose weights are on its server."""
