"""Finds rules by words, for those who write a case or wonder what autograd promises."""

import argparse
import textwrap
from collections.abc import Iterator
from pathlib import Path

from conformance.cli.output import CommandError, json_text, put
from conformance.language.errors import CaseFileError
from conformance.language.files import case_files, shipped_cases
from conformance.language.outline import entries
from conformance.language.rules import RULES_FILE, load_rules
from conformance.model.rule import Rule
from conformance.render.ranking import ranked

DESCRIPTION = """\
Finds the rules of autograd's behaviour that have some words, the best first, with the cases that check each. Words need
not be in the form that the rules have: `freeing saved tensors` finds what is freed.

  autograd-conformance rules detach shares memory
  autograd-conformance rules --all

exit statuses: 0 found some; 1 found none; 2 a file can't be read
"""
MOST = 12
MOST_CASES = 4
WIDTH = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", metavar="WORDS", nargs="*", help="what to look for, in any order")
    parser.add_argument("--all", action="store_true", help=f"list all that fit, and not the first {MOST} alone")
    parser.add_argument("--rules", metavar="FILE", type=Path, help="rules of your own, beside those of the suite")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="(default: text)")


def run(options: argparse.Namespace) -> int:
    if not options.words and not options.all:
        raise CommandError("expected words to look for", "`--all` lists every rule")
    rules = rules_of(options.rules)
    texts = {name: (f"{name} {rule.topic}", rule.text, rule.upgrade) for name, rule in rules.items()}
    found = ranked(" ".join(options.words), texts) if options.words else list(rules)
    shown = found if options.all else found[:MOST]
    cases = cases_by_rule()
    if options.format == "json":
        told = [{"id": each, **fields(rules[each]), "cases": cases.get(each, [])} for each in shown]
        put(json_text({"rules": told, "found": len(found)}), "utf-8")
        return 0 if found else 1
    lines = [line for each in shown for line in lines_of(rules[each], cases.get(each, []))]
    if len(shown) < len(found):
        lines.append(f"{len(found) - len(shown)} more; --all lists them")
    put("\n".join(lines or ["no rule has these words; try others, or fewer"]).rstrip("\n") + "\n", "utf-8")
    return 0 if found else 1


def rules_of(own: Path | None) -> dict[str, Rule]:
    """Return the rules that come with the suite, and those in a file of one's own."""
    rules = load_rules(shipped_cases() / RULES_FILE, RULES_FILE)
    try:
        return rules if own is None else {**rules, **load_rules(own, str(own))}
    except CaseFileError as error:
        raise CommandError(str(error.problems[0]), "expected rules, as in the suite's rules.yaml") from None
    except OSError as error:
        raise CommandError(f"{own}: can't be read: {error.strerror}", "expected a rules.yaml") from None


def cases_by_rule() -> dict[str, list[str]]:
    """Return the ids of the suite's cases as their files have them, by the rules that they cite.

    The files come with the suite and load; reading only what is looked for takes a hundredth of the time.
    """
    found: dict[str, list[str]] = {}
    for entry in entries(case_files([shipped_cases()])):
        for rule in entry.rules:
            found.setdefault(rule, []).append(entry.id)
    return found


def fields(rule: Rule) -> dict[str, str]:
    return {name: getattr(rule, name) for name in ("text", "level", "topic", "since", "link", "upgrade")}


def lines_of(rule: Rule, cases: list[str]) -> Iterator[str]:
    """Yield the lines that tell of a rule."""
    yield f"{rule.id}  ({rule.level}, since {rule.since})"
    yield from textwrap.wrap(rule.text, WIDTH, initial_indent="  ", subsequent_indent="  ")
    if rule.upgrade:
        text = f"upgrading: {rule.upgrade}"
        yield from textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="  ")
    yield f"  {rule.link}"
    more = [f"and {len(cases) - MOST_CASES} more"] if len(cases) > MOST_CASES else []
    yield f"  cases: {', '.join([*cases[:MOST_CASES], *more]) or 'none: ' + rule.untested}"
    yield ""
