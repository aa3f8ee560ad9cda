"""Studies: pages made of tables. `pages.render_all` is what a command calls."""
