"""Makes `python -m conformance` the command line."""

import sys

from conformance.cli import main

if __name__ == "__main__":
    sys.exit(main())
