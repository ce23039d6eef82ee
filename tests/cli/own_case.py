"""The text of a case file as a user writes it, which loads."""

CASE = """\
topic: Own
cases:
  - id: own-case
    title: It is a leaf
    why: Nothing made it.
    rules: [detach.shares-storage]
    steps:
      - a = tensor([1.0])
      - expect: {a: {is_leaf: true}}
"""
