"""What every measure of utility or risk must keep."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from shoal.data.classes import Classes
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.release import Release, is_starred, label_classes, read_columns
from shoal.data.schema import Attribute, Kind, Role, Schema
from shoal.data.table import Table
from shoal.data.true_values import TrueValues
from shoal.errors import InputError
from shoal.protocols import HierarchyMaker, Metric, PartedMetric
from shoal.testing.methods import SECRET


def small_releases(seed: int = 0) -> Iterator[Release]:
    """Releases of all kinds: with suppressed records, people, labels and originals, or without."""
    rng = np.random.default_rng(seed)
    for records in (0, 1, 7, 40):
        for share in (0.0, 0.2, 1.0):
            ages = rng.integers(0, 100, records)
            towns = rng.integers(0, 6, records)
            kept = rng.random(records) >= share
            release = _release(ages, towns, kept)
            yield release
            people = np.unique(rng.integers(0, max(1, records // 2), records), return_inverse=True)
            yield replace(
                release,
                classes=replace(release.classes, subjects=people[1].astype(np.int32)),
                required_k=3,
                label=rng.integers(0, 3, records),
                originals={"age": TrueValues.of(ages.astype(np.float64))},
            )


def _release(ages: np.ndarray, towns: np.ndarray, kept: np.ndarray) -> Release:
    """Ages in tens, towns as they are or by region; (n,) each, kept: who is not suppressed."""
    tree = Hierarchy.from_paths([[f"town-{i}", f"region-{i // 3}", "*"] for i in range(6)])
    attributes = (
        Attribute("age", Role.QUASI, Kind.NUMBER, domain=(0.0, 100.0)),
        Attribute("town", Role.QUASI, hierarchy=tree),
    )
    spans = [f"[{a // 10 * 10}, {a // 10 * 10 + 9}]" for a in ages.tolist()]
    places = [f"town-{t}" if t < 3 else f"region-{t // 3}" for t in towns.tolist()]
    cells = {
        name: [text if keep else "*" for text, keep in zip(texts, kept.tolist(), strict=True)]
        for name, texts in (("age", spans), ("town", places))
    }
    frame = pl.DataFrame(cells, schema={"age": pl.String, "town": pl.String})
    columns, findings = read_columns(Table(frame), Schema(attributes))
    assert not findings, findings
    labels, count = label_classes(columns, is_starred(columns, "*"))
    return Release(columns, Classes(labels, count))


def check_metric(metric: Metric, seed: int = 0) -> None:
    """A number or None on every release, the same for any order of the records."""
    rng = np.random.default_rng(seed)
    for release in small_releases(seed):
        score = metric.score(release)
        is_number = isinstance(score, (int, float)) and not isinstance(score, bool)
        assert score is None or is_number, f"{metric.name}: {score!r} is neither a number nor None"
        assert score is None or not np.isnan(score), f"{metric.name}: NaN; None says 'not known'"
        assert metric.score(release) == score, f"{metric.name}: asked twice, it answers differently"
        again = metric.score(_in_order(release, rng.permutation(release.records)))
        same = again == score if score is None or again is None else np.isclose(again, score)
        assert same, f"{metric.name}: the order of the records changes it"
        if isinstance(metric, PartedMetric):
            check_sums(metric, release, rng)


def check_sums(metric: PartedMetric, release: Release, rng: np.random.Generator) -> None:
    """Added up over parts of the classes, whatever parts, it is exactly what it is of all."""
    classes = release.classes
    of_class = np.append(rng.integers(0, 3, classes.count), 0)
    of_record = of_class[classes.labels]
    known = {
        name: replace(values, whole_table=np.bincount(values.codes, minlength=len(values.values)))
        for name, values in release.originals.items()
    }
    parts = []
    for number in rng.permutation(3).tolist():
        part = _in_order(replace(release, originals=known), np.flatnonzero(of_record == number))
        place = np.append(np.cumsum(of_class[:-1] == number) - 1, -1)
        labels = place[part.classes.labels].astype(np.int32)
        count = int((of_class[:-1] == number).sum())
        parts.append(replace(part, classes=replace(part.classes, labels=labels, count=count)))
    total, whole = metric.total([metric.part(part) for part in parts]), metric.score(release)
    assert total == whole, f"{metric.name}: {total} in parts, {whole} of the whole"


def _in_order(release: Release, rows: np.ndarray) -> Release:
    classes = release.classes
    subjects = None if classes.subjects is None else classes.subjects[rows]
    return replace(
        release,
        columns=tuple(replace(column, codes=column.codes[rows]) for column in release.columns),
        classes=replace(classes, labels=classes.labels[rows], subjects=subjects),
        label=None if release.label is None else release.label[rows],
        originals={name: values.take(rows) for name, values in release.originals.items()},
    )


# What every hierarchy maker must keep.


ODD_ARGUMENTS: tuple[Any, ...] = (None, True, -1, 0, 1.5, "", [], {}, [None], {"": None}, [[]])
ODD_VALUES = (f"{SECRET}-0", f" {SECRET}", f"{SECRET};|\t")


def check_hierarchy_maker(
    maker: type[HierarchyMaker], argument: Any, values: Sequence[str], seed: int = 0
) -> Hierarchy:
    """A leaf for every value, the same for any order of them; odd input refused by an InputError.

    argument: what a policy gives the maker. values: texts that its rule has a leaf for. Returns the
    hierarchy of these values.
    """
    kind = maker.kind
    rule = maker.from_spec(argument)
    texts = np.array(list(values), dtype=object)
    unmatched = rule.values_without_leaf(texts)
    assert unmatched.shape == (len(texts),), f"{kind}: says of each value whether it has a leaf"
    assert unmatched.dtype == bool, f"{kind}: values_without_leaf is bool"
    assert not unmatched.any(), f"{kind}: has no leaf for values that were to have one"
    hierarchy = rule.make(texts)
    assert (hierarchy.leaf_codes(texts) >= 0).all(), f"{kind}: a value has no leaf"
    mixed = np.random.default_rng(seed).permutation(len(texts))
    assert rule.make(texts[mixed]) == hierarchy, f"{kind}: the order of the values matters"
    rule.make(texts[:0])
    _check_odd_values(rule, texts)
    for odd in ODD_ARGUMENTS:
        _check_odd_argument(maker, odd)
    return hierarchy


def _check_odd_values(rule: HierarchyMaker, texts: np.ndarray) -> None:
    """A value without a leaf is refused by count, not by name."""
    odd = np.concatenate([texts, np.array(ODD_VALUES, dtype=object)])
    unmatched = rule.values_without_leaf(odd)
    made, message = None, ""
    try:
        made = rule.make(odd)
    except InputError as refusal:
        message = str(refusal)
    assert SECRET not in message, f"{rule.kind}: shows a value in '{message}'"
    assert (made is None) == unmatched.any(), (
        f"{rule.kind}: values_without_leaf and make disagree about which values have a leaf"
    )
    if made is not None:
        assert (made.leaf_codes(odd) >= 0).all(), f"{rule.kind}: a value has no leaf"


def _check_odd_argument(maker: type[HierarchyMaker], argument: Any) -> None:
    try:
        maker.from_spec(argument)
    except InputError:
        pass
    except Exception as broken:
        raise AssertionError(
            f"{maker.kind}: {argument!r} as its argument raises {type(broken).__name__}, not"
            " InputError"
        ) from broken
