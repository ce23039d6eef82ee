"""Runs cases in worker processes and collects their outcomes and graphs."""
