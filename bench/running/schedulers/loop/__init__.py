"""What all schedulers share: jobs, the launch file, and the loop that watches a results folder."""
