"""The parties of a fusion for tests: forked from a server that has imported everything, where the
program starts an interpreter for each, which costs a second and more of CPU.

Commands that tests run as processes of their own start real ones: see `services/test_fuse.py`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.reduction import DupFd
from types import SimpleNamespace

from party_processes import forked
from shoal.fusion import fuse
from warm_interpreters import WarmInterpreters


def replace_interpreters(monkeypatch) -> None:
    """Parties that this process starts are forked from now on."""
    forking = SimpleNamespace(
        Popen=_start, PIPE=subprocess.PIPE, TimeoutExpired=subprocess.TimeoutExpired
    )
    monkeypatch.setattr(fuse, "subprocess", forking)


def _start(command: list[str], **more) -> ForkedParty | subprocess.Popen:
    is_party = command[:4] == [sys.executable, "-m", "shoal", "party"]
    return ForkedParty(command, **more) if is_party else subprocess.Popen(command, **more)


class ForkedParty:
    """What stands for the `subprocess.Popen` of `python -m shoal party run ...`."""

    def __init__(self, command: list[str], stdin: int, stderr: int, env: dict[str, str]) -> None:
        (its_input, to_input), (from_error, its_error) = os.pipe(), os.pipe()
        arguments = (command[3:], env, _Handed(its_input), _Handed(its_error))
        self._process = forked(_run, arguments)
        self._process.start()
        os.close(its_input)
        os.close(its_error)
        self.stdin, self.stderr = os.fdopen(to_input, "wb"), os.fdopen(from_error, "rb")

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("party", timeout or 0)
        return self._process.exitcode

    def send_signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):  # as Popen does, where it has ended by itself
            os.kill(self._process.pid, number)

    def kill(self) -> None:
        self._process.kill()


@dataclass
class _Handed:
    """An open file that the new process gets a descriptor of its own for."""

    descriptor: int

    def __reduce__(self):
        return _received, (DupFd(self.descriptor),)


def _received(handed) -> int:
    return handed.detach()


def _run(arguments: list[str], environment: dict[str, str], its_input: int, its_error: int) -> None:
    os.dup2(its_input, 0)
    os.dup2(its_error, 2)
    # what MPyC sets where it is imported: in the server, unless another test started that one
    of_mpyc = {name: value for name, value in os.environ.items() if name.startswith("MPYC_")}
    os.environ.clear()
    os.environ.update(environment | of_mpyc)
    WarmInterpreters().replace_by_forks_of_this()
    from shoal.cli.main import status_of

    status = 70
    try:
        status = status_of(arguments)
    finally:
        sys.stderr.flush()
        os._exit(status)
