"""Has a worker try what each device can do, one feature a request: one that ends the worker costs only itself."""

from typing import Any, Protocol

from msgspec.structs import replace

from conformance.model.build import Build, Device

# The features that conformance/worker/features.py knows, in the order of tables.
FEATURES = (
    *("float16", "bfloat16", "complex64", "int64", "int32", "uint8", "bool", "float64", "complex128"),
    *("strides", "aliasing-views", "storage", "sparse", "nested", "zero-tensors", "empty"),
    *("device-module", "random-state", "streams", "amp", "deepcopy", "pickle", "threads", "subclasses", "repr"),
    *("functionalization", "tracing", "compiler", "generated-code"),
)

WRONG = "gives other results"  # what the worker says of a feature that a device has, with a fault


class Executor(Protocol):
    """What runs requests."""

    def request(self, number: int, program: dict[str, Any]) -> None: ...

    def outcome(self, number: int) -> dict[str, Any]: ...


def with_features(build: Build, executor: Executor) -> Build:
    """Return a build whose devices other than the CPU have `features`."""
    devices = (each if each.type == "cpu" or each.absent else looked_at(each, executor) for each in build.devices)
    return replace(build, devices=tuple(devices))


def looked_at(device: Device, executor: Executor) -> Device:
    """Return a device with its `features`."""
    for number, feature in enumerate(FEATURES, start=1):
        executor.request(-number, {"device": device.type, "feature": feature})
    return replace(
        device,
        features={
            feature: executor.outcome(-number).get("reason", "") for number, feature in enumerate(FEATURES, start=1)
        },
    )
