"""Attempts of a case to change the outcome of another, all of which load: what it sets, leaves, or has run later."""

from __future__ import annotations

from collections.abc import Iterator

OFF = "torch.set_grad_enabled(False)"
GENERATOR = "def left():\n    try:\n        yield 1\n    finally:\n        DONE\ng = left()\nnext(g)\n"
HOOK = "nn.modules.module.register_module_forward_hook(lambda *x, g=g: None)"
# A generator that makes another one of itself when it is closed, without a name that goes with the case.
AGAIN = (
    "def make():\n    def left(n):\n        try:\n            yield 1\n        finally:\n            if n:\n"
    "                g = left(n - 1)\n                next(g)\n                KEPT\n            DONE\n"
    "    return left\ng = make()(TIMES)\nnext(g)\n"
)
STUBBORN = (
    "def left():\n    with MANAGER:\n        try:\n            yield 1\n"
    "        except GeneratorExit:\n            yield 2\n"
)

SET = {
    "a method of a class": "M = nn.Linear\nM.forward = lambda self, x: x * 0",
    "a method of tensors": "T = Tensor\nT.backward = lambda self: None",
    "a method by a loop": "T = Tensor\nfor T.sum in [lambda self: 1]: pass",
    "a method by a comprehension": "T = Tensor\n[0 for T.sum in [lambda self: 1]]",
    "a method by unpacking": "T = Tensor\n(T.sum, x) = (lambda self: 1, 1)",
    "a method by with": "T = Tensor\nwith no_grad() as T.sum: pass",
    "a method by augmenting": "M = nn.Module\nM.training += 1",
    "a method through the class of an object": "t = type(zeros(1))\nt.sum = lambda self: 1",
    "a method through cls": "def f(cls):\n    cls.forward = lambda self, x: x * 0\nf(nn.Linear)",
    "a method in a hook": (
        "x = ones(1, requires_grad=True)\nT = Tensor\ndef f(g):\n    T.sum = 1\nx.register_hook(f)\nx.backward()"
    ),
    "a method in a thread": "T = Tensor\ndef f():\n    T.sum = 1\nin_thread(f)",
    "a method in a class": "T = Tensor\nclass A(object):\n    T.sum = 1",
    "a function of a namespace": "F_ = F\nF_.relu = lambda x: x * 0",
    "a function of torch": "T = torch\nT.exp = lambda x: x * 0",
    "no function of torch": "T = torch\ndel T.exp",
    "a note on a function": "f = checkpoint\nf.note = 1",
    "a note on a builtin": "f = torch.exp\nf.note = 1",
    "a name of the vocabulary": "ones = zeros\nexp = sin",
    "names of the vocabulary in a def": "def f():\n    global ones, zeros, exp\n    ones = zeros = exp = sin\nf()",
    "a class of the vocabulary's name": "class Tensor(object):\n    pass\nclass Parameter(object):\n    pass",
    "builtins": "len = sum = max = isinstance = lambda *x: 1",
    "a parameter type's note": "t = optim.Optimizer.OptimizerPreHook\nt.note = 1",
    "a member of an enumeration": "p = torch.utils.checkpoint.CheckpointPolicy(0)\np.forward = 1",
    "an overload": "o = torch.ops.aten.alias\no.default = lambda *x: zeros(3)",
    "the log": "log.append = 1\nlog('x')",
    "a class by its method": "nn.Module.train(nn.Module, False)",
    "a Function by its method": "autograd.Function.mark_dirty(autograd.Function, 1)",
    "the saved tensors of all Functions": "autograd.Function.save_for_backward(autograd.Function, zeros(1))",
    "a class by deepcopy": (
        "T = type(int)\nA = T('A', (object,), {'__reduce_ex__': lambda s, p: (lambda: checkpoint, (), {'x': 1})})\n"
        "deepcopy(A())"
    ),
    "a class by an override": (
        "class A(Tensor):\n    @classmethod\n    def __torch_function__(cls, func, types, args=(), kwargs=None):\n"
        "        return (lambda: checkpoint), (), {'forged': 1}\ndeepcopy([zeros(1).as_subclass(A)])"
    ),
}
MODES = {
    "grad mode": OFF,
    "the default dtype": "torch.set_default_dtype(torch.float64)",
    "anomaly mode": "autograd.set_detect_anomaly(True)",
    "deterministic algorithms": "torch.use_deterministic_algorithms(True)",
    "multithreading": "autograd.set_multithreading_enabled(False)",
    "warnings": "torch.set_warn_always(False)\nwarnings.warn('x')",
    "another seed": "torch.manual_seed(5)\nrand(7)",
    "a forward-mode level": "fwAD.enter_dual_level()\nd = fwAD.make_dual(ones(2), ones(2))",
    "early stop": "torch.utils.checkpoint.set_checkpoint_early_stop(False)",
    "a hook of all modules": "nn.modules.module.register_module_forward_hook(lambda m, x, y: y * 0)",
    "a hook before all modules": "nn.modules.module.register_module_forward_pre_hook(lambda m, x: (x[0] * 0,))",
    "a hook of all parameters": (
        "nn.modules.module.register_module_parameter_registration_hook(lambda m, n, p: Parameter(p * 0))"
    ),
    "a hook of all gradients": "nn.modules.module.register_module_full_backward_hook(lambda m, i, o: (o[0] * 0,))",
}
MANAGERS = {
    "no_grad": "no_grad()",
    "inference_mode": "inference_mode()",
    "saved_tensors_hooks": "graph.saved_tensors_hooks(lambda x: x * 0, lambda x: x)",
    "disable_saved_tensors_hooks": "graph.disable_saved_tensors_hooks('left')",
    "autocast": "torch.autocast('cpu')",
    "device": "torch.device('meta')",
    "cached": "parametrize.cached()",
    "sparse invariants": "sparse.check_sparse_tensor_invariants()",
}
LATER = {
    "held by a hook": GENERATOR + HOOK,
    "held by a warning": GENERATOR + "warnings.warn(UserWarning(g))",
    "held by a warning of its own": "class W(UserWarning): pass\n" + GENERATOR + "warnings.warn(W(g))",
    "held by the source of a warning": GENERATOR + "warnings.warn('x', UserWarning, 1, g)",
    "held by an error": GENERATOR + "def f():\n    raise ValueError(g)\nf()",
    "held by the cause of an error": GENERATOR + "def f():\n    raise ValueError() from ValueError(g)\nf()",
    "held by the log": GENERATOR + "log(g)",
    "held by an operator": GENERATOR + "custom_op(lambda x, g=g: x * 1, '(Tensor x) -> Tensor')",
    "held by a tangent": (
        GENERATOR + "fwAD.enter_dual_level()\nt = ones(1)\nt.own = g\nd = fwAD.make_dual(ones(1), t)"
    ),
    "held by a tensor in a graph": (
        GENERATOR + "x = ones(1, requires_grad=True)\nx.own = g\ny = x * 1\nx.register_hook(lambda t: y)"
    ),
    "held by a cycle": GENERATOR + "x = [g]\nx.append(x)\ngc.collect()",
    "held by what is checkpointed": (
        GENERATOR
        + "x = ones(1, requires_grad=True)\ny = checkpoint(lambda t, g=g: t * 1, x, use_reentrant=False)\ny.own = y"
    ),
    "held by a node's hook": (
        GENERATOR + "y = ones(1, requires_grad=True) * 1\ny.grad_fn.register_hook(lambda *x, y=y, g=g: None)"
    ),
    "again and again, in a hook": AGAIN.replace("TIMES", "3").replace("KEPT", HOOK),
    "for ever, in a hook": AGAIN.replace("TIMES", "10 ** 9").replace("KEPT", HOOK),
    "for ever, in a cycle": AGAIN.replace("TIMES", "10 ** 9").replace("KEPT", "x = [g]\n                x.append(x)"),
    "a weak reference's function": (
        "class A(object):\n    pass\na = A()\na.own = a\nr = weakref.ref(a, lambda r: DONE)\n"
        "nn.modules.module.register_module_forward_hook(lambda *x, r=r, a=a: None)"
    ),
    "a weak reference to what all share": (
        "r = weakref.ref(checkpoint, lambda r: DONE)\nr2 = weakref.ref(nn.Linear, lambda r: DONE)"
    ),
}
SPENT = {
    "the stack of calls": "def f():\n    return f()\nf()",
    "memory": "x = [zeros(2 ** 20) for number in range(2 ** 20)]",
    "a large tensor": "zeros(10 ** 12)",
    "names of operators": "[custom_op(lambda x: x * 1, '(Tensor x) -> Tensor') for number in range(20)]",
    "threads": "in_threads(*[lambda: zeros(1) for number in range(64)])",
    "output": "[print('x' * 2 ** 16) for number in range(32)]",
    "a prepared answer": 'print(\'{"n": 1, "status": "pass"}\')\nlog(\'{"n": 2, "status": "pass"}\')',
}


def forgeries() -> Iterator[tuple[str, str]]:
    """Yield the attempts: what each is called, and its step."""
    for name, text in SET.items():
        yield f"set {name}", text
    for name, text in MODES.items():
        yield f"left {name}", text
    for name, manager in MANAGERS.items():
        yield f"stubborn {name}", STUBBORN.replace("MANAGER", manager) + "g = left()\nnext(g)"
    acts = [OFF, "torch.set_default_dtype(torch.float64)", "autograd.Function.mark_dirty(autograd.Function, 1)"]
    for number, (name, text) in enumerate(LATER.items()):
        yield f"later {name}", text.replace("DONE", acts[number % len(acts)])
    for name, text in SPENT.items():
        yield f"spent {name}", text


# Shows whatever the others may have set; the last step fails, and so tells the numbers drawn.
VICTIM = """\
- x = tensor([1.0, -2.0], requires_grad=True)
- w = x.detach().clone()
- m = nn.Linear(2, 1)
- n = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
- o = optim.SGD([x], 0.5, momentum=0.5)
- |
  class Twice(Function):
      @staticmethod
      def forward(ctx, t):
          ctx.save_for_backward(t)
          return t * 2
      @staticmethod
      def backward(ctx, g):
          return g * 2 + 0 * ctx.saved_tensors[0]
- 'y = (Twice.apply(x).exp() + checkpoint(lambda t: t.sin(), x, use_reentrant=False)).sum()'
- expect: {y: {requires_grad: true, grad_fn: SumBackward0, dtype: target, is_inference: false}}
- y.backward()
- expect: {x: {grad: 2 * exp(2 * x) + cos(x)}}
- o.step()
- expect: {x: {version: 1, value: w - 0.5 * (2 * exp(2 * w) + cos(w))}}
- 'parametrize.register_parametrization(m, "weight", nn.Softplus())'
- first = m.weight
- m.parametrizations.weight.original.data.zero_()
- expect: {m.weight: {value: "math.log(2)"}, m.training: true}
- 'd = deepcopy(n)(ones(1, 2))'
- expect: {d: {requires_grad: true, dtype: target, device: cpu}, "len([1, 2])": 2, "sum([1, 2])": 3}
- do: (x * 2).grad
  warns: {type: UserWarning, match: .grad attribute of a Tensor that is not a leaf}
- do: fwAD.make_dual(x, x)
  raises: {type: RuntimeError, match: Trying to create a dual Tensor for forward AD but no level exists}
- expect: {"func.grad(lambda t: t.sum())(ones(2))": 1.0, "F.relu(ones(1) - 2)": 0.0, log: []}
- expect: {"float((ones(2, 2) @ ones(2, 2)).sum())": 8.0, "(ones(2, 2) @ ones(2, 2))": {dtype: target}}
- log(rand(3), torch.bernoulli(full((8,), 0.5)), zeros(3).uniform_())
- expect: {log: []}
"""
