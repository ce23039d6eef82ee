"""Finds the names of the vocabulary that the text of a case uses, and what a script must import or define for them.

A fact is `("import", module, name)`, `("import", module, name, as)`, or one of `random`, `made` and `layer`, for names
that the suite replaces: `("made", "torch", "ones")` for `torch.ones`, `("made", "", "ones")` for `ones` alone;
or `("suite", name)`, or `("namespace", path)` for a namespace that stands alone.
"""

import dis
import re
import types
import unicodedata
import warnings
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from functools import cache

from conformance.language import vocabulary

Fact = tuple[str, ...]
Texts = Sequence[tuple[str | None, str]]  # code, and the condition under which it is run

# Modules that `import torch` alone loads in some releases only.
NOT_LOADED = frozenset({"nn.attention.flex_attention", "nn.utils.parametrize", "nn.utils.prune", "utils.checkpoint"})

# Names with what follows them, save those that are set and those in strings.
NAME = r"(?<![\w.])([A-Za-z_]\w*(?:\s*\.\s*[A-Za-z_]\w*)*)(?!\w)(?!\s*=[^=])"
NAMES = re.compile(NAME)
NAMES_OUTSIDE_STRINGS = re.compile(r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"|" + NAME)
CODE_IN_STRINGS = ("f'", 'f"', "'''", '"""')  # where that is, strings are no different from code
# Where a statement may bind names; finding too many only costs time.
ASSIGNED = re.compile(r"^ *([\w ,.*()\[\]]+)=(?!=)|[;:] *([\w ,.*\[\]]+)=(?!=)", re.MULTILINE)
NAMED = re.compile(r"\b(?:as|class|def|global)\s+([\w ,]+)|\bfor\s([\w\s,()*]+?)\sin\b|(\w+)\s*:=")
# Where names are bound for a function or a comprehension alone.
INNER = re.compile(r"\bfor\s([\w\s,()*]+?)\sin\b|\blambda\s([\w\s,*]+)|\bdef\s+\w+\s*\(([\w\s,*=]+)")
GLOBAL = frozenset({"LOAD_NAME", "LOAD_GLOBAL", "STORE_NAME", "STORE_GLOBAL"})
WORD = re.compile(r"\w+")
ATTRIBUTE = re.compile(r"\.(?:\s|\\\n|#.*\n)*([A-Za-z]\w*)")
KNOWN = vocabulary.ATTRIBUTES.keys() | {
    name for path, names in vocabulary.NAMESPACES.items() for name in (*path.split("."), *names)
}
# Attributes by which a case could reach frames, files or compilers from objects that it has.
WAYS_OUT = re.compile(
    r"(?:gi|cr|ag|tb)_\w+|f_(?:back|builtins|code|globals|locals|trace)|tofile|dumps?|from_file|from_buffer|ctypes"
    r"|share_memory_|compile|format(?:_map)?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Uses:
    """What the texts of a case use: facts for all of them, and those that are needed under a condition only.

    `bound` holds all names that the case binds, and possibly more. `leads_out` is whether an attribute that the case
    defines could be read from an object that isn't its own. The worker checks each such read; a script has no such
    check, so it must not use attribute names that lead further from objects of Python or torch.
    """

    facts: frozenset[Fact] = frozenset()
    conditional: dict[str, frozenset[Fact]] = field(default_factory=dict)
    bound: frozenset[str] = frozenset()
    leads_out: bool = False


def uses_of(texts: Texts) -> Uses:
    """Return what the texts of a case use, in the order in which they are run."""
    whole = "\n".join([text for _, text in texts])
    if not whole.isascii():  # Python reads names so
        texts = [(condition, unicodedata.normalize("NFKC", text)) for condition, text in texts]
        whole = "\n".join([text for _, text in texts])
    bound = words_in(ASSIGNED, whole)
    has_for, has_def = "for " in whole, "def " in whole
    if has_for or has_def or "as " in whole or "class " in whole or ":=" in whole:
        bound |= words_in(NAMED, whole)
    inner = words_in(INNER, whole) if has_for or has_def or "lambda " in whole else set()
    conditions = {condition for condition, _ in texts if condition is not None}
    always = "\n".join([text for condition, text in texts if condition is None]) if conditions else whole
    found: dict[str | None, dict[str, set[Fact]]] = {None: known_in(always)}
    for condition in sorted(conditions):
        found[condition] = known_in("\n".join([text for other, text in texts if other == condition]))
    unclear = (bound | inner) & set().union(*found.values())
    idle = unclear - looked_up(unclear, texts) if unclear else unclear
    facts, *others = [
        frozenset().union(*[of_name for name, of_name in known.items() if name not in idle]) for known in found.values()
    ]
    conditional = {condition: some - facts for condition, some in zip(sorted(conditions), others, strict=True)}
    own = set(ATTRIBUTE.findall(whole)) - KNOWN
    astray = any(fact[0] == "namespace" for some in (facts, *conditional.values()) for fact in some)
    leads_out = bool(own) and (astray or any(map(WAYS_OUT.fullmatch, own)))
    return Uses(facts=facts, conditional=conditional, bound=frozenset(bound), leads_out=leads_out)


def known_in(text: str) -> dict[str, set[Fact]]:
    """Return the facts about the names of the vocabulary that `text` uses, by the first word of each."""
    pattern = NAMES if any(mark in text for mark in CODE_IN_STRINGS) else NAMES_OUTSIDE_STRINGS
    known: dict[str, set[Fact]] = {}
    for token in set(pattern.findall(text)):
        facts = facts_of(token)
        if facts:
            known.setdefault(token.partition(".")[0].rstrip(), set()).update(facts)
    return known


def words_in(pattern: re.Pattern[str], text: str) -> set[str]:
    return set(WORD.findall(" ".join(["".join(groups) for groups in pattern.findall(text)])))


@cache
def facts_of(token: str) -> frozenset[Fact]:
    """Return what a script needs for a name with its attributes, such as `nn.Linear` or `a.sigmoid`."""
    return frozenset(_facts_of([part.strip() for part in token.split(".")]))


def _facts_of(parts: list[str]) -> Iterator[Fact]:
    first = parts[0]
    if first in vocabulary.PYTHON or first in vocabulary.EXCEPTIONS:
        return
    if first in vocabulary.SUITE:
        yield "suite", first
    elif first in vocabulary.ROOTS:
        yield from _facts_of_namespace(parts)
    elif first in vocabulary.MEMBERS:
        yield "import", module_of(vocabulary.MEMBERS[first]), first
        if first in vocabulary.CHECKERS:
            yield "made", "", first
    elif first in vocabulary.NAMES:
        if first not in vocabulary.RANDOM:
            yield "import", "torch", first
        if first in vocabulary.RANDOM or first in vocabulary.FACTORIES:
            yield "random" if first in vocabulary.RANDOM else "made", "", first


def _facts_of_namespace(parts: list[str]) -> Iterator[Fact]:
    first, *rest = parts
    path = vocabulary.ROOTS[first]
    if path in vocabulary.PYTHON_MODULES:
        yield "import", "", path
    elif path != "torch":
        outer, _, last = module_of(path).rpartition(".")
        yield ("import", outer, last) if first == last else ("import", outer, last, first)
    holder = [first]
    for name in rest:
        inner = vocabulary.inner(path, name)
        if inner is None:
            break
        path = inner
        holder.append(name)
    if path in NOT_LOADED and len(holder) > 1:
        yield "import", "", module_of(path)
    if len(holder) == len(parts):
        yield "namespace", path
        return
    member = parts[len(holder)]
    if path == "torch" and (member in vocabulary.RANDOM or member in vocabulary.FACTORIES):
        yield "random" if member in vocabulary.RANDOM else "made", "torch", member
    elif (path == "fft" and member in vocabulary.FREQUENCIES) or (path == "autograd" and member in vocabulary.CHECKERS):
        yield "made", ".".join(holder), member
    elif path == "nn" and member[0].isupper() and member not in vocabulary.CONTAINERS:
        yield "layer", ".".join(holder), member


def module_of(path: str) -> str:
    return path if path in vocabulary.PYTHON_MODULES else f"torch.{path}"


def looked_up(names: Set[str], texts: Texts) -> set[str]:
    """Return those of `names` that a case looks up before it has set them."""
    ready = {name for name in names if is_set_first(name, texts)}
    sought: set[str] = set()
    for code in codes_with(names - ready, texts):
        for operation, name in operations(code, names):
            if operation == "STORE_NAME":
                ready.add(name)
            elif name not in ready:
                sought.add(name)
        for inner in inner_codes(code):
            loads = (name for operation, name in operations(inner, names) if operation[:4] == "LOAD")
            sought.update(name for name in loads if name not in ready)
    return sought


def is_set_first(name: str, texts: Texts) -> bool:
    """Whether the first text that contains `name` is a plain assignment to it."""
    says = re.compile(rf"\b{name}\b")
    left, _, right = next(text for _, text in texts if says.search(text)).partition("=")
    return left.rstrip() == name and not says.search(right)


def sets_any_of(names: Set[str], texts: Texts) -> bool:
    """Whether a case sets one of `names`."""
    return any(
        operation == "STORE_GLOBAL" or (operation == "STORE_NAME" and code is outer)
        for outer in codes_with(names, texts)
        for code in (outer, *inner_codes(outer))
        for operation, _ in operations(code, names)
    )


def codes_with(names: Set[str], texts: Texts) -> Iterator[types.CodeType]:
    says = re.compile(rf"\b(?:{'|'.join(sorted(names))})\b")
    for _, text in texts:
        if names and says.search(text):
            with warnings.catch_warnings():  # of what Python finds odd in a case
                warnings.simplefilter("ignore", SyntaxWarning)
                code = compile(text.strip(), "<case>", "exec", dont_inherit=True)
            yield code


def operations(code: types.CodeType, names: Set[str]) -> Iterator[tuple[str, str]]:
    """Yield what some code, without that of the functions inside it, does with global `names`, in order."""
    if names.isdisjoint(code.co_names):
        return
    for instruction in dis.get_instructions(code):
        if instruction.opname in GLOBAL and instruction.argval in names:
            yield instruction.opname, instruction.argval


def inner_codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """Yield the code of the functions and classes inside some code."""
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from inner_codes(constant)


@cache
def names_of_module(text: str) -> frozenset[str]:
    """Return the global names that some code sets or looks up."""
    code = compile(text, "<parts>", "exec", dont_inherit=True)
    whole = [code, *inner_codes(code)]
    return frozenset(name for some in whole for _, name in operations(some, set(some.co_names)))
