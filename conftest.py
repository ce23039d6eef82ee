"""Loads the suite's plugin."""

pytest_plugins = ["conformance.plugin"]
