"""Optimizers: one file each, named by what the user types; `OPTIMIZERS.parse("adamw(beta2=0.98)")` gives one."""
