"""Targets and builds: how they are named, and what a build says of its devices."""

from __future__ import annotations

import pytest
from loops import each
from msgspec.structs import replace
from samples import build, device

from conformance.model.build import DTYPES, OF_HOST, BackEnd, Target, target_of


def test_a_target_is_read_as_it_is_written() -> None:
    for dtype in DTYPES:
        for name in ("cpu", "cuda:1", "out-of-tree"):
            for mode in ("", "anomaly", "my.modes:Counting"):
                target = Target(device=name, dtype=dtype, mode=mode)
                assert target_of(str(target)) == target


@each("text", ["", "cpu", "-float32", "cpu-", "cpu-int8", "float32"])
def test_what_names_no_target_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a device and a dtype such as cpu-float32, got"):
        target_of(text)


def test_a_build_knows_which_devices_are_there() -> None:
    made = build(
        devices=(device("cpu"), device("cuda", absent="it is broken"), device("npu"), device("cdua", unknown=True))
    )
    assert (made.present, made.present_in_tree) == (["cpu", "npu", "cdua"], ["cpu"])
    assert (made.why_absent("cuda"), made.why_absent("cpu")) == ("it is broken", "")
    assert made.why_absent("xpu") == "no device xpu"
    assert [name for name in ("cpu", "cuda", "cdua", "xpu") if made.is_unknown(name)] == ["cdua"]


def test_two_builds_of_one_version_have_two_names_for_files() -> None:
    one, other = build(git="0" * 40), build(git="1" * 40)
    assert one.slug != other.slug
    assert one.slug.startswith(f"torch-{one.torch}-00000000-py3.")
    assert "/" not in build(system="a/b").slug


XLA = BackEnd(device="xla", modules=("torch_xla",), name="torch-xla", version="2.9.0", commit="5fab7053df")


def test_two_back_ends_or_versions_or_chips_on_one_torch_have_names_of_their_own() -> None:
    devices = (device("cpu"), device("xla", name="TPU v4/8"))
    made = build(backends=(XLA,), devices=devices)
    assert made.slug == f"{build().slug}-torch_xla-2.9.0-5fab7053-TPU_v4_8"
    assert made.backend_titles == ["torch-xla 2.9.0 (5fab7053) on TPU v4/8"]
    assert made.header()[1] == "back-end: torch-xla 2.9.0 (5fab7053) on TPU v4/8"
    others = [
        build(backends=(replace(XLA, version="2.10.0"),), devices=devices),
        build(backends=(replace(XLA, name="torchax"),), devices=devices),
        build(backends=(XLA,), devices=(device("cpu"), device("xla", name="CPU"))),
    ]
    assert len({build().slug, made.slug, *(each.slug for each in others)}) == 5


def test_what_a_back_end_does_not_say_is_left_out() -> None:
    silent = BackEnd(device="cpu", modules=("ipex",), name="ipex")
    made = build(backends=(silent,), devices=(device("cpu", name="x86"),))
    assert made.slug == f"{build().slug}-ipex"
    assert made.header()[1] == "back-end: ipex"


def test_the_head_of_a_run_names_present_and_absent_devices() -> None:
    torch, line = build(
        debug=True, devices=(device("cpu", name="x86"), device("mps", absent="torch.mps is not available"))
    ).header()
    assert ", debug)" in torch
    assert line == "devices: cpu (x86); absent: mps"


def test_the_head_of_a_run_says_what_is_wrong_with_a_build() -> None:
    broken = build(problems=("torch.__config__.show(): E: no",), devices=(device("cuda", absent="E: no driver"),))
    assert broken.header()[1:] == [
        "problem: torch.__config__.show(): E: no", "devices: ; absent: cuda", "cuda: E: no driver"
    ]  # fmt: skip


@pytest.mark.parametrize("torch", ["2.13.0\x1b[31m/../..\n\u202e", "2.13.0+" + "z" * 5000])
def test_the_name_of_a_file_is_short_and_plain_whatever_a_version_says(torch: str) -> None:
    slug = build(torch=torch).slug
    assert slug.isascii()
    assert slug.isprintable()
    assert "/" not in slug
    assert len(slug) < 200
    assert slug != build(torch=f"{torch}z").slug


def test_what_the_host_decides_of_a_config_is_known() -> None:
    assert OF_HOST.match("  - CPU capability usage: AVX2")
    assert not OF_HOST.match("  - GCC 13.3")
