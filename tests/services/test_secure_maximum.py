"""MPyC in processes of its own, its messages carried by hand: the plain maximum, and nothing with
too few parties.
"""

import json
import queue
import random
import subprocess
import sys
import threading
import time
from contextlib import closing, suppress

import pytest

from shoal.errors import InputError, PartyError
from shoal.fusion import secure_maximum
from shoal.fusion.secure_maximum import (
    BIDS,
    KEYS,
    RESULT,
    SHARES,
    check_computing,
    colluding_parties,
    plain_maximum,
    read_frame,
    write_frame,
)
from shoal.fusion.secure_rounds import winner_of
from thorough import long_but

BITS, AHEAD = 33, 4


class Parties:
    """So many computing processes with a relay between their pipes."""

    def __init__(self, owners: int, computing: int, tells: int = 0) -> None:
        command = [sys.executable, "-m", secure_maximum.__name__]
        self.owners = owners
        self.processes = [
            subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
            for _ in range(computing)
        ]
        self.results = [queue.SimpleQueue() for _ in self.processes]
        self.said: list[bytes] = []
        self.change = lambda number, peer, what, payload: [payload]
        self._lock = threading.Lock()
        for number in range(computing):
            place = {"number": number, "computing": computing, "owners": owners, "bits": BITS}
            place |= {"tells": tells}
            self._write(number, BIDS, 0, 0, json.dumps(place).encode())
            threading.Thread(target=self._relay, args=(number,), daemon=True).start()

    def _write(self, to, *frame):
        with self._lock, suppress(BrokenPipeError):
            write_frame(self.processes[to].stdin, *frame)

    def _relay(self, number):
        while (frame := read_frame(self.processes[number].stdout)) is not None:
            what, peer, counter, payload = frame
            if what == RESULT:
                self.results[number].put(json.loads(payload))
            else:
                self.said.append(payload)
                for changed in self.change(number, peer, what, payload):
                    self._write(peer, what, number, counter, changed)

    def maximum(self, bids):
        self.said = []
        for number in range(len(self.processes)):
            plan = bids[number] if number < self.owners else [0] * len(bids[0])
            self._write(number, BIDS, 0, 0, json.dumps(plan).encode())
        return [result.get(timeout=60) for result in self.results]

    def close(self):
        for process in self.processes:
            process.stdin.close()
            process.wait(10)


def rounds(owners):
    """Random, tied, one-sided and empty bids."""
    dice = random.Random(3)
    yield [
        sorted((dice.randrange(1, 1 << 32) for _ in range(AHEAD)), reverse=True)
        for _ in range(owners)
    ]
    yield [[0] * AHEAD for _ in range(owners)]
    yield [[0] * AHEAD if p != owners - 1 else [7, 7, 1, 0] for p in range(owners)]
    yield [[100 - p, 99 - p, 3, 0] for p in range(owners)]
    yield [[50 + p] * AHEAD for p in range(owners)]


@pytest.mark.parametrize(("owners", "computing"), long_but((3, 3), [(2, 3), (3, 3), (4, 4)]))
def test_the_secure_maximum_is_the_plain_one(owners, computing):
    with closing(Parties(owners, computing)) as parties:
        for bids in rounds(owners):
            winner, steps, _ = plain_maximum(bids)
            shown = parties.maximum(bids)
            for number in range(owners):
                assert sum(shown[number]) == steps
                assert steps == 0 or shown[number][winner] == steps
            assert all(result == [] for result in shown[owners:])  # a helper learns nothing


@pytest.mark.parametrize(("owners", "computing"), long_but((3, 3), [(2, 3), (3, 3), (4, 4)]))
def test_the_winner_alone_is_told_the_second_best_bid(owners, computing):
    with closing(Parties(owners, computing, tells=1)) as parties:
        for bids in rounds(owners):
            winner, steps, runner_up = plain_maximum(bids)
            shown = parties.maximum([plan[:1] for plan in bids])
            for number in range(owners):
                expected = runner_up if steps and number == winner else 0
                assert shown[number][owners:] == [expected]
            assert all(result == [] for result in shown[owners:])


def test_messages_have_lengths_that_say_nothing_and_hold_no_pickle():
    with closing(Parties(3, 3)) as parties:
        lengths = []
        for bids in rounds(3):
            parties.maximum(bids)
            lengths.append(sorted(len(payload) for payload in parties.said))
            assert not any(
                payload.startswith(b"\x80") and payload.endswith(b".") for payload in parties.said
            )
        assert lengths[1:] == lengths[1:2] * (len(lengths) - 1)  # the first round carries keys, too


def test_plain_maximum_counts_what_beats_every_other_first_bid():
    assert plain_maximum([[9, 8, 3], [7, 7, 7], [1, 0, 0]]) == (0, 2, 7)
    assert plain_maximum([[0], [0]]) == (0, 0, 0)
    assert plain_maximum([[5, 4]]) == (0, 2, 0)


@pytest.mark.parametrize("computing", [1, 2])
def test_two_computing_parties_are_refused_with_the_reason(computing):
    with pytest.raises(InputError, match="the bids of the other; name a helper"):
        check_computing(computing)


@pytest.mark.parametrize(("computing", "most"), [(3, 1), (4, 1), (5, 2), (8, 3)])
def test_a_minority_may_collude(computing, most):
    assert colluding_parties(computing) == most


@pytest.mark.parametrize("what", [KEYS, SHARES])
@pytest.mark.parametrize(
    "changed",
    [
        lambda payload: [b""],
        lambda payload: [payload[:-1]],
        lambda payload: [payload + b"more"],
        lambda payload: [payload, payload],
    ],
    ids=["empty", "shorter", "longer", "twice"],
)
def test_a_process_never_waits_after_what_it_can_not_compute_with(what, changed):
    """It ends, and its party with it, or computes something, which the party checks."""
    parties = Parties(3, 3)
    parties.change = lambda number, peer, kind, payload: (
        changed(payload) if (number, peer, kind) == (0, 1, what) else [payload]
    )
    try:
        for number in range(3):
            parties._write(number, BIDS, 0, 0, json.dumps([4, 3, 2, 1]).encode())
        until = time.monotonic() + 20
        while parties.processes[1].poll() is None and parties.results[1].empty():
            assert time.monotonic() < until
            time.sleep(0.1)
    finally:
        for process in parties.processes:
            process.kill()
            process.wait()


@pytest.mark.parametrize(
    ("steps", "winner"),
    [
        ([0, 0, 0], (0, 0)),
        ([0, 4, 0], (1, 4)),
        ([], (0, 0)),  # a helper's
        ([0, 5, 0], None),
        ([0, -1, 0], None),
        ([1, 1, 0], None),
        ([0, 1], None),
        ([-17451882856527327290, 0, 0], None),
    ],
)
def test_an_impossible_result_of_a_round_ends_the_run(steps, winner):
    if winner is not None:
        assert winner_of(steps, owners=3, ahead=4) == winner
        return
    with pytest.raises(PartyError, match="its result is impossible"):
        winner_of(steps, owners=3, ahead=4)


def of_a_party() -> subprocess.Popen:
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen([sys.executable, "-m", secure_maximum.__name__], **pipes)


def test_the_process_of_a_party_that_was_killed_ends_in_silence():
    """Its standard output breaks before it sees the end of its input; what it says is nobody's."""
    process = of_a_party()
    process.stdout.close()
    setup = {"number": 0, "computing": 3, "owners": 3, "bits": 32}
    write_frame(process.stdin, BIDS, 0, 0, json.dumps(setup).encode())
    assert process.wait(60) == 0, "its first words are keys, which nobody takes"
    assert process.stderr.read() == b""
    process.stdin.close()
    process.stderr.close()


def test_another_error_of_the_process_is_shown():
    process = of_a_party()
    write_frame(process.stdin, BIDS, 0, 0, b"{}")
    _, said = process.communicate(timeout=60)
    assert process.returncode != 0
    assert b"KeyError" in said
