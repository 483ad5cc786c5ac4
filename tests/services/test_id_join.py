"""Masking on all cores: in order, few chunks ahead, and by processes that die with their party."""

import os
import subprocess
import sys
import time
from functools import partial

import pytest

from shoal.fusion import id_join
from shoal.fusion.id_join import keyed_ids

MASKING = """
import sys, time
from functools import partial
from shoal.fusion.id_join import keyed_ids
from shoal.fusion import id_join
if __name__ == "__main__":
    with id_join._workers(10**6) as workers:
        mask = partial(keyed_ids, agreement=bytes(32), key=bytes(32))
        list(id_join._each(mask, [["a"]] * 4, workers))
        print(*workers._processes, flush=True)
        time.sleep(60)
"""


@pytest.fixture
def two_cores(monkeypatch):
    monkeypatch.setattr(id_join, "available", lambda: 2)


def test_chunks_come_back_in_order_and_few_are_asked_for_ahead(two_cores):
    asked = []

    def chunks():
        for number in range(40):
            asked.append(number)
            yield [f"p{number}"]

    work = partial(keyed_ids, agreement=bytes(32), key=bytes(32))
    with id_join._workers(10**6) as workers:
        masked = id_join._each(work, chunks(), workers)
        first = next(masked)
        assert len(asked) <= 6
        assert [first, *masked] == [work([f"p{number}"]) for number in range(40)]


def test_few_ids_are_masked_without_more_processes():
    with id_join._workers(100) as workers:
        assert workers is None


def test_masking_processes_end_with_a_party_that_is_killed(tmp_path):
    script = tmp_path / "masking.py"
    script.write_text(MASKING.replace("if __name__", "id_join.available = lambda: 2\nif __name__"))
    party = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    numbers = [int(number) for number in party.stdout.readline().split()]
    assert numbers
    party.kill()
    party.wait()
    until = time.monotonic() + 20
    while any(is_alive(number) for number in numbers) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(is_alive(number) for number in numbers)


def is_alive(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    try:
        with open(f"/proc/{number}/stat") as file:
            # it died, and nobody has asked how
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return not os.path.isdir("/proc")
