"""Loads the suite's plugin, also where pytest was given another configuration than this checkout's."""

pytest_plugins = ["conformance.pytest_plugin.plugin"]
