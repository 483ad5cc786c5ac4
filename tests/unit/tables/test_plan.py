"""A plan: saved with one table, applied to another; and why a release is as it is."""

import json

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import shoal
from sample_policies import content_of
from shoal.connectors.release_drafts import FileDraft
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
K2 = {"model": "k-anonymity", "k": 2}
FIRST = pl.DataFrame(
    {"at": [*"aabbcc"], "sex": [*"ffffmm"], "age": [30, 30, 41, 41, 50, 50], "ill": [*"uvuvuv"]}
)


@pytest.fixture
def plan(tmp_path):
    """A plan that was chosen for the first table."""
    shoal.publish(FIRST, POLICY, plan=tmp_path / "plan.json")
    return tmp_path / "plan.json"


def test_a_release_that_fails_at_its_certificate_leaves_no_plan(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError("no room")

    monkeypatch.setattr(FileDraft, "certify", fail)
    FIRST.write_csv(tmp_path / "first.csv")
    names = [str(tmp_path / name) for name in ("first.csv", "out.csv", "plan.json")]
    with pytest.raises(OSError, match="no room"):
        shoal.publish_file(names[0], POLICY, names[1], plan=names[2])
    assert [path.name for path in tmp_path.iterdir()] == ["first.csv"]


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), rounds=st.integers(0, 2))
def test_a_saved_plan_does_the_same_to_the_same_table(tmp_path_factory, data, rounds):
    content, frame = data.draw(policies_with_tables())
    content = without_means(content) | {"promises": [K2]}
    policy = content | {"method": {"name": "full-domain", "suppression": 0.4, "rounds": rounds}}
    place = tmp_path_factory.mktemp("plans") / "plan.json"
    try:
        chosen = shoal.publish(frame, policy, plan=place)
    except shoal.InfeasibleError:
        return
    again = shoal.publish(frame, policy, plan=place)
    assert again.certificate.holds
    assert (again.classes >= 0).sum() == (chosen.classes >= 0).sum()
    assert again.certificate["plan"]["uncovered"] == {}
    quasi = [name for name in content["attributes"] if name.startswith("q")]
    if not any("" in frame[name].to_list() for name in quasi):
        assert again.data.equals(chosen.data)


def test_values_that_it_does_not_cover_are_suppressed_counted_and_said(plan, shoal_in):
    other = FIRST.with_columns(sex=pl.Series([*"ffxxmm"]))
    out = shoal.publish(other, POLICY, plan=plan)
    assert out.certificate["plan"]["uncovered"] == {"sex": {"values": 1, "records": 2}}
    assert out.certificate["records"]["suppressed"] == 2
    done = shoal_in(other, POLICY, "--plan", plan)
    assert done.status == 0
    assert "does not cover 1 value of 'sex': 2 records suppressed" in done.err


@pytest.fixture
def shoal_in(folder, shoal):
    """Publishes a table by the command, in a folder of its own."""

    def publish(frame, policy, *more):
        frame.write_csv("in.csv")
        (folder / "policy.json").write_text(json.dumps(policy))
        return shoal("publish", "in.csv", "-p", "policy.json", "-o", "out.csv", *more)

    return publish


def test_classes_that_break_a_promise_in_the_other_table_go_as_far_as_allowed(plan):
    out = shoal.publish(FIRST[:5], POLICY, plan=plan)  # one is alone
    assert out.certificate.holds
    assert out.certificate["plan"]["suppressed"] == 1
    with pytest.raises(shoal.PromiseError, match="allows to suppress"):
        shoal.publish(FIRST[[0, 2, 4]], POLICY, plan=plan)


def test_a_plan_for_other_columns_is_refused(plan):
    fewer = {name: a for name, a in POLICY["attributes"].items() if name != "sex"}
    with pytest.raises(shoal.InputError, match="'sex' is not a quasi-identifier"):
        shoal.publish(FIRST.drop("sex"), POLICY | {"attributes": fewer}, plan=plan)


@pytest.mark.parametrize(
    "change",
    [
        lambda plan: plan.clear(),
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
def test_a_plan_that_can_not_be_understood_is_none(plan, change):
    content = json.loads(plan.read_text())
    change(content)
    plan.write_text(json.dumps(content))
    with pytest.raises(shoal.InputError, match="holds no plan"):
        shoal.publish(FIRST, POLICY, plan=plan)


def test_no_plan_is_left_by_a_release_that_is_withheld(tmp_path):
    strict = [K2, {"model": "k-map", "k": 9, "population": "people.csv"}]
    FIRST.select("at", "sex", "age").write_csv(tmp_path / "people.csv")
    content = POLICY | {"promises": strict, "method": {"name": "datafly"}}
    with pytest.raises((shoal.PromiseError, shoal.InfeasibleError)):
        shoal.publish(FIRST, shoal.Policy.from_dict(content, tmp_path), plan=tmp_path / "plan.json")
    assert not (tmp_path / "plan.json").exists()


# Why a release is as it is

SPREAD = pl.DataFrame(
    {
        "at": [*"aaaabbbbccccd"],
        "sex": [*"fmfmfmfmfmfmf"],
        "age": [20, 30, 40, 50, 20, 30, 40, 50, 20, 30, 40, 50, 60],
        "ill": [*"uvuvuvuvuvuvu"],
    }
)


def with_k(k: int) -> dict:
    return POLICY | {"promises": [K2 | {"k": k}]}


ONE_IN_TEN = with_k(3) | {"method": {"name": "full-domain", "suppression": 0.1}}


@pytest.fixture(scope="module")
def explained():
    return shoal.publish(SPREAD, ONE_IN_TEN, explain=True).certificate


def test_an_explanation_names_promises_and_columns(explained):
    shown = explained["explanation"]
    assert shown["suppressed"]["records"] == 1
    assert shown["suppressed"]["promises"] == {"k-anonymity": 1}
    assert {c["attribute"] for c in shown["suppressed"]["columns"]} == {"at", "sex", "age"}
    assert any(column["promises"]["k-anonymity"] > 0 for column in shown["generalized"])


def test_cheaper_is_only_what_loses_or_suppresses_less_of_the_same_columns_and_is_so():
    shown = shoal.publish(SPREAD, with_k(4), explain=True).certificate["explanation"]
    settings = {change["setting"]: change for change in shown["cheaper"]}
    # without 'age', which shows nothing: no gain
    assert set(settings) == {"k-anonymity with k = 3", "without 'sex'"}
    # the two others show nothing
    assert settings["without 'sex'"]["now"] == {"suppressed": 0, "score": 1.0}
    assert settings["without 'sex'"]["score"] < 1.0
    found = settings["k-anonymity with k = 3"]
    there = shoal.publish(SPREAD, with_k(3)).certificate
    assert found["score"] == there["method"]["search_statistics"]["score"]
    assert found["suppressed"] == there["records"]["suppressed"]


def test_a_step_along_the_lattice_is_what_those_levels_publish(explained):
    shown = explained["explanation"]
    assert shown["node"]["is_safe"]
    assert shown["node"]["loss"] == pytest.approx(explained["utility"]["gcp"])
    assert {near["step"] for near in shown["neighbours"]} == {1, -1}
    for near in shown["neighbours"]:
        level = shown["node"]["levels"][near["attribute"]]
        assert near["levels"][near["attribute"]] == level + near["step"]
        at = [f"{name}:{level}" for name, level in near["levels"].items()]
        there = ONE_IN_TEN | {"method": ONE_IN_TEN["method"] | {"minimum": at, "maximum": at}}
        if not near["is_safe"]:
            with pytest.raises(shoal.InfeasibleError):
                shoal.publish(SPREAD, there)
            continue
        there = shoal.publish(SPREAD, there).certificate
        assert there["records"]["suppressed"] == near["breaking"]
        assert there["utility"]["gcp"] == pytest.approx(near["loss"])


def test_explanations_hold_no_value_and_are_said_on_the_screen_and_in_the_report(
    tmp_path, shoal_in
):
    done = shoal_in(SPREAD, with_k(4), "--explain", "--report", "report.html")
    assert done.status == 0
    assert "cheaper: k-anonymity with k = 3" in done.err
    assert "what would be cheaper" in (tmp_path / "report.html").read_text()
    assert "north" not in done.err


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
    names = ("suppressed", "score")
    cheaper = dict(zip(names, change, strict=True)) | {"setting": "without 'a'"}
    cheaper["now"] = dict(zip(names, now, strict=True))
    measured = {"suppressed": None, "generalized": [], "looser": [], "cheaper": [cheaper]}
    assert list(explanation_sentences(measured)) == [f"cheaper: without 'a' {said}"]


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
    for asked in (
        lambda: shoal.publish(FIRST, policy, plan=tmp_path / "plan.json"),
        lambda: shoal.lattice_walk(FIRST, policy),
    ):
        with pytest.raises(shoal.InputError, match=says):
            asked()


def test_local_recoding_has_nothing_to_explain():
    with pytest.raises(shoal.InputError, match="methods of global recoding"):
        shoal.publish(SPREAD, POLICY | {"method": {"name": "mondrian"}}, explain=True)
