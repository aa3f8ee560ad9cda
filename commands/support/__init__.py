"""What several verbs share. Files here are no verbs."""
