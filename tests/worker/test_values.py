"""Plain values: what a tensor or another object becomes, when two of them agree, and how a message shows one."""

from __future__ import annotations

import collections
from typing import Any

import pytest
import torch
from loops import each

from conformance.worker.values import (
    EXACT,
    LONG,
    TOLERANCES,
    Unobservable,
    agree,
    all_are,
    display_difference,
    display_value,
    elements,
    flipped,
    leaves,
    name_of_node,
    near,
    on_cpu,
    one_line,
    plain,
    without_tangents,
)

NAN, INF = float("nan"), float("inf")
CLOSE = (0.01, 0.1)  # relative, absolute

SAME: dict[str, tuple[object, object]] = {
    "ints": (1, 1),
    "an int and a float": (1.0, 1),
    "a float and an int": (1, 1.0),
    "zeros of both signs": (0.0, -0.0),
    "nan": (NAN, NAN),
    "inf": (INF, INF),
    "-inf": (-INF, -INF),
    "complex": (1 + 2j, 1 + 2j),
    "complex and real": (1 + 0j, 1.0),
    "real and complex": (1, 1 + 0j),
    "complex nan": (complex(NAN, 1), complex(NAN, 1)),
    "complex inf": (complex(INF, -INF), complex(INF, -INF)),
    "text": ("a", "a"),
    "nothing": (None, None),
    "bools": (True, True),
    "empty lists": ([], []),
    "nested lists": ([[1, [2.0, NAN]], []], [[1, [2.0, NAN]], []]),
    "dicts in another order": ({"a": 1, "b": [2]}, {"b": [2], "a": 1}),
    "empty dicts": ({}, {}),
}
DIFFERENT: dict[str, tuple[object, object]] = {
    "ints": (1, 2),
    "big ints": (2**60, 2**60 + 1),
    "true and 1": (True, 1),
    "1 and true": (1, True),
    "false and 0.0": (False, 0.0),
    "true and false": (True, False),
    "nan and 0": (NAN, 0.0),
    "0 and nan": (0.0, NAN),
    "nan and inf": (NAN, INF),
    "inf and -inf": (INF, -INF),
    "inf and a number": (INF, 1e308),
    "a number and inf": (1e308, INF),
    "imaginary parts": (1 + 2j, 1 + 3j),
    "complex and real": (1 + 1j, 1),
    "complex nan at another place": (complex(NAN, 1), complex(1, NAN)),
    "complex inf of another sign": (complex(INF, 1), complex(-INF, 1)),
    "nothing and 0": (None, 0),
    "0 and nothing": (0, None),
    "nothing and false": (None, False),
    "text and a number": ("1", 1),
    "a number and text": (1, "1"),
    "text": ("a", "A"),
    "a list and a number": ([1], 1),
    "a number and a list": (1, [1]),
    "a longer list": ([1, 2, 3], [1, 2]),
    "a shorter list": ([1], [1, 2]),
    "an empty list": ([], [1]),
    "nothing where a list is empty": ([[]], []),
    "lists of unequal length inside": ([[1], [2, 3]], [[1, 2], [3]]),
    "a deeper list": ([[1]], [1]),
    "a dict with less": ({"a": 1}, {"a": 1, "b": 2}),
    "a dict with more": ({"a": 1, "b": 2}, {"a": 1}),
    "a dict with another value": ({"a": 1}, {"a": 2}),
    "a dict and a list": ({}, []),
}


@each("observed, expected", SAME.values(), ids=SAME)
def test_the_same_values_agree(observed: object, expected: object) -> None:
    assert agree(observed, expected, EXACT)
    assert agree(observed, expected, CLOSE)


@each(
    "observed, expected, same",
    [(*pair, True) for pair in SAME.values()] + [(*pair, False) for pair in DIFFERENT.values()],
)
def test_values_in_a_long_list_agree_as_they_do_alone(observed: object, expected: object, same: bool) -> None:
    for tolerance in (EXACT, CLOSE):
        assert agree([0.0] * LONG + [observed], [0.0] * LONG + [expected], tolerance) is same
        assert agree([INF] * LONG + [observed], [INF] * LONG + [expected], tolerance) is same
    assert agree([1.1] * LONG + [observed], [1.0] * LONG + [expected], CLOSE) is same
    assert not agree([1.111] * LONG + [observed], [1.0] * LONG + [expected], CLOSE)


@each("observed, expected", DIFFERENT.values(), ids=DIFFERENT)
def test_different_values_disagree_however_wide_the_tolerance(observed: object, expected: object) -> None:
    assert not agree(observed, expected, EXACT)
    assert not agree(observed, expected, CLOSE)


@each(
    "observed, expected, fine",
    [
        (1.1, 1.0, True), (1.109, 1.0, True), (1.111, 1.0, False), (0.9, 1.0, True), (0.889, 1.0, False),
        (100.0, 101.0, True), (100.0, 101.2, False), (0.1, 0.0, True), (-0.1, 0.0, True), (0.11, 0.0, False),
        (1 + 0.1j, 1 + 0j, True), (1 + 0.12j, 1 + 0j, False), (1.07 + 1.07j, 1 + 1j, True), (1.1 + 1.1j, 1 + 1j, False),
        (1, 2, False), (1.0, 1, True), (1.05, 1, True),
    ],
)  # fmt: skip
def test_the_tolerance_is_the_absolute_one_and_a_share_of_what_is_expected(
    observed: complex, expected: complex, fine: bool
) -> None:
    assert near(observed, expected, CLOSE) is fine


@pytest.mark.parametrize(
    ("expected", "observed", "told"),
    [
        (1.0, 2.0, ("1.0", "2.0")),
        (0.1, 0.10000000004, ("0.1", "0.10000000004")),
        ([0.0] * 20 + [1.0, 2.0], [0.0] * 20 + [1.0, 3.0], ("[21]: 2.0", "[21]: 3.0")),
        ([[0.5] * 20], [[0.5] * 21], ("[0]: the length: 20", "[0]: the length: 21")),
        ({"a": 1.0, "b": [1 / 3]}, {"a": 1.0, "b": [1 / 3 + 1e-9]}, ("b: [0]: 0.333333333", "b: [0]: 0.333333334")),
        (1 / 3, 1 / 3 + 1e-16, ("0.3333333333333333", "0.3333333333333334")),
        (1.0, 1 + 0j, ("1.0", "1+0j")),
    ],
)  # fmt: skip
def test_the_difference_of_two_values_is_seen(expected: Any, observed: Any, told: tuple[str, str]) -> None:
    assert display_difference(expected, observed, (0.0, 0.0)) == told


def test_whole_numbers_have_no_tolerance() -> None:
    assert not agree(10**9, 10**9 + 1, (1.0, 1.0))


def test_the_share_is_that_of_what_is_expected() -> None:
    assert near(110.0, 100.0, (0.1, 0.0))
    assert not near(100.0, 90.0, (0.11, 0.0))
    assert near(90.0, 100.0, (0.11, 0.0))


@each(
    "dtype, step", [
    (torch.float16, 2**-10), (torch.bfloat16, 2**-7), (torch.float32, 2**-23), (torch.float64, 2**-52),
    (torch.complex64, 2**-23), (torch.complex128, 2**-52),
])  # fmt: skip
def test_each_dtype_is_given_some_roundings_and_no_hundredths_more(dtype: torch.dtype, step: float) -> None:
    limits = TOLERANCES[dtype]
    assert near(100.0 * (1 + 8 * step), 100.0, limits)
    assert not near(115.0, 100.0, limits)
    assert not near(0.02, 0.0, limits)


def test_tolerances_are_those_of_assert_close_where_they_are_full_width() -> None:
    for dtype in (torch.float32, torch.float64, torch.complex64, torch.complex128):
        assert TOLERANCES[dtype] == torch.testing._comparison.default_tolerances(dtype)
    for dtype in (torch.float16, torch.bfloat16):
        relative, absolute = torch.testing._comparison.default_tolerances(dtype)
        assert TOLERANCES[dtype][0] >= relative
        assert TOLERANCES[dtype][1] >= absolute


@each(
    "observed, expected, fine",
    [
        (2.0, 2, True), ([2.0, 2.0], 2, True), ([[2.0], [2.0, 2.05]], 2.0, True), ([2.0, 3.0], 2, False),
        ([], 2, False), ([[], []], 2, False), ([[], [2]], 2, True), ([NAN, NAN], NAN, True), ([NAN, 1.0], NAN, False),
        ([INF, INF], INF, True), ([INF, -INF], INF, False), ([True, True], True, True), ([1, 1], True, False),
        ([True], 1, False), ([1 + 1j], 1 + 1j, True), ([None], 1, False),
    ],
)  # fmt: skip
def test_one_number_stands_for_every_element_and_there_must_be_one(observed: Any, expected: Any, fine: bool) -> None:
    assert all_are(observed, expected, CLOSE) is fine


def test_leaves_come_in_order() -> None:
    assert leaves([[1, [2]], [], 3]) == [1, 2, 3]
    assert leaves(4) == [4]


Pair = collections.namedtuple("Pair", ["first", "second"])


@each(
    "value, expected",
    [
        (None, None), (True, True), (1, 1), (1.5, 1.5), (1j, 1j), ("text", "text"),
        (torch.tensor([[1.0, 2.0]]), [[1.0, 2.0]]), (torch.tensor(3), 3), (torch.tensor(True), True),
        (torch.zeros(0), []), (torch.zeros(2, 0), [[], []]), (torch.tensor([1j]), [1j]),
        (torch.ones(1, requires_grad=True), [1.0]), (torch.tensor([0.0, 2.0]).to_sparse(), [0.0, 2.0]),
        (torch.eye(2).to_sparse_coo(), [[1.0, 0.0], [0.0, 1.0]]),
        ((1, torch.ones(1)), [1, [1.0]]), (Pair(1, 2), [1, 2]), ({"a": torch.ones(1), 2: (3,)}, {"a": [1.0], "2": [3]}),
        (torch.Size([2, 3]), [2, 3]), (torch.float32, "float32"), (torch.strided, "strided"),
        (torch.contiguous_format, "contiguous_format"), (torch.device("cpu"), "cpu"), (torch.device("cuda:1"), "cuda"),
        (ValueError("two\n  lines"), "ValueError: two lines"), (torch.nn.Linear(1, 1), "Linear"),
        (torch.sin, "builtin_function_or_method"), (object(), "object"),
    ],
)  # fmt: skip
def test_a_value_becomes_numbers_text_lists_and_dicts(value: object, expected: object) -> None:
    assert plain(value) == expected


def test_a_node_becomes_its_name() -> None:
    leaf = torch.ones(1, requires_grad=True)
    result = leaf * 2
    assert plain(result.grad_fn) == "MulBackward0"
    assert name_of_node(result.grad_fn) == "MulBackward0"
    assert result.grad_fn is not None
    assert name_of_node(result.grad_fn.next_functions[0][0]) == "AccumulateGrad"
    assert name_of_node(None) is None


def test_a_list_that_holds_itself_comes_to_an_end() -> None:
    endless: list[object] = []
    endless.append(endless)
    assert "…" in display_value(plain(endless))


@each(
    "value, text",
    [
        (None, "null"), (True, "true"), (False, "false"), (1, "1"), (1.0, "1.0"), (-2.0, "-2.0"), (0.1, "0.1"),
        (1 / 3, "0.3333333"), (1e-9, "1e-09"), (1e20, "1e+20"), (NAN, "nan"), (INF, "inf"), (-INF, "-inf"),
        (1 + 2j, "1+2j"), (1 - 0.5j, "1-0.5j"), ("text", "text"), ([], "[]"), ([1, [2.0, None]], "[1, [2.0, null]]"),
        (list(range(16)), str(list(range(16)))), (list(range(17)), "[" + "".join(f"{i}, " for i in range(16)) + "…]"),
        ({"a": [1.0]}, "{a: [1.0]}"), ({}, "{}"),
    ],
)  # fmt: skip
def test_a_message_shows_a_value_in_the_words_of_a_case_file(value: object, text: str) -> None:
    assert display_value(value) == text


def test_a_message_says_so_when_a_dict_is_cut() -> None:
    assert display_value({str(index): index for index in range(16)}).count(":") == 16
    assert display_value({str(index): index for index in range(17)}).endswith(", …}")


def test_one_line_is_one_line() -> None:
    assert one_line(" a\n\tb  c ") == "a b c"


def test_a_tensor_of_the_cpu_is_not_copied() -> None:
    tensor = torch.ones(2, requires_grad=True)
    moved = on_cpu(tensor)
    assert moved.data_ptr() == tensor.data_ptr()
    assert not moved.requires_grad


@each(
    "tensor",
    [
        torch.tensor([1 + 2j]).conj(), torch.tensor([1 + 2j]).conj().imag, torch.tensor([1.0]),
        torch._neg_view(torch.tensor([1 + 2j]).conj()),
    ],
    ids=["conjugated", "negated", "plain", "both"],
)  # fmt: skip
def test_what_a_tensor_notes_is_taken_off_without_an_operation(tensor: torch.Tensor) -> None:
    noted = tensor.is_conj(), tensor.is_neg()
    bare = flipped(tensor, *noted)
    assert not bare.is_conj()
    assert not bare.is_neg()
    assert bare.data_ptr() == tensor.data_ptr()
    assert flipped(bare, *noted).tolist() == tensor.tolist()


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
def test_elements_that_a_device_can_not_transfer_are_unobservable_unless_they_are_strided() -> None:
    with pytest.raises(NotImplementedError):
        elements(torch.ones(2, device="meta"))
    indices = torch.zeros((1, 1), dtype=torch.int64, device="meta")
    with pytest.raises(Unobservable, match="its elements can't be read"):
        elements(torch.sparse_coo_tensor(indices, torch.ones(1, device="meta"), (2,)))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of what torch imports for dual tensors
def test_reading_leaves_the_tangent_alone() -> None:
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(torch.tensor([1.0]), torch.tensor([2.0]))
        assert elements(dual) == [1.0]
        with without_tangents():
            assert torch.autograd.forward_ad.unpack_dual(dual * 1).tangent is None
        assert torch.autograd.forward_ad.unpack_dual(dual * 1).tangent is not None
