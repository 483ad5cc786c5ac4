"""Anatomy: two tables that fit each other, nothing promised that they don't keep."""

from __future__ import annotations

import csv
import hashlib
import itertools
import json
from collections import Counter, defaultdict
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import adult_cases
import shoal
from shoal.auditor.measure import People, group_query_error
from shoal.cli.main import status_of
from shoal.connectors import files
from shoal.data.classes import SensitiveColumn
from shoal.data.matrix import Matrix
from shoal.data.two_tables import sensitive_path
from shoal.privacy.two_tables import joined
from shoal.tables.kernels.buckets import largest_buckets, nearest_of_buckets
from shoal.tables.methods.anatomy import Anatomy
from shoal.tables.publish import publish_file

POLICY = {
    "version": 1,
    "attributes": {
        "age": {"role": "quasi", "type": "number", "domain": [0, 100]},
        "zip": {"role": "quasi"},
        "disease": {"role": "sensitive"},
        "who": {"role": "subject"},
    },
    "promises": [{"model": "alpha-k-anonymity", "attribute": "disease", "alpha": 0.5, "k": 2}],
    "method": {"name": "anatomy", "l": 2},
}
EXAMPLE = pl.DataFrame(
    {
        "who": list("abcdefg"),
        "age": [21, 22, 33, 34, 45, 46, 57],
        "zip": list("ppqqrrs"),
        "disease": list("aaabbcd"),
    }
)


@pytest.fixture(scope="module")
def published():
    with pytest.warns(shoal.ReleaseWarning):
        return shoal.publish(EXAMPLE, POLICY)


def policy(**changes) -> dict:
    return POLICY | changes


def attributes(**changes) -> dict:
    return POLICY | {"attributes": POLICY["attributes"] | changes}


# The steps


def test_the_worked_example_takes_the_largest_buckets():
    # a a a b b c d, l = 2: ab, ab, ac, and d joins any
    assert largest_buckets(np.array([3, 2, 1, 1]), 2).tolist() == [[0, 1], [0, 1], [0, 2]]


def test_buckets_are_those_that_a_plain_loop_takes():
    for seed in range(50):
        rng = np.random.default_rng(seed)
        counts, l = rng.integers(0, 9, 6), int(rng.integers(2, 5))
        left, plain = counts.copy(), []
        while (left > 0).sum() >= l:
            row = sorted(range(6), key=lambda v: (-left[v], v))[:l]
            left[row] -= 1
            plain.append(row)
        assert largest_buckets(counts.astype(np.int64), l).tolist() == plain


def test_near_takes_the_nearest_record_of_the_other_buckets():
    chosen, starts = np.array([[0, 1], [0, 1]]), np.array([0, 2, 4])
    points = np.array([[0.0], [10.0], [11.0], [1.0]])
    taken = nearest_of_buckets(chosen, np.arange(4), starts, points)
    assert taken.tolist() == [[1, 2], [0, 3]]


def test_a_record_that_is_left_joins_any_group_without_its_value():
    codes = np.array([0, 0, 0, 1, 1, 2, 3], dtype=np.int32)
    matrix = Matrix.from_columns(np.zeros((7, 1)), [1.0])
    sizes = set()
    for seed in range(30):
        found = Anatomy(l=2).bucketize(
            matrix, SensitiveColumn("x", codes, 4), None, np.random.default_rng(seed)
        )
        group = found.labels[6]
        assert codes[found.labels == group].tolist().count(3) == 1
        sizes.add(tuple(sorted(codes[(found.labels == group)].tolist())))
    assert sizes == {(0, 1, 3), (0, 2, 3)}


def test_several_texts_for_no_value_are_one_bucket():
    frame = pl.DataFrame({"age": range(6), "disease": ["", "?", "a", "a", "b", "b"]})
    content = policy(missing_values=["", "?"])
    content["attributes"] = {n: POLICY["attributes"][n] for n in ("age", "disease")}
    found = shoal.publish(frame, content)
    groups = found.sensitive.group_by("group").agg("disease")["disease"].to_list()
    assert all(len({"" if v == "?" else v for v in values}) == 2 for values in groups)


# What is published


def test_quasi_identifiers_are_as_they_were_and_values_counted_by_group(published):
    assert published.data.columns == ["age", "zip", "group"]
    assert published.sensitive.columns == ["group", "disease", "count"]
    assert sorted(published.data["age"]) == sorted(EXAMPLE["age"])
    own = dict(zip(EXAMPLE["age"], EXAMPLE["disease"], strict=True))
    truth = Counter((g, own[age]) for age, _, g in published.data.iter_rows())
    assert truth == {(g, v): n for g, v, n in published.sensitive.iter_rows()}


def test_the_certificate_says_what_is_disclosed(published):
    certificate = published.certificate
    assert certificate.holds
    assert certificate["presence"] == "disclosed"
    assert certificate["groups"] == {"count": 3, "min": 2, "mean": 7 / 3, "max": 3}
    assert certificate["utility"]["gcp"] == 0
    assert certificate["risk"]["prosecutor_max"] == 1  # k over cells is 1
    assert certificate["together"]["alone"] == 7
    assert certificate["faults"] == {"uncovered": 0, "changed": 0}
    assert [w.code for w in certificate.warnings] == ["presence-disclosed"]
    assert [c["technique"] for c in certificate["columns"]] == ["as-is"] * 3 + ["removed"]


def test_row_order_and_group_numbers_follow_from_the_whole_table_and_the_seed():
    first = shoal.publish(EXAMPLE, POLICY)
    again = shoal.publish(EXAMPLE.reverse(), POLICY)
    assert first.data.equals(again.data)
    assert first.sensitive.equals(again.sensitive)
    # a column that is removed changes the draws: nobody without the table can repeat them
    other = EXAMPLE.with_columns(pl.col("who") + "!")
    frames = [shoal.publish(f, policy(seed=s)).data for f in (EXAMPLE, other) for s in range(4)]
    assert len({frame.write_csv() for frame in frames}) > 4


@settings(deadline=None)
@given(data=st.data())
def test_whatever_is_published_is_right_by_a_checker_of_the_standard_library(data):
    l = data.draw(st.integers(2, 3))
    n = data.draw(st.integers(2, 24))
    ages = data.draw(st.lists(st.integers(0, 5), min_size=n, max_size=n))
    values = data.draw(st.lists(st.sampled_from("abcde"), min_size=n, max_size=n))
    frame = pl.DataFrame({"age": ages, "disease": values})
    content = POLICY | {
        "attributes": {name: POLICY["attributes"][name] for name in ("age", "disease")},
        "promises": [{"model": "l-diversity", "attribute": "disease", "l": l}],
        "method": {"name": "anatomy", "l": l, "near": data.draw(st.booleans())},
    }
    try:
        found = shoal.publish(frame, content)
    except shoal.InfeasibleError:
        assert max(Counter(values).values()) * l > n or n < l
        return
    listed = defaultdict(Counter)
    for group, value, count in csv.reader(found.sensitive.write_csv().splitlines()[1:]):
        listed[group][value] += int(count)
    rows = [*csv.reader(found.data.write_csv().splitlines()[1:])]
    sizes = Counter(group for _, group in rows)
    assert sizes == {group: sum(counts.values()) for group, counts in listed.items()}
    assert all(max(c.values()) * l <= sizes[g] for g, c in listed.items())
    assert sum((c for c in listed.values()), Counter()) == Counter(values)
    assert Counter(int(age) for age, _ in rows) == Counter(ages)
    audited = shoal.audit((found.data, found.sensitive), content, frame)
    assert audited.holds
    assert audited["faults"]["changed"] == 0


def test_any_way_to_deal_values_to_rows_is_as_likely_so_each_has_chance_one_in_l(published):
    listed = defaultdict(list)
    for group, value, count in published.sensitive.iter_rows():
        listed[group] += [value] * count
    for values in listed.values():
        ways = [*itertools.permutations(values)]
        for place in range(len(values)):
            most = max(Counter(way[place] for way in ways).values())
            assert Fraction(most, len(ways)) <= Fraction(1, 2)


# Audits


def test_promises_are_measured_by_group_not_by_cells(published):
    asked = policy(
        promises=[
            {"model": "l-diversity", "attribute": "disease", "l": 2},
            {"model": "t-closeness", "attributes": ["disease"], "t": 0.6},
        ]
    )
    certificate = shoal.audit((published.data, published.sensitive), asked)
    first, second = certificate["promises"]
    assert first["measured"] == 2
    # the table: a 3, b 2, c 1, d 1 of 7; by hand for every group
    table = {"a": 3, "b": 2, "c": 1, "d": 1}
    by_group = defaultdict(dict)
    for group, value, count in published.sensitive.iter_rows():
        by_group[group][value] = count
    distances = [
        sum(abs(Fraction(c.get(v, 0), sum(c.values())) - Fraction(m, 7)) for v, m in table.items())
        / 2
        for c in by_group.values()
    ]
    assert second["measured"] == pytest.approx(float(max(distances)))


def test_another_value_in_a_group_is_found_with_the_original(published):
    wrong = published.sensitive.with_columns(
        pl.when(pl.col("disease") == "d").then(pl.lit("e")).otherwise("disease").alias("disease")
    )
    certificate = shoal.audit((published.data, wrong), POLICY, EXAMPLE)
    assert certificate["faults"]["changed"] == 1
    assert not certificate.holds


def test_values_swapped_between_groups_are_found_with_the_original(published):
    swapped = published.sensitive["disease"].replace({"c": "d", "d": "c"})
    assert len({g for g, v, _ in published.sensitive.iter_rows() if v in "cd"}) == 2
    wrong = published.sensitive.with_columns(swapped)
    assert shoal.audit((published.data, wrong), POLICY, EXAMPLE)["faults"]["changed"] == 2


def test_rows_that_the_original_lacks_are_found(published):
    wrong = published.data.with_columns(pl.col("age") + (pl.col("age") == 21).cast(pl.Int64))
    certificate = shoal.audit((wrong, published.sensitive), POLICY, EXAMPLE)
    assert certificate["faults"]["changed"] >= 1


@pytest.mark.parametrize(
    ("quasi", "sensitive", "message"),
    [
        ({"group": [1, 1]}, {"group": [1, 2], "v": ["a", "b"], "count": [1, 1]}, "one of them"),
        ({"group": [1, 1]}, {"group": [1, 1], "v": ["a", "b"], "count": [1, 2]}, "do not add up"),
        ({"group": [1, 1]}, {"group": [1, 1], "v": ["a", "a"], "count": [1, 1]}, "a second time"),
        (
            {"group": [0, 1]},
            {"group": [1, 1], "v": ["a", "b"], "count": [1, 1]},
            "not whole numbers",
        ),
        ({"group": [1, 1]}, {"group": [1, 1], "v": ["a", "b"], "count": [1, -1]}, "not whole numb"),
        # one group to who counts, two to who joins the tables by their text
        (
            {"group": ["1", "01"]},
            {"group": ["1", "01"], "v": ["a", "b"], "count": ["1", "1"]},
            "not whole numbers",
        ),
        (
            {"group": ["1", "1 "]},
            {"group": ["1", "1 "], "v": ["a", "b"], "count": ["1", "1"]},
            "not whole numbers",
        ),
        ({"group": [1]}, {"group": [1], "w": ["a"], "count": [1]}, "the second must have"),
        ({"gruppe": [1]}, {"group": [1], "v": ["a"], "count": [1]}, "the first must have"),
    ],
)
def test_tables_that_do_not_fit_each_other_are_refused(quasi, sensitive, message):
    with pytest.raises(shoal.InputError, match=message):
        joined(pl.DataFrame(quasi), pl.DataFrame(sensitive), "v")


def test_one_table_where_two_are_published_is_refused_and_the_other_way_round(published):
    with pytest.raises(shoal.InputError, match="give both as a pair"):
        shoal.audit(published.data, POLICY)
    k = policy(promises=[{"model": "k-anonymity", "k": 2}], method={"name": "mondrian"})
    with pytest.raises(shoal.InputError, match="publishes one"):
        shoal.audit((published.data, published.sensitive), k)


def test_query_error_by_hand():
    # one group of two rows at 0 and 1 with values 0 and 1
    people = People([np.array([0.0, 1.0])], np.array([0, 1]))
    labels = np.zeros(2, dtype=np.int32)
    # three values are asked where there are only two: then nothing is unknown
    assert group_query_error(people, labels, people, 0) == 0
    apart = People([np.array([0.0, 1.0])], np.array([0, 9]))
    # a range with one row and one of the two values: estimate 1/2, truth 0 or 1
    found = group_query_error(apart, labels, apart, 0)
    assert 0 < found <= 0.5


# Files


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    EXAMPLE.write_csv("in.csv")
    Path("p.json").write_text(json.dumps(POLICY))
    return tmp_path


@pytest.mark.parametrize("name", ["r.csv", "r.csv.gz", "r.parquet", "r.tsv", "r.jsonl"])
def test_both_files_are_written_audited_and_verified(folder, name, capsys):
    assert status_of(["publish", "in.csv", "-p", "p.json", "-o", name]) == 0
    assert Path(sensitive_path(name)).is_file()
    assert "two tables, 3 groups" in capsys.readouterr().err
    certificate = json.loads(Path(f"{name}.certificate.json").read_text())
    assert set(certificate["output"]["sensitive"]) == {"sha256", "bytes"}
    assert status_of(["verify", name]) == 0
    assert status_of(["verify", name, "-p", "p.json", "--original", "in.csv"]) == 0
    assert status_of(["audit", name, "-p", "p.json", "--original", "in.csv"]) == 0


def test_a_policy_that_does_not_name_the_method_is_pointed_to_it(folder, capsys):
    named = POLICY.get("method")
    Path("q.json").write_text(json.dumps({k: v for k, v in POLICY.items() if k != "method"}))
    command = ["publish", "in.csv", "-p", "q.json", "-o", "r.csv", "-q"]
    assert status_of([*command, "--method", "anatomy", *(["--set", f"l={named['l']}"])]) == 0
    capsys.readouterr()
    assert status_of(["audit", "r.csv", "-p", "q.json"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "'method: {name: anatomy}'" in line


def test_a_changed_second_table_fails_verification(folder, capsys):
    assert status_of(["publish", "in.csv", "-p", "p.json", "-o", "r.csv", "-q"]) == 0
    second = Path("r.sensitive.csv")
    second.write_text(second.read_text().replace(",d,", ",e,"))
    assert status_of(["verify", "r.csv"]) == 1
    assert "the table of sensitive values beside it is" in capsys.readouterr().out
    second.unlink()
    assert status_of(["verify", "r.csv", "-p", "p.json"]) == 1
    assert status_of(["audit", "r.csv", "-p", "p.json"]) == 2
    assert "keep both in one folder" in capsys.readouterr().err


def test_a_certificate_that_states_other_groups_fails_verification(folder):
    assert status_of(["publish", "in.csv", "-p", "p.json", "-o", "r.csv", "-q"]) == 0
    path = Path("r.csv.certificate.json")
    stated = json.loads(path.read_text())
    for forged in (stated | {"groups": stated["groups"] | {"max": 9}}, _without(stated)):
        path.write_text(json.dumps(forged))
        assert status_of(["verify", "r.csv", "-p", "p.json", "-q"]) == 1


def test_a_forged_certificate_of_groups_that_tell_a_value_fails_verification(folder, capsys):
    """Every value is whose it was, but the first group has one alone."""
    assert status_of(["publish", "in.csv", "-p", "p.json", "-o", "r.csv", "-q"]) == 0
    groups = pl.Series("group", [1, 1, 2, 2, 3, 3, 3])
    first = EXAMPLE.select("age", "zip", groups)
    second = EXAMPLE.select(groups, "disease").group_by("group", "disease").len("count").sort("*")
    path, hashed = Path("r.csv.certificate.json"), {}
    for name, frame in (("r.csv", first), ("r.sensitive.csv", second)):
        frame.write_csv(name)
        content = Path(name).read_bytes()
        hashed[name] = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    stated = json.loads(path.read_text())
    output = stated["output"] | hashed["r.csv"] | {"sensitive": hashed["r.sensitive.csv"]}
    path.write_text(json.dumps(stated | {"output": output}))
    assert status_of(["verify", "r.csv", "-p", "p.json"]) == 1
    told = capsys.readouterr().out
    assert [line.split(":")[0] for line in told.splitlines() if line.startswith("FAIL")] == [
        "FAIL measured again"
    ]
    assert "an audit finds something else: alpha-k-anonymity" in told


def _without(stated: dict) -> dict:
    return {key: value for key, value in stated.items() if key not in ("presence", "groups")}


def test_neither_file_is_left_where_the_release_is_withheld(folder):
    strict = policy(
        promises=[*POLICY["promises"], {"model": "t-closeness", "attributes": ["disease"], "t": 0}]
    )
    Path("p.json").write_text(json.dumps(strict))
    # united until t-closeness holds: one group of all
    assert status_of(["publish", "in.csv", "-p", "p.json", "-o", "r.csv", "-q"]) == 0
    assert Path("r.csv").read_text().count(",1\n") == 7
    for name in ("r.csv", "r.sensitive.csv", "r.csv.certificate.json"):
        Path(name).unlink()
    frequent = EXAMPLE.with_columns(pl.Series("disease", list("aaaaabc")))
    frequent.write_csv("in.csv")
    again = ["publish", "in.csv", "-p", "p.json", "-o", "r.csv", "-q", "--replace"]
    assert status_of(again) == 3
    assert not [*Path().glob("r*")]


def test_both_or_neither_where_the_first_can_not_be_put_in_its_place(folder, monkeypatch):
    real = files._take_place

    def refuse(draft, target, *more):
        if target.name == "r.csv":
            raise OSError("no space")
        real(draft, target, *more)

    monkeypatch.setattr(files, "_take_place", refuse)
    with pytest.raises((OSError, shoal.InputError)):
        publish_file("in.csv", shoal.Policy.from_dict(POLICY), "r.csv")
    assert not [*Path().glob("r*")]


def test_nothing_that_is_read_is_overwritten_by_the_second_table(folder, capsys):
    Path("in.csv").rename("r.sensitive.csv")
    assert status_of(["publish", "r.sensitive.csv", "-p", "p.json", "-o", "r.csv", "-q"]) == 2
    assert status_of(["publish", "r.sensitive.csv", "-p", "p.json", "-o", "-", "-q"]) == 2
    assert "two tables can't share standard output" in capsys.readouterr().err


def test_second_paths():
    assert sensitive_path("a/r.csv") == "a/r.sensitive.csv"
    assert sensitive_path("r.CSV.gz") == "r.sensitive.CSV.gz"


# What it can't do


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (policy(promises=[{"model": "k-anonymity", "k": 2}]), "nobody is one of k who look alike"),
        (policy(method={"name": "anatomy", "l": 3}), None),
        (
            policy(
                promises=[
                    {"model": "alpha-k-anonymity", "attribute": "disease", "alpha": 0.4, "k": 2}
                ]
            ),
            "alpha is below 1 / l",
        ),
        (
            policy(
                promises=[
                    {"model": "alpha-k-anonymity", "attribute": "disease", "alpha": 0.5, "k": 3}
                ]
            ),
            "k is above l",
        ),
        (
            policy(promises=[{"model": "l-diversity", "attribute": "disease", "l": 3}]),
            "asks more than l = 2",
        ),
        (
            policy(
                promises=[
                    {"model": "l-diversity", "attribute": "disease", "l": 2, "kind": "entropy"}
                ]
            ),
            "of this kind",
        ),
        (
            policy(promises=[{"model": "t-closeness", "attributes": ["disease"], "t": 0.5}]),
            "promise alpha-k-anonymity",
        ),
        (attributes(more={"role": "sensitive"}), "hides one sensitive attribute"),
        (attributes(more={"role": "plain"}), "is plain"),
        (attributes(group={"role": "quasi"}), "a column of its own"),
        (attributes(age={"role": "quasi", "type": "number", "render": "mean"}), "'render'"),
        (attributes(age={"role": "quasi", "type": "number", "round": 5}), "'round'"),
        (policy(missing="suppress"), "leave out 'missing'"),
        (policy(label="zip"), "leave out 'label'"),
        (policy(other="plain"), "other: drop"),
        (policy(accept={"alone": 0.1}), "leave out 'accept'"),
        (policy(render={"order": "input"}), "order of rows"),
        (policy(write={"numbers": ["lo"]}), "write: numbers"),
    ],
)
def test_what_it_can_not_do_is_refused_with_the_reason(content, message):
    if message is None:
        assert shoal.Policy.from_dict(content).is_in_two_tables
        return
    with pytest.raises(shoal.InputError, match=message):
        shoal.Policy.from_dict(content)


def test_people_with_several_records_are_refused():
    with pytest.raises(shoal.InputError, match="1 people have several records"):
        shoal.publish(EXAMPLE.with_columns(pl.Series("who", list("aacdefg"))), POLICY)


def test_an_original_in_which_people_have_several_records_is_refused(published):
    original = EXAMPLE.with_columns(pl.Series("who", list("aacdefg")))
    with pytest.raises(shoal.InputError, match="1 people have several records"):
        shoal.audit((published.data, published.sensitive), POLICY, original)


def test_a_record_at_fault_is_reported_by_its_row_in_the_input():
    wrong = EXAMPLE.with_columns(pl.Series("who", ["a", "b", "c", "d", "e", "f", ""]))
    with pytest.raises(shoal.InputError, match=r"without a subject \(row 7\)"):
        shoal.publish(wrong, POLICY)


def test_jobs_about_boxes_refuse_two_tables(published):
    pair = (published.data, published.sensitive)
    for asked in (
        lambda: shoal.compare(EXAMPLE, POLICY),
        lambda: shoal.publish(EXAMPLE, POLICY, attack=["linkability"]),
        lambda: shoal.attack(published.data, POLICY, EXAMPLE),
        lambda: shoal.audit(pair, POLICY, EXAMPLE, downstream=True),
        lambda: shoal.audit(pair, POLICY, EXAMPLE, others=[{"release": 1, "original": 1}]),
    ):
        with pytest.raises(shoal.InputError, match="publishes two"):
            asked()
    with pytest.raises(shoal.InputError, match="--explain"):
        shoal.publish(EXAMPLE, POLICY, explain=True)


def test_the_page_says_what_is_disclosed(published, tmp_path):
    published.report(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "Who is in the table, and whose row it is" in page
    assert "in a second table, counted by group" in page


@pytest.mark.long
def test_adult_comes_out_as_the_prototype_measured(adult):
    """Reconstruction error n - groups, and the error of counts within 10 % of what was measured."""
    content = {
        "version": 1,
        "other": "drop",
        "attributes": adult_cases.declared(),
        "promises": [{"model": "l-diversity", "attribute": "occupation", "l": 4}],
        "method": {"name": "anatomy", "l": 4},
        "seed": 2,
    }
    certificate = shoal.publish(adult, content).certificate
    assert 30_162 - certificate["groups"]["count"] == 22_622
    assert certificate["utility"]["query_error"] == pytest.approx(0.154, rel=0.1)
    with pytest.raises(shoal.InfeasibleError, match="the largest l is 7"):
        shoal.publish(adult, content | {"method": {"name": "anatomy", "l": 8}})
