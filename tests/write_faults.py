"""Lets one of the calls that write fail, as on a full disk or a read-only one."""

from __future__ import annotations

import errno
import os
from typing import Any

import pytest


class Faults:
    """Lets the call with this number of those that write fail, with what was written of a half of its text."""

    NAMES = ("write", "pwrite", "fsync", "replace", "link", "unlink", "rename", "ftruncate", "mkdir")

    def __init__(self, patch: pytest.MonkeyPatch, failing: int, *, for_good: bool) -> None:
        self.calls = 0
        self.failing = failing
        self.for_good = for_good  # whether all calls after it fail, too
        for name in self.NAMES:
            patch.setattr(os, name, self.failing_in(name, getattr(os, name)))

    def failing_in(self, name: str, real: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            self.calls += 1
            if self.calls < self.failing or (self.calls > self.failing and not self.for_good):
                return real(*arguments, **options)
            if name == "pwrite":
                file, content, place = arguments
                real(file, content[: len(content) // 2], place)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        return call
