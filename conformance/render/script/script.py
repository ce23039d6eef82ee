"""Writes a case as a script in plain torch that comes to the same outcome, without this suite and without pytest.

After the parts of `script_parts.py.txt` that it needs come the case's own statements as they stand, with a call of
`check` for each line of its expectations between them. Alternatives are chosen when the script runs, so that it is
the same for every torch.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from conformance.language import vocabulary
from conformance.model.case import Case
from conformance.render.script.names import Fact, Uses, names_of_module, sets_any_of, uses_of
from conformance.render.script.steps import BUILTIN, ScriptWriter, block, quoted, spread

PART = re.compile(r"^#: (\w+)(?:: ([\w ]+))?\n", re.MULTILINE)


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


def script_of(case: Case) -> Script:
    """Return the script that does what `case` does."""
    writer = ScriptWriter("")
    lines, bound = written(case, writer)
    parts = parts_with(frozenset(writer.parts))
    taken = bound & frozenset().union(*map(names_of_part, parts)) | bound & writer.names
    if taken and sets_any_of(taken, writer.texts):
        writer = ScriptWriter("_")
        lines, _ = written(case, writer)
        lines = [*aliases(writer.names), *lines]
        parts = ("apart", *parts_with(frozenset(writer.parts)), "together")
    return Script(parts=parts, body="\n".join([*head(case), *lines]))


def script_for(case: Case) -> Script | None:
    """Return the script of a case, or None where writing it fails, which is no reason not to run the case."""
    try:
        return script_of(case)
    except Exception:  # noqa: BLE001 - whatever it is
        return None


def written(case: Case, writer: ScriptWriter) -> tuple[list[str], frozenset[str]]:
    """Return the lines of a case's script, and the names among which are all that it binds."""
    steps = [line for step in case.steps for line in writer.step(step)]
    uses = uses_of(writer.texts)
    if uses.leads_out:
        uses = Uses()
        steps = [f'{writer.name("stop")}("error: an attribute that the case defines could lead out of it")']
    lines = [*unsupported(case, writer), *prepared(uses, writer), "", *steps, f'{writer.name("stop")}("pass")', ""]
    return lines, uses.bound


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


@cache
def names_of_part(name: str) -> frozenset[str]:
    return names_of_module(SNIPPETS[name])


def aliases(names: Iterable[str]) -> Iterator[str]:
    """Yield the lines that give to what a case's lines use of the parts names that no case can have."""
    for name in sorted(names):
        yield f"_{name} = {name}" if name in BUILTIN else f"_{name} = _parts[{name!r}]"


def comment(text: str) -> str:
    """Return text of a case as a line of a comment."""
    line = " ".join(text.split())
    return "# " + (line if line.isprintable() else "".join([c if c.isprintable() else "?" for c in line]))


def head(case: Case) -> list[str]:
    return [
        "", comment(f"{case.id}: {case.title}"), comment(case.why), comment(f"Rules: {', '.join(case.rules)}"),
        comment(f"From {case.file}, line {case.line}. Where autograd does as these rules say, it ends with 'pass'."),
    ]  # fmt: skip


def unsupported(case: Case, writer: ScriptWriter) -> Iterator[str]:
    """Yield the lines that end a script where its case can't be run."""
    reasons = {}
    if case.torch is not None:
        reasons[f"not {writer.holds(case.torch)}"] = f"torch {case.torch}"
    if case.devices:
        reasons[f"{writer.name('DEVICE')}.partition(':')[0] not in {case.devices}"] = (
            f"a device of {', '.join(case.devices)}"
        )
    if case.dtypes:
        reasons[f"{writer.name('DTYPE')} not in {case.dtypes}"] = f"a dtype of {', '.join(case.dtypes)}"
    for step in case.steps:
        for name in step.get("needs", ()):
            bound = f">={vocabulary.since(name)}"
            within = f"{writer.holds(step['torch'])} and " if "torch" in step else ""
            reasons.setdefault(f"{within}not {writer.holds(bound)}", f"torch {bound} for {name}")
    for condition, reason in reasons.items():
        yield from block(f"if {condition}:", [f"{writer.name('stop')}({quoted('unsupported: needs ' + reason)})"])


def prepared(uses: Uses, writer: ScriptWriter) -> Iterator[str]:
    """Yield the lines that import what a case uses, and that have its tensors made as the suite makes them."""
    yield from import_lines(uses.facts)
    facts = uses.facts
    for condition, others in uses.conditional.items():
        yield from block(f"if {writer.holds(condition)}:", import_lines(others))
        facts |= others
    made: dict[tuple[str, str], list[str]] = {}
    for kind, holder, *name in sorted(facts):
        if kind == "suite":
            yield from writer.offered(holder)
        elif kind in ("random", "made", "layer"):
            made.setdefault((kind, holder), []).append(name[0])
    if made:
        yield from maker_lines(made, writer)


def maker_lines(made: Mapping[tuple[str, str], Sequence[str]], writer: ScriptWriter) -> Iterator[str]:
    """Yield the lines that seed what is drawn at random, and that make tensors and modules where they belong."""

    def maker(kind: str, path: str) -> str:
        name = path.rpartition(".")[2]
        if name.endswith("_like"):
            return f"{writer.name('like')}({maker(kind, path[: -len('_like')])})"
        own = {"normal": "seeded_normal", "from_numpy": "placed_array"}
        return f"{writer.name(own.get(name) or {'random': 'seeded', 'made': 'placed', 'layer': 'moved'}[kind])}({path})"

    def replaced(kind: str, holder: str) -> list[str]:
        return [f"{name}={maker(kind, f'{holder}.{name}')}" for name in made.get((kind, holder), ())]

    def stand_in(holder: str, items: Sequence[str]) -> str:
        return spread(f"{writer.name('with_names')}({holder}, ", items, ")")

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
    yield from block(f'if {writer.name("DEVICE")} != "cpu":', lines)


@cache
def import_lines(facts: frozenset[Fact]) -> tuple[str, ...]:
    """Return the lines that import what `facts` say, Python's own modules first."""
    modules: dict[str, list[str]] = {}
    for _, module, *names in sorted(fact for fact in facts if fact[0] == "import"):
        modules.setdefault(module, []).append(" as ".join(names))
    lines = [f"import {name}" for name in modules.pop("", ())]
    return (*lines, *(f"from {module} import {', '.join(names)}" for module, names in modules.items()))
