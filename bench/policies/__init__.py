"""Policies: the interface, the built-in tiny transformer, Hugging Face causal language models."""
