"""What methods, k and columns cost in linked tables, as `compare` and `marginal` measure it."""

import polars as pl
import pytest

import linked_cases
import shoal
from shoal.errors import InputError

WORLD = linked_cases.world(60)


def loss_of_release(tmp_path, policy):
    """What the certificate of a release that was written says is lost."""
    release = shoal.publish(WORLD, shoal.Policy.from_dict(policy), output=tmp_path / "released")
    return release.certificate["linked"]["bundle_loss"]


def test_a_compared_release_loses_what_a_published_one_does(tmp_path):
    compared = shoal.compare(WORLD, linked_cases.policy(), ks=[4])
    (row,) = compared.rows
    assert (row.method, row.k, row.holds) == ("bundles", 4, True)
    assert row.loss == loss_of_release(tmp_path, linked_cases.policy(4))
    assert compared.subjects == 60
    assert compared.quasi == ("age", "visits.cost")


def test_where_some_rows_are_known_both_methods_of_linked_tables_are_compared():
    policy = linked_cases.policy()
    policy["tables"]["visits"]["rows"] = {"known": 1}
    policy["tables"]["drugs"]["rows"] = {"known": "none"}
    policy["assume"] = ["counts-unknown"]
    compared = shoal.compare(WORLD, policy, ks=[3])
    assert sorted(row.method for row in compared.releases) == ["bundles", "items"]
    assert compared.own == "items"


def test_a_k_that_nobody_reaches_is_a_row_with_its_reason():
    (row,) = shoal.compare(WORLD, linked_cases.policy(), ks=[61]).rows
    assert row.certificate is None
    assert "60" in row.reason


def test_attacks_are_not_compared_on_linked_tables():
    with pytest.raises(InputError, match="attack: is for one table"):
        shoal.compare(WORLD, linked_cases.policy(), attack=True)


def test_the_price_of_a_column_is_what_a_release_without_it_loses(tmp_path):
    priced = shoal.marginal(WORLD, linked_cases.policy(4))
    costs = {column.name: column for column in priced.columns}
    assert [*costs] == sorted(costs, key=lambda name: -costs[name].loss)
    without = linked_cases.policy(4)
    without["tables"]["visits"]["attributes"]["cost"] = {"role": "drop"}
    assert costs["visits.cost"].others_without == pytest.approx(loss_of_release(tmp_path, without))
    assert costs["visits.cost"].others == pytest.approx(costs["age"].loss)
    assert priced.smaller_k.k == 3


def test_the_loss_before_prices_is_that_of_the_release(tmp_path):
    priced = shoal.marginal(WORLD, linked_cases.policy(4))
    assert priced.loss == pytest.approx(loss_of_release(tmp_path, linked_cases.policy(4)))
    assert priced.smaller_k.loss < priced.loss


def with_commas(cost):
    """The world where visits cost a half more, with a decimal comma, and a policy of such costs."""
    tables = dict(WORLD)
    tables["visits"] = WORLD["visits"].with_columns(
        (pl.col("cost").cast(pl.String) + ",5").alias("cost")
    )
    policy = linked_cases.policy(4)
    policy["tables"]["visits"]["attributes"]["cost"] = cost
    return tables, {**policy, "read": {"decimal": ","}}


@pytest.mark.parametrize(
    "cost",
    [
        {"role": "sensitive", "type": "number"},
        {"role": "plain", "type": "number"},
        {"role": "quasi", "type": "number"},
    ],
    ids=lambda cost: cost["role"],
)
def test_numbers_with_decimal_commas_are_measured_as_they_are_published(tmp_path, cost):
    tables, policy = with_commas(cost)
    release = shoal.publish(tables, shoal.Policy.from_dict(policy), output=tmp_path / "released")
    loss = release.certificate["linked"]["bundle_loss"]
    (row,) = shoal.compare(tables, policy, ks=[4]).rows
    assert row.loss == loss
    assert shoal.marginal(tables, policy).loss == pytest.approx(loss)
