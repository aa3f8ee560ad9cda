"""Where the policy of a cell is trained: in this process, or by an engine behind an interface."""
