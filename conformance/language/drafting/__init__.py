"""Makes drafts of cases of what people write elsewhere: snippets, notebooks, tests."""
