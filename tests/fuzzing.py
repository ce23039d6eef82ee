"""Feeds mutated files to the readers of case files, lists and reports, guided by what of their code each input reaches.

    pip install -e ".[dev,fuzz]"
    python tests/fuzzing.py cases
    python tests/fuzzing.py lists --runs 100000
    python tests/fuzzing.py reports --corpus /tmp/corpus

An input that is neither read nor refused as it should be ends it, and is kept in `tests/fuzzed/`, of which a test feeds
everything to the readers again. Inputs that reached something new are kept below `--corpus`, for the next time.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import atheris  # type: ignore[import-not-found,import-untyped,unused-ignore]

with atheris.instrument_imports(include=["conformance"]):
    from fuzz_readers import READERS

KEPT = Path(__file__).parent / "fuzzed"
LONGEST = 4_096  # bytes of an input
SLOWEST = 10  # seconds that an input may take
MOST_MEMORY = 4_096  # MiB


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reader", choices=READERS)
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--corpus", type=Path, help="where inputs are kept (default: a temporary directory)")
    options = parser.parse_args()
    read, texts = READERS[options.reader]
    with tempfile.TemporaryDirectory() as place:
        corpus = options.corpus or Path(place)
        corpus.mkdir(parents=True, exist_ok=True)
        KEPT.mkdir(exist_ok=True)
        for number, text in enumerate(texts()):
            (corpus / f"first-{number}").write_text(text, encoding="utf-8")
        words = [f"-runs={options.runs}", f"-seed={options.seed}", f"-max_len={LONGEST}", f"-timeout={SLOWEST}"]
        words += [f"-rss_limit_mb={MOST_MEMORY}", f"-artifact_prefix={KEPT / options.reader}-", "-print_final_stats=1"]
        atheris.Setup([sys.argv[0], *words, str(corpus)], read)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
