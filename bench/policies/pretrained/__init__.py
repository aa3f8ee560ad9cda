"""Released language models that need no hub: fetched from the package index, or read from a GGUF file."""
