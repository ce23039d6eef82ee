"""A case as plain torch does what the case does: it holds where torch is right."""

from __future__ import annotations

from running import case_of, known_issues
from samples import build
from shipped import spread, telling

from conformance.language.operations import is_of_operation
from conformance.model.build import Target
from conformance.render.expected import lacking
from conformance.render.script.plain import plain_text
from render.script.test_reproduction import RELEASE, complaints

CPU = Target(device="cpu", dtype="float32")
SUITE = "# uses functions of the suite"


def test_what_is_printed_of_a_case_holds_where_the_case_does() -> None:
    cases = [
        case for case in telling()
        if not is_of_operation(case) and not lacking(case, RELEASE) and "float32" in (case.dtypes or ["float32"])
        and not known_issues().about(case.id, CPU, build(torch=RELEASE))
        and "pin_memory" not in case.text  # which needs an accelerator
    ]  # fmt: skip
    texts = [(case.id, plain_text(case, RELEASE)) for case in spread(50, cases)]
    assert len(texts) >= 50
    assert "\n".join(complaints([each for each in texts if SUITE not in each[1]])) == ""


def test_what_only_the_suite_can_check_is_a_comment_and_errors_are_caught() -> None:
    case = case_of(
        "- a = ones(2, requires_grad=True)\n- do: a.zero_()\n  raises: {type: RuntimeError, match: a leaf}\n"
        "- do: b = pickled(a)\n  warns: none\n- expect: {b: {requires_grad: true, next_functions: []}}\n"
    )
    text = plain_text(case, RELEASE)
    assert text.startswith(SUITE)
    assert "try:\n    a.zero_()\nexcept RuntimeError as error:\n    assert 'a leaf' in str(error), error\n" in text
    assert "b = pickled(a)\n# warns: " in text
    assert "assert b.requires_grad == True, b.requires_grad\n# expected: b.next_functions: []\n" in text
