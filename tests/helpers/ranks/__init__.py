"""One cell trained by several processes: each samples and differentiates a share of the prompts."""
