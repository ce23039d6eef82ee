"""Tests of how a C++ compiler that can build nothing is told from generated code that can't be built."""

import shlex
import shutil
from pathlib import Path

import pytest

from conformance.worker.toolchain import is_of_quotes, why_not_built, why_nothing_is_built

COMPILERS = [
    pytest.param(name, marks=pytest.mark.skipif(shutil.which(name) is None, reason=f"there is no {name} here"))
    for name in ("g++", "clang++")
]


def message(command: str) -> str:
    """Return what torch says when a file could not be built."""
    return f"C++ compile error\n\nCommand:\n{command}\n\nOutput:\nmain.cpp:7:1: error: expected a semicolon\n"


@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_compiler_that_builds_other_files_is_not_excused(compiler: str) -> None:
    assert why_not_built(message(f"{compiler} main.cpp -D NAME -O3 -std=c++17 -I. -c -o main.o")) == ""
    assert why_not_built(message(f"{compiler} header.hpp -Wall -std=c++17 -E -P -o header.i")) == ""
    assert why_not_built("RuntimeError: main.cpp:7:1: error: expected a semicolon") == ""


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("-std=c++1", "c++1"),
        ("-fno-such-option=3", "-fno-such-option=3"),
        ("-L. -lof-no-system", "of-no-system"),
        ("-Iof-no-system/python3", "Python.h"),
    ],
)
def test_an_option_header_or_library_that_a_compiler_does_not_know_is_told(
    compiler: str, options: str, said: str
) -> None:
    why = why_not_built(message(f"{compiler} main.cpp -O1 {options} -o main.so"))
    assert why.startswith(f"{compiler}: ")
    assert said in why
    assert "/tmp" not in why


def test_openmp_is_looked_for_where_it_is_asked_for(tmp_path: Path) -> None:
    compiler = tmp_path / "compiler"
    compiler.write_text('#!/bin/sh\ngrep -q omp.h $1 || exit 0\necho "$@" >&2\nexit 1\n', encoding="utf-8")
    compiler.chmod(0o755)
    told = why_nothing_is_built([str(compiler), "main.cpp", "-Xclang", "-fopenmp", "-include", "a.h", "-o", "main.so"])
    assert told == f"{compiler}: nothing.cpp -Xclang -fopenmp -shared -fPIC -o nothing.so"
    assert why_nothing_is_built([str(compiler), "main.cpp", "-D", "NAME"]) == ""


def test_a_compiler_that_is_not_there_or_says_nothing_is_told() -> None:
    assert why_nothing_is_built(["no-compiler", "main.cpp"]).startswith("FileNotFoundError: ")
    assert why_nothing_is_built(["false", "main.cpp"]) == "false: 1"


@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_path_with_a_blank_is_no_fault_of_the_code(
    compiler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a b").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "a b"))
    assert why_not_built(message(f"{compiler} {tmp_path}/a b/main.cpp -O1 -o {tmp_path}/a b/main.so")).startswith(
        compiler
    )


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("option", ["-I", "-L"])
def test_a_directory_with_a_blank_is_no_fault_of_the_code(compiler: str, option: str) -> None:
    told = why_not_built(message(f"{compiler} main.cpp -O1 {option}/a b/torch/include -o main.so"))
    assert "b/torch/include" in told


def test_a_command_that_a_quote_leaves_open_is_no_fault_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="No closing quotation") as raised:
        shlex.split("g++ -I/home/o'brien/include")
    assert not is_of_quotes(raised.value)
    monkeypatch.setattr("torch.__file__", "/home/o'brien/torch/__init__.py")
    assert is_of_quotes(raised.value)
    assert not is_of_quotes(ValueError("No closing quotation"))


def test_a_path_with_a_quote_is_no_fault_of_the_code() -> None:
    assert why_not_built(message("true main.cpp -I/home/o'brien/include")) == "ValueError: No closing quotation"
