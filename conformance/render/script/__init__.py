"""A case as a script in plain torch."""
