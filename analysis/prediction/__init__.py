"""Can collapse be predicted? How early, at what cost in false alarms, and better than what is known anyway?"""
