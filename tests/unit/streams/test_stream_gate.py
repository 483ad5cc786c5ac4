"""The gate of a stream: a method that is weak on purpose, through the real runner."""

import json

import numpy as np
import pytest

from sample_policies import PURCHASES
from shoal.data.stream import NEW
from shoal.samples import purchases
from shoal.streams.methods import fads
from shoal.streams.methods.emission import emissions

K = 10
GOOD, WEAK = K, K - 1
NONE = np.zeros(0, np.int64)


class Planted:
    """Publishes clusters of these sizes in these releases, all under the same cells."""

    def __init__(self, sizes, releases):
        self._sizes, self._releases = sizes, releases

    def push(self, arrivals):
        at = 0
        lo, hi = (end(arrivals.values, axis=0, keepdims=True) for end in (np.min, np.max))
        for number, (size, release) in enumerate(zip(self._sizes, self._releases, strict=True)):
            rows, made = arrivals.part(slice(at, at + size)), np.array([number])
            at += size
            now = int(rows.seq[-1])
            kind, cluster = np.full(size, NEW), np.full(size, number)
            yield emissions(rows, kind, cluster, release, now, made, lo, hi, NONE)
        assert at == len(arrivals)

    def flush(self):
        return iter(())


@pytest.fixture
def planted(tmp_path, monkeypatch, shoal):
    """Runs `shoal stream` with planted clusters of these sizes, in these releases."""

    def stream(sizes, releases):
        frame = purchases.generate(8 * sum(sizes), 3)
        frame = frame.unique("customer", keep="first", maintain_order=True).head(sum(sizes))
        frame.write_csv(tmp_path / "p.csv")
        (tmp_path / "policy.yaml").write_text(PURCHASES)
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(fads.Fads, "start", lambda *_: Planted(sizes, releases))
        return shoal("stream", "p.csv", "-p", "policy.yaml", "-q", "-o", "out.csv", "--k", str(K))

    return stream


def test_clusters_of_k_people_pass_however_many_releases_come_at_once(planted, tmp_path):
    assert planted([GOOD, GOOD + 2, GOOD], [0, 1, 1]).status == 0
    certificate = json.loads((tmp_path / "out.csv.certificate.json").read_text())
    assert certificate["classes"] == {"count": 1, "min": 32, "mean": 32.0, "max": 32}


@pytest.mark.parametrize(
    ("sizes", "releases"),
    [
        ([WEAK, GOOD], [0, 1]),  # shown first by k - 1 people
        ([GOOD, WEAK, GOOD], [0, 1, 2]),
        ([GOOD, WEAK, GOOD], [0, 0, 0]),
        ([GOOD, GOOD, 1], [0, 1, 1]),
    ],
)
def test_a_weak_cluster_among_good_ones_of_the_same_cells_is_withheld(
    planted, tmp_path, sizes, releases
):
    found = planted(sizes, releases)
    assert found.status == 1
    assert "promise 'k-anonymity' does not hold" in found.err
    assert not (tmp_path / "out.csv").exists()
