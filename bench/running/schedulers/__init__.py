"""Where cells run: here, on Slurm, on Ray. A launcher is one file here, or a plug-in."""
