"""Wrappers of what in torch depends on the target's device: factories, modules, and gradcheck.

Each takes a factory of torch and a target with a `device` and a CPU `generator`. Random tensors are drawn from that
generator in double precision, so that every device and dtype gets the same numbers.
"""

from __future__ import annotations

from typing import Any, Callable

import torch

from conformance.worker.values import FULL_DEVICES

Make = Callable[..., Any]
ROUNDING = 1e-14  # in double precision, of numbers near 1


def on_device(make: Make, target: Any) -> Make:
    """Return a factory that makes its tensors on the target's device unless `device` is given."""
    return lambda *args, **kwargs: make(*args, **{"device": target.device, **kwargs})


def array_on_device(make: Make, target: Any) -> Make:
    """Return torch.from_numpy for the target's device."""
    return lambda array: make(array).to(target.device)


def seeded(make: Make, target: Any) -> Make:
    """Return a random factory that draws the same numbers for every device and dtype."""
    wide = make not in (torch.randint, torch.randperm)

    def made(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("out") is not None:
            return make(*args, **kwargs)
        place, requires_grad = kwargs.pop("device", None) or target.device, kwargs.pop("requires_grad", False)
        dtype = kwargs.pop("dtype", None) or (torch.get_default_dtype() if wide else torch.int64)
        kwargs.setdefault("generator", target.generator)
        if wide:
            kwargs["dtype"] = torch.complex128 if dtype.is_complex else torch.float64
        narrow = make(*args, **kwargs).to(dtype=dtype)  # on the CPU: not every device has double precision
        made = narrow.to(device=place)
        return made.requires_grad_() if requires_grad else made  # which transforms refuse, also for False

    return made


def seeded_like(make: Make, target: Any) -> Make:
    """Return a random factory that takes size, dtype, device and strides from another tensor."""
    sized = seeded(make, target)

    def made(other: Any, *args: Any, **kwargs: Any) -> Any:
        requires_grad = kwargs.pop("requires_grad", False)
        kept = {name: kwargs.pop(name) for name in ("memory_format", "layout") if name in kwargs}
        drawn = sized(*args, size=tuple(other.shape), **{"device": other.device, "dtype": other.dtype, **kwargs})
        result = torch.empty_like(other, device=drawn.device, dtype=drawn.dtype, requires_grad=False, **kept)
        result.data.copy_(drawn)  # keeps the strides of the other, and version 0
        return result.requires_grad_() if requires_grad else result

    return made


def seeded_normal(make: Make, target: Any) -> Make:
    """Return torch.normal, seeded where it is given a size."""
    sized = seeded(make, target)

    def made(*args: Any, **kwargs: Any) -> Any:
        given = [*args, *kwargs.values()]
        has_tensor = any(isinstance(value, torch.Tensor) for value in given)
        return (make if has_tensor or kwargs.get("out") is not None else sized)(*args, **kwargs)

    return made


class Layer:
    """A class of modules that are made on the CPU and then moved to the target's device."""

    def __init__(self, cls: type, target: Any) -> None:
        self.cls = cls
        self.target = target

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # Lazy modules have no parameters to move yet, and torch can't move those to every device.
        if issubclass(self.cls, torch.nn.modules.lazy.LazyModuleMixin):
            kwargs.setdefault("device", self.target.device)
        made = self.cls(*args, **kwargs)
        if "device" in kwargs:
            return made
        # The move would set .data otherwise, which transforms refuse.
        future = torch.__future__
        before = future.get_overwrite_module_params_on_conversion()
        future.set_overwrite_module_params_on_conversion(True)
        try:
            return made.to(self.target.device)
        finally:
            future.set_overwrite_module_params_on_conversion(before)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.cls, name)

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, self.cls)


def moved(cls: Any, target: Any) -> Any:
    """Return a class of modules for the target's device, and any other object unchanged."""
    return Layer(cls, target) if isinstance(cls, type) and issubclass(cls, torch.nn.Module) else cls


def allowing_for_rounding(check: Make, target: Any) -> Make:
    """Return gradcheck or gradgradcheck for the target's device.

    By default they want the same bits of two runs of backward. A device that compiles what it runs, and not always in
    the same portions, rounds one run differently from the other, which autograd allows. So what fails for that is tried
    once more, with a tolerance of some units in the last place of what the function gives.
    """
    if target.device.partition(":")[0] in FULL_DEVICES:
        return check

    def checked(function: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return check(function, inputs, *args, **kwargs)
        except RuntimeError as error:
            if "nondet_tol" in kwargs or "Backward is not reentrant" not in str(error):
                raise
        given = function(*inputs) if isinstance(inputs, (tuple, list)) else function(inputs)
        results = given if isinstance(given, (tuple, list)) else [given]
        largest = max([1.0, *(float(each.detach().cpu().abs().max()) for each in results if each.numel())])
        return check(function, inputs, *args, nondet_tol=ROUNDING * largest, **kwargs)

    return checked
