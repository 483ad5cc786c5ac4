"""Looking for a row by its place, one by one, is what the attack `order` counts at once."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shoal.auditor.order_kept import nearest_to_place


def slowly(labels: list[int], place: list[float]) -> list[bool]:
    found = []
    for row, label in enumerate(labels):
        distances = [
            abs(other - round(2 * place[row]) / 2)
            for other, its in enumerate(labels)
            if its == label and other != row
        ]
        own = abs(row - round(2 * place[row]) / 2)
        found.append(label >= 0 and all(own < distance for distance in distances))
    return found


@given(st.data())
def test_a_row_is_found_that_no_other_of_its_class_is_as_near_to_its_place_as(data):
    n = data.draw(st.integers(1, 30))
    labels = data.draw(st.lists(st.integers(-1, 4), min_size=n, max_size=n))
    place = data.draw(st.lists(st.integers(0, 2 * n), min_size=n, max_size=n))
    halves = [number / 2 for number in place]
    found = nearest_to_place(np.array(labels), np.array(halves))
    assert found.tolist() == slowly(labels, halves)
