"""Weights and households of a sample: read strictly, and published only where a policy says so."""

import polars as pl
import pytest

import shoal
from sample_policies import content_of
from shoal.errors import InputError
from shoal.recoding.recode import KEY_VARIABLE

AGES = {"age": {"role": "quasi", "type": "number"}}
ROLES = AGES | {"home": "household", "w": "weight"}
K = [{"model": "k-anonymity", "k": 2}]


def policy(attributes, promises=K, **more):
    return content_of(attributes, promises=promises, **more)


def frame(weights, homes="aabbcd"):
    return pl.DataFrame({"age": [1, 1, 2, 2, 3, 3], "home": [*homes], "w": weights})


def refused(data, asked):
    with pytest.raises(InputError) as broken:
        shoal.publish(data, asked)
    return broken.value.said


def test_every_kind_of_weight_that_stands_for_nobody_is_refused_at_once():
    said = refused(frame(["", "-2", "0", "0.5", "much", "3"]), policy(ROLES))
    kinds = ["without a weight", "is not a number", "below 0", "of 0", "between 0 and 1"]
    rows = ["(row 1)", "(row 5)", "(row 2)", "(row 3)", "(row 4)"]
    for finding, kind, row in zip(said, kinds, rows, strict=True):
        assert kind in finding
        assert row in finding
    assert "much" not in "".join(said)


def test_calibrated_weights_need_not_be_whole_and_may_have_a_decimal_comma():
    data = frame(["1,5", "2,25", "3", "1", "7", "9"])
    assert shoal.publish(data, policy(ROLES, read={"decimal": ","})).data.columns == ["age"]


def test_nobody_is_without_a_household():
    (said,) = refused(frame([2] * 6, ["a", "", "b", "c", "c", "d"]), policy(ROLES))
    assert "1 record without a household (row 2)" in said


def test_the_records_of_a_person_have_one_weight_and_one_household():
    data = frame([2, 3, 4, 4, 5, 5]).with_columns(who=pl.Series([1, 1, 2, 2, 3, 3]))
    said = refused(data, policy(ROLES | {"who": {"role": "subject"}}))
    assert ["'w'" in said[0], "2 records of people" in said[0]] == [True, True]
    assert "'home'" in said[1]


def test_a_weight_is_published_only_rounded_and_is_a_quasi_identifier_then():
    published = ROLES | {"w": {"role": "weight", "publish": "rounded", "round": 10}}
    release = shoal.publish(frame([12, 17, 31, 33, 90, 95]), policy(published))
    assert set(release.data["w"]) == {"[10, 20]", "[30, 40]", "[90, 100]"}
    roles = {column["name"]: column["role"] for column in release.certificate["columns"]}
    assert roles == {"age": "quasi", "home": "household", "w": "quasi"}
    risk = policy(published, [{"model": "individual-risk", "at_most": 0.5}])
    assert shoal.publish(frame([12, 17, 31, 33, 90, 95]), risk).certificate.holds


def test_households_may_be_published_as_pseudonyms(monkeypatch):
    monkeypatch.setenv(KEY_VARIABLE, "a secret of sixteen letters")
    kept = ROLES | {"home": {"role": "household", "pseudonym": "keyed"}}
    data = shoal.publish(frame([2] * 6), policy(kept, render={"order": "input"})).data
    assert data["home"].n_unique() == 4
    assert data["home"].str.len_chars().unique().to_list() == [32]


@pytest.mark.parametrize(
    ("attributes", "promises", "said"),
    [
        (ROLES | {"v": {"role": "weight"}}, K, "'w', 'v' are weights"),
        (AGES | {"home": {"role": "household"}}, K, "a household, but no weight"),
        (AGES, [{"model": "individual-risk", "at_most": 0.1}], "no column has the role 'weight'"),
        (
            AGES | {"w": {"role": "weight"}},
            [{"model": "global-risk", "at_most": 0.1, "households": True}],
            "no column has the role 'household'",
        ),
        (AGES | {"w": {"role": "weight", "publish": "rounded"}}, K, "needs 'round'"),
        (AGES | {"w": {"role": "plain", "publish": "rounded"}}, K, "belongs to a weight"),
    ],
)
def test_roles_and_promises_of_a_sample_that_do_not_fit(attributes, promises, said):
    with pytest.raises(InputError, match=said):
        shoal.Policy.from_dict(policy(attributes, promises))


@pytest.mark.parametrize("verb", ["stream", "republish"])
def test_what_has_no_whole_sample_refuses_its_risks(verb):
    asked = shoal.Policy.from_dict(policy(ROLES, [{"model": "global-risk", "at_most": 0.1}]))
    with pytest.raises(InputError, match="of a sample that is published once"):
        asked.or_method({"stream": "fads", "republish": "crp"}[verb]).build_method(verb)
