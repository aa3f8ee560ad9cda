"""A cell inside verl: its configuration, its prompts and rewards, and its log as the tables of this project."""
