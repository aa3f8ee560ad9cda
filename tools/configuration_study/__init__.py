"""The study of configurations: which runs fail, over many configurations, read from updates that ship already."""
