"""Tests of the language of steps: what it allows, what it refuses, and which names each place can see."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from loops import each

from conformance.language import vocabulary
from conformance.language.grammar import Names, check_code
from conformance.language.parsing import Parsed, parse_code


def findings(text: str, names: Names | None = None, mode: str = "exec") -> list[str]:
    """Return what is wrong with `text`, read as a step of a case in which the tensors `a` and `b` are set."""
    names = names if names is not None else Names(bound={"a", "b"}, anywhere={"a", "b"})
    parsed = parse_code(text, mode)
    names.anywhere |= parsed.bound
    names.attributes |= parsed.attributes
    check_code(parsed, names)
    return [finding.message for finding in parsed.findings]


def checked(text: str, mode: str) -> Parsed:
    parsed = parse_code(text, mode)
    check_code(parsed, Names(bound={"a"}, anywhere={"a", "b"}))
    return parsed


def test_the_same_text_is_judged_by_the_names_that_are_set_where_it_stands() -> None:
    def told(**names: set[str]) -> list[str]:
        return findings("c = a.label + b", Names(**names))

    everywhere = {"a", "b"}
    assert told(bound=everywhere, anywhere=everywhere, attributes={"label"}) == []
    assert told(bound=everywhere, anywhere=everywhere) == ["unknown attribute 'label'"]
    assert told(bound={"a"}, anywhere=everywhere, attributes={"label"}) == ["'b' isn't set at this step"]
    assert told(bound={"a"}, anywhere={"a"}, attributes={"label"}) == ["unknown name 'b'"]
    assert told(bound=everywhere, anywhere=everywhere, attributes={"label"}) == []


@each(
    "text",
    [
        "c = a + b",
        "c = d = a @ b",
        "c, (d, *e) = a, (b, a, b)",
        "a += b",
        "a[0] = 1",
        "a[1:, None, ...] = b[::2]",
        "a.requires_grad = True",
        "a.grad = None",
        "del a",
        "del a[0], b.grad",
        "pass",
        "a.sum().backward(retain_graph=True)",
        "with torch.no_grad(): c = a * 2",
        "with no_grad(), enable_grad() as e:\n    c = a",
        "for i in range(3):\n    if i == 1:\n        continue\n    c = a * i",
        "for i in [1]:\n    pass\nelse:\n    c = 1",
        "if a.is_leaf:\n    c = 1\nelif b.is_leaf:\n    c = 2\nelse:\n    c = 3",
        "c = [x * 2 for x in [a, b] if x.is_leaf]",
        "c = {k: v for k, v in zip('ab', [a, b])}",
        "c = {x for x in [1]}, (x for x in [2])",
        "c = lambda x, *y, z=a, **w: (x, y, z, w)",
        "c = f'{a.shape!r:>10} and {1 + 1}'",
        "c = a if a.is_leaf else b",
        "c = not a.is_leaf and (b is not a or 1 < 2 <= 3)",
        "c = (d := a) * 2",
        "c = [*[a], b], {**{}}",
        "def f(x, /, y=1, *, z=2):\n    return x",
        "def f():\n    try:\n        pass\n    except RuntimeError as error:\n        raise ValueError(str(error))",
        "def f():\n    try:\n        pass\n    except (TypeError, ValueError):\n        raise",
        "def f():\n    try:\n        pass\n    finally:\n        pass",
        "def f():\n    n = 1\n    def g():\n        nonlocal n\n        n += 1\n    g()\n    yield n",
        "def f():\n    yield from [1]",
        "def f():\n    global c\n    c = 1",
        "c = nn.Linear(2, 3)",
        "c = torch.nn.functional.relu(a)",
        "c = F.relu(a)",
        "c = autograd.grad(a, b)",
        "c = math.pi",
        "c = a._version, a._base",
        "c = a.grad_fn._saved_self, a.grad_fn._raw_saved_other",
        "_ = a",
        "for _ in range(2): log(_)",
        "log('hook', a)",
        "@torch.no_grad()\ndef f(x):\n    return x",
    ],
)
def test_this_is_allowed(text: str) -> None:
    assert findings(text) == []


def test_a_custom_function_is_allowed() -> None:
    text = """
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.factor = 2
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return ctx.factor * x * g

c = Square.apply(a)
"""
    assert findings(text) == []


def test_a_custom_module_is_allowed() -> None:
    text = """
class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.factor = nn.Parameter(ones(1))
        self.register_buffer("offset", zeros(1))

    def forward(self, x):
        return self.helped(x) + self.offset

    def helped(self, x):
        return x * self.factor

c = Scale()(a)
"""
    assert findings(text) == []


@each(
    "text, message",
    [
        ("import os", "import is not part of the language here"),
        ("from os import path", "import is not part of the language here"),
        ("while True: pass", "while is not part of the language here"),
        ("assert a", "assert is not part of the language here"),
        ("c: int = 1", "a type on a name is not part of the language here"),
        ("async def f(): pass", "async def is not part of the language here"),
        ("try:\n    pass\nfinally:\n    pass", "try is not part of the language here"),
        ("raise ValueError", "raise is not part of the language here"),
        ("global c", "global is not part of the language here"),
        ("c = b'x'", "bytes are not part of the language"),
        (f"c = 0x{'f' * 2000}", "a number of more than 4096 bits is not part of the language"),
        ("t_1234567890_c1 = 1", "'t_1234567890_c1' is like a name that a compiler sets"),
        ("def f(r_123456789_c0): pass", "'r_123456789_c0' is like a name that a compiler sets"),
        ("def f(x: int): pass", "a type on a parameter is not part of the language"),
        ("return", "expected statements, and this is not Python: 'return' outside function"),
        ("yield", "expected statements, and this is not Python: 'yield' outside function"),
        ("await a", "expected statements, and this is not Python: 'await' outside function"),
        ("break", "expected statements, and this is not Python: 'break' outside loop"),
        ("c = ", "expected statements, and this is not Python: invalid syntax"),
        ("# later", "expected statements, got a comment"),
        ("", "expected statements, got a comment"),
        ("torch = 1", "'torch' belongs to the vocabulary"),
        ("def log(): pass", "'log' belongs to the vocabulary"),
        ("class nn(Module): pass", "'nn' belongs to the vocabulary"),
        ("c = lambda F: F", "'F' belongs to the vocabulary"),
        ("torch.ones = 1", "torch.ones belongs to the vocabulary and can't be set"),
        ("del nn.functional.relu", "nn.functional.relu belongs to the vocabulary and can't be set"),
        ("_c = 1", "'_c' begins with _"),
        ("def __getattr__(name): pass", "'__getattr__' begins with _"),
        ("class _C(Module): pass", "'_C' begins with _"),
        ("with no_grad() as _c: pass", "'_c' begins with _"),
        ("for __c in [1]: pass", "'__c' begins with _"),
        ("c = a.__dict__", "the attribute '__dict__' begins with _"),
        ("a.__class__ = 1", "the attribute '__class__' begins with _"),
        ("c = a._grad", "the attribute '_grad' begins with _"),
        ("c = f'{a.__class__}'", "the attribute '__class__' begins with _"),
        ("c = f'{1:{a.__class__}}'", "the attribute '__class__' begins with _"),
        ("c = super().__getattribute__", "the attribute '__getattribute__' begins with _"),
        ("c = a.__init__", "the attribute '__init__' begins with _"),
        ("c = tensr(1)", "unknown name 'tensr'"),
        ("c = __builtins__", "unknown name '__builtins__'"),
        ("c = torch.sigmoyd", "unknown name 'torch.sigmoyd'"),
        ("c = torch.load", "unknown name 'torch.load'"),
        ("c = a.sigmoyd", "unknown attribute 'sigmoyd'"),
        ("c = 'x'.format(a)", "unknown attribute 'format'"),
        ("class C(nn.Linear): pass", "a class can't be made from 'nn.Linear'"),
        ("class C(Module, metaclass=type): pass", "metaclass= is not part of the language here"),
        ("@exec\ndef f(): pass", "unknown name 'exec'"),
        ("c = torch.ops.aten", "torch.ops.aten is no value"),
        ("c = [torch.ops.aten.div]", "torch.ops.aten.div is no value"),
        ("c = torch.ops.load_library('x')", "unknown name 'torch.ops.load_library'"),
        ("c = lambda x=opne: x", "unknown name 'opne'"),
        ("def f():\n    return opne", "unknown name 'opne'"),
        ("def f():\n    try:\n        pass\n    except RuntimeError as _e:\n        pass", "'_e' begins with _"),
    ],
)
def test_this_is_refused(text: str, message: str) -> None:
    assert findings(text) == [message]


@each(
    "name", "open eval exec compile getattr setattr delattr vars globals locals dir input breakpoint memoryview".split()
)
def test_the_builtins_that_reach_outside_are_no_names_of_the_language(name: str) -> None:
    assert findings(f"c = {name}") == [f"unknown name {name!r}"]


@each("name", "load save hub ops classes os sys _C multiprocessing jit compile from_file".split())
def test_the_parts_of_torch_that_reach_outside_are_no_names_of_the_language(name: str) -> None:
    assert len(findings(f"c = torch.{name}")) == 1


@each(
    "name",
    "__class__ __globals__ __code__ gi_frame f_back f_globals tb_frame func_globals tofile format_map encode".split(),
)
def test_the_attributes_that_reach_outside_are_refused_on_anything(name: str) -> None:
    assert len(findings(f"c = (lambda: 1).{name}")) == 1
    assert len(findings(f"a.{name} = 1\nc = a.{name}")) <= 2
    if name.startswith("_"):
        assert len(findings(f"a.{name} = 1")) == 1


def test_what_only_a_def_may_hold_is_no_part_of_an_expression() -> None:
    assert findings("(yield)", mode="eval") == [
        "expected an expression, and this is not Python: 'yield' outside function"
    ]
    assert findings("c = 1", mode="eval") == ["expected an expression, and this is not Python: invalid syntax"]
    assert findings("a + b", mode="eval") == []
    assert findings("  a + b\n", mode="eval") == []


def test_a_name_is_known_from_the_step_that_sets_it_on() -> None:
    names = Names(bound={"a"}, anywhere={"a", "c"})
    assert findings("d = c", names) == ["'c' isn't set at this step"]
    names.bound.add("c")
    assert findings("d = c", names) == []


def test_the_body_of_a_def_may_use_what_is_set_later() -> None:
    names = Names(bound={"a"}, anywhere={"a", "c"})
    assert findings("d = lambda: c", names) == []
    assert findings("def f():\n    return c", names) == []
    assert findings("d = lambda x=c: x", names) == ["'c' isn't set at this step"]


@each(
    "text",
    [
        "d = [c for c in [1]]\ne = c",
        "d = lambda c: c\ne = c",
        "def f(c):\n    return c\ne = c",
        "def f():\n    c = 1\ne = c",
        "class C(Module):\n    c = 1\ne = c",
        "def f():\n    def g(c):\n        pass\n    return c",
    ],
)
def test_a_name_of_an_inner_scope_is_unknown_outside_it(text: str) -> None:
    assert findings(text) == ["unknown name 'c'"]


@each(
    "text",
    [
        "for c in [1]: pass\nd = c",
        "with no_grad() as c: pass\nd = c",
        "if 1: c = 1\nd = c",
        "d = [(c := 1) for x in [1]]\ne = c",
        "def c(): pass\nd = c",
        "class c(Module): pass\nd = c",
        "*c, d = [1]\ne = c",
        "def f(c):\n    def g():\n        return c\n    return g",
    ],
)
def test_a_name_of_the_scope_itself_is_known(text: str) -> None:
    assert findings(text) == []


def test_an_attribute_that_the_case_defines_is_known_everywhere_in_it() -> None:
    assert findings("c = a.extra") == ["unknown attribute 'extra'"]
    names = Names(bound={"a"}, anywhere={"a"}, attributes={"extra"})
    assert findings("c = a.extra", names) == []


@each("call", ["register_buffer('extra', a)", "add_module('extra', a)", "register_parameter('extra', a)"])
def test_an_attribute_that_is_registered_by_name_is_known(call: str) -> None:
    assert findings(f"a.{call}\nc = a.extra") == []


def test_a_registered_name_opens_no_private_attribute() -> None:
    assert findings("a.register_buffer('__class__', a)\nc = a.__class__") == ["the attribute '__class__' begins with _"]


def test_parse_tells_what_a_step_sets_and_defines() -> None:
    parsed = parse_code("c, d = a, b\nc.extra = 1\ndef f(x):\n    y = x\nclass K(Module):\n    z = 1\ndel d")
    assert parsed.bound == {"c", "f", "K"}
    assert parsed.attributes == {"extra", "z"}


def test_a_step_notes_the_names_that_not_every_torch_has() -> None:
    newer = next(name for name, since in vocabulary.NAMESPACES["func"].items() if since != vocabulary.OLDEST)
    parsed = parse_code(f"c = torch.func.{newer}\nd = torch.ones(1)")
    check_code(parsed, Names())
    assert parsed.findings == []
    assert parsed.needs == {f"func.{newer}"}


def test_a_finding_stands_where_its_name_stands() -> None:
    parsed = parse_code("c = a\nd = (a +\n     unknwn)\nif a:\n    e = opne")
    check_code(parsed, Names(bound={"a"}))
    assert [(finding.line, finding.column) for finding in parsed.findings] == [(3, 6), (5, 9)]


def test_findings_come_in_the_order_of_the_text() -> None:
    parsed = parse_code("c = [x1, x2]\nimport os\nd = x3")
    check_code(parsed, Names())
    assert [finding.line for finding in parsed.findings] == [1, 1, 2, 3]


def test_a_misspelt_name_gets_a_hint() -> None:
    for text, hint in [
        ("c = tensr", "did you mean 'tensor'?"),
        ("c = nn.Liner", "did you mean 'Linear'?"),
        ("a.detch()", "did you mean 'detach'?"),
    ]:
        parsed = parse_code(text)
        check_code(parsed, Names(bound={"a"}))
        assert [finding.hint for finding in parsed.findings] == [hint]


@each("text", ["-" * 100 + "1", "(" * 150 + "1" + ")" * 150, "a" + ".b" * 100, "f(" * 90 + ")" * 90, "[" * 100_000])
def test_nesting_and_length_have_limits(text: str) -> None:
    parsed = parse_code(text)
    check_code(parsed, Names(bound={"a"}))
    if "(1" not in text:
        assert parsed.findings


def test_a_long_sum_is_refused_and_not_recursed_into() -> None:
    assert findings("c = " + "1 + " * 1000 + "1")[0].startswith("nested 10")


def test_a_nul_in_a_step_is_a_finding() -> None:
    assert len(findings("c = 1\0")) == 1


def test_newer_syntax_than_the_oldest_worker_knows_is_refused() -> None:
    assert findings("match a:\n    case 1:\n        pass")
    assert findings("with (no_grad() as c, no_grad() as d):\n    pass")
    assert findings("try:\n    pass\nexcept* ValueError:\n    pass")


def test_every_name_of_the_vocabulary_can_be_named() -> None:
    for name in vocabulary.NAMES:
        assert findings(f"c = {name}") == []
    for path, names in vocabulary.NAMESPACES.items():
        if path != "torch" and path.split(".", maxsplit=1)[0] in vocabulary.ROOTS:
            for name in names:
                assert findings(f"c = {path}.{name}") == []


@given(st.text())
def test_any_text_is_a_step_or_has_findings(text: str) -> None:
    parsed = checked(text, "exec")
    assert parsed.tree is not None or parsed.findings


WORDS = [
    *"""a b c torch nn F . . ( ) [ ] { } : , = + * ** @ lambda def class with for in if else try except as yield return
    del not is import while pass 1 1.5 'x' f'{a}' b'x' __class__ _version _x super() := -> ; # global nonlocal async
    await""".split(),
    "\n",
    "\n    ",
    "\n        ",
]


@given(st.lists(st.sampled_from(WORDS), max_size=25), st.sampled_from(["exec", "eval"]))
def test_any_heap_of_words_is_a_step_or_has_findings(words: list[str], mode: str) -> None:
    parsed = checked(" ".join(words).replace(" . ", "."), mode)
    assert parsed.tree is not None or parsed.findings
    assert all(finding.line >= 1 and finding.column >= 0 and finding.message for finding in parsed.findings)
