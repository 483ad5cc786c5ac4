"""The `shoal` command, also as `python -m shoal`."""

from __future__ import annotations

import sys


def run() -> None:
    """Runs the command; Ctrl-C ends it in one line also while it is being imported."""
    try:
        from shoal.cli.main import run as command
    except KeyboardInterrupt:
        print("shoal: interrupted; nothing was written", file=sys.stderr)
        raise SystemExit(130) from None
    command()


if __name__ == "__main__":
    run()
