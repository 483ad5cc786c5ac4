"""Groups that are cut one by one, in a local recoding among owners: what may be cut.

Promise: every group that a cut makes has at least k people, and the asked sensitive values.

A group is a set of rows with a span of cells on every attribute, a node of the hierarchy where
there is one. A cut names, for one attribute of one group, the spans of its parts. Groups are
numbered as they are made, so all owners give them the same numbers.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from shoal.data.schema import Span, Taxonomy
from shoal.fusion.ground import Ground


class LocalCut(NamedTuple):
    """What was, or could be, cut: the group, the attribute, and the parts' spans, ascending."""

    group: int
    attribute: int
    spans: tuple[Span, ...]


def parts_of(cut: LocalCut, codes: np.ndarray) -> np.ndarray:
    """The part that each of these cells goes to; (m,) int."""
    return np.searchsorted([lo for lo, _ in cut.spans[1:]], codes, side="right")


def parts_hold(ground: Ground, rows: np.ndarray, part_of_row: np.ndarray, parts: int) -> bool:
    """Whether each part has k people, and keeps what is asked beyond that."""
    if int(np.bincount(part_of_row, minlength=parts).min()) < ground.k:
        return False
    return ground.keeps(part_of_row, rows)


def best_cut(
    ground: Ground, group: int, attribute: int, span: Span, rows: np.ndarray, codes: np.ndarray
) -> LocalCut | None:
    """The valid cut of a group nearest to halves; None where there is none.

    A number is cut between two neighbours that occur, in the middle, so that no value shows; a
    hierarchy into the children of the lowest node over all rows.
    codes: (m,) cells of the group's rows, in the order of `rows`.
    """
    taxonomy = ground.taxonomies[attribute]
    spans: tuple[Span, ...] | None
    if taxonomy.is_number:
        border = _border(ground, rows, codes)
        spans = None if border is None else ((span[0], border - 1), (border, span[1]))
    else:
        spans = _children_in_use(taxonomy, span, codes)
        if spans is not None:
            part_of_row = parts_of(LocalCut(group, attribute, spans), codes)
            spans = spans if parts_hold(ground, rows, part_of_row, len(spans)) else None
    return None if spans is None else LocalCut(group, attribute, spans)


def _border(ground: Ground, rows: np.ndarray, codes: np.ndarray) -> int | None:
    """The first cell of the upper part."""
    order = np.argsort(codes, kind="stable")
    cells, n = codes[order].astype(np.int64), len(codes)
    left = np.flatnonzero(np.diff(cells)) + 1  # how many people are below each possible border
    left = left[(left >= ground.k) & (left <= n - ground.k)]
    for values, least in ground.diverse:
        ordered = values[rows[order]]
        below = _different_so_far(ordered)[left - 1]
        above = _different_so_far(ordered[::-1])[n - left - 1]
        left = left[(below >= least) & (above >= least)]
    if ground.atoms is not None:
        left = left[~_splits_atoms(ground.atoms[rows[order]], ground.k)[left]]
    if not len(left):
        return None
    at = int(left[np.argmin(np.abs(2 * left - n))])
    return int(cells[at - 1] + cells[at]) // 2 + 1


def _different_so_far(values: np.ndarray) -> np.ndarray:
    """How many different values the first 1, 2, ... of them are; (m,) int."""
    is_first = np.zeros(len(values), dtype=np.int64)
    is_first[np.unique(values, return_index=True)[1]] = 1
    return is_first.cumsum()


def _splits_atoms(atoms: np.ndarray, k: int) -> np.ndarray:
    """Whether a border after the first 0, 1, ... people leaves too few of an atom on a side.

    atoms: (m,) in order. Of an atom with ranks 0 to s - 1, the first rank + 1 are below a border
    right after that person: 1 to k - 1 of them, or of those above, are too few. (m + 1,) bool.
    """
    by_atom = np.argsort(atoms, kind="stable")
    begins = np.flatnonzero(np.diff(atoms[by_atom], prepend=-1))
    sizes = np.diff(np.append(begins, len(atoms)))
    marks = np.zeros(len(atoms) + 2, dtype=np.int64)
    first, last = by_atom[begins], by_atom[begins + sizes - 1]
    kth = by_atom[begins + np.minimum(k, sizes) - 1]
    kth_last = by_atom[begins + np.maximum(sizes - k, 0)]
    np.add.at(marks, first + 1, 1)  # from here on some are below,
    np.add.at(marks, kth + 1, -1)  # from here on k are
    np.add.at(marks, kth_last + 1, 1)  # from here on fewer than k are above,
    np.add.at(marks, last + 1, -1)  # from here on nobody is
    return np.asarray(marks.cumsum()[: len(atoms) + 1] > 0)


def _children_in_use(taxonomy: Taxonomy, span: Span, codes: np.ndarray) -> tuple[Span, ...] | None:
    """The children, in use, of the lowest node over these cells; None where it is a leaf."""
    children = children_of(taxonomy, hull(taxonomy, span, codes))
    if not children:
        return None
    starts = np.array([lo for lo, _ in children])
    used = np.unique(np.searchsorted(starts, codes, side="right") - 1)
    return tuple(children[c] for c in used.tolist())


def children_of(taxonomy: Taxonomy, node: Span) -> list[Span]:
    """The spans of a node's children; a leaf has none."""
    starts = taxonomy.children.get(node)
    if starts is None or node[0] == node[1]:
        return []
    ends = [*starts[1:].tolist(), node[1] + 1]
    return [(lo, end - 1) for lo, end in zip(starts.tolist(), ends, strict=True)]


def nodes_over(taxonomy: Taxonomy, node: Span, cells: Span) -> Iterator[Span]:
    """A node, and below it those that hold all of these cells, down to the lowest."""
    around = [node]
    while around:
        yield around[0]
        children = children_of(taxonomy, around[0])
        around = [c for c in children if c[0] <= cells[0] and cells[1] <= c[1]]


def fits(taxonomy: Taxonomy, span: Span, parts: Sequence[Span]) -> bool:
    """Whether a group with this span can be cut into these parts, as far as anybody knows."""
    if len(parts) < 2:
        return False
    if taxonomy.is_number:
        low, high = parts[0], parts[-1]
        meets = low[0] == span[0] and high[1] == span[1] and low[1] + 1 == high[0]
        return len(parts) == 2 and meets and low[0] <= low[1] and high[0] <= high[1]
    *_, lowest = nodes_over(taxonomy, span, (parts[0][0], parts[-1][1]))
    return set(parts) <= set(children_of(taxonomy, lowest)) and list(parts) == sorted(set(parts))


def hull(taxonomy: Taxonomy, span: Span, codes: np.ndarray) -> Span:
    """The tightest span within this one that holds all cells; of a hierarchy the lowest node."""
    cells = int(codes.min()), int(codes.max())
    if taxonomy.is_number:
        return cells
    *_, lowest = nodes_over(taxonomy, span, cells)
    return lowest


def is_node(taxonomy: Taxonomy, span: Span, within: Span) -> bool:
    """Whether a span lies within another, and is a node where there is a hierarchy."""
    if not within[0] <= span[0] <= span[1] <= within[1]:
        return False
    return taxonomy.is_number or span in nodes_over(taxonomy, within, span)
