"""Runs over several gateways of pytest-xdist, as over several hosts: each has its own place, interpreter and torch."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sessions import Session

pytestmark = pytest.mark.slow

GOOD = "- a = tensor([2.0], requires_grad=True)\n- (a * 3).backward()\n- expect: {a: {grad: [3.0]}}\n"
OTHER = """\
import sys
if "conformance.worker" in " ".join(sys.orig_argv):
    import torch.version
    torch.version.git_version = "0123456789abcdef"
"""


@pytest.fixture
def session(tmp_path: Path) -> Session:
    made = Session(tmp_path, real=True)
    made.cases(**{f"case_{number}": GOOD for number in range(40)})
    return made


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def test_two_hosts_share_the_cases_and_one_report_has_them_all(
    session: Session, tmp_path_factory: pytest.TempPathFactory
) -> None:
    ports = [free_port(), free_port()]
    hosts = [
        subprocess.Popen(
            [sys.executable, "-m", "execnet.script.socketserver", f"127.0.0.1:{port}", "--once"],
            cwd=tmp_path_factory.mktemp("host"), env=session.environment(), stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for port in ports
    ]  # fmt: skip
    try:
        for port in ports:
            wait_for(port)
        gateways = [f"--tx=socket=127.0.0.1:{port}" for port in ports]
        result = session.run("-p", "conformance.pytest_plugin.plugin", "--dist=load", *gateways, "--rsyncdir=.", "-v")
    finally:
        for host in hosts:
            host.kill()
            host.wait()
    assert result.status == 0, result.output
    assert set(result.statuses.values()) == {"pass"}
    assert len(result.statuses) == 40
    assert "[gw0]" in result.output
    assert "[gw1]" in result.output


def wait_for(port: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if in_use(port):  # to try whether it answers would use up the one connection that it takes
            return
        time.sleep(0.05)
    raise TimeoutError(port)


def in_use(port: int) -> bool:
    with socket.socket() as trying:
        try:
            trying.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


def test_a_host_with_another_build_is_told_and_adds_nothing(session: Session, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "sitecustomize.py").write_text(OTHER)
    other = tmp_path / "other-python"
    other.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path / "other"}:$PYTHONPATH exec {sys.executable} "$@"\n')
    other.chmod(0o755)
    result = session.run("--dist=load", "--tx=popen", f"--tx=popen//python={other}")
    assert result.status == 1, result.output
    assert "tests another build: git is " in result.output
    found = set(result.statuses.values())
    assert found == {"pass", "not-run"}
