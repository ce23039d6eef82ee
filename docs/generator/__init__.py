"""Writes the pages of the documentation that are made of data: the book, the reference, and parts of other documents."""
