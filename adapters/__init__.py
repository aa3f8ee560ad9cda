"""Every method inside other trainers: coefficients once per optimizer step, then a linear loss for the trainer."""
