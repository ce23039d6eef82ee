"""The hooks, and the attempts that are no combinations, for the corpus of `escapes.py`."""

from __future__ import annotations

# Methods that Python calls by itself, and what has it call them.
DUNDERS = {
    "__del__": "x = A()\ndel x",
    "__getattr__": "A().note",
    "__getattribute__": "A().note",
    "__setattr__": "A().note = 1",
    "__delattr__": "x = A()\ndel x.note",
    "__eq__": "A() == 1",
    "__lt__": "sorted([A(), A()])",
    "__hash__": "{A(): 1}",
    "__bool__": "not A()",
    "__str__": "str(A())",
    "__repr__": "repr(A())",
    "__format__": "f'{A()}'",
    "__int__": "int(A())",
    "__float__": "float(A())",
    "__index__": "[1][A()]",
    "__add__": "A() + 1",
    "__radd__": "1 + A()",
    "__iadd__": "x = A()\nx += 1",
    "__neg__": "-A()",
    "__contains__": "1 in A()",
    "__setitem__": "A()[0] = 1",
    "__delitem__": "x = A()\ndel x[0]",
    "__next__": "next(A())",
    "__reversed__": "reversed(A())",
    "__round__": "round(A())",
    "__new__": "A()",
    "__init_subclass__": "class B(A): pass",
    "__set_name__": "class B(object):\n    x = A()",
    "__get__": "class B(object):\n    x = A()\nB().x",
    "__set__": "class B(object):\n    x = A()\nB().x = 1",
    "__class_getitem__": "A[1]",
    "__array__": "torch.tensor(A())",
    "__torch_dispatch__": "zeros(1).as_subclass(A)\nA.__torch_dispatch__(1)",
}
# Methods that copies and pickle look for, and what they have to return to be of use.
OF_COPIES = {
    "__reduce__": "(log, ('gained',))",
    "__reduce_ex__": "(log, ('gained',))",
    "__deepcopy__": "log('gained')",
    "__copy__": "log('gained')",
    "__getstate__": "log('gained')",
}
NOT_OF = {"copy.copy": {"__deepcopy__"}, "deepcopy": {"__copy__"}, "pickled": {"__deepcopy__", "__copy__"}}
# How an object can come to have one.
WAYS_TO_GIVE = {
    "in a class": "class A(object):\n    def HOOK(self, *args):\n        return GIVEN\nCOPY(A())",
    "in the body of a class": "class A(nn.Module):\n    HOOK = lambda self, *args: GIVEN\nCOPY(A())",
    "on a class": "class A(object):\n    pass\nA.HOOK = lambda self, *args: GIVEN\nCOPY(A())",
    "by a loop in a class": "class A(object):\n    for HOOK in [lambda self, *args: GIVEN]: pass\nCOPY(A())",
    "by the type of a class": "COPY(type('A', (object,), {'HOOK': lambda self, *args: GIVEN})())",
}

BEFORE = "class Own(object):\n    gi_frame = f_builtins = f_globals = f_back = gi_code = gi_yieldfrom = tb_frame = 1\n"
FORMAT = "class Own(object):\n    format = format_map = 1\n"
FAILING = "def f():\n    try:\n        zeros(2).view(3)\n    except RuntimeError as e:\n        {}\nf()"
OVERRIDE = (
    "class A(Tensor):\n    @classmethod\n    def __torch_function__(cls, func, types, args=(), kwargs=None):\n"
    "        {}\nzeros(1).as_subclass(A).sin()"
)
# A number that is a tensor, for which a method of the case answers: its text, and what it is compared and added with.
NUMBER = """\
class Number(Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        name = str(func)
        if '__format__' in name or '__repr__' in name:
            return {text}
        if '__index__' in name or '__hash__' in name:
            return 1
        return args[0] if 'add' in name or 'sub' in name else False
n = torch.ones(1).as_subclass(Number)
"""
LINES = '"1)\\n    eval(" + repr(CODE) + ")\\n    (0"'
# A tensor that keeps what is augmented by it.
KEPT = """\
kept = []
class Keeper(Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kept.append(args[1])
        return 1
n = torch.ones(1).as_subclass(Keeper)
"""
# Steps without CODE call a function or read what they should not: they say `gained` by themselves.
SINGLE = {
    "a frame": {
        "of a generator": BEFORE + "(x for x in [1]).gi_frame.f_builtins['eval'](CODE)",
        "of a generator, its globals": BEFORE + "(x for x in [1]).gi_frame.f_globals['__builtins__']['eval'](CODE)",
        "of what runs a generator": (
            BEFORE + "def f():\n    yield g.gi_frame.f_back.f_builtins['eval'](CODE)\ng = f()\nlist(g)"
        ),
        "of a generator in another": (
            BEFORE + "def f():\n    yield from (x for x in [1])\ng = f()\nnext(g)\ng.gi_yieldfrom.gi_frame"
            ".f_builtins['eval'](CODE)"
        ),
        "of an error": BEFORE + FAILING.format("e.__traceback__.tb_frame.f_builtins['eval'](CODE)"),
        "of an error before it": BEFORE + FAILING.format(
            "try:\n            zeros(2).view(5)\n        except RuntimeError as d:\n"
            "            d.__context__.__traceback__.tb_frame.f_builtins['eval'](CODE)"
        ),
        "of the error that a generator is thrown": BEFORE + (
            "def f():\n    try:\n        yield 1\n    except ValueError as e:\n"
            "        e.__traceback__.tb_frame.f_builtins['eval'](CODE)\ng = f()\nnext(g)\nlist([g.throw(ValueError())])"
        ),
        "of a function that is traced": BEFORE + (
            "def f(x):\n    (y for y in [1]).gi_frame.f_builtins['eval'](CODE)\n    return x * 1\n"
            "fx.experimental.proxy_tensor.make_fx(f)(ones(1))"
        ),
        "of a coroutine": "async def f():\n    pass\nf().cr_frame.f_builtins['eval'](CODE)",
    },
    "a closure": {
        "of its own": "x = 1\ndef f():\n    y = log\n    return lambda: y\nf().__closure__[0].cell_contents('gained')",
        "of a function of torch": "log('gained', once_differentiable.__code__.co_consts)",
        "code that is replaced": (
            "f = lambda: 0\nf.__code__ = (lambda: log('gained')).__code__\nf()"
        ),
        "defaults that are replaced": "f = lambda x=1: x\nf.__defaults__ = (2,)\nlog('gained', f())",
        "globals that are written": "f = lambda: 0\nf.__globals__['__builtins__']['gained'] = 1\nlog('gained')",
    },
    "a format": {
        "of text": FORMAT + "log('gained' + '{0.__class__}'.format(zeros(1)))",
        "of text's class": FORMAT + "log('gained' + str.format('{0.__class__}', zeros(1)))",
        "of text by a mapping": FORMAT + "log('gained' + '{a.__class__}'.format_map({'a': zeros(1)}))",
        "of text through map": FORMAT + "log('gained', *map('{0.__class__}'.format, [zeros(1)]))",
        "of text through partial": FORMAT + "log('gained' + partial('{0.__class__}'.format, zeros(1))())",
        "of text as a key": FORMAT + "log('gained', sorted([zeros(1)], key='{0.__class__}'.format))",
        "of text through an alias": FORMAT + "f = '{0.__class__}'.format\nlog('gained' + f(zeros(1)))",
        "of text in a hook": FORMAT + "x = ones(1, requires_grad=True)\nx.register_hook('{0.__class__}'.format)\n"
                                      "x.sum().backward()\nlog('gained')",
        "of a builtin": "log('gained' + format(zeros(1), ''))",
        "in a comprehension": FORMAT + "log('gained', [s.format(zeros(1)) for s in ['{0.__class__}']])",
    },
    "an override": {
        "that walks from what is called": (
            OVERRIDE.format("func.__class__.__mro__[-1].__subclasses__()\n        log('gained')")
        ),
        "that walks from the classes": OVERRIDE.format("types[0].__mro__[-1].__subclasses__()\n        log('gained')"),
        "that walks from its own": OVERRIDE.format("cls.__init__.__objclass__\n        log('gained')"),
        "that takes the globals of super's": OVERRIDE.format(
            "super().__torch_function__.__func__.__globals__['__builtins__']['eval'](CODE)"
        ),
        "that sets on what is called": OVERRIDE.format("types[0].note = 1\n        log('gained' + str(cls.note))"),
        "that names what is called": OVERRIDE.format("log('gained' + func.__name__)"),
    },
    "a class": {
        "of a metaclass": "class A(object, metaclass=type): pass\nlog('gained')",
        "by three arguments": "log('gained', type('A', (object,), {}))",
        "of type": "T = type\nclass A(T): pass\nlog('gained')",
        "of the class of a class": "class A(type(object)): pass\nlog('gained')",
        "of text": "class A(str): pass\nlog('gained')",
        "of a number": "class A(int): pass\nlog('gained')",
        "of a function of torch": "class A(torch.Size): pass\nlog('gained')",
        "whose name is another's": "class A(object):\n    __qualname__ = 'os.path'\nlog('gained')",
        "whose module is another's": "class A(object):\n    __module__ = 'torch.nn'\nlog('gained')",
        "with slots": "class A(object):\n    __slots__ = ['x']\nlog('gained')",
        "whose bases change": "class A(object): pass\nclass B(object): pass\nA.__bases__ = (B,)\nlog('gained')",
        "of an object that changes": (
            "class A(object): pass\nclass B(object): pass\nx = A()\nx.__class__ = B\nlog('gained')"
        ),
        "behind an object": "class A(object): pass\nx = A()\nx.__dict__['y'] = 1\nlog('gained')",
        "of a module, its __setattr__": "nn.Module.__setattr__(nn.Linear(1, 1), 'note', 1)\nlog('gained')",
        "of all, its __setattr__": "object.__setattr__(nn.Linear(1, 1), 'note', 1)\nlog('gained')",
        "of an error, with its state": "ValueError().__setstate__({'note': 1})\nlog('gained')",
    },
    "a module in a namespace": {
        name: f"{path}.sys.modules['builtins'].eval(CODE)"
        for name, path in {
            "torch": "torch",
            "torch.nn.functional": "F.torch",
            "optim": "optim.lr_scheduler.torch",
            "autograd": "autograd.torch",
            "copy": "copy.copyreg.copy_reg",
            "functools": "functools.GenericAlias.functools",
            "warnings": "warnings",
            "checkpoint": "torch.utils.checkpoint.torch",
            "weakref": "weakref",
            "func": "func.torch",
            "distributions": "distributions.torch.torch",
            "linalg": "linalg.torch",
            "gc": "gc",
            "math": "math",
            "types": "types._sys.modules['builtins'] and types",
            "library": "library",
        }.items()
    },
    "a function that isn't offered": {
        name: f"{call}\nlog('gained')"
        for name, call in {
            "torch.save": "torch.save(1, 'PLACE/made')",
            "torch.load": "torch.load('PLACE/secret')",
            "torch.from_file": "torch.from_file('PLACE/secret', size=1)",
            "torch.hub": "torch.hub.set_dir('PLACE')",
            "torch.ops": "torch.ops.load_library('PLACE/secret')",
            "torch.classes": "torch.classes.load_library('PLACE/x')",
            "jit.load": "jit.load('PLACE/secret')",
            "jit.save": "jit.save(jit.trace(sin, zeros(1)), 'PLACE/made')",
            "tofile": "zeros(1).numpy().tofile('PLACE/made')",
            "dump": "zeros(1).numpy().dump('PLACE/made')",
            "numpy's save": "type(zeros(1).numpy()).save('PLACE/made')",
            "share_memory_": "zeros(1).share_memory_()",
            "shared storage": "zeros(1).untyped_storage()._share_filename_cpu_()",
            "filename of storage": (
                "zeros(1).untyped_storage().from_file('PLACE/secret', False, 1)"
            ),
            "compile": "torch.compile(sin)(zeros(1))",
            "library.Library": "library.Library('aten', 'IMPL')",
            "get_objects": "gc.get_objects()",
            "get_referrers": "gc.get_referrers(log)",
            "finalize": "weakref.finalize(log, log)",
            "simplefilter": "warnings.simplefilter('ignore')",
            "showwarning": "warnings.showwarning = log",
            "update_wrapper": "functools.update_wrapper(lambda: 0, sin)",
            "lru_cache": "functools.lru_cache(sin)",
            "profiler": "autograd.profiler.profile().export_chrome_trace('PLACE/made')",
            "symbolic_trace": "fx.symbolic_trace(sin)",
            "Interpreter": "fx.Interpreter(1)",
            "DataLoader": "torch.utils.data.DataLoader([1], num_workers=1)",
            "spawn": "torch.multiprocessing.spawn(sin)",
            "init_process_group": "torch.distributed.init_process_group('gloo', init_method='file://PLACE/made')",
            "cpp_extension": "torch.utils.cpp_extension.load('x', ['PLACE/secret'])",
            "set_default_device": "torch.set_default_device('meta')",
            "set_printoptions": "torch.set_printoptions(3)",
            "Library.impl": "library.impl('aten::sin', 'CPU')(sin)",
            "FunctionType": "types.FunctionType(sin, {})",
            "ModuleType": "types.ModuleType('x')",
            "CodeType": "types.CodeType()",
            "SimpleNamespace": "types.SimpleNamespace(x=1)",
        }.items()
    },
    "text that is written from a number": {
        "of dimensions": NUMBER.format(text=LINES) + (
            "class A(Tensor):\n    @classmethod\n    def __torch_function__(cls, func, types, args=(), kwargs=None):\n"
            "        if '__get__' in str(func): return n\n"
            "        return super().__torch_function__(func, types, args, {})\n"
            "func.rearrange(torch.ones(2).as_subclass(A), '... -> ...')"
        ),
        "of dimensions that a class has": NUMBER.format(text=LINES) + (
            "class A(Tensor):\n    ndim = n\nfunc.rearrange(torch.ones(2).as_subclass(A), '... -> ...')"
        ),
        "of dimensions of what is stacked": NUMBER.format(text=LINES) + (
            "class A(Tensor):\n    ndim = n\n    @classmethod\n"
            "    def __torch_function__(cls, func, types, args=(), kwargs=None):\n        return args[0][0]\n"
            "func.rearrange([torch.ones(2).as_subclass(A)], '... -> ...')"
        ),
    },
    "what is augmented": {
        "a builtin, in a class": KEPT + "class A(object):\n    eval -= n\nkept[0](CODE)",
        "a builtin, in a class in a function": (
            KEPT + "def f():\n    class A(object):\n        eval -= n\n    kept[0](CODE)\nf()"
        ),
        "a method of a traced module": (
            KEPT + "m = jit.trace(nn.Linear(1, 1), ones(1))\nm.save -= n\nkept[0]('PLACE/made')\nlog('gained')"
        ),
        "a method of a tensor": KEPT + "x = ones(1)\nx.share_memory_ -= n\nlog('gained', kept)",
        "globals of a function": (
            KEPT + "f = lambda: 0\ntry:\n    f.__globals__ -= n\nexcept AttributeError:\n    pass\n"
            "kept[0]['__builtins__']['eval'](CODE)"
        ),
    },
    "text beside a symbolic number": {
        name: (
            f"def f(x):\n    return x * {number}\n"
            "fx.experimental.proxy_tensor.make_fx(f, tracing_mode='symbolic')(ones(5))"
        )
        for name, number in {
            "that is rounded": "round(x.shape[0] / 2, CODE)",
            "that is rounded by its node": "(x.shape[0] / 2).node.round(CODE)",
        }.items()
    },
    "memory of objects": {
        "as that of numbers": (
            "held = zeros(2).double().numpy() + [10**30, 1]\nseen = torch.asarray(held.data, dtype=torch.int64)\n"
            "fake = torch.tensor([2**40, id(list), 1, id(checkpoint) + 16, 1], dtype=torch.int64)\n"
            "seen[0] = fake.data_ptr()\nheld[0][0]['__builtins__']['eval'](CODE)"
        ),
        "by its address": (
            "held = zeros(2).double().numpy() + [10**30, 1]\nseen = torch.asarray(obj=held.data, dtype=torch.int64)\n"
            "seen[0] = id(checkpoint)\nheld[0].__globals__['__builtins__']['eval'](CODE)"
        ),
    },
    "a name that is looked up": {
        "as a method of a layer's class": (
            "class A(object):\n    orthogonal_map = 1\n"
            "m = nn.utils.parametrizations.orthogonal(nn.Linear(2, 2), orthogonal_map='__getattribute__')\n"
            "m.parametrizations.weight[0].orthogonal_map(checkpoint, '__globals__')['__builtins__']['eval'](CODE)"
        ),
    },
    "what is passed on": {
        "a forbidden name to map": "list(map(eval, [CODE]))",
        "a forbidden name to a hook": (
            "x = ones(1, requires_grad=True)\nx.register_hook(eval)\nx.sum().backward()\nlog('gained')"
        ),
        "a forbidden name to partial": "partial(eval, CODE)()",
        "a forbidden name to reduce": "functools.reduce(lambda f, x: f(x), [eval, CODE])",
        "a forbidden name to a thread": "in_thread(eval, CODE)",
        "a forbidden name to sorted": "sorted([CODE], key=eval)",
        "a forbidden name by star-args": "(lambda f, x: f(x))(*[eval, CODE])",
        "a forbidden name as a mapping": "{'f': eval}['f'](CODE)",
        "a forbidden name as a default": "(lambda x, f=eval: f(x))(CODE)",
        "a forbidden name by a walrus": "(f := eval)(CODE)",
        "a forbidden name by unpacking": "[f, *x] = [eval]\nf(CODE)",
        "a forbidden name as a property": "class A(object):\n    f = property(lambda self: eval(CODE))\nA().f",
        "a forbidden name as a static method": "class A(object):\n    f = staticmethod(eval)\nA.f(CODE)",
        "a forbidden name by a generator": "def f():\n    yield eval\nnext(f())(CODE)",
        "a forbidden name by an error": (
            "def f():\n    try:\n        raise ValueError(eval)\n    except ValueError as e: e.args[0](CODE)\nf()"
        ),
        "a forbidden name as a weak reference's": (
            "class A(object): pass\nx = A()\nr = weakref.ref(x, eval)\nlog('gained')"
        ),
        "a forbidden name that is compiled": "compiled(lambda x: [eval(CODE), x][1])(zeros(1))",
        "a forbidden name as what is checkpointed": "checkpoint(eval, CODE, use_reentrant=False)",
        "a forbidden name that is mapped over a batch": "func.vmap(lambda x: [eval(CODE), x][1])(zeros(2))",
    },
}  # fmt: skip
