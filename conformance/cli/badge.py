"""Prints the JSON of a shields.io badge."""

import argparse
from pathlib import Path

from conformance.cli.input import load
from conformance.cli.output import json_text, put
from conformance.render.badge import badge_of

DESCRIPTION = """\
Prints the JSON that https://shields.io/badges/endpoint-badge reads from a place of yours: counts by status for each
device, red when something is, grey for a report that is incomplete.

  autograd-conformance badge reports/torch-2.13.0.json --label "autograd, nightly" > badge.json

exit statuses: 0 printed, whatever the report says; 2 the report can't be read
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("report", metavar="REPORT", type=Path, help="a JSON report")
    parser.add_argument(
        "--label", help="the left half of the badge (default: autograd on torch and back-ends, with versions)"
    )


def run(options: argparse.Namespace) -> int:
    put(json_text(badge_of(load(options.report), options.label)))
    return 0
