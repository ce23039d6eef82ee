"""Answers what an editor asks of a case file while it is written, whatever state its text is in."""
