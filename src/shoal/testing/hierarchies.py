"""What every hierarchy maker must keep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.errors import InputError
from shoal.protocols import HierarchyMaker
from shoal.testing.matrices import SECRET

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
