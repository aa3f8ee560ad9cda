"""The page about a GPU, from the recorded results of a day on one."""
