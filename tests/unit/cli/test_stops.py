"""A stop ends the command wherever it falls while a process starts."""

import signal
import subprocess
import sys

import pytest

# where nothing can be raised, and while the command is imported
SCRIPTS = (
    "main.app = lambda *_, **__: (Stop() and None, time.sleep(300)); main.run()",
    "del sys.modules['shoal.cli.main']; sys.meta_path.insert(0, Stop()); run()",
)
STOP = """
import os, signal, sys, time
from shoal.__main__ import run
from shoal.cli import main

class Stop:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
    def find_spec(self, name, *_):
        if name == "shoal.cli.main":
            self.__del__()
"""


COMPILING = """
def compile_kernel():
    from shoal.data import kernel_cache
    lines = "def a_pass(): os.kill(os.getpid(), signal.SIGTERM); time.sleep(0.2); print('kept')"
    numbas = {"__name__": "numba.core", "os": os, "signal": signal, "time": time}
    exec(lines, numbas)
    kernel_cache.CompilerBase._compile_core = lambda _: numbas["a_pass"]()
    object.__new__(kernel_cache._KernelCompiler)._compile_core()
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="Windows has no timers of signals")
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_stop_is_never_lost(script):
    command = [sys.executable, "-c", STOP + script]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (run.returncode, run.stderr) == (130, "shoal: interrupted; nothing was written\n")


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="Windows has no timers of signals")
def test_a_stop_waits_for_the_compiler_and_says_so():
    script = "main.app = lambda *_, **__: (compile_kernel(), time.sleep(300)); main.run()"
    command = [sys.executable, "-c", STOP + COMPILING + script]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (run.returncode, run.stdout) == (130, "kept\n")
    waits, stopped = run.stderr.splitlines()
    assert waits.startswith("shoal: stops once what is being compiled is on disk")
    assert stopped == "shoal: interrupted; nothing was written"


STOPPED_AT_THE_END = """
import io, os, signal, sys
from shoal.cli import main

class Closing(io.StringIO):
    def flush(self):
        os.kill(os.getpid(), signal.SIGTERM)

main.status_of = lambda words: 2
sys.stderr = Closing()
main.run()
"""


def test_a_stop_that_comes_when_all_is_done_ends_as_any_other():
    """It was lost after the last words, and a timer ended the process by its alarm."""
    ended = subprocess.run([sys.executable, "-c", STOPPED_AT_THE_END], check=False, timeout=120)
    assert ended.returncode == 130
