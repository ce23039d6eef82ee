"""What the text of a step says of what it does."""

from __future__ import annotations

from loops import each

from conformance.render.statements import read_statements


@each(
    "text, written",
    [
        ("a.add_(1)", [("a", "add_()")]),
        ("a[0].mul_(2)", [("a", "mul_()")]),
        ("a[0] = 1", [("a", "the assignment")]),
        ("a += 1", [("a", "the assignment")]),
        ("a.requires_grad_()", []),
        ("b = a.add(1)", []),
        ("def f():\n    a.add_(1)", []),
        ("with no_grad():\n    a.zero_()", [("a", "zero_()")]),
    ],
)
def test_what_is_written_in_place_is_seen(text: str, written: list[tuple[str, str]]) -> None:
    assert list(read_statements(text).written) == written


def test_where_a_name_comes_from_is_seen() -> None:
    statements = read_statements("b, c = a.detach(), a\nd = a.data\nwith torch.no_grad():\n    e = w * 2\n")
    assert (statements.cut_of("b"), statements.cut_of("d"), statements.cut_of("e")) == ("detach()", ".data", "")
    assert statements.modes == ("no_grad",)
    assert statements.mentions("e") == {"w"}
    assert statements.mentions("e[0]") == {"w"}


def test_functions_are_named_and_not_looked_into() -> None:
    statements = read_statements(
        "def f(x):\n    x.backward()\nclass C(Function):\n    pass\ny = f(lambda t: t.detach_())"
    )
    assert statements.defined == ("f", "C")
    assert [call.name for call in statements.calls] == ["f"]


def test_what_is_no_python_says_nothing() -> None:
    assert read_statements("b = = 1").calls == ()
