"""Study mechanisms: plan, fork and probe runs, tune the alarms."""
