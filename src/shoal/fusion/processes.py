"""The parties of a fusion as processes of this machine: started, watched, restarted when killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from shoal import errors
from shoal.data.progress import Progress, no_progress
from shoal.errors import PartyError

RESTARTS = 8  # of a party that is killed
RETRIES = 3  # of a party that fails by itself, for a reason that may pass
LAST_WORDS = 5.0  # seconds to read what a party wrote before it ended
ATTACHED = "SHOAL_ATTACHED"  # set for a party that must die with the process that started it
_PREFIX = "shoal: "
_RECOVERABLE = "recoverable"  # a line by which a party says that it may be started again
_INTERNAL_ERROR = 70  # among them what a broken session led to
_POLL = 0.05  # seconds
_GRACE = 5  # seconds between SIGTERM and SIGKILL
_ERRORS: dict[int, type[errors.ShoalError]] = {
    1: errors.PromiseError,
    2: errors.InputError,
    3: errors.InfeasibleError,
    4: errors.PartyError,
}


@dataclass
class PartyProcess:
    """One party's process, and the last lines of its standard error."""

    name: str
    command: list[str]
    process: subprocess.Popen[bytes] | None = None
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=20))
    listener: threading.Thread | None = None
    restarts: int = 0
    retries: int = 0
    is_recoverable: bool = False


def run_to_end(
    parties: Sequence[PartyProcess], progress: Progress, notice: Progress = no_progress
) -> None:
    """Runs all parties to their end; the first one's progress is shown.

    A party that was killed, or failed for a reason that may pass, is started again, a few times at
    most. notice: called with a line about each restart. Raises the first error that a party reports
    and that no restart helps against.
    """
    try:
        for party in parties:
            _start(party, parties[0].name, progress)
        running = list(parties)
        while running:
            for party in list(running):
                assert party.process is not None
                try:
                    status = party.process.wait(timeout=_POLL)
                except subprocess.TimeoutExpired:
                    continue
                if status == 0:
                    running.remove(party)
                    continue
                restart = _restart(party, status)
                if not restart:
                    raise _error_of(party, status)
                notice(restart)
                _start(party, parties[0].name, progress)
    finally:
        _stop(parties)


def _restart(party: PartyProcess, status: int) -> str:
    """What is said about a restart of a party that ended so; empty where it is not started again.

    Its journal has all that it did.
    """
    if party.listener is not None:
        party.listener.join(LAST_WORDS)
    if status < 0:
        party.restarts += 1
        count, most, why = party.restarts, RESTARTS, "was killed"
    elif party.is_recoverable or status == _INTERNAL_ERROR:
        party.retries += 1
        said = [line.removeprefix(_PREFIX) for line in party.lines if line.startswith(_PREFIX)]
        count, most = party.retries, RETRIES
        why = f"failed ({said[-1]})" if said else f"ended with status {status}"
    else:
        return ""
    return f"party '{party.name}': {why}; starting it again ({count} of {most})" * (count <= most)


def _start(party: PartyProcess, reporting: str, progress: Progress) -> None:
    party.lines.clear()
    party.is_recoverable = False
    # the pipe to its standard input breaks when this process dies, and the party dies with it
    environment = {**os.environ, ATTACHED: "1"}
    party.process = subprocess.Popen(
        party.command, stderr=subprocess.PIPE, stdin=subprocess.PIPE, env=environment
    )
    party.listener = threading.Thread(
        target=_listen,
        args=(party, party.process, party.name == reporting, progress),
        daemon=True,
    )
    party.listener.start()


def _stop(parties: Sequence[PartyProcess]) -> None:
    for party in parties:
        if party.process is not None and party.process.poll() is None:
            party.process.send_signal(signal.SIGTERM)
    for party in parties:
        if party.process is not None:
            try:
                party.process.wait(timeout=_GRACE)
            except subprocess.TimeoutExpired:
                party.process.kill()
                party.process.wait()


def _listen(
    party: PartyProcess, process: subprocess.Popen[bytes], is_reporting: bool, progress: Progress
) -> None:
    assert process.stderr is not None
    for raw in process.stderr:
        line = raw.decode(errors="replace").rstrip()
        if line.startswith("progress: "):
            if is_reporting:
                progress(line.removeprefix("progress: "))
        elif line == _RECOVERABLE:
            party.is_recoverable = True
        elif line:
            party.lines.append(line)


def _error_of(party: PartyProcess, status: int) -> errors.ShoalError:
    """The error that a party ended with, in its own words."""
    if party.listener is not None:
        party.listener.join(LAST_WORDS)
    lines = [line.removeprefix(_PREFIX) for line in party.lines if line.startswith(_PREFIX)]
    error = _ERRORS.get(status, PartyError)
    if not lines:
        return error(f"party '{party.name}': ended with status {status}; run again to resume")
    return error(lines[0], lines[1:])


def say_recoverable() -> None:
    """Says to the process that started this one that it may be started again."""
    if os.environ.get(ATTACHED):
        os.write(2, f"{_RECOVERABLE}\n".encode())


def die_with_starter() -> None:
    """Ends this process as soon as the one that started it ends; the journal keeps what is done."""
    if os.environ.get(ATTACHED):
        threading.Thread(target=_wait_for_end_of_input, daemon=True).start()


def _wait_for_end_of_input() -> None:
    while os.read(0, 1):  # not sys.stdin: its lock would still be held when the interpreter ends
        pass
    os._exit(130)


def free_ports(count: int) -> list[int]:
    """Ports of this machine that nobody listens on."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()
