"""Writes a case as a script in plain torch that comes to the same outcome, without this suite and without pytest.

A script consists of the worker's definitions that it needs and the unchanged statements of the case, with a call of
`check` for each line of its expectations. Alternatives are chosen when it runs, so that it is the same for every torch.
"""

import re
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from conformance.language import vocabulary
from conformance.model.build import IN_TREE
from conformance.model.case import Case
from conformance.model.report import Report
from conformance.render.script.carried import AFTER, BACKENDS, BEFORE, PIECES, backends_text, names_in_parts, parts_with
from conformance.render.script.names import Fact, Uses, sets_any_of, uses_of
from conformance.render.script.steps import BUILTIN, ScriptWriter, block, quoted, spread

SNIPPETS = {name: piece.text for name, piece in PIECES.items()}
OWN_MAKERS = {
    "normal": "seeded_normal", "from_numpy": "array_on_device",
    **dict.fromkeys(vocabulary.CHECKERS, "allowing_for_rounding"),
}  # fmt: skip
NAMED = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*(:[A-Za-z_][A-Za-z0-9_.]*)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A script: the names of the parts that come first, in order, and the case's own text."""

    parts: tuple[str, ...]
    body: str

    @property
    def text(self) -> str:
        return "".join(SNIPPETS[name] for name in self.parts) + self.body


def snippets_for(reports: Iterable[Report]) -> dict[str, str]:
    """Return the parts by name; scripts of them can be run on the devices of the back-ends in `reports`, too."""
    found = {
        each.device: (each.modules, each.setup)
        for report in reports for each in report.build.backends
        if each.device not in IN_TREE and each.modules
        and all(map(NAMED.fullmatch, (each.device, *each.modules, each.setup or "none")))
    }  # fmt: skip
    return {**SNIPPETS, BACKENDS: "\n" + backends_text(found)} if found else SNIPPETS


def script_of(case: Case) -> Script:
    """Return the script that does what `case` does."""
    writer = ScriptWriter("")
    lines, bound = written(case, writer)
    parts = parts_with(frozenset(writer.parts))
    taken = bound & (names_in_parts(parts) | writer.names)
    if taken and sets_any_of(taken, writer.texts):
        writer = ScriptWriter("_")
        lines, _ = written(case, writer)
        lines = [*aliases(writer.names), *lines]
        parts = (BEFORE, *parts_with(frozenset(writer.parts)), AFTER)
    return Script(parts=parts, body="\n".join([*head(case), *lines]))


def script_for(case: Case) -> Script:
    """Return the script of a case, or where writing it fails, one that prints the internal error."""
    try:
        return script_of(case)
    except Exception as error:  # noqa: BLE001 - a missing script must not stop the run
        why = " ".join(f"internal-error: the script can't be written: {type(error).__name__}: {error}".split())
        lines = [comment(line) for line in traceback.format_exc().splitlines()]
        lines += [f"print({why!a})", "raise SystemExit(1)", ""]
        return Script(parts=(), body="\n".join([*head(case)[1:], *lines]))


def written(case: Case, writer: ScriptWriter) -> tuple[list[str], frozenset[str]]:
    """Return the lines of a case's script, and the names among which are all that it binds."""
    steps = [line for step in case.steps for line in writer.step(step)]
    uses = uses_of(writer.texts)
    if uses.leads_out:
        uses = Uses()
        steps = [f'{writer.name("stop")}("error: an attribute that the case defines could lead out of it")']
    lines = [*unsupported(case, writer), *prepared(uses, writer), "", *steps, f'{writer.name("stop")}("pass")', ""]
    return lines, uses.bound


def aliases(names: Iterable[str]) -> Iterator[str]:
    """Yield the lines that give names with an underscore, which no case can have, to functions of the parts."""
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
    """Yield the lines that make random functions seeded, and place what factories and modules make on the target."""

    def maker(kind: str, path: str) -> str:
        path, like, _ = path.partition("_like")
        own = OWN_MAKERS.get(path.rpartition(".")[2])
        made = own or {"random": "seeded", "made": "on_device", "layer": "moved"}[kind] + like
        return f"{writer.name(made)}({path}, {writer.name('TARGET')})"

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
