"""Tests of the badge: counts for each device, red when something is."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from loops import each
from samples import CPU, CUDA, HOSTILE, any_report, failed, outcome, report

from conformance.model.build import BackEnd
from conformance.model.report import Report
from conformance.model.status import RED
from conformance.render.badge import badge_of
from conformance.render.visible import visible
from conformance.results.update import updated

GOOD, SKIPPED, LACKS = outcome("pass"), outcome("not-run"), outcome("unsupported")


@each(
    "made, message, color",
    [
        (report({("a", CPU): GOOD, ("b", CPU): GOOD}), "2 pass", "brightgreen"),
        (report({("a", CPU): GOOD, ("b", CPU): failed()}), "1 fail, 1 pass", "red"),
        (report({("a", CPU): GOOD, ("b", CPU): outcome("fixed")}), "1 fixed, 1 pass", "red"),
        (report({("a", CPU): GOOD, ("b", CPU): LACKS}), "1 pass, 1 unsupported", "brightgreen"),
        (report({("a", CPU): GOOD, ("b", CPU): SKIPPED}), "1 pass, 1 not run", "yellow"),
        (report({("a", CPU): SKIPPED}), "1 not run", "lightgrey"),
        (report({("a", CPU): GOOD, ("a", CUDA): failed()}), "cpu 1 pass · cuda 1 fail", "red"),
        (
            report({("a", CPU): GOOD, ("a", "cpu-float64"): GOOD}),
            "cpu-float32 1 pass · cpu-float64 1 pass",
            "brightgreen",
        ),
        (report({("a", CPU): GOOD}, finished=False), "incomplete", "lightgrey"),
        (report({("a", CPU): failed(), ("b", CPU): None}, finished=False), "incomplete", "red"),
        (report({}), "no cases", "lightgrey"),
    ],
)
def test_a_badge_counts_by_device_and_shows_red(made: Report, message: str, color: str) -> None:
    badge = badge_of(made)
    assert badge == {
        "schemaVersion": 1, "label": "autograd on torch 2.13.0+cpu", "message": message, "color": color,
        "isError": color == "red",
    }  # fmt: skip


def test_the_label_names_back_ends() -> None:
    own = BackEnd(device="xla", modules=("torch_xla",), name="torch-xla", version="2.9.0")
    assert badge_of(report({}, backends=(own,)))["label"] == "autograd on torch 2.13.0+cpu + torch-xla 2.9.0"


def test_the_label_can_be_chosen() -> None:
    assert badge_of(report({}), "nightly")["label"] == "nightly"


@given(any_report())
def test_every_report_has_a_badge_without_percentage_that_is_red_only_with_cause(made: Report) -> None:
    badge: dict[str, Any] = badge_of(made)
    json.dumps(badge, ensure_ascii=False).encode()
    assert badge["isError"] == any(outcome.status in RED for outcome in made.outcomes)
    assert (badge["message"] == "incomplete") == (made.footer is None)
    assert badge["label"] == visible(badge["label"], keep="")
    assert badge["message"] == visible(badge["message"], keep="")


def test_text_from_a_stranger_is_made_visible() -> None:
    badge = badge_of(report({("a", f"{HOSTILE}-x"): GOOD, ("a", CPU): GOOD}, torch="\x1b\ud800"))
    assert badge["label"] == "autograd on torch ⟨U+001B⟩⟨U+D800⟩"
    assert "⟨U+202E⟩" in badge["message"]


def test_it_tells_that_its_outcomes_are_of_several_runs() -> None:
    whole = report({("a", CPU): GOOD, ("b", CPU): GOOD, ("c", CPU): GOOD})
    several = updated(whole, report({("a", CPU): GOOD}, arguments=("-k", "a")), ())
    assert badge_of(several)["message"] == "3 pass (2 runs)"
