"""`other: plain` does not publish a column that only looks new."""

from __future__ import annotations

import polars as pl
import pytest

import shoal
from sample_policies import content_of
from shoal.errors import InputError


def policy(other: str = "plain") -> dict:
    return content_of(
        {
            "first name": "identifier",
            "age": {"role": "quasi", "type": "number", "domain": [0, 100]},
            "disease": "sensitive",
        },
        2,
        other=other,
        method={"name": "mondrian"},
    )


def table(**more: list) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "first name": ["Ann", "Bob", "Cem", "Dan"],
            "age": [20, 20, 30, 40],
            "disease": ["flu", "flu", "hiv", "hiv"],
            **more,
        }
    )


NEAR = {
    "First Name": "named like 'first name' (identifier)",
    "FIRST_NAME": "named like 'first name' (identifier)",
    "\ufb01rst-name.": "named like 'first name' (identifier)",  # a ligature
    "Disease ": "named like 'disease' (sensitive)",
    "\u0430ge": "named like 'age' (quasi)",  # a Cyrillic letter
}


@pytest.mark.parametrize("name", NEAR)
def test_a_column_named_like_another_must_be_named(name):
    told = (
        f"columns '{name}': not in the policy, but {NEAR[name]}; name it under 'attributes',"
        " 'other: plain' would publish it"
    )
    with pytest.raises(InputError) as refused:
        shoal.publish(table(**{name: list("wxyz")}), policy())
    assert str(refused.value) == told
    dropped = shoal.publish(table(**{name: list("wxyz")}), policy("drop"))
    assert dropped.data.columns == ["age", "disease"]


def test_a_column_that_copies_a_removed_one_must_be_named():
    copied = table(who=["Ann", "Bob", "Cem", "Dan"])
    with pytest.raises(InputError, match=r"'who'.*holds the cells of 'first name' \(identifier\)"):
        shoal.publish(copied, policy())
    named = policy()
    named["attributes"]["who"] = {"role": "plain"}
    assert "who" in shoal.publish(copied, named).data.columns


def test_what_only_looks_a_little_alike_is_published():
    more = {"surname": list("wxyz"), "age group": list("aabb"), "who": ["Ann", "Bob", "Cem", "Eve"]}
    assert set(shoal.publish(table(**more), policy()).data.columns) >= set(more)


def test_a_constant_is_no_copy():
    constant = table(land=["DE"] * 4)
    declared = policy()
    declared["attributes"]["country"] = {"role": "drop"}
    frame = constant.with_columns(pl.lit("DE").alias("country"))
    assert "land" in shoal.publish(frame, declared).data.columns


def test_streams_and_ledgers_refuse_it_too(tmp_path):
    asked = policy() | {"method": {"name": "fads"}}
    asked["attributes"]["disease"] = {"role": "plain"}
    stream = shoal.stream(asked, delta=50)
    with pytest.raises(InputError, match="named like 'first name'"):
        stream.push(table(**{"Firstname": list("wxyz")}))
    with pytest.raises(InputError, match="named like 'first name'"):
        shoal.republish(
            table(**{"Firstname": list("wxyz")}), policy() | {"method": None}, tmp_path / "l"
        )


BESIDE_AGE = ["Age", "age ", "a\u200bge", "\u0430ge", "\uff41ge"]


@pytest.mark.parametrize("name", BESIDE_AGE)
def test_an_audit_judges_no_release_with_a_column_beside_that_is_named_alike(name):
    """The attack: true ages stand beside the published ones, and nobody asked about them."""
    rows = {"age": ["20-29"] * 6, "sex": ["m"] * 6, name: list("012345")}
    released = pl.DataFrame(rows)
    with pytest.raises(InputError, match=r"not named, but named like 'age' \(quasi\)"):
        shoal.audit(released, quasi=["age", "sex"], k=2)
    assert not shoal.audit(released, quasi=["age", "sex", name], k=2).holds
    asked = {"version": 1, "other": "plain", "promises": [{"model": "k-anonymity", "k": 2}]}
    asked["attributes"] = {"age": {"role": "quasi"}, "sex": {"role": "quasi"}}
    with pytest.raises(InputError, match=r"named like 'age' \(quasi\); .*nobody has judged it"):
        shoal.audit(released, asked)
