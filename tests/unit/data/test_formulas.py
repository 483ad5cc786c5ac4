"""Cells that a spreadsheet would compute: found, told, and escaped one-to-one."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sample_policies import content_of
from shoal.connectors.dialect import escaped, formula_cells, unescaped
from shoal.data.table import Table

AGE = {"role": "quasi", "type": "number"}
BY_HAND = {
    "=1+0": "'=1+0",
    "-5": "-5",
    "'=1": "''=1",
    "''@x": "'''@x",
    "+4.5e-3": "+4.5e-3",
    "-": "'-",
    "-5..3": "'-5..3",
    "@x": "'@x",
    "\tx": "'\tx",
    "'quoted'": "'quoted'",
    "a=b": "a=b",
    "": "",
    "[-5, 3]": "[-5, 3]",
}


@pytest.mark.parametrize("cell", BY_HAND)
def test_cells_are_escaped_as_by_hand(cell):
    for dtype in (pl.String, pl.Categorical):
        frame = pl.DataFrame({"c": pl.Series([cell], dtype=dtype)})
        assert escaped(frame)["c"].to_list() == [BY_HAND[cell]]


@given(st.lists(st.text(alphabet="'=+-@\t\r5.ea", max_size=5), min_size=1, unique=True))
def test_escaping_is_one_to_one_and_leaves_no_formula(cells):
    frame = pl.DataFrame({"c": cells, "=n": cells})
    written = escaped(frame)
    assert formula_cells(Table(written)) == {}
    assert written["c"].n_unique() == len(cells)
    assert unescaped(written).equals(frame)


def test_names_numbers_and_missing_cells():
    frame = pl.DataFrame({"=sum": [1, 2], "x": ["=a", None], "y": ["-1", "-2"]})
    assert formula_cells(Table(frame)) == {"=sum": 1, "x": 1}
    assert escaped(frame).columns == ["'=sum", "x", "y"]
    assert escaped(frame)["x"].to_list() == ["'=a", None]
    assert escaped(frame)["'=sum"].dtype == pl.Int64


def test_publish_tells_of_delimited_text_alone(folder, shoal):
    Path("in.csv").write_text('age,note\n20,=1+1\n20,"-5"\n20,"@x"\n20,ok\n')
    Path("p.yaml").write_text(yaml.safe_dump(content_of({"age": AGE, "note": "plain"}, 2)))
    for name, count in (("out.csv", 1), ("out.parquet", 0)):
        shown = shoal(*f"publish in.csv -p p.yaml -o {name} -q".split(), status=0)
        warnings = json.loads(Path(f"{name}.certificate.json").read_text())["warnings"]
        assert [warning["code"] for warning in warnings].count("formula-cells") == count
        said = "column 'note': 2 cells read as spreadsheet formulas; see 'write: formulas'"
        assert shown.err.count(said) == count


def test_an_infinite_number_reads_as_a_formula_to_publish_and_verify_alike(folder, shoal):
    pl.DataFrame({"age": [20, 20], "x": [float("-inf"), 1.5]}).write_parquet("in.parquet")
    Path("p.json").write_text(json.dumps(content_of({"age": AGE, "x": "plain"}, 2)))
    shown = shoal(*"publish in.parquet -p p.json -o out.csv -q".split(), status=0)
    assert "column 'x': 1 cell reads as a spreadsheet formula" in shown.err
    assert shoal(*"verify out.csv --policy p.json -q".split()).status == 0
