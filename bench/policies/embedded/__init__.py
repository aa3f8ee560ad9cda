"""The built-in policies that can be named: one file each."""
