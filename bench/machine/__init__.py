"""What this machine has and what a model needs: checks, memory and time estimates."""
