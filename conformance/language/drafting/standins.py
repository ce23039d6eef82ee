"""Says what may stand for the models, tensors and optimizers that a source uses and sets nowhere.

How a name is used tells what it is; one whose use tells nothing stays unknown.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from conformance.language import vocabulary
from conformance.language.drafting.rewriting import loaded_names, renamed, stored_names
from conformance.language.parsing import names_bound

OF_MODULES = frozenset("train eval parameters named_parameters state_dict load_state_dict zero_grad".split())
OF_TENSORS = frozenset(
    "grad grad_fn is_leaf requires_grad requires_grad_ retain_grad backward detach detach_ register_hook".split()
)
OF_RESULTS = frozenset({"backward", "grad_fn", "retain_grad"})
TAKE_TENSORS = frozenset({"torch", "F", "nn"})
MODEL = re.compile(r"(?i)(?:^|_|(?<=[a-z]))(?:model|net|network|module|layer|encoder|decoder)(?:_|\d|$)")
LOSS = re.compile(r"(?i)criterion|loss")
DATA, LEAF = "torch.ones(2, 2)", "torch.ones(2, 2, requires_grad=True)"
RESULT = f"{LEAF}.sum()"
MODULE, CRITERION, COUNT = "nn.Linear(2, 2)", "nn.MSELoss()", "2"
OPTIMIZER = "torch.optim.SGD({}.parameters(), lr=0.1)"


@dataclass(frozen=True, slots=True, kw_only=True)
class StandIn:
    """What stands for a name that nothing sets, and where the source uses it first."""

    name: str
    line: int
    code: str

    @property
    def statements(self) -> list[ast.stmt]:
        return ast.increment_lineno(ast.parse(self.code), self.line - 1).body


@dataclass(slots=True, kw_only=True)
class Use:
    """How a name is used: its attributes, how it is called, what it is given to, and what is taken of it."""

    line: int
    attributes: set[str] = field(default_factory=set)
    calls: list[ast.Call] = field(default_factory=list)
    given_to: set[str] = field(default_factory=set)
    items: list[ast.expr] = field(default_factory=list)  # what loops set to its items
    is_operand: bool = False


def with_standins(statements: Sequence[ast.stmt], standins: Sequence[StandIn]) -> list[ast.stmt]:
    """Return statements after those of stand-ins, without `name = ...` for names that have one."""
    names = {each.name for each in standins}
    kept = [node for node in statements if not (is_placeholder(node) and names_bound(node) <= names)]
    return [*(node for each in standins for node in each.statements), *kept]


def is_placeholder(node: ast.stmt) -> bool:
    value = node.value if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) else None
    return isinstance(value, ast.Constant) and value.value is ...


def standins_for(statements: Sequence[ast.stmt], imports: Mapping[str, str]) -> list[StandIn]:
    """Return what stands for names that statements use and nothing sets, in an order in which it can be said."""
    uses = uses_of(statements, set(unset(statements, imports)))
    found = {name: MODULE for name, use in uses.items() if is_module(name, use)}
    found |= {name: CRITERION for name, use in uses.items() if name not in found and is_criterion(name, use)}
    takers = set(found)
    found |= {name: code for name, use in uses.items() if name not in found and (code := value_of(use, takers))}
    model = next((name for name, code in found.items() if code == MODULE), "")
    found |= {name: OPTIMIZER.format(model) for name, use in uses.items() if model and "step" in use.attributes}
    is_done = has_attribute(statements, "backward")
    lines = {name: f"{name} = {code}" for name, code in found.items()}
    for name in lines:
        if "grad" in uses[name].attributes and not is_done:  # which somebody has computed who read it
            lines[name] += f"\n{name}.sum().backward()"
    return [StandIn(name=name, line=uses[name].line, code=code) for name, code in lines.items()]


def to_go_backward_from(statements: Sequence[ast.stmt], standins: Sequence[StandIn]) -> str:
    """Return the last result of models that have stand-ins if nothing goes backward: who gets a gradient tells most."""
    models = [each.name for each in standins if each.code.endswith(MODULE)]
    results = [
        node.targets[0].id
        for node in statements
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and called_in(node) & {*models}
    ]
    return renamed(results[-1]) if results and not has_attribute(statements, "backward", "grad") else ""


def has_attribute(statements: Sequence[ast.stmt], *names: str) -> bool:
    return any(isinstance(each, ast.Attribute) and each.attr in names for each in walk(statements))


def called_in(node: ast.stmt) -> set[str]:
    return {each.func.id for each in ast.walk(node) if isinstance(each, ast.Call) and isinstance(each.func, ast.Name)}


def unset(statements: Sequence[ast.stmt], imports: Mapping[str, str]) -> Iterator[str]:
    """Yield the names that statements use and nothing sets, but for those that the case language has for this use."""
    yield from (name for node in statements if is_placeholder(node) for name in names_bound(node))
    known = stored_names(statements) | imports.keys() | vocabulary.ROOTS.keys()
    offered = vocabulary.NAMES.keys() | vocabulary.FOREIGN
    for name in loaded_names(statements) - known:
        if name not in offered or (name.islower() and is_owner(name, statements)):
            yield name


def is_owner(name: str, statements: Sequence[ast.stmt]) -> bool:
    """Whether attributes of tensors are read of a name, which is then a variable, whatever else has that name."""
    return any(
        isinstance(each, ast.Attribute)
        and each.attr in OF_TENSORS
        and isinstance(each.value, ast.Name)
        and each.value.id == name
        for each in walk(statements)
    )


def walk(statements: Iterable[ast.stmt]) -> Iterator[ast.AST]:
    for node in statements:
        yield from ast.walk(node)


def uses_of(statements: Sequence[ast.stmt], names: set[str]) -> dict[str, Use]:
    """Return how names are used, by name, in the order of their first use."""
    found: dict[str, Use] = {}

    def use(node: ast.AST) -> Use | None:
        if not isinstance(node, ast.Name) or node.id not in names:
            return None
        return found.setdefault(node.id, Use(line=node.lineno))

    for node in walk(statements):
        if isinstance(node, ast.Attribute) and (of := use(node.value)):
            of.attributes.add(node.attr)
        elif isinstance(node, ast.Call):
            if of := use(node.func):
                of.calls.append(node)
            for given in [*node.args, *(each.value for each in node.keywords)]:
                if of := use(given):
                    of.given_to.add(ast.unparse(node.func))
        elif isinstance(node, ast.For) and (of := use(node.iter)):
            of.items.append(node.target)
        elif isinstance(node, ast.BinOp):
            for side in (node.left, node.right):
                if of := use(side):
                    of.is_operand = True
    return found


def is_module(name: str, use: Use) -> bool:
    is_named_so = bool(use.calls) and MODEL.search(name) is not None
    return is_named_so or (bool(use.attributes & OF_MODULES) and "step" not in use.attributes)


def is_criterion(name: str, use: Use) -> bool:
    return LOSS.search(name) is not None and any(len(call.args) == 2 for call in use.calls)


def value_of(use: Use, takers: set[str]) -> str:
    """Return the tensor, number or list of batches that a name is used as, or nothing where its use doesn't tell.

    What one of the `takers` is given, stand-ins for modules and losses, is a tensor.
    """
    if use.items:
        first = use.items[0]
        return f"[({', '.join([DATA] * len(first.elts))})]" if isinstance(first, ast.Tuple) else f"[{DATA}]"
    if use.given_to == {"range"}:
        return COUNT
    if use.calls or "step" in use.attributes:
        return ""
    if use.attributes & OF_RESULTS:
        return RESULT
    if use.attributes & OF_TENSORS:
        return LEAF
    is_given = any(path in takers or path.partition(".")[0] in TAKE_TENSORS for path in use.given_to)
    has_methods = bool(use.attributes) and use.attributes <= vocabulary.ATTRIBUTES.keys()
    return DATA if use.is_operand or is_given or has_methods else ""
