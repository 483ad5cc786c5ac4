"""Publications within a limit on memory that are killed at any instant: all of it, or as before.

Half of them stand in place of an earlier release. What the run had in files has no name, so its
room comes back with its end; a draft that it left is hidden, and goes with the next run.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from sample_policies import content_of
from shoal.auditor.verify import verify
from shoal.data import room
from shoal.policy.policy import Policy
from shoal.samples import patients
from shoal.search.kernels import rounded_cut
from shoal.tables.publish import publish_file
from shoal.tables.request import PublishRequest
from small_memory import make_every_table_too_large

RECORDS, LIMIT = 4000, 200_000
QUASI = {"age": {"domain": [0, 100]}, "sex": {}, "zip": {"hierarchy": {"prefix": 5}}}
LONGEST = 120.0  # seconds


def policy(k: int) -> Policy:
    attributes = {name: {"role": "quasi", **more} for name, more in QUASI.items()}
    method = {"name": "rounded-partition", "refine": "none"}
    return Policy.from_dict(content_of(attributes | {"disease": "sensitive"}, k, method=method))


@contextmanager
def small() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch, room.using(LIMIT):
        make_every_table_too_large(patch, times=10)
        patch.setattr(rounded_cut, "LISTED", 0)
        yield


def published(folder: Path, k: int) -> bytes:
    """The release as it is made within the limit."""
    with small():
        paths = str(folder / "in.csv"), policy(k), str(folder / "out.csv")
        certificate = publish_file(*paths, PublishRequest(replace=True))
    assert certificate.certificate["scale"]["room_bytes"] > 0
    return (folder / "out.csv").read_bytes()


@cache
def undisturbed() -> tuple[bytes, float]:
    """The release of a process that nobody kills, and how long it takes."""
    with TemporaryDirectory() as name:
        source(Path(name))
        status, seconds = killed(Path(name), Path(name), LONGEST)
        assert status == 0
        return (Path(name) / "out.csv").read_bytes(), seconds


def source(folder: Path) -> None:
    patients.generate(RECORDS, 1).select(*QUASI, "disease").write_csv(folder / "in.csv")


def trial(rng: random.Random, folder: Path) -> str:
    expected, usual = undisturbed()
    source(folder)
    earlier = published(folder, 10) if rng.random() < 0.5 else None
    nameless = folder / "nameless"
    nameless.mkdir()
    # at any instant, or about when the release takes its name
    after = rng.choice([rng.uniform(0, usual), rng.uniform(0.6 * usual, 1.1 * usual)])
    status, _ = killed(folder, nameless, after)
    out = folder / "out.csv"
    found = out.read_bytes() if out.exists() else None
    assert found in (earlier, expected), (after, "neither as before nor whole")
    if found is not None:
        failed = [check.name for check in verify(out) if check.ok is False]
        assert not failed, (after, failed)
    assert not list(nameless.iterdir()), (after, "a file with a name is left")
    left = {path.name for path in folder.iterdir()} - {"in.csv", "nameless"}
    left -= {"out.csv", "out.csv.certificate.json"}
    assert all(name.startswith(".out.csv.") for name in left), (after, left)
    assert published(folder, 5) == expected, (after, "the next run gives another release")
    assert not [path for path in folder.iterdir() if path.name.endswith(".part")], (after, "drafts")
    if status == 0:
        return "done before it was killed"
    return "as before" if found == earlier else "whole"


def killed(folder: Path, nameless: Path, after: float) -> tuple[int, float]:
    """Publishes in another process and kills it `after` seconds; how it ended, and
    when.
    """
    paths = os.pathsep.join(path for path in sys.path if path)
    running = subprocess.Popen(
        [sys.executable, "-c", "from soak import memory; memory.main()", str(folder)],
        env={**os.environ, "PYTHONPATH": paths, "TMPDIR": str(nameless)},
        stdout=subprocess.PIPE,
    )
    assert running.stdout is not None
    with running, running.stdout:
        assert running.stdout.readline() == b"ready\n"
        begun = time.monotonic()
        try:
            return running.wait(after), time.monotonic() - begun
        except subprocess.TimeoutExpired:
            running.send_signal(signal.SIGKILL)
            return running.wait(LONGEST), after


def main() -> None:
    """What is killed."""
    print("ready", flush=True)
    published(Path(sys.argv[1]), 5)
