"""Which method to take: the least loss, unless one that is as good takes half the time."""

from dataclasses import dataclass, field

import pytest

from shoal.advise.comparison import recommend


@dataclass(frozen=True)
class Ranked:
    label: str
    loss: float
    seconds: float
    k: int = 5
    measured: dict = field(default_factory=dict)


def test_the_least_loss_is_taken_and_the_next_is_named():
    advice = recommend([Ranked("a", 0.1, 3.0, 10), Ranked("b", 0.12, 0.1, 10)], 10, 3)
    assert (advice.method, advice.k) == ("a", 10)
    assert advice.why == (
        "of 2 methods that keep every promise it loses least, 10.00 % of the detail; next is b"
        " with 12.00 %"
    )
    assert str(advice) == f"take a at k = 10: {advice.why}"


def test_one_that_loses_hardly_more_in_half_the_time_goes_first():
    advice = recommend([Ranked("a", 0.1, 4.0), Ranked("b", 0.105, 2.0)], 5, 3)
    assert advice.method == "b"
    assert advice.why == (
        "it keeps every promise, too, and loses 10.50 % of the detail, hardly more than a with"
        " 10.00 %; it takes 2 instead of 4 CPU seconds"
    )


@pytest.mark.parametrize(
    ("ranked", "taken"),
    [
        ([Ranked("a", 0.1, 4.0), Ranked("b", 0.1051, 2.0)], "a"),
        ([Ranked("a", 0.1, 4.0), Ranked("b", 0.1, 2.01)], "a"),
        ([Ranked("a", 0.1, 0.9), Ranked("b", 0.1, 0.001)], "a"),
        ([Ranked("a", 0.1, 9.0), Ranked("b", 0.101, 4.0), Ranked("c", 0.102, 1.0)], "c"),
    ],
    ids=["a little more loss", "a little less saved", "milliseconds", "the fastest of several"],
)
def test_what_is_saved_decides_where_it_is_enough(ranked, taken):
    assert recommend(ranked, 5, 3).method == taken


def test_the_only_one_is_said_to_be_alone():
    assert recommend([Ranked("a", 0.25, 1.0)], 5, 3).why == (
        "it alone keeps every promise, and loses 25.00 % of the detail"
    )
    assert recommend([], 5, 3) is None


def test_the_only_one_that_was_compared_is_not_said_to_beat_others():
    assert recommend([Ranked("a", 0.25, 1.0)], 5, 1).why == (
        "no other method was compared; it loses 25.00 % of the detail"
    )
