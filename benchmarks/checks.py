"""The same checks written twice: as the steps of a YAML case, and as the body of a pytest function.

Each kind is one of the suite's cases, or a custom Function as in bug reports. Both spellings check the same things, in
the style that is usual there. `{k}` is a number that differs from check to check, and `{l1}` a gradient computed from
it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One kind of check: `steps` is YAML, `body` is Python with torch and pytest; both are format strings."""

    steps: str
    body: str


KINDS = (
    Check(
        steps="""\
- a = tensor([{k}.0], requires_grad=True)
- b = a.sigmoid()
- c = b.detach()
- expect: {{b: {{version: 0}}, c: {{version: 0}}}}
- c.zero_()
- expect:
    a: {{is_leaf: true, requires_grad: true, version: 0, value: [{k}.0]}}
    b: {{is_leaf: false, requires_grad: true, version: 1, value: [0.0], grad_fn: SigmoidBackward0}}
    c: {{is_leaf: true, requires_grad: false, version: 1, value: [0.0], shares_storage: b}}
- do: b.sum().backward()
  raises: {{type: RuntimeError, match: [modified by an inplace operation, is at version 1; expected version 0 instead]}}
- expect: {{a: {{grad: null}}}}
""",
        body="""\
a = torch.tensor([{k}.0], requires_grad=True)
b = a.sigmoid()
c = b.detach()
assert b._version == 0
assert c._version == 0
c.zero_()
assert a.is_leaf
assert a.requires_grad
assert a._version == 0
torch.testing.assert_close(a.detach(), torch.tensor([{k}.0]))
assert not b.is_leaf
assert b.requires_grad
assert b._version == 1
torch.testing.assert_close(b.detach(), torch.tensor([0.0]))
assert b.grad_fn.name() == "SigmoidBackward0"
assert c.is_leaf
assert not c.requires_grad
assert c._version == 1
torch.testing.assert_close(c, torch.tensor([0.0]))
assert c.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
with pytest.raises(RuntimeError, match="modified by an inplace operation.*is at version 1; expected version 0 instead"):
    b.sum().backward()
assert a.grad is None
""",
    ),
    Check(
        steps="""\
- x = ones(2, 2, requires_grad=True)
- y = x + {k}
- z = y * y * 3
- out = z.mean()
- expect:
    x: {{grad_fn: null}}
    y: {{value: 1 + {k}, grad_fn: AddBackward0, shape: [2, 2]}}
    z: {{value: 3 * (1 + {k}) ** 2, grad_fn: MulBackward0, shape: [2, 2]}}
    out: {{value: 3 * (1 + {k}) ** 2, grad_fn: MeanBackward0, shape: []}}
- out.backward()
- expect:
    x: {{grad: 1.5 * (1 + {k})}}
- do: found = [y.grad]
  warns: {{type: UserWarning, match: not a leaf}}
- do: found += [z.grad]
  warns: {{type: UserWarning, match: not a leaf}}
- expect:
    found: [null, null]
    y: {{version: 0, is_leaf: false}}
    z: {{version: 0, is_leaf: false}}
""",
        body="""\
x = torch.ones(2, 2, requires_grad=True)
y = x + {k}
z = y * y * 3
out = z.mean()
assert x.grad_fn is None
torch.testing.assert_close(y.detach(), torch.full((2, 2), 1.0 + {k}))
assert y.grad_fn.name() == "AddBackward0"
torch.testing.assert_close(z.detach(), torch.full((2, 2), 3 * (1.0 + {k}) ** 2))
assert z.grad_fn.name() == "MulBackward0"
torch.testing.assert_close(out.detach(), torch.tensor(3 * (1.0 + {k}) ** 2))
assert out.grad_fn.name() == "MeanBackward0"
out.backward()
torch.testing.assert_close(x.grad, torch.full((2, 2), 1.5 * (1.0 + {k})))
with pytest.warns(UserWarning, match="not a leaf"):
    assert y.grad is None
with pytest.warns(UserWarning, match="not a leaf"):
    assert z.grad is None
assert y._version == 0
assert not y.is_leaf
assert z._version == 0
assert not z.is_leaf
""",
    ),
    Check(
        steps="""\
- x = torch.ones([2, 2])
- w1 = torch.tensor({k}.0, requires_grad=True)
- w2 = torch.tensor(3.0, requires_grad=True)
- w3 = torch.tensor(3.0, requires_grad=True)
- l1 = x * w1
- l2 = l1 + w2
- l3 = l1 * w3
- l4 = l2 * l3
- loss = l4.mean()
- 'l1.register_hook(lambda grad: log("l1", grad))'
- 'l4.register_hook(lambda grad: log("l4", grad))'
- 'loss.register_hook(lambda grad: log("loss", grad))'
- loss.backward()
- expect:
    log:
      - [loss, 1.0]
      - [l4, [[0.25, 0.25], [0.25, 0.25]]]
      - [l1, [[{l1}, {l1}], [{l1}, {l1}]]]
    loss: {{grad: null, retains_grad: false}}
    l4: {{grad: null}}
    l1: {{grad: null}}
    w1: {{grad: 6 * {k} + 9}}
    w2: {{grad: 3 * {k}}}
    w3: {{grad: "{k} * ({k} + 3)"}}
""",
        body="""\
log = []
x = torch.ones([2, 2])
w1 = torch.tensor({k}.0, requires_grad=True)
w2 = torch.tensor(3.0, requires_grad=True)
w3 = torch.tensor(3.0, requires_grad=True)
l1 = x * w1
l2 = l1 + w2
l3 = l1 * w3
l4 = l2 * l3
loss = l4.mean()
l1.register_hook(lambda grad: log.append(("l1", grad.clone())))
l4.register_hook(lambda grad: log.append(("l4", grad.clone())))
loss.register_hook(lambda grad: log.append(("loss", grad.clone())))
loss.backward()
assert [name for name, _ in log] == ["loss", "l4", "l1"]
torch.testing.assert_close(log[0][1], torch.tensor(1.0))
torch.testing.assert_close(log[1][1], torch.full((2, 2), 0.25))
torch.testing.assert_close(log[2][1], torch.full((2, 2), {l1}))
assert not loss.retains_grad
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    assert loss.grad is None
    assert l4.grad is None
    assert l1.grad is None
torch.testing.assert_close(w1.grad, torch.tensor(6.0 * {k} + 9))
torch.testing.assert_close(w2.grad, torch.tensor(3.0 * {k}))
torch.testing.assert_close(w3.grad, torch.tensor({k} * ({k} + 3.0)))
""",
    ),
    Check(
        steps="""\
- layer1 = nn.Conv2d(3, 1, (3, 3))
- layer2 = nn.Conv2d(1, 1, (3, 3))
- x = torch.randn(1, 3, 8, 8, requires_grad=True)
- y = layer1(x) * {k} / 97
- z = layer2(y.detach())
- z.sum().backward()
- expect:
    x: {{grad: null}}
    y: {{is_leaf: false, requires_grad: true, grad: null}}
    layer1.weight: {{grad: null, requires_grad: true}}
    layer1.bias: {{grad: null, requires_grad: true}}
    layer2.weight: {{grad: {{shape: [1, 1, 3, 3], value: "F.conv2d(y, ones(1, 1, 4, 4))"}}}}
    layer2.bias: {{grad: [16.0]}}
""",
        body="""\
layer1 = nn.Conv2d(3, 1, (3, 3))
layer2 = nn.Conv2d(1, 1, (3, 3))
x = torch.randn(1, 3, 8, 8, requires_grad=True)
y = layer1(x) * {k} / 97
z = layer2(y.detach())
z.sum().backward()
assert x.grad is None
assert not y.is_leaf
assert y.requires_grad
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    assert y.grad is None
assert layer1.weight.grad is None
assert layer1.weight.requires_grad
assert layer1.bias.grad is None
assert layer1.bias.requires_grad
expected = nn.functional.conv2d(y.detach().double(), torch.ones(1, 1, 4, 4, dtype=torch.double))
torch.testing.assert_close(layer2.weight.grad, expected.float())
torch.testing.assert_close(layer2.bias.grad, torch.tensor([16.0]))
""",
    ),
    Check(
        steps="""\
- |
  class Scale(Function):
      @staticmethod
      def forward(ctx, x):
          ctx.save_for_backward(x)
          return x * {k}

      @staticmethod
      def backward(ctx, grad):
          (x,) = ctx.saved_tensors
          log(ctx.needs_input_grad[0], x)
          return grad * {k}
- x = tensor([1.0, 2.0], requires_grad=True)
- y = Scale.apply(x)
- expect:
    y: {{value: "[{k}, 2 * {k}]", grad_fn: ScaleBackward, requires_grad: true, is_leaf: false}}
    log: []
- y.sum().backward()
- expect:
    x: {{grad: [{k}, {k}], version: 0, value: [1.0, 2.0]}}
    log: [[true, [1.0, 2.0]]]
""",
        body="""\
log = []
class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * {k}

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        log.append((ctx.needs_input_grad[0], x.tolist()))
        return grad * {k}
x = torch.tensor([1.0, 2.0], requires_grad=True)
y = Scale.apply(x)
torch.testing.assert_close(y.detach(), torch.tensor([{k}.0, 2.0 * {k}]))
assert y.grad_fn.name() == "ScaleBackward"
assert y.requires_grad
assert not y.is_leaf
assert log == []
y.sum().backward()
torch.testing.assert_close(x.grad, torch.tensor([{k}.0, {k}.0]))
assert x._version == 0
torch.testing.assert_close(x.detach(), torch.tensor([1.0, 2.0]))
assert log == [(True, [1.0, 2.0])]
""",
    ),
)
