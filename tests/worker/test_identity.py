"""Who a back-end says that it is: what its profile names, its distribution, its module."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from conformance.language.profile import Profile
from conformance.worker.backend import set_up
from conformance.worker.identity import backends, is_device, modules_of, told_by

MODULE = "vendor_backend"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a directory on sys.path with the module of a back-end."""
    (tmp_path / f"{MODULE}.py").write_text(
        "__version__ = '1.0.module'\ngit_version = 'abc'\n"
        "def chip():\n    return 'chip 7'\n"
        "def fails():\n    raise OSError\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    set_up([MODULE], "")
    return tmp_path


def distribution(site: Path, name: str, version: str, commit: str = "") -> None:
    place = site / f"{name.replace('-', '_')}-{version}.dist-info"
    place.mkdir()
    (place / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (place / "top_level.txt").write_text(f"{MODULE}\n")
    if commit:
        (place / "direct_url.json").write_text(json.dumps({"url": "x", "vcs_info": {"commit_id": commit}}))


def found(requested: list[str], **profile: Any) -> list[dict[str, Any]]:
    return backends(Profile(**profile).told(), [MODULE], requested)


@pytest.mark.usefixtures("site")
def test_a_module_says_what_no_distribution_says() -> None:
    expected = {"device": "cpu", "modules": [MODULE], "setup": "", "name": MODULE, "version": "1.0.module"}
    assert found([]) == [{**expected, "commit": "abc"}]


def test_a_distribution_of_any_name_says_it_better(site: Path) -> None:
    distribution(site, "vendor-for-torch", "2.1")
    (identity,) = found(["xla"])
    assert (identity["device"], identity["name"], identity["version"]) == ("xla", "vendor-for-torch", "2.1")


def test_a_profile_says_it_best(site: Path) -> None:
    distribution(site, "vendor-for-torch", "2.1")
    places = {"version": f"{MODULE}:__version__", "commit": f"{MODULE}:chip", "setup": f"{MODULE}:chip"}
    (identity,) = found(["xla"], device="xla", **places)
    assert (identity["version"], identity["commit"], identity["setup"]) == ("1.0.module", "chip 7", f"{MODULE}:chip")
    (other,) = found(["xla"], device="npu", **places)  # which this torch has not, so that nothing is of it
    assert (other["device"], other["version"]) == ("xla", "2.1")


def test_a_commit_is_known_from_where_it_was_installed(site: Path) -> None:
    (site / f"{MODULE}.py").write_text("")
    del sys.modules[MODULE]
    distribution(site, "vendor-for-torch", "2.1", "c0ffee")
    assert found([])[0]["commit"] == "c0ffee"


def test_a_device_that_torch_has_by_itself_is_no_back_end() -> None:
    told = Profile().told()
    assert backends(told, [], ["cpu", "cuda", "cuda:1", "mps"]) == []
    assert backends(told, [], ["nowhere"]) == []
    assert backends(told, [], ["xla:0"]) == [{"device": "xla", "modules": [], "setup": "", "name": "xla"}]


def test_each_of_several_devices_has_the_module_of_its_name(site: Path) -> None:
    (site / "my_vulkan.py").write_text("__version__ = '5'\n")
    several = backends(Profile().told(), [MODULE, "my_vulkan"], ["xla", "vulkan"])
    assert [(each["device"], each["name"]) for each in several] == [("xla", MODULE), ("vulkan", "my_vulkan")]


@pytest.mark.usefixtures("site")
def test_what_fails_or_is_not_named_says_nothing() -> None:
    assert [told_by(place) for place in ("", f"{MODULE}:fails", f"{MODULE}:absent", "nobody:has")] == [""] * 4
    assert told_by(f"{MODULE}:chip") == "chip 7"


@pytest.mark.usefixtures("site")
def test_a_module_that_torch_has_loaded_by_itself_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert modules_of("xla") == []
    monkeypatch.setattr(torch, "xla", sys.modules[MODULE], raising=False)
    assert modules_of("xla") == [MODULE]
    assert (is_device("xla"), is_device("nowhere")) == (True, False)
