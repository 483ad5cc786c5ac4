"""What each column costs: the same as publishing without it by hand."""

import json

import pytest

import shoal
from sample_policies import content_of
from shoal.errors import InputError

POLICY = content_of(
    {
        "patient": "subject",
        "age": {"role": "quasi", "type": "number", "domain": [0, 100]},
        "sex": "quasi",
        "zip": {"role": "quasi", "hierarchy": {"prefix": 5}},
    },
    4,
    other="drop",
    method={"name": "mondrian"},
)
FRAME = shoal.sample("patients", 300, 3)


def losses(policy: dict) -> dict[str, float]:
    columns = shoal.publish(FRAME, policy).certificate["columns"]
    return {c["name"]: c["loss"] for c in columns if c["role"] == "quasi"}


def test_the_others_without_a_column_are_those_of_a_release_without_it():
    now = losses(POLICY)
    seen = []
    found = shoal.marginal(FRAME, POLICY, on_column=seen.append)
    assert {price.name for price in seen} == {*now}
    assert [price.loss for price in found.columns] == sorted(now.values(), reverse=True)
    assert found.loss == pytest.approx(sum(now.values()) / 3)
    for price in found.columns:
        assert price.loss == pytest.approx(now[price.name])
        assert price.others == pytest.approx((sum(now.values()) - now[price.name]) / 2)
        fewer = {**POLICY["attributes"], price.name: {"role": "drop"}}
        then = losses(POLICY | {"attributes": fewer})
        assert price.others_without == pytest.approx(sum(then.values()) / 2)
    less = losses(POLICY | {"promises": [{"model": "k-anonymity", "k": 3}]})
    assert found.smaller_k.k == 3
    assert found.smaller_k.loss == pytest.approx(sum(less.values()) / 3)


def test_a_publication_spares_one_release_and_changes_nothing():
    policy = {key: POLICY[key] for key in POLICY if key != "method"}
    release = shoal.publish(FRAME, policy)
    assert shoal.marginal(FRAME, policy, release=release) == shoal.marginal(FRAME, policy)


@pytest.mark.parametrize(
    "release",
    [
        lambda: shoal.publish(shoal.sample("patients", 300, 4), POLICY),
        lambda: shoal.publish(FRAME.with_columns(age=FRAME["age"].reverse()), POLICY),
        lambda: "release.csv",
    ],
    ids=["other people", "one other column", "a name"],
)
def test_a_release_of_another_table_is_refused(release):
    with pytest.raises(InputError, match="of this table under this policy, or leave it out"):
        shoal.marginal(FRAME, POLICY, release=release())


@pytest.mark.parametrize("changed", [{"k": 5}, {"method": "mondrian:cut=nearest"}])
def test_a_release_under_another_policy_is_refused_and_its_own_policy_is_the_way_out(changed):
    release = shoal.publish(FRAME, POLICY, **changed)
    with pytest.raises(InputError, match=r"another k or method; give policy=release\.policy, or"):
        shoal.marginal(FRAME, POLICY, release=release)
    again = shoal.marginal(FRAME, release.policy, release=release)
    assert again == shoal.marginal(FRAME, release.policy)


def test_what_cannot_be_left_out_says_why():
    alone = {"model": "k-anonymity", "k": 2, "attributes": ["sex"]}
    found = shoal.marginal(FRAME, POLICY | {"promises": [*POLICY["promises"], alone]})
    price = next(price for price in found.columns if price.name == "sex")
    assert price.others_without is None
    assert "about it alone" in price.why_not


def test_the_share_of_exact_cells():
    attributes = {name: POLICY["attributes"][name] for name in ("patient", "sex")}
    (price,) = shoal.marginal(FRAME, POLICY | {"attributes": attributes}).columns
    assert (price.exact, price.loss, price.others) == (1.0, 0.0, None)
    assert price.why_not is not None


def test_the_command(folder, request):
    run = request.getfixturevalue("shoal")
    FRAME.write_csv("t.csv")
    (folder / "p.json").write_text(json.dumps(POLICY))
    command = "compare --columns t.csv -p p.json -q".split()
    assert run(*command, "--k", "6", status=0).out.startswith("mondrian, k = 6: ")
    figures = json.loads(run(*command, "--json", status=0).out)
    assert figures["schema"] == "shoal.marginal/1"
    assert len(figures["columns"]) == 3
