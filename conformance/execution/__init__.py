"""Runs cases in worker processes, and gathers what they answer."""
