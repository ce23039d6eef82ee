"""What runs inside the interpreter under test: Python 3.8 or newer, torch and the standard library alone."""
