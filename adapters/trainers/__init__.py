"""Trainers of others as the trainer of a cell: one file each, found by `bench.trainers.catalog`."""
