"""The kinds of things that `ls`, `show` and `new` know: how each is listed and explained."""
