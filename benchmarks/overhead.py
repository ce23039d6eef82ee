"""Compares the same checks as YAML cases, as hand-written pytest functions and as a bare loop.

    python benchmarks/overhead.py                     # 2,000 checks, five rounds
    python benchmarks/overhead.py --count 100000 --rounds 1 --warm-ups 0 --without functions loop
    python benchmarks/overhead.py --count 500 --delay 1

All sides have one thread in torch: the suite's worker always has, and threads that wait for each other cost small
tensors dearly. The rows "default threads" are the functions and the loop as torch runs them if nobody sets a number.
The cases run in several processes, so that their wall time can be less than their CPU time: read both ratios. The
floor is pytest with as many custom items that do nothing; what pytest's process needs beyond it is the suite's own
work. All times include the start of the processes, and those of the cases the report, its graphs and the page.

The warm-up writes the `.pyc` files of the functions and the suite's cache. `--cold` removes both before every run.

With `--delay`, all checks run on the small device of the suite's tests, which is compiled (it needs g++) when it is
first used. Each of its operations, and each copy from or to it, takes that many milliseconds longer.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from projects import TOY_BACKEND, remove_caches, run_cases, write_cases, write_floor, write_functions, write_loop
from turns import ONE_THREAD, Command, in_turn, parser_of, print_ratio, print_rows, record_graphs, states

ON_DEVICE = "\nimport toy_backend\n\ntorch.set_default_device('toy')\n"
ROWS = ("functions", "loop", "default-threads", "floor")
COLUMNS = ("wall", "each", "own_cpu", "workers_cpu", "own_peak", "worker_peak")


def main() -> None:
    parser = parser_of(__doc__, count=2000)
    parser.add_argument("--cold", action="store_true", help="remove the caches before each run")
    parser.add_argument("--without", choices=ROWS, nargs="+", default=[], help="rows to leave out")
    parser.add_argument("--delay", type=float, help="how many milliseconds longer each operation of the device takes")
    options = parser.parse_args()
    count, delay = options.count, options.delay
    title = f"{count} checks, {options.rounds} rounds{', cold' * options.cold}"
    start, device, default = "", [], {}
    if delay is not None:
        title += f", {delay:g} ms for each operation"
        start, device = ON_DEVICE, ["--device", "toy", "--device-module", "toy_backend"]
        default = {"PYTHONPATH": str(TOY_BACKEND), "TOY_DELAY": str(round(delay * 1000))}
    pytest = [sys.executable, "-m", "pytest", "-q"]
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        runs = {
            f"cases{state}": (run_cases(python, "-q", *device), write_cases(top / f"cases{state}", count))
            for state, python in states(options).items()
        }
        if "functions" not in options.without:
            runs["hand-written"] = (pytest, write_functions(top / "functions", count, start))
        if "loop" not in options.without:
            runs["bare loop"] = ([sys.executable, "loop-0.py"], write_loop(top / "loop", count, start))
        if "floor" not in options.without:
            runs["floor"] = (pytest, write_floor(top / "floor", count))
        one = ONE_THREAD | default
        commands = {label: Command(words=run[0], directory=run[1], variables=one) for label, run in runs.items()}
        for label in ("hand-written", "bare loop"):
            if label in runs and "default-threads" not in options.without:
                words, directory = runs[label]
                commands[f"{label}, default threads"] = Command(words=words, directory=directory, variables=default)
        for label in runs:
            if label.startswith("cases") and options.warm_ups and not options.cold:
                record_graphs(commands[label])
        taken = in_turn(commands, options, before=remove_caches if options.cold else None)
    print_rows(title, taken, COLUMNS, count)
    ours = taken.pop("cases")
    if "floor" in taken:
        print_ratio("cases / floor, CPU of pytest", ours, taken.pop("floor"), "own_cpu")
    for label, theirs in taken.items():
        print_ratio(f"cases / {label}, wall", ours, theirs, "wall")
        print_ratio(f"cases / {label}, CPU", ours, theirs, "cpu")


if __name__ == "__main__":
    main()
