"""Tasks of lm-eval on this project's own tasks, one YAML file each; lm-eval loads the functions they name by path."""
