"""Running cells: one to completion, a pool of workers, a grid."""
