"""Secure maximum: who wins the round and with how many steps, while nobody sees a bid.

Computed by MPyC (B. Schoenmakers): Shamir shares among at least three parties of whom a minority,
at most `colluding_parties`, may combine their views. Semi-honest, as MPyC is.
Promise: every owner learns the winner and how many of its bids are greater than every other owner's
first bid, and nobody learns anything else. A helper computes with the owners, without an input and
without the result.
Reading: all pairs are compared at once, which takes fewer rounds of messages than one after
another.

MPyC would open sockets of its own, on all interfaces, and accept whatever number a peer claims. So
it runs in a process of its own whose peers are two pipes to the party, which carries the messages
over its authenticated channel. The keys of its pseudo-random shares travel the same way. Nothing
that comes from a peer is unpickled. Started as `python -m shoal.fusion.secure_maximum`.
"""

import asyncio
import json
import logging
import os
import signal
import struct
import sys
import threading
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, BinaryIO

from shoal.errors import InputError, MissingExtraError

LEAST_COMPUTING = 3
KEYS, SHARES, BIDS, RESULT = b"K", b"S", b"B", b"R"
_ROOMY = 1 << 16  # bytes
_HEAD = struct.Struct("<cHqI")  # kind, number of the other party, MPyC's program counter, length


def plain_maximum(bids: Sequence[Sequence[int]]) -> tuple[int, int, int]:
    """In the clear: winner, its number of steps, second best bid; 0 steps where nobody bids."""
    heads = [plan[0] for plan in bids]
    winner = heads.index(max(heads))
    best_other = max([0, *(head for p, head in enumerate(heads) if p != winner)])
    return winner, sum(bid > best_other for bid in bids[winner]), best_other


def colluding_parties(computing: int) -> int:
    """How many parties may combine their views without learning a bid."""
    return (computing - 1) // 2


def check_computing(computing: int) -> None:
    """Raises InputError where too few parties compute, MissingExtraError without MPyC."""
    if computing < LEAST_COMPUTING:
        raise InputError(
            f"parties: {computing} of them compute the secure maximum, and with two the shares of"
            " one are the bids of the other; name a helper, which may be the recipient: it"
            " contributes no bid and learns nothing"
        )
    if find_spec("mpyc") is None:
        raise MissingExtraError.of("the secure maximum needs MPyC", "fuse")


def most_shares(owners: int, ahead: int, bits: int) -> int:
    """Bytes that no message of a round exceeds: far more than the shares of all comparisons."""
    return _ROOMY + 64 * owners * owners * ahead * bits


def write_frame(pipe: BinaryIO, kind: bytes, peer: int, counter: int, payload: bytes) -> None:
    """One message between a party and its MPyC process."""
    pipe.write(_HEAD.pack(kind, peer, counter, len(payload)) + payload)
    pipe.flush()


def read_frame(pipe: BinaryIO) -> tuple[bytes, int, int, bytes] | None:
    """The next message, or None at the end."""
    head = pipe.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    kind, peer, counter, length = _HEAD.unpack(head)
    payload = pipe.read(length)
    return (kind, peer, counter, payload) if len(payload) == length else None


def _tell(out: BinaryIO, kind: bytes, peer: int, counter: int, payload: bytes) -> None:
    """One message to the party; ends this process in silence where the party has ended."""
    try:
        write_frame(out, kind, peer, counter, payload)
    except BrokenPipeError:
        os._exit(0)


class _Peer:
    """What MPyC takes for its connection with another party."""

    nbytes_sent = 0

    def __init__(self, loop: asyncio.AbstractEventLoop, number: int, out: BinaryIO) -> None:
        self._loop = loop
        self._number = number
        self._out = out
        self._waiting: dict[int, Any] = {}
        self._heard: set[int] = set()
        self.keys: asyncio.Future[bytes] = loop.create_future()

    def send(self, counter: int, payload: bytes) -> None:
        _tell(self._out, SHARES, self._number, counter, bytes(payload))

    def receive(self, counter: int) -> Any:
        payload = self._waiting.pop(counter, None)
        if payload is None:
            payload = self._waiting[counter] = asyncio.Future(loop=self._loop)
        return payload

    def arrived(self, counter: int, payload: bytes) -> None:
        if counter in self._heard:  # MPyC would take it for what it waits for later, and wait on
            os._exit(1)
        self._heard.add(counter)
        if counter in self._waiting:
            self._waiting.pop(counter).set_result(payload)
        else:
            self._waiting[counter] = payload


def _runtime(number: int, computing: int, peers: dict[int, _Peer]) -> Any:
    """An MPyC runtime among these peers."""
    sys.argv = ["shoal"]  # MPyC reads the command line when it is imported
    logging.disable(logging.INFO)
    import mpyc.runtime
    from mpyc import asyncoro, mpctools, random, secgroups, seclists, secpols, sectypes, statistics

    options = mpyc.runtime.mpc.options
    options.no_log, options.no_async, options.no_prss = True, False, False
    options.threshold = colluding_parties(computing)
    # otherwise arrays of shares would be unpickled, so a peer could run code; lengths would vary
    options.mix32_64bit, mpyc.runtime.pickle = True, None
    parties = [mpyc.runtime.Party(p) for p in range(computing)]
    for p, peer in peers.items():
        parties[p].protocol = peer
    runtime = mpyc.runtime.Runtime(number, parties, options)
    for module in (asyncoro, mpctools, random, secgroups, seclists, secpols, sectypes, statistics):
        module.runtime = runtime
    return runtime


async def _winner(runtime: Any, setup: dict[str, int], plan: Sequence[int]) -> list[int]:
    """How many bids of each owner beat the first one of every other; empty for a helper.

    With `tells` in the setup, the best bid of the others follows, 0 for who did not win.
    """
    import numpy as np

    owners, secint = setup["owners"], runtime.SecInt(setup["bits"])
    plans = runtime.input(secint.array(np.array(plan)), senders=list(range(owners)))
    pairs = [(p, q) for p in range(owners) for q in range(owners) if p != q]
    ahead = len(plan)
    mine = runtime.np_concatenate([plans[p] for p, _ in pairs])
    theirs = runtime.np_concatenate([plans[q][:1] for _, q in pairs for _ in range(ahead)])
    beats = runtime.np_reshape(mine > theirs, (owners, owners - 1, ahead))
    beats_all = beats[:, 0]
    for q in range(1, owners - 1):
        beats_all = beats_all * beats[:, q]
    wins = runtime.np_sum(beats_all, axis=1)
    shown = [runtime.output(wins, receivers=list(range(owners)))]
    if setup["tells"]:
        # who beats all but the winner is second; the winner alone sees its bid
        second = 1 - wins
        for q in range(owners - 1):
            others = [q + (q >= p) for p in range(owners)]
            second *= beats[:, q, 0] + runtime.np_concatenate([wins[p : p + 1] for p in others])
        bids = runtime.np_concatenate([bids[:1] for bids in plans])
        best = wins * runtime.np_sum(second * bids, keepdims=True)
        shown += [runtime.output(best[p : p + 1], receivers=[p]) for p in range(owners)]
    known = [await result for result in shown]
    return [int(number) for result in known if result is not None for number in result]


async def _serve(setup: dict[str, int], source: BinaryIO, out: BinaryIO) -> None:
    """Rounds until the party closes the pipe."""
    loop = asyncio.get_running_loop()
    number, computing = setup["number"], setup["computing"]
    peers = {p: _Peer(loop, p, out) for p in range(computing) if p != number}
    runtime = _runtime(number, computing, peers)
    plans: asyncio.Queue[bytes] = asyncio.Queue()

    def arrived(frame: tuple[bytes, int, int, bytes]) -> None:
        if frame[0] == BIDS:
            plans.put_nowait(frame[3])
        elif frame[0] == KEYS:
            peers[frame[1]].keys.set_result(frame[3])
        else:
            peers[frame[1]].arrived(frame[2], frame[3])

    def listen() -> None:
        while True:
            frame = read_frame(source)
            if frame is None:  # the party has ended, perhaps in the middle of a round
                os._exit(0)
            loop.call_soon_threadsafe(arrived, frame)

    threading.Thread(target=listen, daemon=True).start()
    for p in peers:
        if p > number:
            _tell(out, KEYS, p, 0, b"".join(runtime._prss_keys_to_peer(p)))
    for p in peers:
        if p < number:
            runtime._prss_keys_from_peer(p, bytearray(await peers[p].keys))
    while True:
        steps = await _winner(runtime, setup, json.loads(await plans.get()))
        _tell(out, RESULT, 0, 0, json.dumps(steps).encode())


def main() -> None:
    """The MPyC process of one party; what it is among the others is the first frame, as JSON."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the party says when it is over
    source, out = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # the pipe is for frames alone
    first = read_frame(source)
    if first is not None:
        asyncio.new_event_loop().run_until_complete(_serve(json.loads(first[3]), source, out))


if __name__ == "__main__":
    main()
