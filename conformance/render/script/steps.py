"""Writes the steps of a case as lines of a script: its statements, and calls that check its expectations."""

import ast
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any

from conformance.language.steps import REFERENCES
from conformance.render.script.carried import entry

WIDTH = 112
UNUSUAL = re.compile(r"[^ -~\n]")
LAYOUT = str.maketrans("", "", "\n\t")
OWN_LINES = re.compile(r"'''|\"\"\"|\\\n")  # of text that indentation would change
SPECIAL = re.compile(r"[{]|nan|inf")  # in what may be more than its repr
TOLERANCES = ("rtol", "atol")
KEYS = {"is": "is_"}  # how a check is named that can't be an argument
BUILTIN = frozenset({"exec", "float"})


def block(begin: str, lines: Iterable[str]) -> list[str]:
    """Return the lines with a first one and indented below it, or none where there are none."""
    inner = ["    " + line.replace("\n", "\n    ") for line in lines]
    return [begin, *inner] if inner else []


def spread(begin: str, items: Sequence[str], end: str) -> str:
    """Return items between brackets, in one line or each in lines of its own."""
    line = f"{begin}{', '.join(items)}{end}"
    if len(line) <= WIDTH and "\n" not in line:
        return line
    return "\n".join([*block(begin.rstrip(), [f"{item}," for item in items]), end])


def quoted(text: str) -> str:
    """Return text as a literal in which invisible characters are escaped."""
    literal = repr(text)
    return literal if '"' in literal else f'"{literal[1:-1]}"'


def bounds(condition: str) -> str:
    """Return a condition on torch as a literal."""
    return quoted("".join(condition.split()))


class ScriptWriter:
    """One case while it is written: what its lines use of the parts, and the code of its own that they hold."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix  # of names that aren't the case's own
        self.condition: str | None = None  # under which the step stands that is being written
        self.parts: set[str] = set()
        self.names: set[str] = set()
        self.texts: list[tuple[str | None, str]] = []

    def name(self, name: str) -> str:
        """Return what a function of the parts is called here."""
        self.names.add(name)
        self.parts |= {name} - BUILTIN
        return self.prefix + name

    def holds(self, condition: str) -> str:
        return f"{self.name('torch_is')}({bounds(condition)})"

    def by_torch(self, alternatives: Iterable[tuple[str, str]]) -> str:
        items = [f"{bounds(condition)}: {value}" for condition, value in alternatives]
        return spread(f"{self.name('by_torch')}({{", items, "})")

    def offered(self, name: str) -> Iterator[str]:
        """Yield the lines that define a name of the suite itself, such as `device`."""
        if name == "device":
            yield f"device = {self.name('DEVICE')}"
        elif name == "dtype":
            yield f"dtype = getattr(torch, {self.name('DTYPE')})"
        else:
            self.parts.add(name)
            if self.prefix:
                yield f"{name} = _parts[{name!r}]"

    def step(self, step: dict[str, Any]) -> list[str]:
        """Return the lines of a step."""
        self.condition = step.get("torch")
        lines = self.statements(step) if "do" in step else [self.expectation(step["expect"])]
        return lines if self.condition is None else block(f"if {self.holds(self.condition)}:", lines)

    def statements(self, step: dict[str, Any]) -> list[str]:
        text = step["do"].rstrip()
        self.texts.append((self.condition, text))
        expected = [f"{key}={self.expected(step[key])}" for key in ("raises", "warns") if key in step]
        is_plain = not UNUSUAL.search(text) or text.translate(LAYOUT).isprintable()
        if not is_plain or (OWN_LINES.search(text) and (expected or self.condition)):
            text = f"{self.name('exec')}({text!r})"
        return block(spread(f"with {self.name('must')}(", expected, "):"), [text]) if expected else [text]

    def expected(self, alternatives: Sequence[dict[str, Any]]) -> str:
        """Return the exceptions or warnings of which one is expected."""
        texts = [
            spread(
                f"({entry['line']}, ",
                [quoted(each) if isinstance(each, str) else repr(each) for each in (entry["type"], *entry["match"])],
                ")",
            )
            for entry in alternatives
        ]
        if alternatives[0]["torch"] is None:
            return texts[0]
        return self.by_torch((entry["torch"], text) for entry, text in zip(alternatives, texts, strict=True))

    def expectation(self, entries: Iterable[dict[str, Any]]) -> str:
        return spread(f"{self.name('expect')}(", [call for entry in entries for call in self.checks(entry)], ")")

    def checks(self, entry: dict[str, Any]) -> Iterator[str]:
        """Yield a call for each line on which the checks of one object stand."""
        path = entry["subject"]
        if entry["checks"][0][0] == "log":
            subject = self.name("EVENTS")
        elif path.isidentifier():
            subject = path
            self.texts.append((self.condition, path))
        else:
            subject = self.later(path)
        calls: dict[int, list[str]] = {}
        tolerance = []
        for name, value, line in entry["checks"]:
            if name in TOLERANCES:
                tolerance.append(f"{name!r}: {value}")
            else:
                calls.setdefault(line, []).append(f"{KEYS.get(name, name)}={self.wanted(name, value)}")
        for line, items in calls.items():
            if tolerance:
                items.append(f"tolerance={{{', '.join(tolerance)}}}")
            yield spread(f"{self.name('check')}({line}, {quoted(path)}, {subject}, ", items, ")")

    def wanted(self, check: str, value: Any) -> str:
        """Return what a check expects as an expression, and note the parts that the check needs."""
        self.parts.add(entry(check))
        if value is None or type(value) in (bool, int):
            return repr(value)
        if type(value) is dict and "torch" in value:
            outer, alternatives = self.condition, []
            for condition, inner in value["torch"].items():
                self.condition = condition if outer is None else f"{outer},{condition}"
                alternatives.append((condition, self.wanted(check, inner)))
            self.condition = outer
            return self.by_torch(alternatives)
        if type(value) is dict and "checks" in value:
            inside = [
                (name, inner if name in TOLERANCES else self.wanted(name, inner)) for name, inner, _ in value["checks"]
            ]
            items = [f"{name!r}: {inner}" for name, inner in inside]
            return spread("{", items, "}")
        if type(value) is dict:
            self.parts |= {"evaluated"} if check in REFERENCES else set()
            return self.later(value["expr"])
        if type(value) is list and SPECIAL.search(repr(value)):
            return f"[{', '.join([self.wanted(check, item) for item in value])}]"
        if type(value) is float and not math.isfinite(value):
            return f"{self.name('float')}({quoted(str(value))})"
        return quoted(value) if type(value) is str else repr(value)

    def later(self, text: str) -> str:
        """Return an expression as a function, to be evaluated when the check runs."""
        self.texts.append((self.condition, text))
        return deferred(text)


def on_one_line(text: str) -> str:
    """Return an expression without comments and ends of lines, so that more can stand behind it."""
    text = text.strip()
    if "#" in text or UNUSUAL.search(text) or "\n" in text:
        text = ast.unparse(ast.parse(text, mode="eval"))
        text = text if text.isprintable() else text.encode("ascii", "backslashreplace").decode()
    return text


@cache
def deferred(text: str) -> str:
    text = on_one_line(text)
    is_tuple = "," in text and isinstance(ast.parse(text, mode="eval").body, ast.Tuple)
    return f"lambda: ({text})" if is_tuple else f"lambda: {text}"
