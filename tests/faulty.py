"""A function whose derivatives have a fault of a chosen kind, and the ways of derivatives() that find one."""

from __future__ import annotations

from typing import Any

import torch

from conformance.worker.derivatives import WAYS, derivatives
from conformance.worker.values import Unobservable

SHAPES = {"x": ["n", "m"], "w": ["m"]}


def wrong_ways(function: Any, inputs: Any = SHAPES, **more: Any) -> set[str]:
    found = derivatives(function, inputs, **more)
    disagree = set()
    for way in WAYS:
        try:
            told = found[way]
        except Unobservable:
            continue
        if told:
            disagree.add(way)
    return disagree


def doubled_if_alone(gradients: Any, _: Any) -> Any:
    found = [each for each in gradients if each is not None]
    return (2 * found[0], None) if len(found) < len(gradients) else gradients


class Slope(torch.autograd.Function):  # type: ignore[misc]  # torch has no types for it
    """The derivative of g * sin(x) * w by x, whose own derivative by x takes x for a constant."""

    @staticmethod
    def forward(ctx: Any, g: Any, x: Any, w: Any) -> Any:
        ctx.save_for_backward(g, x, w)
        return g * x.cos() * w

    @staticmethod
    def backward(ctx: Any, h: Any) -> Any:
        g, x, w = ctx.saved_tensors
        return h * x.cos() * w, -h * g * x.detach().sin() * w, (h * g * x.cos()).sum_to_size(w.shape)


class Slopes(torch.autograd.Function):  # type: ignore[misc]  # see above
    """The derivatives of g * sin(x) * w by x and w, whose own are wrong where only one of them is differentiated."""

    @staticmethod
    def forward(ctx: Any, g: Any, x: Any, w: Any) -> Any:
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(g, x, w)
        return g * x.cos() * w, g * x.sin()

    @staticmethod
    def backward(ctx: Any, h: Any, k: Any) -> Any:
        g, x, w = ctx.saved_tensors
        factor = 2 if h is None or k is None else 1
        h, k = (torch.zeros_like(g) if each is None else each * factor for each in (h, k))
        by_x = g * (k * x.cos() - h * x.sin() * w)
        return h * x.cos() * w + k * x.sin(), by_x, (h * g * x.cos()).sum_to_size(w.shape)


def product(fault: str = "") -> Any:
    """Return sin(x) * w, whose derivatives have a fault of that name."""

    class Product(torch.autograd.Function):  # type: ignore[misc]  # torch has no types for it
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            if fault == "unsaved":
                ctx.x, ctx.w = x, w
            else:
                ctx.save_for_backward(x, w)
                ctx.save_for_forward(x, w)
            return x.sin() * w

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, w = (ctx.x, ctx.w) if fault == "unsaved" else ctx.saved_tensors
            grad_x, grad_w = g * x.cos() * w, g * x.sin()
            if fault == "sign":
                grad_x = -grad_x
            elif fault == "factor":
                grad_w = grad_w * 1.01
            elif fault == "one lane":
                grad_x = torch.cat([grad_x[:2], grad_x[2:3] * 1.1, grad_x[3:]])
            elif fault == "at zero":
                grad_x = torch.where(x == 0, torch.full_like(x, float("nan")), grad_x)
            elif fault == "at ties" and x.numel() > 1 and bool((x == x.reshape(-1)[0]).all()):
                grad_x = grad_x * 2
            elif fault == "large" and x.numel() and float(x.detach().abs().max()) > 100:
                grad_x = grad_x * 0
            elif fault == "second of one":
                grad_x, grad_w = Slopes.apply(g, x, w)
            elif fault == "third":
                grad_x = Slope.apply(g, x, w)
            elif fault == "second" or (fault == "second in float32" and x.dtype == torch.float32):
                grad_x = g * x.detach().cos() * w
            elif fault == "second incoming" and grad_x.requires_grad:
                grad_x.register_hook(lambda own: own * (1 if own.is_contiguous() else 2))
            elif fault == "second alone" and grad_x.grad_fn is not None:
                grad_x.grad_fn.register_hook(doubled_if_alone)
            elif fault == "gaps" and g.dim() and g.stride(-1) == 2:
                grad_x = grad_x * 2
            elif fault == "layout" and not x.is_contiguous():
                grad_x = grad_x.flip(0)
            elif fault == "incoming" and not g.is_contiguous():
                grad_w = grad_w * 0
            elif fault == "float32" and x.dtype == torch.float32:
                grad_x = grad_x * 1.001
            elif fault == "alone" and not ctx.needs_input_grad[1]:
                grad_x = grad_x + 1
            elif fault == "expanded" and 0 in x.stride():
                grad_x = grad_x * 3
            elif fault == "size one" and x.dim() and x.shape[0] == 1:
                grad_x = grad_x * 0
            if fault == "not summed":
                return grad_x, grad_w[0] if grad_w.dim() > 1 and grad_w.shape[0] else grad_w.sum(0)
            return grad_x, grad_w.sum(0)

        @staticmethod
        def jvp(ctx: Any, tx: Any, tw: Any) -> Any:
            x, w = (ctx.x, ctx.w) if fault == "unsaved" else ctx.saved_tensors
            first = 0 if tx is None else tx * x.cos() * w
            second = 0 if tw is None else tw * x.sin()
            if fault == "tangent alone" and not bool(tw.any()):
                return first * 2
            is_wrong = fault == "tangent" or (fault == "tangent in float32" and x.dtype == torch.float32)
            return first - second if is_wrong else first + second

    return Product.apply
