"""Hugging Face causal language models as policies, and tasks in words bound to their tokenizers (extra `[hf]`)."""
