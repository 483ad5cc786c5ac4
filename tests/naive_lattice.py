"""Every node of a small lattice in plain Python, to compare full-domain searches with."""

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np

from shoal.data.classes import Classes, Population


class Column:
    """One attribute. rows: value -> labels from the value to the root; weight: of its loss."""

    def __init__(self, name, rows, values, weight=1.0):
        self.name, self.rows, self.values, self.weight = name, rows, values, weight
        self.height = len(next(iter(rows.values()))) - 1
        self.leaves = len(rows)

    def cell(self, value, level):
        """The leaves that are covered: names repeat over levels here and there."""
        return frozenset(
            other for other in self.rows if self.rows[other][level] == self.rows[value][level]
        )


def nodes(columns, low=None, high=None):
    low = low or [0] * len(columns)
    high = high or [c.height for c in columns]
    return product(*(range(a, b + 1) for a, b in zip(low, high, strict=True)))


def cells(columns, node):
    return list(
        zip(
            *([c.cell(v, level) for v in c.values] for c, level in zip(columns, node, strict=True)),
            strict=True,
        )
    )


def suppressed(columns, node, models, subjects=None, sensitive=None, share=1.0, metric="loss", k=1):
    """Who is suppressed: first classes of too few people, then all that fail, until none that is
    left does; for promises about the release as few of the smallest classes as suffice, the
    cheapest first.
    """
    gone = np.zeros(len(columns[0].values), dtype=bool)
    counts = [model for model in models if model.model == "k-anonymity"]
    single = [model for model in models if not model.whole_table]
    for asked in [counts, single]:
        gone = without_failing(columns, node, asked, gone, subjects, sensitive)
    shown = cells(columns, node)
    while not gone.all() and not of_release(columns, models, shown, gone):
        if not share:
            return ~np.zeros(len(gone), dtype=bool)  # nothing may go, so the node is out
        gone = without_some(columns, node, models, shown, gone, share, metric, k)
        gone = without_failing(columns, node, single, gone, subjects, sensitive)
    return gone


def without_some(columns, node, models, shown, gone, share, metric, k):
    """As few of the smallest classes less as suffice, or all of them."""
    sizes = Counter(s for s, g in zip(shown, gone, strict=True) if not g)
    smallest = [s for s in sizes if sizes[s] == min(sizes.values())]

    def cost(cells):
        return score(columns, node, np.array([s == cells for s in shown]), metric, k)

    smallest = sorted(smallest, key=lambda s: round(cost(s), 12))

    def less(number):
        return np.array([g or s in smallest[:number] for s, g in zip(shown, gone, strict=True)])

    room = Fraction(str(share)) * len(gone)
    numbers = [n for n in range(1, len(smallest) + 1) if less(n).sum() <= room]
    if not all(model.monotone for model in models if model.whole_table):
        # fewer may suffice where more do not: what halving finds
        few, most = 0, len(numbers)
        suffices = of_release(columns, models, shown, less(most))
        while suffices and most - few > 1:
            middle = (few + most) // 2
            holds = of_release(columns, models, shown, less(middle))
            few, most = (few, middle) if holds else (middle, most)
        return less(most if suffices else len(smallest))
    enough = (n for n in numbers if of_release(columns, models, shown, less(n)))
    return less(next(enough, len(smallest)))


def of_release(columns, models, shown, gone):
    classes = Classes(*numbered(shown, gone))
    return all(model.holds(classes).all() for model in models if model.whole_table)


def numbered(shown, gone):
    """The class of every record, -1 for who is gone, and how many there are."""
    number = {}
    labels = [
        -1 if g else number.setdefault(s, len(number)) for s, g in zip(shown, gone, strict=True)
    ]
    return np.array(labels), len(number)


def without_failing(columns, node, models, gone, subjects, sensitive):
    shown, gone = cells(columns, node), gone.copy()
    while not gone.all():
        labels, count = numbered(shown, gone)
        quasi = {}
        for j, column in enumerate(columns):
            codes = {}
            quasi[column.name] = np.array([codes.setdefault(s[j], len(codes)) for s in shown])
        classes = Classes(labels, count, subjects, sensitive or {}, quasi)
        if not models:
            return gone
        if any(model.population for model in models):
            classes = replace(
                classes, population=population_of(columns, node, shown, labels, count)
            )
        holds = np.logical_and.reduce([model.holds(classes) for model in models])
        failing = (labels >= 0) & ~holds[labels]
        if not failing.any():
            return gone
        gone |= failing
    return gone


def population_of(columns, node, shown, labels, count):
    """Who of the columns' populations fits each class."""
    fits = np.zeros(count, dtype=np.int64)
    outside = 0
    for person in zip(*(c.population for c in columns), strict=True):
        cell = tuple(
            c.cell(value, level) for c, value, level in zip(columns, person, node, strict=True)
        )
        found = {label for label, s in zip(labels, shown, strict=True) if label >= 0 and s == cell}
        outside += not found
        for label in found:
            fits[label] += 1
    return {"people": Population(fits, outside)}


def score(columns, node, gone, metric, k):
    """The metric as its source defines it, from the cells of every record."""
    shown, n = cells(columns, node), len(gone)
    sizes = Counter(shown)
    kept = Counter(s for s, g in zip(shown, gone, strict=True) if not g)
    if metric == "discernibility":
        return sum(size**2 for size in kept.values()) + n * int(gone.sum())
    if metric == "discernibility-star":
        return sum(size**2 for size in sizes.values())
    if metric == "average-class-size":
        return n / (len(kept) + bool(gone.any())) / k
    if metric == "height":
        return sum(node)
    if metric == "ambiguity":
        whole = math.prod(c.leaves for c in columns)
        return (
            sum(
                whole if g else math.prod(len(cell) for cell in s)
                for s, g in zip(shown, gone, strict=True)
            )
            / n
        )
    spent, most = 0.0, 0.0
    each, weights = [], []
    for c, level in zip(columns, node, strict=True):
        count = Counter(c.values)
        weight = c.weight if c.leaves > 1 else 0.0
        losses = []
        for value, g in zip(c.values, gone, strict=True):
            at = c.height if g else level
            covered = c.cell(value, at)
            if metric.startswith("loss"):
                cost, root = (len(covered) - 1) / max(c.leaves - 1, 1), 1.0
            elif metric == "precision":
                cost, root = at / c.height, 1.0
            else:
                cost, root = (
                    math.log2(sum(count[x] for x in leaves) / count[value])
                    for leaves in (covered, c.rows)
                )
            spent += weight * cost
            most += weight * root
            losses.append(cost)
        each.append(sum(losses) / n)
        weights.append(weight)
    if metric == "loss-geometric":
        whole = sum(weights) or 1.0
        factors = ((1 + x) ** (w / whole) for x, w in zip(each, weights, strict=True))
        return math.prod(factors) - 1
    return spent / most if most else 0.0


def optimum(columns, models, metric, share, k, low=None, high=None, **more):
    """The least score of all nodes within the share that keep somebody; None for none."""
    best = None
    n = len(columns[0].values)
    for node in nodes(columns, low, high):
        gone = suppressed(columns, node, models, share=share, metric=metric, k=k, **more)
        if gone.sum() > Fraction(str(share)) * n or gone.all():
            continue
        found = score(columns, node, gone, metric, k)
        best = found if best is None else min(best, found)
    return best


def optimum_of_all(columns, models, metric, share, k, sensitive=None):
    """The least score of all nodes and of all sets of classes that may be suppressed there."""
    best, n = None, len(columns[0].values)
    for node in nodes(columns):
        shown = cells(columns, node)
        for chosen in product((False, True), repeat=len(set(shown))):
            of = dict(zip(sorted(set(shown), key=sorted_cell), chosen, strict=True))
            gone = np.array([of[s] for s in shown])
            if gone.sum() > Fraction(str(share)) * n or gone.all():
                continue
            single = [model for model in models if not model.whole_table]
            left = without_failing(columns, node, single, gone, None, sensitive)
            if (left == gone).all() and of_release(columns, models, shown, gone):
                found = score(columns, node, gone, metric, k)
                best = found if best is None else min(best, found)
    return best


def sorted_cell(shown):
    return [sorted(cell) for cell in shown]
