"""Writes the pages of the documentation that are made of data: the book, the reference, parts of other documents."""
