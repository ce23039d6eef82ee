"""Records the graph that a case builds: runs its steps again and inspects tensors and nodes.

It does so after each step, and before each backward, which frees the graph and often begins at a temporary tensor.
Unlike a judged run, this one keeps all inspected objects alive to the end, so that no two have the same address, and
unpacks saved tensors. Calls in expectations are made, since they may have effects, but nothing is checked.
"""

from __future__ import annotations

import collections
import contextlib
from typing import Any, Callable, Deque, Dict, Iterator, List, Optional, Tuple

import torch

from conformance.worker.case_run import CaseRun, is_log
from conformance.worker.holdings import held
from conformance.worker.values import is_node, name_of_node
from conformance.worker.watched import Watched

MOST_TENSORS = 60
MOST_NODES = 80
RAW = "_raw_saved_"

Json = Dict[str, Any]


class Hidden(Exception):
    """A saved tensor can be unpacked only by a hook of the case, which the tracer must not call."""


def sketch(run: CaseRun) -> Dict[str, Any]:
    """Run the steps of `run` up to the first that fails, and return the answer with the graph."""
    picture = Picture(run)
    variable, hooks = torch.autograd.Variable, torch._C._autograd
    engine, push = variable._execution_engine, hooks._push_saved_tensors_default_hooks
    variable._execution_engine = Watched(engine, picture.before_backward)
    hooks._push_saved_tensors_default_hooks = lambda pack, unpack: push(pack, picture.hiding(unpack))
    try:
        run_steps(run, picture.look)
        picture.look(ended=True)
    finally:
        variable._execution_engine, hooks._push_saved_tensors_default_hooks = engine, push
        picture.forget()
    return {"status": "pass", "graph": picture.graph()}


def run_steps(run: CaseRun, look: Callable[[], None]) -> None:
    for step in run.steps:
        run.line = step["line"]
        if "do" in step:
            problem = run.statements(step)
            look()
            if problem is not None:
                return
        else:
            called = [entry["subject"] for entry in step["expect"] if not is_log(entry) and "(" in entry["subject"]]
            for subject in called:
                with contextlib.suppress(Exception, GeneratorExit):
                    run.evaluate(subject)
            if called:
                look()


class Picture:
    """The tensors and nodes of a graph that have been found so far."""

    def __init__(self, run: CaseRun) -> None:
        self.run = run
        self.tensors: List[Json] = []
        self.nodes: List[Json] = []
        self.cut = False
        self.looking = False
        self.begun = False  # whether there has been a backward
        self.seen: List[Any] = []  # the tensor of each entry
        self.seen_nodes: List[Any] = []  # the node of each entry
        self.kept: List[Any] = []
        self.places: Dict[Tuple[int, int], int] = {}  # of tensors, by their id and that of their grad_fn
        self.outputs: Dict[Tuple[int, int], int] = {}  # of tensors, by their grad_fn and number
        self.contents: Dict[Tuple[int, Any, int], int] = {}  # of tensors, by storage, shape and version
        self.storages: Dict[int, int] = {}  # the first tensor on each
        self.numbers: Dict[int, int] = {}  # of nodes
        self.pending: Deque[Any] = collections.deque()  # nodes with edges that have not been followed yet

    def graph(self) -> Dict[str, Any]:
        """Return the graph in the format of reports."""
        target = f"{self.run.device}-{self.run.dtype_name}"
        cut = {"cut": True} if self.cut else {}
        return {"target": target, "tensors": self.tensors, "nodes": self.nodes, **cut}

    def hiding(self, unpack: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Return an unpack hook that raises Hidden while the tracer inspects tensors."""

        def unless_looking(packed: Any) -> Any:
            if self.looking:
                raise Hidden
            return unpack(packed)

        return unless_looking

    def forget(self) -> None:
        """Let all objects go, which breaks a reference cycle through hooks of nodes that Python can't detect."""
        for held_on_to in (self.seen, self.seen_nodes, self.kept):
            held_on_to.clear()

    def before_backward(self, roots: Any) -> None:
        """Record what there is before a backward; how tensors are before the first one is kept."""
        self.look(roots)
        if not self.begun and not self.looking:
            self.begun = True
            for entry in self.tensors:
                entry["version_at_backward"] = entry["version"]
                entry["had_grad"] = entry["has_grad"]

    def look(self, roots: Any = (), ended: bool = False) -> None:
        """Record the tensors and nodes reachable from the case's variables and `roots`, without effects on the case."""
        if self.looking:
            return
        warned, logged = len(self.run.warned), len(self.run.log)
        self.looking = True
        try:
            with torch._C.DisableTorchFunction():
                for name, value in held(self.run.names):
                    self.record(name, value)
                for root in roots if isinstance(roots, (list, tuple)) else (roots,):
                    self.record("", root)
                self.follow()
                self.refresh()
                for node, entry in zip(self.seen_nodes, self.nodes) if ended else ():
                    entry["freed"] = is_freed(node)
        except Exception:
            self.pending.clear()  # an incomplete graph is better than none
        finally:
            self.looking = False
            del self.run.warned[warned:], self.run.log[logged:]

    def record(self, name: str, value: Any) -> None:
        try:
            if not isinstance(value, torch.Tensor):
                self.edge(value if is_node(value) else value.node)  # a node or a GradientEdge
            elif not name and value.grad_fn is not None:
                self.number(value.grad_fn)  # of a temporary tensor, record the node only
            elif name or value.requires_grad:
                index = self.place(name, value)
                if name and index is not None and self.tensors[index]["has_grad"]:
                    grad = value.grad
                    if grad is not None and grad.grad_fn is not None:
                        self.place(f"{name}.grad", grad)
        except Exception:
            return  # an unusual object may raise anything

    def place(self, name: str, tensor: torch.Tensor) -> Optional[int]:
        """Return the index of a tensor with its current grad_fn; None when there are too many."""
        node = tensor.grad_fn
        index = self.places.get((id(tensor), id(node)))
        if index is None:
            if len(self.tensors) >= MOST_TENSORS:
                self.cut = True
                return None
            index = self.places[id(tensor), id(node)] = len(self.tensors)
            self.kept.append(node)
            self.seen.append(tensor)
            self.tensors.append(self.described(index, tensor, node))
        entry = self.tensors[index]
        entry["name"] = entry["name"] or name
        entry["requires_grad"] = bool(tensor.requires_grad)
        entry["retains_grad"] = retains = bool(fact(tensor, "retains_grad", False))
        if not entry["has_grad"] and (node is None or retains):  # reading the grad of other tensors warns
            entry["has_grad"] = fact(tensor, "grad", None) is not None
        return index

    def refresh(self) -> None:
        """Record the version and hooks of each tensor, but of those that an operation has changed in place since."""
        for index, tensor in enumerate(self.seen):
            if self.places.get((id(tensor), id(fact(tensor, "grad_fn", None)))) == index:
                entry = self.tensors[index]
                entry["version"] = fact(tensor, "_version", None)
                entry["hooks"] = max(entry["hooks"], hooks_of(tensor))

    def described(self, index: int, tensor: torch.Tensor, node: Any) -> Json:
        """Return the entry of a new tensor."""
        shape = sizes_of(tensor)
        output_nr = fact(tensor, "output_nr", 0)
        shares = None
        storage, pointer = storage_of(tensor)
        if pointer:
            self.kept.append(storage)  # the tensor may get another one
            first = self.storages.setdefault(pointer, index)
            shares = None if first == index else first
            self.contents.setdefault((pointer, tuple(shape), fact(tensor, "_version", -1)), index)
        number = self.number(node)
        if node is not None:
            self.outputs.setdefault((id(node), output_nr), index)
        return {
            "name": "", "line": self.run.line, "shape": shape, "is_leaf": bool(tensor.is_leaf), "requires_grad": False,
            "retains_grad": False, "has_grad": False, "accumulates": False, "node": number, "output_nr": output_nr,
            "shares_storage": shares, "view_of": self.base_of(tensor), "hooks": 0, "version": None,
            "version_at_backward": None, "had_grad": False, "late": self.begun,
        }  # fmt: skip

    def base_of(self, tensor: torch.Tensor) -> Optional[int]:
        """Return the index of the tensor that a tensor is a view of, if it is one and the other has been seen."""
        base = fact(tensor, "_base", None)
        return None if base is None else self.places.get((id(base), id(base.grad_fn)))

    def number(self, node: Any) -> Optional[int]:
        """Return the index of a node; None without a node, or when there are too many."""
        if node is None:
            return None
        index = self.numbers.get(id(node))
        if index is None:
            if len(self.nodes) >= MOST_NODES:
                self.cut = True
                return None
            index = self.numbers[id(node)] = len(self.nodes)
            self.seen_nodes.append(node)
            self.nodes.append({"name": name_of_node(node), "next": [], "saved": [], "freed": False, "late": self.begun})
            self.pending.append(node)
        return index

    def follow(self) -> None:
        """Record the edges and saved tensors of new nodes, and of the nodes that these lead to."""
        while self.pending:
            node = self.pending.popleft()
            entry = self.nodes[self.numbers[id(node)]]
            entry["next"] = [self.edge(following) for following, _ in fact(node, "next_functions", ())]
            entry["saved"] = [
                {"name": name, "tensor": None if tensor is None else self.found(tensor),
                 "version": fact(tensor, "_version", None)}
                for name, tensor in saved_by(node)
            ]  # fmt: skip

    def edge(self, node: Any) -> Optional[Dict[str, Optional[int]]]:
        """Return the edge to `node`, or to the leaf tensor that it accumulates into."""
        leaf = fact(node, "variable", None) if type(node).__name__ == "AccumulateGrad" else None
        if leaf is None:
            index = self.number(node)
            return None if index is None else {"node": index, "tensor": None}
        place = self.place("", leaf)
        if place is None:
            return None
        self.tensors[place]["accumulates"] = True
        return {"node": None, "tensor": place}

    def found(self, tensor: torch.Tensor) -> Optional[int]:
        """Return the index of a saved tensor; each unpacking of a result returns another object."""
        with contextlib.suppress(Exception):
            node = tensor.grad_fn
            index = self.places.get((id(tensor), id(node)))
            if index is None and node is not None:
                index = self.outputs.get((id(node), tensor.output_nr))
            if index is None:
                content = (storage_of(tensor)[1], tuple(sizes_of(tensor)), tensor._version)
                index = self.contents.get(content)
            return index
        return None


def fact(owner: Any, name: str, default: Any) -> Any:
    """Return an attribute, or `default` if reading it raises, as it does for some kinds of tensors."""
    try:
        return getattr(owner, name)
    except Exception:
        return default


def sizes_of(tensor: torch.Tensor) -> List[int]:
    """Return the shape of a tensor, or -1 for each dimension if it can't be read."""
    try:
        return [int(size) for size in tensor.shape]
    except Exception:
        return [-1] * fact(tensor, "ndim", 0)


def storage_of(tensor: torch.Tensor) -> Tuple[Any, int]:
    """Return the storage of a tensor and its address, or None and 0 if it has none."""
    try:
        storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()
        return storage, int(storage.data_ptr())
    except Exception:
        return None, 0


def hooks_of(tensor: torch.Tensor) -> int:
    """Return how many hooks are registered on a tensor."""
    return sum(len(fact(tensor, name, None) or ()) for name in ("_backward_hooks", "_post_accumulate_grad_hooks"))


def is_own(node: Any) -> bool:
    """Whether a node is of a Function that is written in Python."""
    return isinstance(node, torch._C._FunctionBase)


def saved_names(node: Any) -> List[str]:
    """Return the names of what a node may have saved."""
    names = ["tensors"] if is_own(node) else [name[len(RAW) :] for name in vars(type(node)) if name.startswith(RAW)]
    return sorted(names, key=lambda name: (name != "self", name))


def saved_as(node: Any, name: str) -> Any:
    """Return what a node has saved under a name; raises if that was freed, or can't be unpacked."""
    return node.saved_tensors if is_own(node) else getattr(node, f"_saved_{name}")


def saved_by(node: Any) -> Iterator[Tuple[str, Optional[torch.Tensor]]]:
    """Yield the names and tensors that a node has saved; None for a tensor that can't be unpacked."""
    for name in saved_names(node):
        try:
            value = saved_as(node, name)
        except Exception:
            value = fact(node, RAW + name, ())  # only counted
            value = [Hidden] * len(value) if isinstance(value, tuple) else Hidden
        several = value if isinstance(value, (list, tuple)) else [value]
        for index, item in enumerate(several):
            if item is not None:
                label = str(index) if is_own(node) else f"{name}[{index}]" if several is value else name
                yield label, item if isinstance(item, torch.Tensor) else None


def is_freed(node: Any) -> bool:
    """Whether backward has freed what a node had saved."""
    for name in saved_names(node):
        try:
            saved_as(node, name)
        except Exception as error:
            if "freed" in str(error):
                return True
    return False
