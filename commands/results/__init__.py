"""Keep results: check, diff, merge, export, publish or cite them."""
