"""A plan: saved with one table, applied to another; and why a release is as it is."""

from __future__ import annotations

import json

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import shoal
from sample_policies import content_of
from shoal.cli.main import status_of
from shoal.reports.text import explanation_sentences
from strategies import policies_with_tables, without_means

TREE = {"tree": {"north": ["a", "b"], "south": ["c", "d"]}}
POLICY = content_of(
    {
        "at": {"role": "quasi", "hierarchy": TREE},
        "sex": {"role": "quasi"},
        "age": {"role": "quasi", "type": "number", "domain": [0, 120]},
        "ill": {"role": "sensitive"},
    },
    2,
    method={"name": "full-domain", "suppression": 0.3},
)
FIRST = pl.DataFrame(
    {"at": [*"aabbcc"], "sex": [*"ffffmm"], "age": [30, 30, 41, 41, 50, 50], "ill": [*"uvuvuv"]}
)


def test_a_saved_plan_does_the_same_to_the_same_table(tmp_path):
    chosen = shoal.publish(FIRST, POLICY, plan=tmp_path / "plan.json")
    again = shoal.publish(FIRST, POLICY, plan=tmp_path / "plan.json")
    assert again.data.equals(chosen.data)
    assert again.certificate["plan"] == {"uncovered": {}, "suppressed": 0}


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), rounds=st.integers(0, 2))
def test_that_holds_for_any_table_and_every_number_of_rounds(tmp_path_factory, data, rounds):
    content, frame = data.draw(policies_with_tables())
    content = without_means(content) | {"promises": [{"model": "k-anonymity", "k": 2}]}
    policy = content | {"method": {"name": "full-domain", "suppression": 0.4, "rounds": rounds}}
    place = tmp_path_factory.mktemp("plans") / "plan.json"
    try:
        chosen = shoal.publish(frame, policy, plan=place)
    except shoal.InfeasibleError:
        return
    again = shoal.publish(frame, policy, plan=place)
    assert again.certificate.holds
    assert (again.classes >= 0).sum() == (chosen.classes >= 0).sum()
    if not any(
        "" in frame[name].to_list() for name in content["attributes"] if name.startswith("q")
    ):
        assert again.data.equals(chosen.data)


def test_values_that_it_does_not_cover_are_suppressed_counted_and_said(tmp_path, capsys):
    shoal.publish(FIRST, POLICY, plan=tmp_path / "plan.json")
    other = FIRST.with_columns(sex=pl.Series([*"ffxxmm"]), age=pl.Series([30, 30, 41, 41, 50, 50]))
    out = shoal.publish(other, POLICY, plan=tmp_path / "plan.json")
    assert out.certificate["plan"]["uncovered"] == {"sex": {"values": 1, "records": 2}}
    assert out.certificate["records"]["suppressed"] == 2
    other.write_csv(tmp_path / "in.csv")
    (tmp_path / "policy.json").write_text(json.dumps(POLICY))
    names = [str(tmp_path / name) for name in ("in.csv", "policy.json", "out.csv", "plan.json")]
    assert status_of(["publish", names[0], "-p", names[1], "-o", names[2], "--plan", names[3]]) == 0
    assert "does not cover 1 value of 'sex': 2 records suppressed" in capsys.readouterr().err


def test_classes_that_break_a_promise_in_the_other_table_go_as_far_as_allowed(tmp_path):
    shoal.publish(FIRST, POLICY, plan=tmp_path / "plan.json")
    one_alone = FIRST[:5]
    out = shoal.publish(one_alone, POLICY, plan=tmp_path / "plan.json")
    assert out.certificate.holds
    assert out.certificate["plan"]["suppressed"] == 1
    with pytest.raises(shoal.PromiseError, match="allows to suppress"):
        shoal.publish(FIRST[[0, 2, 4]], POLICY, plan=tmp_path / "plan.json")


def test_a_plan_for_other_columns_or_of_another_kind_is_refused(tmp_path):
    shoal.publish(FIRST, POLICY, plan=tmp_path / "plan.json")
    fewer = {name: a for name, a in POLICY["attributes"].items() if name != "sex"}
    with pytest.raises(shoal.InputError, match="'sex' is not a quasi-identifier"):
        shoal.publish(
            FIRST.drop("sex"), POLICY | {"attributes": fewer}, plan=tmp_path / "plan.json"
        )
    (tmp_path / "bad.json").write_text("{}")
    with pytest.raises(shoal.InputError, match="holds no plan"):
        shoal.publish(FIRST, POLICY, plan=tmp_path / "bad.json")
    with pytest.raises(shoal.InputError, match="recodes each class on its own"):
        shoal.publish(FIRST, POLICY | {"method": {"name": "mondrian"}}, plan=tmp_path / "new.json")


@pytest.mark.parametrize(
    "change",
    [
        lambda plan: plan["rounds"][0]["sex"].update(cells=None),
        lambda plan: plan["rounds"][0]["sex"].update(cells=[]),
        lambda plan: plan["rounds"][0]["sex"].update(cells={"f": -1}),
        lambda plan: plan["rounds"][0]["sex"].update(whole=99999),
        lambda plan: plan["rounds"][0]["sex"].update(numbers=[[0, "a", "b"]]),
        lambda plan: plan["rounds"].append({}),
        lambda plan: plan.update(rounds=[]),
        lambda plan: plan.update(suppression=float("nan")),
    ],
)
def test_a_plan_that_can_not_be_understood_is_none(tmp_path, change):
    path = tmp_path / "plan.json"
    shoal.publish(FIRST, POLICY, plan=path)
    plan = json.loads(path.read_text())
    change(plan)
    path.write_text(json.dumps(plan))
    with pytest.raises(shoal.InputError, match="holds no plan"):
        shoal.publish(FIRST, POLICY, plan=path)


def test_no_plan_is_left_by_a_release_that_is_withheld(tmp_path):
    strict = [
        {"model": "k-anonymity", "k": 2},
        {"model": "k-map", "k": 9, "population": "people.csv"},
    ]
    FIRST.select("at", "sex", "age").write_csv(tmp_path / "people.csv")
    policy = shoal.Policy.from_dict(
        POLICY | {"promises": strict, "method": {"name": "datafly"}}, tmp_path
    )
    with pytest.raises((shoal.PromiseError, shoal.InfeasibleError)):
        shoal.publish(FIRST, policy, plan=tmp_path / "plan.json")
    assert not (tmp_path / "plan.json").exists()


SPREAD = pl.DataFrame(
    {
        "at": [*"aaaabbbbccccd"],
        "sex": [*"fmfmfmfmfmfmf"],
        "age": [20, 30, 40, 50, 20, 30, 40, 50, 20, 30, 40, 50, 60],
        "ill": [*"uvuvuvuvuvuvu"],
    }
)


def test_an_explanation_names_promises_and_columns():
    policy = POLICY | {
        "promises": [{"model": "k-anonymity", "k": 3}],
        "method": {"name": "full-domain", "suppression": 0.1},
    }
    told = shoal.publish(SPREAD, policy, explain=True).certificate["explanation"]
    assert told["suppressed"]["records"] == 1
    assert told["suppressed"]["promises"] == {"k-anonymity": 1}
    assert {c["attribute"] for c in told["suppressed"]["columns"]} == {"at", "sex", "age"}
    assert any(column["promises"]["k-anonymity"] > 0 for column in told["generalized"])


def test_cheaper_is_only_what_loses_or_suppresses_less_of_the_same_columns():
    policy = POLICY | {"promises": [{"model": "k-anonymity", "k": 4}]}
    told = shoal.publish(SPREAD, policy, explain=True).certificate["explanation"]
    settings = {change["setting"]: change for change in told["cheaper"]}
    # without 'age', which shows nothing: no gain
    assert set(settings) == {
        "k-anonymity with k = 3",
        "without 'sex'",
    }
    # the two others show nothing
    assert settings["without 'sex'"]["now"] == {
        "suppressed": 0,
        "score": 1.0,
    }
    assert settings["without 'sex'"]["score"] < 1.0


def test_what_it_calls_cheaper_is_what_that_setting_publishes():
    policy = POLICY | {"promises": [{"model": "k-anonymity", "k": 4}]}
    told = shoal.publish(SPREAD, policy, explain=True).certificate["explanation"]
    found = next(
        change for change in told["cheaper"] if change["setting"] == "k-anonymity with k = 3"
    )
    there = shoal.publish(
        SPREAD, policy | {"promises": [{"model": "k-anonymity", "k": 3}]}
    ).certificate
    assert found["score"] == there["method"]["search_statistics"]["score"]
    assert found["suppressed"] == there["records"]["suppressed"]


def test_a_step_along_the_lattice_is_what_those_levels_publish():
    policy = POLICY | {
        "promises": [{"model": "k-anonymity", "k": 3}],
        "method": {"name": "full-domain", "suppression": 0.1},
    }
    certificate = shoal.publish(SPREAD, policy, explain=True).certificate
    told = certificate["explanation"]
    assert told["node"]["is_safe"]
    assert told["node"]["loss"] == pytest.approx(certificate["utility"]["gcp"])
    steps = {(near["attribute"], near["step"]) for near in told["neighbours"]}
    assert {step for _, step in steps} == {1, -1}
    for near in told["neighbours"]:
        level = told["node"]["levels"][near["attribute"]]
        assert near["levels"][near["attribute"]] == level + near["step"]
        at = [f"{name}:{level}" for name, level in near["levels"].items()]
        method = {**policy["method"], "minimum": at, "maximum": at}
        if not near["is_safe"]:
            with pytest.raises(shoal.InfeasibleError):
                shoal.publish(SPREAD, policy | {"method": method})
            continue
        there = shoal.publish(SPREAD, policy | {"method": method}).certificate
        assert there["records"]["suppressed"] == near["breaking"]
        assert there["utility"]["gcp"] == pytest.approx(near["loss"])


def test_explanations_hold_no_value_and_are_said_on_the_screen_and_in_the_report(tmp_path, capsys):
    SPREAD.write_csv(tmp_path / "in.csv")
    policy = POLICY | {"promises": [{"model": "k-anonymity", "k": 4}]}
    (tmp_path / "policy.json").write_text(json.dumps(policy))
    names = {
        name: str(tmp_path / name) for name in ("in.csv", "policy.json", "out.csv", "report.html")
    }
    command = [
        "publish",
        names["in.csv"],
        "-p",
        names["policy.json"],
        "-o",
        names["out.csv"],
        "--explain",
    ]
    assert status_of([*command, "--report", names["report.html"]]) == 0
    said = capsys.readouterr().err
    assert "cheaper: k-anonymity with k = 3" in said
    assert "what would be cheaper" in (tmp_path / "report.html").read_text()
    assert "north" not in said
    assert shoal.publish(SPREAD, policy, explain=True).certificate.holds


@pytest.mark.parametrize(
    ("change", "now", "said"),
    [
        ((0, 0.3), (0, 0.4), "scores 0.3 instead of 0.4"),
        ((2, None), (5, None), "suppresses 2 instead of 5"),
        ((2, 0.4), (5, 0.4), "suppresses 2 instead of 5"),
        ((2, 0.3), (5, 0.4), "suppresses 2 instead of 5 and scores 0.3 instead of 0.4"),
    ],
)
def test_what_is_cheaper_is_said_by_what_differs(change, now, said):
    cheaper = dict(zip(("suppressed", "score"), change, strict=True))
    cheaper |= {
        "setting": "without 'a'",
        "now": dict(zip(("suppressed", "score"), now, strict=True)),
    }
    measured = {"suppressed": None, "generalized": [], "looser": [], "cheaper": [cheaper]}
    assert list(explanation_sentences(measured)) == [f"cheaper: without 'a' {said}"]


def test_local_recoding_has_nothing_to_explain():
    with pytest.raises(shoal.InputError, match="methods of global recoding"):
        shoal.publish(SPREAD, POLICY | {"method": {"name": "mondrian"}}, explain=True)


@pytest.mark.parametrize(
    ("method", "says"),
    [
        (None, "the default method recodes each class on its own"),
        ({"name": "mondrian"}, "method 'mondrian' recodes each class on its own"),
        ({"name": "lattice"}, "method 'lattice': is unknown"),
    ],
)
def test_why_there_is_no_plan_names_the_method_that_was_asked_for(tmp_path, method, says):
    policy = {name: value for name, value in POLICY.items() if name != "method"}
    policy |= {} if method is None else {"method": method}
    with pytest.raises(shoal.InputError, match=says):
        shoal.publish(FIRST, policy, plan=tmp_path / "plan.json")
    with pytest.raises(shoal.InputError, match=says):
        shoal.lattice_walk(FIRST, policy)
