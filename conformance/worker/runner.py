"""Runs cases on a device, each between a fresh global state and one that is put back."""

from __future__ import annotations

import contextlib
import gc
import linecache
import time
import warnings
from functools import partial
from typing import Any, Callable, Dict, List, Optional

import torch

from conformance.worker.backend import named
from conformance.worker.case_run import CaseRun, Shared, plainly
from conformance.worker.diagnosis import Diagnosis
from conformance.worker.isolation import GlobalState, forget
from conformance.worker.lacking import declared_by
from conformance.worker.modes import mode_of
from conformance.worker.namespace import offer
from conformance.worker.notes import Notes
from conformance.worker.probing import Prober, waiter
from conformance.worker.reference import References
from conformance.worker.sandbox import Namespace


class Runner:
    """Runs cases on one device, with objects that all cases share."""

    def __init__(self, device: str, global_state: GlobalState, notes: Notes, profile: Dict[str, Any]) -> None:
        device = "cpu" if device.startswith("cpu:") else device  # torch treats cpu:0 as another device
        self.device = device
        self.global_state = global_state
        self.notes = notes
        self.generator = torch.Generator()
        self.offered = offer(device, self.generator)
        self.declared = declared_by(profile)
        self.synchronize = synchronizer(device, profile.get("synchronize", ""))
        self.errors: Dict[str, bool] = {}  # messages in the last case, and whether they may speak of something missing
        self.warned: List[str] = []  # the texts of warnings in the last case
        self.prober = Prober(device, self.declared.absent)
        if device != "cpu":
            lacking = Diagnosis(self).why_lacking_way
            self.offered["derivatives"] = plainly(partial(self.offered["derivatives"], lacking=lacking))
            vars(self.offered["gc"])["collect"] = plainly(self.collect)
        # Expected values are computed on the CPU for every target.
        references = References(self.offered if device == "cpu" else offer("cpu", self.generator))
        self.shared = Shared(
            device=device, offered=self.offered, references=references, synchronize=self.synchronize,
            wait=self.prober.wait, notes=notes, declared=self.declared,
        )  # fmt: skip
        global_state.share(shared_by_cases(self.offered))

    def run(self, program: Dict[str, Any], go: Optional[Callable[[CaseRun], Dict[str, Any]]] = None) -> Dict[str, Any]:
        """Run `program` (`file`, `dtype`, `steps`) and return its outcome: `status` and what goes with it.

        `go` replaces the usual run through the steps.
        """
        begin = time.perf_counter()
        run = CaseRun(self.shared, program)
        self.errors = run.errors
        self.global_state.begin(self.device, run.dtype, self.generator)
        try:
            with warnings.catch_warnings(record=True) as run.warned:
                warnings.simplefilter("always")
                outcome = run.guarded(go or CaseRun.all_steps)
        finally:
            self.warned = [text_of(warning) for warning in run.warned]  # not themselves, which hold objects of the case
            run.warned.clear()
            forget(run.names)
            linecache.cache.pop(run.file, None)
            del run
            self.global_state.restore()
        outcome["seconds"] = round(time.perf_counter() - begin, 6)
        return outcome

    def collect(self) -> int:
        """Collect garbage once the device is done, which holds what it computes with."""
        self.synchronize()
        return gc.collect()


def in_mode(name: str) -> Callable[[CaseRun], Dict[str, Any]]:
    """Return the run through all steps in a mode."""

    def go(run: CaseRun) -> Dict[str, Any]:
        with mode_of(name, run.device):
            outcome: Dict[str, Any] = run.all_steps()
        return outcome

    return go


def synchronizer(device: str, own: str) -> Callable[[], None]:
    """Return a function that waits until a device and autograd's threads are done; it never raises.

    `own` names a function of the back-end that waits for the device, if the device's module has none.
    """
    waits = [] if device == "cpu" else [engine_wait(device), waiter(device)]
    if own:
        waits.append(named(own))

    def synchronize() -> None:
        for wait in waits:
            with contextlib.suppress(Exception):  # the cases will show the failure
                wait()

    return synchronize


def engine_wait(device: str) -> Callable[[], Any]:
    """Return a function that waits until autograd's threads have released the objects of earlier tasks.

    On a device, backward runs in a thread of the engine, which may hold the graph for a while after the result is
    ready. It releases one task before it begins the next, so a small task is run.
    """
    try:
        leaf = torch.ones((), device=device, requires_grad=True)
        root, weight = leaf * 1, torch.ones((), device=device)  # made now, since a case may disable gradients
    except Exception:
        return lambda: None  # the device can't run that
    return lambda: torch.autograd.grad(root, leaf, weight, retain_graph=True)


def shared_by_cases(offered: Dict[str, Any]) -> List[Any]:
    """Return what in the vocabulary has attributes that can be set: classes of torch, functions and a few objects."""
    found: Dict[int, Any] = {}
    spaces: List[Dict[str, Any]] = [offered]
    for space in spaces:
        spaces += [vars(value) for value in space.values() if isinstance(value, Namespace)]
        found.update((id(value), value) for value in space.values() if is_shared(value))
    return list(found.values())


def is_shared(value: Any) -> bool:
    if isinstance(value, type):
        return value.__module__.startswith("torch.") or value is torch.Tensor
    # Of operations torch adds those to their names that are asked for.
    return hasattr(value, "__dict__") and not isinstance(value, Namespace) and type(value).__module__ != "torch._ops"


def text_of(warning: warnings.WarningMessage) -> str:
    """Return the text of a warning, "" where objects of the case can't be shown."""
    try:
        return str(warning.message)
    except (Exception, GeneratorExit):  # the exceptions of the vocabulary
        return ""
