"""Writes a case as a script in plain torch that comes to the same outcome, without this suite and without pytest.

After the parts of `script_parts.py.txt` that it needs come the case's own statements as they stand, with a call of
`check` for each line of its expectations between them. Alternatives are chosen when the script runs, so that it is
the same for every torch.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from conformance import vocabulary
from conformance.case import REFERENCES, Case, parse_cases
from conformance.problem import CaseFileError
from conformance.report import CaseRecord
from conformance.rule import Rule
from conformance.script_names import Fact, Uses, names_of_module, sets_any_of, uses_of

WIDTH = 112
LAST_LINE = 100_000
PART = re.compile(r"^#: (\w+)(?:: ([\w ]+))?\n", re.MULTILINE)
RELEASES = re.compile(r"[<>=!]{1,2}\d+(\.\d+)*(,[<>=!]{1,2}\d+(\.\d+)*)*")
UNUSUAL = re.compile(r"[^ -~\n]")
OWN_LINES = re.compile(r"'''|\"\"\"|\\\n")  # of what would be another text if it were indented
SPECIAL = re.compile(r"[{]|nan|inf")  # in what may be more than its repr
TOLERANCES = ("rtol", "atol")
# In which part a name stands that isn't a part's own.
HOME = {
    **dict.fromkeys(["stop", "DEVICE", "DTYPE", "torch_is", "exec", "float"], "start"),
    "expect": "check", "EVENTS": "log", "seeded_normal": "normal",
}  # fmt: skip


def read_parts() -> tuple[dict[str, str], dict[str, list[str]]]:
    """Return the parts of scripts by name, in order, and the names of those that each needs."""
    _, *found = PART.split(Path(__file__).with_name("script_parts.py.txt").read_text(encoding="utf-8"))
    names = found[::3]
    needs = dict(zip(names, [(needs or "").split() for needs in found[1::3]], strict=True))
    return dict(zip(names, found[2::3], strict=True)), needs


SNIPPETS, NEEDS = read_parts()


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A script: the names of the parts that come first, in order, and the case's own text."""

    parts: tuple[str, ...]
    body: str

    @property
    def text(self) -> str:
        return "".join(SNIPPETS[name] for name in self.parts) + self.body


def case_of(record: CaseRecord, rules: Mapping[str, Rule]) -> Case | None:
    """Return the case that a report holds, read and checked like any other; None when its text is no valid case."""
    above = "\n" * (min(record.line, LAST_LINE) - 2)
    try:
        cases = parse_cases(f"cases:\n{above}{record.yaml}\ntopic: any\n", record.file, rules)
    except CaseFileError:
        return None
    if [case.id for case in cases] != [record.id]:
        return None
    return replace(cases[0], topic=record.topic, text=record.yaml)


def script_of(case: Case) -> Script:
    """Return the script that does what `case` does."""
    draft = Draft("")
    steps = [line for step in case.steps for line in draft.step(step)]
    uses = uses_of(draft.texts)
    if takes_names(uses, draft):
        draft = Draft("_")
        steps = [line for step in case.steps for line in draft.step(step)]
    if uses.leads_out:
        uses = Uses()
        steps = [f"{draft.name('stop')}('error: an attribute that the case defines could lead out of it')"]
    lines = [*unsupported(case, draft), *prepared(uses, draft), "", *steps, f"{draft.name('stop')}('pass')", ""]
    parts = parts_with(frozenset(draft.parts))
    if draft.prefix:
        lines = [*aliases(draft), *lines]
        parts = ("apart", *parts, "together")
    return Script(parts=parts, body="\n".join([*head(case), *lines]))


@cache
def parts_with(wanted: frozenset[str]) -> tuple[str, ...]:
    """Return the parts of a script that has use for those that are `wanted`, in order."""
    found = {"start"}
    waiting = list(wanted)
    while waiting:
        name = waiting.pop()
        found.add(name)
        waiting += NEEDS[name]
    found -= {"torch_is"} if "torch_is_build" in found else set()
    found -= {"no_grad"} if "grad" in found else set()
    return tuple(name for name in SNIPPETS if name in found)


def takes_names(uses: Uses, draft: Draft) -> bool:
    """Whether the case has variables with names on which the parts of its script depend."""
    taken = uses.bound & (names_of_parts(parts_with(frozenset(draft.parts))) | draft.names)
    return bool(taken) and sets_any_of(taken, draft.texts)


@cache
def names_of_parts(parts: tuple[str, ...]) -> frozenset[str]:
    return names_of_module("".join(SNIPPETS[name] for name in parts))


def aliases(draft: Draft) -> Iterator[str]:
    """Yield the lines that give names that no case can have to what the case's lines use of the parts."""
    for name in sorted(draft.names):
        yield (
            f"_{name} = _parts.get({name!r}) or {name}" if name in ("exec", "float") else f"_{name} = _parts[{name!r}]"
        )


def comment(text: str) -> str:
    """Return text of a case as a line of a comment."""
    line = " ".join(text.split())
    return "# " + (line if line.isprintable() else "".join([c if c.isprintable() else "?" for c in line]))


def head(case: Case) -> list[str]:
    return [
        "", comment(f"{case.id}: {case.title}"), comment(case.why), comment(f"Rules: {', '.join(case.rules)}"),
        comment(f"From {case.file}, line {case.line}. Where autograd does as these rules say, it ends with 'pass'."),
    ]  # fmt: skip


def unsupported(case: Case, draft: Draft) -> Iterator[str]:
    """Yield the lines that end a script where its case can't be run."""
    reasons = {}
    if case.torch is not None:
        reasons[f"not {draft.holds(case.torch)}"] = f"torch {case.torch}"
    if case.devices:
        reasons[f"{draft.name('DEVICE')}.partition(':')[0] not in {case.devices}"] = f"a device of {case.devices}"
    if case.dtypes:
        reasons[f"{draft.name('DTYPE')} not in {case.dtypes}"] = f"a dtype of {case.dtypes}"
    for step in case.steps:
        for name in step.get("needs", ()):
            bound = f">={vocabulary.since(name)}"
            within = f"{draft.holds(step['torch'])} and " if "torch" in step else ""
            reasons.setdefault(f"{within}not {draft.holds(bound)}", f"torch {bound} for {name}")
    for condition, reason in reasons.items():
        yield f"if {condition}:"
        yield f"    {draft.name('stop')}({f'unsupported: needs {reason}'!r})"


def prepared(uses: Uses, draft: Draft) -> Iterator[str]:
    """Yield the lines that import what a case uses, and that have its tensors made as the suite makes them."""
    yield from import_lines(uses.facts)
    facts = uses.facts
    for condition, others in uses.conditional.items():
        yield from block(f"if {draft.holds(condition)}:", import_lines(others))
        facts |= others
    made: dict[tuple[str, str], list[str]] = {}
    for kind, holder, *name in sorted(facts):
        if kind == "suite":
            yield from draft.offered(holder)
        elif kind in ("random", "made", "layer"):
            made.setdefault((kind, holder), []).append(name[0])
    if made:
        yield from maker_lines(made, draft)


def maker_lines(made: Mapping[tuple[str, str], Sequence[str]], draft: Draft) -> Iterator[str]:
    """Yield the lines that seed what is drawn at random, and that make tensors and modules where they belong."""

    def maker(kind: str, path: str) -> str:
        name = path.rpartition(".")[2]
        if name.endswith("_like"):
            return f"{draft.name('like')}({maker(kind, path[: -len('_like')])})"
        own = {"normal": "seeded_normal", "from_numpy": "placed_array"}
        return f"{draft.name(own.get(name) or {'random': 'seeded', 'made': 'placed', 'layer': 'moved'}[kind])}({path})"

    def replaced(kind: str, holder: str) -> list[str]:
        return [f"{name}={maker(kind, f'{holder}.{name}')}" for name in made.get((kind, holder), ())]

    def stand_in(holder: str, items: Sequence[str]) -> str:
        return spread(f"{draft.name('with_names')}({holder}, ", items, ")")

    yield from [f"{name} = {maker('random', f'torch.{name}')}" for name in made.get(("random", ""), ())]
    if ("random", "torch") in made:
        yield f"torch = {stand_in('torch', replaced('random', 'torch'))}"
    lines = [f"{name} = {maker('made', name)}" for name in made.get(("made", ""), ())]
    of_torch = replaced("made", "torch")
    for kind, holder in made:
        outer, _, last = holder.rpartition(".")
        if outer:
            of_torch.append(f"{last}={stand_in(holder, replaced(kind, holder))}")
        elif holder not in ("", "torch"):
            lines.append(f"{holder} = {stand_in(holder, replaced(kind, holder))}")
    lines += [f"torch = {stand_in('torch', of_torch)}"] if of_torch else []
    yield from block(f"if {draft.name('DEVICE')} != 'cpu':", lines)


@cache
def import_lines(facts: frozenset[Fact]) -> tuple[str, ...]:
    """Return the lines that import what `facts` say, Python's own modules first."""
    modules: dict[str, list[str]] = {}
    for _, module, *names in sorted(fact for fact in facts if fact[0] == "import"):
        modules.setdefault(module, []).append(" as ".join(names))
    lines = [f"import {name}" for name in modules.pop("", ())]
    return (*lines, *(f"from {module} import {', '.join(names)}" for module, names in modules.items()))


def block(begin: str, lines: Iterable[str]) -> list[str]:
    """Return the lines with a first one and indented below it, or none where there are none."""
    inner = ["    " + line.replace("\n", "\n    ") for line in lines]
    return [begin, *inner] if inner else []


def spread(begin: str, items: Sequence[str], end: str) -> str:
    """Return items between brackets, in one line or each in lines of its own."""
    line = f"{begin}{', '.join(items)}{end}"
    if len(line) <= WIDTH and "\n" not in line:
        return line
    return "\n".join([*block(begin, [f"{item}," for item in items]), end])


class Draft:
    """The lines of one case while they are written, and what of the parts and of torch they use."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix  # of names that aren't the case's own
        self.condition: str | None = None  # under which the step stands that is being written
        self.parts: set[str] = set()
        self.names: set[str] = set()
        self.texts: list[tuple[str | None, str]] = []

    def name(self, name: str) -> str:
        """Return what a function of the parts is called here."""
        self.names.add(name)
        self.parts.add(HOME.get(name, name))
        return self.prefix + name

    def holds(self, condition: str) -> str:
        return f"{self.name('torch_is')}({self.bounds(condition)})"

    def bounds(self, condition: str) -> str:
        """Return a condition on torch as a literal."""
        text = "".join(condition.split())
        self.parts.add("torch_is" if RELEASES.fullmatch(text) else "torch_is_build")
        return repr(text)

    def by_torch(self, alternatives: Iterable[tuple[str, str]]) -> str:
        return spread(
            f"{self.name('by_torch')}({{", [f"{self.bounds(bounds)}: {value}" for bounds, value in alternatives], "})"
        )

    def offered(self, name: str) -> Iterator[str]:
        """Yield the lines by which a case has what the suite itself offers."""
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
        is_plain = not UNUSUAL.search(text) or text.replace("\n", "").isprintable()
        if not is_plain or (OWN_LINES.search(text) and (expected or self.condition)):
            text = f"{self.name('exec')}({text!r})"
        return block(spread(f"with {self.name('must')}(", expected, "):"), [text]) if expected else [text]

    def expected(self, alternatives: Sequence[dict[str, Any]]) -> str:
        """Return the exceptions or warnings of which one is expected."""
        texts = [
            spread("(", [repr(each) for each in (entry["line"], entry["type"], *entry["match"])], ")")
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
        tolerance = {name: value for name, value, _ in entry["checks"] if name in TOLERANCES}
        begin = [f"tolerance={tolerance}"] if tolerance else []
        calls: dict[int, list[str]] = {}
        for name, value, line in entry["checks"]:
            if name not in TOLERANCES:
                key = "value" if name == "log" else "is_" if name == "is" else name
                calls.setdefault(line, [*begin]).append(f"{key}={self.wanted(key, value)}")
        for line, items in calls.items():
            yield spread(f"{self.name('check')}(", [f"{line}, {path!r}, {subject}", *items], ")")

    def wanted(self, check: str, value: Any) -> str:
        """Return what a check expects as an expression, and note the parts that the check needs."""
        self.parts.add("no_grad" if check == "grad" and value is None else check)
        if type(value) is dict and "torch" in value:
            outer, alternatives = self.condition, []
            for bounds, inner in value["torch"].items():
                self.condition = bounds if outer is None else f"{outer},{bounds}"
                alternatives.append((bounds, self.wanted(check, inner)))
            self.condition = outer
            self.parts.add(check)
            return self.by_torch(alternatives)
        if type(value) is dict and "checks" in value:
            inside = [(name if name != "is" else "is_", inner) for name, inner, _ in value["checks"]]
            items = [f"{name!r}: {inner if name in TOLERANCES else self.wanted(name, inner)}" for name, inner in inside]
            return spread("{", items, "}")
        if type(value) is dict:
            self.parts |= {"reference"} if check in REFERENCES else set()
            return self.later(value["expr"])
        if type(value) is list and SPECIAL.search(repr(value)):
            return f"[{', '.join([self.wanted(check, item) for item in value])}]"
        if type(value) is float and not math.isfinite(value):
            return f"{self.name('float')}({str(value)!r})"
        if value == "target" and check in ("dtype", "device"):
            return self.name("DTYPE") if check == "dtype" else f"{self.name('DEVICE')}.partition(':')[0]"
        return repr(value.rpartition("::")[2] if check == "grad_fn" and value else value)

    def later(self, text: str) -> str:
        """Return an expression as a function, which is called when it is time to."""
        self.texts.append((self.condition, text))
        return deferred(text)


@cache
def deferred(text: str) -> str:
    text = text.strip()
    if "#" in text or UNUSUAL.search(text) or "\n" in text:
        text = ast.unparse(ast.parse(text, mode="eval"))
        text = text if text.isprintable() else text.encode("ascii", "backslashreplace").decode()
    is_tuple = "," in text and isinstance(ast.parse(text, mode="eval").body, ast.Tuple)
    return f"lambda: ({text})" if is_tuple else f"lambda: {text}"
