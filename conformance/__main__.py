"""Makes `python -m conformance` the command line."""

import sys

from conformance.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
