"""Attacks in plain Python, person by person, class by class: the slow truth.

A release is a list of classes; a class is a list of cells (lo, hi), one to an axis, and a list of
(person, value). An axis is the number of its values. A point is a list of places.
"""

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
    everybody = [member for _, members in release for member in members]
    n, found = people(everybody), []
    for _, members in release:
        for value in {value for _, value in members}:
            whole = having(everybody, value)
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


def unlinked(newest, others, values):
    """Certain, and right, for who knows a person's classes in each release.

    newest, others: releases as (person, class, value) of every row, class None where suppressed;
    values: by person, the true values of their rows.
    """
    everything = {value for release in (newest, *others) for _, _, value in release}
    sure = right = 0.0
    for person, own in values.items():
        weights = {}
        for value in everything:
            weights[value] = 1
            for release in (newest, *others):
                classes = {label for who, label, _ in release if who == person} - {None}
                weights[value] *= sum(
                    len({who for who, at, v in release if at == label and v == value})
                    for label in classes
                )
        sure += sum(weight > 0 for weight in weights.values()) == 1
        best = [value for value in weights if weights[value] == max(weights.values())]
        right += sum(value in best for value in own) / len(best) / len(own)
    return sure / len(values), right / len(values)


def linked(rows, k):
    """Alone, among fewer than k, certain and right, of people with rows (person, cell, value)."""
    everybody = {person for person, _, _ in rows}
    cell = {at: [(p, v) for p, other, v in rows if other == at] for _, at, _ in rows}
    alone = {p for p, at, _ in rows if people(cell[at]) == 1}
    few = {p for p, at, _ in rows if people(cell[at]) < k}
    certain = {p for p, at, _ in rows if len({v for _, v in cell[at]}) == 1}
    right = sum(guessed(cell[at], value) / len([1 for q, _, _ in rows if q == p])
                for p, at, value in rows)  # fmt: skip
    return tuple(x / len(everybody) for x in (len(alone), len(few), len(certain), right))


def guessed(members, value):
    """The chance that guessing a most frequent value is right about a record with this one."""
    counts = {v: having(members, v) for _, v in members}
    best = [v for v in counts if counts[v] == max(counts.values())]
    return (value in best) / len(best)


def records_of(release, person):
    return [(label, v) for label, (_, members) in enumerate(release) for p, v in members
            if p == person]  # fmt: skip


def everybody_in(release):
    return {person for _, members in release for person, _ in members}


def guesses(release):
    """Baseline, class, certain, certain_right; of several records a random one is met."""
    persons = everybody_in(release)
    baseline = max(
        sum(sum(v == value for _, v in own) / len(own)
            for own in (records_of(release, p) for p in persons))
        for value in values_of(release)
    )  # fmt: skip
    by_class, certain, hits, weight = 0.0, 0, 0.0, 0.0
    for person in persons:
        own = records_of(release, person)
        right = [guessed(release[label][1], value) for label, value in own]
        by_class += sum(right) / len(own)
        sure = [is_sure(release[label][1]) for label, _ in own]
        certain += any(sure)
        hits += sum(r for r, is_so in zip(right, sure, strict=True) if is_so) / len(own)
        weight += sum(sure) / len(own)
    n = len(persons)
    return baseline / n, by_class / n, certain / n, hits / weight if weight else None


def is_sure(members):
    return max(having(members, v) for _, v in members) >= 0.9 * people(members) - 1e-9


def in_such(release, is_so):
    """The share of people who have a record for which it is so: is_so(members, value)."""
    persons = {
        person for _, members in release for person, value in members if is_so(members, value)
    }
    return len(persons) / len(everybody_in(release))


def lifted(release, times):
    everybody = [member for _, members in release for member in members]

    def is_lifted(members, value):
        rare = times * people(members) * having(everybody, value)
        return having(members, value) * people(everybody) >= rare

    return in_such(release, is_lifted)


def alone_with(release):
    """The share of people who are alone in some class with a value of theirs."""
    return in_such(release, lambda members, value: having(members, value) == 1)


def fitting(release, crowd):
    """How many people of a population fit each class."""
    return [sum(covers(cells, point) for point in crowd) for cells, _ in release]


def tight_ends(release, points, j):
    """Statements that tight cells of a linear axis imply, those that are false, and cells.

    points: by class, the points of its records.
    """
    implied = false = cells = 0
    for label, (cell, members) in enumerate(release):
        lo, hi = cell[j]
        if lo == hi:
            continue
        cells += people(members)
        implied += 2
        false += sum(all(point[j] != end for point in points[label]) for end in (lo, hi))
    return implied, false, cells


def most_in_small_parts(people, parts, k):
    """How many of a class's people stand at most in parts of fewer than k, by trying every way."""
    best = 0
    for ways in splits(people, parts):
        best = max(best, sum(size for size in ways if size < k))
    return best


def splits(people, parts):
    """Every way to put people into parts, some of them empty."""
    if parts == 1:
        yield (people,)
        return
    for first in range(people + 1):
        for rest in splits(people - first, parts - 1):
            yield (first, *rest)
