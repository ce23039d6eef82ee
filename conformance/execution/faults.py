"""Faults to plant into torch, each a few lines that are executed before the suite sees it, and the rules they break.

A case that cites such a rule is to notice the fault. What runs with a fault runs in a process of its own.
"""

import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from conformance.execution.fork_server import IMPORT_PACKAGE, PACKAGE
from conformance.execution.variables import handed_on

BEFORE = """\
import torch
from torch import Tensor, nn
from torch.autograd import forward_ad, graph

"""
RUN = f"""\
{IMPORT_PACKAGE}
exec(told["planted"])
from conformance.worker.engine import Engine
from conformance.worker.formulas import CHANGED
print(chr(10) + json.dumps({{**Engine().run(told["program"]), "changed": bool(CHANGED)}}))
"""
LONGEST_REASON = 500
SECONDS = 120.0  # to import torch and to run a case


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What is planted, the file of cases that is run, and the rules of which a red case must cite one.

    Cases with one of the checks are to notice it, too, where they have no rule in common with any fault.
    """

    code: str
    file: str
    rules: frozenset[str]
    checks: frozenset[str] = frozenset()
    is_of_library: bool = True  # and not of a formula, where it may change no number


def fault(file: str, rules: str, code: str, checks: str = "") -> Fault:
    return Fault(code=code, file=file, rules=frozenset(rules.split()), checks=frozenset(checks.split()))


def fitting(rules: Iterable[str], checks: Iterable[str]) -> list[str]:
    """Return the names of the faults that break one of these rules, or else of those that one of the checks shows."""
    own = [name for name, each in FAULTS.items() if not each.rules.isdisjoint(rules)]
    return own or [name for name, each in FAULTS.items() if not each.checks.isdisjoint(checks)]


def answer_with(fault: Fault, python: str, program: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer of a worker whose torch has a fault to a program; what ends its process is a crash.

    A fault in a formula says in it, too, whether it has `changed` a number.
    """
    told = json.dumps({"planted": BEFORE + fault.code, "program": {"n": 0, **program}})
    command = [python, "-c", RUN, str(PACKAGE), told]
    try:
        done = subprocess.run(
            command, env=handed_on(os.environ), capture_output=True, encoding="utf-8", errors="replace",
            timeout=SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {"status": "timeout"}
    last = done.stdout.splitlines()[-1:] if done.returncode == 0 else []
    return json.loads(last[0]) if last else {"status": "crash", "reason": done.stderr[-LONGEST_REASON:]}


FAULTS = {
    "detach() copies": fault(
        "detach.yaml", "detach.shares-storage", "Tensor.detach = lambda self: self.clone().data", "shares_storage",
    ),
    "no_grad() stays in force after an exception": fault(
        "grad_modes.yaml", "mode.restored-on-exception", """\
leave = torch.no_grad.__exit__
torch.no_grad.__exit__ = lambda self, kind, *rest: leave(self, kind, *rest) if kind is None else None
""",
    ),
    "eval() turns gradients off": fault(
        "modules.yaml grad_modes.yaml", "mode.eval-does-not-disable-grad", """\
train = nn.Module.train
def eval_(self):
    torch.set_grad_enabled(False)
    return train(self, False)
nn.Module.eval = eval_
""",
    ),
    "what a hook returns is ignored": fault(
        "hooks.yaml", "hook.return-replaces", """\
register = Tensor.register_hook
Tensor.register_hook = lambda self, hook: register(self, lambda grad: (hook(grad), None)[1])
""",
    ),
    "a removed hook is called on": fault(
        "hooks.yaml", "hook.remove", "torch.utils.hooks.RemovableHandle.remove = lambda self: None"
    ),
    "a post-accumulate hook is called before": fault(
        "hooks.yaml", "posthook.after-accumulate", """\
Tensor.register_post_accumulate_grad_hook = lambda self, hook: self.register_hook(lambda grad: (hook(self), None)[1])
""",
    ),
    "a write in place isn't counted": fault(
        "inplace.yaml versions.yaml", "inplace.saved-output-modified-error version.starts-zero-inplace-increments", """\
Tensor.zero_ = lambda self: (self.data.fill_(0), self)[1]
Tensor.add_ = lambda self, other, alpha=1: (torch.add(self.data, other, alpha=alpha, out=self.data), self)[1]
""", "version",
    ),
    "the gradient of relu is one at zero": fault(
        "subgradients.yaml", "subgrad.relu-zero", """\
class Relu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)
    @staticmethod
    def backward(ctx, grad):
        return grad * (ctx.saved_tensors[0] >= 0)
Tensor.relu = torch.relu = nn.functional.relu = lambda x, inplace=False: Relu.apply(x)
""",
    ),
    "a broadcast operand gets a gradient that isn't summed right": fault(
        "shapes_and_dtypes.yaml", "reduce.broadcast-sum reduce.both-operands-broadcast",
        """\
class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return torch.mul(a, b)
    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        mean = lambda t, like: t.mean(0).expand_as(like) if t.shape != like.shape else t
        return mean(grad * b, a), mean(grad * a, b)
multiply = Tensor.__mul__
Tensor.__mul__ = lambda a, b: Product.apply(a, b) if isinstance(b, Tensor) and a.dim() < b.dim() else multiply(a, b)
""",
    ),
    "retain_grad() is forgotten": fault(
        "retain_grad.yaml", "retain.populates-nonleaf", "Tensor.retain_grad = lambda self: None"
    ),
    "autograd.grad() fills the leaves too": fault(
        "autograd_grad.yaml", "agrad.no-side-effect", """\
grad = torch.autograd.grad
def leaky(outputs, inputs, *args, **kwargs):
    found = grad(outputs, inputs, *args, **kwargs)
    for tensor, gradient in zip(inputs if isinstance(inputs, (list, tuple)) else [inputs], found):
        if isinstance(tensor, Tensor) and tensor.is_leaf and tensor.grad is None:
            tensor.grad = gradient
    return found
torch.autograd.grad = leaky
""",
    ),
    "backward() begins with twice the gradient": fault(
        "backward.yaml", "bwd.vjp-weights", """\
backward = Tensor.backward
def doubled(self, gradient=None, *args, **kwargs):
    begin = torch.ones_like(self) if gradient is None and self.numel() == 1 else gradient
    return backward(self, begin if begin is None else begin * 2, *args, **kwargs)
Tensor.backward = doubled
""", "grad",
    ),
    "create_graph is ignored": fault(
        "autograd_grad.yaml", "agrad.create-graph-higher-order", """\
grad = torch.autograd.grad
torch.autograd.grad = lambda *args, **kwargs: grad(*args, **{**kwargs, "create_graph": False, "retain_graph": True})
""",
    ),
    "the warning of a result's .grad is gone": fault(
        "grad_attribute.yaml", "gradattr.nonleaf-access-warns", """\
import warnings
kept = Tensor.grad
def quiet(self):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kept.__get__(self)
Tensor.grad = property(quiet, kept.__set__, kept.__delete__)
""",
    ),
    "whole numbers may require grad": fault(
        "requires_grad.yaml", "reqgrad.int-forbidden", """\
require = Tensor.requires_grad_
Tensor.requires_grad_ = lambda self, *args: require(self, *args) if self.is_floating_point() else self
""",
    ),
    "a copied leaf doesn't require grad": fault(
        "creating_tensors.yaml", "create.deepcopy-leaf", """\
copied = Tensor.__deepcopy__
Tensor.__deepcopy__ = lambda self, memo: copied(self, memo).detach()
""",
    ),
    "hooks of saved tensors are not called": fault(
        "saved_tensors.yaml", "sthook.pack-at-save", """\
graph.saved_tensors_hooks.__enter__ = graph.saved_tensors_hooks.__exit__ = lambda self, *rest: None
""",
    ),
    "a checkpoint draws other numbers again": fault(
        "checkpointing.yaml", "ckpt.rng-preserved", """\
import torch.utils.checkpoint as module
plain = module.checkpoint
module.checkpoint = lambda *args, **kwargs: plain(*args, **{**kwargs, "preserve_rng_state": False})
""",
    ),
    "zero_grad() of an optimizer leaves zeros": fault(
        "modules.yaml", "optim.zero-grad-none-default", """\
zero = torch.optim.Optimizer.zero_grad
torch.optim.Optimizer.zero_grad = lambda self, set_to_none=False: zero(self, set_to_none=False)
""",
    ),
    "clipping gives new gradients": fault(
        "modules.yaml", "optim.clip-grad-norm-inplace", """\
def clip(parameters, max_norm, *args, **kwargs):
    tensors = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    norm = torch.stack([p.grad.norm() for p in tensors]).norm()
    for p in tensors:
        p.grad = p.grad * (max_norm / (norm + 1e-6)).clamp(max=1)
    return norm
nn.utils.clip_grad_norm_ = clip
""",
    ),
    "tangents are twice what they are": fault(
        "forward_mode.yaml", "fwad.basic", """\
unpack = forward_ad.unpack_dual
def doubled(*args, **kwargs):
    found = unpack(*args, **kwargs)
    return found if found.tangent is None else forward_ad.UnpackedDualTensor(found.primal, found.tangent * 2)
forward_ad.unpack_dual = doubled
""",
    ),
    "func.grad() looks at its first argument only": fault(
        "torch_func.yaml", "tfunc.grad-argnums", """\
import torch.func
plain = torch.func.grad
torch.func.grad = lambda function, argnums=0, has_aux=False: plain(function, 0, has_aux)
""",
    ),
    "a jacobian is transposed": fault(
        "autograd_functional.yaml", "fapi.jacobian-shape", """\
import torch.autograd.functional as module
plain = module.jacobian
def transposed(*args, **kwargs):
    found = plain(*args, **kwargs)
    return found.mT if isinstance(found, Tensor) and found.dim() == 2 else found
module.jacobian = transposed
""",
    ),
    "inference mode is no_grad": fault("inference_mode.yaml", "infer.allocated-is-inference", """\
torch.inference_mode = torch.autograd.inference_mode = lambda mode=True: torch.set_grad_enabled(not mode)
"""),
    "gradcheck() finds everything right": fault("gradcheck.yaml", "gradcheck.raises-on-mismatch", """\
torch.autograd.gradcheck = lambda *args, **kwargs: True
"""),
    "a thread takes over its starter's mode": fault("grad_modes.yaml engine.yaml", "mode.thread-local", """\
import threading
start = threading.Thread.start
def handing_over(self):
    mode, run = torch.is_grad_enabled(), self.run
    self.run = lambda: (torch.set_grad_enabled(mode), run())
    start(self)
threading.Thread.start = handing_over
"""),
}  # fmt: skip
