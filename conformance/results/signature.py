"""Signatures: what outcomes of one cause have in common, without shapes, numbers, addresses and names of one case.

Of an error it is the message, of an expectation the check and how it diverged, of a worker what ended it.
"""

import re

from conformance.model.outcome import Failure, Outcome

LONGEST = 160  # characters; behind them stand hints, and lists of back-ends
MOST_READ = 4000  # of a text, twice what workers tell: what is replaced in it takes time by the square of its length
OWN_WORDS = "needs "  # how the suite's own reasons begin, in which versions matter
# The checks of expectations. Where several fail at once, the first of these explains the others: what requires no grad
# has no grad_fn, and a view with memory of its own sees no write.
CHECKS = (
    "device", "layout", "dtype", "type", "is", "is_not", "shape", "requires_grad", "is_leaf", "is_inference", "view_of",
    "shares_storage", "not_shares_storage", "stride", "is_contiguous", "grad_fn", "next_functions", "output_nr",
    "version", "retains_grad", "grad", "value", "log",
)  # fmt: skip
ON_VALUES = ("grad: ", "value: ", "log: ", "GradcheckError: ")  # signatures that don't say what is wrong
OPERATOR = re.compile(r"\baten(?:::|\.)[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)?")

LAST_WORDS = re.compile(r"(?:what\(\): *|(?=Check failed|Assertion [`'\"]))(\S[^\n]*)")  # of C++ before it aborts
NO_SOURCE = " (no source)"  # how the names of case files end in stacks
FRAME = re.compile(r'File "([^"\n]+)", line \d+,? in (\w+)')  # as faulthandler has them
OF_WAY = re.compile(r"\[(\w+): (.*?); (?:[^;:]*: )?f\(.*", re.DOTALL)  # an error that derivatives() tells
PATH = re.compile(rf"(?!.* (?:==|!=|is|in|and|or|not) ).*\.({'|'.join(CHECKS)})", re.DOTALL)
OF_GRADIENT = re.compile(rf"({'|'.join(CHECKS)}) (.+?)(?:, the tensor's own)?", re.DOTALL)
TRUTHS = {("true", "false"), ("false", "true")}
NUMBER = re.compile(r"[0-9]{1,18}")  # one with thousands of digits can't be read
NONZERO = re.compile(r"[1-9]|[a-z]{2}")
REPLACED = [
    (re.compile(pattern), instead)
    for pattern, instead in {
        r"\s*from user code:(?s:.*)": "",  # where the compiler was, and how to be told more
        r"0x[0-9a-fA-F]+": "0x…",
        r"(?<![\w.+~@/-])/*(?:[\w.+~@-]+/+)+(?=[\w+-]+\.[A-Za-z])": "",  # the directories of a file
        r"(?:(?<![\w)\]])[-+])?\b\d+(?:\.\d+)*(?:e[-+]?\d+|x\d+|st|nd|rd|th|j)*\b(?:\.(?=[,\])]))?": "N",
        r"(['\"`])[A-Za-z]\d?\1": "'…'",  # a variable
        r"\bN(?:(?:, ?| x )N)+\b": "N",
        r"(?<=with respect to input N), numerical:.*": "",  # what gradcheck says of any difference
    }.items()
]
NUMBERS = re.compile(r"\[…\](?:\[…\])+|(?<=\w)\[\]|[\[({](?:N|nan|inf|…|\[…\]|[,:\s])+[\])}]")
SENTENCE = re.compile(r"(?<=[\w'\")\]…])[.;] (?=[A-Z(])")


def signature(outcome: Outcome) -> str:
    """Return the signature of an outcome; of a known issue, what it would be if nobody knew of it."""
    status = outcome.issue.status if outcome.issue is not None and outcome.status == "known" else outcome.at_first
    if outcome.signal or outcome.exit_status is not None:
        said = LAST_WORDS.search(outcome.stderr)
        words = f": {normalized(said[1])}" if said else ""
        return (outcome.signal or f"exit status {outcome.exit_status}") + words
    if status == "timeout":
        return "no answer in time"
    if status == "fixed" and outcome.issue is not None:
        return f"no longer fails: {outcome.issue.reason}"
    if not outcome.failures:
        return outcome.reason if outcome.reason.startswith(OWN_WORDS) else normalized(outcome.reason) or status
    return min(map(divergence, outcome.failures))[1]


def caller(outcome: Outcome) -> str:
    """Return the innermost function of Python's stack in what a worker said last, unless it is the case itself."""
    found = FRAME.search(outcome.stderr)
    return found[2] if found and not found[1].endswith((".yaml", ".yml", NO_SOURCE)) else ""


def operator(text: str) -> str:
    """Return the operator of torch that a signature names, or an empty string."""
    found = OPERATOR.search(text)
    return found[0] if found else ""


def divergence(failure: Failure) -> tuple[int, str]:
    """Return the rank of a failure and its signature; an error explains everything else that failed."""
    expected, observed, path = failure.expected, failure.observed, failure.path
    if path in ("raises", "warns") and not failure.exception:
        return 0, f"{path}: nothing instead of {first_part(expected)}"
    if failure.exception:
        return 0, ("warns: " if path == "warns" else "") + normalized(observed)
    told = OF_WAY.fullmatch(observed) if path.startswith("wrong['") else None
    if told is not None:
        return 0, normalized(f"{told[1]}: {told[2]}")
    found = PATH.fullmatch(path)
    check = found[1] if found else "log" if path == "log" else "value"
    inner = OF_GRADIENT.fullmatch(expected) if check == "grad" else None
    if inner is not None:
        check = "grad" if inner[1] == "value" else inner[1]
        expected, observed = inner[2], observed.removeprefix(f"{inner[1]} ")
    return CHECKS.index(check) + 1, f"{check}: {difference(check, expected, observed)}"


def difference(check: str, expected: str, observed: str) -> str:
    """Return in words how what was observed differs, for a check of this name."""
    if expected.startswith("a tensor, to look at"):
        return "of no tensor"
    if check in ("is", "is_not", "view_of", "shares_storage", "not_shares_storage"):
        return first_part(observed).partition(",")[0]
    if check == "version" and NUMBER.fullmatch(expected) and NUMBER.fullmatch(observed):
        return "too low" if int(observed) < int(expected) else "too high"
    if check in ("shape", "stride", "next_functions", "output_nr", "version"):
        return "another"
    if check in ("grad", "value", "log"):
        return difference_of_values(expected, observed)
    return f"{normalized(observed)} instead of {normalized(expected) if observed != 'null' else 'a node'}"


def difference_of_values(expected: str, observed: str) -> str:
    if "null" in (expected, observed):
        return "a value instead of null" if expected == "null" else "null instead of a value"
    if (expected, observed) in TRUTHS:
        return f"{observed} instead of {expected}"
    if " of shape [" in observed:
        return "another shape"
    if "nan" in observed and "nan" not in expected:
        return "not a number"
    if observed == "[]" or (NONZERO.search(expected) and not NONZERO.search(observed)):
        return "nothing" if observed == "[]" else "zeros"
    return "another value"


def first_part(words: str) -> str:
    """Return of `RuntimeError: … one … another …` what stands before the second part of the message."""
    return normalized("…".join(words.split("…")[:2]))


def normalized(message: str) -> str:
    """Return the first sentence of a message without what differs from case to case."""
    text = " ".join("".join(each if each.isprintable() else " " for each in message[:MOST_READ]).split())
    for pattern, instead in REPLACED:
        text = pattern.sub(instead, text)
    before = ""
    while before != text:
        before, text = text, NUMBERS.sub("[…]", text)
    text = SENTENCE.split(text, 1)[0].rstrip(" .:;,")
    return text if len(text) <= LONGEST else f"{text[:LONGEST].rpartition(' ')[0] or text[:LONGEST]} …"
