"""Tables that are published beside others, against who knows of one person only who is in them."""

import copy

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive_beside as naive
import shoal
from beside_cases import SALES, classes, others_of, out_of, people, together, with_k
from republish_cases import grown, policy, wearers
from shoal.errors import InfeasibleError, InputError
from thorough import LONG

H_QUASI, S_QUASI = ["age", "town"], ["age", "income"]
TREE = {"role": "quasi", "hierarchy": {"tree": {"*": {"low": ["0", "1"], "high": ["2", "3"]}}}}


def world(seed, n=40, old_k=12):
    """A hospital's release that is out, with what is behind it, and a shop."""
    hospital, shop = people(n, seed, range(50))
    return out_of(hospital, k=old_k), shop


def own(out, shop, asked=SALES):
    return shoal.publish(shop, asked, others=others_of(out, attacker="own"))


def left(out, data, shop):
    """By person in both releases, how many remain, from the text of the cells."""
    known = {row["customer"]: row for row in shop.to_dicts()}
    for row in out[2].to_dicts():
        known[row["person"]] = known.get(row["person"], {}) | row
    kept = pl.Series((data[S_QUASI] != "*").transpose().cast(pl.Boolean).to_numpy().any(axis=0))
    old = classes(out[0], out[2]["person"], H_QUASI)
    new = classes(data.filter(kept), shop["customer"].filter(kept), S_QUASI)
    releases = [(H_QUASI, old), (S_QUASI, new)]
    return {p: len(naive.like(releases, known, p)) for p in old.keys() & new.keys()}


@pytest.mark.parametrize("seed", range(6 if LONG else 3))
@pytest.mark.parametrize("old_k", [3, 12])
def test_nobody_is_left_among_fewer_than_k_by_plain_search(seed, old_k):
    out, shop = world(seed, old_k=old_k)
    apart = left(out, shoal.publish(shop, SALES).data, shop)
    assert min(apart.values()) < 3, "made apart, they give somebody away"
    release = own(out, shop)
    stated, remaining = release.certificate["beside"], left(out, release.data, shop)
    assert stated["attacker"] == "own"
    assert (stated["people"], stated["least"]) == (len(remaining), min(remaining.values()))
    assert stated["least"] >= 3
    assert stated["people"] + stated["withheld"] == len(apart)
    assert release.certificate["records"]["withheld"] == stated["withheld"]


@given(
    seed=st.integers(0, 99),
    n=st.integers(12, 45),
    k=st.integers(2, 4),
    old_k=st.integers(2, 12),
    order=st.sampled_from(["input", "shuffled"]),
    method=st.sampled_from(["rounded-partition", "mondrian", "k-member"]),
)
def test_what_is_published_passes_the_joint_audit(seed, n, k, old_k, order, method):
    asked = with_k(SALES, k) | {"method": {"name": method}, "render": {"order": order}}
    out, shop = world(seed, n, old_k)
    try:
        release = own(out, shop, asked)
    except InfeasibleError:
        return
    assert release.certificate["beside"]["below_k"] == 0
    if order == "input":
        judged = release.data, asked, shop
        found = together(out, judged, attacker="own", k=k)
        assert found["holds"]
        assert found["people"] == release.certificate["beside"]["people"]
        assert found["least"] == release.certificate["beside"]["least"]


def test_where_enough_people_fit_already_nothing_changes():
    out, shop = world(1, old_k=40)  # one class of everybody
    wide = with_k(SALES, 20)
    assert own(out, shop, wide).data.equals(shoal.publish(shop, wide).data)


def test_it_withholds_no_more_than_who_knows_all_members_makes_necessary():
    for seed in range(4):
        out, shop = world(seed, old_k=4)
        strict = shoal.publish(shop, SALES, others=others_of(out)).certificate["beside"]
        assert own(out, shop).certificate["beside"]["withheld"] <= strict["withheld"]


def test_hierarchies_are_judged_by_the_nodes_that_are_shown():
    out, shop = world(2)
    tree = copy.deepcopy(SALES)
    tree["attributes"]["income"] = TREE
    shop = shop.with_columns((pl.col("income") % 4).cast(pl.String))
    judged = own(out, shop, tree).data, tree, shop
    assert together(out, judged, attacker="own")["holds"]


def test_several_releases_may_be_out():
    out, shop = world(3)
    again = out[2].with_columns(age=pl.col("age"), town=pl.col("town").reverse())
    second = out_of(again, k=20)
    release = shoal.publish(shop, SALES, others=others_of(out, second, attacker="own"))
    assert release.certificate["beside"]["holds"]
    assert len(release.certificate["beside"]["releases"]) == 2
    assert release.certificate["beside"]["least"] >= 3


# What is refused


def test_ledgers_that_keep_no_original_are_refused(tmp_path):
    others = others_of(grown(tmp_path / "L", 2, 40), attacker="own")
    with pytest.raises(InputError, match="keeps no original"):
        shoal.publish(wearers(40, 1), policy("rounded-partition", k=4), others=others)


def test_means_and_two_tables_tell_nobody_who_fits_so_they_are_refused():
    out, shop = world(1)
    means = copy.deepcopy(SALES)
    means["attributes"]["income"]["render"] = "mean"
    with pytest.raises(InputError, match="shows one value of 'income'"):
        own(out, shop, means)
    asked = {"model": "alpha-k-anonymity", "attribute": "diagnosis", "alpha": 0.5, "k": 2}
    two = SALES | {"promises": [asked], "method": {"name": "anatomy", "l": 2}, "render": {}}
    with pytest.raises(InputError, match="beside"):
        own(out, shop, two)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"attacker": "all"}, "must be 'presence' or 'own'"),
        ({"attacker": "own", "strict": True}, "leave out one of them"),
        ({"k": 5}, "keeps those of its policy"),
    ],
)
def test_what_can_not_be_asked_is_refused(given, said):
    out, shop = world(1)
    with pytest.raises(InputError, match=said):
        shoal.publish(shop, SALES, others=others_of(out, **given))


def test_a_check_counts_who_fits_and_not_only_members():
    out, shop = world(4)
    release = own(out, shop)
    members = together(out, (release.data, SALES, shop))
    stated = release.certificate["beside"]
    assert members["least"] <= stated["least"]
    assert np.isfinite(stated["least"])
