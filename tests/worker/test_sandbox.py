"""A hostile case reaches nothing but what belongs to it: it is refused at load, or stopped with no effect."""

from __future__ import annotations

import json
import tempfile
import textwrap
import types
import typing
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from loops import each
from running import case_of, request_of, running_engine

from conformance.language import vocabulary
from conformance.language.errors import CaseFileError
from conformance.worker.engine import Engine
from conformance.worker.sandbox import MODULE, Namespace, bases, compile_text, writable

# What may not even load: no name, no attribute and no construct leads out of the language.
REFUSED = {
    "import": "import os",
    "import from": "from os import system",
    "import in a def": "def f():\n    import os",
    "__import__": "__import__('os')",
    "__builtins__": "__builtins__['open']",
    "__readable__, which the worker adds": "__readable__(torch, '__dict__')",
    "__own__, which the worker adds": "__own__(torch, '__dict__')",
    "__writable__, which the worker adds": "__writable__(torch)",
    "__build_class__": "__build_class__(lambda: 0, 'A')",
    "__name__": "log(__name__)",
    "open": "open('/etc/passwd')",
    "a builtin that a class may not have set": (
        "class A(object):\n    if len([]):\n        open = 1\n    open('/etc/passwd')"
    ),
    "a builtin that a class has set as a global name": "class A(object):\n    global open\n    open = 1\nlog(open)",
    "eval": "eval('1')",
    "exec": "exec('1')",
    "compile": "compile('1', 'x', 'exec')",
    "globals": "globals()",
    "locals": "locals()",
    "vars": "vars(torch)",
    "dir": "dir(torch)",
    "getattr": "getattr(torch, 'load')",
    "setattr": "setattr(torch, 'load', 1)",
    "delattr": "delattr(torch, 'load')",
    "input": "input()",
    "breakpoint": "breakpoint()",
    "memoryview": "memoryview(zeros(1))",
    "SystemExit": "def f():\n    raise SystemExit",
    "KeyboardInterrupt": "def f():\n    raise KeyboardInterrupt",
    "BaseException": "def f():\n    try:\n        f()\n    except BaseException:\n        pass",
    "a module that is no namespace": "torch.os",
    "torch.load": "torch.load('x')",
    "torch.save": "torch.save(1, 'x')",
    "torch.hub": "torch.hub.load('x', 'y')",
    "torch.jit": "torch.jit.load('x')",
    "torch.compile": "torch.compile(sin)",
    "torch.ops": "torch.ops.load_library('x')",
    "torch.classes": "torch.classes.load_library('x')",
    "torch._C": "torch._C",
    "torch.from_file": "torch.from_file('x', size=1)",
    "from_file of a storage": "zeros(1).untyped_storage().from_file('x')",
    "tofile of an array": "zeros(1).numpy().tofile('x')",
    "functools.wraps": "functools.wraps(sin)",
    "functools.__builtins__": "functools.__builtins__",
    "warnings.sys": "warnings.sys",
    "gc.get_objects": "gc.get_objects()",
    "gc.get_referrers": "gc.get_referrers(sin)",
    "weakref.weakref": "weakref.WeakValueDictionary",
    "copy.copyreg": "copy.copyreg",
    "an alias of a namespace": "t = torch; t.load('x')",
    "__class__": "tensor(1.0).__class__",
    "__subclasses__": "object.__subclasses__()",
    "__mro__": "int.__mro__",
    "__bases__": "int.__bases__",
    "__dict__": "nn.Module.__dict__['forward']",
    "__globals__": "f = lambda: 0\nf.__globals__",
    "__code__": "f = lambda: 0\nf.__code__",
    "__closure__": "f = lambda: 0\nf.__closure__",
    "__func__": "f = zeros(1).backward\nf.__func__",
    "__self__": "len.__self__",
    "__module__": "nn.Module.__module__",
    "__wrapped__": "checkpoint.__wrapped__",
    "__reduce_ex__": "tensor(1.0).__reduce_ex__(2)",
    "__getattribute__": "object.__getattribute__(torch, 'load')",
    "__init__ beside super()": "nn.Module.__init__(nn.Module)",
    "__call__ beside super()": "sin.__call__(zeros(1))",
    "super().__class__": "class A(object):\n    def f(self):\n        return super().__class__",
    "super().__setattr__": "class A(nn.Module):\n    def f(self):\n        super().__setattr__('x', 1)",
    "super().__reduce__": "class A(object):\n    def f(self):\n        return super().__reduce__()",
    "super of somebody's own": "def super():\n    return torch",
    "super as a parameter": "f = lambda super: super().__init__",
    "super as a for-target": "for super in [torch]: pass",
    "super by walrus": "(super := torch)",
    "super as the name of an error": "def f():\n    try:\n        f()\n    except Exception as super:\n        pass",
    "super by global": "def f():\n    global super\n    super = 1",
    "_parameters": "nn.Module()._parameters",
    "_modules": "nn.Module()._modules",
    "_call_impl": "nn.Module()._call_impl",
    "_backward_hooks": "zeros(1)._backward_hooks",
    "_write_file": "zeros(1).untyped_storage()._write_file(1)",
    "the frame of a generator": "(x for x in [1]).gi_frame",
    "the traceback of an error": "def f():\n    try:\n        f()\n    except Exception as e:\n        e.__traceback__",
    "with_traceback": "def f():\n    try:\n        f()\n    except Exception as e:\n        e.with_traceback(None)",
    "__context__": "def f():\n    try:\n        f()\n    except Exception as e:\n        e.__context__",
    "an attribute in an f-string": "log(f'{zeros(1).__class__}')",
    "a name in an f-string": "log(f'{open}')",
    "an attribute in the width of an f-string": "log(f'{1:{zeros(1).__class__}}')",
    "str.format": "'{0.__class__}'.format(zeros(1))",
    "str.format_map": "'{a.__class__}'.format_map({'a': 1})",
    "a default argument": "def f(x=open('x')): pass",
    "a keyword default": "def f(*, x=open('x')): pass",
    "a default of a lambda": "f = lambda x=open('x'): x",
    "a decorator": "@open\ndef f(): pass",
    "a decorator of a class": "@open\nclass A(object): pass",
    "an annotation": "def f(x: open('x')): pass",
    "an annotation of star-args": "def f(*x: open('x'), **y: open('x')): pass",
    "an annotated name": "x: open('x') = 1",
    "star-args": "log(*open('x'))",
    "double-star-args": "log(**open('x'))",
    "a metaclass": "class A(object, metaclass=open): pass",
    "a keyword of a class": "class A(nn.Module, x=1): pass",
    "a base by expression": "class A(nn.Module if 1 else object): pass",
    "a base by call": "class A(type(zeros(1))): pass",
    "a starred base": "class A(*[object]): pass",
    "a base of a builtin": "class A(str): pass",
    "a base of a function": "class A(weakref.ref): pass",
    "the body of a class": "class A(object):\n    x = open('x')",
    "__getattr__": "class A(object):\n    def __getattr__(self, name): return 1",
    "__reduce__": "class A(object):\n    def __reduce__(self): return (log, (1,))",
    "__reduce__ by assignment": "class A(object):\n    __reduce__ = 1",
    "__reduce__ by a for-target": "class A(object):\n    for __reduce__ in [1]: pass",
    "__reduce__ by walrus": "class A(object):\n    x = (__reduce__ := 1)",
    "__reduce__ by with": "class A(object):\n    with no_grad() as __reduce__: pass",
    "__reduce__ by del": "class A(object):\n    del __reduce__",
    "__del__": "class A(object):\n    def __del__(self): pass",
    "__init_subclass__": "class A(object):\n    def __init_subclass__(cls): pass",
    "__slots__": "class A(object):\n    __slots__ = []",
    "__call__ on an object": "x = nn.Module()\nx.__call__ = 1",
    "__class__ on an object": "x = nn.Module()\nx.__class__ = 1",
    "__dict__ by augmented assignment": "x = nn.Module()\nx.__dict__ |= {}",
    "a private parameter": "f = lambda _x: 1",
    "a private def": "def _f(): pass",
    "a private class": "class _A(object): pass",
    "a private name of an error": "def f():\n    try:\n        f()\n    except Exception as _e:\n        pass",
    "global of a vocabulary name": "def f():\n    global tensor\n    tensor = 1",
    "global of __builtins__": "def f():\n    global __builtins__\n    __builtins__ = {}",
    "nonlocal of a vocabulary name": "def f():\n    torch = 1\n    def g():\n        nonlocal torch\n        torch = 2",
    "a vocabulary name by assignment": "torch = 1",
    "a vocabulary name by import": "import os as torch",
    "a vocabulary name by a tuple target": "(log, x) = (1, 2)",
    "a vocabulary name by a comprehension": "[log for log in [1]]",
    "an unknown name in a comprehension": "[open(x) for x in [1]]",
    "an unknown name in the condition of a comprehension": "[x for x in [1] if open(x)]",
    "setting what a namespace holds": "torch.sin = 1",
    "setting it inside another namespace": "torch.nn.functional.relu = 1",
    "deleting what a namespace holds": "del torch.sin",
    "a for-target in a namespace": "for torch.sin in [1]: pass",
    "a with-target in a namespace": "with no_grad() as torch.sin: pass",
    "a tuple target in a namespace": "(torch.sin, x) = (1, 2)",
    "a comprehension target in a namespace": "[0 for torch.sin in [1]]",
    "augmenting what a namespace holds": "math.pi += 1",
    "while": "while True: pass",
    "bytes": "log(b'x')",
    "await": "def f():\n    await f()",
    "an async def": "async def f(): pass",
    "match": "match 1:\n    case 1: pass",
    "a type parameter": "def f[T: open('x')](): pass",
    "a null byte": "x = 1\0",
    "a builtin of Python by a name that is set later": "def f(): return exec('1')\nexec = 1",
    "a builtin as a parameter": "f = lambda open: 1",
    "a builtin as a def": "def getattr(): pass",
    "a builtin as a class": "class vars(object): pass",
    "a builtin as a for-target": "for eval in [1]: pass",
    "a builtin as a with-target": "with no_grad() as setattr: pass",
    "a builtin by walrus": "(globals := 1)",
    "a builtin in a comprehension": "[1 for compile in [1]]",
    "a builtin as a global": "def f():\n    global eval\n    eval = 1",
    "a builtin as the name of an error": "def f():\n    try:\n        f()\n    except Exception as exec:\n        pass",
    "a parameter of a method": "class A(object):\n    def f(self, open): pass",
    "the storage of a tensor": "zeros(1).untyped_storage()",
    "another encoding of a private name": "tensor(1.0).\uff3f\uff3fclass\uff3f\uff3f",
}

GRAPH = "t = fx.experimental.proxy_tensor.make_fx(lambda x: x * 2)(zeros(1))\n"
# What may load, since the case has defined the attribute or holds the object under a name of its own.
STOPPED = {
    "a generator's frame": "class A(object):\n    gi_frame = 1\n(x for x in [1]).gi_frame",
    "a generator's code": "class A(object):\n    gi_code = 1\n(x for x in [1]).gi_code",
    "a frame's builtins": "class A(object):\n    gi_frame = f_builtins = 1\n(x for x in [1]).gi_frame.f_builtins",
    "an error's with_traceback": "class A(object):\n    with_traceback = 1\nValueError().with_traceback(None)",
    "an error's object": "class A(object):\n    obj = 1\nAttributeError().obj",
    "format of a text": "class A(object):\n    format = 1\n'{0.__class__}'.format(zeros(1))",
    "format of text's class": "class A(object):\n    format = 1\nstr.format('{0.__class__}', zeros(1))",
    "encode of a text": "class A(object):\n    encode = 1\n'x'.encode()",
    "mro of a class": "class A(object):\n    mro = 1\nint.mro()",
    "mro of its own class": "class A(object):\n    def f(self):\n        self.mro = 1\nA.mro()",
    "fget of a property": "class A(object):\n    fget = 1\nnn.Module.extra_repr.fget",
    "tofile of an array": "class A(object):\n    tofile = 1\nzeros(1).numpy().tofile('PATH')",
    "from_file of a storage": (
        "class A(object):\n    from_file = 1\ntype(zeros(1).untyped_storage()).from_file('PATH', True, 8)"
    ),
    "share_memory_ of a tensor": "class A(object):\n    share_memory_ = 1\nzeros(1).share_memory_()",
    "compile of a module": "class A(object):\n    compile = 1\nnn.Linear(1, 1).compile()",
    "load of an alias of torch": "class A(object):\n    load = 1\nT = torch\nT.load('PATH')",
    "system of an alias of torch": "class A(object):\n    system = os = 1\nT = torch\nT.os.system('touch PATH')",
    "an attribute of a module that has another": "m = nn.Linear(1, 1)\nm.compile = 1\nnn.Linear(1, 1).compile()",
    "setting on an alias of a class": "M = nn.Module\nM.forward = 1",
    "setting on the class of an object": "t = type(zeros(1))\nt.backward = 1",
    "setting on a class from the vocabulary": "Tensor.backward = 1",
    "setting on a function": "f = checkpoint\nf.forward = 1",
    "setting on a builtin": "f = torch.sin\nf.forward = 1",
    "setting on a method": "f = nn.Module().train\nf.forward = 1",
    "setting on a function of a class": "f = nn.Module.train\nf.forward = 1",
    "setting on what type() is": "type.forward = 1",
    "setting on the log": "log.forward = 1",
    "setting on an exception class": "ValueError.args = 1",
    "setting on the type of a hook": "t = optim.Optimizer.OptimizerPreHook\nt.forward = 1",
    "setting on an alias of a namespace": "T = torch\nT.sin = 1",
    "setting a new name on an alias of a namespace": "T = torch\nT.evil = 1",
    "deleting from a class": "M = nn.Module\ndel M.forward",
    "augmenting a class": "M = nn.Module\nM.training += 1",
    "a for-target on a class": "M = nn.Module\nfor M.forward in [1]: pass",
    "a with-target on a class": "M = nn.Module\nwith no_grad() as M.forward: pass",
    "a tuple target on a class": "M = nn.Module\n(M.forward, x) = (1, 2)",
    "a starred target on a class": "M = nn.Module\n(*M.forward, x) = (1, 2)",
    "a comprehension target on a class": "M = nn.Module\n[0 for M.forward in [1]]",
    "a target inside a def": "def f(M):\n    M.forward = 1\nf(nn.Module)",
    "a target inside the body of a class": "M = nn.Module\nclass A(object):\n    M.forward = 1",
    "a target inside a subclass": "class A(nn.Module):\n    pass\nM = A\nclass B(M):\n    nn.Module.forward = 1",
    "cls of a class method": "class A(nn.Module):\n    pass\ndef f(cls):\n    cls.forward = 1\nf(nn.Linear)",
    "an item of a namespace": "T = torch\nT['sin'] = 1",
    "an item of a class": "M = nn.Module\nM['forward'] = 1",
    "pickle of a class of the case": "class A(object):\n    pass\npickled(A())",
    "pickle of a function of the case": "pickled(lambda: 0)",
    "register_buffer of a dunder": "m = nn.Module()\nm.register_buffer('__class__', zeros(1))",
    "register_parameter of a method": "m = nn.Module()\nm.register_parameter('forward', nn.Parameter(zeros(1)))",
    "add_module of a method": "m = nn.Module()\nm.add_module('train', nn.Module())",
    "ModuleDict of a dunder": "m = nn.ModuleDict({'__class__': nn.Module()})",
    "get_parameter of a dunder": "nn.Module().get_parameter('__dict__')",
    "get_submodule of a dunder": "nn.Module().get_submodule('__class__')",
    "get_buffer of a dunder": "nn.Module().get_buffer('__dict__')",
    "memory that is resized under a tensor": (
        "a = zeros(8).numpy().copy()\nx = torch.from_numpy(a)\na.resize(1, refcheck=False)"
    ),
    "memory that is resized by the function of its class": (
        "a = zeros(8).numpy().copy()\nx = torch.from_numpy(a)\ntype(a).resize(a, 1, refcheck=False)"
    ),
    "the type of a storage, which an override was given": (
        "class A(Tensor):\n    @classmethod\n    def __torch_function__(cls, func, types, args=(), kwargs=None):\n"
        "        found = super().__torch_function__(func, types, args, kwargs or {})\n"
        "        return found.type('this') if 'Storage' in str(found) else found\n"
        "deepcopy(zeros(2).as_subclass(A))\nraise_now = [][0]"
    ),
    "how a copy is made, by an override": (
        "class A(Tensor):\n    @classmethod\n    def __torch_function__(cls, func, types, args=(), kwargs=None):\n"
        "        return (lambda: checkpoint), (), {'forged': 1}\n"
        "copies = [torch.Tensor.as_subclass(zeros(1), A)]\ncopy.copy(copies[0])\ndeepcopy(copies[0])\n"
        "pickled(copies[0])"
    ),
    "the graph of what was traced": GRAPH + "class A(object):\n    nodes = graph = 1\nt.graph.nodes",
    "the source of what was traced": GRAPH + "class A(object):\n    code = 1\nt.code",
    "code in what was traced": GRAPH + "class A(object):\n    recompile = 1\nt.recompile()",
    "a copy of a namespace": "deepcopy(torch)",
    "a copy of a namespace by pickle": "pickled(torch)",
    "a builtin in what is compiled": "def f(x):\n    return input(x)\ncompiled(f)(zeros(1))",
    "three arguments for type": "type('A', (object,), {})",
    "a class of type": "T = type\nclass A(T):\n    pass",
    "requires_grad_ of a class": "Tensor.requires_grad_(Tensor)",
    "a length that is text": "torch.func.rearrange(zeros(4), '(a b) -> a b', a=\"__import__('os').mkdir('PATH')\")",
}

MIXIN = "class Extra(object):\n    NAME = 1\nclass A(Base, Extra):\n    pass\n"
OVERRIDE = "class A(Base):\n    def NAME(self, *args, **kwargs):\n        return super().NAME(*args, **kwargs)\n"
STORAGE = "Base = type(zeros(1).untyped_storage())\n"
ARRAY = "Base = type(zeros(1).numpy())\n"
IDENTITY = (
    "d = nn.ParameterDict()\nd['__reduce_ex__'] = lambda p: (lambda: f, (), (None, {'_key_to_attr': lambda k: k}))\n"
)
HELD = "held = [checkpoint]\nmade = lambda version: (lambda: held[0], (), (None, {'forged': 1}))\n"
TAKEN = (
    "box = []\nclass M(nn.Module):\n    def register_parameter(self, name, value):\n        box.append(value)\n"
    "def taken(prune):\n    try:\n        prune(M())\n    except (KeyError, AttributeError, TypeError):\n"
    "        pass\n    return box[0]\n"
)
NAMED = (
    "class Names(nn.Module):\n    def __iter__(self):\n        yield ['__dict__']\n"
    "class M(nn.Module):\n    all_weights = nn.RNN.all_weights\nm = M()\n"
)
UNBOUND = (
    "Base = nn.ParameterDict\nclass A(Base):\n    def get(self):\n        return super().__getitem__\nget = A.get(A)\n"
)

# Ways out that were found and are still open; each is to move up when it is closed.
FOUND = {
    "a class of a storage, by an own name in another base": (
        STORAGE + MIXIN.replace("NAME", "from_file") + "A.from_file('PATH', True, 8)"
    ),
    "a class of a storage, by super": (
        STORAGE + OVERRIDE.replace("NAME", "from_file") + "A.from_file(A(0), 'PATH', True, 8)"
    ),
    "a class of an array, by super": ARRAY + OVERRIDE.replace("NAME", "dump") + "A((3,)).dump('PATH')",
    "format of text, by an own name in another base": (
        "Base = str\n" + MIXIN.replace("NAME", "format") + "A('{0.__globals__[__name__]}').format(checkpoint)"
    ),
    "the compiler, by super": (
        "Base = nn.Linear\n" + OVERRIDE.replace("NAME", "compile") + "A(1, 1).compile(backend=lambda graph, x: graph)"
    ),
    "shared memory, by super": (
        "Base = Tensor\n" + OVERRIDE.replace("NAME", "share_memory_") + "zeros(1).as_subclass(A).share_memory_()"
    ),
    "with_traceback, by super": (
        "Base = ValueError\n" + OVERRIDE.replace("NAME", "with_traceback") + "A().with_traceback(None)"
    ),
    "any attribute as a key of a ParameterDict": "nn.ParameterDict()['__class__']",
    "any method as a key of a ParameterDict": "nn.ParameterDict()['__reduce_ex__'](2)",
    "setting any attribute as a key of a ParameterDict": "d = nn.ParameterDict()\nd['__reduce_ex__'] = 1",
    "an operating system by a ParameterDict": (
        "class B(object):\n    mkdir = 1\nf = lambda: 0\n" + UNBOUND + IDENTITY + "deepcopy(d)\n"
        "get(f, '__globals__')['__builtins__']['__import__']('os').mkdir('PATH')"
    ),
    "a class with dunders, by the type of a class": "T = type(int)\nT('A', (object,), {'__getattr__': lambda s, n: 1})",
    "any attribute of a shared class, by deepcopy": (
        "T = type(int)\nA = T('A', (object,), {'__reduce_ex__': lambda s, p: (lambda: sin_, (), (None, {'x': 1}))})\n"
        "sin_ = checkpoint\ndeepcopy(A())"
    ),
    "deleting from an alias of a namespace": "T = torch\ndel T.sinc",
    "a class as the self of Function.mark_dirty": "autograd.Function.mark_dirty(autograd.Function, 1)",
    "a class as the self of save_for_backward": "autograd.Function.save_for_backward(autograd.Function, zeros(1))",
    "a class as the self of Module.train": "nn.Module.train(nn.Module, False)",
    "a member that all cases share": "p = torch.utils.checkpoint.CheckpointPolicy(0)\np.forward = 1",
    "an object at any address, as the element of an array": (
        "T = type(zeros(1).numpy())\nT((1,), 'O', tensor([id(checkpoint)]).numpy())[0]"
    ),
    "a number of numpy": "type(zeros(1).numpy()[0])(1)",
    "the table of what deepcopy has copied": "deepcopy([1.0], {})",
    "a copy made by a module in place of a method": (
        HELD
        + "class Sub(nn.Module):\n    def forward(self, table):\n        table[id(None)] = {'__reduce_ex__': made}\n"
        "        return self\nm = nn.Module()\nm.register_module('__deepcopy__', Sub())\nn = nn.Module()\nn.a = m\n"
        "n.b = functools.partial(sum)\nx = optim.swa_utils.AveragedModel(n).module\ndeepcopy(x.b)\n"
        "raise_now = [][0]"
    ),
    "any attribute of a module by prune": TAKEN + "taken(lambda m: nn.utils.prune.identity(m, '__dict__'))",
    "any attribute of a module by prune, named": TAKEN
    + "taken(lambda m: nn.utils.prune.identity(name='train', module=m))",
    "any attribute of a module by a mask": (
        TAKEN + "taken(lambda m: nn.utils.prune.custom_from_mask(m, '__dict__', ones(1)))"
    ),
    "a method of a class by a parametrization": (
        "class P(nn.Module):\n    is_tensor = True\n    original = zeros(1)\nm = nn.Linear(1, 1)\n"
        "m.parametrizations = nn.ModuleDict({'reset_parameters': P()})\n"
        "parametrize.remove_parametrizations(m, 'reset_parameters', False)"
    ),
    "any attribute of a class of distributions": (
        "class P(object):\n    def expand(self, *shape):\n        return 'forged'\n"
        "d = distributions.Geometric(tensor([0.5]))\nd.probs = P()\nd.expand([1], distributions.Bernoulli)"
    ),
    "any attribute of a module by a method of pruning": (
        TAKEN + "taken(lambda m: nn.utils.prune.L1Unstructured.apply(m, '__dict__', amount=1))"
    ),
    "any attribute by weights that a module of its own names": NAMED
    + "m.add_module('_all_weights', Names())\nm.all_weights",
    "any attribute by weights that a dict of modules names": (
        NAMED.replace("M(nn.Module)", "M(nn.ModuleDict)") + "m.update({'_all_weights': Names()})\nm.all_weights"
    ),
    "any attribute by weights that a call names": (
        "class Names(Tensor):\n    def __iter__(self):\n        yield ['__dict__']\n"
        "class M(nn.Module):\n    all_weights = nn.RNN.all_weights\n    def forward(self):\n"
        "        self.all_weights\n        return zeros(1)\n"
        "func.functional_call(M(), {'_all_weights': zeros(1).as_subclass(Names)}, ())"
    ),
    "what is anywhere in memory, as an array": (
        "N = type(torch)\nwhere = {'shape': (2,), 'typestr': '<f4', 'data': (id(log), False), 'version': 3}\n"
        "zeros(2).numpy() + N('n', {'__array_interface__': where})"
    ),
    "an operation that reads what another object has": "type(torch.ops.aten.alias)('a::b', 'b', checkpoint, [])",
    "an operation that any case may find": (
        "made = type(custom_op(lambda x: x * 1, '(Tensor x) -> Tensor'))\n"
        "made('aten', 'alias.own', '(Tensor x, int y) -> Tensor', sin)"
    ),
    "a compiler of text by a tracer": (
        "box = []\ndef made(*args, **others):\n    box.append(others['_compilation_unit'])\ndef taken():\n    try:\n"
        "        jit.trace(nn.Linear(1, 1), ones(1), _module_class=made)\n    except AttributeError:\n        pass\n"
        "    return box[0]\ntaken()"
    ),
    "a constraint of distributions": "distributions.constraints.real.check = lambda v: zeros(1).bool()",
    "the table of constraints": "distributions.biject_to.register = lambda *a: 1",
    "the mode of the compiler's tensors": (
        "class Own(object):\n    fake_mode = 1\n"
        "fx.experimental.proxy_tensor.make_fx(lambda x: [x.fake_mode, x * 1][1], tracing_mode='fake')(ones(1))"
    ),
    "hooks of others": (
        "class Own(object):\n    hooks_dict_ref = 1\nnn.Linear(1, 1).register_forward_hook(log).hooks_dict_ref()"
    ),
    "an overload of an operation": "o = torch.ops.aten.alias\no.default = lambda *a, **k: zeros(3)",
    "an attribute of an overload": "o = torch.ops.aten.div.Scalar_mode\no.name = lambda *a, **k: zeros(3)",
    "tracing in a thread": "in_thread(lambda: fx.experimental.proxy_tensor.make_fx(lambda t: t * 2)(zeros(1)))",
    "tracing in a thread what was given before": (
        "trace = fx.experimental.proxy_tensor.make_fx(lambda t: t * 2)\nin_thread(trace, zeros(1))"
    ),
    "jit.trace in a thread": "in_thread(lambda: jit.trace(lambda t: t * 2, zeros(1)))",
    "what is anywhere in memory, as a segment": (
        "torch.segment_reduce(zeros(1), 'sum', offsets=tensor([8, 9]), unsafe=True, initial=0.0)"
    ),
    "a builtin that is augmented in a class": "class A(object):\n    eval -= 1",
    "a builtin that is a global name of a class in a method": (
        "class A(object):\n    def f(self):\n        class B(object):\n            global eval\n            eval = 1"
    ),
    "an attribute that is only augmented": "x = ones(1)\nx.share_memory_ -= 1",
    "an attribute of a traced module that is only augmented": "m = jit.trace(nn.Linear(1, 1), ones(1))\nm.save -= 1",
    "the node of a symbolic number that is augmented": (
        "def f(x):\n    n = x.shape[0]\n    n.node += 1\n    return x * 1\n"
        "fx.experimental.proxy_tensor.make_fx(f, tracing_mode='symbolic')(ones(5))"
    ),
    "a line that only Python sees": "x = 1 # a\rimport os",
    "the type that a def returns": "def f() -> __import__('os').mkdir('PATH'): pass",
}

SHARED: tuple[Any, ...] = (
    torch.Tensor, torch.nn.Module, torch.nn.Linear, torch.nn.Parameter, torch.nn.ParameterDict, torch.autograd.Function,
    torch.optim.Optimizer, torch.optim.SGD, torch.utils.checkpoint.checkpoint, torch.nn.functional.relu,
    torch.nn.Module.train, torch.distributions.Bernoulli, torch.utils.checkpoint.CheckpointPolicy.MUST_SAVE,
)  # fmt: skip


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with running_engine() as engine:
        engine.run({"n": 1, "device": "cpu", "dtype": "float32", "file": "t.yaml", "steps": []})
        yield engine


# What goes through, and is undone when the case ends.
TAKEN_BACK = {text for name, text in FOUND.items() if name.startswith("a class as the self of ")}


def shared(engine: Engine) -> list[Any]:
    """Return what all cases share and a case could change."""
    spaces = [value for value in engine.runners["cpu"].offered.values() if isinstance(value, Namespace)]
    inner = [value for space in spaces for value in vars(space).values() if isinstance(value, Namespace)]
    return [*SHARED, *spaces, *inner]


@contextmanager
def unchanged(engine: Engine) -> Iterator[None]:
    """Whatever is tried in it: afterwards the shared objects are as before, and no file is there."""
    owners = shared(engine)
    offered = engine.runners["cpu"].offered
    before, names = [dict(vars(owner)) for owner in owners], dict(offered)
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.chdir(directory)
        try:
            yield
        finally:
            made = list(Path(directory).iterdir())
            changed = [owner for owner, held in zip(owners, before, strict=True) if dict(vars(owner)) != held]
            for owner, held in zip(owners, before, strict=True):
                restore(owner, held)
            renamed = offered.keys() ^ names.keys() | {name for name in names if offered.get(name) is not names[name]}
            offered.clear()
            offered.update(names)
    assert (changed, renamed, made) == ([], set(), [])


def restore(owner: Any, held: dict[str, Any]) -> None:
    """Put back the attributes of one object, so that what one test breaks is whole for the next."""
    if isinstance(owner, type):
        for name in [name for name in vars(owner) if name not in held]:
            delattr(owner, name)
        for name, value in held.items():
            if vars(owner).get(name) is not value:
                setattr(owner, name, value)
    elif dict(vars(owner)) != held:
        vars(owner).clear()
        vars(owner).update(held)


def tried(engine: Engine, text: str, *more: str) -> str:
    """Return how far a case with this step comes: `refused` at load, or the status that it ends with."""
    path = str(Path.cwd() / "made")
    steps = [text.replace("PATH", path), *more]
    listed = "\n".join(f"- {json.dumps(step)}" for step in steps) + "\n- expect: {int(2): 2}\n"
    try:
        case = case_of(listed)
    except CaseFileError as error:
        return "refused" if "YAML" not in str(error) else "misspelt"
    return str(engine.run(request_of(case))["status"])


@each("text", REFUSED.values(), ids=REFUSED)
def test_what_leads_out_of_the_language_is_refused_at_load(text: str) -> None:
    with pytest.raises(CaseFileError) as caught:
        case_of(f"- {json.dumps(text)}\n- expect: {{int(2): 2}}\n")
    assert all("YAML" not in problem.message for problem in caught.value.problems)


@each("text", STOPPED.values(), ids=STOPPED)
def test_what_only_running_shows_is_stopped_with_no_effect(engine: Engine, text: str) -> None:
    with unchanged(engine):
        assert tried(engine, text) in ("refused", "error")


@each("text", STOPPED.values(), ids=STOPPED)
def test_what_is_stopped_in_a_case_is_stopped_in_a_hook_too(engine: Engine, text: str) -> None:
    hook = f"def hook(grad):\n{textwrap.indent(text, '    ')}\n"
    backward = "x = ones(1, requires_grad=True)\nx.register_hook(hook)\nx.backward()"
    with unchanged(engine):
        assert tried(engine, hook + backward) in ("refused", "error")


@each("text", FOUND.values(), ids=FOUND)
def test_a_way_out_that_was_found_is_closed(engine: Engine, text: str) -> None:
    with unchanged(engine):
        assert tried(engine, text) in ("refused", "error") or text in TAKEN_BACK


EXPRESSIONS = {
    "a name": "open('x')",
    "a dunder": "a.__class__",
    "a worker's name": "__readable__(a, 'x')",
    "__builtins__": "__builtins__",
    "__builtins__ with blanks": " __builtins__ ",
    "__name__": "__name__",
    "a lambda": "(lambda: open)()",
    "a default of a lambda": "(lambda x=open: x)()",
    "a comprehension": "[open for x in [1]]",
    "an f-string": "f'{a.__class__}'",
    "a private walrus": "(__builtins__ := a)",
    "a walrus over the vocabulary": "(torch := a)",
    "a statement": "a = 1",
    "two statements": "a; a",
    "an import": "import os",
    "the copy that stands for a module": "nn.Module()._module",
}


@each("text", EXPRESSIONS.values(), ids=EXPRESSIONS)
@each(
    "place", ["{%s: 1}", "{a: {value: %s}}", "{a: %s}", "{a: [%s]}", "{a: {grad: %s}}", "{a: {grad: {value: %s}}}",
              "{a: {is: %s}}", "{a: {is_not: %s}}", "{a: {shares_storage: %s}}", "{a: {not_shares_storage: %s}}",
              "{a: {view_of: %s}}", "{a: {value: {torch: {'>=1.13': %s, '<1.13': 1}}}}"],
)  # fmt: skip
def test_an_expression_is_held_to_the_language_wherever_it_stands(text: str, place: str) -> None:
    with pytest.raises(CaseFileError) as caught:
        case_of(f"- a = zeros(1)\n- expect: {place % json.dumps(text)}\n")
    assert all("YAML" not in problem.message for problem in caught.value.problems)


@each(
    "text", ["[0 for M.forward in [1]]", "[0 for T.sin in [1]]", "str.format('{0.__class__}', a)", "T.system",
             "(x for x in [1]).gi_frame", "m.compile()"],
)  # fmt: skip
def test_an_expression_can_change_no_more_than_a_step(engine: Engine, text: str) -> None:
    steps = f"""
    - a = zeros(1)
    - M = nn.Module
    - T = torch
    - m = nn.Linear(1, 1)
    - "class A(object):\\n    gi_frame = format = system = compile = 1"
    - expect: {{a: {{value: {json.dumps(text)}}}}}
    """
    with unchanged(engine):
        outcome = engine.run(request_of(case_of(steps)))
        assert outcome["status"] == "fail"
        assert outcome["failures"][0]["expected"] == "no error"


def test_what_is_set_on_a_type_of_pythons_would_be_set_on_its_class() -> None:
    with pytest.raises(AttributeError, match="which all cases may share"):
        writable(typing.Callable[[int], int])


def test_an_object_of_the_case_is_its_own_to_change(engine: Engine) -> None:
    text = """
class A(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 2
    def forward(self, x):
        return x * self.scale
def f(self, x):
    return x * self.scale + 1
m = A()
m.scale = 3
A.forward = f
f.note = 5
log(m(ones(1)), m.scale, f.note)
del m.scale
"""
    steps = f"- {json.dumps(text)}\n- expect: {{log: [[[4.0], 3, 5]]}}\n"
    assert engine.run(request_of(case_of(steps)))["status"] == "pass"


COMPILED = {
    "layer": "a = nn.Linear(1, 1)\na.mine = 3.0\ny = compiled(lambda t: t * a.mine, fullgraph=True)(x)",
    "layer that counts": (
        "a = nn.Linear(1, 1)\na.mine = 2.0\ndef f(t):\n    a.mine += 1.0\n    return t * a.mine\n"
        "y = compiled(f, fullgraph=True)(x)"
    ),
    "tensor": "x.mine = 3.0\ny = compiled(lambda t: t * t.mine, fullgraph=True)(x)",
    "context": """
class Own(Function):
    @staticmethod
    def forward(ctx, t):
        ctx.mine = 3.0
        return t * 1
    @staticmethod
    def backward(ctx, g):
        return g * ctx.mine
y = compiled(lambda t: Own.apply(t), fullgraph=True)(x)
""",
}


@pytest.mark.parametrize("owner", COMPILED)
def test_an_attribute_that_a_case_has_given_is_read_within_the_graph(engine: Engine, owner: str) -> None:
    setting, backward = "- x = tensor([1.0], requires_grad=True)\n", "- y.backward()\n- expect: {x: {grad: 3.0}}\n"
    outcome = engine.run(request_of(case_of(f"{setting}- {json.dumps(COMPILED[owner])}\n{backward}")))
    assert outcome["status"] == "pass", outcome


def test_a_layer_shows_nothing_of_its_class_beside_the_vocabulary(engine: Engine) -> None:
    """Also where the case defines the name elsewhere, which is all that the parent can check."""
    scope = {"__builtins__": engine.runners["cpu"].offered, "__name__": MODULE}
    places = (torch.nn.modules, torch.nn.parameter, torch.autograd.function)
    classes = {each for place in places for each in vars(place).values() if isinstance(each, type)}
    shown = []
    for cls in classes:
        for name in {found for found in dir(cls) if not found.startswith("_")} - vocabulary.ATTRIBUTES.keys():
            with suppress(AttributeError):
                eval(compile_text(f"owner.{name}", "eval"), {**scope, "owner": cls})
                shown.append(f"{cls.__name__}.{name}")
    assert len(classes) > 150
    assert not shown


BASES = {base.__name__: base for base in bases()}


@pytest.mark.parametrize("name", sorted(BASES))
def test_a_class_of_a_case_shows_nothing_of_its_base_beside_the_vocabulary(engine: Engine, name: str) -> None:
    """Also where the case defines the name elsewhere, which is all that the parent can check."""
    offered, base = engine.runners["cpu"].offered, BASES[name]
    scope = {"__builtins__": offered, "__name__": MODULE, "Base": base}
    exec(compile_text("class A(Base):\n    mine = 1", "exec"), scope)
    found = {each for place in (base, type(base)) for each in dir(place) if not each.startswith("_")}
    hidden = found - vocabulary.ATTRIBUTES.keys()
    for attribute in hidden:
        with pytest.raises(AttributeError, match="that this case has given it"):
            eval(compile_text(f"A.{attribute}", "eval"), scope)
    assert eval(compile_text("A.mine", "eval"), scope) == 1


def test_no_namespace_holds_a_module(engine: Engine) -> None:
    offered = engine.runners["cpu"].offered
    spaces = {name: value for name, value in offered.items() if isinstance(value, Namespace)}
    assert [name for name, value in offered.items() if isinstance(value, types.ModuleType)] == []
    for path, space in spaces.items():
        assert [f"{path}.{name}" for name, value in vars(space).items() if isinstance(value, types.ModuleType)] == []
