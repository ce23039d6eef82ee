"""Measures what it costs when one case in a hundred kills its worker, and that no outcome is lost.

    python benchmarks/crash_storm.py                  # 10,000 cases, of which 100 kill their worker

The same cases run in turn with a module that makes the operation of some of them kill the process, and with one that
doesn't. Each planned case must have its outcome: `crash` for those that kill, and `pass` for all others.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path

from projects import CALLS, run_cases, write_cases
from turns import ONE_THREAD, Command, in_turn, parser_of, print_ratio, print_rows, states

# The module is imported before the suite looks at torch, as that of a device with a defect would be.
KILLS = """\
import os
import signal

import torch


def sinh(x):
    os.kill(os.getpid(), signal.SIGKILL)


torch.sinh = sinh
"""


def main() -> None:
    parser = parser_of(__doc__, count=10_000)
    parser.add_argument("--every", type=int, default=100, help="one case in this many kills (default: 100)")
    options = parser.parse_args()
    killers = range(options.every // 2, options.count, options.every)
    if not killers:
        parser.error(f"none of {options.count} cases would kill its worker, of which one in {options.every} does")
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        variables = ONE_THREAD | {"PYTHONPATH": str(top)}
        (top / "kills.py").write_text(KILLS)
        (top / "kills_not.py").write_text("import torch\n")
        commands = {}
        for state, python in states(options).items():
            for label, module in ((f"crashes{state}", "kills"), (f"no crashes{state}", "kills_not")):
                commands[label] = Command(
                    words=run_cases(python, "-q", "--tb=no", "--device-module", module),
                    directory=write_cases(top / label, options.count, dict.fromkeys(killers, CALLS)),
                    variables=variables, statuses=(1,) if module == "kills" else (0,),
                )  # fmt: skip

        def check(label: str, directory: Path) -> None:
            expected = {f"check-{number}" for number in killers} if label.startswith("crashes") else set()
            why = lost(directory, options.count, expected)
            if why:
                sys.exit(f"{label}: {why}")
            shutil.rmtree(directory / "reports")  # the next run must write its own

        taken = in_turn(commands, options, after=check)
    title = f"{options.count} cases, {len(killers)} of which kill their worker, {options.rounds} rounds"
    print_rows(title, taken, ("wall", "own_cpu", "workers_cpu", "own_peak"))
    for state in states(options):
        print_ratio(f"crashes / no crashes{state}, wall", taken[f"crashes{state}"], taken[f"no crashes{state}"], "wall")
    if options.before:
        print_ratio("crashes, now / before, wall", taken["crashes"], taken["crashes, before"], "wall")
    print(f"  each run: {options.count} outcomes, {len(killers)} of them crash where cases kill, all others pass")


def lost(directory: Path, count: int, killers: set[str]) -> str:
    """Return what is wrong with the outcomes of a report, or nothing."""
    (path,) = (directory / "reports").glob("torch-*.json")
    report = json.loads(path.read_text(encoding="utf-8"))
    statuses = {outcome["case"]: outcome["status"] for outcome in report["outcomes"]}
    planned = {entry["case"] for entry in report["plan"]}
    if not len(statuses) == len(report["outcomes"]) == len(planned) == count or planned != statuses.keys():
        return f"{count} cases, {len(planned)} planned, {len(report['outcomes'])} outcomes"
    expected = {case: "crash" if case in killers else "pass" for case in planned}
    wrong = [f"{case}: {status}" for case, status in statuses.items() if status != expected[case]]
    return f"{len(wrong)} other outcomes than expected, such as {wrong[0]}" if wrong else ""


if __name__ == "__main__":
    main()
