"""Changes each expectation of a program so that it is wrong: one that is met all the same can't fail."""

import copy
from collections.abc import Iterator
from typing import Any, NamedTuple

OPPOSITES = {"is": "is_not", "is_not": "is", "shares_storage": "not_shares_storage"}
OPPOSITES["not_shares_storage"] = "shares_storage"


class Mutant(NamedTuple):
    """A program with one expectation changed: its line in the case file, and what it is of."""

    line: int
    path: str
    program: dict[str, Any]


def changed(name: str, value: Any) -> Any:
    """Return an expectation that the same observation can't meet."""
    if name == "view_of":
        return {"expr": "3"}
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value + 0.5
    if value is None:
        return "Other" if name == "grad_fn" else [0.125]
    if isinstance(value, dict) and "expr" in value:
        return {"expr": f"({value['expr']}, 'something else')"}
    if isinstance(value, dict) and "checks" in value:
        return {"checks": [[inner, changed(inner, expected), line] for inner, expected, line in value["checks"]]}
    if isinstance(value, list):
        return [*value, value[-1]] if value else [1]
    return f"{value}Other"


def mutants(program: dict[str, Any]) -> Iterator[Mutant]:
    """Yield the program with each of its expectations changed, one at a time."""
    for index, step in enumerate(program["steps"]):
        for key in ("raises", "warns"):
            if key in step:
                wrong = copy.deepcopy(program)
                expected = wrong["steps"][index][key]
                if expected["type"] is None:
                    expected.update(type="RuntimeError", match=["something else"])
                else:
                    expected["match"] = [*expected["match"], "and something else"]
                yield Mutant(step["line"], key, wrong)
        for number, entry in enumerate(step.get("expect", ())):
            for place, (name, value, line) in enumerate(entry["checks"]):
                if name in ("rtol", "atol"):
                    continue
                wrong = copy.deepcopy(program)
                check = wrong["steps"][index]["expect"][number]["checks"][place]
                if name in OPPOSITES:
                    check[0] = OPPOSITES[name]
                else:
                    check[1] = changed(name, value)
                yield Mutant(line, f"{entry['subject']}.{name}", wrong)
