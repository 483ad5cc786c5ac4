"""The auditor against planted violations: it must catch every one."""

import json

import numpy as np
import polars as pl
import pytest
import yaml

import shoal
from sample_policies import PATIENTS, content_of
from shoal.samples import patients

QUASI = ["age", "sex", "zip", "education"]
NUMBER = {"role": "quasi", "type": "number"}


@pytest.fixture(scope="module")
def original() -> pl.DataFrame:
    return patients.generate(500, seed=5)


@pytest.fixture(scope="module")
def policy() -> shoal.Policy:
    return shoal.Policy.from_dict(yaml.safe_load(PATIENTS) | {"render": {"order": "input"}})


@pytest.fixture(scope="module")
def published(original, policy) -> shoal.Publication:
    return shoal.publish(original, policy)


def changed(frame: pl.DataFrame, row: int, **cells) -> pl.DataFrame:
    rows = pl.Series(np.arange(len(frame)) == row)
    return frame.with_columns(
        pl.when(rows)
        .then(pl.lit(value).cast(frame[name].dtype))
        .otherwise(pl.col(name))
        .alias(name)
        for name, value in cells.items()
    )


def promise(certificate, model: str) -> dict:
    return next(p for p in certificate["promises"] if p["model"] == model)


def test_honest_release_holds(published, policy, original):
    certificate = shoal.audit(published.data, policy, original)
    assert certificate.holds
    assert certificate["counted"] == "subjects"
    assert certificate["subjects"] == original["patient"].n_unique()


def test_one_record_moved_out_of_its_class_is_caught(published, policy, original):
    moved = changed(published.data, 0, age="[1, 99]")
    certificate = shoal.audit(moved, policy, original)
    assert promise(certificate, "k-anonymity")["measured"] == 1
    assert not certificate.holds


def test_one_record_moved_into_another_class_is_uncovered(published, policy, original):
    classes = published.classes
    stranger = int(np.flatnonzero(classes != classes[0])[-1])
    target = {name: published.data[name][stranger] for name in QUASI}
    certificate = shoal.audit(changed(published.data, 0, **target), policy, original)
    assert certificate["faults"]["uncovered"] == 1
    assert not certificate.holds


@pytest.mark.parametrize("name", ["disease", "ward"])
def test_one_sensitive_or_plain_value_changed_is_caught(published, policy, original, name):
    other = next(value for value in original[name] if value != original[name][0])
    certificate = shoal.audit(changed(published.data, 0, **{name: other}), policy, original)
    assert certificate["faults"]["changed"] == 1


def test_a_subject_repeated_until_too_few_people_are_left_is_caught(published, policy, original):
    """Every row of the smallest class is said to be of one person: k rows, one subject."""
    members = pl.Series(published.classes == int(np.bincount(published.classes).argmin()))
    one = original.with_columns(patient=pl.when(members).then(pl.lit("P0")).otherwise("patient"))
    certificate = shoal.audit(published.data, policy, one)
    assert promise(certificate, "k-anonymity")["measured"] == 1
    assert not certificate.holds


def test_a_class_of_one_disease_breaks_diversity(published, policy, original):
    members = pl.Series(published.classes == 0)
    same = {"disease": pl.when(members).then(pl.lit("asthma")).otherwise("disease")}
    planted = published.data.with_columns(**same)
    certificate = shoal.audit(planted, policy, original.with_columns(**same))
    assert promise(certificate, "l-diversity")["measured"] == 1
    assert certificate["faults"] == {"uncovered": 0, "changed": 0}
    assert not certificate.holds


def test_any_narrowed_cell_is_caught(published, policy, original):
    """A span cut down to one of its ends: another class, and uncovered unless the end is the
    truth.
    """
    spans = np.flatnonzero(published.data["age"].str.starts_with("[").to_numpy())
    for row in np.random.default_rng(0).choice(spans, 5).tolist():
        low = published.data["age"][row][1:].split(",")[0]
        assert not shoal.audit(changed(published.data, row, age=low), policy, original).holds


def test_rows_are_counted_and_said_so_where_no_column_names_people(published, policy, original):
    certificate = shoal.audit(published.data, policy)
    assert certificate["counted"] == "rows"
    assert "faults" not in certificate
    with_subject = published.data.with_columns(original["patient"])
    assert shoal.audit(with_subject, policy)["counted"] == "subjects"


@pytest.mark.parametrize("nobody", ["", " \u200b", None])
def test_rows_of_a_release_that_name_nobody_count_as_no_people(published, policy, original, nobody):
    names = original["patient"].to_list()
    with_subject = published.data.with_columns(patient=pl.Series([*names[:-1], nobody]))
    with pytest.raises(shoal.InputError, match="'patient': 1 record without a subject"):
        shoal.audit(with_subject, policy)


def test_column_order_changes_nothing(published, policy, original):
    turned = published.data.select(sorted(published.data.columns))
    one, other = (dict(shoal.audit(f, policy, original)) for f in (turned, published.data))
    by_name = [sorted(c.pop("columns"), key=lambda column: column["name"]) for c in (one, other)]
    assert by_name[0] == by_name[1]
    moments = ("seconds", "scale", "date")
    assert {k: v for k, v in one.items() if k not in moments} == {
        k: v for k, v in other.items() if k not in moments
    }


def test_withheld_rows_are_no_class(policy, published):
    text = published.data.with_columns(pl.col("charge").cast(pl.String))
    starred = changed(text, 0, **dict.fromkeys([*QUASI, "disease", "charge"], "*"))
    certificate = shoal.audit(starred, policy)
    assert certificate["records"]["suppressed"] == certificate["records"]["withheld"] == 1
    assert certificate["classes"]["count"] <= published.certificate["classes"]["count"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d, o: (changed(d, 0, age="about forty"), o), "'age': 1 published cell is neither"),
        (lambda d, o: (changed(d, 0, age="[90, 10]"), o), "'age'"),
        (lambda d, o: (d, o[:499]), "original: has 499 records"),
        (lambda d, o: (d.with_columns(pl.lit("x").alias("shoe")), o), "'shoe'"),
        (lambda d, o: (d, d), "original: columns"),
    ],
    ids=["unreadable", "backwards", "other records", "a column too many", "columns that it lacks"],
)
def test_what_can_not_be_audited_is_an_input_error(published, policy, original, change, said):
    data, truth = change(published.data, original)
    with pytest.raises(shoal.InputError, match=said):
        shoal.audit(data, policy, truth)


def test_a_foreign_release_in_a_file_is_audited(workplace, shoal):
    (workplace / "foreign.csv").write_text("age,zip\n" + "30-39,13***\n" * 4 + "40-49,130**\n" * 3)
    columns = {"age": NUMBER | {"domain": [0, 100]}}
    columns |= {"zip": {"role": "quasi", "hierarchy": {"prefix": 5}}}
    policy = content_of(columns, 4, render={"intervals": "{lo}-{hi}"})
    (workplace / "foreign.yaml").write_text(yaml.safe_dump(policy))
    result = shoal("audit", "foreign.csv", "-p", "foreign.yaml", "--json")
    certificate = json.loads(result.out)
    assert result.status == 1
    assert certificate["promises"][0]["measured"] == 3
    assert certificate["classes"]["count"] == 2
    assert shoal("audit", "foreign.csv", "-p", "foreign.yaml", "--k", "3").status == 0


def test_a_name_with_special_characters_is_read_as_it_stands(workplace, shoal):
    (workplace / "g1.csv").write_text("age\n1\n1\n")
    (workplace / "g[1].csv").write_text("age\n5\n6\n")
    policy = content_of({"age": NUMBER}, render={"order": "input"})
    (workplace / "p.yaml").write_text(yaml.safe_dump(policy))
    assert shoal("audit", "g[1].csv", "-p", "p.yaml").status == 1
    assert shoal("publish", "g[1].csv", "-p", "p.yaml", "-o", "o[1].csv").status == 0
    assert (workplace / "o[1].csv").read_text() == 'age\n"[5, 6]"\n"[5, 6]"\n'


@pytest.mark.parametrize("order", [{}, {"render": {"order": "shuffled"}}])
def test_sorted_rows_are_matched_with_the_original_by_the_trace_alone(original, order, tmp_path):
    policy = shoal.Policy.from_dict(yaml.safe_load(PATIENTS) | order)
    published = shoal.publish(original, policy)
    certificate = shoal.audit(published.data, policy, original)
    assert certificate["counted"] == "rows"
    assert certificate["faults"] == {"unmatched": 0}
    assert certificate["utility"]["gcp"] == pytest.approx(published.certificate["utility"]["gcp"])
    traced = shoal.audit(published.data, policy, original, trace=published.trace)
    assert traced["subjects"] == original["patient"].n_unique()
    assert traced["faults"] == {"uncovered": 0, "changed": 0}
    assert traced["classes"] == published.certificate["classes"]
    with pytest.raises(shoal.InputError, match="trace: does not name each row"):
        shoal.audit(published.data, policy, original, trace=published.trace // 2)


def test_a_trace_is_its_owner_s_and_names_the_row_behind_each_published_one(original, tmp_path):
    out, trace = tmp_path / "out.csv", tmp_path / "trace.jsonl"
    original.write_csv(tmp_path / "in.csv")
    asked = yaml.safe_load(patients.POLICY)
    shoal.publish_file(tmp_path / "in.csv", asked, out, trace=trace)
    assert trace.stat().st_mode & 0o777 == 0o600
    rows = pl.read_ndjson(trace)
    assert rows["row"].to_list() == list(range(500))
    published = pl.read_csv(out)
    assert published["disease"].equals(original["disease"].gather(rows["seq"]))
    assert rows["seq"].to_list() == shoal.publish(original, asked).trace.tolist()
    found = shoal.audit_file(out, asked, tmp_path / "in.csv", trace=trace)
    assert found["counted"] == "subjects"
    assert found.holds


def test_suppressed_records_do_not_stretch_the_scale_of_t_closeness():
    """Two salaries among those in classes, many more among the suppressed: the distance is of the
    two.
    """
    ages, pay = ["30"] * 4 + ["40"] * 4, ["1"] * 4 + ["2"] * 4 + [str(3 + i) for i in range(16)]
    frame = pl.DataFrame({"age": [*ages, *[None] * 16], "pay": pay})
    content = content_of(
        {"age": NUMBER, "pay": {"role": "sensitive", "type": "number"}},
        4,
        {"model": "t-closeness", "attributes": ["pay"], "t": 0.3},
        render={"order": "input"},
        missing="suppress",
    )
    published = shoal.publish(frame, content).data
    assert set(published["age"][:8]) == {"[30, 40]"}
    planted = published.with_columns(age=pl.Series([*ages, *["*"] * 16]))
    certificate = shoal.audit(planted, content, frame)
    assert promise(certificate, "t-closeness")["measured"] == pytest.approx(0.5)
    assert not certificate.holds


def test_a_class_that_shows_nothing_but_marks_is_measured_like_any_other():
    frame = pl.DataFrame({"town": list("xyxyzz"), "ill": list("aaaabb")})
    diverse = {"model": "l-diversity", "attribute": "ill", "l": 2}
    columns = {"town": "quasi", "ill": "sensitive"}
    content = content_of(columns, 2, diverse, render={"order": "input"})
    certificate = shoal.audit(frame.with_columns(town=pl.Series(list("****zz"))), content, frame)
    assert certificate["records"]["withheld"] == 0
    assert certificate["records"]["suppressed"] == 4
    assert certificate["classes"]["count"] == 2
    assert not certificate.holds


@pytest.mark.parametrize("mark", ["male", "[1, 2]", "bachelor"])
def test_a_mark_that_could_be_a_cell_is_refused(original, mark):
    content = yaml.safe_load(PATIENTS) | {"render": {"suppressed": mark}}
    content["attributes"]["sex"]["hierarchy"] = {"tree": {"person": ["male", "female"]}}
    with pytest.raises(shoal.InputError, match="suppression mark"):
        shoal.publish(original, content)


@pytest.mark.parametrize("mark", ["20", " 20.0", "2e1", "-1"])
def test_a_mark_that_reads_as_a_number_is_refused_where_numbers_are_published(mark):
    frame = pl.DataFrame({"age": ["20", "20", "21", "22"]})
    content = content_of({"age": NUMBER}, 2)
    with pytest.raises(shoal.InputError, match="'age': the suppression mark is one of its"):
        shoal.publish(frame, content | {"render": {"suppressed": mark}})
    content = content_of({"age": {"role": "quasi"}}, 2)
    assert shoal.publish(frame[:2], content | {"render": {"suppressed": "9"}}).certificate.holds


NO_VALUE, TWO_WAYS = "is named by one of 'missing_values'", "could be read in two ways"
DASHED = {"intervals": "{lo}-{hi}"}


@pytest.mark.parametrize(
    ("values", "column", "more", "wrong"),
    [
        ("abcd", {"hierarchy": {"tree": {"no": ["a", "b"], "x": ["c", "d"]}}}, {}, NO_VALUE),
        ("abcd", {"hierarchy": {"prefix": 1}}, {"render": {"suppressed": "?"}}, NO_VALUE),
        (["a", "no"], {"hierarchy": {"tree": {"x": ["a"], "no": ["no"]}}}, {}, None),
        ("abcd", {"hierarchy": {"prefix": 1}}, {}, None),
        (["a", "a-a", "a-a-a"], {"order": ["a", "a-a", "a-a-a"]}, {"render": DASHED}, TWO_WAYS),
        (["a", "a-a"], {"order": ["a", "a-a"]}, {"render": DASHED}, TWO_WAYS),
        (["a", "b", "a-b"], {"order": "alphabetical"}, {"render": DASHED}, TWO_WAYS),
        ("no", {"order": ["n", "o"]}, {"render": DASHED}, TWO_WAYS),
        (["1-2", "3", "4-5", "1"], {"order": ["1", "1-2", "3", "4-5"]}, {"render": DASHED}, None),
        (["a", "a, b", "c"], {"order": ["a", "a, b", "c"]}, {}, None),
    ],
)
def test_a_group_or_an_interval_must_have_one_meaning(values, column, more, wrong):
    frame = pl.DataFrame({"v": [*values] * 4})
    more |= {"missing_values": ["", "no", "*", "n-o"]}
    content = content_of({"v": {"role": "quasi", **column}}, 4, **more)
    found = [one.message for one in shoal.check(content, frame)]
    if wrong is None:
        assert not found
        assert shoal.publish(frame, content).certificate.holds
    else:
        assert [wrong in one for one in found] == [True], found


def test_columns_that_should_be_gone_are_a_fault(published, policy, original):
    named = published.data.with_columns(original["name"])
    certificate = shoal.audit(named, policy, original)
    assert certificate["faults"]["not_removed"] == 1
    assert not certificate.holds
    assert not shoal.audit(named, policy).holds


def test_sensitive_attributes_that_follow_the_data_are_audited_alone_as_with_the_original(original):
    content = yaml.safe_load(PATIENTS)
    content["attributes"]["disease"] = {"role": "sensitive", "order": "frequency"}
    content["promises"] = [
        {"model": "k-anonymity", "k": 5},
        {"model": "t-closeness", "attributes": ["disease"], "t": 0.4},
    ]
    published = shoal.publish(original, content)
    measured = [
        promise(c, "t-closeness")["measured"]
        for c in (published.certificate, shoal.audit(published.data, content))
    ]
    assert measured[0] == pytest.approx(measured[1], abs=0.05)


def test_a_starred_row_may_hide_its_sensitive_value_by_the_mark_alone():
    """An empty cell says that there is no value, which is not what the original says."""
    frame = pl.DataFrame({"age": list("11229"), "ill": list("xyxyx")})
    content = content_of({"age": NUMBER, "ill": "sensitive"}, render={"order": "input"})
    for text, faults in (("*", 0), ("", 1)):
        hidden = pl.DataFrame({"age": list("11***"), "ill": [*"xyxy", text]})
        assert shoal.audit(hidden, content, frame)["faults"]["changed"] == faults
