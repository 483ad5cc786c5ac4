"""Numbers and names as NumPy, pandas and polars hold them are taken as Python's own."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.errors import InputError

RECORDS = 60
POLICY = {
    "version": 1,
    "attributes": {
        "age": {"role": "quasi", "type": "number", "domain": [0, 120]},
        "disease": {"role": "sensitive"},
    },
    "promises": [{"model": "k-anonymity", "k": 5}],
}


@pytest.fixture
def people() -> pl.DataFrame:
    n = range(RECORDS)
    return pl.DataFrame(
        {"age": [20 + i for i in n], "disease": [("flu", "cold", "gout")[i % 3] for i in n]}
    )


@pytest.mark.parametrize("k", [np.int64(7), np.uint8(7)])
def test_a_policy_takes_whole_numbers_of_any_kind(people, k, tmp_path):
    plain = shoal.Policy.from_dict(POLICY).with_k(7)
    promises = [{"model": "k-anonymity", "k": k}]
    for policy in (plain.with_k(k), shoal.Policy.from_dict(POLICY | {"promises": promises})):
        assert policy == plain
        policy.save(tmp_path / "policy.yaml", overwrite=True)
        assert shoal.Policy.load(tmp_path / "policy.yaml").required_k == 7
    assert shoal.publish(people, plain.with_k(k)).data.equals(shoal.publish(people, plain).data)


def test_a_proposal_and_a_stream_take_whole_numbers_of_any_kind(people):
    assert shoal.propose_policy(people, k=np.int64(10)).content["promises"][0]["k"] == 10
    shoal.stream(POLICY, delta=np.int64(50))


def test_parameters_take_numbers_of_any_kind():
    close = [{"model": "t-closeness", "attributes": ["disease"], "t": np.float32(0.5)}]
    promises = [*POLICY["promises"], *close]
    policy = shoal.Policy.from_dict(POLICY | {"promises": promises})
    assert type(policy.model.promises[1]["t"]) is float


@pytest.mark.parametrize("k", [np.float64(5), np.bool_(True), 5.0])
def test_what_is_no_whole_number_is_still_refused(k):
    with pytest.raises(InputError, match="must be a whole number"):
        shoal.Policy.from_dict(POLICY).with_k(k)
