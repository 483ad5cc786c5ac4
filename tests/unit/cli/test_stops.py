"""A stop ends the command wherever it falls while a process starts."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

WHERE_NOTHING_CAN_BE_RAISED = """
import os, signal, time
from shoal.cli import main

class Gone:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)

def work(*_, **__):
    Gone()
    time.sleep(300)

main.app = work
main.run()
"""
WHILE_IT_IS_IMPORTED = """
import os, signal, sys

class Finder:
    def find_spec(self, name, *_):
        if name == "shoal.cli.main":
            os.kill(os.getpid(), signal.SIGTERM)

from shoal.__main__ import run
sys.meta_path.insert(0, Finder())
run()
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="Windows has no timers of signals")
@pytest.mark.parametrize("script", [WHERE_NOTHING_CAN_BE_RAISED, WHILE_IT_IS_IMPORTED])
def test_a_stop_is_never_lost(script):
    run = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert (run.returncode, run.stderr) == (130, "shoal: interrupted; nothing was written\n")
