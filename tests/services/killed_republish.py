"""Appends to a ledger that writes into a table, and is killed after some calls.

killed_republish.py INCREMENT OUTPUT CALLS SECONDS

Calls are counted from when the release is about to be put into the table. SECONDS after that call,
so that it may happen inside a library.
"""

import os
import signal
import sys
import threading

from shoal.connectors.database import release_tables
from shoal.ledgers.republish import republish_file
from shoal.policy.policy import Policy


def counting(at, reached) -> list[int]:
    """How many calls were made, in a list; from when a release is put into a table."""
    made, putting = [0], release_tables.putting

    def counted(frame, event, argument) -> None:
        made[0] += 1
        if made[0] == at:
            sys.setprofile(None)
            reached()

    def profiled(*arguments):
        sys.setprofile(counted)
        return putting(*arguments)

    release_tables.putting = profiled
    return made


def main(increment: str, output: str, calls: int, seconds: float) -> None:
    def kill() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    later = threading.Timer(seconds, kill)
    counting(calls, later.start if seconds else kill)
    republish_file(increment, Policy.load("p.json"), "L", output=output)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
