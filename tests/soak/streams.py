"""Streams that are killed, and whose checkpoint is damaged: the output of one that was not, or none
that was changed."""

import random
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from soak.processes import Command, flip_a_bit, killed, timed
from stream_processes import METHODS, open_shop

OUTPUTS = ("out.csv", "trace.jsonl")


def started(folder: Path, method: str) -> Command:
    order = ["stream", "p.csv", "-p", "policy.yaml", "-q", "-o", "out.csv", "--method", method]
    return Command(folder, *order, "--set", "delta=200", "--checkpoint", "ck", *_TRACE)


_TRACE = ("--trace", "trace.jsonl")


@cache
def undisturbed(method: str) -> tuple[float, tuple[bytes, ...]]:
    """How long a stream takes, and what it writes."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        open_shop(folder, 2500, delta=200)
        seconds = timed(lambda: started(folder, method))
        return seconds, tuple((folder / output).read_bytes() for output in OUTPUTS)


def trial(rng: random.Random, folder: Path) -> str:
    method = rng.choice(METHODS)
    usual, expected = undisturbed(method)
    open_shop(folder, 2500, delta=200)
    damages = rng.random() < 0.5
    if damages:
        return damaged(rng, folder, method, usual, expected)
    status = killed(lambda: started(folder, method), rng, usual, rng.randint(1, 5))
    assert status == 0, (method, (folder / "stderr").read_text())
    assert tuple((folder / output).read_bytes() for output in OUTPUTS) == expected, method
    return "killed: the same output"


def damaged(
    rng: random.Random, folder: Path, method: str, usual: float, expected: tuple[bytes, ...]
) -> str:
    """A bit of its private files flips while the stream is down."""
    command = started(folder, method)
    command.ended_within(rng.uniform(usual / 2, usual))
    command.kill()
    if not (folder / "ck" / "CURRENT").exists():
        return "killed before the first commit"
    path = flip_a_bit(rng, [folder / "ck", folder / "trace.jsonl"][: rng.randint(1, 2)])
    before = (folder / "out.csv").read_bytes() if (folder / "out.csv").exists() else b""
    command = started(folder, method)
    status = command.status()
    if status == 0:  # of what a resume does not read, as a segment that is in its place already
        assert (folder / "out.csv").read_bytes() == expected[0], (method, path.name)
        return "damaged: the same output"
    assert status == 2, (method, path.name, command.said)
    assert command.said.count("\n") == 1, command.said
    assert (folder / "out.csv").exists() == bool(before), path.name
    after = (folder / "out.csv").read_bytes() if before else b""
    assert after == before, (method, path.name, "the sink changed")
    return "damaged: refused"
