"""Says which of torch's formulas for derivatives no case uses."""

import argparse
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from conformance.cli.attempt import add_python, torch_of
from conformance.cli.input import case_files_at
from conformance.cli.output import CommandError, put, save
from conformance.cli.progress import following
from conformance.execution.reach import Reached, add_reached, left_out, specified
from conformance.language.errors import CaseFileError
from conformance.language.files import load_cases, shipped_cases
from conformance.model.case import Case

DESCRIPTION = """\
Runs the cases on the CPU, notes the node of each backward formula that they go through, and prints which of torch's
formulas, backward and forward, no case uses, and why no case on the CPU can use the others.

  autograd-conformance coverage --python ../venv-2.13/bin/python

With -o it writes the list of cases that `pytest --quick` leaves out: the others take three hundredths of the
time, and use as many formulas and rules as can be had for that.

exit statuses: 0 done; 2 there is no such torch, or one that does not bring its list of formulas (before 2.1)
"""
QUICK_SHARE = 0.03  # of the time that all cases take
LEFT_OUT_HEAD = (
    "# Cases that `pytest --quick` leaves out; written by `python -m conformance coverage -o cases/left-out.txt`"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "cases", nargs="*", type=Path, help="files or directories of cases (default: those of the suite)"
    )
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="write the cases that --quick leaves out")
    add_python(parser)


def run(options: argparse.Namespace) -> int:
    try:
        loaded = load_cases(following(case_files_at(options.cases or [shipped_cases()]), "loading cases"))
        cases = [case for case in loaded if not case.is_covered]  # as a run has them
    except CaseFileError as error:
        raise CommandError(str(error), "the cases must load") from None
    except OSError as error:
        raise CommandError(f"{error.filename}: can't be read: {error.strerror}", "name files of cases") from None
    with torch_of(options.python, list(map(str, options.cases)), trusts=options.trust) as torch:
        reached = specified(Path(torch.build.path))
        if reached is None:
            raise CommandError(f"torch {torch.build.torch} does not bring derivatives.yaml", "torch 2.1 and later do")
        add_reached(reached, cases, torch, follow=running)
    if options.output is not None:
        ids = left_out(reached.by_case, QUICK_SHARE)
        save(options.output, "".join(f"{line}\n" for line in (LEFT_OUT_HEAD, *ids)))
    put(f"torch {torch.build.torch}, {len(cases)} cases on the CPU\n{text_of(reached)}", "utf-8")
    return 0


def running(cases: Sequence[Case]) -> Iterator[Case]:
    return following(cases, "running cases", lambda case: case.id)


def text_of(reached: Reached) -> str:
    """Return what is reached, in figures, and the names of what is not."""
    elsewhere = reached.elsewhere
    there = reached.nodes - elsewhere.keys()
    forward = reached.with_forward & there
    lines = [
        *shares("backward formulas that cases go through", reached.backward, there),
        *shares("forward formulas whose operations cases differentiate forward", reached.forward, forward),
    ]
    groups = (
        ("backward formulas that no case goes through", there - reached.backward),
        ("forward formulas that no case uses", forward - reached.forward),
        *((why, {name for name in elsewhere if elsewhere[name] == why}) for why in dict.fromkeys(elsewhere.values())),
    )
    for title, names in groups:
        if names:
            told = textwrap.fill(", ".join(sorted(names)), 100, initial_indent="  ", subsequent_indent="  ")
            lines += [f"{title}: {len(names)}", told]
    return "\n".join([*lines, ""])


def shares(title: str, reached: set[str], whole: frozenset[str]) -> list[str]:
    """Return the share that is reached, and that without the functions of lists, which repeat formulas of others."""
    single = frozenset(name for name in whole if not name.startswith("Foreach"))
    return [share(title, reached, whole), share("  without functions of lists (foreach)", reached, single)]


def share(title: str, reached: set[str], whole: frozenset[str]) -> str:
    part = len(reached & whole)
    return f"{title}: {part} of {len(whole)}, {100 * part / max(len(whole), 1):.1f} %"
