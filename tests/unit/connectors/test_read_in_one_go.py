"""What strangers write is read in a time that grows as its length does, not as its square."""

import time
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from shoal.auditor import as_written
from shoal.connectors import typed
from shoal.data import release
from shoal.fusion.wire import messages
from shoal.policy.binding import spare_rows

LONG = 200_000
QUOTES = b'{"a":"' + LONG * b'\\"'
ENDS = [b"", b'"}', b"\\\n", b"\\"]


def spans(*cells: str) -> list[list[float]]:
    found = release._ordinal_spans(
        SimpleNamespace(order=("a", "b, c", "d")), cells, SimpleNamespace(parts=("[", ", ", "]"))
    )
    return np.transpose(found).tolist()


READ = {
    **{
        f"keys {end}": lambda end=end: typed.require_keys_shared(QUOTES + end, "", None)
        for end in ENDS
    },
    **{f"depth {end}": lambda end=end: messages._depth(QUOTES + end) == 1 for end in ENDS},
    **{f"deep {end}": lambda end=end: typed._lies_deep(33 * b"[" + QUOTES + end) for end in ENDS},
    "sheets": lambda: as_written._sheets(LONG * b"<sheet "),
    "properties": lambda: as_written._texts(LONG * b">"),
    "total": lambda: spare_rows._is_total(f"total ={LONG * ' '}x", pl.Series(["x"])),
    "totals": lambda: spare_rows._is_total(f"total {LONG * 'all '}x", pl.Series(["x"])),
    "interval": lambda: spans(f"[{LONG * ', '}]"),
}


@pytest.mark.parametrize("what", READ)
def test_it_takes_no_longer_than_its_length(what):
    started = time.process_time()
    READ[what]()
    assert time.process_time() - started < 2


def test_what_is_found_is_what_was_found_before():
    assert as_written._sheets(b'<sheet a="" name="b" name="c"/><sheet ><sheet name="d"') == [
        b"b",
        b"d",
    ]
    assert as_written._texts(b"x>a<b> c>d <e><f>") == ["a", "c>d", ""]
    keys = typed._KEY.findall(
        rb'{"a" : "x\"y\\", "b\"c":["d", {"": "e:", "f"' + b'\n:1}]}\n{"g": "h'
    )
    assert [key for key in keys if key] == [b"a", rb"b\"c", b"f", b"g"]
    assert messages._depth(rb'[{"[[": "\"[", "a": [1]}]') == 3
    assert spans("[a, b, c]", "[b, c, d]", "d") == [[0, 1], [1, 2], [2, 2]]
    for text in ("Total (n = 12)", "total: 1 234", "Total  = 5)", " Total"):
        assert spare_rows._is_total(text, pl.Series(["x"]))
    assert not spare_rows._is_total("total = x", pl.Series(["y"]))
