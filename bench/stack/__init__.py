"""Many cells of one shape as one program: every tensor of the tiny policy gets a leading axis of cells."""
