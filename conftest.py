"""Loads the suite's plugin."""

pytest_plugins = ["conformance.pytest_plugin.plugin"]
