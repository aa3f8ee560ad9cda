"""The parts methods are assembled from; each file holds one slot's parts, found by listing this folder."""
