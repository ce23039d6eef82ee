"""Where the checkout is that the tests are of."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parent.parent
