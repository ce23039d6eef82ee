"""No case changes the outcome of another, whatever it sets, leaves or has run later; the report names the culprit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from forgeries import VICTIM, forgeries
from sessions import Session

pytestmark = pytest.mark.slow
OTHERWISE = ("case", "seconds", "line", "stderr", "retry")
LEFT = "the worker was replaced"
# Those whose state nothing can put back, by what the report says.
TOLD = {
    "stubborn saved_tensors_hooks": "it left a mode in force that nothing can end",
    "stubborn autocast": "it left a mode in force that nothing can end",
    "stubborn device": "it left a mode in force that nothing can end",
    "stubborn sparse invariants": "it left a mode in force that nothing can end",
    "later for ever, in a hook": "it leaves something behind each time that this is taken away",
}


def seen(outcome: dict[str, Any]) -> dict[str, Any]:
    """Return an outcome but for its times, its place and its name."""
    failures = [{**failure, "line": 0} for failure in outcome.get("failures", [])]
    return {**{key: value for key, value in outcome.items() if key not in OTHERWISE}, "failures": failures}


def test_no_case_changes_the_outcome_of_another(tmp_path: Path) -> None:
    attempts = dict(forgeries())
    assert len(attempts) > 70
    alone = Session(tmp_path / "alone")
    alone.cases(victim=VICTIM)
    expected = seen(alone.run().outcomes["victim"])
    assert expected["failures"][0]["path"] == "log"  # the numbers that it draws; all else holds
    session, steps = Session(tmp_path / "all"), {"victim": VICTIM}
    for number, text in enumerate(attempts.values()):
        steps[f"forger_{number}"] = f"- {json.dumps(text)}\n- expect: {{int(2): 2}}\n"
        steps[f"victim_{number}"] = VICTIM
    session.cases(**steps)
    result = session.run("--workers", "1", "--worker-memory", "2", "--page", "never")
    found = result.outcomes
    assert len(found) == len(steps)
    names = {f"victim-{number}": name for number, name in enumerate(attempts)} | {"victim": "nothing"}
    changed = {names[case]: seen(found[case]) for case in names if seen(found[case]) != expected}
    assert changed == {}
    told = {name: found[f"forger-{number}"].get("reason", "") for number, name in enumerate(attempts)}
    assert {name: reason.partition(";")[0] for name, reason in told.items() if LEFT in reason} == TOLD
