"""Says in plain words what the tensors of a case are and why, step by step, from the graph that each step leaves.

What PyTorch's documentation says of leaves, nodes and gradients stands here once. Reasons that a graph doesn't hold,
such as detach() or no_grad(), are read from the statements.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conformance.model.graph import Graph, GraphTensor, SavedTensor
from conformance.render.expected import raised_text, step_text
from conformance.render.statements import Call, Statements, read_statements

NOTHING = Graph(target="", tensors=(), nodes=())
GRAD_OF = re.compile(r"[\w.\[\]]+\.grad( for .+ in .+\])?")  # one, or a list of them
GRADIENTS = re.compile(r"(torch\.)?autograd\.grad\(")
MOST_TOLD = 8  # tensors of which a backward() is told
# What calls mean that leave little or no trace in the graph.
CALLS = {
    "register_hook": "register_hook() has a function called with the gradient of {owner} once that is known; a "
    "gradient that it returns takes its place",
    "register_post_accumulate_grad_hook": "the function is called each time after a gradient has been accumulated in "
    "{owner}.grad",
    "checkpoint": "checkpoint() saves the inputs alone: backward() computes the rest once more",
    "retain_grad": "retain_grad() asks for {owner}.grad to be kept, which only leaves have otherwise",
    "zero_grad": "zero_grad() takes the gradients away, to which backward() would add otherwise",
    "remove": "a hook is not called any more once it is removed by its handle",
    "requires_grad_": "requires_grad_() says whether what is computed from {owner} is recorded from now on",
    "no_grad": "under no_grad() operations are not recorded: their results require no grad",
    "inference_mode": "under inference_mode() nothing is recorded, and autograd can't use its results later",
}
# What the errors mean that a learner meets first.
ERRORS = {
    "a view of a leaf Variable that requires grad is being used in an in-place": "the write would go "
    "through the view into a leaf that requires grad",
    "a leaf Variable that requires grad is being used in an in-place": "a leaf holds the value at which a gradient is "
    "asked for; a recorded write would make it a result",
    "modified by an inplace operation": "a node needs a tensor that it has saved, and the version counter "
    "shows that it was written since",
    "backward through the graph a second time": "an earlier pass has freed what the nodes had saved; "
    "retain_graph=True would have kept it",
    "does not require grad and does not have a grad_fn": "nothing of what it is made of requires grad, so nothing was "
    "recorded and there is no way back",
    "grad can be implicitly created only for scalar outputs": "for a result of several numbers backward() must be told "
    "the gradient that arrives at it",
    "can only change requires_grad flags of leaf variables": "whether a result requires grad follows from what it is "
    "made of",
    "appears to not have been used in the graph": "no way leads from the output to that input; allow_unused=True "
    "would give None for it",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """A step: its line, what it does, and what is to be said of that."""

    line: int
    text: str
    told: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A step, the graph after it, and of each variable that holds a tensor then its version, dtype and gradient."""

    step: dict[str, Any]
    graph: Graph
    states: Mapping[str, Mapping[str, str]]

    def version(self, name: str) -> str:
        return self.states.get(name, {}).get("_version", "")

    def has_grad(self, name: str) -> bool:
        return self.states.get(name, {}).get("grad is None") == "false"

    def is_of_integers(self, name: str) -> bool:
        return self.states.get(name, {}).get("dtype", "").startswith(("int", "uint", "bool"))


def explain(seen: Sequence[Seen], torch: str) -> list[Explained]:
    """Return what each step does."""
    explained = []
    before = Seen(step={}, graph=NOTHING, states={})
    for now in seen:
        step = now.step
        told = told_of_statements(before, now) if "do" in step else [f"must hold: {step_text(step, torch)}"]
        text = step["do"].strip("\n") if "do" in step else "expect"
        explained.append(Explained(line=step["line"], text=text, told=tuple(dict.fromkeys(told))))
        before = now
    return explained


def told_of_statements(before: Seen, now: Seen) -> list[str]:
    step = now.step
    statements = read_statements(step["do"])
    told = [CALLS[call.name].format(owner=call.owner or "it") for call in statements.calls if CALLS.get(call.name)]
    told += [f"defines {name}, which runs when it is called" for name in statements.defined]
    raises = step.get("raises", {"type": None})
    told += told_of_writes(statements, before, now)
    tensors = now.graph.tensors
    new = [index for index in range(len(before.graph.tensors), len(tensors)) if tensors[index].name]
    told += [words for index in new for words in told_of_tensor(index, before, now)]
    told += told_of_names(statements, now)
    told += told_of_changes(before, now)
    if raises["type"] is None and statements.called("backward"):
        told += told_of_backward(statements, before, now)
    else:
        told += told_of_gradients(statements, before, now)
    if raises["type"] is not None:
        told += told_of_error(raises)
    if step.get("warns", {"type": None})["type"] is not None:
        told.append(f"it must warn: {raised_text(step['warns'])}")
    return told or ["nothing of this is a matter of the graph"]


def told_of_error(raises: dict[str, Any]) -> Iterator[str]:
    text = raised_text(raises)
    yield f"it must raise {text}"
    meaning = next((each for words, each in ERRORS.items() if words in text), "")
    if meaning:
        yield f"why: {meaning}"


def told_of_writes(statements: Statements, before: Seen, now: Seen) -> Iterator[str]:
    """Yield what is written in place, what else shows it, and what the version counters say."""
    for name, by in statements.written:
        own = index_of(name, now.graph)
        if own is None or now.version(name) in ("", before.version(name)):
            continue
        alike = sorted({now.graph.tensors[index].name for index in sharing(own, now.graph)} & now.states.keys())
        counted = [each for each in alike if before.version(each) != now.version(each) != "0"]
        unseen = [each for each in alike if each not in counted]
        versions = listed([f"{each} is at version {now.version(each)}" for each in counted])
        yield f"{by} writes into {name} in place: {versions}"
        if unseen:
            yield f"{listed(unseen)} {verb('share', unseen)} the memory and {verb('show', unseen)} the write, uncounted"


def told_of_names(statements: Statements, now: Seen) -> Iterator[str]:
    for name, source in statements.sources.items():
        if source.isidentifier() and source in names_of(now.graph):
            yield f"{name} is another name of {source}"


def told_of_tensor(index: int, before: Seen, now: Seen) -> Iterator[str]:
    """Yield what a tensor is that the step has made, or that has got another grad_fn by it."""
    tensor = now.graph.tensors[index]
    statements = read_statements(now.step["do"])
    if not tensor.is_leaf:
        yield from told_of_result(index, now.graph, how_made(tensor.name, before, statements))
    elif tensor.requires_grad:
        made = "no recorded operation has made it. What is computed from it is recorded"
        yield f"{tensor.name} is a leaf that requires grad: {made}, and backward() accumulates in {tensor.name}.grad"
    else:
        yield f"{tensor.name} is a leaf and requires no grad: {why_not_recorded(tensor.name, now, statements)}"
    root = tensor.shares_storage
    if root is not None and now.graph.tensors[root].name not in ("", tensor.name):
        yield f"{tensor.name} shares memory with {now.graph.tensors[root].name}"


def why_not_recorded(name: str, now: Seen, statements: Statements) -> str:
    """Return why a tensor has no grad_fn and requires no grad, as far as the text of the step tells."""
    cut, source = statements.cut_of(name), statements.source_of(name)
    if cut:
        return f"{cut} gives the values without the way back, so that no gradient goes further"
    if GRAD_OF.fullmatch(source):
        return "it is a gradient, whose making is recorded with create_graph=True alone"
    if GRADIENTS.match(source):
        return "it is a gradient, and create_graph=True alone has its making recorded"
    mode = next((each for each in statements.modes if each != "enable_grad"), "")
    if mode:
        return f"in the mode of {mode}() its making was not recorded"
    recorded = sorted(each for each in statements.mentions(name) if requires_grad(each, now.graph) and each != name)
    if recorded and now.is_of_integers(name):
        return f"it is of {now.states[name]['dtype']}, and only floating-point and complex numbers have derivatives"
    if recorded:
        return f"though {listed(recorded)} {verb('require', recorded)} grad, its making was not recorded"
    if statements.mentions(name) & names_of(now.graph):
        return "nothing that it is made of requires grad"
    return "it was made without requires_grad=True, and what is computed from it alone is not recorded"


def how_made(name: str, before: Seen, statements: Statements) -> str:
    """Return how a tensor has come by the grad_fn that it has after a step."""
    is_recording = not any(mode != "enable_grad" for mode in statements.modes)
    if any(written == name for written, _ in statements.written) and is_recording:
        return "the write was recorded"
    is_same = name in before.states and name not in statements.sources
    return "what it is a view of was written to" if is_same else "a recorded operation has made it"


def told_of_result(index: int, now: Graph, how: str) -> Iterator[str]:
    """Yield what a tensor is that a recorded operation has made: its node, where that leads, and what it has saved."""
    tensor = now.tensors[index]
    if tensor.node is None:
        yield f"{tensor.name} is not a leaf: a recorded operation has made it"
        return
    node = now.nodes[tensor.node]
    number = f", of which it is output {tensor.output_nr}" if tensor.output_nr else ""
    yield f"{tensor.name} is not a leaf: {how}, and its grad_fn is {node.name}{number}"
    ways = list(dict.fromkeys(destination(edge, now) for edge in node.next if edge is not None))
    none = sum(edge is None for edge in node.next)
    if ways:
        beside = f"; {none} of its inputs require{'s' * (none == 1)} none" if none else ""
        yield f"{node.name} passes gradients on to {listed(ways)}{beside}"
    saved = [saved_text(each, now) for each in node.saved]
    yield f"{node.name} has saved {listed(saved)} for backward()" if saved else f"{node.name} has saved no tensor"


def saved_text(saved: SavedTensor, graph: Graph) -> str:
    name = "" if saved.tensor is None else graph.tensors[saved.tensor].name
    return f"{saved.name} ({name})" if name else saved.name


def destination(edge: Any, graph: Graph) -> str:
    """Return where an edge leads: the leaf whose gradient is accumulated, or the node that comes next."""
    if edge.tensor is not None:
        name = graph.tensors[edge.tensor].name
        return f"{name}.grad" if name else "the gradient of a leaf without a name"
    node = graph.nodes[edge.node]
    made = next((each.name for each in graph.tensors if each.node == edge.node and each.name), "")
    return f"{node.name}, which made {made}" if made else node.name


def told_of_changes(before: Seen, now: Seen) -> Iterator[str]:
    """Yield what has changed about tensors that there were before, but for gradients."""
    for old, new in zip(before.graph.tensors, now.graph.tensors, strict=False):
        if old.requires_grad != new.requires_grad and new.name:
            yield f"{new.name} {'requires grad from here on' if new.requires_grad else 'requires no grad any more'}"
        if not old.retains_grad and new.retains_grad and new.name and not new.is_leaf:
            yield f"{new.name}.grad will be kept, though {new.name} is no leaf"


def told_of_gradients(statements: Statements, before: Seen, now: Seen) -> Iterator[str]:
    """Yield which gradients a step without a backward() has set or taken away."""
    for name in now.states:
        if name in before.states and before.has_grad(name) != now.has_grad(name):
            yield f"{name}.grad is there from here on" if now.has_grad(name) else f"{name}.grad is None again"
    raises = now.step.get("raises", {"type": None})["type"] is not None
    if not raises and any(GRADIENTS.match(f"{call.owner}.{call.name}(") for call in statements.calls):
        yield "autograd.grad() returns gradients, and leaves every .grad as it is"


def told_of_backward(statements: Statements, before: Seen, now: Seen) -> Iterator[str]:
    """Yield who has got a gradient by the step, and who has not and why."""
    calls = statements.called("backward")
    root = calls[0].arguments[0] if calls[0].owner in ("autograd", "torch.autograd") else calls[0].owner
    limits = next((each for each in calls[0].keywords if each.startswith("inputs=")), "")
    reached = reached_by(calls, before.graph, now.graph)
    yield f"backward() begins at {root} and follows the nodes to the leaves"
    alive = [index for index in latest(now.graph) if now.graph.tensors[index].name in now.states]
    for index in alive[:MOST_TOLD]:
        name = now.graph.tensors[index].name
        if now.has_grad(name):
            is_reached = reached is None or index in reached
            yield why_there(now.graph.tensors[index], is_new=not before.has_grad(name), is_reached=is_reached)
        else:
            yield f"{name}.grad is None: {why_none(now.graph.tensors[index], limits)}"


def why_there(tensor: GraphTensor, *, is_new: bool, is_reached: bool) -> str:
    name = tensor.name
    if is_new:
        reason = "a leaf that requires grad" if tensor.is_leaf else "no leaf, but retain_grad() asked for it"
        return f"{name}.grad is there from here on: {name} is {reason}, and a way leads to it"
    added = (
        "the new gradient is added to it" if tensor.is_leaf else "the new gradient takes its place or is added to it"
    )
    return f"{name}.grad was there already{f': {added}' if is_reached else ', and no way leads to it'}"


def why_none(tensor: GraphTensor, limits: str) -> str:
    """Return why a tensor has no gradient after a backward()."""
    if not tensor.requires_grad:
        return f"{tensor.name} requires no grad"
    if not tensor.is_leaf:
        return f"{tensor.name} is no leaf, and only leaves keep theirs unless retain_grad() is called"
    return f"backward({limits}) accumulates in nothing else" if limits else f"no gradient has come to {tensor.name}"


def reached_by(calls: list[Call], before: Graph, now: Graph) -> set[int] | None:
    """Return the leaves to which ways lead from where a backward() began, or None where that isn't known."""
    if len(calls) > 1:
        return None
    own = index_of(calls[0].owner, now)
    node = now.tensors[own].node if own is not None else None
    fresh = range(len(before.nodes), len(now.nodes))
    inner = {edge.node for each in now.nodes for edge in each.next if edge is not None}
    waiting = [node] if node is not None else [each for each in fresh if each not in inner]
    if not waiting:
        return None
    seen: set[int] = set()
    leaves: set[int] = set()
    while waiting:
        number = waiting.pop()
        if number not in seen:
            seen.add(number)
            edges = [edge for edge in now.nodes[number].next if edge is not None]
            leaves |= {edge.tensor for edge in edges if edge.tensor is not None}
            waiting += [edge.node for edge in edges if edge.node is not None]
    return leaves


def latest(graph: Graph) -> list[int]:
    """Return the index of the last tensor of each name, in the order of the names."""
    return list({tensor.name: index for index, tensor in enumerate(graph.tensors)}.values())


def index_of(name: str, graph: Graph) -> int | None:
    return next((index for index in reversed(range(len(graph.tensors))) if graph.tensors[index].name == name), None)


def names_of(graph: Graph) -> set[str]:
    return {tensor.name for tensor in graph.tensors if tensor.name}


def requires_grad(name: str, graph: Graph) -> bool:
    index = index_of(name, graph)
    return index is not None and graph.tensors[index].requires_grad


def sharing(index: int, graph: Graph) -> set[int]:
    """Return the tensors that share the memory of one, which is among them."""

    def root(each: int) -> int:
        first = graph.tensors[each].shares_storage
        return each if first is None else first

    return {each for each in range(len(graph.tensors)) if root(each) == root(index)}


def listed(words: Sequence[str]) -> str:
    """Return words as a sentence has them: a, b and c."""
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]])) if words else ""


def verb(word: str, subjects: Sequence[str]) -> str:
    return f"{word}{'s' * (len(subjects) == 1)}"
