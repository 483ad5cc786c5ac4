"""What every method publishes is, byte for byte, what was recorded: moving code must change no
release.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from golden import record
from shoal.policy.plug_ins import COMPARATORS
from thorough import LONG

HERE = Path(__file__).parent
LEFT_OUT = () if LONG else ("close", "shuffled", "bank", *COMPARATORS)


def test_every_release_of_the_samples_is_the_recorded_one(monkeypatch):
    """With SHOAL_LONG=1 of every table and method, else of one table a verb and our methods."""
    known = record._methods
    monkeypatch.setattr(
        record, "_methods", lambda verb: [name for name in known(verb) if name not in LEFT_OUT]
    )
    assert _differing(record.samples(LEFT_OUT), HERE / "samples.json", LEFT_OUT) == []


def test_a_certificate_is_the_same_on_every_processor(tmp_path):
    """OpenBLAS sums in another order for another processor, which the last digits would show."""
    found = [_published(tmp_path / processor, processor) for processor in ("Haswell", "Prescott")]
    assert found[0] == found[1]


def _published(folder: Path, processor: str) -> dict:
    folder.mkdir()
    for words in (
        "sample patients -n 600 --seed 7 -o patients.csv",
        "publish patients.csv -p patients.policy.yaml --method mondrian -o out.csv",
    ):
        subprocess.run(
            [sys.executable, "-m", "shoal", *words.split(), "-q"],
            cwd=folder,
            env=os.environ | {"OPENBLAS_CORETYPE": processor},
            check=True,
        )
    return record._recorded(0, folder / "out.csv", folder / "out.csv.certificate.json")


def test_every_method_of_fusion_is_recorded():
    assert len(record._methods("fuse")) == len(json.loads((HERE / "fusions.json").read_text()))


@pytest.mark.long
def test_every_release_of_fusions_is_the_recorded_one():
    assert _differing(record.fusions(), HERE / "fusions.json") == []


@pytest.mark.long
def test_every_release_of_adult_is_the_recorded_one(data_folder):
    assert _differing(record.adult(data_folder.resolve()), HERE / "adult.json") == []


def _differing(found: dict, path: Path, left_out: tuple[str, ...] = ()) -> list[str]:
    recorded = {
        name: release
        for name, release in json.loads(path.read_text()).items()
        if not {*name.split(" / ")} & {*left_out}
    }
    return sorted(
        name for name in recorded.keys() | found.keys() if recorded.get(name) != found.get(name)
    )
