"""`python -m shoal` for tests: forked from an interpreter that has imported everything, which saves
three quarters of what a command costs on a small table.

The new process is a child of the test's like any other: it has its own number, can be killed,
waited for, and gets its own folder, environment, arguments and open files. Whoever asks for more
(limits, groups, another `PYTHONPATH` or `NUMBA_...`) gets a fresh interpreter, and so does every
other command than `python -m shoal...`, those of shell scripts among them. With `-c` a code is
forked that ends as the command does, with `COMMAND`: others ask what an interpreter imports.
"""

import ctypes
import functools
import gc
import inspect
import os
import pickle
import runpy
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

IMPORTED = (
    "numba.core.typing.templates",
    "polars",
    "shoal.cli.main",
    "shoal.tables.publish",
    "shoal.ledgers.republish",
    "shoal.streams.run",
    "shoal.auditor.audit",
    "shoal.reports.dossier",
    "shoal.reports.release",
    "shoal.web.looks",
)
AT_START = ("PYTHON", "NUMBA", "POLARS", "OMP", "OPENBLAS", "MALLOC", "LD_", "HOME", "XDG_", "TERM")
"""Beginnings of the variables that are read when an interpreter or a library starts."""
COMMAND = "from shoal.cli.main import status_of; sys.exit(status_of(sys.argv[1:]))"
SHOAL = (sys.executable, "-m", "shoal")
PR_SET_CHILD_SUBREAPER = 36
START = inspect.signature(subprocess.Popen._execute_child)  # type: ignore[attr-defined]
ASKED_FOR_NOTHING_MORE = {
    "executable": None,
    "preexec_fn": None,
    "close_fds": True,
    "pass_fds": (),
    "shell": False,
    "restore_signals": True,
    "gid": None,
    "gids": None,
    "uid": None,
    "umask": -1,
    "start_new_session": False,
    "process_group": -1,
}


class WarmInterpreters:
    """The interpreter that others are forked from; started when the first one is asked for.

    more: modules beside this one that it imports, too.
    """

    def __init__(self, *more: str) -> None:
        self._more = more
        self._turn = threading.Lock()
        self._line: socket.socket | None = None
        self._server: subprocess.Popen | None = None
        self._environment: dict[str, str] = {}

    def replace(self, monkeypatch) -> None:
        """From now on, this process's `python -m shoal` is forked."""
        fresh = subprocess.Popen._execute_child  # type: ignore[attr-defined]

        def start(process: subprocess.Popen, *given: Any, **named: Any) -> None:
            asked = START.bind(process, *given, **named).arguments
            environment = dict(os.environ if asked["env"] is None else asked["env"])
            command = _of_python(asked)
            if not command or not self._is_like(environment):
                fresh(process, *given, **named)
                return
            files = [
                own if asked[theirs] == -1 else asked[theirs]
                for own, theirs in enumerate(("p2cread", "c2pwrite", "errwrite"))
            ]
            folder = os.fspath(asked["cwd"] or os.getcwd())
            process.pid = self._forked((command, folder, environment), files)
            process._child_created = True  # type: ignore[attr-defined]
            ends = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
            process._close_pipe_fds(*(asked[end] for end in ends))  # type: ignore[attr-defined]

        monkeypatch.setattr(subprocess.Popen, "_execute_child", start)

    def replace_by_forks_of_this(self) -> None:
        """The same in a process that `multiprocessing` has forked and that has no threads yet, by
        forks of its own.
        """
        ours, theirs = socket.socketpair()
        if os.fork() == 0:
            ours.close()
            sys.stdin = os.fdopen(0, closefd=False)  # which `multiprocessing` takes away
            _serve(theirs)()
            os._exit(0)
        theirs.close()
        self._line, self._environment = ours, dict(os.environ)
        self.replace(SimpleNamespace(setattr=setattr))

    def close(self) -> None:
        if self._line is not None and self._server is not None:
            self._line.close()
            self._server.wait()

    def _is_like(self, environment: Mapping[str, str]) -> bool:
        if self._line is None:
            self._environment = dict(os.environ)
        return _at_start(environment) == _at_start(self._environment)

    def _forked(self, asked: tuple, files: list[int]) -> int:
        with self._turn:
            if self._line is None:
                self._start()
            assert self._line is not None
            content = pickle.dumps(asked)
            _adopt(True)
            try:
                socket.send_fds(self._line, [struct.pack("I", len(content))], files)
                self._line.sendall(content)
                return struct.unpack("i", _received(self._line, 4))[0]
            finally:
                _adopt(False)

    def _start(self) -> None:
        self._line, theirs = socket.socketpair()
        command = [sys.executable, __file__, str(theirs.fileno()), *self._more]
        self._server = subprocess.Popen(
            command,
            env=self._environment,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        theirs.close()


def _of_python(asked: Mapping[str, Any]) -> list[str]:
    """What Python is to run, and the arguments; empty where the command is another one."""
    if any(asked.get(name, plain) != plain for name, plain in ASKED_FOR_NOTHING_MORE.items()):
        return []
    if isinstance(asked["args"], str | bytes | os.PathLike):
        return []
    command = [os.fsdecode(part) for part in asked["args"]]
    if command[0] != sys.executable or len(command) < 3:
        return []
    option, what = command[1:3]
    is_ours = what.split(".")[0] == "shoal" if option == "-m" else what.endswith(COMMAND)
    return command[1:] if is_ours and option in ("-m", "-c") else []


def _at_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(AT_START)}


def _adopt(is_on: bool) -> None:
    """Whether this process becomes the parent of its grandchildren that lose theirs."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, int(is_on), 0, 0, 0)


def _received(line: socket.socket, count: int) -> bytes:
    content = b""
    while len(content) < count:
        part = line.recv(count - len(content))
        if not part:
            raise EOFError("the warm interpreter has ended")
        content += part
    return content


def _serve(line: socket.socket) -> Callable[[], None]:
    """Forks one process after the other; returns in each of them, with what it is to run."""
    while True:
        head, files, _, _ = socket.recv_fds(line, 4, 3)
        if not head:
            os._exit(0)
        while len(head) < 4:
            head += _received(line, 4 - len(head))
        command, folder, environment = pickle.loads(_received(line, *struct.unpack("I", head)))
        from_child, to_zygote = os.pipe()
        from_zygote, to_child = os.pipe()
        between = os.fork()
        if between == 0:
            # forked twice: its parent is gone, so the test's process becomes its parent
            if os.fork():
                os._exit(0)
            os.write(to_zygote, struct.pack("i", os.getpid()))
            os.close(to_child)
            os.read(from_zygote, 1)  # its parent is the right one from here on
            line.close()
            for descriptor in (from_child, to_zygote, from_zygote):
                os.close(descriptor)
            _become(files, folder, environment)
            return lambda: _run(*command)
        os.waitpid(between, 0)
        number = os.read(from_child, 4)
        line.sendall(number)
        os.write(to_child, b".")
        for descriptor in (*files, from_child, to_zygote, from_zygote, to_child):
            os.close(descriptor)


def _become(files: list[int], folder: str, environment: dict[str, str]) -> None:
    for own, theirs in enumerate(files):
        os.dup2(theirs, own)
    for theirs in files:
        os.close(theirs)
    of_mpyc = {name: value for name, value in os.environ.items() if name.startswith("MPYC_")}
    os.environ.clear()
    os.environ.update(environment | of_mpyc)  # MPyC sets what it reads where it is imported
    os.chdir(folder)
    sys.path[0] = os.getcwd()  # as with `python -m`


def _run(option: str, what: str, *arguments: str) -> None:
    if "warm_parties" in sys.modules:
        WarmInterpreters().replace_by_forks_of_this()  # for a party's secure maximum
    sys.argv = [option, *arguments]
    if option == "-c":
        exec(what, {"__name__": "__main__"})
        return
    if what != "shoal":
        sys.modules.pop(what, None)  # a fresh interpreter has not imported what it is to run
    runpy.run_module(what, run_name="__main__", alter_sys=True)


def _warm() -> None:
    """Imports everything; no Polars is at work here: its threads would not outlive a fork."""
    import importlib

    for name in IMPORTED:
        importlib.import_module(name)
    import typer.main
    from numba.core.registry import cpu_target

    from shoal.cli.main import app
    from shoal.policy import registry

    for known in (registry.methods, registry.models, registry.metrics, registry.attacks):
        known()
    typer.main.get_command = functools.cache(typer.main.get_command)
    dict(typer.main.get_command(app).commands)  # builds every verb

    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()
    gc.collect()
    gc.freeze()  # what no process collects, none copies


if __name__ == "__main__":
    for name in sys.argv[2:]:
        __import__(name)
    sys.path.remove(str(Path(__file__).parent))
    sys.path.insert(0, "")
    _warm()
    _serve(socket.socket(fileno=int(sys.argv[1])))()
