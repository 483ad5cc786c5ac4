"""Ways in which one person, or one value, was taken for several, or nobody for somebody."""

import datetime as dt
import json
import unicodedata
import warnings
from decimal import Decimal
from functools import partial

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from sample_policies import content_of
from shoal.advise.risk import known_values
from shoal.connectors import files
from shoal.data.certificate import Certificate
from shoal.data.column_words import fold
from shoal.data.person_names import (
    bare,
    names_of,
    person_name,
    same_value,
    same_values,
    without_nobody,
)
from shoal.data.room import Room
from shoal.data.table import Table
from shoal.errors import InputError
from shoal.tables.publish import publish_file

K3 = {"model": "k-anonymity", "k": 3}
AGE = {"role": "quasi", "type": "number", "domain": [0, 99]}
SEX = {"role": "quasi", "hierarchy": {"tree": ["m", "f"]}}
POLICY = content_of({"id": "subject", "age": AGE, "ill": "sensitive"}, 2)
PAIRS = content_of({"hh": "identifier", "m": "identifier", "age": AGE}, subject=["hh", "m"])
MARKS = ["－", "…", "½", "N/A ", " ? ", "-"]
"""Texts for no value, most of which no person's name equals until it is compared."""


SIGNS = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
BLANKS = [sign for sign in SIGNS if sign.isspace()]
SEEN = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}
"""Marks of format that are drawn around numbers and words."""
UNSEEN = [sign for sign in SIGNS if unicodedata.category(sign) == "Cf" and ord(sign) not in SEEN]
UNSEEN += map(chr, (*range(0xFDD0, 0xFDF0), 0xE1000))  # no characters
UNSEEN += (
    "\0\x1b\x7f\x9f\u034f\u180b\u200b\u2065\u2800\u3164\uffa0\ufeff\ufff9\ufffb\ufffe\uffff"
    "\U00016fe4\U0001d159\U0001fffe\U0009ffff\U000e0001\U000e007f\U0010fffe\U0010ffff"
)


@pytest.mark.parametrize(
    ("form", "signs"),
    [("p{}1", UNSEEN), ("{}p1", UNSEEN + BLANKS), ("p1{}", UNSEEN), ("{0}p1{0}", BLANKS)],
)
def test_signs_that_nobody_sees_make_no_second_person(form, signs):
    """The same in both ways to compare names: cell by cell, and column by column."""
    names = [form.format(sign) for sign in signs]
    assert {person_name(name) for name in names} == {"p1"}
    assert {same_value(name) for name in names} == {"p1"}
    assert {*names_of(pl.Series(names))} == {"p1"}
    assert person_name("p 1") != "p1"


@given(st.lists(st.text("aKßé \t\x1f\x85\xa0\u200b\u0130\u01c5~-", max_size=5)))
def test_values_are_compared_all_at_once_as_they_are_one_by_one(cells):
    assert same_values(cells) == [same_value(cell) for cell in cells]


@pytest.mark.parametrize(
    ("capitals", "small"), [("DİYABET", "diyabet"), ("SARI", "sarı"), ("ΟΔΟΣ", "οδος")]
)
def test_capitals_of_any_language_are_no_second_value(capitals, small):
    assert same_value(capitals) == same_value(small) == same_values([small])[0]


def test_signs_that_are_newer_than_this_python_name_the_same_person_everywhere():
    signs = pl.Series(SIGNS)
    texts = "P" + signs.filter(signs.str.normalize("NFKC") != signs) + "1"
    assert [person_name(text) for text in texts] == names_of(texts).to_list()
    assert person_name("\U0001ccd61") == person_name("A1") == "A1"


@pytest.mark.parametrize("order", ["alphabetical", "frequency", ["low", "Low"]])
def test_an_order_that_lists_a_value_in_two_spellings_is_refused(order):
    ill = {"role": "sensitive", "type": "ordinal", "order": order}
    diverse = {"model": "l-diversity", "attribute": "ill", "l": 2}
    policy = content_of({"id": "subject", "age": AGE, "ill": ill}, 2, diverse)
    frame = pl.DataFrame({"id": ["a", "b"], "age": [1, 2], "ill": ["low", "Low"]})
    with pytest.raises(InputError, match="its order lists twice"):
        shoal.publish(frame, policy)


@pytest.mark.parametrize("mark", [" ", "\u200b", "n/a", None, *MARKS])
def test_rows_of_texts_that_stand_for_no_value_are_nobody_however_they_are_written(mark):
    cells = {"a": ["x", mark, mark, mark and f" {mark}\u200b"], "b": ["y", "hiv", mark, None]}
    frame = pl.DataFrame(cells, schema=dict.fromkeys("ab", pl.String))
    for rows in (frame, frame.cast(pl.Categorical)):
        kept, said = without_nobody(rows, ["", mark or ""])
        assert kept.height == 2
        assert [one.code for one in said] == ["empty-rows"]
        assert "number the rows below without them" in str(said[0])


@pytest.mark.parametrize("spelled", [" p{}", "P{}", "p{}\u200b"])
def test_a_copy_of_the_subject_in_another_spelling_is_refused(spelled):
    people = {way: [way.format(n) for n in range(6)] for way in ("p{}", spelled)}
    frame = pl.DataFrame({"id": people["p{}"], "age": 30, "ill": "a", "ref": people[spelled]})
    with pytest.raises(InputError, match="'ref'"):
        shoal.publish(frame, POLICY | {"other": "plain"})


def test_a_stream_sets_aside_whom_a_decimal_names(folder, shoal):
    lines = [f'{{"id": {n}, "age": 30, "ill": "a"}}' for n in ("1", "1.0", "1e0", "2", '"3"')]
    (folder / "s.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "p.json").write_text(json.dumps(POLICY))
    done = shoal("stream", "s.jsonl", "-p", "p.json", "-o", "o.csv")
    assert pl.read_csv("o.csv").height == 3
    assert "2 bad records" in done.err


def read_known(frame, policy):
    policy = shoal.Policy.of(policy)
    return known_values(policy.tables.original_table(Table(frame)), policy)


NOBODY = [
    *(("hh", mark, True) for mark in MARKS[::2]),
    *(("m", mark, True) for mark in MARKS[1::2]),
]
NOBODY += [("m", "*", True), ("m", "*", False), ("m", "NULL ", False)]


@pytest.mark.parametrize(("missing", "mark", "is_pair"), NOBODY)
def test_the_suppression_mark_and_texts_for_no_value_name_nobody(missing, mark, is_pair, tmp_path):
    """Each verb that counts people finds a record without a subject."""
    people = pl.DataFrame({"hh": ["1", "2", "3"], "m": ["1", "2", "4"], "age": ["30"] * 3})
    people[1, missing] = mark
    policy = PAIRS if is_pair else content_of({"hh": "identifier", "m": "subject", "age": AGE})
    policy = policy | ({} if mark == "*" else {"missing_values": ["", mark]})
    for take in (shoal.publish, partial(shoal.republish, ledger=tmp_path / "ledger"), read_known):
        with pytest.raises(InputError, match="without a subject"):
            take(people, policy)
    with pytest.raises(InputError, match="no subject"):
        shoal.stream(policy).push(people)


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


ROLES = {"age": AGE, "ill": "sensitive"}


def rows_of(role, cell=None, **keys):
    """Two people and two rows of a cell, and their policy: a counter's role, if any."""
    numbered = {"nr": {"role": role, **keys}} if role else {}
    policy = content_of(ROLES | numbered, 2, other=None if role else "drop")
    rows = {"nr": [1, 2, *[cell or 7] * 2], "age": [20, 21, *[cell] * 2]}
    rows["ill"] = ["x", "y", *[cell] * 2]
    return pl.DataFrame(rows, strict=False), policy


SILENT = [*((role, None) for role in ("identifier", "time", "drop", None)), ("plain", "*")]


@pytest.mark.parametrize(("role", "cell"), SILENT)
def test_rows_without_a_published_value_or_a_subject_are_nobody(role, cell, tmp_path):
    rows, content = rows_of(role, cell)
    policy, few = shoal.Policy.of(content), content | {"promises": [K3]}
    source, out = str(tmp_path / "t.csv"), str(tmp_path / "o.csv")
    rows.write_csv(source)
    where = "" if cell else " but in removed columns"
    said = "2 rows have no value" + ("" if cell else ", removed columns aside,")
    said += " and are left out"
    for table in (rows, source):
        read = policy.tables.read_original(table)
        assert read.table.records == 2
        assert [str(one).startswith(said) for one in read.remarks] == [True]
    with pytest.raises(InputError, match=f"some rows have no value{where}"):
        policy.tables.read_original(source, Room(1 << 30))
    with pytest.raises(shoal.InfeasibleError):
        shoal.publish(rows, few)
    assert shoal.publish(rows, policy).certificate["records"]["out"] == 2
    done = publish_file(source, policy, out)
    assert any(one["text"].startswith(said) for one in done.certificate["warnings"])
    assert pl.read_csv(out).height == 2
    assert shoal.republish(rows, few, tmp_path / "ledger").waiting == 2
    with pytest.raises(InputError, match="no value and is nobody"):
        shoal.stream(content).push(rows)
    shoal.stream(content).push(rows[:2])


def test_only_few_rows_below_an_empty_one_may_be_totals_and_notes():
    ages = [30] * 5 + [None] + [31] * 101
    assert without_nobody(pl.DataFrame({"age": ages[:-1]}))[1][1].code == "rows-apart"
    assert [one.code for one in without_nobody(pl.DataFrame({"age": ages}))[1]] == ["empty-rows"]


@pytest.mark.parametrize(
    ("role", "keys"), [("subject", {}), ("plain", {}), ("identifier", {"pseudonym": "keyed"})]
)
def test_a_row_that_names_its_person_or_shows_a_value_is_somebody(role, keys):
    rows, policy = rows_of(role, **keys)
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
    promise = {"model": "k-map", "k": 5, "population": "all.csv"}
    content = content_of(ROLES | {"sex": "quasi"}, promises=[promise], other=other)
    policy = shoal.Policy.from_dict(content, base=tmp_path)
    assert policy.tables.populations["all.csv"].records == 5
    given = pl.DataFrame({"age": ["20", None], "sex": ["f", None], "ill": ["x", "y"]})
    with pytest.raises(shoal.PromiseError, match="asked 5, measured 0"):
        shoal.publish(given, policy)


@pytest.mark.parametrize("subject", [["id"], ["id", "m"]])
def test_a_number_that_is_none_names_nobody(subject, tmp_path):
    people = pl.DataFrame({"id": [1.0, float("nan"), 3.0], "m": [1, 1, 1], "age": [30, 30, 30]})
    is_pair = len(subject) > 1
    roles = {"id": "identifier" if is_pair else "subject", "m": "identifier", "age": AGE}
    policy = shoal.Policy.of(content_of(roles, **{"subject": subject} if is_pair else {}))
    people.write_parquet(tmp_path / "t.parquet")
    with pytest.raises(InputError, match="without a subject"):
        shoal.publish(people, policy)
    with pytest.raises(InputError, match="without a subject"):
        publish_file(str(tmp_path / "t.parquet"), policy, str(tmp_path / "o.csv"))
    coded = policy.tables.read_original(str(tmp_path / "t.parquet"), Room(1 << 30))
    assert "" in coded.table.column("id").cells


@pytest.mark.parametrize("cells", [[None] * 3, [-99] * 3, ["-99 "] * 3, [float("nan")] * 3])
def test_a_frame_of_nobody_is_refused(cells):
    policy = content_of({"age": AGE}, missing_values=["", "-99"])
    with pytest.raises(InputError, match="only empty rows"):
        shoal.publish(pl.DataFrame({"age": cells}), policy)


@pytest.mark.parametrize("title", ["household_id", "family_id", "id", "Nr", "ward", "patient_id"])
@pytest.mark.parametrize("others", [[], ["sex", "age", "zip"]])
def test_who_is_a_person_is_answered_for_a_table_of_blank_rows(title, others):
    blank = pl.DataFrame({name: [""] * 40 for name in [title, *others]})
    assert shoal.propose_policy(blank).subject is None
    assert "numbers people: no column" in repr(shoal.profile(blank))


ROWS = "age,sex,d\n30,m,a\n31,m,b\n32,m,c\n,,hiv\n,,\n33,m,d\n,,\n"


@pytest.mark.parametrize("method", ["fads", "castle", "sky"])
def test_a_stream_sets_rows_without_any_value_aside(method, folder, shoal):
    method = {"name": method, "delta": 9}
    policy = content_of({"age": AGE, "sex": SEX, "d": "sensitive"}, 2, method=method)
    (folder / "p.json").write_text(json.dumps(policy))
    (folder / "s.csv").write_text(ROWS)
    command = "stream s.csv -p p.json -o o.csv --checkpoint state".split()
    shoal(*command, status=0)
    records = json.loads((folder / "o.csv.certificate.json").read_text())["records"]
    assert (records["in"], records["rejected"]) == (7, 2)
    letters = folder / "o.csv.dead-letters.jsonl"
    aside = [json.loads(line) for line in letters.read_text().splitlines()]
    assert [one["record"] for one in aside] == [4, 6]
    assert {one["reason"] for one in aside} == {"has no value and is nobody"}
    shoal(*command, status=0)
    assert len(letters.read_text().splitlines()) == 2


def test_a_reference_shows_nothing_of_rows_that_are_nobody():
    policy = content_of({"age": {"role": "quasi", "type": "number"}})
    ages = pl.DataFrame({"age": ["1", "2", "3", None, "\u200b"]})
    given = shoal.stream(policy, reference=ages)
    given.push(ages[:3])
    assert given.flush().height == 3
    with pytest.raises(InputError, match="only empty rows"):
        shoal.stream(policy, reference=ages[3:]).push(ages[:3])


@pytest.mark.parametrize("subject", ["[1, 2]", "[true]", "[.inf]", "[]", "[hh, 2]"])
def test_a_subject_of_what_is_no_text_is_refused_beside_its_data(subject, tmp_path, shoal):
    content = json.dumps(PAIRS).replace('["hh", "m"]', subject)
    (tmp_path / "p.yaml").write_text(content)
    (tmp_path / "t.csv").write_text("hh,m,age\n1,1,30\n1,2,30\n")
    done = shoal("policy", "check", tmp_path / "p.yaml", tmp_path / "t.csv", status=2)
    assert "subject" in done.err
    assert "rename" not in done.err


def test_a_check_says_which_rows_of_nobody_are_left_out(tmp_path, shoal):
    (tmp_path / "p.yaml").write_text(json.dumps(PAIRS))
    (tmp_path / "t.csv").write_text("hh,m,age\n1,1,30\n1,2,30\n,,\n")
    done = shoal("policy", "check", tmp_path / "p.yaml", tmp_path / "t.csv", status=0)
    assert "1 row has no value" in done.err


VISITS = content_of({"patient_id": "drop", "age": AGE, "sex": SEX}, 3)


def visits(numbers=range(40), times=3) -> pl.DataFrame:
    """Visits of as many people, a few of each."""
    people = pl.DataFrame({"patient_id": list(numbers)})
    places = range(people.height)
    ages, sexes = [20 + place * 7 % 60 for place in places], ["mf"[place % 2] for place in places]
    return pl.concat([people.with_columns(age=pl.Series(ages), sex=pl.Series(sexes))] * times)


def codes(certificate) -> list[str]:
    """What is said of whom the promises count."""
    known = ("people-assumed", "written-alike")
    return [one.code for one in certificate.warnings if one.code in known]


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
    assert {*codes(done.certificate)} == {"people-assumed"}
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


@pytest.mark.parametrize("is_named", [False, True])
def test_an_audit_and_a_ledger_warn_of_people_as_the_publication_does(is_named, tmp_path):
    """Patients are counted by rows, or each of them is spelled in three ways."""
    rows, role = visits(), "drop"
    if is_named:
        names = [way.format(n) for way in ("p{}", "P{}", "0P{}") for n in range(40)]
        rows, role = rows.with_columns(patient_id=pl.Series(names)), "subject"
    policy = shoal.Policy.of(content_of({"patient_id": role, "age": AGE, "sex": SEX}, 3))
    done = shoal.publish(rows, policy)
    expected = ["written-alike" if is_named else "people-assumed"]
    assert codes(done.certificate) == expected
    assert codes(shoal.republish(rows, policy, tmp_path / "ledger").certificate) == expected
    assert codes(shoal.audit(done.data, policy, rows, trace=done.trace)) == expected
    rows.write_csv(tmp_path / "rows.csv")
    done.data.write_csv(tmp_path / "out.csv")
    assert codes(shoal.audit(tmp_path / "out.csv", policy, tmp_path / "rows.csv")) == expected
    assert codes(shoal.audit(done.data, policy)) == []
    shown = done.data.with_columns(patient_id=rows["patient_id"])
    subject = "patient_id" if is_named else None
    by_columns = shoal.audit(shown, quasi=["age", "sex"], k=3, subject=subject)
    assert codes(by_columns) == expected


def test_a_stream_warns_once_that_records_are_counted(folder, shoal):
    (folder / "p.json").write_text(json.dumps(VISITS))
    visits().write_csv("s.csv")
    command = ("s.csv", "-p", "p.json", "-o", "o.csv", "--checkpoint", "state")
    for _ in range(2):
        done = shoal("stream", *command, status=0)
        assert done.err.count("'patient_id'") == 1
        certificate = Certificate.load(folder / "o.csv.certificate.json")
        assert codes(certificate) == ["people-assumed"]


def resumed(stream):
    again = shoal.stream(VISITS)
    again.restore(stream.snapshot())
    return again


@pytest.mark.parametrize("first", [1, 50, 119])
def test_a_stream_that_resumes_warns_of_what_its_first_records_show(first):
    begun = shoal.stream(VISITS)
    begun.push(visits()[:first])
    later = resumed(begun)
    later.push(visits()[first:])
    with pytest.warns(shoal.ReleaseWarning, match="'patient_id'") as said:
        later.flush()
    assert len(said) == 1


def test_a_stream_judges_its_first_records_once():
    stream = shoal.stream(VISITS)
    with pytest.warns(shoal.ReleaseWarning, match="'patient_id'") as said:
        stream.push(visits(range(700)))
    assert len(said) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        later = resumed(stream)
        later.push(visits(range(700)))
        later.flush()


def test_marks_above_a_letter_are_sorted_in_time_that_grows_with_their_number():
    """Python alone would sort these for an hour."""
    above, below, times = "\u0301", "\u0323", 400_000
    name = "a" + (above + below) * times
    assert person_name(name) == "\u1ea1" + below * (times - 1) + above * times
    assert fold(name) == "a"


def test_a_number_with_a_plus_or_with_marks_of_thousands_is_spelled_otherwise():
    spelled = ["1,000", "1'000", "1\u2019000", "+1 000", "01,000.0", "+1000"]
    others = ["1,00", "1 0000", "1,000,00", "+", "+a", "a 1,000", "1,000 a"]
    assert bare(pl.Series([*spelled, *others])).to_list() == ["1000"] * len(spelled) + others
