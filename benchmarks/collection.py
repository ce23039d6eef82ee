"""Measures how long collecting 1,000, 10,000 and 100,000 cases takes, without and with the cache of loaded cases.

    python benchmarks/collection.py

Collecting is linear if the time per case, in milliseconds in both columns, doesn't grow.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from projects import run_cases, write_cases
from turns import Command, run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--counts", type=int, nargs="+", default=[1_000, 10_000, 100_000], help="how many cases")
    options = parser.parse_args()
    print(f"{'cases':>8}  {'first time':>22}  {'again':>22}")
    for count in options.counts:
        with tempfile.TemporaryDirectory() as name:
            words = run_cases(sys.executable, "-q", "--collect-only", "--no-summary")
            command = Command(words=words, directory=write_cases(Path(name), count))
            cells = []
            for _ in ("first time", "again"):
                taken = run(command).wall
                cells.append(f"{taken:7.2f} s, {taken / count * 1000:5.2f} ms each")
            print(f"{count:>8}  {cells[0]:>22}  {cells[1]:>22}")


if __name__ == "__main__":
    main()
