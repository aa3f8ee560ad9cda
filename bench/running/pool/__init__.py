"""Worker processes of this machine, which run cells one after another."""
