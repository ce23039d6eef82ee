"""Tells a C++ compiler that can build nothing from generated code that can't be built."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import tempfile
import traceback
from typing import Iterator, List, Optional

import torch

COMMAND = re.compile(r"\bCommand:\s*\n(.+?)\n\s*\nOutput:", re.DOTALL)  # as torch tells what could not be built
WITH_VALUE = frozenset({"-D", "-I", "-L", "-arch", "-framework", "-isystem"})  # in the next word
OF_ONE_FILE = frozenset({"-o", "-include", "-include-pch"})  # as is the next word
OF_ONE_STEP = frozenset({"-E", "-P", "-c"})
HEADERS = {"fopenmp": "omp.h", "/python": "Python.h"}  # that generated code includes, by what options then contain
SECONDS = 60


def why_not_built(message: str) -> str:
    """Return what the compiler says if what could not be built, as a message of torch tells, is no fault of its code.

    A file that includes nothing of torch can't be built with the same options, either: the compiler doesn't know one of
    them, or a header or a library of the system is missing. Compilers have different words for that, in any language.
    """
    told = COMMAND.search(message)
    return "" if told is None else why_nothing_is_built(told[1].split())


def why_nothing_is_built(command: List[str]) -> str:
    """Return what a C++ compiler says that builds no library of nothing when it is called as in `command`, or ""."""
    compiler, options = command[0], list(options_in(command[1:]))
    headers = [header for part, header in HEADERS.items() if any(part in option for option in options)]
    with tempfile.TemporaryDirectory() as directory:
        source = os.path.join(directory, "nothing.cpp")
        with open(source, "w", encoding="utf-8") as file:
            file.writelines(f"#include <{header}>\n" for header in ("cmath", *headers))
        call = [compiler, source, *options, "-shared", "-fPIC", "-o", os.path.join(directory, "nothing.so")]
        try:
            words = shlex.split(" ".join(call))  # as torch does, which takes paths with blanks and quotes apart
            ended = subprocess.run(words, capture_output=True, check=False, timeout=SECONDS)
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            return f"{type(error).__name__}: {error}"
        said = ended.stderr.decode("utf-8", "replace").replace(directory + os.sep, "").splitlines()
        return "" if ended.returncode == 0 else f"{compiler}: {said[0] if said else ended.returncode}"


def options_in(words: List[str]) -> Iterator[str]:
    """Yield the options of a command line that aren't of the file or the step that it was about.

    What is neither an option nor a file is what a blank has left of a directory's name.
    """
    before: Optional[str] = None
    for word in words:
        is_option = word.startswith("-") and word not in OF_ONE_FILE | OF_ONE_STEP
        is_left = word[:1] != "-" and before not in OF_ONE_FILE and not os.path.splitext(word)[1]
        if before in WITH_VALUE or is_option or is_left:
            yield word
        before = word


def is_of_quotes(error: BaseException) -> bool:
    """Whether torch could not take its command line for a compiler apart, in which a path has a quotation mark."""
    frames = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    paths = torch.__file__ + tempfile.gettempdir()
    return isinstance(error, ValueError) and shlex.__file__ in frames and any(mark in paths for mark in "'\"")
