"""Plain truth about people with several rows: recursion and permutations, no arrays.

A person is (codes, tables): tables[t] is the list of its rows, each a tuple of codes.
`widths[c]` says what a span (lo, hi) of column c costs; the people's columns come first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations, permutations, product
from math import inf


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


# Whom people are taken for, whatever is known of each table.


@dataclass
class Row:
    """A row with all that hangs from it, by table. counts: of a published one, of how many rows."""

    cells: tuple
    below: dict[str, list[Row]] = field(default_factory=dict)
    counts: dict[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Attacker:
    """Knows the truth about somebody, as far as a policy says, and tries every published person.

    known: by table, what is known of its rows. covers: whether a published cell may be of a value.
    """

    known: Mapping[str, str | int]
    covers: Callable[[str, str], bool]

    def candidates(self, published: list[Row], own: Row) -> int:
        """The fewest published people whom a person may be, for any choice of known rows."""
        some = [id(row) for row in self.some(own)]
        most = min(len(some), next((m for m in self.known.values() if isinstance(m, int)), 0))
        return min(
            sum(self.fits(own, one, {*chosen}) and self.tells_all(own, one) for one in published)
            for chosen in combinations(some, most)
        )

    def some(self, own: Row) -> Iterator[Row]:
        """The rows of a person of which some may be known."""
        for name, rows in own.below.items():
            if isinstance(self.known[name], int):
                yield from rows
            for row in rows:
                yield from self.some(row)

    def fits(self, own: Row, shown: Row, chosen: set[int]) -> bool:
        """Whether a published row may be of a true one with all that hangs from both. chosen: the
        known ones of rows of which some are known.
        """
        if not all(map(self.covers, shown.cells, own.cells)):
            return False
        for name, rows in own.below.items():
            visible, (least, most) = shown.below[name], shown.counts.get(name, (0, inf))
            if self.known[name] in ("all", "count"):
                if not max(least, len(visible)) <= len(rows) <= most:
                    return False
                if not paired(visible, rows, lambda a, b: self._may_be(name, a, b, chosen)):  # noqa: B023
                    return False
            elif self.known[name] != "none" and len(visible) == most:  # nothing is withheld
                asked = [row for row in rows if id(row) in chosen]
                if not paired(asked, visible, lambda b, a: self.fits(b, a, chosen)):
                    return False
        return True

    def _may_be(self, name: str, shown: Row, own: Row, chosen: set[int]) -> bool:
        return self.fits(self.seen(name, own), self.seen(name, shown), chosen)

    def seen(self, name: str, row: Row) -> Row:
        """A row of a table without the cells that nobody knows."""
        return Row((), row.below, row.counts) if self.known[name] == "count" else row

    def tells_all(self, own: Row, shown: Row) -> bool:
        """Whether all rows agree that hang from rows of which some are known, whose they are or
        not: each published one with another true one, and their number with the counts.
        """
        for above, rows in own.below.items():
            for name in {name for row in rows for name in row.below}:
                if not isinstance(self.known[above], int) or self.known[name] not in (
                    "all",
                    "count",
                ):
                    continue
                visible = shown.below[above]
                spans = [row.counts[name] for row in visible]
                is_whole = len(visible) == shown.counts[above][1]
                most = sum(hi for _, hi in spans) if is_whole else inf
                true = [one for row in rows for one in row.below[name]]
                found = [one for row in visible for one in row.below[name]]
                if not sum(lo for lo, _ in spans) <= len(true) <= most:
                    return False
                if not paired(found, true, lambda a, b: self._may_be(name, a, b, set())):  # noqa: B023
                    return False
        return True


def paired(ones: list[Row], others: list[Row], fits: Callable[[Row, Row], bool]) -> bool:
    """Whether each of some rows can have another one of its own."""
    if not ones:
        return True
    return any(
        fits(ones[0], other) and paired(ones[1:], others[:at] + others[at + 1 :], fits)
        for at, other in enumerate(others)
    )
