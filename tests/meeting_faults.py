"""Faults that show only where two features of autograd meet, as code to be run before the suite sees torch."""

from __future__ import annotations

from dataclasses import dataclass

TOOLS = """\
import threading
import torch.utils.checkpoint
from torch._C import _functorch
from torch.utils._pytree import tree_map

Function = torch.autograd.Function
apply = Function.apply.__func__
checkpoint = torch.utils.checkpoint.checkpoint
state = threading.local()


def transforms():
    return [str(each.key()) for each in _functorch.get_interpreter_stack() or ()]


class Scaled(Function):  # what arrives in backward, by a factor
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x.view_as(x)
    @staticmethod
    def backward(ctx, g):
        return g * ctx.factor, None


def is_of_case(cls, result):
    is_of_torch = cls.__module__.startswith("torch.")
    is_recorded = isinstance(result, Tensor) and result.requires_grad and not transforms()
    return cls is not Scaled and not is_of_torch and is_recorded


def applying(change):  # has the results of Functions of cases changed
    def applied(cls, *args):
        result = apply(cls, *args)
        return change(result, args) if is_of_case(cls, result) else result
    Function.apply = classmethod(applied)


def counted(function):  # counts the calls of what a checkpoint computes, and how deep it is
    def called(*args, **kwargs):
        function.__dict__["calls"] = function.__dict__.get("calls", 0) + 1
        state.calls, state.depth = function.calls, getattr(state, "depth", 0) + 1
        try:
            return function(*args, **kwargs)
        finally:
            state.depth -= 1
    return called

"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What is planted, and the way to differentiate programs that is tried."""

    code: str
    way: str


def fault(way: str, code: str) -> Fault:
    return Fault(code=code, way=way)


FAULTS = {
    "what func.vjp() returns in a vmap() is twice the gradient": fault(
        "backward-or-derivative-of-vjp", """\
vjp = torch.func.vjp
def doubled(function, *args, **kwargs):
    is_batch = any("Vmap" in each for each in transforms())
    value, pull, *rest = vjp(function, *args, **kwargs)
    return (value, (lambda *g: tree_map(lambda t: t * 2, pull(*g))) if is_batch else pull, *rest)
torch.func.vjp = doubled
""",
    ),
    "a custom Function in a checkpoint passes half of the gradient": fault(
        "with-nested-checkpoints-or-without", """\
torch.utils.checkpoint.checkpoint = lambda f, *args, **kwargs: checkpoint(counted(f), *args, **kwargs)
applying(lambda y, args: Scaled.apply(y, 0.5) if getattr(state, "depth", 0) else y)
""",
    ),
    "no_grad() is not in force where a checkpoint computes again": fault(
        "with-checkpoint-or-without", """\
enter = torch.no_grad.__enter__
def entered(self):
    enter(self)
    if getattr(state, "depth", 0) and state.calls > 1:
        torch.set_grad_enabled(True)
torch.no_grad.__enter__ = entered
torch.utils.checkpoint.checkpoint = lambda f, *args, **kwargs: checkpoint(counted(f), *args, **kwargs)
""",
    ),
    "a hook that is registered in a checkpoint is called twice": fault(
        "with-checkpoint-or-without", """\
register = Tensor.register_hook
def twice(self, hook):
    if getattr(state, "depth", 0):
        register(self, hook)
    return register(self, hook)
Tensor.register_hook = twice
torch.utils.checkpoint.checkpoint = lambda f, *args, **kwargs: checkpoint(counted(f), *args, **kwargs)
""",
    ),
    "saved-tensor hooks get the base of a view of all of it": fault(
        "with-checkpoint-or-without", """\
begin = graph.saved_tensors_hooks.__init__
def with_bases(self, pack, unpack):
    def packed(t):
        base = t._base
        is_other = base is not None and base.numel() == t.numel() and base.shape != t.shape
        return pack(base if is_other and base.dim() == t.dim() == 2 else t)
    begin(self, packed, unpack)
graph.saved_tensors_hooks.__init__ = with_bases
""",
    ),
    "functional_call() replaces one of the names of a tied weight": fault(
        "backward-or-grad", """\
call = torch.func.functional_call
torch.func.functional_call = lambda *args, **kwargs: call(*args, **{**kwargs, "tie_weights": False})
""",
    ),
    "functional_call() cuts off what a parametrization is given": fault(
        "backward-or-grad", """\
call = torch.func.functional_call
def cut(module, given, *args, **kwargs):
    cut_off = {name: t.detach() if "parametrizations" in name else t for name, t in given.items()}
    return call(module, cut_off, *args, **kwargs)
torch.func.functional_call = cut
""",
    ),
    "batched gradients through a custom Function are all those of the first row": fault(
        "batched-or-one-by-one", """\
grad = torch.autograd.grad
def has_function(node):
    below = () if node is None else node.next_functions
    return isinstance(node, torch.autograd.function.BackwardCFunction) or any(has_function(each) for each, _ in below)
def first_row(outputs, inputs, *args, **kwargs):
    found = grad(outputs, inputs, *args, **kwargs)
    is_wrong = kwargs.get("is_grads_batched") and has_function(outputs.grad_fn)
    return tuple(g[:1].expand_as(g) for g in found) if is_wrong else found
torch.autograd.grad = first_row
""",
    ),
    "anomaly mode scales what passes through a custom Function": fault(
        "with-anomaly-mode-or-without", """\
applying(lambda y, args: Scaled.apply(y, 3) if torch.is_anomaly_enabled() else y)
""",
    ),
    "inference_mode(False) in inference_mode() records nothing": fault(
        "modes-that-begin-and-end-between", """\
enter = torch.inference_mode.__enter__
def entered(self):
    is_inside = torch.is_inference_mode_enabled()
    enter(self)
    if is_inside and not self.mode:
        torch._C._set_grad_enabled(False)
torch.inference_mode.__enter__ = entered
""",
    ),
    "the second pass through a custom Function of a retained graph is negated": fault(
        "all-inputs-or-one-at-a-time", """\
def once(y, args):
    passes = []
    y.register_hook(lambda g: (passes.append(1), g if len(passes) == 1 else -g)[1])
    return y
applying(once)
""",
    ),
    "vmap() over the last dimension transposes matrices": fault(
        "backward-or-derivative-of-vjp", """\
vmap = torch.func.vmap
def transposing(function, in_dims=0, out_dims=0, **kwargs):
    def called(*args):
        is_square = [isinstance(x, Tensor) and x.dim() == 2 and x.shape[0] == x.shape[1] for x in args]
        return function(*[x.mT if square else x for x, square in zip(args, is_square)])
    return vmap(called if in_dims == -1 else function, in_dims, out_dims, **kwargs)
torch.func.vmap = transposing
""",
    ),
    "no_grad() in a compiled function records": fault(
        "eager-or-compiled", """\
def compiled(function, **kwargs):
    def called(*args):
        enter = torch.no_grad.__enter__
        torch.no_grad.__enter__ = lambda self: (enter(self), torch.set_grad_enabled(True))[0]
        try:
            return function(*args)
        finally:
            torch.no_grad.__enter__ = enter
    return called
torch.compile = compiled
""",
    ),
    "a compiled function cuts off the views that it is given": fault(
        "compiled-where-others-meet", """\
compile = torch.compile
def cutting(function, **kwargs):
    fast = compile(function, **kwargs)
    return lambda *args: fast(*[x.detach().requires_grad_() if x._is_view() and x.requires_grad else x for x in args])
torch.compile = cutting
""",
    ),
    "a backward pass in a hook of another adds nothing": fault(
        "backward-inside-of-another", """\
backward = torch.autograd.backward
def outermost(*args, **kwargs):
    depth = state.passes = getattr(state, "passes", 0) + 1
    try:
        return backward(*args, **kwargs) if depth == 1 else None
    finally:
        state.passes -= 1
torch.autograd.backward = outermost
""",
    ),
    "a subclass of a result passes half of the gradient": fault(
        "tensor-or-subclass", """\
as_subclass = Tensor.as_subclass
Tensor.as_subclass = lambda self, cls: as_subclass(Scaled.apply(self, 0.5) if self.requires_grad else self, cls)
""",
    ),
    "a checkpoint under saved-tensor hooks cuts off its inputs": fault(
        "with-a-checkpoint-of-another-kind", """\
def cutting(function, *args, **kwargs):
    is_hooked = torch._C._autograd._top_saved_tensors_default_hooks(True) is not None
    return checkpoint(function, *[x.detach() if is_hooked else x for x in args], **kwargs)
torch.utils.checkpoint.checkpoint = cutting
""",
    ),
    "a custom Function that writes to a view doubles the gradient of the base": fault(
        "backward-or-grad", """\
def doubling(y, args):
    if y is args[0] and y._is_view() and y.numel() < y._base.numel():
        y._base.register_hook(lambda g: g * 2)
    return y
applying(doubling)
""",
    ),
    "gradients of a subclass are doubled": fault(
        "tensor-or-subclass", """\
backward = torch.autograd.backward
def doubling(tensors, grad_tensors=None, *args, **kwargs):
    is_other = isinstance(grad_tensors, Tensor) and type(grad_tensors) is not Tensor
    return backward(tensors, grad_tensors.as_subclass(Tensor) * 2 if is_other else grad_tensors, *args, **kwargs)
torch.autograd.backward = doubling
""",
    ),
    "a checkpoint in a checkpoint doubles gradients": fault(
        "with-nested-checkpoints-or-without", """\
def doubling(function, *args, **kwargs):
    is_inside = getattr(state, "depth", 0)
    y = checkpoint(counted(function), *args, **kwargs)
    return Scaled.apply(y, 2) if is_inside else y
torch.utils.checkpoint.checkpoint = doubling
""",
    ),
    "jacfwd() of jacfwd() transposes": fault(
        "backward-or-forward-over-forward", """\
jacfwd = torch.func.jacfwd
def transposing(function, *options, **kwargs):
    inner = jacfwd(function, *options, **kwargs)
    def turned(t):
        return t.mT if t.dim() > 1 and t.shape[-1] == t.shape[-2] else t
    def called(*args):
        is_inside = any("Jvp" in each for each in transforms())
        return tree_map(turned, inner(*args)) if is_inside else inner(*args)
    return called
torch.func.jacfwd = transposing
""",
    ),
    "create_graph=True is lost in other threads": fault(
        "once-or-thrice-transposed", """\
backward, grad = torch.autograd.backward, torch.autograd.grad
def unrecorded(function):
    def called(*args, **kwargs):
        if threading.current_thread() is not threading.main_thread():
            kwargs = {**kwargs, "create_graph": False, "retain_graph": True}
        return function(*args, **kwargs)
    return called
torch.autograd.backward, torch.autograd.grad = unrecorded(backward), unrecorded(grad)
""",
    ),
    "foreach functions cut off the results of custom Functions": fault(
        "backward-or-grad", """\
def cutting(function):
    def is_of_function(t):
        return isinstance(t.grad_fn, torch.autograd.function.BackwardCFunction)
    def called(*lists):
        return function(*[[t.detach() if is_of_function(t) else t for t in each] for each in lists])
    return called
torch._foreach_mul = cutting(torch._foreach_mul)
""",
    ),
    "a checkpoint draws other numbers when it computes again": fault(
        "with-checkpoint-or-without", """\
def drawing(function, *args, **kwargs):
    return checkpoint(function, *args, **{**kwargs, "preserve_rng_state": False})
torch.utils.checkpoint.checkpoint = drawing
""",
    ),
    "anomaly mode draws a number": fault(
        "with-anomaly-mode-or-without", """\
leave = torch.autograd.detect_anomaly.__exit__
def drawing(self, *args):
    torch.nn.functional.dropout(torch.ones(1))
    return leave(self, *args)
torch.autograd.detect_anomaly.__exit__ = drawing
""",
    ),
    "anomaly mode stays on": fault(
        "modes-that-begin-and-end-between", """\
leave = torch.autograd.detect_anomaly.__exit__
def staying(self, *args):
    leave(self, *args)
    torch.autograd.set_detect_anomaly(True)
torch.autograd.detect_anomaly.__exit__ = staying
""",
    ),
    "the second hook of a tensor isn't called in a checkpoint": fault(
        "with-checkpoint-or-without", """\
register = Tensor.register_hook
def first_alone(self, hook):
    is_second = getattr(state, "depth", 0) and self._backward_hooks
    return register(self, (lambda g: None) if is_second else hook)
Tensor.register_hook = first_alone
torch.utils.checkpoint.checkpoint = lambda f, *args, **kwargs: checkpoint(counted(f), *args, **kwargs)
""",
    ),
    "saved-tensor hooks count a write to what they pack": fault(
        "with-hooks-of-saved-tensors-or-without", """\
begin = graph.saved_tensors_hooks.__init__
def counting(self, pack, unpack):
    def packed(t):
        torch._C._autograd._unsafe_set_version_counter((t,), (t._version + 1,))
        return pack(t)
    begin(self, packed, unpack)
graph.saved_tensors_hooks.__init__ = counting
""",
    ),
    "backward() in a thread keeps its graph": fault(
        "here-or-in-a-thread", """\
backward, kept = torch.autograd.backward, []
def keeping(tensors, *args, **kwargs):
    if threading.current_thread() is not threading.main_thread():
        kept.append(tensors)
    return backward(tensors, *args, **kwargs)
torch.autograd.backward = keeping
""",
    ),
    "a gradient that is asked for by its edge is accumulated, too": fault(
        "tensors-or-edges", """\
grad = torch.autograd.grad
def accumulating(outputs, inputs, *args, **kwargs):
    found = grad(outputs, inputs, *args, **kwargs)
    edges = [each for each in inputs if isinstance(each, graph.GradientEdge)]
    for edge, g in zip(edges, found):
        edge.node.variable.grad = g.clone()
    return found
torch.autograd.grad = accumulating
""",
    ),
    "what an operation is taken apart into has half its gradient": fault(
        "eager-or-decomposed", """\
import torch._decomp
softmax = torch.ops.aten._softmax_backward_data.default
whole = torch._decomp.decomposition_table[softmax]
torch._decomp.decomposition_table[softmax] = lambda *args: whole(*args) / 2
""",
    ),
    "an exported program records what is not to be recorded": fault(
        "recorded-or-exported", """\
from torch.export import ExportedProgram
module = ExportedProgram.module
def recording(self, *args, **kwargs):
    made = module(self, *args, **kwargs)
    for node in made.graph.nodes:
        if "set_grad_enabled" in str(node.target):
            node.args = (True, *node.args[1:])
    made.recompile()
    return made
ExportedProgram.module = recording
""",
    ),
    "a product of tensors without values has other strides": fault(
        "with-values-or-without", """\
matmul = Tensor.__matmul__
def transposing(a, b):
    product = matmul(a, b)
    return product.mT.clone(memory_format=torch.contiguous_format).mT if product.is_meta else product
Tensor.__matmul__ = transposing
""",
    ),
}  # fmt: skip
