"""The `cohort` command, also as `python -m cohort`: `cohort.cli` takes a while to be imported, and
what ends it then ends it in the same words as later."""

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command and exit with its code."""
    try:
        from cohort import cli
    except KeyboardInterrupt:
        print("cohort: interrupted", file=sys.stderr)
        sys.exit(130)
    cli.main()


if __name__ == "__main__":
    main()
