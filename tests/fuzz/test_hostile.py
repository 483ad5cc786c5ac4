"""A slice of `make fuzz HOSTILE=20000`."""

from __future__ import annotations

from fuzz.hostile import run_cases
from fuzz.test_slice import SEED

CASES = 250


def test_whatever_is_read_or_asked_ends_with_a_documented_status_and_nothing_half_written():
    found = list(run_cases(SEED, 0, CASES))
    assert [case for case in found if case[2]] == []
    assert len(found) == CASES
