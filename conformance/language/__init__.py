"""The case language: from the text of case files to cases that can run."""
