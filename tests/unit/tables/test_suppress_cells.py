"""Local suppression: strict k, a star is a value of its own, and few cells are starred."""

from __future__ import annotations

from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.reports.text import summary


def policy(names, k=2, **attributes):
    quasi = {name: {"role": "quasi"} | attributes.get(name, {}) for name in names}
    return {
        "version": 1,
        "attributes": quasi,
        "promises": [{"model": "k-anonymity", "k": k}],
        "method": {"name": "suppress-cells"},
        "render": {"order": "input"},
    }


def suppressed(frame, **more):
    return shoal.publish(frame, policy(frame.columns, **more)).data


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.integers(2, 4))
def test_every_cell_is_the_value_or_a_star_and_k_people_show_the_same(seed, k):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(k, 40))
    frame = pl.DataFrame({name: rng.integers(0, 4, n) for name in "abc"}).cast(pl.String)
    numbers = {"c": {"type": "number"}}
    shown = suppressed(frame, k=k, **numbers)
    for name in frame.columns:
        for own, cell in zip(frame[name], shown[name], strict=True):
            assert cell in (own, "*")
    groups = Counter(shown.iter_rows())
    assert min(groups.values()) >= k
    rows = [*zip(shown.iter_rows(), frame.iter_rows(), strict=True)]
    for group in groups:
        members = [own for cells, own in rows if cells == group]
        for place, cell in enumerate(group):
            assert (cell == "*") == (len({own[place] for own in members}) > 1)


def test_starred_cells_are_counted_by_column_and_printed():
    frame = pl.DataFrame({"a": [*"xxyy"], "b": [*"1234"]})
    release = shoal.publish(frame, policy(frame.columns))
    assert release.certificate["starred"] == {"b": 4}
    line = "single cells suppressed: b 4"
    assert line in summary(release.certificate).splitlines()
    same = shoal.publish(frame, policy(["a"]) | {"other": "drop"})
    assert "starred" not in same.certificate


def stars(labels, codes):
    """Cells that are starred where members of a class differ."""
    found = 0
    for c in set(labels):
        members = codes[[i for i, label in enumerate(labels) if label == c]]
        found += len(members) * int((members.min(axis=0) < members.max(axis=0)).sum())
    return found


def partitions(n, k):
    """All ways to put n records into classes of k at least."""

    def placed(labels, used):
        if len(labels) == n:
            if min(Counter(labels).values()) >= k:
                yield labels
            return
        for c in range(used + 1):
            yield from placed([*labels, c], max(used, c + 1))

    yield from placed([], 0)


def test_nearly_as_few_cells_as_can_be_are_starred():
    found = least = 0
    for seed in range(12):
        codes = np.random.default_rng(seed).integers(0, 3, (7, 4))
        frame = pl.DataFrame(codes, schema=[*"abcd"]).cast(pl.String)
        found += int(sum((suppressed(frame)[name] == "*").sum() for name in "abcd"))
        least += min(stars(labels, codes) for labels in partitions(7, 2))
    assert least <= found <= 1.1 * least


@pytest.mark.parametrize("important", ["a", "b"])
def test_a_column_of_a_larger_weight_is_starred_less(important):
    frame = pl.DataFrame({"a": [*"uuvv"], "b": [*"xyxy"]})
    shown = suppressed(frame, **{important: {"weight": 9}})
    assert shown[important].to_list() == frame[important].to_list()


def test_classes_that_are_repaired_still_show_stars():
    frame = pl.DataFrame({"a": [*"uuvv"], "ill": [*"ffgg"]})
    content = policy(["a"]) | {"attributes": {"a": {"role": "quasi"}, "ill": {"role": "sensitive"}}}
    content["promises"] = [{"model": "l-diversity", "attribute": "ill", "l": 2}]
    assert set(shoal.publish(frame, content).data["a"]) == {"*"}
