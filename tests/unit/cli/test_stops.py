"""A stop ends the command wherever it falls while a process starts."""

from __future__ import annotations

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


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="Windows has no timers of signals")
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_stop_is_never_lost(script):
    command = [sys.executable, "-c", STOP + script]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (run.returncode, run.stderr) == (130, "shoal: interrupted; nothing was written\n")
