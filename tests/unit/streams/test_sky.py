"""Sky: the worked example, and that boxes are regions of the declared domain."""

from fractions import Fraction

import polars as pl
import pytest

from sample_policies import content_of
from shoal.policy.policy import Policy
from stream_cases import policy_of, run, stream_of


def policy(k, attributes, **parameters):
    return Policy.from_dict(
        content_of(attributes, k, method={"name": "sky", **parameters}, missing="reject")
    )


def test_the_worked_example_publishes_halves_of_the_domain():
    """k = 2 in [0, 8]: 1, 7 leave as [0, 8], which is cut at 4; 2, 3 as [0, 4]; 6 waits until it is
    due, and leaves as [0, 8].
    """
    number = {"role": "quasi", "type": "number", "domain": [0, 8]}
    frame = pl.DataFrame({"x": ["1", "7", "2", "3", "6"]})
    found = run(policy(2, {"x": number}, delta=3), frame)
    stated = [(t["seq"], t["kind"], found.rows[t["row"]]["x"]) for t in found.trace]
    assert sorted(stated) == [
        (0, "new", "[0, 8]"),
        (1, "new", "[0, 8]"),
        (2, "new", "[0, 4]"),
        (3, "new", "[0, 4]"),
        (4, "reuse", "[0, 8]"),
    ]


def test_ordinals_are_cut_between_values_and_written_as_in_their_order():
    grade = {"role": "quasi", "type": "ordinal", "order": ["low", "mid", "high", "top"]}
    frame = pl.DataFrame({"x": ["mid", "high", "mid", "mid", "high", "high", "high", "high"]})
    found = run(policy(2, {"x": grade}, delta=4), frame)
    cells = [found.rows[t["row"]]["x"] for t in sorted(found.trace, key=lambda t: t["seq"])]
    assert cells[:6] == ["[low, top]"] * 2 + ["[low, mid]"] * 2 + ["[high, top]"] * 2
    assert cells[6:] == ["high"] * 2


@pytest.mark.parametrize("missing", ["value", "suppress"])
def test_all_bounds_are_halves_of_halves_of_the_domain(missing):
    frame = stream_of(400, people=400, missing=0.05)
    found = run(policy_of("sky", delta=60, missing=missing), frame)
    intervals = [row["age"] for row in found.rows if (row["age"] or "")[:1] == "["]
    assert len(set(intervals)) > 4
    for cell in set(intervals):
        low, high = (Fraction(end) / 100 for end in cell[1:-1].split(", "))
        for end in (low, high):
            assert end.denominator & (end.denominator - 1) == 0  # a power of two
        width = high - low
        assert width.numerator == 1
        assert (low / width).denominator == 1


def test_a_region_is_cut_by_no_record_so_two_streams_share_their_bounds():
    """With cut=median, bounds are values of records; in the middle they are not."""
    shown = {}
    for cut in ("middle", "median"):
        cells = [
            {row["age"] for row in run(policy_of("sky", delta=60, cut=cut), stream_of(300, s)).rows}
            for s in (1, 2)
        ]
        shown[cut] = len(cells[0] & cells[1]) / len(cells[0] | cells[1])
    assert shown["middle"] > 2 * shown["median"]
