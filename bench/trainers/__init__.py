"""What trains a cell: the loop of this project, or another trainer in processes of its own."""
