"""Attacks on Adult: an independent prototype's figures, to 0.5 % if exact and 2 % if sampled."""

from functools import cache

import polars as pl
import pytest

import shoal
from sample_policies import content_of
from shoal.policy.policy import Policy
from shoal.tables.attack import attack

pytestmark = pytest.mark.long

BY_FREQUENCY = "workclass marital-status occupation race sex native-country".split()
BY_HIERARCHY = "sex race marital-status education native-country workclass".split()
EXACT, SAMPLED = 0.005, 0.02
TABLE = {  # A, B, B3, F, T
    "baseline": (0.751, 0.134, 0.134, 0.134, 0.134),
    "class": (0.842, 0.388, 0.386, 0.285, 0.220),
    "certain": (0.564, 0.012, 0.003, 0, 0),
    "certain_right": (0.968, 0.944, 0.90, None, None),
    "lifted": (0, 0.019, 0.020, 0.002, 0.005),
    "homogeneous": (0.382, 0.005, 0, 0, 0),
    "chance": (0.056, 0, 0, 0, 0),
    "owned": (0.278, None, 0.401, None, None),
    "implied": (0.200, None, 0.102, None, None),
}
LIFTS = {"max": (4, 670, 670, 329, 335), "supported": (4, 670, 670, 88, 42)}
TRIED = {
    ("cover", "member"): (0.841, 0.368, 0.365, 0.270, 0.257),
    ("cover", "control"): (0.817, 0.283, 0.281, 0.259, 0.251),
    ("bayes", "member"): (0.812, 0.318, 0.317, 0.261, 0.273),
    ("bayes", "control"): (0.818, 0.309, 0.305, 0.259, 0.265),
    ("definetti", "member"): (0.846, 0.380, 0.376, 0.271, 0.283),
    ("definetti", "control"): (0.824, 0.301, 0.296, 0.259, 0.269),
}
MEMBERSHIP = {
    "advantage": (0.14, 0.04, 0.04, 0, 0),
    "auc": (0.60, 0.53, 0.54, 0.51, 0.51),
    "uncovered": (0.084, 0.003, 0.004, 0.019, 0),
}
ENDS = {
    "isolate": (0.26, None, 0.19, None, None),
    "control": (0.18, None, 0.15, None, None),
    "interior": (0.20, None, 0.16, None, None),
}
CASES = ("A", "B", "B3", "F", "T")


CLOSE = [
    {"model": "k-anonymity", "k": 10},
    {"model": "t-closeness", "attributes": ["occupation"], "t": 0.3},
]


def policy_of(attributes, promises, method):
    """A policy at k = 10; the other columns are dropped."""
    return Policy.from_dict(
        content_of(
            attributes,
            10,
            *promises,
            render={"order": "input"},
            method=method,
            other="drop",
            seed=1,
        )
    )


def of_a() -> Policy:
    ordinal = {"role": "quasi", "type": "ordinal", "order": "frequency"}
    attributes = {
        "age": {"role": "quasi", "domain": [17, 90]},
        "education-num": {"role": "quasi", "domain": [1, 16]},
        **dict.fromkeys(BY_FREQUENCY, ordinal),
        "income": {"role": "sensitive"},
    }
    # the figures are those of classes that exchanges found
    return policy_of(attributes, [], {"name": "rounded-partition", "refine": "exchange"})


def of_b(folder, l=None, **method) -> Policy:
    def quasi(name):
        return {"role": "quasi", "hierarchy": str(folder / f"{name}.csv")}

    wholly = method.get("name") == "full-domain"
    attributes = {
        "age": quasi("age") if wholly else {"role": "quasi", "domain": [17, 90]},
        **{name: quasi(name) for name in BY_HIERARCHY},
        "income": quasi("salary-class"),
        "occupation": {"role": "sensitive"},
        "hours-per-week": {"role": "plain"},
        "relationship": {"role": "plain"},
    }
    diverse = {"model": "l-diversity", "attribute": "occupation", "l": l, "kind": "distinct"}
    chosen = method or {"name": "rounded-partition", "refine": "none"}
    return policy_of(attributes, [diverse] if l else [], chosen)


@pytest.fixture(scope="module")
def found(adult, data_folder):
    """What all attacks find, by case."""
    folder = data_folder / "adult" / "hierarchies_arx"
    policies = {
        "A": of_a,
        "B": lambda: of_b(folder),
        "B3": lambda: of_b(folder, 3),
        "F": lambda: of_b(folder, 3, name="full-domain", suppression=0.02),
        "T": lambda: of_b(folder, name="tcloseness", rounds=3).with_promises(CLOSE),
    }

    @cache
    def attacked(case):
        policy = policies[case]()
        return attack(shoal.publish(adult, policy).data, policy, adult)["attacks"]

    return attacked


def numbers(section):
    """The exact figures of the table, by name."""
    (name,) = section["inference"]
    guessed, rare = section["inference"][name], section["skewness"][name]
    one = section["homogeneity"][name]
    figures = {key: guessed[key] for key in ("baseline", "class", "certain", "certain_right")}
    figures |= {"lifted": rare["lifted"], "homogeneous": one["people"], "chance": one["chance"]}
    figures |= {"owned": section["singling-out"]["owned"]}
    figures |= {"implied": section["minimality"]["implied"]}
    return {key: None if value is None else value["share"] for key, value in figures.items()}


@pytest.mark.parametrize("case", CASES)
def test_exact_figures_are_those_of_the_table(found, case):
    section, i = found(case), CASES.index(case)
    measured = numbers(section)
    for name, row in TABLE.items():
        if row[i] is not None:
            assert measured[name] == pytest.approx(row[i], abs=EXACT), name
    (name,) = section["skewness"]
    for key, row in LIFTS.items():
        assert section["skewness"][name][key] == pytest.approx(row[i], abs=0.51), key


@pytest.mark.parametrize("case", CASES)
def test_sampled_figures_are_those_of_the_table(found, case):
    section, i = found(case), CASES.index(case)
    (name,) = section["inference"]
    for (attacker, group), row in TRIED.items():
        share = section["inference"][name]["attackers"][attacker][group]["share"]
        assert share == pytest.approx(row[i], abs=SAMPLED), (attacker, group)
    for key, row in MEMBERSHIP.items():
        measured = section["membership"][key]
        share = measured if key == "auc" else measured["share"]
        assert share == pytest.approx(row[i], abs=SAMPLED + 0.005), key
    for key, row in ENDS.items():
        if row[i] is not None:
            share = section["singling-out"][key]["share"]
            assert share == pytest.approx(row[i], abs=0.035), key  # 1,000 predicates


def test_ends_that_are_moved_to_grids_tell_less(found):
    for case, owned, width in (
        ("A", (0.239, 0.093, 0.047), (0.012, 0.048, 0.108)),
        ("B3", (0.200, 0.081, 0.043), (0.010, 0.038, 0.086)),
    ):
        rows = [step["attributes"]["age"] for step in found(case)["singling-out"]["snap"]]
        assert [row["owned"]["share"] for row in rows] == pytest.approx(owned, abs=EXACT)
        assert [row["added_width"] for row in rows] == pytest.approx(width, abs=0.001)


def test_who_is_alone_with_a_value(found):
    alone = found("B")["singling-out"]["alone"]
    names = ("hours-per-week", "relationship", "occupation")
    shares = [alone[name]["share"] for name in names]
    assert shares == pytest.approx([0.304, 0.039, 0.215], abs=0.001)


def test_a_list_finds_less_than_classes_would_allow(found):
    linked = found("B3")["linkability"]
    assert linked["success"]["share"] == pytest.approx(0.063, abs=SAMPLED)
    assert linked["prosecutor_mean"] == pytest.approx(0.082, abs=EXACT)
    assert linked["worst"] <= 0.1


def test_a_list_of_four_columns_finds_less_than_one_of_all(adult, data_folder):
    policy = of_b(data_folder / "adult" / "hierarchies_arx")
    released = shoal.publish(adult, policy).data
    asked = ["linkability:known=age+sex+race+education"]
    linked = attack(released, policy, adult, asked)["attacks"]["linkability"]
    assert linked["success"]["share"] == pytest.approx(0.017, abs=SAMPLED / 4)


def test_values_that_stand_alone_in_cells_belong_to_one_person_once(found):
    for case, hits, tried in (("A", 1, 96), ("B", 0, 87)):
        values = found(case)["singling-out"]["univariate"]
        assert (values["share"], values["of"]) == (pytest.approx(hits / tried, abs=1e-4), tried)


def test_a_number_is_guessed_within_a_twentieth_of_its_range(adult, data_folder):
    content = of_b(data_folder / "adult" / "hierarchies_arx").model.model_dump(exclude_unset=True)
    hours = {"hours-per-week": {"role": "sensitive", "type": "number"}}
    policy = Policy.from_dict(content | {"attributes": content["attributes"] | hours})
    released = shoal.publish(adult, policy).data
    one = attack(released, policy, adult, ["inference"])["attacks"]["inference"]["hours-per-week"]
    assert one["tolerance"] == pytest.approx(4.9)
    assert one["baseline"]["share"] == pytest.approx(0.573, abs=EXACT)
    assert one["class"]["share"] == pytest.approx(0.651, abs=EXACT)
    cover = one["attackers"]["cover"]
    assert cover["member"]["share"] == pytest.approx(0.638, abs=SAMPLED)
    assert cover["control"]["share"] == pytest.approx(0.584, abs=SAMPLED)


def test_boosting_is_weaker_than_naive_bayes(adult, data_folder):
    pytest.importorskip("sklearn")
    policy = of_b(data_folder / "adult" / "hierarchies_arx")
    released = shoal.publish(adult, policy).data
    asked = [{"name": "inference", "learned": True}]
    found = attack(released, policy, adult, asked)["attacks"]["inference"]["occupation"]
    learned, bayes = found["attackers"]["learned"], found["attackers"]["bayes"]
    assert learned["member"]["share"] == pytest.approx(0.271, abs=SAMPLED)
    assert learned["control"]["share"] == pytest.approx(0.268, abs=SAMPLED)
    assert learned["member"]["share"] < bayes["member"]["share"]


def test_another_method_owns_other_ends_and_forces_nothing(adult, data_folder):
    folder = data_folder / "adult" / "hierarchies_arx"
    mondrian = of_b(folder).with_method("mondrian")
    released = shoal.publish(adult, mondrian).data
    found = attack(released, mondrian, adult, ["singling-out"])["attacks"]["singling-out"]
    assert found["owned"]["share"] == pytest.approx(0.329, abs=EXACT)
    wholly = of_b(folder, name="full-domain", suppression=0.02)
    certificate = shoal.publish(adult, wholly, attack=["minimality"]).certificate
    assert certificate["attacks"]["minimality"]["optimality"]["forced"]["share"] == 0


def test_knowing_the_method_rules_out_a_third_of_the_ways(adult, data_folder):
    policy = of_b(data_folder / "adult" / "hierarchies_arx", 3).with_method(
        "mondrian", {"cut": "nearest"}
    )
    released = shoal.publish(adult, policy).data
    found = attack(released, policy, adult, ["minimality"])["attacks"]["minimality"]
    assert found["replay"]["occupation"]["excluded"]["share"] == pytest.approx(0.36, abs=0.2)


def test_a_second_release_costs_most(adult, data_folder):
    content = of_b(data_folder / "adult" / "hierarchies_arx", 3).model.model_dump(
        exclude_unset=True
    )
    shown = {k: v for k, v in content["attributes"].items() if v["role"] != "plain"}
    policy = Policy.from_dict(content | {"attributes": shown})
    released = shoal.publish(adult, policy).data
    other = shoal.publish(adult, policy.with_method("mondrian").with_seed(2)).data
    names = ["intersection", "linkability"]
    found = attack(released, policy, adult, names, others=[{"release": other}])["attacks"]
    (order,) = found["linkability"]["order"]
    assert order["agree"]["share"] == 1
    assert order["chance"]["share"] == pytest.approx(0.105, abs=EXACT)
    together = found["intersection"]
    assert together["applies"] == "linked"
    values = together["linked"]["attributes"]["occupation"]
    shares = [
        together["linked"]["alone"]["share"],
        together["linked"]["below_k"]["share"],
        values["certain"]["share"],
        values["right"]["share"],
        together["unlinked"]["attributes"]["occupation"]["certain"]["share"],
        together["unlinked"]["attributes"]["occupation"]["right"]["share"],
    ]
    assert shares == pytest.approx([0.096, 0.657, 0.138, 0.498, 0.003, 0.405], abs=EXACT)


def test_the_same_method_with_another_k_gives_less_away(adult, data_folder):
    policy = of_b(data_folder / "adult" / "hierarchies_arx", 3)
    released, other = (shoal.publish(adult, policy.with_k(k)).data for k in (10, 15))
    found = attack(released, policy, adult, ["intersection"], others=[{"release": other}])
    joint = found["attacks"]["intersection"]["linked"]
    shares = joint["alone"]["share"], joint["attributes"]["occupation"]["certain"]["share"]
    assert shares == pytest.approx((0.022, 0.039), abs=EXACT)


def test_the_whole_population_halves_the_marketers_risk(adult, data_folder, tmp_path):
    lines = (data_folder / "adult" / "adult.test").read_text().splitlines()[1:]
    rows = [line.split(", ") for line in lines if line and "?" not in line]
    more = pl.DataFrame(rows, schema=adult.columns, orient="row")
    pl.concat([adult, more]).write_csv(tmp_path / "all.csv")
    policy = of_a()
    released = shoal.publish(adult, policy).data
    for block, expected in (
        ({"table": str(tmp_path / "all.csv")}, 0.049),
        ({"fraction": 0.667}, 0.068),
    ):
        described = Policy.from_dict(policy.model.model_dump(exclude_unset=True)
                                     | {"population": block})  # fmt: skip
        around = attack(released, described, adult, ["population"])["attacks"]["population"]
        assert around["marketer"]["share"] == pytest.approx(expected, abs=0.001)
        assert around["baseline"]["mean"] == pytest.approx(0.099, abs=0.001)
