"""Formats the difference between two reports for a terminal and as Markdown."""

from typing import Any

from conformance.model.report import Cause, Report
from conformance.render.causes import cause_lines
from conformance.render.markdown import render
from conformance.render.text import LONG, build_name, count_words, outcome_line, shortened
from conformance.render.visible import line_of
from conformance.results.causes import groups_of
from conformance.results.diff import FORMAT, KINDS, MEANINGS, Change, Difference, Differences, notes_of, record_of

ORDER = (*KINDS, "unchanged")
QUOTED = ("regressed", "changed-failure", "expected-failure", "fixed")  # kinds of which rules are quoted
LONGEST = 2000  # characters of a line; a report can name a thousand targets
IN_ONE_LINE = ("edited", "added", "removed", "newly-run")  # kinds of which a line for each change is enough
WHEN = ("before", "since")
NO_BASELINE = "no earlier report: there is nothing to compare with"
GONE = "worse (gone): there was a report of this build, and there is none now"


def differences_text(differences: Differences) -> str:
    """Return the differences of several builds for a terminal, each under its name."""
    texts = dict.fromkeys(differences.gone, f"{GONE}\n")
    for name, difference in differences.found.items():
        texts[name] = difference_text(difference) if difference is not None else f"{NO_BASELINE}\n"
    return "\n".join(f"== {line_of(name, LONGEST)}\n{text}" for name, text in texts.items())


def differences_markdown(differences: Differences) -> str:
    """Return the differences of several builds as Markdown: those that got worse in full, the others collapsed."""
    texts = dict.fromkeys(differences.gone, GONE)
    for name, difference in differences.found.items():
        texts[name] = difference_markdown(difference) if difference is not None else NO_BASELINE
    count = f"{len(differences.worse)} of {len(texts)} builds got worse"
    verdict = count if differences.worse else f"nothing got worse on {len(texts)} builds"
    return render("differences.md", {"verdict": verdict, "worse": differences.worse, "texts": texts})


def differences_record(differences: Differences) -> dict[str, Any]:
    """Return the differences of several builds as they stand in JSON."""
    records = {name: None if each is None else record_of(each) for name, each in differences.found.items()}
    return {"format": FORMAT, "gates": bool(differences.worse), "gone": list(differences.gone), "builds": records}


def difference_text(difference: Difference) -> str:
    """Return the difference for a terminal: builds, warnings, counts, causes of what got worse, then each change."""
    counts = dict[str, int](difference.counts.items(), unchanged=difference.unchanged)
    lines = [f"old: {report_line(difference.old)}", f"new: {report_line(difference.new)}"]
    lines += [f"warning: {note}" for note in notes_of(difference)]
    lines += ["", f"{verdict(difference)}: {count_words(counts, ORDER) or 'no cases'}"]
    causes = cause_lines(causes_of_worse(difference))
    lines += ["", *causes] if causes else []
    for kind, changes in difference.by_kind.items():
        lines += ["", f"{kind.replace('-', ' ')}: {MEANINGS[kind]}"]
        for change in changes:
            entry = entry_of(difference, change)
            cites = f"  ({entry['cites']})" if entry["cites"] else ""
            lines += [f"  {entry['case']} [{entry['target']}]  {entry['statuses']}  {entry['place']}{cites}"]
            lines += [f"      {when}: {text}" for when, text in entry["accounts"]]
            lines += [f"      upgrading: {advice}" for advice in entry["upgrade"]]
            lines += [f"      rule {rule['id']} ({rule['level']}): {rule['text']}" for rule in entry["rules"]]
    return "".join(f"{line_of(line, LONGEST)}\n" for line in lines)


def causes_of_worse(difference: Difference) -> list[Cause]:
    """Return the causes of what got worse and is red, the largest first."""
    worse = [change.new for change in difference.changes if change.gates and change.new is not None]
    records = {record.id: record for record in difference.new.cases}
    return [cause for cause, _ in groups_of(worse, records) if cause.is_red]


def difference_markdown(difference: Difference) -> str:
    """Return the difference as Markdown, for a comment or the page of a CI job."""
    groups = {kind: [entry_of(difference, change) for change in own] for kind, own in difference.by_kind.items()}
    context = {
        "verdict": verdict(difference), "old": report_line(difference.old), "new": report_line(difference.new),
        "notes": notes_of(difference), "counts": difference.counts, "unchanged": difference.unchanged,
        "meanings": MEANINGS, "causes": causes_of_worse(difference), "groups": groups, "folded": IN_ONE_LINE,
    }  # fmt: skip
    return render("difference.md", context)


def verdict(difference: Difference) -> str:
    worse = dict.fromkeys(change.kind.replace("-", " ") for change in difference.changes if change.gates)
    return f"worse ({', '.join(worse)})" if worse else "nothing got worse"


def report_line(report: Report) -> str:
    counts = report.counts()
    texts = "; ".join(f"{target} {count_words(counted)}" for target, counted in counts.items())
    return f"{build_name(report.build)}: {texts or 'no cases'}"


def entry_of(difference: Difference, change: Change) -> dict[str, Any]:
    """Return the fields of a change that the text and the template print."""
    rules = difference.rules_of(change) if change.kind in QUOTED else []
    cites = "" if change.kind in QUOTED else ", ".join(change.case.rules)
    latest = change.new or change.old
    earlier = difference.earlier.get(change.case.id)
    return {
        "case": change.case.id + (f" (was {earlier})" if earlier else ""),
        "target": change.target,
        "statuses": " → ".join(outcome.status if outcome else "absent" for outcome in (change.old, change.new)),
        "place": f"{change.case.file}:{latest.line if latest and latest.line else change.case.line}",
        "accounts": [] if change.kind in IN_ONE_LINE else accounts(change),
        "cites": cites,
        "upgrade": [rule.upgrade for rule in difference.rules_of(change) if rule.upgrade and change.expected],
        "rules": [{"id": rule.id, "level": rule.level, "text": shortened(rule.text, LONG)} for rule in rules],
    }


def accounts(change: Change) -> list[tuple[str, str]]:
    """Return lines for the two outcomes: what was wrong, or why it did not run; or what is expected of each."""
    if change.expected:
        sides = [(when, place, text) for place, *both in change.expected for when, text in zip(WHEN, both, strict=True)]
        return [(when, shortened(f"{place}: {text}" if place else text, LONG)) for when, place, text in sides]
    old = outcome_line(change.old) if change.old else ""
    new = outcome_line(change.new) if change.new else "this target is no longer planned"
    return [(when, text) for when, text in (("was", old), ("now", new)) if text]
