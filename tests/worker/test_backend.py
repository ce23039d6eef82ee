"""How a back-end comes to torch: its modules are imported, and its setup is called."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from conformance.language.profile import Profile
from conformance.worker.backend import named, prepare, set_up


@pytest.fixture
def backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "vendor_backend.py").write_text("calls = []\ndef begin():\n    calls.append('begin')\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "vendor_backend", raising=False)
    return "vendor_backend"


def test_an_attribute_is_named_by_its_module_and_the_way_in_it() -> None:
    assert named("os.path:join") is __import__("os").path.join
    assert named("collections:Counter.most_common.__name__") == "most_common"


def test_modules_are_imported_and_then_the_setup_is_called(backend: str) -> None:
    set_up([backend], "")
    assert sys.modules[backend].calls == []
    set_up([backend], f"{backend}:begin")
    assert sys.modules[backend].calls == ["begin"]


def test_a_function_that_is_not_there_is_told_before_any_case_runs(backend: str) -> None:
    prepare([backend], Profile(setup=f"{backend}:begin", synchronize=f"{backend}:begin").told())
    with pytest.raises(AttributeError, match="'vendor_backend' has no attribute 'wait'"):
        prepare([backend], Profile(synchronize=f"{backend}:wait").told())
    with pytest.raises(ImportError):
        prepare(["nobody_has_this"], Profile().told())
