"""What `import vcpo_bench` offers: results as pandas tables, grids run from Python, diagnoses of logs."""
