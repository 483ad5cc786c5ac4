"""Ways in which one person, or one value, was taken for several, or nobody for somebody."""

from __future__ import annotations

import datetime as dt
import json
import unicodedata
import warnings
from decimal import Decimal

import polars as pl
import pyarrow as pa
import pytest

import shoal
from sample_policies import content_of
from shoal.advise.risk import known_values
from shoal.connectors import files
from shoal.data.certificate import Certificate
from shoal.data.person_names import names_of, person_name, same_value, without_nobody
from shoal.data.room import Room
from shoal.data.table import Table
from shoal.errors import InputError
from shoal.tables.publish import publish_file

SEEN = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}
"""Marks of format that are drawn around numbers and words."""

POLICY = content_of(
    {
        "id": {"role": "subject"},
        "age": {"role": "quasi", "type": "number", "domain": [0, 99]},
        "ill": {"role": "sensitive"},
    },
    2,
)


def with_ill(**keys):
    attributes = POLICY["attributes"] | {"ill": {"role": "sensitive", **keys}}
    promises = [*POLICY["promises"], {"model": "l-diversity", "attribute": "ill", "l": 2}]
    return POLICY | {"attributes": attributes, "promises": promises}


def test_signs_of_format_and_what_is_no_character_make_nobody_another_person():
    unseen = [c for c in range(0x110000) if unicodedata.category(chr(c)) == "Cf" and c not in SEEN]
    unseen += [*range(0xFDD0, 0xFDF0), 0xFFFE, 0xFFFF, 0xE1000]
    texts = [f"P{chr(c)}1" for c in unseen]
    assert {person_name(text) for text in texts} == {"P1"}
    assert {same_value(text) for text in texts} == {"p1"}
    assert set(names_of(pl.Series(texts))) == {"P1"}


@pytest.mark.parametrize("order", ["alphabetical", "frequency", ["low", "Low"]])
def test_an_order_that_lists_a_value_in_two_spellings_is_refused(order):
    frame = pl.DataFrame({"id": ["a", "b"], "age": [1, 2], "ill": ["low", "Low"]})
    with pytest.raises(InputError, match="its order lists twice"):
        shoal.publish(frame, with_ill(type="ordinal", order=order))


@pytest.mark.parametrize("blank", [" ", "\u200b", "n/a", None])
def test_rows_of_texts_that_stand_for_no_value_are_nobody(blank):
    frame = pl.DataFrame({"a": ["x", blank, blank], "b": ["y", "hiv", blank]})
    kept, said = without_nobody(frame, ["", "n/a"])
    assert kept.height == 2
    assert [one.code for one in said] == ["empty-rows"]
    assert "no message or trace numbers them" in str(said[0])


@pytest.mark.parametrize("spelled", [" p{}", "P{}", "p{}\u200b"])
def test_a_copy_of_the_subject_in_another_spelling_is_refused(spelled):
    numbers = range(6)
    frame = pl.DataFrame(
        {
            "id": [f"p{n}" for n in numbers],
            "age": [30] * 6,
            "ill": ["a", "b"] * 3,
            "ref": [spelled.format(n) for n in numbers],
        }
    )
    with pytest.raises(InputError, match="'ref'"):
        shoal.publish(frame, POLICY | {"other": "plain"})


@pytest.mark.parametrize("take", [shoal.publish, lambda *given: read_known(*given)])
def test_a_text_for_no_value_that_ends_in_a_blank_names_nobody(take):
    frame = pl.DataFrame({"id": ["a", "NULL "], "age": [1, 2], "ill": ["x", "y"]})
    with pytest.raises(InputError, match="without a subject"):
        take(frame, POLICY | {"missing_values": ["", "NULL "]})


def test_a_stream_sets_aside_whom_a_decimal_names(tmp_path, monkeypatch, shoal):
    monkeypatch.chdir(tmp_path)
    lines = [f'{{"id": {n}, "age": 30, "ill": "a"}}' for n in ("1", "1.0", "1e0", "2", '"3"')]
    (tmp_path / "s.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "p.json").write_text(json.dumps(POLICY))
    done = shoal("stream", "s.jsonl", "-p", "p.json", "-o", "o.csv")
    assert pl.read_csv("o.csv").height == 3
    assert "2 bad records" in done.err


@pytest.mark.parametrize(
    "text",
    [
        "k: 0x" + "f" * 4_000,
        "[" * 150 + "]" * 150,
    ],
)
def test_numbers_and_depths_beyond_reason_are_refused(tmp_path, text):
    path = tmp_path / "p.yaml"
    path.write_text(f"version: 1\nx: {text}\n" if text[0] == "[" else f"version: 1\n{text}\n")
    with pytest.raises(InputError, match="fix the syntax"):
        shoal.Policy.load(path)


def test_a_key_of_very_many_parts_is_refused_before_it_is_read(tmp_path):
    (tmp_path / "p.toml").write_text("a" + ".a" * 50_000 + " = 1\n")
    with pytest.raises(InputError, match="more than 100 parts"):
        shoal.Policy.load(tmp_path / "p.toml")


# Texts that stand for no value, as people write them and as types hold them.


MARKS = ["－", "…", "½", "N/A ", " ? ", "-"]
"""Texts for no value, most of which no person's name equals until it is compared."""

PAIRS = content_of(
    {
        "hh": "identifier",
        "m": "identifier",
        "age": {"role": "quasi", "type": "number", "domain": [0, 99]},
    },
    subject=["hh", "m"],
)


def read_known(frame, policy):
    policy = shoal.Policy.of(policy)
    return known_values(policy.tables.original_table(Table(frame)), policy)


def refused_everywhere(people, policy, tmp_path):
    """Each verb that counts people finds a record without a subject."""
    with pytest.raises(InputError, match="without a subject"):
        shoal.publish(people, policy)
    with pytest.raises(InputError, match="without a subject"):
        shoal.republish(people, policy, tmp_path / "ledger")
    with pytest.raises(InputError, match="no subject"):
        shoal.stream(policy).push(people)
    with pytest.raises(InputError, match="without a subject"):
        read_known(people, policy)


@pytest.mark.parametrize("is_pair", [True, False])
def test_the_suppression_mark_names_nobody(is_pair, tmp_path):
    people = pl.DataFrame({"hh": ["1", "2", "3"], "m": ["1", "2", "*"], "age": ["30"] * 3})
    policy = PAIRS
    if not is_pair:
        roles = PAIRS["attributes"] | {"m": {"role": "subject"}}
        policy = {k: v for k, v in PAIRS.items() if k != "subject"} | {"attributes": roles}
    refused_everywhere(people, policy, tmp_path)


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("missing", ["hh", "m"])
def test_a_text_for_no_value_names_nobody_together_with_others(mark, missing, tmp_path):
    people = pl.DataFrame({"hh": ["1", "2", "3"], "m": ["1"] * 3, "age": ["30"] * 3})
    people = people.with_columns(pl.Series(missing, [mark, "1", "1"]))
    policy = PAIRS | {"missing_values": ["", mark]}
    refused_everywhere(people, policy, tmp_path)


@pytest.mark.parametrize("mark", MARKS)
def test_rows_of_a_text_for_no_value_are_nobody_however_it_is_written(mark):
    frame = pl.DataFrame({"a": ["x", mark, f" {mark}\u200b"], "b": ["y", mark, None]})
    assert without_nobody(frame, ["", mark])[0].height == 1
    assert without_nobody(frame.cast(pl.Categorical), ["", mark])[0].height == 1


@pytest.mark.parametrize(
    ("cells", "mark"),
    [
        ([30, -99, None], "-99"),
        ([30.5, -99.5, float("nan")], "-99.5"),
        ([dt.date(1980, 1, 1), dt.date(1900, 1, 1), None], "1900-01-01"),
        ([True, False, None], "false"),
    ],
)
def test_rows_of_typed_values_that_stand_for_no_value_are_nobody(cells, mark, tmp_path):
    pl.DataFrame({"a": cells, "b": cells}).write_parquet(tmp_path / "t.parquet")
    read = files.read(str(tmp_path / "t.parquet")).frame
    assert without_nobody(read, ["", mark])[0].height == 1
    assert without_nobody(read)[0].height == 2


@pytest.mark.parametrize("mark", ["n/a", "－"])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_rows_of_nobody_are_refused_past_memory(mark, suffix, tmp_path):
    path = tmp_path / f"t{suffix}"
    policy = shoal.Policy.of(POLICY | {"missing_values": ["", mark]})
    rows = {"id": ["a", "b", mark], "age": ["1", "2", " "], "ill": ["x", mark, f" {mark} "]}
    files.write(pl.DataFrame(rows)[:2], path, suffix)
    assert policy.tables.read_original(str(path), Room(1 << 30)).table.records == 2
    files.write(pl.DataFrame(rows), path, suffix)
    with pytest.raises(InputError, match="some rows have no value"):
        policy.tables.read_original(str(path), Room(1 << 30))


def counted(other):
    """People without ids and their policy; a counter of rows is dropped, by name or as others."""
    attributes = {name: one for name, one in POLICY["attributes"].items() if name != "id"}
    dropped = {"nr": {"role": "drop"}} if other == "plain" else {}
    return POLICY | {"attributes": attributes | dropped, "other": other}


COUNTED = {"nr": [1, 2, 3, 4], "age": [20, 21, None, None], "ill": ["x", "y", "", None]}


@pytest.mark.parametrize("other", ["plain", "drop"])
def test_rows_that_have_nothing_but_dropped_cells_are_people_without_a_value(other, tmp_path):
    rows, policy = pl.DataFrame(COUNTED), counted(other)
    rows.write_csv(tmp_path / "t.csv")
    tables, path = shoal.Policy.of(policy).tables, str(tmp_path / "t.csv")
    for source in (
        tables.read_original(rows),
        tables.read_original(path),
        tables.read_original(path, Room(1 << 30)),
    ):
        assert (source.table.records, source.remarks) == (4, ())
    assert shoal.publish(rows, policy).certificate["records"]["out"] == 4


def test_columns_that_the_words_leave_out_tell_who_is_somebody():
    words = {"quasi": ["age"], "sensitive": "ill", "other": "drop", "k": 2}
    assert shoal.publish(pl.DataFrame(COUNTED), **words).certificate["records"]["out"] == 4


@pytest.mark.parametrize("other", ["plain", "drop"])
def test_a_stream_takes_rows_that_have_nothing_but_dropped_cells(other):
    stream = shoal.stream(counted(other))
    published = [stream.push(pl.DataFrame(COUNTED)), stream.flush()]
    assert sum(len(rows) for rows in published) == 4


def test_only_few_rows_below_an_empty_one_may_be_totals_and_notes():
    ages = [30] * 5 + [None] + [31] * 101
    assert without_nobody(pl.DataFrame({"age": ages[:-1]}))[1][1].code == "rows-apart"
    assert [one.code for one in without_nobody(pl.DataFrame({"age": ages}))[1]] == ["empty-rows"]


def rows_of(cells, role, **keys):
    """Two people, two rows of `cells`, and their policy, in which `nr` has a role."""
    attributes = counted("plain")["attributes"] | {"nr": {"role": role, **keys}}
    rows = {name: [*COUNTED[name][:2], *[cells[name]] * 2] for name in COUNTED}
    return pl.DataFrame(rows, strict=False), POLICY | {"attributes": attributes}


def test_rows_of_marks_are_nobody(tmp_path):
    rows, policy = rows_of({"nr": "*", "age": "*", "ill": "*"}, "plain")
    rows.write_csv(tmp_path / "t.csv")
    for given in (rows, str(tmp_path / "t.csv")):
        source = shoal.Policy.of(policy).tables.read_original(given)
        assert source.table.records == 2
        assert ["2 rows have no value" in str(one) for one in source.remarks] == [True]
    with pytest.raises(InputError, match="some rows have no value"):
        shoal.Policy.of(policy).tables.read_original(str(tmp_path / "t.csv"), Room(1 << 30))
    with pytest.raises(InputError, match="no value and is nobody"):
        shoal.stream(policy).push(rows)
    policy |= {"promises": [{"model": "k-anonymity", "k": 3}]}
    assert shoal.republish(rows, policy, tmp_path / "ledger").waiting == 2


@pytest.mark.parametrize(
    ("role", "keys"),
    [
        *((role, {}) for role in ("subject", "plain", "identifier", "time", "drop")),
        ("identifier", {"pseudonym": "keyed"}),
    ],
)
def test_a_row_that_has_a_value_in_any_column_is_somebody(role, keys):
    rows, policy = rows_of({"nr": 7, "age": None, "ill": None}, role, **keys)
    assert shoal.Policy.of(policy).tables.read_original(rows).table.records == 4


@pytest.mark.parametrize(
    "cells", [["*", "*", None], [None, None, 7], ["*", None, 7]], ids=["mark", "counter", "both"]
)
@pytest.mark.parametrize("other", [None, "plain"])
def test_rows_of_nobody_are_no_population(cells, other, tmp_path):
    age, sex, number = cells
    people = pl.DataFrame({"age": ["20"] * 5, "sex": ["f"] * 5, "nr": [str(n) for n in range(5)]})
    numbers = [number and f"{number}{n}" for n in range(9)]
    nobody = {"age": [age] * 9, "sex": [sex] * 9, "nr": numbers}
    schema = dict.fromkeys(people.columns, pl.String)
    pl.concat([people, pl.DataFrame(nobody, schema=schema)]).write_csv(tmp_path / "all.csv")
    roles = {"age": {"role": "quasi", "type": "number", "domain": [0, 99]}, "sex": "quasi"}
    promise = {"model": "k-map", "k": 5, "population": "all.csv"}
    content = content_of({**roles, "ill": "sensitive"}, promises=[promise], other=other)
    policy = shoal.Policy.from_dict(content, base=tmp_path)
    assert policy.tables.populations["all.csv"].records == 5
    given = pl.DataFrame({"age": ["20", None], "sex": ["f", None], "ill": ["x", "y"]})
    with pytest.raises(shoal.PromiseError, match="asked 5, measured 0"):
        shoal.publish(given, policy)


@pytest.mark.parametrize("subject", [["id"], ["id", "m"]])
def test_a_number_that_is_none_names_nobody(subject, tmp_path):
    people = pl.DataFrame({"id": [1.0, float("nan"), 3.0], "m": [1, 1, 1], "age": [30, 30, 30]})
    role = "subject" if subject == ["id"] else "identifier"
    attributes = {"id": {"role": role}, "m": {"role": "identifier"}}
    policy = PAIRS | {"attributes": PAIRS["attributes"] | attributes, "subject": subject}
    policy["attributes"].pop("hh")
    if subject == ["id"]:
        policy.pop("subject")
    policy = shoal.Policy.of(policy)
    people.write_parquet(tmp_path / "t.parquet")
    with pytest.raises(InputError, match="without a subject"):
        shoal.publish(people, policy)
    with pytest.raises(InputError, match="without a subject"):
        publish_file(str(tmp_path / "t.parquet"), policy, str(tmp_path / "o.csv"))
    coded = policy.tables.read_original(str(tmp_path / "t.parquet"), Room(1 << 30))
    assert "" in coded.table.column("id").cells


@pytest.mark.parametrize("cells", [[None] * 3, [-99] * 3, ["-99 "] * 3, [float("nan")] * 3])
def test_a_frame_of_nobody_is_refused(cells):
    policy = POLICY | {"attributes": {"age": POLICY["attributes"]["age"]}}
    with pytest.raises(InputError, match="only empty rows"):
        shoal.publish(pl.DataFrame({"age": cells}), policy | {"missing_values": ["", "-99"]})


ROWS = "age,sex,d\n30,m,a\n31,m,b\n32,m,c\n,,hiv\n,,\n33,m,d\n,,\n"


@pytest.mark.parametrize("method", ["fads", "castle", "sky"])
def test_a_stream_sets_rows_without_any_value_aside(method, tmp_path, monkeypatch, shoal):
    monkeypatch.chdir(tmp_path)
    policy = content_of(
        {
            "age": {"role": "quasi", "type": "number", "domain": [0, 120]},
            "sex": {"role": "quasi", "hierarchy": {"tree": ["m", "f"]}},
            "d": {"role": "sensitive"},
        },
        2,
        method={"name": method, "delta": 9},
    )
    (tmp_path / "p.json").write_text(json.dumps(policy))
    (tmp_path / "s.csv").write_text(ROWS)
    done = shoal("stream", "s.csv", "-p", "p.json", "-o", "o.csv", "--checkpoint", "state")
    assert done.status == 0, done.err
    records = json.loads((tmp_path / "o.csv.certificate.json").read_text())["records"]
    assert (records["in"], records["rejected"]) == (7, 2)
    letters = tmp_path / "o.csv.dead-letters.jsonl"
    aside = [json.loads(line) for line in letters.read_text().splitlines()]
    assert [one["record"] for one in aside] == [4, 6]
    assert {one["reason"] for one in aside} == {"has no value and is nobody"}
    again = shoal("stream", "s.csv", "-p", "p.json", "-o", "o.csv", "--checkpoint", "state")
    assert again.status == 0, again.err
    assert len(letters.read_text().splitlines()) == 2


def test_a_reference_shows_nothing_of_rows_that_are_nobody():
    age = {"role": "quasi", "type": "number"}
    policy = PAIRS | {"subject": None, "attributes": {"age": age}}
    ages = pl.DataFrame({"age": ["1", "2", "3", None, "\u200b"]})
    given = shoal.stream(policy, reference=ages)
    given.push(ages[:3])
    assert given.flush().height == 3
    with pytest.raises(InputError, match="only empty rows"):
        shoal.stream(policy, reference=ages[3:]).push(ages[:3])


@pytest.mark.parametrize("subject", ["[1, 2]", "[true]", "[.inf]", "[]", "[hh, 2]"])
def test_a_subject_of_what_is_no_text_is_refused_beside_its_data(subject, tmp_path, shoal):
    attributes = json.dumps(PAIRS["attributes"])
    promises = json.dumps(PAIRS["promises"])
    text = f"version: 1\nsubject: {subject}\nattributes: {attributes}\npromises: {promises}\n"
    (tmp_path / "p.yaml").write_text(text)
    (tmp_path / "t.csv").write_text("hh,m,age\n1,1,30\n1,2,30\n")
    done = shoal("policy", "check", str(tmp_path / "p.yaml"), str(tmp_path / "t.csv"))
    assert done.status == 2
    assert "subject" in done.err
    assert "rename" not in done.err


# Records that are counted although a column seems to number people.


VISITS = content_of(
    {
        "patient_id": {"role": "drop"},
        "age": {"role": "quasi", "type": "number", "domain": [0, 99]},
        "sex": {"role": "quasi", "hierarchy": {"tree": ["m", "f"]}},
    },
    3,
)


def visits(numbers=range(40), times=3) -> pl.DataFrame:
    """Visits of as many people, a few of each."""
    people = pl.DataFrame({"patient_id": list(numbers)})
    place = pl.int_range(pl.len())
    people = people.with_columns((20 + place * 7 % 60).alias("age"))
    people = people.with_columns(
        pl.when(place % 2 == 0).then(pl.lit("m")).otherwise(pl.lit("f")).alias("sex")
    )
    return pl.concat([people] * times)


def codes(certificate) -> list[str]:
    return [one.code for one in certificate.warnings if one.code == "people-assumed"]


@pytest.mark.parametrize(
    "number",
    [
        str,
        lambda n: n.to_bytes(2),
        lambda n: {"site": 1, "of": n},
        lambda n: [n, 1],
        lambda n: dt.timedelta(n),
        lambda n: {"ids": [n.to_bytes(2)]},
    ],
)
def test_a_dropped_column_of_any_type_may_number_people(number, tmp_path):
    given = visits([number(n) for n in range(40)])
    given.write_parquet(tmp_path / "t.parquet")
    policy = shoal.Policy.of(VISITS)
    assert codes(shoal.publish(given, policy).certificate) == ["people-assumed"]
    done = publish_file(str(tmp_path / "t.parquet"), policy, str(tmp_path / "o.csv"))
    assert codes(done.certificate) == ["people-assumed"]
    # lists that nobody needs are not read from files, where a few bytes may hold very long ones
    is_list = "List" in str(given.schema["patient_id"])
    assert is_list == any("lists, which are not read" in str(w) for w in done.certificate.warnings)
    assert "_id" not in (tmp_path / "o.csv").read_text()


@pytest.mark.parametrize("number", [lambda n: n if n % 2 else str(n), Decimal])
def test_a_dropped_column_that_can_not_be_read_may_number_people(number):
    numbers = pa.decimal256(60, 2) if number is Decimal else None
    given = visits().drop("patient_id").to_pandas()
    given["patient_id"] = [number(n) for n in range(40)] * 3
    if numbers:
        given = pa.Table.from_pandas(given).set_column(
            2, "patient_id", pa.array(given["patient_id"], numbers)
        )
    assert codes(shoal.publish(given, VISITS).certificate) == ["people-assumed"]


def test_a_dropped_column_without_a_value_numbers_nobody():
    given = visits([None, *(n.to_bytes(2) for n in range(39))]).with_columns(
        pl.when(pl.int_range(pl.len()) > 0).then("age"),
        pl.when(pl.int_range(pl.len()) > 0).then("sex"),
    )
    done = shoal.publish(given, VISITS | {"missing": "suppress"})
    assert done.data.height == 119


def codes_of_people(certificate) -> list[str]:
    return [
        one.code for one in certificate.warnings if one.code in ("people-assumed", "written-alike")
    ]


@pytest.mark.parametrize("is_named", [False, True])
def test_an_audit_warns_of_people_as_the_publication_does(is_named, tmp_path):
    """Patients are counted by rows, or each of them is spelled in three ways."""
    rows, roles = visits(), VISITS["attributes"]
    if is_named:
        spelled = ["p{}", "P{}", "0P{}"]
        names = [way.format(n) for way in spelled for n in range(40)]
        rows = rows.with_columns(patient_id=pl.Series(names))
        roles = roles | {"patient_id": {"role": "subject"}}
    policy = shoal.Policy.of(VISITS | {"attributes": roles})
    done = shoal.publish(rows, policy)
    expected = ["written-alike" if is_named else "people-assumed"]
    assert codes_of_people(done.certificate) == expected
    assert codes_of_people(shoal.audit(done.data, policy, rows, trace=done.trace)) == expected
    rows.write_csv(tmp_path / "rows.csv")
    done.data.write_csv(tmp_path / "out.csv")
    given = [tmp_path / name for name in ("out.csv", "rows.csv")]
    assert codes_of_people(shoal.audit(given[0], policy, given[1])) == expected
    assert codes_of_people(shoal.audit(done.data, policy)) == []
    shown = done.data.with_columns(patient_id=rows["patient_id"])
    subject = "patient_id" if is_named else None
    by_columns = shoal.audit(shown, quasi=["age", "sex"], k=3, subject=subject)
    assert codes_of_people(by_columns) == expected


def test_a_ledger_warns_that_records_are_counted(tmp_path):
    done = shoal.republish(visits(), VISITS, tmp_path / "ledger")
    assert codes(done.certificate) == ["people-assumed"]


def test_a_stream_warns_once_that_records_are_counted(tmp_path, monkeypatch, shoal):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.json").write_text(json.dumps(VISITS))
    visits().write_csv("s.csv")
    command = ("s.csv", "-p", "p.json", "-o", "o.csv", "--checkpoint", "state")
    for _ in range(2):
        done = shoal("stream", *command)
        assert done.status == 0, done.err
        assert done.err.count("'patient_id'") == 1
        certificate = Certificate.load(tmp_path / "o.csv.certificate.json")
        assert codes(certificate) == ["people-assumed"]


@pytest.mark.parametrize("first", [1, 50, 119])
def test_a_stream_that_resumes_warns_of_what_its_first_records_show(first):
    given = visits()
    begun = shoal.stream(VISITS)
    begun.push(given[:first])
    resumed = shoal.stream(VISITS)
    resumed.restore(begun.snapshot())
    resumed.push(given[first:])
    with pytest.warns(shoal.ReleaseWarning, match="'patient_id'") as said:
        resumed.flush()
    assert len(said) == 1


def test_a_stream_judges_its_first_records_once():
    given = shoal.stream(VISITS)
    with pytest.warns(shoal.ReleaseWarning, match="'patient_id'") as said:
        given.push(visits(range(700)))
    assert len(said) == 1
    resumed = shoal.stream(VISITS)
    resumed.restore(given.snapshot())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        resumed.push(visits(range(700)))
        resumed.flush()
