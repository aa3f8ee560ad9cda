"""The pages of the docs that follow from the code; `tools/make_docs.py` writes them."""
