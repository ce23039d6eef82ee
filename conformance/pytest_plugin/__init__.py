"""The suite as a plugin of pytest."""
