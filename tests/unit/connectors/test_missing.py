"""Missing values follow one declared rule everywhere."""

from __future__ import annotations

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


def test_value_a_class_that_lacks_the_value_publishes_no_value():
    frame = table(["1", "2", "3", None, None, None])
    published = shoal.publish(frame, policy("value"))
    assert published.data["age"].to_list() == ["[1, 3]"] * 3 + [None] * 3
    assert published.certificate["utility"]["gcp"] == pytest.approx(0.02 / 4)
    assert shoal.audit(published.data, policy("value"), frame, trace=published.trace).holds


def test_value_a_class_that_lacks_it_in_part_publishes_the_mark():
    frame = table(["1", "2", None])
    published = shoal.publish(frame, policy("value"))
    assert published.data["age"].to_list() == ["*"] * 3
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
