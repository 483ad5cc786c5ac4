"""Any number of threads gives the same release and the same certificate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.cli.main import status_of
from shoal.data import cores
from shoal.data.certificate_shape import shape_findings
from shoal.search import subtrees
from shoal.search.kernels import rounded_cut
from shoal.tables.methods import rounded_partition

RECORDS = 2_999
POLICY: dict[str, Any] = {
    "version": 1,
    "attributes": {
        "age": {"role": "quasi", "type": "number"},
        "zip": {"role": "quasi", "hierarchy": {"prefix": 3}},
        "job": {"role": "quasi", "order": "frequency"},
        "disease": {"role": "sensitive"},
    },
    "missing": "suppress",
    "promises": [{"model": "k-anonymity", "k": 7}],
    "method": {"name": "rounded-partition", "refine": "none"},
}
OWN = ("seconds", "scale", "date")


@pytest.fixture(autouse=True)
def small_tables_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "LARGE", 1)
    monkeypatch.setattr(subtrees, "GRAIN", 100)
    monkeypatch.setattr(rounded_cut, "LISTED", 0)
    monkeypatch.setattr(rounded_partition, "SORTED_RECORDS", 0)


@pytest.fixture
def people() -> pl.DataFrame:
    """Ties everywhere, two texts of one number, and some ages that are missing."""
    rng = np.random.default_rng(8)
    ages = np.where(rng.random(RECORDS) < 0.02, "", rng.integers(5, 40, RECORDS).astype(str))
    ages = np.where((ages == "7") & (rng.random(RECORDS) < 0.5), "07", ages)
    return pl.DataFrame(
        {
            "age": ages,
            "zip": rng.choice(["101", "102", "110", "200", "201"], RECORDS),
            "job": rng.choice(["clerk", "nurse", "smith"], RECORDS, p=[0.7, 0.2, 0.1]),
            "disease": rng.choice(["flu", "none", "gout"], RECORDS),
        }
    )


def _but_for_its_own(certificate: Any) -> dict[str, Any]:
    return {key: value for key, value in dict(certificate).items() if key not in OWN}


def test_the_command_writes_the_same_bytes_and_certificate(
    people: pl.DataFrame, tmp_path: Path
) -> None:
    people.write_csv(tmp_path / "people.csv")
    (tmp_path / "policy.json").write_text(json.dumps(POLICY))
    releases, certificates, audits = set(), [], []
    for threads in (1, 2, 3, 8):
        out, audited = tmp_path / f"out{threads}.csv", tmp_path / f"audit{threads}.json"
        with_policy = ["-p", str(tmp_path / "policy.json"), "-q"]
        original = str(tmp_path / "people.csv")
        publish = ["publish", original, "-o", str(out), "--replace", "--threads", str(threads)]
        assert status_of([*publish, *with_policy]) == 0
        audit = ["audit", str(out), "--original", original, "-o", str(audited)]
        with cores.using(threads):
            assert status_of([*audit, *with_policy]) == 0
        releases.add(out.read_bytes())
        stated = json.loads((tmp_path / f"out{threads}.csv.certificate.json").read_text())
        assert stated["scale"] == {"threads": threads}
        assert shape_findings(stated, False) == []
        certificates.append(_but_for_its_own(stated))
        audits.append(_but_for_its_own(json.loads(audited.read_text())))
    assert len(releases) == 1
    assert all(one == certificates[0] for one in certificates)
    assert all(one == audits[0] for one in audits)


def test_python_gives_the_same_frame_and_certificate(people: pl.DataFrame) -> None:
    one, three = (shoal.publish(people, POLICY, threads=n) for n in (1, 3))
    assert one.data.equals(three.data)
    assert _but_for_its_own(one.certificate) == _but_for_its_own(three.certificate)
    assert three.certificate["scale"] == {"threads": 3}
    audits = [shoal.audit(one.data, POLICY, people, threads=n) for n in (1, 3)]
    assert _but_for_its_own(audits[0]) == _but_for_its_own(audits[1])


def test_a_release_takes_the_process_s_cores_unless_it_is_told(people: pl.DataFrame) -> None:
    assert shoal.publish(people, POLICY).certificate["scale"] == {"threads": cores.available()}


def test_a_fault_in_a_thread_is_the_caller_s(monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes wrong in one of many tasks ends the run, and is not lost with its thread."""

    def broken(*given: Any) -> int:
        raise MemoryError

    monkeypatch.setattr(rounded_cut, "halve", broken)
    columns = np.zeros((2, 1_000), dtype=np.int32)
    rules = rounded_partition.RoundedPartition()._rules()
    with cores.using(2), pytest.raises(MemoryError):
        subtrees.cut_by_threads(columns, 10, rules, 512, np.zeros((1, 3)))


def test_one_thread_hashes_before_it_parses_and_two_beside() -> None:
    for threads in (1, 2):
        with cores.using(threads), cores.beside(sum, [1, 2]) as total:
            assert total() == 3
