"""MDAV against the literature's losses on Census."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import shoal
from peer_cases import SHARED
from shoal.data.matrix import Matrix
from shoal.search.points import points_of
from shoal.tables.methods.mdav import Mdav
from shoal.testing import OnlyK


@pytest.fixture(scope="module")
def census() -> Matrix:
    """All 13 columns of Census."""
    path = SHARED / "casc" / "census.csv"
    if not path.exists():
        pytest.skip(f"Census is not at {path}; set SHOAL_DATA to a folder that has it")
    values = pl.read_csv(path).to_numpy()
    return Matrix.from_columns(
        values - values.min(axis=0), [float(np.ptp(column)) for column in values.T]
    )


def test_a_release_of_means_states_the_loss_of_the_literature():
    path = SHARED / "casc" / "census.csv"
    if not path.exists():
        pytest.skip(f"Census is not at {path}; set SHOAL_DATA to a folder that has it")
    frame = pl.read_csv(path)
    attributes = {
        name: {"role": "quasi", "type": "number", "render": "mean"} for name in frame.columns
    }
    promises = [{"model": "k-anonymity", "k": 10}]
    policy = {
        "version": 1,
        "attributes": attributes,
        "promises": promises,
        "method": {"name": "mdav"},
    }
    certificate = shoal.publish(frame, policy).certificate
    assert round(certificate["utility"]["information_loss_percent"], 4) == 14.1559
    assert certificate["classes"]["count"] == 108


@pytest.mark.parametrize(("k", "percent"), [(3, 5.6922), (4, 7.4947), (5, 9.0884), (10, 14.1559)])
def test_information_loss_on_census_is_that_of_the_literature(census, k, percent):
    partition = Mdav().partition(census, OnlyK(census, k), np.random.default_rng(0))
    points = points_of(census, "deviation")
    within = 0.0
    for c in range(partition.count):
        members = points[:, partition.labels == c]
        within += float(((members - members.mean(axis=1, keepdims=True)) ** 2).sum())
    assert round(100 * within / float((points**2).sum()), 4) == percent
    sizes = np.sort(partition.sizes())
    assert partition.count == 1080 // k
    assert (sizes[:-1] == k).all()
    assert k <= sizes[-1] < 2 * k
