"""What every method publishes is, byte for byte, what was recorded: moving code must change no
release.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from golden import record
from thorough import LONG

HERE = Path(__file__).parent
LEFT_OUT = () if LONG else ("shuffled", "bank")


def test_every_release_of_the_samples_is_the_recorded_one():
    """Of some tables only with SHOAL_LONG=1: every method publishes others all the same."""
    assert _differing(record.samples(LEFT_OUT), HERE / "samples.json") == []


def test_every_method_of_fusion_is_recorded():
    assert len(record._methods("fuse")) == len(json.loads((HERE / "fusions.json").read_text()))


@pytest.mark.skipif(not LONG, reason="takes a minute; SHOAL_LONG=1 runs it")
def test_every_release_of_fusions_is_the_recorded_one():
    assert _differing(record.fusions(), HERE / "fusions.json") == []


@pytest.mark.skipif(not LONG, reason="takes a minute; SHOAL_LONG=1 runs it")
def test_every_release_of_adult_is_the_recorded_one(data_folder):
    assert _differing(record.adult(data_folder.resolve()), HERE / "adult.json") == []


def _differing(found: dict, path: Path) -> list[str]:
    recorded = {
        name: release
        for name, release in json.loads(path.read_text()).items()
        if name.split(" / ")[0] not in LEFT_OUT
    }
    return sorted(
        name for name in recorded.keys() | found.keys() if recorded.get(name) != found.get(name)
    )
