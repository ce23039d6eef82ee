"""The compatibility report as one HTML page."""
