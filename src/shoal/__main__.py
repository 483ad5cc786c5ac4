"""The `shoal` command, also as `python -m shoal`."""

import os
import signal
import sys


def run() -> None:
    """Runs the command; Ctrl-C and SIGTERM end it in one line also while it is being imported."""
    # first of all: a container's first process would not even notice a SIGTERM without a handler
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # a library that takes the number of a standard stream that is closed loses it to what is shown
    while (handle := os.open(os.devnull, os.O_RDWR)) <= 2:
        continue
    os.close(handle)
    try:
        from shoal.cli.main import run as command
    except KeyboardInterrupt:
        print("shoal: interrupted; nothing was written", file=sys.stderr)
        raise SystemExit(130) from None
    command()


if __name__ == "__main__":
    run()
