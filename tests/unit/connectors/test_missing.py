"""Missing values follow one declared rule everywhere."""

import json

import polars as pl
import pytest

import shoal
from sample_policies import content_of


def policy(missing: str, **more) -> shoal.Policy:
    age = {"role": "quasi", "type": "number", "domain": [0, 100]}
    attributes = {"age": age, "town": "quasi", "ill": "sensitive"}
    asked = content_of(attributes, 3, missing=missing, render={"order": "input"}, **more)
    return shoal.Policy.from_dict(asked)


def table(ages: list, ill: list | None = None) -> pl.DataFrame:
    n = len(ages)
    return pl.DataFrame({"age": ages, "town": ["x"] * n, "ill": ill or (["a", "b", "c"] * n)[:n]})


NAN = pl.DataFrame(
    {
        "age": [float("nan"), 2.0, 3.0, 4.0, None, 5.0],
        "town": ["x"] * 6,
        "ill": [float("nan"), float("nan"), 1.0, 2.0, 3.0, None],
        "more": [float("nan")] * 6,
    }
)
SOURCES = {
    "parquet": lambda folder: NAN.write_parquet(folder / "t.parquet"),
    "arrow": lambda folder: NAN.write_ipc(folder / "t.arrow"),
    "*.parquet": lambda folder: [
        part.write_parquet(folder / f"{i}.parquet") for i, part in enumerate((NAN[:1], NAN[1:]))
    ],
}


@pytest.mark.parametrize("kind", SOURCES)
def test_nan_in_a_file_with_types_counts_as_missing_and_is_said(kind, tmp_path, shoal):
    SOURCES[kind](tmp_path)
    source = tmp_path / (kind if "*" in kind else f"t.{kind}")
    policy("value", other="drop").save(tmp_path / "p.yaml")
    beside, trace = ("-p", tmp_path / "p.yaml"), tmp_path / "trace.jsonl"
    out, said = tmp_path / "o.csv", {"column 'age': 1 NaN counts as missing"}
    said |= {"column 'ill': 2 NaN count as missing"}
    published = shoal("publish", source, *beside, "-o", out, "--trace", trace)
    lines = {one.removeprefix("shoal: ") for one in published.err.splitlines()}
    assert said <= lines
    assert published.err.count("NaN") == 2
    verify = ("verify", out, *beside, "--original", source, "--trace", trace)
    assert shoal(*verify).status == 0
    # of an earlier version, which said nothing of it
    proof = tmp_path / "o.csv.certificate.json"
    content = json.loads(proof.read_text())
    content["warnings"] = [one for one in content["warnings"] if one["code"] != "nan-missing"]
    proof.write_text(json.dumps(content))
    assert shoal(*verify).status == 0


@pytest.mark.parametrize("library", ["polars", "pyarrow", "pandas"])
def test_nan_in_a_frame_is_said_unless_it_is_the_librarys_own_sign_for_missing(library):
    made = {"polars": NAN.clone, "pyarrow": NAN.to_arrow, "pandas": NAN.to_pandas}[library]()
    found = shoal.publish(made, policy("value", other="drop")).certificate.warnings
    columns = [one.column for one in found if one.code == "nan-missing"]
    assert columns == ([] if library == "pandas" else ["age", "ill"])


@pytest.mark.parametrize(
    ("ages", "shown", "loss"),
    [
        (["1", "2", "3", None, None, None], ["[1, 3]"] * 3 + [None] * 3, 0.02 / 4),
        (["1", "2", None], ["*"] * 3, 1 / 2),
    ],
    ids=["no value", "lacked in part"],
)
def test_value_a_class_that_lacks_it_publishes_none_or_the_mark(ages, shown, loss):
    frame = table(ages)
    published = shoal.publish(frame, policy("value"))
    assert published.data["age"].to_list() == shown
    assert published.certificate["utility"]["gcp"] == pytest.approx(loss)
    assert published.certificate["records"]["suppressed"] == 0
    assert shoal.audit(published.data, policy("value"), frame, trace=published.trace).holds


def test_suppress_the_record_stays_and_shows_the_mark_everywhere():
    frame = table(["1", "2", "3", None, None, None])
    published = shoal.publish(frame, policy("suppress"))
    assert published.data.select("age", "town").rows()[3:] == [("*", "*")] * 3
    assert published.data["ill"].to_list() == frame["ill"].to_list()
    records = {"in": 6, "out": 6, "suppressed": 3, "withheld": 0}
    assert published.certificate["records"] == records
    assert published.classes.tolist() == [0, 0, 0, 1, 1, 1]


def test_suppress_too_few_to_hide_among_each_other_withhold_their_sensitive_values():
    """Who lies in no class is known to be the one suppressed record: its disease must not show."""
    frame = table(["1", "2", "3", None])
    published = shoal.publish(frame, policy("suppress"))
    assert published.data["ill"].to_list() == ["a", "b", "c", "*"]
    assert shoal.audit(published.data, policy("suppress"), frame, trace=published.trace).holds


def test_reject_is_an_error_with_counts():
    with pytest.raises(shoal.InputError, match="attribute 'age': 1 record without a value"):
        shoal.publish(table(["1", "2", "3", None]), policy("reject"))


def test_declared_texts_stand_for_no_value():
    frame = table(["1", "2", "3", "?", "?", "?"])
    with pytest.raises(shoal.InputError, match="not a number"):
        shoal.publish(frame, policy("value"))
    published = shoal.publish(frame, policy("value", missing_values=["", "?"]))
    assert published.data["age"].to_list()[3:] == ["?"] * 3
    assert shoal.audit(
        published.data, policy("value", missing_values=["", "?"]), frame, trace=published.trace
    ).holds


@pytest.mark.parametrize("rule", ["value", "suppress"])
@pytest.mark.parametrize(
    ("marker", "cells", "declared"),
    [
        ("-9,0", ["1,5", "2", "3"], {"type": "number", "domain": [-10, 100]}),
        ("01.01.1900", ["1.2.2024", "2.2.2024", "3.2.2024"], {"hierarchy": {"dates": ["month"]}}),
    ],
)
def test_a_text_for_no_value_is_listed_as_it_stands_in_the_file(rule, marker, cells, declared):
    read = {"decimal": ",", "dates": "%d.%m.%Y"}
    asked = policy(rule, missing_values=["", marker], read=read)
    content = asked.model.model_dump(exclude_unset=True)
    content["attributes"]["age"] = {"role": "quasi", **declared}
    asked = shoal.Policy.from_dict(content)
    frame = table([*cells, marker, marker, marker])
    published = shoal.publish(frame, asked)
    shown = published.data["age"].to_list()[3:]
    assert shown == ([marker] if rule == "value" else ["*"]) * 3
    assert shoal.audit(published.data, asked, frame, trace=published.trace).holds


def test_the_mark_in_the_input_is_no_value():
    """A table that was released before and is released again."""
    frame = table(["1", "2", "3", "*", "*", "*"])
    assert shoal.publish(frame, policy("suppress")).certificate["records"]["suppressed"] == 3
    published = shoal.publish(frame, policy("value"))
    assert published.certificate.holds


def test_everybody_suppressed_publishes_nothing_but_marks():
    frame = table([None, None, None, None])
    with pytest.raises(shoal.InfeasibleError):
        shoal.publish(frame, policy("suppress"))
