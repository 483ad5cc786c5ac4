"""Plain truth about people with several rows: recursion and permutations, no arrays.

A person is (codes, tables): tables[t] is the list of its rows, each a tuple of codes.
`widths[c]` says what a span (lo, hi) of column c costs; the people's columns come first.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations, permutations, product


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


# Whom people are taken for, of whose drugs any m are known, each with its visit.


def candidates(published, own, m):
    """The fewest published people whom a person fits, for any m of its drugs.

    own: (age, visits), a visit (cost, doses); published: as many people as there are, with spans
    (lo, hi) in the place of numbers.
    """
    drugs = [(v, dose) for v, (_, doses) in enumerate(own[1]) for dose in doses]
    return min(
        sum(any(shows(published, one, own, known)) for one in published)
        for known in combinations(drugs, min(m, len(drugs)))
    )


def shows(published, one, own, known):
    """For each way to take a published person for another one, whether it shows these drugs."""
    age, visits = one
    alike = [other for other in published if looks(other) == looks(one)]
    for rows in permutations(range(len(own[1])), len(visits)):
        spans = [(age, own[0])]
        spans += [(cost, own[1][row][0]) for (cost, _), row in zip(visits, rows, strict=True)]
        if not all(lo <= number <= hi for (lo, hi), number in spans):
            continue
        asked = Counter((rows.index(v), dose) for v, dose in known if v in rows)
        ways = {
            drug: ways_of(drug[1], below(alike, visits[drug[0]][0]))
            for drug in asked
            if [cost for cost, _ in visits].count(visits[drug[0]][0]) == 1
        }
        ways = {drug: cells for drug, cells in ways.items() if cells}
        for chosen in product(*ways.values()):
            wanted = Counter()
            for drug, cell in zip(ways, chosen, strict=True):
                wanted[drug[0], cell] += asked[drug]
            yield all(
                visits[slot][1].count(cell)
                >= min(times, max(doses.count(cell) for doses in below(alike, visits[slot][0])))
                for (slot, cell), times in wanted.items()
            )


def looks(person):
    age, visits = person
    return age, sorted(cost for cost, _ in visits)


def below(people, cost):
    """What each of these people shows below the visits of one cost."""
    return [doses for _, visits in people for own, doses in visits if own == cost]


def ways_of(dose, shown):
    """The cells that may show a dose: the one that is its value, or else all that cover it."""
    cells = {cell for doses in shown for cell in doses}
    if (dose, dose) in cells:
        return [(dose, dose)]
    return [(lo, hi) for lo, hi in cells if lo <= dose <= hi]
