"""Measures what a person waits for who runs one file, or the suite: the first outcome, and the end.

    python benchmarks/waiting.py                      # a file of 20 cases
    python benchmarks/waiting.py hooks.yaml views.yaml
    python benchmarks/waiting.py --suite --before ../before/.venv/bin/python

Importing torch is what no run can do without: read the other times beside it. Everything runs as in the checkout, so
that the page is made with the published reports. Of the suite and its files, each state runs those that it comes with.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from projects import remove_caches, run_cases, write_cases
from turns import Command, in_turn, parser_of, print_ratio, print_rows, states


def root_of(python: str, directory: Path) -> Path:
    """Return the directory above the cases of an interpreter's suite."""
    command = [python, "-c", "import conformance; print(conformance.__file__)"]
    found = subprocess.run(command, cwd=directory, check=True, capture_output=True, text=True)
    package = Path(found.stdout.strip()).parent
    return next(place for place in (package, package.parent) if (place / "cases" / "rules.yaml").exists())


def main() -> None:
    parser = parser_of(__doc__, count=20)
    parser.add_argument("files", nargs="*", help="names of files of the suite, to run instead")
    parser.add_argument("--suite", action="store_true", help="run all files of the suite")
    parser.add_argument("--cold", action="store_true", help="remove the caches before each run")
    options = parser.parse_args()
    what = "the suite" if options.suite else " ".join(options.files) or f"a file of {options.count} cases"
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        commands = {"import torch": Command(words=[sys.executable, "-c", "import torch"], directory=top)}
        for state, python in states(options).items():
            root = root_of(python, top)
            directory = write_cases(top / f"now{state}", options.count)
            written = [] if options.files else [directory]
            places = [root / "cases" / file for file in ([""] if options.suite else options.files)] or written
            words = run_cases(python, f"--rootdir={root}", places=[str(place) for place in places])
            commands[f"now{state}".removeprefix("now, ")] = Command(words=words, directory=directory, statuses=(0, 1))
        taken = in_turn(commands, options, before=remove_caches if options.cold else None)
    print_rows(f"{what}, {options.rounds} rounds", taken, ("first", "wall", "own_cpu", "workers_cpu"))
    print_ratio("first outcome / import torch", taken["now"], taken["import torch"], "first", "wall")
    print_ratio("end / import torch", taken["now"], taken["import torch"], "wall")
    if options.before:
        for column, label in (("first", "first outcome"), ("wall", "end"), ("cpu", "CPU")):
            print_ratio(f"{label}, now / before", taken["now"], taken["before"], column)


if __name__ == "__main__":
    main()
