"""Keep results: check, compare, merge, export, publish or cite them."""
