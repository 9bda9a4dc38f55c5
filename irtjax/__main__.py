"""`python -m irtjax` is the `irtjax` command."""

import sys

from irtjax.cli import main

if __name__ == "__main__":
    sys.exit(main())
