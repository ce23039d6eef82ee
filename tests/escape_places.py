"""What the corpus of `escapes.py` is made of: places, objects, hooks, and attempts that are no combinations."""

from __future__ import annotations

LEAF = "x = ones(1, requires_grad=True)\n"
FUNCTION = "class A(Function):\n    @staticmethod\n    def forward(ctx, x):\n        {}\n        return x * 1\n"
BACKWARD = "    @staticmethod\n    def backward(ctx, g):\n        {}\n        return g\n"
MODULE = "class A(nn.Module):\n    def {}:\n        {}\n        return x * 1\n"
TRY = "def f():\n    try:\n        zeros(2).view(3)\n    except {}\nf()"

# Where an expression, here @, can stand so that it is evaluated.
PLACES = {
    "a step": "@",
    "an assignment": "x = @",
    "a second target": "x = y = @",
    "an augmented assignment": "x = [0]\nx += [@]",
    "the place that is set": "x = {}\nx[@] = 1",
    "the place that is augmented": "x = {None: 1, 0: 1}\nx[@] += 1",
    "the place that is deleted": "x = {None: 1, 0: 1}\ndel x[@]",
    "the object whose attribute is set": "(@).note = 1",
    "an unpacked value": "[*x] = [@]",
    "an argument": "log(@)",
    "a keyword": "dict(x=@)",
    "star-args": "log(*[@])",
    "double-star-args": "dict(**{'x': @})",
    "an item of a list": "[1, @]",
    "an item of a set": "{@}",
    "a key": "{@: 1}",
    "a value": "{1: @}",
    "what a dict takes in": "{**{1: @}}",
    "a slice": "[1, 2][@:]",
    "a step of a slice": "[1, 2][::@]",
    "an operand": "[1] * (@ or 1)",
    "a sign": "not @",
    "a comparison": "0 < 1 == @",
    "the second of two": "True and @",
    "a condition": "1 if @ else 2",
    "what a condition chooses": "@ if 1 else 2",
    "an f-string": "f'''{@}'''",
    "the width in an f-string": "f'''{1:{@ or 3}}'''",
    "a conversion in an f-string": "f'''{@!r:>3}'''",
    "a walrus": "log(x := @)",
    "the element of a comprehension": "[@ for x in [1]]",
    "what a comprehension goes through": "[x for x in [@]]",
    "the condition of a comprehension": "[x for x in [1] if @]",
    "the second loop of a comprehension": "[y for x in [1] for y in [@]]",
    "the key of a comprehension": "{@: x for x in [1]}",
    "a set comprehension": "{@ for x in [1]}",
    "a generator": "list(@ for x in [1])",
    "a lambda": "(lambda: @)()",
    "a default": "def f(x=@): pass",
    "a keyword's default": "def f(*, x=@): pass",
    "a default of a lambda": "f = lambda x=@: x",
    "a decorator": "@[@, lambda f: f][1]\ndef f(): pass",
    "a decorator of a class": "@[@, lambda f: f][1]\nclass A(object): pass",
    "a type of a parameter": "def f(x: @): pass",
    "a type of what is returned": "def f() -> @: pass",
    "a type on a name": "x: @ = 1",
    "a base": "class A([@, object][1]): pass",
    "a keyword of a class": "class A(object, x=@): pass",
    "the body of a class": "class A(object):\n    x = @",
    "a class in a class": "class A(object):\n    class B(object):\n        x = @",
    "a with": "with [@, no_grad()][1]: pass",
    "the target of a with": "x = {}\nwith no_grad() as x[@]: pass",
    "the body of a with": "with no_grad():\n    @",
    "what is gone through": "for x in [@]: pass",
    "the target of a loop": "x = {}\nfor x[@] in [1]: pass",
    "behind a loop": "for x in []: pass\nelse:\n    @",
    "an if": "if @: pass",
    "an else": "if 0: pass\nelif 0: pass\nelse:\n    @",
    "a def": "def f():\n    return @\nf()",
    "a def in a def": "def f():\n    def g():\n        return @\n    return g\nf()()",
    "a yield": "def f():\n    yield @\nlist(f())",
    "what a generator is sent": "def f():\n    x = yield 1\n    @\ng = f()\nnext(g)\nlist(g)",
    "a yield from": "def f():\n    yield from [@]\nlist(f())",
    "a generator that is closed": (
        "def f():\n    try:\n        yield 1\n    finally:\n        @\ng = f()\nnext(g)\ng.close()"
    ),
    "a raise": "def f():\n    raise ValueError(@)\nf()",
    "a cause": "def f():\n    raise ValueError() from @\nf()",
    "the class of an error": TRY.format("@:\n        pass"),
    "a handler": TRY.format("RuntimeError:\n        @"),
    "a finally": TRY.format("RuntimeError:\n        pass\n    finally:\n        @"),
    "a global": "def f():\n    global g\n    g = @\nf()",
    "a nonlocal": "def f():\n    x = 1\n    def g():\n        nonlocal x\n        x = @\n    g()\nf()",
    "a method": "class A(object):\n    def f(self):\n        return @\nA().f()",
    "a static method": "class A(object):\n    @staticmethod\n    def f():\n        return @\nA.f()",
    "a class method": "class A(object):\n    @classmethod\n    def f(cls):\n        return @\nA.f()",
    "a property": "class A(object):\n    @property\n    def f(self):\n        return @\nA().f",
    "__init__": "class A(object):\n    def __init__(self):\n        @\nA()",
    "__call__": "class A(object):\n    def __call__(self):\n        @\nA()()",
    "__len__": "class A(object):\n    def __len__(self):\n        @\n        return 1\nlen(A())",
    "__getitem__": "class A(object):\n    def __getitem__(self, x):\n        @\nA()[1]",
    "__iter__": "class A(object):\n    def __iter__(self):\n        @\n        return iter([])\nlist(A())",
    "__enter__": (
        "class A(object):\n    def __enter__(self):\n        @\n    def __exit__(self, *x):\n        pass\n"
        "with A(): pass"
    ),
    "__torch_function__": (
        "class A(Tensor):\n    @classmethod\n    def __torch_function__(cls, func, types, args=(), kwargs=None):\n"
        "        @\nzeros(1).as_subclass(A) + 1"
    ),
    "map": "list(map(lambda x: @, [1]))",
    "a key for sorting": "sorted([1, 2], key=lambda x: @ or x)",
    "reduce": "functools.reduce(lambda x, y: @, [1, 2])",
    "a partial": "partial(lambda x: @, 1)()",
    "a weak reference": "m = nn.Linear(1, 1)\nr = weakref.ref(m, lambda r: @)\ndel m",
    "a hook of a tensor": LEAF + "x.register_hook(lambda g: @)\n(x * 1).sum().backward()",
    "a hook behind accumulation": LEAF + "x.register_post_accumulate_grad_hook(lambda x: @)\n(x * 1).sum().backward()",
    "a hook of a node": LEAF + "y = x * 1\ny.grad_fn.register_hook(lambda *g: @)\ny.sum().backward()",
    "a hook before a node": LEAF + "y = x * 1\ny.grad_fn.register_prehook(lambda g: @)\ny.sum().backward()",
    "a hook of several tensors": LEAF + "graph.register_multi_grad_hook([x], lambda g: @)\n(x * 1).sum().backward()",
    "a hook of a module": "m = nn.Linear(1, 1)\nm.register_forward_hook(lambda *x: @)\nm(ones(1))",
    "a hook before a module": "m = nn.Linear(1, 1)\nm.register_forward_pre_hook(lambda *x: @)\nm(ones(1))",
    "a hook of a module's gradients": (
        "m = nn.Linear(1, 1)\nm.register_full_backward_hook(lambda *x: @)\nm(ones(1)).sum().backward()"
    ),
    "a hook of all modules": "nn.modules.module.register_module_forward_hook(lambda *x: @)\nnn.Linear(1, 1)(ones(1))",
    "a hook of a state": "m = nn.Linear(1, 1)\nm.register_state_dict_post_hook(lambda *x: @)\nm.state_dict()",
    "a hook of an optimizer": (
        LEAF + "o = optim.SGD([x], 0.1)\no.register_step_post_hook(lambda *x: @)\nx.sum().backward()\no.step()"
    ),
    "a closure": LEAF + "optim.LBFGS([x]).step(lambda: @ or x.sum())",
    "a hook of saved tensors": LEAF + "with graph.saved_tensors_hooks(lambda t: @, lambda t: t):\n    x.exp()",
    "the forward of a Function": FUNCTION.format("@") + BACKWARD.format("pass") + LEAF + "A.apply(x)",
    "the backward of a Function": FUNCTION.format("pass") + BACKWARD.format("@") + LEAF + "A.apply(x).sum().backward()",
    "the forward of a module": MODULE.format("forward(self, x)", "@") + "A()(ones(1))",
    "what a module shows": MODULE.format("extra_repr(self, x='')", "@") + "repr(A())",
    "what a module's state is": MODULE.format("get_extra_state(self, x=1)", "@") + "A().state_dict()",
    "a parametrization": (
        MODULE.format("forward(self, x)", "@") + "parametrize.register_parametrization(nn.Linear(1, 1), 'weight', A())"
    ),
    "a checkpoint": LEAF + "checkpoint(lambda t: [@, t * 1][1], x, use_reentrant=False).sum().backward()",
    "vmap": "func.vmap(lambda t: [@, t * 1][1])(ones(2))",
    "a transform": "func.grad(lambda t: [@, t.sum()][1])(ones(2))",
    "a Jacobian": "autograd.functional.jacobian(lambda t: [@, t * 1][1], ones(1))",
    "a thread": "in_thread(lambda: @)",
    "what is traced": "fx.experimental.proxy_tensor.make_fx(lambda t: [@, t * 1][1])(ones(1))",
    "what is traced for TorchScript": "jit.trace(lambda t: [@, t * 1][1], ones(1), check_trace=False)",
    "what is exported": "def f(x):\n    @\n    return x * 1\nexported(f, ones(1))(ones(1))",
    "what is compiled": "def f(x):\n    @\n    return x * 1\ncompiled(f)(ones(1))",
    "what a compiled function calls": (
        "def g():\n    @\ndef f(x):\n    g()\n    return x * 1\ncompiled(f)(ones(1))"
    ),
    "an operator": "def f(x):\n    @\n    return x * 1\ncustom_op(f, '(Tensor x) -> Tensor')(ones(1))",
    "the gradients of an operator": (
        "def f(x):\n    return x * 1\nf = custom_op(f, '(Tensor x) -> Tensor')\n"
        "f.register_autograd(lambda ctx, g: [@, g][1])\nx = ones(1, requires_grad=True)\nf(x).sum().backward()"
    ),
    "a warning": "warnings.warn(str(@))",
}  # fmt: skip

# Uses of a name that the case sets somewhere, where it isn't set: to Python it is the builtin.
LATE = {
    "in a def before it": "def f():\n    return NAME(CODE)\nf()\nNAME = 1",
    "in a lambda before it": "f = lambda: NAME(CODE)\nf()\nNAME = 1",
    "in a method before it": "class A(object):\n    def f(self):\n        return NAME(CODE)\nA().f()\nNAME = 1",
    "in a hook before it": "in_thread(lambda: NAME(CODE))\nNAME = 1",
    "in a branch that isn't taken": "if 0:\n    NAME = 1\nNAME(CODE)",
    "in a loop over nothing": "for NAME in []: pass\nNAME(CODE)",
    "in a handler of no error": (
        "def f():\n    try:\n        pass\n    except ValueError as NAME:\n        pass\nf()\nNAME(CODE)"
    ),
    "after it is deleted": "NAME = 1\ndel NAME\nNAME(CODE)",
    "after a def deletes it": "NAME = 1\ndef f():\n    global NAME\n    del NAME\nf()\nNAME(CODE)",
    "beside a parameter": "def f(NAME): pass\nNAME(CODE)",
    "beside a comprehension": "[1 for NAME in []]\nNAME(CODE)",
    "beside a walrus": "0 and (NAME := 1)\nNAME(CODE)",
    "beside an attribute of a class": "class A(object):\n    NAME = 1\nNAME(CODE)",
    "in the method of a class that has it": (
        "class A(object):\n    NAME = 1\n    def f(self):\n        return NAME(CODE)\nA().f()"
    ),
    "in the class that sets it": "class A(object):\n    NAME = NAME\n    NAME(CODE)",
    "as a default of itself": "def NAME(x=NAME(CODE)): pass",
    "as a global that is never set": "def f():\n    global NAME\n    if 0:\n        NAME = 1\n    NAME(CODE)\nf()",
    "in what is compiled": "def f(x):\n    NAME(CODE)\n    return x\ncompiled(f)(zeros(1))\nNAME = 1",
    "in an operator": (
        "def f(x):\n    NAME(CODE)\n    return x * 1\ncustom_op(f, '(Tensor x) -> Tensor')(ones(1))\nNAME = 1"
    ),
    "in what is checkpointed": "checkpoint(lambda x: [NAME(CODE), x][1], ones(1), use_reentrant=False)\nNAME = 1",
}  # fmt: skip

# Objects of the language, and by their numbers the walks that lead out from them where nothing stands in the way.
OBJECTS = {
    "a tensor": ("zeros(1)", "012"),
    "a parameter": ("Parameter(zeros(1))", "012"),
    "a function": ("checkpoint", "01"),
    "its own function": ("(lambda: 0)", "01"),
    "a builtin": ("len", "01"),
    "a function of torch": ("torch.sin", "01"),
    "a class": ("nn.Linear", "0"),
    "its own class": ("type(nn.Linear(1, 1))", "0"),
    "a module": ("nn.Linear(1, 1)", "0123"),
    "a container": ("nn.Sequential(nn.ReLU())", "0123"),
    "an optimizer": ("optim.SGD([ones(1, requires_grad=True)], 0.1)", "0123"),
    "a generator": ("(x for x in [1])", "01"),
    "a node": ("ones(1, requires_grad=True).sum().grad_fn", "01"),
    "an error": ("ValueError()", "01"),
    "a method": ("zeros(1).backward", "01"),
    "a weak reference": ("weakref.ref(len)", "01"),
    "a partial": ("partial(len)", "01"),
    "a text": ("'x'", "012"),
    "a number": ("(1)", "012"),
    "a complex number": ("1j", "012"),
    "a list": ("[1]", "012"),
    "a mapping": ("{1: 2}", "012"),
    "a view of a mapping": ("MappingProxyType({})", "01"),
    "a slice": ("slice(1)", "01"),
    "a size": ("zeros(1).shape", "01"),
    "a dtype": ("torch.float32", "01"),
    "a device": ("zeros(1).device", "01"),
    "a property": ("property(len)", "01"),
    "a hook's handle": ("nn.Linear(1, 1).register_forward_hook(log)", "0123"),
    "a context": ("no_grad()", "0123"),
    "a distribution": ("distributions.Normal(0.0, 1.0)", "0123"),
    "a scaler": ("amp.GradScaler('cpu')", "013"),
    "a mode of torch": ("torch.autocast('cpu')", "0123"),
    "a generator of numbers": ("Generator()", "01"),
    "a decorator": ("once_differentiable", "01"),
    "a member of an enumeration": ("torch.utils.checkpoint.CheckpointPolicy.MUST_SAVE", "01"),
}  # fmt: skip
