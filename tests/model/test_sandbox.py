"""What confines a worker is told in a line."""

from __future__ import annotations

from conformance.model.sandbox import Sandbox


def test_a_line_says_what_holds_what_is_open_and_what_is_missing() -> None:
    assert Sandbox(holds=("Landlock 7", "seccomp")).line == "sandbox: Landlock 7, seccomp"
    assert Sandbox(holds=("seccomp",), lacks=("no Landlock: off",)).line == "sandbox: seccomp; no Landlock: off"
    assert Sandbox(holds=("seccomp",), opened=("files", "sockets")).line == "sandbox: seccomp; open: files, sockets"
    assumed = Sandbox(holds=("seccomp",), opened=("files",), is_assumed=True)
    assert assumed.line == "sandbox: seccomp; open: files, as no profile says what the devices other than the CPU need"


def test_where_nothing_holds_the_line_says_why() -> None:
    assert Sandbox(is_assumed=True).line == "no sandbox: no profile says what the devices other than the CPU need"
    assert Sandbox(opened=("files",), lacks=("one", "another")).line == "no sandbox: one; another"
