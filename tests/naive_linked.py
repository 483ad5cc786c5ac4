"""Plain truth about people with several rows: recursion and permutations, no arrays.

A person is (codes, tables): tables[t] is the list of its rows, each a tuple of codes.
`widths[c]` says what a span (lo, hi) of column c costs; the people's columns come first.
"""

from __future__ import annotations

from itertools import combinations, permutations


def cheapest_assignment(cost):
    """The least total of one row for each slot. cost[s][r]."""
    slots, rows = len(cost), len(cost[0])
    return min(
        sum(cost[s][r] for s, r in enumerate(chosen)) for chosen in permutations(range(rows), slots)
    )


def cheapest_in_order(cost):
    slots, rows = len(cost), len(cost[0])
    return min(
        sum(cost[s][r] for s, r in enumerate(chosen)) for chosen in combinations(range(rows), slots)
    )


def hull_cost(rows, widths):
    """What rows cost that show the same cells."""
    return sum(
        width(min(cells), max(cells))
        for width, cells in zip(widths, zip(*rows, strict=True), strict=True)
    )


def price(members, widths, weights):
    """A class's price if the j-th row of everybody went to slot j."""
    m = len(members)
    columns = len(members[0][0])
    total = m * hull_cost([codes for codes, _ in members], widths[:columns])
    for t, weight in enumerate(weights):
        rows = [tables[t] for _, tables in members]
        least = min(map(len, rows))
        d = next((len(row) for own in rows for row in own), 0)
        mine = widths[columns : columns + d]
        total += sum(m * hull_cost([own[j] for own in rows], mine) for j in range(least))
        total += weight * (sum(map(len, rows)) - m * least)
        columns += d
    return total


def cut(members, values, k, widths, weights, smallest=32):
    """The classes of a band: lists of places among its members, who are in order.

    values[j][i]: of member i in dimension j.
    """

    def parts(places):
        m = len(places)
        if m < 2 * k:
            return [places]
        least, best = max(k, m // smallest), None
        for value in values:
            ordered = sorted(places, key=lambda i: (value[i], i))
            for p in range(least, m - least + 1):
                changes = value[ordered[p - 1]] != value[ordered[p]]
                if p % k > m % k and not changes:
                    continue
                total = sum(
                    price([members[i] for i in part], widths, weights)
                    for part in (ordered[:p], ordered[p:])
                )
                if best is None or total < best[0]:
                    best = total, sorted(ordered[:p]), sorted(ordered[p:])
        return parts(best[1]) + parts(best[2])

    return parts(list(range(len(members))))
