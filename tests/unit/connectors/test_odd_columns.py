"""Columns whose cells have no one text: refused where they are needed, else simply dropped."""

from __future__ import annotations

import json
from decimal import Decimal

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import shoal
from shoal.cli.main import status_of
from shoal.connectors import files
from shoal.connectors.dialect import Reading

POLICY = {
    "version": 1,
    "attributes": {"age": {"role": "quasi"}},
    "other": "drop",
    "promises": [{"model": "k-anonymity", "k": 2}],
}
AGES = [1, 1, 2, 2]
PEOPLE = pd.DataFrame({"age": AGES})
ODD = {
    "periods": PEOPLE.assign(odd=pd.period_range("2020", periods=4, freq="M")),
    "intervals": PEOPLE.assign(odd=pd.cut(range(4), 2)),
    "dicts": PEOPLE.assign(odd=[{"a": 1}, [2], ValueError(), {3}]),
    "structs": pl.DataFrame({"age": AGES, "odd": [{"a": [1]}] * 4}),
    "objects": pl.DataFrame({"age": AGES}).with_columns(
        pl.Series("odd", [object()] * 4, dtype=pl.Object)
    ),
    "sets and lists": pl.DataFrame({"age": AGES}).with_columns(
        pl.Series("odd", [{1}, {1}, [2], None], dtype=pl.Object)
    ),
    "decimals of 76 digits": pa.table(
        {"age": AGES, "odd": pa.array([Decimal(1)] * 4, pa.decimal256(76, 2))}
    ),
    "extension types": pa.table(
        {
            "age": AGES,
            "odd": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([0] * 4, pa.int8())),
        }
    ),
    "days beyond all calendars": pa.table(
        {"age": AGES, "odd": pa.array([2**31 - 1] * 4, pa.int32()).cast(pa.date32())}
    ),
}


@pytest.mark.parametrize("frame", ODD.values(), ids=ODD.keys())
def test_a_dropped_column_may_hold_anything(frame):
    assert shoal.publish(frame, POLICY).data.shape == (4, 1)
    assert shoal.publish(frame, quasi="age", k=2, drop="odd").certificate.holds
    assert shoal.risk(frame, POLICY)


@pytest.mark.parametrize("frame", ODD.values(), ids=ODD.keys())
def test_a_column_that_is_needed_is_refused_by_its_name(frame):
    for call in (shoal.propose_policy, shoal.profile):
        with pytest.raises(shoal.InputError, match="column 'odd'"):
            call(frame)
    with pytest.raises(shoal.InputError, match="column 'odd'"):
        shoal.publish(frame, {**POLICY, "other": "plain"})


@pytest.mark.parametrize("name", ["", "\0", "\udcff"])
def test_a_name_that_is_none_is_refused(name):
    with pytest.raises(shoal.InputError, match=r"has no name|is no text"):
        shoal.publish(
            PEOPLE.set_axis(pd.Index([name], dtype=object), axis=1), {**POLICY, "other": "plain"}
        )


def test_names_that_are_the_same_as_text_are_refused_and_others_need_be_no_text():
    with pytest.raises(shoal.InputError, match="'0' occurs twice"):
        shoal.publish(
            PEOPLE.assign(**{"0": 1}).assign(a=2).set_axis(["age", 0, "0"], axis=1), POLICY
        )
    odd = pd.Series([object()] * 4)
    frame = pd.concat([PEOPLE["age"], odd.rename(("a", 1)), odd.rename(None)], axis=1)
    assert shoal.publish(frame, POLICY).data.shape == (4, 1)


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "t.jsonl"])
def test_files_are_read_alike(tmp_path, monkeypatch, capsys, name):
    monkeypatch.chdir(tmp_path)
    frame = pl.DataFrame({"age": AGES, "odd": [[1, 2]] * 4})
    write = {"t.parquet": frame.write_parquet, "t.arrow": frame.write_ipc}
    write.get(name, frame.write_ndjson)(name)
    policy = (
        "attributes: {age: {role: quasi}}\nversion: 1\npromises: [{model: k-anonymity, k: 2}]\n"
    )
    for number, rest in enumerate(("other: drop", "")):
        (tmp_path / "p.yaml").write_text(policy + rest)
        assert (
            status_of(["publish", name, "-p", "p.yaml", "-o", f"{number}.csv", "-q"]) == 2 * number
        )
    assert "column 'odd' holds lists" in capsys.readouterr().err


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
