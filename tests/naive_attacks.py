"""Attacks in plain Python, person by person, class by class: the slow truth.

A release is a list of classes; a class is a list of cells (lo, hi), one to an axis, and a list of
(person, value). An axis is the number of its values. A point is a list of places.
"""

from __future__ import annotations

from itertools import combinations
from math import inf, log, prod

PRIOR = 0.5


def covers(cells, point, known=None):
    axes = range(len(cells)) if known is None else known
    return all(cells[j][0] <= point[j] <= cells[j][1] for j in axes)


def size(cell):
    return cell[1] - cell[0] + 1


def volume(cells, known=None):
    return prod(size(cells[j]) for j in (range(len(cells)) if known is None else known))


def people(members):
    return len({person for person, _ in members})


def having(members, value):
    return len({person for person, other in members if other == value})


def values_of(release):
    return sorted({value for _, members in release for _, value in members})


def marginal(release, axes, j, value, place):
    """P(v | s); value None: for everybody."""
    total, whole = PRIOR, PRIOR * axes[j]
    for cells, members in release:
        count = people(members) if value is None else having(members, value)
        whole += count
        if cells[j][0] <= place <= cells[j][1]:
            total += count / size(cells[j])
    return total / whole


def cell_marginal(release, axes, j, value, cell):
    return sum(marginal(release, axes, j, value, v) for v in range(cell[0], cell[1] + 1))


def scores(release, axes, point, value):
    """Cover, Bayes and deFinetti of one value, the last two up to a factor of the point."""
    likelihood = prod(marginal(release, axes, j, value, point[j]) for j in range(len(axes)))
    bayes = likelihood * sum(having(members, value) for _, members in release)
    covering = [(cells, members) for cells, members in release if covers(cells, point)]
    if not covering:
        return bayes, bayes, bayes
    cover = definetti = 0.0
    for cells, members in covering:
        count = having(members, value)
        cover += count / volume(cells)
        inside = prod(cell_marginal(release, axes, j, value, c) for j, c in enumerate(cells))
        definetti += count * likelihood / inside
    return cover, bayes, definetti


def picked(release, point, own, known):
    """The chance that a record drawn from the densest covering class is the person's."""
    dense = {
        label: people(members) / volume(cells, known)
        for label, (cells, members) in enumerate(release)
        if covers(cells, point, known)
    }
    if not dense:
        return 0.0, 0
    best = [label for label in dense if dense[label] >= max(dense.values()) * (1 - 1e-9)]
    candidates = sum(people(release[label][1]) for label in dense)
    right = 1 / people(release[own][1]) if own in best else 0.0
    return right / len(best), candidates


def membership(release, axes, point):
    density = sum(people(m) / volume(cells) for cells, m in release if covers(cells, point))
    if not density:
        return -inf
    return log(density) - sum(
        log(marginal(release, axes, j, None, point[j])) for j in range(len(axes))
    )


def lifts(release):
    """The lift of every value in every class, with people who have it there."""
    n = sum(people(members) for _, members in release)
    found = []
    for _, members in release:
        for value in {value for _, value in members}:
            whole = sum(having(other, value) for _, other in release)
            count = having(members, value)
            found.append((count / people(members) / (whole / n), count))
    return found


def chance_of_one_value(values, sizes):
    """Share of people in classes of one value over all ways to deal values out; few of them."""
    everybody = range(len(values))
    total = 0.0
    for m in sizes:
        draws = list(combinations(everybody, m))
        total += m * sum(len({values[i] for i in draw}) == 1 for draw in draws) / len(draws)
    return total / sum(sizes)


def owned(release, points, j):
    """Ends of wide cells on an axis that one person of the class has, and all such ends.

    points: by class, (person, point) of each record.
    """
    ends = [
        {person for person, point in points[label] if point[j] == end}
        for label, (cells, _) in enumerate(release)
        if cells[j][0] < cells[j][1]
        for end in cells[j]
    ]
    return sum(len(people) == 1 for people in ends), len(ends)


def isolated(cells, j, place, points):
    """Whether one person of the table has the place and fits all other cells of a class."""
    others = [i for i in range(len(cells)) if i != j]
    fits = {
        person for person, point in points if point[j] == place and covers(cells, point, others)
    }
    return len(fits) == 1


def unlinked(first, second, values):
    """Certain, and right, for who knows a person's class in either of two releases."""
    sure = right = 0.0
    for one, other, truth in zip(first, second, values, strict=True):
        weights = {}
        for value in set(values):
            here = sum(a == one and v == value for a, v in zip(first, values, strict=True))
            there = sum(b == other and v == value for b, v in zip(second, values, strict=True))
            weights[value] = here * there
        sure += sum(weight > 0 for weight in weights.values()) == 1
        best = [value for value in weights if weights[value] == max(weights.values())]
        right += (truth in best) / len(best)
    return sure / len(values), right / len(values)
