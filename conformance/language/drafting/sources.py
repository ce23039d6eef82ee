"""Finds the code in what people write: Python, notebooks, notebooks exported as text, Markdown.

Text is taken for code where it parses. In an exported notebook a cell begins below `In [7]:`, and ends where its output
or prose begins; code between fences is a cell, too.
"""

import ast
import doctest
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

MARK = re.compile(r"^In \[(?:\d+|None| )\]: *$")
FENCE = re.compile(r"^```(\w*) *$")
HEADING = re.compile(r"^ {0,1}#{1,6} +(?P<words>\S.*?)\s*$")
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
MAGIC = re.compile(r"^ *[%!]")
OTHER_LANGUAGES = frozenset({"bash", "sh", "console", "text", "yaml", "json", "cpp", "c"})
OF_OUTPUTS = frozenset({"tensor"})  # what a printed tensor looks like a call of


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A piece of code, the line that it begins in, the heading above it, and lines that are no Python."""

    code: str
    line: int
    heading: str = ""
    left_out: tuple[tuple[int, str], ...] = ()


class NotReadable(Exception):
    """A source can't be read, with a hint."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def parses(code: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as SyntaxWarning
            return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def cells_of(text: str, name: str) -> list[Cell]:
    """Return the pieces of code in a source; its name says what it is, or else its text."""
    if name.endswith(".ipynb"):
        return notebook_cells(text)
    is_text = any(MARK.match(line) or FENCE.match(line) for line in text.splitlines())
    if name.endswith((".md", ".txt")) or (not name.endswith(".py") and is_text):
        return list(text_cells(text.splitlines()))
    return [python_cell(text.splitlines(), 1, "")]


def notebook_cells(text: str) -> list[Cell]:
    """Return the cells of a notebook, counted from 1 in place of lines."""
    try:
        import nbformat  # noqa: PLC0415 - whoever drafts from other sources need not have it
    except ImportError:
        raise NotReadable("a notebook is read by nbformat, which isn't installed", "pip install nbformat") from None
    try:
        notebook = nbformat.reads(text, as_version=4)  # type: ignore[no-untyped-call]
    except Exception as error:  # noqa: BLE001 - nbformat raises whatever its schema's library does
        raise NotReadable(f"can't be read as a notebook: {error}", "expected what Jupyter saves as .ipynb") from None
    found, heading = [], ""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            found.append(python_cell(cell.source.splitlines(), 1, heading))
        elif cell.cell_type == "markdown":
            lines = cell.source.splitlines()
            found += text_cells(lines)
            heading = last_heading(lines) or heading
    return found


def last_heading(lines: list[str]) -> str:
    return next((words for line in reversed(lines) if (words := heading_of(line))), "")


def heading_of(line: str) -> str:
    match = HEADING.match(line)
    return LINK.sub(r"\1", match["words"]) if match else ""


def python_cell(lines: list[str], line: int, heading: str) -> Cell:
    """Return lines as a cell, with what is IPython's alone left out."""
    left_out = tuple((line + at, text) for at, text in enumerate(lines) if MAGIC.match(text))
    kept = [("" if MAGIC.match(text) else text) for text in lines]
    return Cell(code="\n".join(kept), line=line, heading=heading, left_out=left_out)


def text_cells(lines: list[str]) -> Iterator[Cell]:
    """Yield the code in Markdown, or in a notebook that was exported as text."""
    heading, at = "", 0
    while at < len(lines):
        fence = FENCE.match(lines[at])
        if MARK.match(lines[at]):
            end = next((n for n in range(at + 1, len(lines)) if MARK.match(lines[n]) or FENCE.match(lines[n])), None)
            code = code_at_the_top(lines[at + 1 : end])
            if any(line.strip() for line in code):
                yield python_cell(code, at + 2, heading)
            at += 1 + len(code)
        elif fence:
            end = next((n for n in range(at + 1, len(lines)) if lines[n].startswith("```")), len(lines))
            if fence[1] not in OTHER_LANGUAGES:
                yield python_cell(without_outputs(lines[at + 1 : end]), at + 2, heading)
            at = end + 1
        else:
            heading = heading_of(lines[at]) or heading
            at += 1


def without_outputs(lines: list[str]) -> list[str]:
    """Return the code of a block: of a session, what follows `>>>`; elsewhere that marks outputs."""
    first = next((line for line in lines if line.strip()), "")
    if first.startswith(">>>"):
        try:
            return [
                line
                for example in doctest.DocTestParser().get_examples("\n".join(lines))
                for line in example.source.splitlines()
            ]
        except ValueError:
            return lines
    return ["" if line.startswith(">>>") else line for line in lines]


def code_at_the_top(lines: list[str]) -> list[str]:
    """Return the code that lines begin with, up to where output or prose begins."""
    starts = [0, *(n for n in range(1, len(lines)) if lines[n].strip() and not lines[n - 1].strip())]
    ends = [*starts[1:], len(lines)]
    best = 0
    for start, end in zip(starts, ends, strict=True):
        paragraph = parses("\n".join(lines[start:end]))
        if start == best and start and (is_prose(lines[start:end]) or (paragraph is not None and is_output(paragraph))):
            break
        if parses("\n".join(lines[:end])) is not None:
            best = end
    return lines[:best]


def is_prose(lines: list[str]) -> bool:
    """Whether lines that would parse are headings, rather than comments that are followed by code."""
    filled = [line for line in lines if line.strip()]
    return all(HEADING.match(line) for line in filled) and not any(commented(line) for line in filled)


def commented(line: str) -> ast.Module | None:
    """Return the statements in a comment, if it is code that was put out of use."""
    text = line.strip().lstrip("#").strip()
    tree = parses(text)
    if tree is None or not tree.body:
        return None
    did = (ast.Assign, ast.AugAssign)
    fine = all(isinstance(n, did) or (isinstance(n, ast.Expr) and isinstance(n.value, ast.Call)) for n in tree.body)
    return tree if fine else None


def is_output(tree: ast.Module) -> bool:
    """Whether what parses is what was printed, rather than code."""
    values = [node.value if isinstance(node, ast.Expr) else None for node in tree.body]
    return bool(values) and all(value is not None and is_printed(value) for value in values)


def is_printed(node: ast.expr) -> bool:
    if isinstance(node, (ast.Tuple, ast.List)):
        return all(map(is_printed, node.elts))
    if isinstance(node, ast.UnaryOp):
        return is_printed(node.operand)
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in OF_OUTPUTS
    return isinstance(node, ast.Constant) and not isinstance(node.value, str)
