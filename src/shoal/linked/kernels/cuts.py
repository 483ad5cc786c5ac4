"""Cutting people into classes whose bundles cost little to publish alike.

A class is priced before its rows are aligned: as if the j-th row of every member went to slot j.
"""

from typing import NamedTuple

import numpy as np

from shoal.data.numba_kernels import inlined, inner, outer
from shoal.search.kernels.spans import span_loss

# columns of Bundles.tables
CELL, COLUMNS, COST, SPAN, SLOT = range(5)

SMALLEST_PART = 32
"""Of the members of a node, the smallest part that a cut may leave: so the depth stays low."""


class FlatBundles(NamedTuple):
    """People with the rows of all tables, whatever hangs from what.

    people: (n, p) int32 codes. cells: int32, the rows' codes, table after table, row by row.
    start: (tables, n + 1) int64, where the rows of each person begin, and the end.
    tables: (tables, 5) int64: its first cell, its columns and the first of them in `costs`; where
        spans and losses of its slots begin in `CutSpace`.
    weight: (tables,) float64, what a row costs that has no slot.
    costs: as in `spans`, for the people's columns and then each table's.
    """

    people: np.ndarray
    cells: np.ndarray
    start: np.ndarray
    tables: np.ndarray
    weight: np.ndarray
    costs: np.ndarray


class CutSpace(NamedTuple):
    """What some members have in common: (spans,) int32 bounds of the people's columns, then of each
    table's slots; (slots,) float64, what each slot costs; and prices of prefixes and suffixes.
    """

    lo: np.ndarray
    hi: np.ndarray
    loss: np.ndarray
    count: np.ndarray  # (tables,) int64, slots
    sum: np.ndarray  # (tables,) float64, what a table's slots cost
    rows: np.ndarray  # (tables,) int64
    price: np.ndarray  # (2, n) float64
    is_left: np.ndarray  # (people,) bool
    moved: np.ndarray  # (n,) int32


@outer
def cut(order, values, k, bands, bundles, spans, losses):
    """Cuts every band until no part has 2k people; returns where classes begin, and the end.

    order: (dimensions + 1, n) int32, in each row the people of a band, then of the next, by
        ascending value of a dimension; last by number. Moved so that every class is a run.
    values: (dimensions, n) int32, by person.
    bands: (bands + 1,) int64, where each begins, and the end.
    spans, losses: how many bounds and losses a template of everybody may have.
    """
    n, tables = order.shape[1], len(bundles.weight)
    space = CutSpace(
        np.empty(spans, np.int32),
        np.empty(spans, np.int32),
        np.empty(losses, np.float64),
        np.empty(tables, np.int64),
        np.empty(tables, np.float64),
        np.empty(tables, np.int64),
        np.empty((2, n), np.float64),
        np.empty(n, np.bool_),
        np.empty(n, np.int32),
    )
    ends = np.empty(n // k + len(bands) + 1, np.int64)
    ends[0] = 0
    found = 1
    stack = np.empty(n // k + len(bands) + 1, np.int64)
    for band in range(len(bands) - 1):
        start = bands[band]
        stack[0] = bands[band + 1]
        still_open = 1
        while still_open > 0:
            end = stack[still_open - 1]
            if end - start < 2 * k:
                ends[found] = end
                found += 1
                start = end
                still_open -= 1
            else:
                dimension, place = _cheapest(order, values, start, end, k, bundles, space)
                _part(order, start, end, dimension, place, space)
                stack[still_open] = start + place
                still_open += 1
    return ends[:found].copy()


@inner
def _cheapest(order, values, start, end, k, bundles, space):
    """The dimension and the size of the left part with the least price of both parts."""
    m = end - start
    best, dimension, place = np.inf, 0, k
    least = max(k, m // SMALLEST_PART)
    for j in range(order.shape[0] - 1):
        _price_prefixes(order[j], start, 1, m, bundles, space, space.price[0])
        _price_prefixes(order[j], end - 1, -1, m, bundles, space, space.price[1])
        for p in range(least, m - least + 1):
            # where it leaves as many classes as there can be, or parts different values
            if p % k > m % k and not _changes(order[j], values[j], start + p):
                continue
            total = space.price[0, p - 1] + space.price[1, m - p - 1]
            if total < best:
                best, dimension, place = total, j, p
    return dimension, place


@inlined
def _changes(order, value, place):
    return value[order[place - 1]] != value[order[place]]


@inner
def _part(order, start, end, dimension, place, space):
    """Moves the first `place` people by one dimension to the front, in every dimension's order."""
    for i in range(start, end):
        space.is_left[order[dimension, i]] = i < start + place
    for j in range(order.shape[0]):
        left, right = start, 0
        for i in range(start, end):
            person = order[j, i]
            if space.is_left[person]:
                order[j, left] = person
                left += 1
            else:
                space.moved[right] = person
                right += 1
        for i in range(right):
            order[j, left + i] = space.moved[i]


@inlined
def _price_prefixes(order, begin, step, m, bundles, space, price):
    """price[i]: of a class of the first i + 1 of m people, from `begin` on, forward or back."""
    for i in range(m):
        person = order[begin + step * i]
        _admit(person, i == 0, bundles, space)
        price[i] = _price(i + 1, bundles, space)


@inlined
def _admit(person, is_first, bundles, space):
    """A template grows so that it covers one person more."""
    p = bundles.people.shape[1]
    for j in range(p):
        code = bundles.people[person, j]
        space.lo[j] = code if is_first else min(space.lo[j], code)
        space.hi[j] = code if is_first else max(space.hi[j], code)
    for t in range(len(bundles.weight)):
        first = bundles.start[t, person]
        rows = bundles.start[t, person + 1] - first
        if is_first:
            space.count[t], space.sum[t], space.rows[t] = rows, 0.0, 0
        losses = space.loss[bundles.tables[t, SLOT] :]
        while space.count[t] > rows:
            space.count[t] -= 1
            space.sum[t] -= losses[space.count[t]]
        space.rows[t] += rows
        d = bundles.tables[t, COLUMNS]
        cell = bundles.tables[t, CELL] + first * d
        span = bundles.tables[t, SPAN]
        for s in range(space.count[t]):
            grows = is_first
            for _ in range(d):
                code = bundles.cells[cell]
                if is_first:
                    space.lo[span] = space.hi[span] = code
                elif code < space.lo[span]:
                    space.lo[span] = code
                    grows = True
                elif code > space.hi[span]:
                    space.hi[span] = code
                    grows = True
                cell += 1
                span += 1
            if grows:
                loss = 0.0
                for q in range(d):
                    place, column = span - d + q, bundles.tables[t, COST] + q
                    loss += span_loss(space.lo[place], space.hi[place], column, bundles.costs)
                space.sum[t] += loss if is_first else loss - losses[s]
                losses[s] = loss


@inlined
def _price(m, bundles, space):
    """What the template costs for m people."""
    total = 0.0
    for j in range(bundles.people.shape[1]):
        total += m * span_loss(space.lo[j], space.hi[j], j, bundles.costs)
    for t in range(len(bundles.weight)):
        total += m * space.sum[t]
        total += bundles.weight[t] * (space.rows[t] - m * space.count[t])
    return total
