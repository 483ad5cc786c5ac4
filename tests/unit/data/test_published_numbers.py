"""Ends, middles and means beside published cells, and columns with types."""

import json
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import shoal as library
from sample_policies import content_of
from shoal.data.numbers import (
    exact_sum,
    exact_text,
    fall_together,
    loses_digits,
    parse_numbers,
    weighted_sum,
)
from shoal.data.release import read_column
from shoal.data.schema import Attribute, Kind, Render, Role, Schema
from shoal.data.table import encode_text
from shoal.errors import InputError
from shoal.policy.binding.notation import spans_of_bins, spans_of_dates, spans_of_numbers

ROWS = {
    "age": ["20", "29", "15", "29", "", ""],
    "height": ["12,5", "13,7", "1,5", "1,6", "1,7", "1,8"],
    "born": ["2024-02-01", "2024-02-29", "2023-01-05", "2024-12-31", "2020-01-01", "2020-01-01"],
    "pay": ["41.50", "7", "8", "9", "10", "11"],
}
BINS = {"bins": [0, 10, 20]}
MONDRIAN = {"name": "mondrian"}
PERIODS = {"dates": ["day", "month", "quarter", "year", "decade"]}


AGE = {"role": "quasi", "type": "number", "domain": [0, 120]}
PAY = {"role": "sensitive", "type": "number"}


def policy(**changes) -> dict:
    rules = {"height": BINS, "born": PERIODS}
    made = {name: {"role": "quasi", "hierarchy": rule} for name, rule in rules.items()}
    columns = {"age": AGE | {}, **made, "pay": PAY | {}}  # which some tests change
    content = content_of(columns, render={"order": "input"})
    return content | {"method": MONDRIAN, "write": {"numbers": ["lo", "hi", "mid"]}} | changes


@pytest.fixture
def published(folder, shoal):
    """Publishes rows under a policy, both changed, and returns the certificate."""

    def publish(output: str, *more: str, rows=ROWS, separator=",", **changes) -> dict:
        frame = pl.DataFrame(rows)
        if separator == ",":
            frame = frame.with_columns(pl.col(r"^height$").str.replace(",", "."))
        frame.write_csv("in.csv", separator=separator)
        Path("policy.yaml").write_text(yaml.safe_dump(policy(**changes)))
        result = shoal("publish", "in.csv", "-p", "policy.yaml", "-o", output, "--replace", *more)
        assert result.status == 0, result.err
        return json.loads(Path(f"{output}.certificate.json").read_text())

    return publish


@pytest.fixture
def audited(shoal):
    """Audits a release beside its original: its exit status and faults."""

    def audit(output: str):
        command = ("audit", output, "-p", "policy.yaml", "--original", "in.csv", "--json")
        result = shoal(*command)
        assert result.out, result.err
        return result.status, json.loads(result.out)["faults"]

    return audit


KEPT = 0, {"uncovered": 0, "changed": 0, "derived": 0}
NAMES = (
    "age age_lo age_hi age_mid height height_lo height_hi height_mid born born_lo born_hi "
    "born_mid pay"
).split()


def test_ends_and_middles_stand_behind_each_number_and_an_audit_computes_them_again(
    published, audited
):
    certificate = published("out.csv")
    released = pl.read_csv("out.csv", infer_schema=False)
    assert released.columns == NAMES
    days = ["2024-02", "2024-02-01", "2024-02-29", "2024-02-15"]
    shown = ["[20, 29]", "20", "29", "24.5", "[10, 20)", "10", "20", "15", *days, "41.50"]
    assert list(released.row(0)) == shown
    assert released.row(5)[:4] == (None,) * 4
    columns = {column["name"]: column for column in certificate["columns"]}
    assert list(columns) == NAMES
    assert columns["age_mid"]["derived_from"] == "age"
    assert columns["age_mid"]["technique"] == "derived"
    assert certificate["faults"] == KEPT[1]
    assert audited("out.csv") == KEPT
    text = Path("out.csv").read_text()
    Path("out.csv").write_text(text.replace("20,29,24.5", "20,29,24.6", 1))
    assert audited("out.csv") == (1, KEPT[1] | {"derived": 1})


def test_a_release_without_them_is_not_the_one_that_was_asked_for(published, shoal):
    published("out.csv", "--write", "numbers=lo")
    result = shoal("audit", "out.csv", "-p", "policy.yaml")
    assert result.status == 2
    assert "columns 'age_hi', 'age_mid'" in result.err
    assert shoal("audit", "out.csv", "-p", "policy.yaml", "--write", "numbers=lo").status == 0


def test_they_have_decimal_commas_and_local_dates_where_the_input_has(published, audited):
    rows = {name: [cell.replace(".", ",") for cell in cells] for name, cells in ROWS.items()}
    rows["born"] = [".".join(reversed(day.split("-"))) for day in ROWS["born"]]
    published("out.csv", rows=rows, separator=";", read={"decimal": ",", "dates": "%d.%m.%Y"})
    row = pl.read_csv("out.csv", infer_schema=False, separator=";").row(0, named=True)
    assert (row["age_mid"], row["born_mid"], row["born"]) == ("24,5", "15.02.2024", "2024-02")
    assert row["pay"] == "41,50"
    assert audited("out.csv") == KEPT


def test_a_mean_is_shown_where_one_is_published():
    asked = policy(write={"numbers": ["lo", "mean"]})
    asked["attributes"]["age"]["render"] = "both"
    frame = pl.DataFrame(ROWS)[:2].with_columns(height=pl.lit("12"))
    data = library.publish(frame, asked).data
    assert data.row(0, named=True)["age"] == "24.5 [20, 29]"
    assert data["age_mean"].to_list() == [24.5, 24.5]
    assert data["age_lo"].to_list() == [20, 20]
    asked["attributes"]["age"]["render"] = "mean"
    data = library.publish(frame, asked).data
    assert data["age_mean"].to_list() == [24.5, 24.5]
    assert data["age"].to_list() == [24.5, 24.5]
    assert "age_lo" not in data.columns


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda p: p["attributes"].update(age_lo={"role": "drop"}), "column 'age_lo' exists"),
        (lambda p: p["write"]["numbers"].append("mean"), "'mean' needs a number with 'render"),
    ],
)
def test_names_that_are_taken_and_means_that_nothing_shows(change, says):
    asked = policy()
    change(asked)
    frame = pl.DataFrame(ROWS).with_columns(height=pl.lit("12"))
    if "age_lo" in asked["attributes"]:
        frame = frame.with_columns(age_lo=pl.lit("1"))
    with pytest.raises(InputError, match=says):
        library.publish(frame, asked)


@pytest.mark.parametrize(
    ("spans_of", "cell", "lo", "hi", "mid"),
    [
        (spans_of_dates, "2024-02-01", "2024-02-01", "2024-02-01", "2024-02-01"),
        (spans_of_dates, "2024-02-01T10:30:00", "2024-02-01", "2024-02-01", "2024-02-01"),
        (spans_of_dates, "2024-02-01T10", "2024-02-01", "2024-02-01", "2024-02-01"),
        (spans_of_dates, "2023-02", "2023-02-01", "2023-02-28", "2023-02-14"),
        (spans_of_dates, "2024-Q4", "2024-10-01", "2024-12-31", "2024-11-15"),
        (spans_of_dates, "2024", "2024-01-01", "2024-12-31", "2024-07-01"),
        (spans_of_dates, "2020s", "2020-01-01", "2029-12-31", "2024-12-31"),
        (spans_of_dates, "*", "", "", ""),
        (spans_of_dates, "2024-13", "", "", ""),
        (spans_of_bins, "[12.5, 13.7)", "12.5", "13.7", "13.1"),
        (spans_of_bins, "7", "7", "7", "7"),
        (spans_of_bins, "*", "", "", ""),
        (spans_of_bins, "[a, b)", "", "", ""),
    ],
)
def test_ends_and_middle_of_a_period_or_bin(spans_of, cell, lo, hi, mid):
    assert spans_of([cell]) == [(lo, hi, mid, "")]


def test_a_long_label_that_is_no_bin_takes_no_time():
    assert spans_of_bins(["1" * 10**6 + "x"])[0].lo == ""


def test_parquet_has_numbers_and_dates_or_text_if_asked_for(published, audited):
    published("out.parquet")
    released = pl.read_parquet("out.parquet")
    types = {"pay": pl.Float64, "age": pl.String, "age_lo": pl.Int64, "age_mid": pl.Float64}
    assert (types | {"born_lo": pl.Date}).items() <= dict(released.schema).items()
    assert released["pay"].to_list() == [41.5, 7, 8, 9, 10, 11]
    assert released["born_lo"][0] == date(2024, 2, 1)
    assert audited("out.parquet") == KEPT
    released.with_columns(pay=pl.col("pay") + 0.5).write_parquet("out.parquet")
    assert audited("out.parquet") == (1, KEPT[1] | {"changed": 6})
    published("out.parquet", "--write", "types=text")
    released = pl.read_parquet("out.parquet")
    assert set(released.dtypes) == {pl.String}
    assert released["pay"][0] == "41.50"


@pytest.mark.parametrize(
    ("pay", "dtype"),
    [
        (["41", "7", ""], pl.Int64),
        (["41.5", "7", ""], pl.Float64),
        (["41", "7", "?"], pl.String),
        (["9007199254740993", "7", "8"], pl.Int64),
        (["9007199254740992.0", "7", "8"], pl.Float64),
        (["9007199254740993.0", "7", "8"], pl.String),
    ],
)
def test_a_column_stays_text_where_a_type_would_lose_something(published, audited, pay, dtype):
    rows = ROWS | {"pay": [*pay, "9", "10", "11"]}
    published("out.arrow", rows=rows, missing_values=["", "?"])
    assert pl.read_ipc("out.arrow").schema["pay"] == dtype
    assert audited("out.arrow") == KEPT


@pytest.mark.parametrize(
    ("heights", "dtype"),
    [
        (["7", "8", "12"], pl.Int64),
        (["7", "07", "12"], pl.String),
        (["1.5", "2", "12"], pl.String),
        (["0.5", "1.5", "12.5"], pl.Float64),
    ],
)
def test_bins_are_numbers_only_where_each_reads_as_it_is_written(tmp_path, heights, dtype):
    height = {"role": "quasi", "hierarchy": BINS}
    asked = content_of({"height": height, "pay": "plain"}, method=MONDRIAN)
    frame = pl.DataFrame({"height": heights * 2, "pay": ["x"] * 6})
    out = tmp_path / "out.parquet"
    frame.write_csv(tmp_path / "in.csv")
    library.publish_file(str(tmp_path / "in.csv"), asked, str(out))
    released = pl.read_parquet(out)
    assert released["height"].dtype == dtype
    assert library.audit(released, asked, frame).holds


def test_parquet_says_what_its_columns_are_and_is_the_same_twice(published):
    published("1.parquet")
    published("2.parquet")
    assert Path("1.parquet").read_bytes() == Path("2.parquet").read_bytes()
    pyarrow = pytest.importorskip("pyarrow.parquet")
    said = json.loads(pyarrow.ParquetFile("1.parquet").metadata.metadata[b"shoal"])
    assert [column["name"] for column in said["columns"]] == NAMES
    age = {"name": "age", "role": "quasi", "type": "number", "technique": "interval"}
    derived = {"role": "derived", "technique": "derived", "derived_from": "age"}
    assert said["columns"][:2] == [age, age | {"name": "age_lo"} | derived]
    dialect = {"decimal": ".", "dates": None, "intervals": "[{lo}, {hi}]", "mark": "*"}
    assert said["dialect"] == dialect


def test_a_release_is_read_with_intervals_as_numbers(published):
    published("out.csv")
    release = library.read_release("out.csv")
    assert release.data["age"][0] == "[20, 29]"
    assert [column["name"] for column in release.columns] == NAMES
    intervals = library.read_release("out.csv", numbers="interval").data
    assert intervals["age"].to_list()[0] == {"lo": 20.0, "hi": 29.0}
    assert intervals["age"].to_list()[5] is None
    assert intervals["age"].null_count() == 2
    in_pandas = library.read_release("out.csv", numbers="interval", to="pandas").data["age"]
    assert in_pandas.isna().tolist() == [False] * 4 + [True] * 2
    middles = library.read_release("out.csv", numbers="mid", to="pandas").data
    assert middles["age"][0] == 24.5
    assert middles["pay"][0] == 41.5
    assert middles["age_lo"][0] == 20.0
    table = library.read_release("out.csv", to="pyarrow").data
    assert table.column_names == NAMES


TENS = {"hierarchy": {"bins": {"width": 10, "levels": 4}}}


@pytest.mark.parametrize("settings", [TENS, {"type": "number", **TENS}])
def test_bins_are_read_as_numbers(settings, folder):
    ages = pl.DataFrame({"age": [20, 21, 29, 40, 41, 45], "sex": "f"})
    quasi = {"age": settings, "sex": {}}
    release = library.publish(ages, quasi=quasi, other="drop", k=3, method="full-domain")
    assert set(release.data["age"]) == {"[20, 40)", "[40, 60)"}
    release.save("bins.csv")
    read = library.read_release("bins.csv", numbers="mid").data["age"]
    assert set(read) == {30.0, 50.0} == set(release.numbers("mid")["age"])
    ends = library.read_release("bins.csv", numbers="interval").data["age"]
    assert set(ends.struct.field("hi")) == {40.0, 60.0}


def test_means_are_read_where_they_are_shown_and_middles_elsewhere():
    ages, write = AGE | {"render": "both"}, {"numbers": ["lo", "hi", "mid", "mean"]}
    content = content_of({"age": ages, "height": AGE}, 3, write=write)
    people = pl.DataFrame({"age": [20, 21, 28], "height": [60, 61, 70]})
    release = library.publish(people, content)
    assert set(release.data["age"]) == {"23 [20, 28]"}
    assert set(release.numbers("mean")["age"]) == {23.0}
    assert set(release.numbers("mid")["age"]) == {24.0}
    assert set(release.numbers("mean")["height"]) == {65.0}
    derived = [name for name in release.data.columns if "_" in name]
    assert len(derived) == 7
    assert all(release.data[name].dtype.is_numeric() for name in derived)
    audited = library.audit(release.data, content, original=people, trace=release.trace)
    assert audited["faults"]["derived"] == 0


def test_cells_that_show_no_number_are_counted_by_a_warning():
    content = content_of({"age": AGE | {"render": "mean"}}, 3)
    release = library.publish(pl.DataFrame({"age": [20, 21, 28]}), content)
    with pytest.warns(library.ReleaseWarning, match="column 'age': 3 cells are not numbers"):
        assert release.numbers("interval")["age"].struct.field("lo").null_count() == 3


def test_a_release_with_commas_is_read_by_its_certificate(published):
    rows = ROWS | {"pay": ["41,5", "7", "8", "9", "10", "11"]}
    asked = {"read": {"decimal": ","}, "write": {"encoding": "cp1252"}}
    published("out.csv", "--write", "delimiter=|", rows=rows, separator=";", **asked)
    data = library.read_release("out.csv", numbers="mid").data
    assert data["age"][0] == 24.5
    assert data["pay"].to_list()[0] == 41.5


def test_a_file_that_is_not_the_one_certified_is_refused(published):
    published("out.parquet")
    described = library.read_release("out.parquet").columns
    Path("out.parquet.certificate.json").rename("kept.json")
    with pytest.raises(InputError, match="has no certificate beside it"):
        library.read_release("out.parquet")
    alone = library.read_release("out.parquet", check=False, numbers="mid")
    assert alone.certificate is None
    assert [c["name"] for c in alone.columns] == [c["name"] for c in described]
    assert alone.data["age"][0] == 24.5
    library.read_release("out.parquet", "kept.json")
    pl.read_parquet("out.parquet")[::-1].write_parquet("out.parquet")
    with pytest.raises(InputError) as refused:
        library.read_release("out.parquet", "kept.json")
    assert str(refused.value) == (
        "release 'out.parquet': is not the file that its certificate names; fetch both again"
    )
    with pytest.raises(InputError, match="choose one of published, interval, mid, mean"):
        library.read_release("out.parquet", "kept.json", numbers="middle")


LONG = "0." + "0123456789" * 90 + "1"
FAR_OUT = ["9007199254740993", "9007199254740997", "9007199254741001", "9007199254741005"]


def test_ends_keep_digits_that_a_float_loses(published, audited):
    """2**53 + 1 is not a float: its ends must still cover it."""
    age = AGE | {"domain": [2**53 - 2, 2**53 + 18]}
    rows = {"age": FAR_OUT, "pay": ["1", "2", "1", "2"]}
    published("out.csv", rows=rows, attributes={"age": age, "pay": PAY})
    row = pl.read_csv("out.csv", infer_schema=False).row(0, named=True)
    assert row["age"] == f"[{FAR_OUT[0]}, {FAR_OUT[1]}]"
    assert (row["age_lo"], row["age_hi"], row["age_mid"]) == (*FAR_OUT[:2], "9007199254740995")
    assert audited("out.csv") == KEPT
    text = Path("out.csv").read_text()
    wrong = text.replace(f",{FAR_OUT[0]},{FAR_OUT[1]},", f",9007199254740992,{FAR_OUT[1]},", 1)
    Path("out.csv").write_text(wrong)
    assert audited("out.csv") == (1, KEPT[1] | {"derived": 1})


@given(st.integers(-(10**30), 10**30), st.integers(0, 10**30))
def test_ends_are_the_digits_of_their_cell(lo, width):
    render = Render()
    column = pl.Series("x", [f"[{lo}, {lo + width}]", f"{lo}", "*"])
    schema = Schema((), render=render)
    spans = spans_of_numbers(
        read_column(Attribute("x", Role.QUASI, Kind.NUMBER), encode_text(column), schema), render
    )
    ends = dict(zip(encode_text(column).cells, [span[:2] for span in spans], strict=True))
    assert ends[f"[{lo}, {lo + width}]"] == (str(lo), str(lo + width))
    assert ends[f"{lo}"] == (str(lo), str(lo))
    assert ends["*"] == ("", "")


@pytest.mark.parametrize(
    ("text", "plain"),
    [("1e3", "1000"), ("12.50", "12.5"), (" -0 ", "0"), ("1e-999999999", "0"), (".5", "0.5"),
     (LONG, LONG)],
)  # fmt: skip
def test_a_number_is_written_out_and_never_at_great_length(text, plain):
    assert exact_text(text) == plain


@given(st.lists(st.floats(-1e300, 1e300)))
def test_a_sum_is_the_exact_one_rounded_once(numbers):
    assert exact_sum(numbers) == float(sum(map(Fraction, numbers)))
    assert exact_sum(reversed(numbers)) == exact_sum(numbers)


@given(st.lists(st.tuples(st.integers(0, 10**6), st.floats(0, 1))))
def test_a_weighted_sum_rounds_each_product_and_then_the_sum(pairs):
    weights, values = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
    assert weighted_sum(weights, values) == exact_sum(w * v for w, v in pairs)


def test_a_sum_is_the_same_under_every_python():
    assert exact_sum([0.1] * 10) / 10 == 0.1
    assert exact_sum([1e308, 1e308]) == float("inf")


IN_ORDER = {"render": {"order": "input"}}
BIG = content_of(
    {"q": {"role": "quasi", "type": "number"}, "s": {"role": "sensitive"}},
    2,
    method={"name": "full-domain"},
)
FAR = [
    ["1", "2", "3", "4", "9007199254740993", "6"],
    ["9007199254740993", "9007199254740997", "9007199254741003", "9007199254741009"],
    ["-9007199254740993", "0", "1", "2"],
    ["0.12345678901234567890", "0.2", "0.3", "0.98765432109876543210"],
]


@pytest.mark.parametrize("method", ["full-domain", "mondrian"])
@pytest.mark.parametrize("cells", FAR)
def test_published_ends_cover_every_digit(cells, method):
    frame = pl.DataFrame({"q": cells, "s": ["a", "b"] * (len(cells) // 2)})
    asked = BIG | {"method": {"name": method}, "render": {"order": "input"}}
    release = library.publish(frame, asked)
    for shown, true in zip(release.data["q"].cast(pl.String), cells, strict=True):
        lo, _, hi = shown.strip("[]").partition(", ")
        assert Fraction(lo) <= Fraction(true) <= Fraction(hi or lo)
    assert release.certificate["faults"] == {"uncovered": 0, "changed": 0}


@pytest.mark.parametrize(
    ("end", "uncovered"),
    [("9007199254740992", 1), ("9007199254740993", 0), ("9007199254740993.0", 0)],
)
def test_the_audit_tells_ends_apart_that_are_one_float(end, uncovered):
    frame = pl.DataFrame({"q": ["1", "9007199254740993"], "s": ["a", "b"]})
    shown = frame.with_columns(q=pl.lit(f"[1, {end}]"))
    found = library.audit(shown, BIG | IN_ORDER, original=frame)
    assert found["faults"] == {"uncovered": uncovered, "changed": 0}


def test_the_audit_tells_changed_numbers_apart_that_are_one_float():
    asked = {**BIG["attributes"], "s": PAY}
    frame = pl.DataFrame({"q": ["1", "1"], "s": ["9007199254740993", "41"]})
    shown = frame.with_columns(s=pl.Series(["9007199254740992", "41.0"]))
    found = library.audit(shown, BIG | IN_ORDER | {"attributes": asked}, original=frame)
    assert found["faults"]["changed"] == 1


LONG_DECIMALS = [
    ["123456789012345.01", "123456789012345.02", "123456789012345.03", "7.00"],
    ["1.234567890123456001", "1.234567890123456002", "-0.5", "2"],
    ["9007199254740990.9", "1", "2", "3"],
    ["1e-400", "1", "2", "3"],
]
SHORT_DECIMALS = [
    ["0.1", "12345678901.25", "7.00", "1e-7"],
    ["0.30000000000000004", "1.7976931348623157e99", "5e-324", "-0.50"],
]


@pytest.mark.parametrize("output", ["out.csv", "out.parquet"])
@pytest.mark.parametrize("cells", [*LONG_DECIMALS, *SHORT_DECIMALS])
def test_numbers_are_floats_where_these_keep_every_digit(published, audited, output, cells):
    rows = {"age": ["20", "20", "30", "30"], "pay": cells}
    published(output, rows=rows, attributes={"age": AGE, "pay": PAY | {"role": "plain"}})
    assert audited(output) == KEPT
    read = library.read_release(output).data["pay"]
    assert read.dtype == (pl.String if cells in LONG_DECIMALS else pl.Float64)
    assert read.to_list() == (cells if cells in LONG_DECIMALS else [*map(float, cells)])


@pytest.mark.parametrize("output", ["out.csv", "out.parquet"])
@pytest.mark.parametrize("cells", LONG_DECIMALS[:2])
def test_decimals_of_a_frame_are_read_back_digit_by_digit(tmp_path, output, cells):
    kept = [*map(Decimal, cells)]
    frame = pl.DataFrame(
        {"age": [20, 20, 30, 30], "pay": pl.Series(kept, dtype=pl.Decimal(38, 18))}
    )
    release = library.publish(frame, quasi=["age"], plain=["pay"], k=2)
    path = tmp_path / output
    release.save(path)
    mine = [kept[row] for row in release.trace]
    for found in (release.numbers(), library.read_release(path).data):
        assert [*map(Decimal, found["pay"].to_list())] == mine


def test_exponents_beyond_those_of_decimals_are_told_apart_from_0():
    tiny, nought = "1e-999999999999999999999", "0"
    assert loses_digits(pl.Series([tiny, "2.5"]))
    assert not loses_digits(pl.Series(["NaN", "-inf", "2.5", "25e-1"]))
    cells = [tiny, nought, "2"]
    assert fall_together(parse_numbers(cells), cells).tolist() == [True, True, False]
    cells = ["0.0", nought]
    assert not fall_together(parse_numbers(cells), cells).any()


@pytest.mark.parametrize("part", ["mid", "mean"])
def test_middles_and_means_are_floats_of_whatever_digits(published, audited, part):
    rows = {"age": ["0.1234567890123456", "0.9876543210987653"] * 2, "pay": ["1", "2", "1", "2"]}
    age = AGE | ({"render": "both"} if part == "mean" else {})
    columns = {"age": age, "pay": PAY}
    for output in ("out.csv", "out.parquet"):
        published(output, rows=rows, attributes=columns, write={"numbers": ["lo", part]})
        assert audited(output) == KEPT
        read = library.read_release(output).data
        assert read.schema["age_lo"] == read.schema[f"age_{part}"] == pl.Float64
