"""One cell on several processes at once: each samples and learns a share of the prompts, all do the same update."""
