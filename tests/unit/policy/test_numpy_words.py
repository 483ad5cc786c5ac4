"""Numbers and names as NumPy, pandas and polars hold them are taken as Python's own."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import shoal
from sample_policies import content_of
from shoal.errors import InputError

POLICY = content_of(
    {"age": {"role": "quasi", "type": "number", "domain": [0, 120]}, "disease": "sensitive"}, 5
)


@pytest.fixture
def people() -> pl.DataFrame:
    return pl.DataFrame({"age": range(20, 80), "disease": ["flu", "cold", "gout"] * 20})


@pytest.mark.parametrize("k", [np.int64(7), np.uint8(7)])
def test_a_policy_takes_whole_numbers_of_any_kind(people, k, tmp_path):
    plain = shoal.Policy.from_dict(POLICY).with_k(7)
    promises = [{"model": "k-anonymity", "k": k}]
    for policy in (plain.with_k(k), shoal.Policy.from_dict(POLICY | {"promises": promises})):
        assert policy == plain
        policy.save(tmp_path / "policy.yaml", overwrite=True)
        assert shoal.Policy.load(tmp_path / "policy.yaml").required_k == 7
    assert shoal.publish(people, plain.with_k(k)).data.equals(shoal.publish(people, plain).data)


def test_a_proposal_a_stream_and_parameters_take_numbers_of_any_kind(people):
    assert shoal.propose_policy(people, k=np.int64(10)).content["promises"][0]["k"] == 10
    shoal.stream(POLICY, delta=np.int64(50))
    close = {"model": "t-closeness", "attributes": ["disease"], "t": np.float32(0.5)}
    policy = shoal.Policy.from_dict(POLICY | {"promises": [*POLICY["promises"], close]})
    assert type(policy.model.promises[1]["t"]) is float


@pytest.mark.parametrize("k", [np.float64(5.5), np.bool_(True), 5.5])
def test_what_is_no_whole_number_is_still_refused(k):
    with pytest.raises(InputError, match="must be a whole number"):
        shoal.Policy.from_dict(POLICY).with_k(k)


@pytest.mark.parametrize(
    "words",
    [
        {"k": np.int64(5), "l": np.int64(2), "t": np.float64(0.5)},
        {"k": 5, "l": 2, "t": np.float32(0.5), "plain": None, "drop": None, "subject": None},
        {"quasi": pd.Index(["age"]), "sensitive": np.array(["disease"])},
    ],
)
def test_words_are_taken_as_python_s_own(people, words):
    plain = {"quasi": ["age"], "sensitive": ["disease"], "k": 5, "l": 2, "t": 0.5}
    assert shoal.publish(people, **plain | words).policy == shoal.publish(people, **plain).policy


def test_an_audit_takes_an_index_and_a_number_of_numpy(people):
    release = people.with_columns(age=pl.lit("20-79"))
    asked = shoal.audit(release, quasi=pd.Index(["age"]), sensitive="disease", k=np.int64(5))
    plain = shoal.audit(release, quasi="age", sensitive="disease", k=5)
    assert dict(asked["promises"][0]) == dict(plain["promises"][0])


@pytest.mark.filterwarnings("ignore::shoal.ReleaseWarning")
def test_none_is_a_word_that_is_not_given(people):
    with pytest.raises(InputError, match="no quasi-identifier"):
        shoal.publish(people, quasi=None, k=5)
    words = {"quasi": "age", "other": "drop", "k": 5}
    without = shoal.publish(people, **words, sensitive=None)
    assert without.policy == shoal.publish(people, **words).policy
