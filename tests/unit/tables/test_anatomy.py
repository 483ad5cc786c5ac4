"""Anatomy: two tables that fit each other, nothing promised that they don't keep."""

import hashlib
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
import shoal as library
from sample_policies import content_of
from shoal.auditor.measure import People, group_query_error
from shoal.connectors import files
from shoal.data.classes import SensitiveColumn
from shoal.data.partition import Matrix
from shoal.data.recoding import sensitive_path
from shoal.privacy.two_tables import joined
from shoal.tables.kernels.buckets import largest_buckets, nearest_of_buckets
from shoal.tables.methods.anatomy import Anatomy
from shoal.tables.publish import publish_file

POLICY = content_of(
    {
        "age": {"role": "quasi", "type": "number", "domain": [0, 100]},
        "zip": "quasi",
        "disease": "sensitive",
        "who": "subject",
    },
    promises=[{"model": "alpha-k-anonymity", "attribute": "disease", "alpha": 0.5, "k": 2}],
    method={"name": "anatomy", "l": 2},
)
TWO_COLUMNS = {"attributes": {name: POLICY["attributes"][name] for name in ("age", "disease")}}
EXAMPLE = pl.DataFrame(
    {
        "who": list("abcdefg"),
        "age": [21, 22, 33, 34, 45, 46, 57],
        "zip": list("ppqqrrs"),
        "disease": list("aaabbcd"),
    }
)
SEVERAL_RECORDS = EXAMPLE.with_columns(pl.Series("who", list("aacdefg")))


@pytest.fixture(scope="module")
def published():
    with pytest.warns(library.ReleaseWarning):
        return library.publish(EXAMPLE, POLICY)


def promising(model, **settings) -> dict:
    """The policy with one promise about the disease in place of its own."""
    about = {} if model == "k-anonymity" else {"attribute": "disease"}
    return POLICY | {"promises": [{"model": model, **about, **settings}]}


def attributes(**changes) -> dict:
    return POLICY | {"attributes": POLICY["attributes"] | changes}


# The steps


def test_buckets_are_those_that_a_plain_loop_takes():
    # a a a b b c d, l = 2: ab, ab, ac, and d joins any
    assert largest_buckets(np.array([3, 2, 1, 1]), 2).tolist() == [[0, 1], [0, 1], [0, 2]]
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
    matrix, column = Matrix.from_columns(np.zeros((7, 1)), [1.0]), SensitiveColumn("x", codes, 4)
    joined_groups = set()
    for seed in range(30):
        found = Anatomy(l=2).bucketize(matrix, column, None, np.random.default_rng(seed))
        joined_groups.add(tuple(sorted(codes[found.labels == found.labels[6]])))
    assert joined_groups == {(0, 1, 3), (0, 2, 3)}


def test_several_texts_for_no_value_are_one_bucket():
    frame = pl.DataFrame({"age": range(6), "disease": ["", "?", "a", "a", "b", "b"]})
    found = library.publish(frame, POLICY | TWO_COLUMNS | {"missing_values": ["", "?"]})
    groups = found.sensitive.group_by("group").agg("disease")["disease"].to_list()
    assert all(len({"" if v == "?" else v for v in values}) == 2 for values in groups)


# What is published


def test_quasi_identifiers_are_as_they_were_and_the_certificate_says_what_is_disclosed(published):
    assert published.data.columns == ["age", "zip", "group"]
    assert published.sensitive.columns == ["group", "disease", "count"]
    own = dict(zip(EXAMPLE["age"], EXAMPLE["disease"], strict=True))
    truth = Counter((g, own[age]) for age, _, g in published.data.iter_rows())
    assert truth == {(g, v): n for g, v, n in published.sensitive.iter_rows()}
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
    first, again = (library.publish(f, POLICY) for f in (EXAMPLE, EXAMPLE.reverse()))
    assert first.data.equals(again.data)
    assert first.sensitive.equals(again.sensitive)
    # a column that is removed changes the draws: nobody without the table can repeat them
    other = EXAMPLE.with_columns(pl.col("who") + "!")
    seeds = [POLICY | {"seed": seed} for seed in range(4)]
    shown = [
        library.publish(f, asked).data.write_csv() for f in (EXAMPLE, other) for asked in seeds
    ]
    assert len(set(shown)) > 4


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.sampled_from("abcde")), min_size=2, max_size=24),
    st.integers(2, 3),
    st.booleans(),
)
def test_whatever_is_published_is_right_by_plain_counts(rows, l, near):
    frame = pl.DataFrame(rows, schema=["age", "disease"], orient="row")
    content = promising("l-diversity", l=l) | TWO_COLUMNS
    content |= {"method": {"name": "anatomy", "l": l, "near": near}}
    values = Counter(frame["disease"])
    try:
        found = library.publish(frame, content)
    except library.InfeasibleError:
        assert max(values.values()) * l > len(rows) or len(rows) < l
        return
    listed = defaultdict(Counter)
    for group, value, count in found.sensitive.rows():
        listed[group][value] += count
    sizes = Counter(found.data["group"])
    assert sizes == {group: counts.total() for group, counts in listed.items()}
    assert all(max(c.values()) * l <= sizes[g] for g, c in listed.items())
    assert sum(listed.values(), Counter()) == values
    assert Counter(found.data["age"]) == Counter(frame["age"])
    audited = library.audit((found.data, found.sensitive), content, frame)
    assert audited.holds
    assert audited["faults"]["changed"] == 0


# Audits


def test_promises_are_measured_by_group_not_by_cells(published):
    asked = promising("l-diversity", l=2)
    asked["promises"] += [{"model": "t-closeness", "attributes": ["disease"], "t": 0.6}]
    certificate = library.audit((published.data, published.sensitive), asked)
    first, second = certificate["promises"]
    assert first["measured"] == 2
    table = Counter(EXAMPLE["disease"])
    by_group = defaultdict(dict)
    for group, value, count in published.sensitive.iter_rows():
        by_group[group][value] = count
    distances = [
        sum(abs(Fraction(c.get(v, 0), sum(c.values())) - Fraction(m, 7)) for v, m in table.items())
        / 2
        for c in by_group.values()
    ]
    assert second["measured"] == pytest.approx(float(max(distances)))


@pytest.mark.parametrize(
    ("rows", "values", "changed"),
    [({}, {"d": "e"}, 1), ({}, {"c": "d", "d": "c"}, 2), ({21: 22}, {}, 1)],
    ids=["another value in a group", "values swapped between groups", "a row that was not there"],
)
def test_what_differs_from_the_original_is_found(published, rows, values, changed):
    first = published.data.with_columns(pl.col("age").replace(rows))
    second = published.sensitive.with_columns(pl.col("disease").replace(values))
    certificate = library.audit((first, second), POLICY, EXAMPLE)
    assert certificate["faults"]["changed"] == changed
    assert not certificate.holds


@pytest.mark.parametrize(
    ("groups", "listed", "message"),
    [
        ([1, 1], ([1, 2], "ab", [1, 1]), "one of them"),
        ([1, 1], ([1, 1], "ab", [1, 2]), "do not add up"),
        ([1, 1], ([1, 1], "aa", [1, 1]), "a second time"),
        ([0, 1], ([1, 1], "ab", [1, 1]), "not whole numbers"),
        ([1, 1], ([1, 1], "ab", [1, -1]), "not whole numb"),
        # one group to who counts, two to who joins the tables by their text
        (["1", "01"], (["1", "01"], "ab", ["1", "1"]), "not whole numbers"),
        (["1", "1 "], (["1", "1 "], "ab", ["1", "1"]), "not whole numbers"),
    ],
)
def test_tables_that_do_not_fit_each_other_are_refused(groups, listed, message):
    sensitive = dict(zip(("group", "v", "count"), map(list, listed), strict=True))
    with pytest.raises(library.InputError, match=message):
        joined(pl.DataFrame({"group": groups}), pl.DataFrame(sensitive), "v")


def test_other_columns_and_another_number_of_tables_are_refused(published):
    pair = (published.data, published.sensitive)
    for renamed, says in (
        ({"group": "gruppe"}, "the first must"),
        ({"disease": "w"}, "the second"),
    ):
        with pytest.raises(library.InputError, match=f"{says}.* have"):
            joined(*(one.rename(renamed, strict=False) for one in pair), "disease")
    with pytest.raises(library.InputError, match="give both as a pair"):
        library.audit(published.data, POLICY)
    with pytest.raises(library.InputError, match="publishes one"):
        library.audit(pair, promising("k-anonymity", k=2) | {"method": {"name": "mondrian"}})


def test_query_error_by_hand():
    people = People([np.array([0.0, 1.0])], np.array([0, 1]))  # one group of two rows
    labels = np.zeros(2, dtype=np.int32)
    # three values are asked where there are only two: then nothing is unknown
    assert group_query_error(people, labels, people, 0) == 0
    apart = People([np.array([0.0, 1.0])], np.array([0, 9]))
    # a range with one row and one of the two values: estimate 1/2, truth 0 or 1
    assert 0 < group_query_error(apart, labels, apart, 0) <= 0.5


# Files

PUBLISH = ("publish", "in.csv", "-p", "p.json", "-o", "r.csv", "-q")
VERIFY = ("verify", "r.csv", "-p", "p.json")


@pytest.fixture
def folder(folder):
    EXAMPLE.write_csv("in.csv")
    Path("p.json").write_text(json.dumps(POLICY))
    return folder


@pytest.fixture
def stated(folder, shoal) -> dict:
    """The certificate of a release r.csv."""
    assert shoal(*PUBLISH).status == 0
    return json.loads(Path("r.csv.certificate.json").read_text())


@pytest.mark.parametrize("name", ["r.csv", "r.csv.gz", "r.parquet", "r.tsv", "r.jsonl"])
def test_both_files_are_written_audited_and_verified(folder, name, shoal):
    done = shoal("publish", "in.csv", "-p", "p.json", "-o", name, status=0)
    assert "two tables, 3 groups" in done.err
    assert Path(sensitive_path(name)).is_file()
    certificate = json.loads(Path(f"{name}.certificate.json").read_text())
    assert set(certificate["output"]["sensitive"]) == {"sha256", "bytes"}
    assert shoal("verify", name).status == 0
    for verb in ("verify", "audit"):
        assert shoal(verb, name, "-p", "p.json", "--original", "in.csv").status == 0


def test_a_policy_that_does_not_name_the_method_is_pointed_to_it(folder, shoal):
    Path("p.json").write_text(json.dumps({k: v for k, v in POLICY.items() if k != "method"}))
    assert shoal(*PUBLISH, "--method", "anatomy", "--set", "l=2").status == 0
    (line,) = shoal("audit", "r.csv", "-p", "p.json", status=2).err.splitlines()
    assert "'method: {name: anatomy}'" in line


def test_a_second_table_that_was_changed_or_is_gone_fails_verification(stated, shoal):
    second = Path("r.sensitive.csv")
    second.write_text(second.read_text().replace(",d,", ",e,"))
    assert "the table of sensitive values beside it is" in shoal("verify", "r.csv", status=1).out
    second.unlink()
    assert shoal(*VERIFY).status == 1
    assert "keep both in one folder" in shoal("audit", "r.csv", "-p", "p.json", status=2).err


def test_a_certificate_that_states_other_groups_or_none_fails_verification(stated, shoal):
    without = {key: value for key, value in stated.items() if key not in ("presence", "groups")}
    for forged in (stated | {"groups": stated["groups"] | {"max": 9}}, without):
        Path("r.csv.certificate.json").write_text(json.dumps(forged))
        assert shoal(*VERIFY, "-q").status == 1


def test_a_forged_certificate_of_groups_that_tell_a_value_fails_verification(stated, shoal):
    """Every value is whose it was, but the first group has one alone."""
    groups, hashed = pl.Series("group", [1, 1, 2, 2, 3, 3, 3]), {}
    first = EXAMPLE.select("age", "zip", groups)
    second = EXAMPLE.select(groups, "disease").group_by("group", "disease").len("count").sort("*")
    for name, frame in (("r.csv", first), ("r.sensitive.csv", second)):
        frame.write_csv(name)
        content = Path(name).read_bytes()
        hashed[name] = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    output = stated["output"] | hashed["r.csv"] | {"sensitive": hashed["r.sensitive.csv"]}
    Path("r.csv.certificate.json").write_text(json.dumps(stated | {"output": output}))
    answer = shoal(*VERIFY, status=1)
    failed = [line.split(":")[0] for line in answer.out.splitlines() if line.startswith("FAIL")]
    assert failed == ["FAIL measured again"]
    assert "an audit finds something else: alpha-k-anonymity" in answer.out


def test_groups_unite_until_every_promise_holds_and_nothing_is_left_where_none_can(folder, shoal):
    closeness = {"model": "t-closeness", "attributes": ["disease"], "t": 0}
    strict = POLICY | {"promises": [*POLICY["promises"], closeness]}
    Path("p.json").write_text(json.dumps(strict))
    assert shoal(*PUBLISH).status == 0
    assert Path("r.csv").read_text().count(",1\n") == 7  # one group of all
    for path in Path().glob("r*"):
        path.unlink()
    EXAMPLE.with_columns(pl.Series("disease", list("aaaaabc"))).write_csv("in.csv")
    assert shoal(*PUBLISH).status == 3
    assert not [*Path().glob("r*")]


def test_both_or_neither_where_the_first_can_not_be_put_in_its_place(folder, monkeypatch):
    real = files._take_place

    def refuse(draft, target, *more):
        if target.name == "r.csv":
            raise OSError("no space")
        real(draft, target, *more)

    monkeypatch.setattr(files, "_take_place", refuse)
    with pytest.raises((OSError, library.InputError)):
        publish_file("in.csv", library.Policy.from_dict(POLICY), "r.csv")
    assert not [*Path().glob("r*")]


def test_the_second_table_has_a_place_of_its_own(folder, shoal):
    assert sensitive_path("a/r.csv") == "a/r.sensitive.csv"
    assert sensitive_path("r.CSV.gz") == "r.sensitive.CSV.gz"
    Path("in.csv").rename("r.sensitive.csv")
    for out, says in (("r.csv", ""), ("-", "two tables can't share standard output")):
        refused = shoal("publish", "r.sensitive.csv", "-p", "p.json", "-o", out, "-q", status=2)
        assert says in refused.err


# What it can't do


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (promising("k-anonymity", k=2), "nobody is one of k who look alike"),
        (promising("alpha-k-anonymity", alpha=0.4, k=2), "alpha is below 1 / l"),
        (promising("alpha-k-anonymity", alpha=0.5, k=3), "k is above l"),
        (promising("l-diversity", l=3), "asks more than l = 2"),
        (promising("l-diversity", l=2, kind="entropy"), "of this kind"),
        (promising("t-closeness", t=0.5), "promise alpha-k-anonymity"),
        (attributes(more={"role": "sensitive"}), "hides one sensitive attribute"),
        (attributes(more={"role": "plain"}), "is plain"),
        (attributes(group={"role": "quasi"}), "a column of its own"),
        (attributes(age={"role": "quasi", "type": "number", "render": "mean"}), "'render'"),
        (attributes(age={"role": "quasi", "type": "number", "round": 5}), "'round'"),
        (POLICY | {"missing": "suppress"}, "leave out 'missing'"),
        (POLICY | {"label": "zip"}, "leave out 'label'"),
        (POLICY | {"other": "plain"}, "other: drop"),
        (POLICY | {"accept": {"alone": 0.1}}, "leave out 'accept'"),
        (POLICY | {"render": {"order": "input"}}, "order of rows"),
        (POLICY | {"write": {"numbers": ["lo"]}}, "write: numbers"),
    ],
)
def test_what_it_can_not_do_is_refused_with_the_reason(content, message):
    larger = {"method": {"name": "anatomy", "l": 3}}
    assert library.Policy.from_dict(POLICY | larger).is_in_two_tables
    with pytest.raises(library.InputError, match=message):
        library.Policy.from_dict(content)


@pytest.mark.parametrize("name", ["rows", "people", "possible", "listed", "len"])
def test_columns_may_be_called_as_counts_are(name):
    frame = pl.DataFrame({name: [1, 2, 3, 4], "d": list("abab")})
    for quasi, sensitive in ((name, "d"), ("d", name)):
        about = {"attribute": sensitive, "l": 2}
        roles = {quasi: {"role": "quasi"}, sensitive: {"role": "sensitive"}}
        asked = promising("l-diversity", **about) | {"attributes": roles}
        published = library.publish(frame, asked)
        assert library.audit((published.data, published.sensitive), asked, frame).holds


def test_people_with_several_records_and_records_of_nobody_are_refused(published):
    with pytest.raises(library.InputError, match="1 people have several records"):
        library.publish(SEVERAL_RECORDS, POLICY)
    with pytest.raises(library.InputError, match="1 people have several records"):
        library.audit((published.data, published.sensitive), POLICY, SEVERAL_RECORDS)
    with pytest.raises(library.InputError, match=r"without a subject \(row 7\)"):
        library.publish(EXAMPLE.with_columns(pl.Series("who", [*"abcdef", ""])), POLICY)


def test_jobs_about_boxes_refuse_two_tables(published):
    pair = (published.data, published.sensitive)
    for asked in (
        lambda: library.compare(EXAMPLE, POLICY),
        lambda: library.publish(EXAMPLE, POLICY, attack=["linkability"]),
        lambda: library.attack(published.data, POLICY, EXAMPLE),
        lambda: library.audit(pair, POLICY, EXAMPLE, downstream=True),
        lambda: library.audit(pair, POLICY, EXAMPLE, others=[{"release": 1, "original": 1}]),
    ):
        with pytest.raises(library.InputError, match="publishes two"):
            asked()
    with pytest.raises(library.InputError, match="explain=True"):
        library.publish(EXAMPLE, POLICY, explain=True)


def test_the_page_says_what_is_disclosed(published, tmp_path):
    published.report(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "Who is in the table, and whose row it is" in page
    assert "in a second table, counted by group" in page


@pytest.mark.long
def test_adult_comes_out_as_the_prototype_measured(adult):
    """Reconstruction error n - groups, and the error of counts within 10 % of what was measured."""
    content = content_of(
        adult_cases.declared(),
        promises=[{"model": "l-diversity", "attribute": "occupation", "l": 4}],
        method={"name": "anatomy", "l": 4},
        other="drop",
        seed=2,
    )
    certificate = library.publish(adult, content).certificate
    assert 30_162 - certificate["groups"]["count"] == 22_622
    assert certificate["utility"]["query_error"] == pytest.approx(0.154, rel=0.1)
    with pytest.raises(library.InfeasibleError, match="the largest l is 7"):
        library.publish(adult, content | {"method": {"name": "anatomy", "l": 8}})
