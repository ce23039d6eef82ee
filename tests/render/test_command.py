"""The command by which one case is run again."""

from __future__ import annotations

from loops import each
from samples import build

from conformance.model.build import BackEnd
from conformance.model.report import Run
from conformance.render.command import command_of

XLA = BackEnd(device="xla", modules=("torch_xla",), name="torch-xla")


@each(
    "given, repeated",
    [
        ("--profile xla -k leaf --python ../a/bin/python", "--profile xla --python ../a/bin/python"),
        ("--device=npu --device-module torch_npu -q -x", "--device=npu --device-module torch_npu"),
        ("--shard 1/2 --report out cases/hooks.yaml --page never --lf -n 2", ""),
        ("--known-issues none --require-device cuda -p own", "--known-issues none --require-device cuda -p own"),
        ("--under anomaly --trust -x --sandbox off", "--under anomaly --trust --sandbox off"),
        ("--device --dtype", "--device --dtype"),  # the value of an option may look like one
    ],
)
def test_what_decides_how_a_case_is_run_is_repeated(given: str, repeated: str) -> None:
    run = Run(started="", arguments=tuple(given.split()))
    assert command_of(run, build(backends=(XLA,))) == f"pytest {repeated}".strip()


def test_it_is_the_command_that_was_called() -> None:
    run = Run(started="", arguments=("--profile", "my profile.yaml"), command="python -m conformance run")
    assert command_of(run, build()) == "python -m conformance run --profile 'my profile.yaml'"


def test_a_report_that_keeps_no_arguments_names_its_back_ends() -> None:
    run = Run(started="", arguments=())
    assert command_of(run, build()) == "pytest"
    assert command_of(run, build(backends=(XLA,))) == "pytest --device xla --device-module torch_xla"
