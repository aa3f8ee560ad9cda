"""Studies: pages made of their tables, which `tools/make_docs.py` writes."""
