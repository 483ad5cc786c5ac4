"""Which method, which k, at what loss: the figures of a publish, side by side."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml

import shoal as front_door
from page_text import Page, assert_needs_nothing_else
from sample_policies import content_of
from shoal.advise import compare as comparing
from shoal.advise.compare import compare
from shoal.advise.comparison import Comparison, Row, promise_titles
from shoal.advise.methods import NO_K, checked_ks, label_of, proposed_methods, with_methods
from shoal.data import numba_kernels
from shoal.data.certificate import Certificate
from shoal.errors import InfeasibleError, InputError
from shoal.policy import registry
from shoal.policy.policy import Policy
from shoal.reports.attacks import interval_text
from shoal.reports.comparison import COLOURS, MARKERS, render
from shoal.reports.comparison_table import CLASSIFICATION, as_text, columns, faults, more_columns
from shoal.samples import survey

MONDRIANS = ["mondrian", "mondrian:cut=nearest:trees=children"]


@pytest.fixture
def compared(sample_table, sample_policy):
    return compare(sample_table, sample_policy, MONDRIANS, [5, 20])


# What is measured


@pytest.mark.parametrize(("few", "compiled"), [(10_000, False), (0, True)])
def test_times_are_of_compiled_loops_unless_the_table_is_small(
    sample_table, sample_policy, monkeypatch, few, compiled
):
    asked = []

    def found(*arguments):
        asked.append(numba_kernels._compiles)
        return find_classes(*arguments)

    find_classes = comparing.find_classes
    monkeypatch.setattr(comparing, "find_classes", found)
    monkeypatch.setattr(comparing, "FEW_RECORDS", few)
    compare(sample_table, sample_policy, ["mondrian"], [20])
    assert asked == [compiled] * 2  # to warm up, then timed
    assert numba_kernels._compiles is None


@pytest.mark.parametrize(
    "changes", [{}, {"render": {"order": "shuffled"}}, {"label": "disease", "seed": 3}]
)
def test_every_row_has_the_figures_of_a_publish_with_the_same_settings(
    sample_table, sample_policy, changes
):
    policy = Policy.from_dict(sample_policy | changes)
    nearest = {"name": "mondrian", "cut": "nearest"}
    found = compare(sample_table, policy, ["mondrian", nearest, "top-down-greedy"], [20, 5])
    assert [row.k for row in found.rows] == [5] * 3 + [20] * 3
    for k in (5, 20):
        named = {row.label for row in found.rows if row.k == k}
        assert named == {"mondrian", "mondrian:cut=nearest", "top-down-greedy"}
    for row in found.rows:
        alone = front_door.publish(
            sample_table, policy.with_k(row.k).with_method(row.method, row.settings)
        ).certificate
        for key in "records subjects counted classes promises utility risk faults".split():
            assert row.certificate[key] == alone[key], (row.label, row.k, key)
        assert row.parameters == alone["method"]["parameters"]


def test_suppressed_records_are_those_of_a_publish(sample_table, sample_policy):
    table = sample_table.with_columns(
        age=pl.when(pl.int_range(600) < 3).then(None).otherwise("age")
    )
    policy = Policy.from_dict(sample_policy | {"missing": "suppress"})
    (row,) = compare(table, policy, ["mondrian"], [5]).rows
    alone = front_door.publish(table, policy.with_k(5).with_method("mondrian", {})).certificate
    assert row.as_dict()["suppressed"] == alone["records"]["suppressed"] == 3
    assert row.certificate["utility"] == alone["utility"]
    assert "suppr." in [
        column.title for column in columns(compare(table, policy, ["mondrian"], [5]))
    ]


def test_pandas_and_arrow_frames_give_the_same_figures(compared, sample_table, sample_policy):
    for frame in (sample_table.to_pandas(), sample_table.to_arrow()):
        found = front_door.compare(frame, sample_policy, MONDRIANS, [5, 20])
        assert isinstance(found, front_door.Comparison)
        assert figures(found) == figures(compared)


def test_the_table_is_encoded_once(sample_table, sample_policy, monkeypatch):
    from shoal.advise import compare as job

    calls, bind = [], job.bound_table
    monkeypatch.setattr(job, "bound_table", lambda *given: calls.append(1) or bind(*given))
    compare(sample_table, sample_policy, MONDRIANS, [5, 10, 20])
    assert len(calls) == 1


def test_four_methods_that_suit_the_policy_are_compared_when_none_is_named(
    sample_table, sample_policy
):
    found = compare(sample_table, sample_policy, ks=[10])
    assert len(found.methods) == 4
    assert {"rounded-partition", "lattice-peeling"} < set(found.methods)
    assert all(row.holds for row in found.rows)


def test_what_publish_would_choose_is_among_those_that_are_proposed(sample_table, sample_policy):
    close = {"model": "t-closeness", "attributes": ["disease"], "t": 0.5}
    policy = Policy.from_dict(sample_policy | {"promises": [*sample_policy["promises"], close]})
    chosen = front_door.publish(sample_table, policy.with_k(10)).certificate["method"]
    own = Policy.from_dict(sample_policy | {"method": {"name": "bottom-up"}})
    assert chosen["name"] == "tcloseness"
    for asked, label in ((policy, "tcloseness:aim=spans:scale=range"), (own, "bottom-up")):
        names = [label_of(each) for each in proposed_methods(asked)]
        assert label in names
        assert len(names) == len(set(names)) == 4


def test_means_propose_microaggregation_and_nothing_that_can_not_show_them(sample_policy):
    attributes = sample_policy["attributes"]
    age = attributes["age"] | {"render": "mean"}
    policy = Policy.from_dict(sample_policy | {"attributes": attributes | {"age": age}})
    assert "mdav" in [each.method_name for each in proposed_methods(policy)]


def test_all_stands_for_every_method_of_the_product_that_publishes_one_table(sample_policy):
    known = [m for m in registry.methods().values() if m.verb == "publish" and not m.is_comparator]
    every = [m.name for m in known if not m.renders_two_tables]
    policies, _ = with_methods(Policy.from_dict(sample_policy), ["all"])
    assert [policy.method_name for policy in policies] == every
    asked = ["mondrian:cut=nearest", "mdav", "all"]
    beside, _ = with_methods(Policy.from_dict(sample_policy), asked)
    others = [name for name in every if name != "mdav"]
    assert [policy.method_name for policy in beside] == ["mondrian", "mdav", *others]


def test_comparators_are_compared_where_they_are_named_and_never_proposed(sample_policy):
    policy = Policy.from_dict(sample_policy)
    named, _ = with_methods(policy, ["datafly", "oka"])
    assert [each.method_name for each in named] == ["datafly", "oka"]
    proposed = {each.method_name for each in proposed_methods(policy)}
    assert not [name for name in proposed if registry.methods()[name].is_comparator]


def test_the_usual_ks_and_the_policys_are_compared_when_none_is_named():
    assert checked_ks(None, 7) == [5, 7, 10, 25, 50]
    assert checked_ks(None, 25) == [5, 10, 25, 50]
    assert checked_ks(5, 2) == [5]


def test_a_k_that_is_a_word_of_the_call_is_the_only_one_compared(sample_table, sample_policy):
    words = {"quasi": ["age"], "other": "drop", "methods": ["mondrian"]}
    asked = {(7,): {"k": 7}, (5,): {"k": 7, "ks": [5]}, (4, 7): {"ks": [7, 4]}}
    for ks, given in (asked | {(5, 10, 25, 50): {}}).items():
        assert compare(sample_table, **given, **words).ks == ks
    assert compare(sample_table, sample_policy, ["mondrian"], k=7).ks == (7,)
    with pytest.raises(InputError, match=r"^compare: no quasi-identifier"):
        compare(sample_table, ks=[4])


# What is recommended


def test_a_recommendation_of_one_class_says_that_nothing_is_left(sample_table):
    words = {"quasi": ["age"], "other": "drop", "methods": ["mondrian"]}
    assert "nothing is left" in str(compare(sample_table, k=600, **words).recommendation)
    assert "nothing is left" not in str(compare(sample_table, k=5, **words).recommendation)


def test_rows_come_by_k_and_then_by_loss_with_refusals_last(sample_table, sample_policy):
    methods = ["mondrian", "lattice-peeling", "top-down-greedy"]
    found = compare(sample_table, sample_policy, methods, [601, 10, 5])
    assert [row.k for row in found.rows] == sorted(row.k for row in found.rows)
    for k in (5, 10):
        losses = [row.loss for row in found.rows if row.k == k]
        assert losses == sorted(losses)
    assert found.rows[-1].reason is not None


def test_the_method_that_loses_least_at_the_policys_k_is_recommended(sample_table, sample_policy):
    policy = Policy.from_dict(sample_policy).with_k(20)
    found = compare(sample_table, policy, ["mondrian", "lattice-peeling"], [5, 20])
    least = min((row for row in found.rows if row.k == 20), key=lambda row: row.loss)
    advice = found.recommendation
    assert (advice.method, advice.k) == (least.label, 20)
    assert f"{100 * least.loss:.2f} % of the detail" in advice.why
    assert f"take {least.label} at k = 20: " in as_text(found)


def row_of(k, loss, method="mondrian"):
    content = {"utility": {"gcp": loss}, "risk": {}, "promises": [{"holds": True}]}
    return Row(method, {}, {}, k, Certificate(content), 0.1)


def test_a_larger_k_is_recommended_where_it_loses_less():
    rows = row_of(5, 0.42), row_of(10, 0.39), row_of(5, 0.5, "mdav"), row_of(2, 0.1)
    advice = Comparison(rows, 0, 100, 100, ("age",), asked_k=5).recommendation
    assert (advice.method, advice.k) == ("mondrian", 10)
    assert advice.why.endswith("next is mdav with 50.00 %; mondrian at k = 10 keeps k = 5, too")
    assert "of 2 methods" in advice.why
    rows = row_of(5, 0.38), row_of(5, 0.5, "mdav"), row_of(10, 0.4, "mdav")
    advice = Comparison(rows, 0, 100, 100, ("age",), asked_k=5).recommendation
    assert advice.why.endswith("38.00 % of the detail; next is mdav with 40.00 % at k = 10")
    again = Comparison((row_of(5, 0.4), row_of(10, 0.4)), 0, 100, 100, ("age",), asked_k=5)
    assert again.recommendation.k == 5


def test_words_are_compared_as_they_are_published(sample_table):
    words = {"quasi": ["age"], "other": "drop", "k": 10, "methods": ["mondrian"], "ks": [10]}
    (row,) = front_door.compare(sample_table, **words).rows
    release = front_door.publish(sample_table, quasi=["age"], other="drop", k=10, method="mondrian")
    assert row.loss == release.certificate["utility"]["gcp"]
    with pytest.raises(InputError, match="needs a policy for a file"):
        front_door.compare("people.csv", quasi=["age"], k=10)


def test_the_least_k_is_advised_about_where_the_policys_is_not_compared(compared):
    assert compared.asked_k == 10
    assert compared.recommendation.k == 5


def test_nothing_is_recommended_where_nothing_holds(sample_table, sample_policy):
    found = compare(sample_table, sample_policy, ["mondrian"], [601])
    assert found.recommendation is None
    assert json.loads(found.to_json())["recommendation"] is None
    assert "so nothing is recommended" in Page(render(found)).text


def test_the_frame_has_a_row_for_each_method_and_k_with_the_figures_of_the_json(compared):
    frame = compared.to_frame()
    rows = json.loads(compared.to_json())["rows"]
    assert isinstance(frame, pl.DataFrame)
    assert frame["label"].to_list() == [row["label"] for row in rows]
    for name in ("k", "gcp", "classes", "seconds"):
        assert frame[name].to_list() == [row[name] for row in rows]
    asked = [[p["measured"] for p in row["promises"]] for row in rows]
    assert frame.select("k-anonymity", "l-diversity(disease)").rows() == [*map(tuple, asked)]


def test_a_k_without_a_release_has_nulls_in_the_frame(sample_table, sample_policy):
    frame = compare(sample_table, sample_policy, ["mondrian"], [10, 601]).to_frame()
    assert frame["gcp"].is_null().to_list() == [False, True]
    assert frame["k-anonymity"].is_null().to_list() == [False, True]


def test_two_promises_of_one_kind_are_told_apart():
    two = {"model": "l-diversity", "attributes": ["disease"]}
    titles = promise_titles([two, {"model": "k-anonymity", "attributes": []}, two])
    assert titles == ["l-diversity(disease)", "k-anonymity", "l-diversity(disease) #2"]


def test_a_notebook_shows_what_is_printed_and_every_row(sample_table, sample_policy):
    compared = front_door.compare(sample_table, sample_policy, MONDRIANS, [5, 20])
    page = Page(compared._repr_html_())
    assert compared.recommendation.why in page.text
    assert page.tags.count("tr") == 1 + len(compared.rows)
    heads = re.findall("<th>(.*?)</th>", compared._repr_html_())
    assert re.split("  +", repr(compared).splitlines()[0].strip()) == heads
    assert "largest" in heads
    assert "CPU s of the method alone" in page.text
    assert not {"script", "style", "link", "img"} & set(page.tags)


def test_a_comparison_shows_its_table_and_what_publish_takes(sample_table, sample_policy):
    for method, says in (("mondrian", "mondrian"), ("mdav", "mdav, not compared here")):
        policy = sample_policy | {"method": {"name": method}}
        found = front_door.compare(sample_table, policy, ["mondrian"], [10])
        assert f"publish under this policy takes {says}" in repr(found).splitlines()
        assert f"publish under this policy takes {says}." in Page(found._repr_html_()).text
        assert f"{100 * found.rows[0].loss:.2f} %" in repr(found)


def test_how_well_a_named_label_is_told_stands_in_the_table(sample_table):
    words = {"quasi": ["age", "zip"], "plain": "sex", "other": "drop", "methods": ["mondrian"]}
    stated = front_door.compare(sample_table, ks=[5, len(sample_table)], label="sex", **words)
    heads, *rows = str(stated).splitlines()
    at = heads.index("classif.")
    figures = [int(row[at : at + len("classif.")]) for row in rows[:2]]
    guessed = len(sample_table) - sample_table["sex"].value_counts()["count"].max()
    assert figures[0] < figures[1] == guessed
    assert f"class; {guessed} if each gets that of all" in str(stated)
    assert CLASSIFICATION not in more_columns(stated)
    unnamed = front_door.compare(sample_table, ks=[5], **words)
    assert "classif." not in str(unnamed)


def test_a_method_of_that_name_with_other_parameters_is_said_to_differ(sample_table):
    words = {"quasi": ["age", "sex"], "sensitive": "disease", "other": "drop", "k": 10, "t": 0.5}
    found = front_door.compare(sample_table, methods=["tcloseness", "mondrian"], **words)
    (own,) = [line for line in repr(found).splitlines() if line.startswith("publish under")]
    assert own.endswith("; the tcloseness compared here has aim=means, scale=deviation instead")
    assert all(row.holds for row in found.rows if row.label == found.recommendation.method)


def test_the_policys_own_method_keeps_the_policys_parameters(sample_table, sample_policy):
    policy = sample_policy | {"method": {"name": "mondrian", "cut": "nearest"}}
    found = compare(
        sample_table, policy, ["mondrian", "mondrian-relaxed", "mondrian:trees=children"], [10]
    )
    assert set(found.methods) == {
        "mondrian:cut=nearest",
        "mondrian-relaxed",
        "mondrian:cut=nearest:trees=children",
    }


def test_stages_are_named(sample_table, sample_policy):
    stages: list[str] = []
    compare(sample_table, sample_policy, ["mondrian"], [5, 10], progress=stages.append)
    assert stages[-2:] == ["k=5 mondrian", "k=10 mondrian"]


def figures(comparison) -> list[dict]:
    return [{k: v for k, v in row.as_dict().items() if k != "seconds"} for row in comparison.rows]


def sample_with_weights(*promises):
    content = yaml.safe_load(survey.POLICY)
    return survey.generate(200, 7), content | {"promises": [*content["promises"], *promises]}


def test_under_a_bound_of_the_risk_of_a_sample_methods_are_compared_without_any_k():
    found = compare(*sample_with_weights(), ["risk", "suppress-cells"])
    assert found.ks == (1,)
    assert [row.holds for row in found.rows] == [True, True]
    for row in found.rows:
        published = front_door.publish(*sample_with_weights(), method=row.method)
        assert row.certificate["promises"] == published.certificate["promises"]
        assert row.loss == published.certificate["utility"]["gcp"]
    assert str(found.recommendation).startswith("take risk: of 2 methods")


def test_what_was_measured_stands_under_its_promise_though_one_k_asks_for_less():
    found = compare(*sample_with_weights(), ["risk"], [1, 3])
    shown = {one.title: [one.text(row) for row in found.rows] for one in columns(found)}
    for title in ("global-risk", "individual-risk"):
        assert shown[title] == [f"{measured:.4g}" for measured in found.to_frame()[title]]
    assert shown["k-anonymity"] == ["-", "3"]


def test_the_command_that_is_recommended_without_a_k_is_one_that_publishes(folder, shoal):
    shoal(*"sample survey -n 200 --seed 7 -o survey.csv".split())
    shoal(*"compare survey.csv -p survey.policy.yaml --methods risk --report page.html".split())
    command = re.search(r"<pre>shoal (publish .*)</pre>", Path("page.html").read_text())[1]
    names = {"INPUT": "survey.csv", "POLICY": "survey.policy.yaml", "OUTPUT": "released.csv"}
    done = shoal(*(names.get(word, word) for word in command.split()))
    assert (done.status, Path("released.csv").exists()) == (0, True)


def test_a_k_is_compared_with_none_only_where_a_bound_hides_people(shoal):
    assert compare(*sample_with_weights(), ["risk"], [1, 3]).ks == (1, 3)
    with pytest.raises(InputError, match=r"ks: 1 is not a .*; 1, no k, is for a policy that"):
        compare(*sample_with_weights({"model": "k-anonymity", "k": 3}), ["risk"], [1, 3])
    help_text = " ".join(shoal("compare", "--help").out.replace("│", " ").split())
    assert NO_K.partition(", ")[2] in help_text


# What can't be, and what is broken


def test_a_k_that_no_release_reaches_is_a_row_with_its_reason(sample_table, sample_policy):
    found = compare(sample_table, sample_policy, ["mondrian", "top-down-greedy"], [10, 601])
    assert [row.holds for row in found.rows] == [True, True, None, None]
    assert "the nearest that holds is k = " in found.rows[2].reason
    assert set(found.rows[2].as_dict()) == set(found.rows[0].as_dict())
    assert "no release at k=601, every method: promise 'k-anonymity'" in as_text(found)
    assert found.ranked(601) == []


def test_a_method_that_refuses_does_not_stop_the_others(sample_table, sample_policy, monkeypatch):
    def refuse(*_):
        raise InfeasibleError("this one can't", ["and says why"])

    monkeypatch.setattr(registry.methods()["mondrian-relaxed"].implementation, "partition", refuse)
    found = compare(sample_table, sample_policy, ["mondrian", "mondrian-relaxed"], [10])
    assert [row.reason for row in found.rows] == [None, "this one can't; and says why"]
    assert "no release at k=10, mondrian-relaxed: this one can't" in as_text(found)


@pytest.fixture
def broken(sample_table, sample_policy, monkeypatch):
    """A comparison of a release that the repair left as a bad method made it."""
    from shoal.data.partition import Partition
    from shoal.recoding import recode as job

    pairs = Partition.of((np.arange(600) // 2).astype(np.int32))
    monkeypatch.setattr(job, "repair", lambda *_: pairs)
    return compare(sample_table, sample_policy, ["mondrian"], [10])


def test_a_broken_promise_is_shown_and_not_ranked(broken):
    (row,) = broken.rows
    assert row.holds is False
    assert broken.ranked(10) == []
    assert any(
        fault.startswith("k=10, mondrian: k-anonymity does not hold: asked 10, measured")
        for fault in faults(broken)
    )
    assert "BROKEN" in as_text(broken)
    page = Page(render(broken))
    assert "1 of 1 releases break a promise" in page.text
    assert "no release" in page.text  # nothing to rank


# What is asked


@pytest.mark.parametrize(
    ("methods", "stated"),
    [
        ([], "must be a list of methods"),
        ("mondrian", "must be a list of methods"),
        (["mondrain"], "did you mean 'mondrian'"),
        (["mondrian:cut"], "'cut' is not PARAM=VALUE"),
        (["mondrian:=nearest"], "is not PARAM=VALUE"),
        (["mondrian:cut=median:cut=nearest"], "sets a parameter twice"),
        (["mondrian:cut=sideways"], "parameter 'cut' must be one of"),
        (["mondrian:cute=nearest"], "unknown parameter 'cute'; did you mean 'cut'"),
        (["mondrian", "mondrian:cut=median"], "'mondrian:cut=median' is asked for twice"),
        (["mondrian", {"name": "mondrian"}], "'mondrian' is asked for twice"),
        (["mondrian", 5], "its name and parameters as a dict, or a method of your own"),
    ],
)
def test_methods_that_are_none(sample_table, sample_policy, methods, stated):
    with pytest.raises(InputError, match=re.escape(stated)):
        compare(sample_table, sample_policy, methods, [5])


@pytest.mark.parametrize(
    ("ks", "stated"),
    [
        ([], "the list is empty"),
        ([1], "1 is not a whole number of 2 or more"),
        ([2.5], "2.5 is not a whole number"),
        ("50", "ks: '50' is not a whole number"),
        ([True], "not a whole number"),
        ([5, 10, 5], "5 is asked for twice"),
    ],
)
def test_ks_that_are_none(sample_table, sample_policy, ks, stated):
    with pytest.raises(InputError, match=re.escape(stated)):
        compare(sample_table, sample_policy, ["mondrian"], ks)


def test_everything_that_is_wrong_with_a_list_is_reported_at_once(sample_table, sample_policy):
    with pytest.raises(InputError) as stated:
        compare(sample_table, sample_policy, ["mondrain", "mondrian:cut=x"], [5])
    assert len(stated.value.findings) == 1
    with pytest.raises(InputError) as stated:
        compare(sample_table, sample_policy, ["mondrian"], [1, 5, 5, 0])
    assert len(stated.value.findings) == 2


# The command


COMMAND = (
    *"compare patients.csv -p policy.yaml".split(),
    *"--methods mondrian,mondrian:cut=nearest --ks 5,20".split(),
)


def test_the_table_has_a_line_per_method_and_k_in_aligned_columns(workplace, shoal):
    done = shoal(*COMMAND, "-q", status=0)
    head, *lines = done.out.split("\n\n")[0].splitlines()
    assert [line.split()[1] for line in lines] == ["5", "5", "20", "20"]
    assert {line.split()[0] for line in lines[:2]} == set(COMMAND[5].split(","))
    losses = [float(line.split()[2].rstrip("%")) for line in lines]
    assert losses[0] <= losses[1]
    assert losses[2] <= losses[3]
    assert head.startswith("method ")
    assert "k-anonymity" in head
    assert "l-diversity(disease)" in head
    ends = [m.end() for m in re.finditer(r"\S+(?: \S+)*", head)][1:]
    for line in lines:
        assert {m.end() for m in re.finditer(r"\S+", line)} >= set(ends)
    assert "least loss (gcp) k=5: mondrian" in done.out
    assert done.err == ""
    assert sorted(path.name for path in workplace.iterdir()) == ["patients.csv", "policy.yaml"]


def test_json_on_the_screen_and_in_a_file_are_the_same_comparison(workplace, shoal):
    done = shoal(*COMMAND, "--json", "-o", "rows.json", "--seed", "11")
    assert done.out == (workplace / "rows.json").read_text()
    assert json.loads(shoal(*COMMAND, "-o", "-").out)["rows"]
    found = json.loads(done.out)
    assert found["schema"] == "shoal.comparison/1"
    assert found["seed"] == 11
    assert [row["k"] for row in found["rows"]] == [5, 5, 20, 20]
    assert found["recommendation"]["method"] == found["rows"][0]["label"]
    for row in found["rows"]:
        assert {*registry.metrics(), "classes", "max_class", "marketer"} <= set(row)
        assert [p["asked"] for p in row["promises"]] == [row["k"], 3]
        assert row["seconds"] >= 0


@pytest.mark.parametrize(
    ("options", "stated"),
    [
        (("--set", "cut=nearest"), "write --methods mondrian:cut=nearest"),
        (("--ks", "5,x"), "--ks 'x': is not a whole number"),
        (("--ks", ""), "is not a whole number"),
        (("--ks", "9" * 5000), "is not a whole number"),
        (("--methods", ""), "is unknown; choose one of"),
        (("-o", "nowhere/rows.json"), "can't be written"),
        (("-o", "patients.csv", "--replace"), "is also another file"),
        (("-o", "same.html", "--report", "same.html"), "is also another file"),
    ],
)
def test_what_can_not_be_asked_ends_with_2_and_leaves_nothing(workplace, shoal, options, stated):
    assert stated in shoal(*COMMAND, *options, status=2).err
    assert sorted(path.name for path in workplace.iterdir()) == ["patients.csv", "policy.yaml"]


def test_some_k_out_of_reach_ends_with_0_all_of_them_with_3(workplace, shoal):
    assert shoal(*COMMAND, "--ks", "5,5000").status == 0
    done = shoal(*COMMAND, "--ks", "5000", "--report", "report.html", status=3)
    assert "no release at k=5000" in done.out
    assert "the nearest that holds is k = " in done.out
    assert done.err == "shoal: no method reaches any of these k\n"  # nothing is said twice
    done = shoal(*COMMAND, "--ks", "5000", "--json")
    assert "the nearest that holds is k = " in done.err
    assert "No method reaches any of these k" in Page((workplace / "report.html").read_text()).text


def test_a_broken_promise_ends_with_1_after_the_table_is_shown(
    workplace, shoal, monkeypatch, broken
):
    monkeypatch.setattr("shoal.advise.compare.compare", lambda *_, **__: broken)
    assert "BROKEN k=10, mondrian: k-anonymity does not hold" in shoal(*COMMAND, status=1).out


def test_ctrl_c_ends_with_130_and_leaves_nothing(workplace, shoal, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("shoal.advise.compare._row", interrupted)
    shoal(*COMMAND, "-o", "rows.json", "--report", "report.html", status=130)
    assert sorted(path.name for path in workplace.iterdir()) == ["patients.csv", "policy.yaml"]


# The page


@pytest.fixture
def page(compared) -> str:
    return render(compared)


def test_the_page_needs_nothing_but_itself(page):
    assert_needs_nothing_else(page)


def test_the_page_has_the_table_and_a_described_chart_of_loss_crowd_risk_and_time(page, compared):
    text = Page(page).text
    for row in compared.rows:
        for column in [*columns(compared), *more_columns(compared)]:
            assert column.text(row) in text
    charts = re.findall(r"<svg [^>]*>.*?</svg>", page, re.DOTALL)
    assert len(charts) == 4
    for chart in charts:
        assert 'role="img"' in chart
        assert all(method in chart for method in compared.methods)


def test_the_page_is_the_same_for_the_same_measures(page, compared):
    assert render(compared) == page


def test_the_command_on_the_page_asks_for_the_same_comparison(workplace, shoal):
    shoal(*COMMAND, "--report", "report.html", "--seed", "5")
    text = Page((workplace / "report.html").read_text()).text
    command = re.search(r"shoal compare INPUT -p POLICY --methods (\S+) --ks 5,20 --seed 5", text)
    assert set(command[1].split(",")) == set(COMMAND[5].split(","))


def test_the_page_says_what_to_take_and_how_to_publish_it(workplace, shoal):
    shoal(*COMMAND, "--report", "report.html")
    text = Page((workplace / "report.html").read_text()).text
    chosen = shoal(*COMMAND, "-q").out.split("take ")[1].split(" at k")[0]
    name, *settings = chosen.split(":")
    given = "".join(f" --set {setting}" for setting in settings)
    assert f"shoal publish INPUT -p POLICY -o OUTPUT --k 5 --method {name}{given} --seed" in text


def test_one_k_and_ks_side_by_side_are_drawn(sample_table, sample_policy):
    for ks in ([7], [50, 51, 52]):
        assert render(compare(sample_table, sample_policy, ["mondrian"], ks)).count("<svg") == 4


def test_no_two_of_at_most_seven_curves_share_a_colour_or_a_marker():
    assert len({*COLOURS}) == len({*MARKERS}) == 7


def test_more_methods_than_curves_are_named_and_stand_in_the_table(compared):
    row = compared.rows[0]
    many = tuple(replace(row, settings={"number": i}) for i in range(9))
    page = render(replace(compared, rows=many))
    text = Page(page).text
    assert "Drawn are the 7 methods that lose least" in text
    assert all(each.label in text for each in many)
    chart = re.search(r"<svg [^>]*>.*?</svg>", page, re.DOTALL)[0]
    assert "number=6" in chart
    assert "number=7" not in chart


def test_neither_page_nor_rows_hold_a_value_of_the_data(folder, shoal):
    rng = np.random.default_rng(0)
    table = pl.DataFrame(
        {
            "who": [f"person-{i}-x" for i in range(80)],
            "age": rng.integers(7_000_000, 7_900_000, 80),
            "town": rng.choice(["Xanthippe", "Yggdrasil", "Zzyzx"], 80),
            "ill": rng.choice(["qwert-flu", "qwert-cold"], 80),
        }
    )
    table.write_csv("people.csv")
    age = {"role": "quasi", "type": "number"}
    roles = {"who": "subject", "age": age, "town": "quasi", "ill": "sensitive"}
    content = content_of(roles, 5, {"model": "l-diversity", "attribute": "ill", "l": 2})
    (folder / "policy.json").write_text(json.dumps(content))
    command = "compare people.csv -p policy.json --methods mondrian --ks 5,999"
    done = shoal(*command.split(), "--report", "r.html", "-o", "r.json", status=0)
    written = [(folder / name).read_text() for name in ("r.html", "r.json")]
    for text in (done.out, done.err, *written):
        for name in table.columns:
            assert not any(str(value) in text for value in table[name].unique())


def test_attacks_stand_beside_the_loss_where_they_are_asked_for(sample_table, sample_policy):
    found = compare(sample_table, sample_policy, ["mondrian"], [10], attack=True)
    (row,) = found.rows
    alone = front_door.publish(
        sample_table,
        Policy.from_dict(sample_policy).with_k(10).with_method("mondrian"),
        attack=["inference", "linkability", "singling-out"],
    ).certificate["attacks"]
    gains = [one["gain"]["share"] for one in alone["inference"].values()]
    assert row.score("inference_gain") == max(gains)
    assert row.score("linkage") == alone["linkability"]["success"]["share"]
    (gain,) = (column.text(row) for column in columns(found) if column.title == "gain")
    gained = max((one["gain"] for one in alone["inference"].values()), key=lambda g: g["share"])
    assert gain == interval_text(gained)
    assert " to " in gain
    plain = compare(sample_table, sample_policy, ["mondrian"], [10])
    assert plain.rows[0].score("inference_gain") is None
    assert "gain" not in [column.title for column in columns(plain)]


def test_a_method_that_does_not_suit_the_policy_is_a_row_with_its_reason():
    people = front_door.sample("patients", n=60, seed=7)
    words = {"quasi": ["age", "sex"], "sensitive": "disease", "other": "drop", "k": 5}
    rows = compare(people, methods=["anatomy", "mondrian"], **words).to_frame()
    reasons = dict(zip(rows["label"], rows["reason"], strict=True))
    assert "shows quasi-identifiers as they are" in reasons["anatomy"]
    assert reasons["mondrian"] is None
    with pytest.raises(InputError, match="is unknown"):
        compare(people, methods=["anatomie", "mondrian"], **words)
