"""Turns reports into what people read."""
