"""Archives of recorded runs that ship with a study, so that its tables can be made again without training."""
