"""The verbs of the command line: every file of this folder is one, and its name is what users type.

The folders `results` and `lab` hold the verbs of the groups of that name, their first line the groups' help.
"""
