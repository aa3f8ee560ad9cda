"""Samplers: what draws responses, in process or from an inference engine."""
