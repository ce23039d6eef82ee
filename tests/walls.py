"""Makes the attempts of `escapes.py` to leave the case language, each in a process of its own; tells what they gain.

    python tests/walls.py language                       the case language alone
    python tests/walls.py kernel --trace                 the kernel alone, seen by strace
    python tests/walls.py both                           as a run of a stranger's cases has it
    python tests/walls.py none                           neither: which attempts would do what they are for

`--count 100 --seed 1` makes some of them. The exit status is 1 where an attempt has gained anything.
"""

# ruff: noqa: T201

from __future__ import annotations

import argparse
import collections
import itertools
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from escapes import CALL, Escape, corpus
from places import ROOT

WALLS = ("language", "kernel", "both", "none")
SECRET = "what nobody may read"
TRACED = (
    "openat,open,creat,execve,execveat,fork,vfork,clone,clone3,socket,socketpair,unlink,unlinkat,rename,renameat,renameat2,"
    "mkdir,mkdirat,link,linkat,symlink,symlinkat,chmod,fchmodat,truncate,ptrace,kill,seccomp"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What came of an attempt: how its case ended, and what it has gained if anything."""

    status: str
    gained: str = ""
    events: list[str] = field(default_factory=list)  # of Python's audit, where the language is to prevent them


def chosen(count: int | None = None, seed: int = 0, *, whole: bool = False) -> list[Escape]:
    """Return a sample of the corpus that has some of each class, or all of it."""
    by_kind: dict[str, list[Escape]] = collections.defaultdict(list)
    for escape in corpus().values():
        by_kind[escape.kind].append(escape)
    total = sum(map(len, by_kind.values()))
    if whole or count is None or count >= total:
        return list(corpus().values())
    drawn = random.Random(seed)
    shares = [(of_kind, max(1, count * len(of_kind) // total)) for of_kind in by_kind.values()]
    return [each for of_kind, share in shares for each in drawn.sample(of_kind, share)]


def attempt(
    escapes: Sequence[Escape], ways: Sequence[str], directory: Path, trace: Path | None = None
) -> dict[str, dict[str, Made]]:
    """Make attempts in these ways, and return what came of each; what they print and write is looked at from here."""
    tasks: list[dict[str, str]] = []
    places: list[tuple[str, Escape, Path]] = []
    for way, escape in itertools.product(ways, escapes):
        place = directory / str(len(tasks))
        place.mkdir()
        (place / "secret").write_text(SECRET)
        text, file = escape.at(str(place))
        places.append((way, escape, place))
        tasks.append({"walls": way, "text": text, "file": file, "output": f"{place}.out"})
    scratch = directory / "scratch"
    scratch.mkdir()
    tracing = ["strace", "-f", "-qq", "-y", "-s", "300", "-e", f"trace={TRACED}", "-o", str(trace)] if trace else []
    done = subprocess.run(
        [*tracing, sys.executable, str(ROOT / "tests" / "attempting.py"), str(directory)],
        input=json.dumps(tasks), text=True, check=True, stdout=subprocess.PIPE, cwd=scratch,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}", "TMPDIR": str(scratch)},
    )  # fmt: skip
    found: dict[str, dict[str, Made]] = {way: {} for way in ways}
    for (way, escape, place), told in zip(places, json.loads(done.stdout), strict=True):
        is_call = escape.deed == CALL and way == "kernel"  # to the kernel a call of a function is nothing
        printed = "" if is_call else Path(f"{place}.out").read_text(encoding="utf-8", errors="replace")
        left = sorted(path.name for path in place.iterdir() if path.name != "secret")
        is_changed = (place / "secret").read_text() != SECRET
        gains = [*re.findall(r"^gained.*|.*what nobody may read.*", printed, re.MULTILINE)[:1],
                 *(f"made {name}" for name in left), *["changed the secret"] * is_changed]  # fmt: skip
        events = told["events"] if way in ("language", "both") else []
        found[way][escape.id] = Made(status=told["status"], gained="; ".join(gains), events=events)
    return found


def calls_in(text: str) -> Iterator[tuple[str, str]]:
    """Yield the calls that strace has seen to their end, each with the number of its thread."""
    begun: dict[str, str] = {}
    for line in text.splitlines():
        number, _, call = line.partition(" ")
        call = call.strip()
        if call.endswith("<unfinished ...>"):
            begun[number] = call[: -len("<unfinished ...>")].strip()
            continue
        resumed = re.match(r"<\.\.\. \w+ resumed>(.*)", call)
        yield number, begun.pop(number, "") + resumed[1] if resumed else call


def calls_that_passed(trace: Path, directory: Path, allowed: Iterable[str]) -> list[str]:
    """Return the lines of strace on calls that a confined process has made with success, but may not."""
    places = tuple(f"{place.rstrip('/')}/" for place in allowed)
    confined, wrong = set(), []
    for number, call in calls_in(trace.read_text(encoding="utf-8", errors="replace")):
        if call.startswith("seccomp(") and call.endswith("= 0") and "SECCOMP_SET_MODE_FILTER" in call:
            confined.add(number)
        made = re.match(r"(\w+)\((.*)\) += (-?\d+)(?:<(.*)>)?", call)
        if number not in confined or made is None or int(made[3]) < 0 or made[1] == "seccomp":
            continue
        name, words, _, path = made.groups()
        is_thread = name in ("clone", "clone3") and "CLONE_THREAD" in words
        confined |= {made[3]} if is_thread else set()
        is_own = name == "kill" and words.split(",")[0] == number
        is_read = name in ("openat", "open") and not re.search(r"O_(WRONLY|RDWR|CREAT|TRUNC)", words)
        is_scratch = f"{directory}/scratch/worker-" in words or (path or "").startswith(f"{directory}/scratch/worker-")
        is_open = is_read and f"{path}/".startswith(places)
        is_nothing = name == "openat" and (path or "").startswith(("/dev/null", "/dev/zero"))
        if not (is_thread or is_own or is_open or is_scratch or is_nothing):
            wrong.append(f"{number} {call}")
    return wrong if confined else ["no process has been confined"]


def told(found: Mapping[str, Made], escapes: Sequence[Escape]) -> str:
    """Return a table: for each class the attempts, how their cases ended, and how many have gained something."""
    rows = []
    for kind in dict.fromkeys(escape.kind for escape in escapes):
        made = [found[escape.id] for escape in escapes if escape.kind == kind]
        ends = collections.Counter(each.status for each in made)
        ended = ", ".join(f"{count} {status}" for status, count in sorted(ends.items()))
        rows.append(f"{kind:32} {len(made):5}  gained {sum(bool(each.gained) for each in made):4}  {ended}")
    return "\n".join(rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("walls", choices=WALLS)
    parser.add_argument("--count", type=int, help="make about so many attempts (default: all)")
    parser.add_argument("--seed", type=int, default=0, help="which ones")
    parser.add_argument("--trace", action="store_true", help="have strace look on, and list what passed")
    options = parser.parse_args()
    escapes = chosen(options.count, options.seed)
    passed: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        if options.trace and shutil.which("strace") is None:
            parser.error("strace is not installed")
        trace = directory / "trace" if options.trace else None
        found = attempt(escapes, [options.walls], directory, trace)[options.walls]
        if trace is not None:
            allowed = json.loads((directory / "readable").read_text())
            passed = calls_that_passed(trace, directory, allowed)
    gained = {name: made for name, made in found.items() if made.gained or made.events}
    for name, made in gained.items() if options.walls != "none" else ():
        print(f"{name}: {made.status}: {made.gained} {made.events}")
    print(*passed, told(found, escapes), sep="\n")
    print(f"{len(found)} attempts, {sum(bool(made.gained) for made in found.values())} have gained something")
    return int(bool(gained or passed))


if __name__ == "__main__":
    sys.exit(main())
