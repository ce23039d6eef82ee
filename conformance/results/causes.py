"""Groups what is red, and what is unsupported, by cause: each is told once, with its smallest case.

Outcomes of one cause have a signature in common. Where that says too little, of a wrong value or of a worker that died,
the operations in the text of the cases tell causes apart, and failing that the topics. Workers that die wherever there
are complex numbers do so for one cause.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import lru_cache

from conformance.language.operations import PREFIX
from conformance.language.vocabulary import ATTRIBUTES, FACTORIES, NAMESPACES
from conformance.model.outcome import Outcome
from conformance.model.report import CaseRecord, Cause, Pair, Report
from conformance.model.status import RED, TABLE
from conformance.results.signature import CHECKS, ON_VALUES, caller, operator, signature

Group = tuple[Cause, Sequence[Outcome]]
Suspect = tuple[str, str]  # an operation or kind of numbers, or a topic, program or way; the other is empty
Key = tuple[bool, str, str, str]  # whether it is red, then the signature, the op and the topic that tell it from others

TOLD = RED | {"unsupported"}
FEWEST = 3  # outcomes that make an operation suspect: fewer can have one in common by chance
COMPLEX: Suspect = ("complex numbers", "")
OF_COMPLEX = re.compile(r"\bcomplex(?:64|128)?\b|\d[jJ]\b")
ON = "-on-"  # in the id of a case of an equivalence, between the way and the program
MOST_NAMED = 3  # operations of one step
TEXTS = 2**14  # of cases that are kept with what was found in them: reports of several builds have the same ones
USED = re.compile(r"\.([a-z_]\w*)|\b([a-z_]\w*)\(")
OF_TORCH = ("torch", "nn.functional", "linalg", "fft", "special", "sparse")
OPERATIONS = frozenset(
    name.rstrip("_")
    for names in (*(NAMESPACES[path] for path in OF_TORCH), ATTRIBUTES) for name in names
    if not name.startswith("set_") or name == "set_"
) - {*CHECKS, *OF_TORCH}  # fmt: skip


def causes_of(report: Report) -> tuple[Cause, ...]:
    """Return the causes of a report, what is red before what is unsupported, and the most outcomes first."""
    return tuple(cause for cause, _ in groups_of(report.outcomes, {record.id: record for record in report.cases}))


def groups_of(outcomes: Iterable[Outcome], records: Mapping[str, CaseRecord]) -> list[Group]:
    """Return the causes of outcomes, in the same order, each with the outcomes that have it.

    The passes among `outcomes` tell which operations are in order; `records` has the words of all their cases.
    """
    known = list(outcomes)
    signatures = {outcome.pair: signature(outcome) for outcome in known if outcome.status in TOLD}
    wrong = [each for each in known if each.status in RED and signatures[each.pair].startswith(ON_VALUES)]
    ended = [each for each in known if each.status == "crash"]
    passed = [each for each in known if each.status == "pass"]
    parts = parts_of(records)
    compared = [*wrong, *ended, *passed] if len(wrong + ended) >= FEWEST else []
    of = {case: suspects_in(records[case], parts) for case in dict.fromkeys(outcome.case for outcome in compared)}
    suspected = {**suspects(ended, passed, of, {COMPLEX}), **suspects(wrong, passed, of)}
    groups: dict[Key, list[Outcome]] = {}
    for outcome in known:
        if outcome.status in TOLD:
            key = key_of(outcome, signatures[outcome.pair], suspected.get(outcome.pair), records[outcome.case])
            groups.setdefault(key, []).append(outcome)
    found = [(cause_of(key, own, signatures, records), own) for key, own in groups.items()]
    return sorted(found, key=lambda group: (not group[0].is_red, -len(group[1]), group[0].title))


def key_of(outcome: Outcome, own: str, suspect: Suspect | None, record: CaseRecord) -> Key:
    is_red = outcome.status in RED
    if suspect is not None:
        return is_red, "", *suspect
    if is_red and own.startswith(ON_VALUES):
        op = first_operation(record) if record.id.startswith(PREFIX) else ""
        return is_red, own, op, "" if op else record.topic
    if not TABLE[outcome.status].ends_worker:
        return is_red, own, operator(own), ""
    where = operations_at(outcome, record) or caller(outcome)
    return is_red, own, where, "" if where or outcome.line is not None else record.topic


def cause_of(
    key: Key, outcomes: Sequence[Outcome], signatures: Mapping[Pair, str], records: Mapping[str, CaseRecord]
) -> Cause:
    smallest = min(outcomes, key=lambda outcome: size_of(records[outcome.case]))
    said = Counter(signatures[outcome.pair] for outcome in outcomes)
    _, _, op, topic = key
    return Cause(
        id=hashlib.sha256("\0".join(map(str, key)).encode("utf-8", "surrogatepass")).hexdigest()[:8],
        signatures=tuple(text for text, _ in said.most_common()), op=op, topic=topic,
        counts=dict(sorted(Counter(outcome.status for outcome in outcomes).items())),
        case=smallest.case, target=smallest.target,
        targets=tuple(dict.fromkeys(outcome.target for outcome in outcomes)),
        cases=tuple(dict.fromkeys(outcome.case for outcome in outcomes)),
    )  # fmt: skip


def size_of(record: CaseRecord) -> tuple[int, int]:
    """Return how much there is to read of a case, and how many steps it has."""
    begin = record.steps[0].line - record.line if record.steps else 0
    return len("\n".join(record.yaml.splitlines()[begin:])), len(record.steps)


def suspects(
    wrong: Iterable[Outcome],
    passed: Iterable[Outcome],
    of: Mapping[str, Mapping[Suspect, str]],
    among: Container[Suspect] | None = None,
) -> dict[Pair, Suspect]:
    """Return what outcomes seem to owe their faults to, for those that have such a thing; only `among` these if given.

    `of` has what each case may owe them to.

    It is one of which more outcomes are wrong than right on a device, among all that use or are about it; all ways that
    one program is tried in count as one there, as they share its faults. What stands out most explains its outcomes,
    and the next one is sought for those that are left.
    """
    found: dict[Pair, Suspect] = {}
    by_device = {device: own for device, own in on_devices(wrong).items() if len(own) >= FEWEST}
    right = on_devices(passed) if by_device else {}

    def kinds(outcomes: Iterable[Outcome]) -> Counter[Suspect]:
        seen = {(each, kind) for outcome in outcomes for each, kind in of[outcome.case].items()}
        return Counter(each for each, _ in seen)

    for device, outcomes in by_device.items():
        left = outcomes
        held = kinds(right.get(device, ()))
        while True:
            explained = Counter(each for outcome in left for each in of[outcome.case])
            failed = kinds(left)
            rated = {
                each: count * failed[each] / (failed[each] + held[each])
                for each, count in explained.items()
                if failed[each] >= FEWEST and failed[each] > held[each] and (among is None or each in among)
            }
            if not rated:
                break
            worst = max(rated, key=lambda each: (rated[each], not each[0], each))  # of equals what says less, a topic
            found.update((outcome.pair, worst) for outcome in left if worst in of[outcome.case])
            left = [outcome for outcome in left if worst not in of[outcome.case]]
    return found


def parts_of(records: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return the way and the program of each case that tries one of several ways on one of several programs."""
    split = {case: (way, program) for case in records for way, on, program in [case.partition(ON)] if on}
    ways, programs = (Counter(each[place] for each in split.values()) for place in (0, 1))
    return {case: parts for case, parts in split.items() if min(ways[parts[0]], programs[parts[1]]) >= FEWEST}


def suspects_in(record: CaseRecord, parts: Mapping[str, tuple[str, str]]) -> dict[Suspect, str]:
    """Return what an outcome of a case may owe a wrong value to; outcomes of one of these texts count once for it."""
    way, program = parts.get(record.id, ("", record.id))
    found: dict[Suspect, str] = dict.fromkeys(
        [*((name, "") for name in operations_in(record.yaml)), ("", record.topic)], program
    )
    if is_of_complex(record.yaml):
        found[COMPLEX] = program
    if way:
        found.update({("", part.replace("-", " ")): record.id for part in (way, program)})
    return found


def on_devices(outcomes: Iterable[Outcome]) -> dict[str, list[Outcome]]:
    found: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        found.setdefault(outcome.target.rpartition("-")[0], []).append(outcome)
    return found


def operations_at(outcome: Outcome, record: CaseRecord) -> str:
    """Return the operations of the step at which a worker ended, or an empty string where it isn't known."""
    lines = [step.line - record.line for step in record.steps]
    at = -1 if outcome.line is None else outcome.line - record.line
    begin = max((line for line in lines if line <= at), default=None)
    if begin is None:
        return ""
    end = min((line for line in lines if line > at), default=None)
    names = operations_in("\n".join(record.yaml.splitlines()[begin:end]))
    return ", ".join([name for name in names if name not in FACTORIES or FACTORIES.issuperset(names)][:MOST_NAMED])


def first_operation(record: CaseRecord) -> str:
    """Return the first operation that a case of one uses, or an empty string where it uses none that has a name."""
    return next((name for name in operations_in(record.yaml) if name not in FACTORIES | {"clone"}), "")


@lru_cache(TEXTS)
def operations_in(text: str) -> tuple[str, ...]:
    """Return the names of operations that a text uses, in their order, without the mark of those in place."""
    used = ((attribute or function).rstrip("_") for attribute, function in USED.findall(text))
    return tuple(dict.fromkeys(name for name in used if name in OPERATIONS))


@lru_cache(TEXTS)
def is_of_complex(text: str) -> bool:
    return OF_COMPLEX.search(text) is not None
