"""The verbs of the command line: every file of this folder is one, and the file's name is what users type."""
