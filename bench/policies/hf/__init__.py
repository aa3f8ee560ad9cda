"""Hugging Face causal language models as policies; their packages come with the extra `[hf]`."""
