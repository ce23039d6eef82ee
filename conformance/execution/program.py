"""Makes the program that one version of torch runs of a case: every alternative is chosen."""

import json
from collections.abc import Iterable
from typing import Any

from conformance.language import versions, vocabulary
from conformance.model.build import Build, Target
from conformance.model.case import Case, ListedCase
from conformance.model.mode import needed_for
from conformance.model.outcome import Outcome


def outcome_without_run(case: Case | ListedCase, target: Target, build: Build) -> Outcome | None:
    """Return the outcome of a case that can't be run on `target` with this build, or None when it can."""
    absent = build.why_absent(target.device)
    if absent:
        return Outcome(status="not-run", reason=f"device {target.device} is absent: {absent}")
    unsupported = why_unsupported(case, target, build.torch)
    return Outcome(status="unsupported", reason=unsupported) if unsupported else None


def why_unsupported(case: Case | ListedCase, target: Target, torch: str) -> str:
    """Return why `case` can't be run on `target` with `torch`, or an empty string when it can."""
    if case.torch is not None and not versions.holds(case.torch, torch):
        return f"needs torch {case.torch}"
    if target.mode and not versions.holds(needed_for(target.mode), torch):
        return f"needs torch {needed_for(target.mode)} for the mode {target.mode}"
    if case.devices and target.device.partition(":")[0] not in case.devices:
        return f"needs a device of {', '.join(case.devices)}"
    if case.dtypes and target.dtype not in case.dtypes:
        return f"needs a dtype of {', '.join(case.dtypes)}"
    for name, within in case.needs:
        condition = f">={vocabulary.since(name)}"
        if (not within or versions.holds(within, torch)) and not versions.holds(condition, torch):
            return f"needs torch {condition} for {name}"
    return ""


def program_of(case: Case, target: Target, torch: str) -> dict[str, Any]:
    """Return the request that runs `case` on `target` with `torch`."""
    return {**request_of(case, target), "steps": steps_of(case, torch)}


def encoded_program(case: Case | ListedCase, target: Target, encoded_steps: str) -> dict[str, Any]:
    """Return the request that runs the encoded steps of a case on `target`, for `line_of`."""
    return {**request_of(case, target), "encoded_steps": encoded_steps}


def request_of(case: Case | ListedCase, target: Target) -> dict[str, Any]:
    mode = {"mode": target.mode} if target.mode else {}
    return {"device": target.device, "dtype": target.dtype, "file": case.file, **mode}


def steps_of(case: Case, torch: str) -> list[dict[str, Any]]:
    """Return the steps of a case that `torch` runs."""
    return [
        {"number": number, **chosen(step, torch)}
        for number, step in enumerate(case.steps)
        if "torch" not in step or versions.holds(step["torch"], torch)
    ]


def encoded_steps_of(cases: Iterable[Case], torch: str) -> list[str]:
    """Return the steps of each case that `torch` runs as JSON, and "" for a case that it can't run."""
    return [
        json.dumps(steps_of(case, torch)) if case.torch is None or versions.holds(case.torch, torch) else ""
        for case in cases
    ]


def encoded_steps_until(encoded_steps: str, number: int) -> str:
    """Return encoded steps up to that with a number."""
    return json.dumps([step for step in json.loads(encoded_steps) if step["number"] <= number])


def line_of(request: dict[str, Any]) -> str:
    """Return a request as a line of JSON."""
    steps = request.get("encoded_steps")
    if steps is None:
        return json.dumps(request)
    others = json.dumps({name: value for name, value in request.items() if name != "encoded_steps"})
    return f'{others.removesuffix("}")}, "steps": {steps}}}'


def chosen(step: dict[str, Any], torch: str) -> dict[str, Any]:
    """Return `step` with the alternatives for `torch`."""
    if "expect" in step:
        entries = [
            {**entry, "checks": [[name, choose(value, torch), line] for name, value, line in entry["checks"]]}
            for entry in step["expect"]
        ]
        return {"line": step["line"], "expect": entries}
    result: dict[str, Any] = {"line": step["line"], "do": step["do"]}
    for key in ("raises", "warns"):
        if key in step:
            result[key] = next(
                alternative
                for alternative in step[key]
                if alternative["torch"] is None or versions.holds(alternative["torch"], torch)
            )
    return result


def choose(value: Any, torch: str) -> Any:
    """Return the value that a check expects, with the alternatives for `torch`."""
    if not isinstance(value, dict):
        return value
    if "torch" in value:
        return next(
            choose(inner, torch) for condition, inner in value["torch"].items() if versions.holds(condition, torch)
        )
    if "checks" in value:
        return {"checks": [[name, choose(inner, torch), line] for name, inner, line in value["checks"]]}
    return value
