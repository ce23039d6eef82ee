"""Faults planted into torch, one at a time, from outside of the suite: a case that names the broken rule is red.

What runs is one file of the shipped cases, which without the fault is green.
"""

from __future__ import annotations

import shutil
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest
from planting import BEFORE, RED, red_among
from sessions import Session

from conformance.language.files import load_cases, shipped_cases

pytestmark = pytest.mark.slow


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What is planted, the file of cases that is run, and the rules of which a red case must cite one."""

    code: str
    file: str
    rules: frozenset[str]


def fault(file: str, rules: str, code: str) -> Fault:
    return Fault(code=code, file=file, rules=frozenset(rules.split()))


FAULTS = {
    "detach() copies": fault("detach.yaml", "detach.shares-storage", "Tensor.detach = lambda self: self.clone().data"),
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
""",
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


def red_cases(planted: Fault) -> dict[str, frozenset[str]]:
    """Return the red cases of the files of a fault with it, and the rules that each cites."""
    cases = load_cases([shipped_cases() / name for name in planted.file.split()], shipped_cases().parent)
    return red_among(cases, planted.code)


@pytest.mark.parametrize("planted", FAULTS.values(), ids=FAULTS)
def test_a_fault_is_caught_by_a_case_that_names_the_rule(planted: Fault) -> None:
    red = red_cases(planted)
    assert red
    assert any(planted.rules & rules for rules in red.values()), red


@pytest.mark.parametrize("file", sorted({name for planted in FAULTS.values() for name in planted.file.split()}))
def test_what_is_planted_is_what_is_red(file: str) -> None:
    assert red_cases(fault(file, "", "Tensor.detach = Tensor.detach")) == {}


def test_a_fault_that_is_planted_in_the_worker_of_a_run_is_red_there(tmp_path: Path) -> None:
    planted = FAULTS["detach() copies"]
    session = Session(tmp_path)
    for name in ("rules.yaml", planted.file):
        shutil.copy(shipped_cases() / name, tmp_path)
    code = textwrap.indent(BEFORE + planted.code, "    ")
    session.write("sitecustomize.py", f'import sys\nif "conformance.worker" in " ".join(sys.orig_argv):\n{code}\n')
    result = session.run("-q")
    assert {case for case, status in result.statuses.items() if status in RED} == set(red_cases(planted))
