"""Columns whose cells have no one text: refused where they are needed, else simply dropped."""

import io
import json
import sys
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from sample_policies import content_of
from shoal.cli.main import status_of
from shoal.connectors import files
from shoal.connectors.dialect import Reading

POLICY = content_of({"age": "quasi"}, other="drop")
AGES = [1, 1, 2, 2]
PEOPLE = pd.DataFrame({"age": AGES})
HOURS = pa.array([pa.MonthDayNano([0, 0, 1]), None] * 2, pa.month_day_nano_interval())
INTERVALS = pa.table({"age": AGES, "odd": HOURS})
WIDE = pa.table({"age": AGES, "odd": pa.array([Decimal(1)] * 4, pa.decimal256(76, 2))})
ODD = {
    "dicts": PEOPLE.assign(odd=[{"a": 1}, [2], ValueError(), {3}]),
    "structs": pl.DataFrame({"age": AGES, "odd": [{"a": [1]}] * 4}),
    "objects": pl.DataFrame({"age": AGES}).with_columns(
        pl.Series("odd", [object()] * 4, dtype=pl.Object)
    ),
    "sets and lists": pl.DataFrame({"age": AGES}).with_columns(
        pl.Series("odd", [{1}, {1}, [2], None], dtype=pl.Object)
    ),
    "decimals of 76 digits": WIDE,
    "a stream of such decimals": WIDE.to_reader(),
    "intervals": INTERVALS,
    "intervals in pandas": INTERVALS.to_pandas(types_mapper=pd.ArrowDtype),
    "a stream of intervals": INTERVALS.to_reader(),
    "lists of intervals": pa.table({"age": AGES, "odd": pa.array([[HOURS[0]]] * 4)}).to_reader(),
    "extension types": pa.table(
        {
            "age": AGES,
            "odd": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([0] * 4, pa.int8())),
        }
    ),
    "days beyond all calendars": pa.table(
        {"age": AGES, "odd": pa.array([2**31 - 1] * 4, pa.int32()).cast(pa.date32())}
    ),
    "moments at the end of nanoseconds": pl.DataFrame({"age": AGES}).with_columns(
        odd=pl.lit(2**63 - 1).cast(pl.Datetime("ns"))
    ),
}


@pytest.mark.parametrize("frame", ODD.values(), ids=ODD.keys())
def test_a_dropped_column_may_hold_anything(frame):
    assert shoal.publish(frame, POLICY).data.shape == (4, 1)
    assert shoal.publish(frame, quasi="age", k=2, drop="odd").certificate.holds
    assert shoal.risk(frame, POLICY)


CONVERT = "; convert them to numbers (float) or text (str)"
NAMED = {
    "fractions": (pd.Series([Fraction(1, 3)] * 4), f"Fraction objects{CONVERT}"),
    "fractions and none": (pd.Series([None, Fraction(1, 3)] * 2), f"Fraction objects{CONVERT}"),
    "paths": (pd.Series([Path("a")] * 4), f"{type(Path()).__name__} objects{CONVERT}"),
    "complex": (pd.Series([1j] * 4), f"values of the type complex128{CONVERT}"),
    "sparse complex": (
        pd.Series(pd.arrays.SparseArray([0, 1j] * 2)),
        f"values of the type complex128{CONVERT}",
    ),
    "durations": (
        pd.Series(pd.to_timedelta([1] * 4)),
        "durations; give numbers, such as their days, or drop the column",
    ),
    "bytes": (
        pd.Series([b"a"] * 4),
        "bytes, UUIDs, or decimals of more than 38 digits; give text or numbers",
    ),
    "uuids": (
        pd.Series([UUID(int=1)] * 4),
        "bytes, UUIDs, or decimals of more than 38 digits; give text or numbers",
    ),
    "lists": (pd.Series([[1]] * 4), "lists or objects; give plain values"),
    "objects": (pl.Series([{1}] * 4, dtype=pl.Object).alias("odd"), f"set objects{CONVERT}"),
}


@pytest.mark.parametrize(("cells", "what"), NAMED.values(), ids=NAMED.keys())
def test_what_has_no_one_text_is_named_by_its_type_with_a_way_out(cells, what):
    make = pl.DataFrame if isinstance(cells, pl.Series) else pd.DataFrame
    with pytest.raises(shoal.InputError) as refused:
        shoal.publish(make({"odd": cells, "age": AGES}), quasi=["odd", "age"], k=2)
    assert str(refused.value) == f"frame: column 'odd' holds {what}"


STAYS = pl.DataFrame({"stay": [timedelta(days=row % 5) for row in range(60)], "age": [*range(60)]})
DURATIONS = {
    "pandas": STAYS.to_pandas(),
    "objects": STAYS.to_pandas().astype({"stay": object}),
    "categories": STAYS.to_pandas().astype({"stay": "category"}),
    "polars": STAYS,
    "pyarrow": STAYS.to_arrow(),
}


@pytest.mark.parametrize("kind", DURATIONS)
@pytest.mark.parametrize("verb", [shoal.propose_policy, shoal.profile], ids=["propose", "profile"])
def test_durations_are_named_before_a_policy_is_proposed_and_as_days_they_are_numbers(verb, kind):
    frame = DURATIONS[kind]
    if verb is shoal.propose_policy and kind in ("pandas", "polars", "pyarrow"):
        stay = verb(frame).policy.model.attributes["stay"]
        assert stay.role == "drop"
    else:
        said = r"'stay' holds durations; give numbers, .* or drop"
        with pytest.raises(shoal.InputError, match=said):
            verb(frame)
    days = STAYS.with_columns(pl.col("stay").dt.total_days())
    assert shoal.propose_policy(days).policy.model.attributes["stay"].type == "number"
    assert verb(STAYS.drop("stay"))


@pytest.mark.skipif(np.dtype(np.longdouble).itemsize == 8, reason="no wider float here")
def test_numbers_that_are_too_wide_are_named_by_their_type():
    wide = pd.DataFrame({"age": np.arange(4).astype(np.longdouble)})
    with pytest.raises(shoal.InputError, match=r"'age' holds values of the type float\d+; convert"):
        shoal.publish(wide, quasi="age", k=2)


@pytest.mark.parametrize("frame", ODD.values(), ids=ODD.keys())
def test_a_column_that_is_needed_is_refused_by_its_name(frame):
    plain = {"policy": {**POLICY, "other": "plain"}}
    for call, more in ((shoal.propose_policy, {}), (shoal.profile, {}), (shoal.publish, plain)):
        with pytest.raises(shoal.InputError, match="column 'odd'"):
            call(frame, **more)


@pytest.mark.parametrize("kind", ["intervals", "intervals in pandas", "a stream of intervals"])
def test_intervals_of_arrow_are_refused_as_durations(kind):
    with pytest.raises(shoal.InputError, match=r"'odd' holds durations; give numbers, .* or drop"):
        shoal.publish(ODD[kind], quasi=["age", "odd"], k=2)


def test_an_interval_of_duckdb_is_dropped_and_nothing_panics_aloud(capfd):
    duckdb = pytest.importorskip("duckdb")
    stays = duckdb.sql("select range % 2 as age, to_hours(range) as stay from range(4)")
    released = shoal.publish(stays, quasi="age", k=2, drop="stay")
    assert isinstance(released.data, pl.DataFrame)
    with pytest.raises(shoal.InputError, match="column 'stay' holds durations"):
        shoal.propose_policy(stays)
    assert "panicked" not in capfd.readouterr().err


def test_without_pyarrow_a_stream_of_intervals_is_refused_and_nothing_panics_aloud(
    monkeypatch, capfd
):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(shoal.InputError, match="can't read, such as intervals; leave them out"):
        shoal.publish(INTERVALS.to_reader(), quasi="age", k=2, drop="odd")
    assert "panicked" not in capfd.readouterr().err


@pytest.mark.parametrize("name", ["", "\0", "\udcff"])
def test_a_name_that_is_none_is_refused(name):
    frame = PEOPLE.set_axis(pd.Index([name], dtype=object), axis=1)
    with pytest.raises(shoal.InputError, match=r"has no name|is not a text"):
        shoal.publish(frame, {**POLICY, "other": "plain"})


def test_names_that_are_the_same_as_text_are_refused_and_others_need_be_no_text():
    for names in (["age", 0, "0"], ["age", "0", "0"]):
        with pytest.raises(shoal.InputError, match="'0' occurs twice") as refused:
            shoal.publish(PEOPLE.assign(b=1).assign(a=2).set_axis(names, axis=1), POLICY)
        assert refused.value.__suppress_context__  # no library's traceback above it
    odd = pd.Series([object()] * 4)
    frame = pd.concat([PEOPLE["age"], odd.rename(("a", 1)), odd.rename(None)], axis=1)
    assert shoal.publish(frame, POLICY).data.shape == (4, 1)


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "t.jsonl"])
def test_files_are_read_alike(folder, capsys, name):
    frame = pl.DataFrame({"age": AGES, "odd": [[1, 2]] * 4})
    write = {"t.parquet": frame.write_parquet, "t.arrow": frame.write_ipc}
    write.get(name, frame.write_ndjson)(name)
    policy = (
        "attributes: {age: {role: quasi}}\nversion: 1\npromises: [{model: k-anonymity, k: 2}]\n"
    )
    for number, rest in enumerate(("other: drop", "")):
        (folder / "p.yaml").write_text(policy + rest)
        assert (
            status_of(["publish", name, "-p", "p.yaml", "-o", f"{number}.csv", "-q"]) == 2 * number
        )
    assert "column 'odd' holds lists" in capsys.readouterr().err


@pytest.mark.parametrize(("people", "are_in_one_line"), [(2, False), (40, False), (40, True)])
def test_objects_that_are_keyed_by_people_are_counted_in_one_line(
    tmp_path, people, are_in_one_line
):
    keyed = [{f"Ana Secret {number}": {"age": number, "sex": "F"}} for number in range(people)]
    lines = [{key: of for one in keyed for key, of in one.items()}] if are_in_one_line else keyed
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(shoal.InputError) as refused:
        files.read(str(path))
    assert refused.value.said == [
        f"file '{path}': {people} columns hold lists or objects; give plain values"
    ]


def test_each_of_a_few_columns_is_named(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"age": 1, "visits": [1], "codes": ["a"]}\n{"age": 2, "visits": [2]}\n')
    with pytest.raises(shoal.InputError) as refused:
        files.read(str(path))
    assert ["visits" in one for one in refused.value.said] == [True, False]


@pytest.mark.parametrize("dtype", [pl.Float32, pl.Float64])
def test_zero_is_one_value_whatever_its_sign(dtype):
    values = [10.0, 0.0, 0.0, -0.0, None, float("nan")]
    asked = POLICY | {
        "attributes": {"age": {"role": "quasi"}, "score": {"role": "sensitive"}},
        "promises": [{"model": "l-diversity", "attribute": "score", "l": 4}],
    }
    frame = pl.DataFrame({"age": [1] * 6, "score": pl.Series(values, dtype=dtype)})
    with pytest.raises(shoal.InfeasibleError, match="the nearest that holds is l = "):
        shoal.publish(frame, asked)


@pytest.mark.parametrize("cell", [["a", 1], {"id": "a"}])
def test_lists_and_objects_beside_texts_in_json_lines_are_no_people(tmp_path, cell):
    path = tmp_path / "t.jsonl"
    lines = [{"odd": "[a, 1]", "age": 1}, {"odd": cell, "age": 1}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(shoal.InputError, match="column 'odd' holds lists"):
        files.read(str(path))
    assert files.read(str(path), reading=Reading(dropped=frozenset({"odd"}))).frame.shape == (2, 2)
    path.write_text("".join(json.dumps(lines[0]) + "\n" for _ in lines))
    assert files.read(str(path)).frame["odd"].to_list() == ["[a, 1]"] * 2


def test_whole_numbers_beside_a_fraction_in_json_lines_keep_all_digits(tmp_path):
    cells = ["0.5", *(str(2**53 + each) for each in range(9))]
    path = tmp_path / "t.jsonl"
    path.write_text("".join(f'{{"post": {cell}, "age": 0.5}}\n' for cell in cells))
    frame = files.read(str(path)).frame
    assert frame["post"].to_list() == cells
    assert frame["age"].dtype == pl.Float64


def test_periods_and_intervals_of_pandas_are_what_it_shows():
    months = pd.Series(["2020-01", "2020-02", "2020-03", None], dtype="period[M]")
    frame = pd.DataFrame({"month": months, "span": pd.interval_range(0, 4)})
    frame["age"] = pd.cut(range(4), [-1, 1, 5])
    table = shoal.publish(frame, quasi="age", plain=["month", "span"], k=2).data
    assert sorted(table["month"].dropna()) == ["2020-01", "2020-02", "2020-03"]
    assert sorted(table["span"]) == ["(0, 1]", "(1, 2]", "(2, 3]", "(3, 4]"]
    assert table["age"].to_list() == ["(-1, 1]"] * 2 + ["(1, 5]"] * 2
    proposed = shoal.propose_policy(frame).content["attributes"]["age"]
    assert proposed["order"] == ["(-1, 1]", "(1, 5]"]
    assert str(frame["month"].dtype) == "period[M]"


MONTHS = pd.Series(pd.period_range("2019-11", periods=12, freq="M"))
SPANS = pd.Series(pd.interval_range(0, 12))
IN_ORDER = {
    "months": (MONTHS, "[2019-11, 2020-04]"),
    "months as objects": (MONTHS.astype(object), "[2019-11, 2020-04]"),
    "months as categories": (MONTHS.astype("category"), "[2019-11, 2020-04]"),
    "quarters": (MONTHS.dt.asfreq("Q"), "[2019Q4, 2020Q1]"),
    "weeks": (MONTHS.dt.asfreq("W"), "[2019-11-25/2019-12-01, 2020-04-27/2020-05-03]"),
    "intervals": (SPANS, "[(0, 1], (5, 6]]"),
    "intervals as categories": (pd.Series(pd.Categorical(SPANS)), "[(0, 1], (5, 6]]"),
}


@pytest.mark.parametrize(("cells", "first"), IN_ORDER.values(), ids=IN_ORDER)
def test_periods_and_intervals_that_others_could_know_are_spans_in_their_order(cells, first):
    frame = pd.DataFrame({"when": cells}).sample(frac=1, random_state=1)
    release = shoal.publish(frame, quasi="when", k=5)
    assert release.data["when"].min() == first
    order = release.policy.model.attributes["when"].order
    assert order == [str(cell) for cell in sorted(cells.astype(object).unique())]


def test_days_stay_dates_and_intervals_that_overlap_labels():
    days = pd.Series(pd.period_range("2020-01-01", periods=12, freq="D"))
    release = shoal.publish(pd.DataFrame({"when": days}), quasi="when", k=12)
    assert set(release.data["when"]) == {"2020-01"}
    spans = pd.Series(pd.arrays.IntervalArray.from_tuples([(0, 2), (1, 3), None]))
    frame = pd.DataFrame({"when": pd.concat([spans] * 4, ignore_index=True), "age": 1})
    release = shoal.publish(frame, quasi=["when", "age"], k=4)
    assert sorted(set(release.data["when"].fillna(""))) == ["", "(0.0, 2.0]", "(1.0, 3.0]"]


def test_sparse_numbers_are_numbers():
    frame = pd.DataFrame({"age": pd.arrays.SparseArray([0, 1, 2, 0, 5, 0])})
    release = shoal.publish(frame, quasi="age", k=3)
    assert sorted(set(release.data["age"])) == ["0", "[1, 5]"]
    assert isinstance(frame["age"].dtype, pd.SparseDtype)


def in_an_unnamed_zone() -> bytes:
    content = io.BytesIO()
    moments = pa.array([0] * 4, pa.timestamp("us", "+05:30"))
    pq.write_table(pa.table({"age": AGES, "when": moments}), content)
    return content.getvalue()


FAULTS = {
    "text.parquet": (b"sex,age\nf,1\n", "is text; name it .csv or .jsonl"),
    "stream.arrow": (b"\xff\xff\xff\xff" + 99 * b"\0", "is a stream of Arrow; write"),
    "arrow.parquet": (b"ARROW1\0\0", "holds Arrow; name it .arrow"),
    "cut.parquet": (b"PAR1\0\0", "is not a complete parquet file; write it again"),
    "zone.parquet": (in_an_unnamed_zone(), "holds moments in a zone that is named by its distance"),
}


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("memory", [(), ("--memory", "500MB")], ids=["", "memory"])
def test_a_file_that_is_no_table_is_refused_by_what_it_is(folder, capsys, name, memory):
    content, said = FAULTS[name]
    (folder / name).write_bytes(content)
    (folder / "p.json").write_text(json.dumps(POLICY))
    assert status_of(["publish", name, "-p", "p.json", "-o", "o.csv", *memory]) == 2
    assert f"shoal: file '{name}': {said}" in capsys.readouterr().err


def test_two_columns_of_one_name_in_parquet_are_said(tmp_path):
    table = pa.table([pa.array(AGES), pa.array(AGES)], names=["age", "age"])
    pq.write_table(table, tmp_path / "twice.parquet")
    with pytest.raises(shoal.InputError, match="two columns have one name; rename"):
        files.read(str(tmp_path / "twice.parquet"))


def test_decimals_of_76_digits_in_parquet_are_dropped_or_refused_by_name(tmp_path):
    pq.write_table(WIDE, tmp_path / "wide.parquet")
    path = str(tmp_path / "wide.parquet")
    assert shoal.publish_file(path, POLICY, str(tmp_path / "out.csv")).holds
    with pytest.raises(shoal.InputError, match=r"column 'odd' holds .* 38 digits"):
        files.read(path)


@pytest.mark.parametrize("dtype", ["Int64", object])
def test_long_whole_numbers_beside_missing_ones_stay_as_they_are_in_pandas(dtype):
    numbers = [None if row % 7 == 0 else 1_573_791_070_060_460_914 + row for row in range(40)]
    frame = pd.DataFrame({"age": [20] * 40, "number": pd.Series(numbers, dtype=dtype)})
    released = shoal.publish(frame, quasi=["age"], plain=["number"], k=3)
    shown = released.data["number"]
    assert str(shown.dtype) == "Int64"
    published = [None if cell is pd.NA else cell for cell in shown]
    assert published == [numbers[row] for row in released.trace]


@pytest.mark.parametrize("name", ["out.parquet", "out.arrow"])
def test_points_in_time_keep_their_zone_and_pass_verify(tmp_path, name):
    start = pd.Timestamp("2020-01-01", tz="Europe/Berlin")
    frame = pd.DataFrame({"age": [20] * 40, "when": pd.date_range(start, periods=40, freq="min")})
    released = shoal.publish(frame, quasi=["age"], plain=["when"], k=3)
    released.save(tmp_path / name)
    assert [c.name for c in shoal.verify(tmp_path / name) if c.ok is False] == []
    shown = shoal.read_release(tmp_path / name).data["when"]
    assert shown.to_list() == [frame["when"][row] for row in released.trace]
