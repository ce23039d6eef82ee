"""What torch and the suite read of the environment stays in a confined process, and nothing else does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.execution.orphans import MARK
from conformance.worker.variables import NEEDED

ROOT = Path(__file__).parent.parent.parent
LOOKS = """
import os
from conformance.worker.variables import forget_variables
forget_variables()
os.environ["HOME"] = "/elsewhere"
print(sorted(os.environ) == sorted(each for each in os.environ if each in %r))
print(open("/proc/self/environ").read().count("/first"), os.environ["OMP_NUM_THREADS"], os.environ["HOME"])
"""


@pytest.mark.parametrize(
    "name",
    f"PATH HOME LC_ALL LANG TZ PYTHONPATH PYTHONHASHSEED LD_LIBRARY_PATH OMP_NUM_THREADS MKL_NUM_THREADS TORCH_LOGS "
    f"PYTORCH_NO_CUDA_MEMORY_CACHING ATEN_CPU_CAPABILITY TORCHINDUCTOR_CACHE_DIR {MARK}".split(),
)
def test_what_torch_and_the_suite_read_is_needed(name: str) -> None:
    assert NEEDED.fullmatch(name)


@pytest.mark.parametrize("name", "CI GITHUB_ACTOR MY_CONFIG HISTFILE PROXY SSH_CONNECTION XPATH PATHS".split())
def test_what_tells_of_the_user_and_the_machine_is_not(name: str) -> None:
    assert not NEEDED.fullmatch(name)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel shows them in /proc on Linux")
def test_what_is_needed_stays_and_can_be_changed() -> None:
    kept = {"PATH": "/first", "HOME": "/first", "OMP_NUM_THREADS": "3", "PYTHONPATH": str(ROOT), MARK: "/first"}
    command = [sys.executable, "-c", LOOKS % sorted([*kept, "LC_CTYPE"])]
    done = subprocess.run(command, env={**kept, "OTHER": "/first"}, check=True, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["True", "3 3 /elsewhere"]
    assert os.environ.get("OTHER") is None
