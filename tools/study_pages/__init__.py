"""What the pages of studies share: tables as Markdown, and the parts of a page that a tool writes."""
