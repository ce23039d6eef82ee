"""Measures the same cases on one worker, two, and so on.

    python benchmarks/scaling.py                      # 2,000 cases on 1, 2, 4 … workers
    python benchmarks/scaling.py --wait 20            # cases that wait for 20 ms instead

Cases that wait take no CPU time meanwhile, so that not the cores limit what more workers gain, but the suite.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from projects import CALLS, run_cases, write_cases
from turns import ONE_THREAD, Command, in_turn, parser_of, print_ratio, print_rows

WAITS = """\
import time

import torch

SINH = torch.sinh


def sinh(x):
    time.sleep({seconds})
    return SINH(x)


torch.sinh = sinh
"""


def main() -> None:
    powers = [number for number in (1, 2, 4, 8) if number <= 2 * (os.cpu_count() or 1)]
    parser = parser_of(__doc__, count=2000, compares=False)
    parser.add_argument("--workers", type=int, nargs="+", default=powers, help=f"how many workers (default: {powers})")
    parser.add_argument("--wait", type=float, default=0.0, help="for how many milliseconds each case waits")
    options = parser.parse_args()
    module = ["--device-module", "waits"] if options.wait else []
    steps = dict.fromkeys(range(options.count), CALLS) if options.wait else None
    with tempfile.TemporaryDirectory() as name:
        directory = write_cases(Path(name), options.count, steps)
        (directory / "waits.py").write_text(WAITS.format(seconds=options.wait / 1000))
        commands = {
            f"{number} worker{'s' * (number > 1)}": Command(
                words=run_cases(sys.executable, "-q", "--workers", str(number), *module),
                directory=directory,
                variables=ONE_THREAD | {"PYTHONPATH": str(directory)},
            )
            for number in options.workers
        }
        taken = in_turn(commands, options)
    title = f"{options.count} cases{f' that wait {options.wait:g} ms' * bool(options.wait)}, {options.rounds} rounds"
    print_rows(title, taken, ("wall", "each", "own_cpu", "workers_cpu"), options.count)
    first, *others = taken
    for label in others:
        print_ratio(f"{first} / {label}, wall", taken[first], taken[label], "wall")


if __name__ == "__main__":
    main()
