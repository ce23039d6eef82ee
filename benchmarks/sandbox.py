"""Measures what the kernel's confinement of the workers costs: the same cases with and without it, in turn.

python benchmarks/sandbox.py                     # 1,000 cases
python benchmarks/sandbox.py --count 2000 --rounds 9
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from projects import run_cases, write_cases
from turns import Command, in_turn, parser_of, print_ratio, print_rows, states


def main() -> None:
    parser = parser_of(__doc__, count=1000, compares=False)
    options = parser.parse_args()
    options.before = None
    (python,) = states(options).values()
    with tempfile.TemporaryDirectory() as name:
        commands = {}
        for mode in ("auto", "off"):
            directory = write_cases(Path(name) / mode, options.count)
            words = run_cases(python, "--trust", f"--sandbox={mode}", places=[str(directory)])
            commands[mode] = Command(words=words, directory=directory)
        taken = in_turn(commands, options)
    print_rows(f"{options.count} cases, {options.rounds} rounds", taken, ("first", "wall", "workers_cpu"))
    for column, label in (
        ("first", "first outcome"),
        ("wall", "wall"),
        ("cpu", "CPU"),
        ("workers_cpu", "CPU of workers"),
    ):
        print_ratio(f"{label}, confined / not", taken["auto"], taken["off"], column)


if __name__ == "__main__":
    main()
