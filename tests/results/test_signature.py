"""Tests of signatures: what of an outcome is the same in other cases, on messages that back-ends give."""

from __future__ import annotations

from hypothesis import given
from loops import each
from samples import OUTCOMES, failed, outcome

from conformance.language.schema import load_schema
from conformance.model.outcome import Failure, Issue, Outcome
from conformance.results.signature import CHECKS, LONGEST, normalized, operator, signature


def raised(message: str, status: str = "error", path: str = "", expected: str = "no error") -> Outcome:
    return failed(path, expected, message, exception=message.partition(":")[0], status=status)


# As the back-ends give them that were looked at: each line is one cause, whatever the case.
ALIKE = [
    (
        "NotImplementedError: Could not run 'aten::cumsum.out' with arguments from the 'toy' backend",
        "NotImplementedError: Could not run 'aten::cumsum.out' with arguments from the 'toy' backend. This could be "
        "because the operator doesn't exist for this backend, or was omitted during the selective/custom build process",
    ),
    (
        "OperatorNotFound: Operator with name aten::is_same_size has no lowering",
        "OperatorNotFound: Operator with name aten::is_same_size has no lowering",
    ),
    ("KeyError: torch.complex64", "KeyError: torch.complex64"),
    ("AttributeError: module 'torch' has no attribute 'xla'", "AttributeError: module 'torch' has no attribute 'xla'"),
    (
        "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation: "
        "[torch.FloatTensor […]], which is output N of …",
        "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation: "
        "[torch.FloatTensor [2, 2]], which is output 0 of SigmoidBackward0, is at version 1; expected 0.",
    ),
    (
        'RuntimeError: !grad_fn INTERNAL ASSERT FAILED at "variable.cpp":N, please report a bug to PyTorch',
        'RuntimeError: !grad_fn INTERNAL ASSERT FAILED at "/pytorch/torch/csrc/autograd/variable.cpp":792, please '
        "report a bug to PyTorch. ",
    ),
    (
        "RuntimeError: <pybind11_builtins.record object at 0x…> is not pickleable",
        "RuntimeError: <pybind11_builtins.record object at 0x7f00b279f5f0> is not pickleable.",
    ),
    (
        "RuntimeError: mm(): cannot matrix-multiply tensors f32[…] and f32[…]",
        "RuntimeError: mm(): cannot matrix-multiply tensors f32[2,3]{1,0} and f32[]",
    ),
    (
        "RuntimeError: The size of tensor '…' […] must match the size of tensor '…' […] at non-singleton dimension N",
        "RuntimeError: The size of tensor 'a' (2) must match the size of tensor 'b' (3) at non-singleton dimension 0",
    ),
    (
        "GradcheckError: Jacobian mismatch for output N with respect to input N",
        "GradcheckError: Jacobian mismatch for output 0 with respect to input 1, numerical:tensor(0.2, device='x:0') "
        "analytical:tensor(0.3)",
    ),
]


@each("same, message", ALIKE)
def test_a_message_loses_what_differs_from_case_to_case(same: str, message: str) -> None:
    assert normalized(message) == same
    assert signature(raised(message)) == same


def test_what_says_the_same_of_other_numbers_is_the_same_and_of_another_dtype_or_operator_is_not() -> None:
    one, other = "RuntimeError: {} for {} of shape [{}]", ("aten::exp", "complex64", "2, 3")
    first = normalized(one.format(*other))
    assert normalized(one.format("aten::exp", "complex64", "1.5, -2e-5, nan")) == first
    assert normalized(one.format("aten::exp.out", "complex64", "2, 3")) != first
    assert normalized(one.format("aten::exp", "complex128", "2, 3")) != first


@each(
    "text, found",
    [("Could not run 'aten::exp.out' here", "aten::exp.out"), ("no aten::exp. And more", "aten::exp"), ("no", ""),
     ("NotImplementedError: aten.matmul_backward.default", "aten.matmul_backward.default")],
)  # fmt: skip
def test_the_operator_that_a_message_names(text: str, found: str) -> None:
    assert operator(text) == found


@each(
    "path, expected, observed, words",
    [
        ("b.grad", "[1.0, 2.0]", "null", "grad: null instead of a value"),
        ("b.grad", "null", "[1.0]", "grad: a value instead of null"),
        ("b.grad", "[1.0, 2.0]", "[3.0, 2.0]", "grad: another value"),
        ("b.grad", "value [0.5]", "[0.25]", "grad: another value"),
        ("b.grad", "stride [1, 2]", "[2, 1]", "stride: another"),
        ("b.grad", "dtype float32, the tensor's own", "dtype float64", "dtype: float64 instead of float32"),
        ("b.grad", "a tensor, to look at its grad", "3", "grad: of no tensor"),
        ("y", "[1.0]", "[nan]", "value: not a number"),
        ("y", "[1.0, 0.0]", "[0.0, -0.0]", "value: zeros"),
        ("y", "[[1.0]] of shape [1, 1]", "[1.0] of shape [1]", "value: another shape"),
        ("a.dtype == b.dtype", "true", "false", "value: false instead of true"),
        ("log", "[a, b]", "[]", "log: nothing"),
        ("v._base.version", "1", "0", "version: too low"),
        ("x.version", "1", "3", "version: too high"),
        ("y.requires_grad", "true", "false", "requires_grad: false instead of true"),
        ("y.grad_fn", "MulBackward0", "null", "grad_fn: null instead of a node"),
        ("y.grad_fn", "CopySlices", "MulBackward0", "grad_fn: MulBackward0 instead of CopySlices"),
        ("c.shares_storage", "to share memory with b", "memory of its own", "shares_storage: memory of its own"),
        ("same.is", "the same object as x", "another object, [6.0]", "is: another object"),
        ("v.view_of", "a view of a", "no view", "view_of: no view"),
        ("x.shape", "[2]", "[3]", "shape: another"),
        (
            "wrong['backward']",
            "[]",
            "[the gradient[0] is 0.5, expected 1.0; ordinary: f(2.0), g = 1.0]",
            "value: another value",
        ),
        (
            "wrong['memory']",
            "[]",
            "[RuntimeError: no: 3; ordinary: f(2.0), g = 1.0, ValueError: f(1)]",
            "RuntimeError: no: N",
        ),
        ("wrong['backward']", "[]", "[RuntimeError: view [0, 2]; m = 0: f([]), g = []]", "RuntimeError: view […]"),
    ],
)
def test_a_failure_is_its_check_and_how_it_diverged(path: str, expected: str, observed: str, words: str) -> None:
    assert signature(failed(path, expected, observed)) == words


def test_an_error_that_did_not_come_is_told_by_what_was_to_come() -> None:
    expected = "RuntimeError: … modified by an inplace operation … is at version 2 …"
    words = "raises: nothing instead of RuntimeError: … modified by an inplace operation"
    assert signature(failed("raises", expected, "nothing was raised")) == words
    assert signature(failed("warns", "UserWarning: … old …", "no warning")).startswith("warns: nothing instead of User")


def test_another_error_than_the_expected_one_counts_as_that_error_does_elsewhere() -> None:
    for found in (raised("KeyError: torch.complex64"), raised("KeyError: torch.complex64", "fail", "y", "a value"),
                  raised("KeyError: torch.complex64", "fail", "raises", "RuntimeError: … no …")):  # fmt: skip
        assert signature(found) == "KeyError: torch.complex64"


def test_of_several_failures_the_one_that_explains_the_others_counts() -> None:
    failures = [
        Failure(line=1, path="y", expected="1.0", observed="2.0"),
        Failure(line=2, path="y.grad_fn", expected="MulBackward0", observed="null"),
        Failure(line=3, path="y.requires_grad", expected="true", observed="false"),
    ]
    assert signature(outcome("fail", failures=tuple(failures))) == "requires_grad: false instead of true"
    failures.append(Failure(line=4, path="y.version", expected="no error", observed="E: no", exception="E"))
    assert signature(outcome("fail", failures=tuple(failures))) == "E: no"


@each(
    "found, words",
    [
        (outcome("crash", reason="the worker was ended by SIGSEGV", signal="SIGSEGV"), "SIGSEGV"),
        (outcome("crash", exit_status=3, stderr="Error"), "exit status 3"),
        (outcome("crash", reason="no new worker could be started: no memory"), "no new worker could be started: no …"),
        (outcome("crash", signal="SIGABRT", stderr="terminate called after\n  what():  no lock 0x7f\nx"),
         "SIGABRT: no lock 0x…"),
        (outcome("timeout", reason="no answer within 60 s; the worker was killed"), "no answer in time"),
        (outcome("unsupported", reason="needs torch >=2.1 for func"), "needs torch >=2.1 for func"),
        (outcome("unsupported", reason="RuntimeError: no kernel for [2]"), "RuntimeError: no kernel for […]"),
        (outcome("fixed", issue=Issue(status="pass", reason="It is 2.")), "no longer fails: It is 2."),
        (outcome("known", signal="SIGSEGV", issue=Issue(status="crash", reason="It is 2.")), "SIGSEGV"),
        (outcome("fail"), "fail"),
    ],
)  # fmt: skip
def test_what_ended_a_worker_and_why_a_case_can_not_run(found: Outcome, words: str) -> None:
    own = signature(found)
    assert own == words or (words.endswith("…") and own.startswith(words.removesuffix("…")))


def test_a_long_message_is_cut_between_words() -> None:
    text = normalized("Error: " + "word " * 100)
    assert text.endswith("word …")
    assert len(text) <= LONGEST + 2


def test_a_long_text_takes_no_longer_than_it_has_to() -> None:
    """By the square of its length each of these would take hours."""
    for part in ("x", "a/", "(", "[1]", "1."):
        assert signature(raised(f"E: {part * 1_000_000}")).startswith("E: ")


def test_a_version_of_thousands_of_digits_is_another() -> None:
    assert signature(failed("x.version", "1", "9" * 5000)) == "version: another"


def test_the_checks_are_those_of_cases() -> None:
    properties = load_schema("case.schema.json")["$defs"]["checks"]["properties"]
    assert set(properties) - {"rtol", "atol"} | {"log"} == set(CHECKS)


@given(OUTCOMES)
def test_any_outcome_has_a_signature_in_one_printable_line(found: Outcome) -> None:
    text = signature(found)
    assert text
    assert text.isprintable()
