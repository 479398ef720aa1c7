"""`python -m pcpo` is the command `pcpo`."""

import sys

from pcpo.cli import main

if __name__ == "__main__":
    sys.exit(main())
