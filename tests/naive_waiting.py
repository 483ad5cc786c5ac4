"""Stream methods whose records leave one by one, in plain Python; k alone is promised."""

from itertools import count, pairwise
from math import ceil

import numpy as np

from naive_streams import Costs
from naive_windows import box, least_covering


class Window:
    """The records that wait and a tree of cuts over them: {attribute, bound, low, high} or None."""

    def __init__(self, own, values, people, k, delta, by_gap):
        near, leaf = own.scaled_positions(values), own.leaf(values)
        costs = Costs(near, leaf, *own.costs)
        self.parent, self.first, self.last, self.cost = (
            costs.parent,
            costs.first,
            costs.last,
            costs.cost,
        )
        # attributes in the policy's order, with the number of their first node
        linear, trees = iter(costs.near), iter(zip(costs.leaf, costs.base, strict=True))
        self.columns = [(next(linear), None) if tree is None else next(trees) for tree in own.trees]
        self.people, self.k, self.delta, self.by_gap = people, k, delta, by_gap
        self.held, self.root = [], None

    def leaf(self, target):
        """The records in the leaf of one; None where all that wait are not k people."""
        if not self.enough(self.held):
            return None
        most = ceil(self.delta / self.k)
        if 2 * cuts_of(self.root) > 6 * most:
            self.root = None
        self.root, members = self.descend(self.root, self.held, target)
        return members

    def enough(self, members):
        return len({self.people[i] for i in members}) >= self.k

    def descend(self, node, members, target):
        """The node as it is now, and the records of the target's leaf."""
        if node is None or not all(map(self.enough, self.parted(node, members))):
            node = self.cut(members)
            if node is None:
                return None, members
        for side, part in zip(("low", "high"), self.parted(node, members), strict=True):
            if target in part:
                node[side], found = self.descend(node[side], part, target)
        return node, found

    def parted(self, node, members):
        column = self.columns[node["attribute"]][0]
        low = [i for i in members if column[i] <= node["bound"]]
        return low, [i for i in members if i not in low]

    def cut(self, members):
        widths = [
            self.loss(base, min(column[i] for i in members), max(column[i] for i in members))
            for column, base in self.columns
        ]
        for j in sorted(range(len(widths)), key=lambda j: (-widths[j], j)):
            if widths[j]:
                bound = self.bound(j, members)
                node = {"attribute": j, "bound": bound, "low": None, "high": None}
                if all(map(self.enough, self.parted(node, members))):
                    return node
        return None

    def loss(self, base, low, high):
        return high - low if base is None else self.cost[self.over(base, low, high)]

    def over(self, base, low, high):
        node = base + low
        while self.last[node] < high:
            node = self.parent[node]
        return node

    def bound(self, j, members):
        column, base = self.columns[j]
        codes = sorted(column[i] for i in members)
        n, middle = len(codes), codes[(len(codes) - 1) // 2]
        if self.by_gap:
            gaps = [
                (self.loss(base, a, b), -at)
                for at, (a, b) in enumerate(pairwise(codes))
                if a < b and max(n // 4 - 1, 0) <= at < n - n // 4
            ]
            if gaps:
                return codes[-max(gaps)[1]]
        if base is not None:
            over, child = self.over(base, codes[0], codes[-1]), base + middle
            while self.parent[child] != over:
                child = self.parent[child]
            return self.last[child] if self.last[child] < codes[-1] else self.first[child] - 1
        below = [c for c in codes if c < middle]
        above = [c for c in codes if c > middle]
        if not above or (below and len(below) > len(above)):
            return below[-1]
        return middle


def cuts_of(node):
    return 0 if node is None else 1 + cuts_of(node["low"]) + cuts_of(node["high"])


def swaf(own, values, people, k, delta, c0, seed, split="median", mu=None):
    """What becomes of each record: (record, kind, members of its cluster), in order of leaving.

    mu: for zhou, whose leaves may leave when a record arrives.
    """
    window = Window(own, values, people, k, delta, split == "density")
    clusters, out, losses = [], [], []

    def leave(i):
        nonlocal clusters
        draw = np.random.default_rng([seed, 7, i]).random()
        used = least_covering(clusters, values[i], draw)
        members = window.leaf(i)
        lost = np.inf if members is None else box(own, values, members)[2]
        if used and used["loss"] <= lost:
            out.append((i, "reuse", used["members"]))
            window.held.remove(i)
        elif members is None:
            out.append((i, "suppress", None))
            window.held.remove(i)
        else:
            publish(members)

    def publish(members):
        nonlocal clusters
        lo, hi, loss = box(own, values, members)
        losses.append(loss)
        clusters.append({"lo": lo, "hi": hi, "loss": loss, "members": tuple(members)})
        clusters = clusters[-ceil(c0 * delta / k) :]
        out.extend((i, "new", tuple(members)) for i in members)
        window.held = [i for i in window.held if i not in members]

    def chance(now, members):
        lo, hi, loss = box(own, values, members)
        last = losses[-mu:]
        tau = sum(last) / len(last) if last else 1.0
        if loss and loss >= tau:
            return 0.0
        recent = range(max(0, now - delta + 1), now + 1)
        seen = sum(all(lo <= values[i]) and all(values[i] <= hi) for i in recent)
        more = seen / len(recent) * (min(members) + delta - 1 - now)
        q = (len(members) / (len(members) + more)) ** (1 / len(lo))
        sure = seen / (seen + k)
        return (1 - loss / tau if loss else 1.0) * (1 - sure * (1 - q))

    for now in range(len(values)):
        window.held.append(now)
        members = window.leaf(now) if mu else None
        if members and np.random.default_rng([seed, 8, now]).random() < chance(now, members):
            publish(members)
        if window.held and now - window.held[0] >= delta - 1:
            leave(window.held[0])
    while window.held:
        leave(window.held[0])
    return out


class Region:
    """A part of the domain: bounds of each attribute, children, whether it was published."""

    def __init__(self, lo, hi, parent=None, number=0):
        self.lo, self.hi, self.parent, self.number = lo, hi, parent, number
        self.children, self.members, self.used, self.is_last = [], None, 0, False

    def leaf(self, row):
        for child in self.children:
            if all(a <= x <= b for a, x, b in zip(child.lo, row, child.hi, strict=True)):
                return child.leaf(row)
        return self

    def upwards(self):
        return [self, *(self.parent.upwards() if self.parent else [])]

    def all(self):
        return [self, *(node for child in self.children for node in child.all())]

    def parts(self, own, published):
        """The bounds of the children it would be cut into; None where it can't be cut."""

        def lost(j):
            whole = own.trees[j].leaves - 1 if own.trees[j] else own.width[j]
            return own.share[j] * min((self.hi[j] - self.lo[j]) / whole, 1)

        for j in sorted(range(len(self.lo)), key=lambda j: (-lost(j), j)):
            spans = self.spans(own, j, published) if lost(j) > 0 else None
            if spans:
                return [
                    ([*self.lo[:j], a, *self.lo[j + 1 :]], [*self.hi[:j], b, *self.hi[j + 1 :]])
                    for a, b in spans
                ]
        return None

    def spans(self, own, j, published):
        tree = own.trees[j]
        if tree is not None:
            node = tree.covering(np.array([self.lo[j]], int), np.array([self.hi[j]], int))[0]
            below = np.flatnonzero(tree.parent == node)
            return sorted((tree.first[c], tree.last[c]) for c in below)
        end = own.low[j] + own.width[j]
        missing = [(own.beyond[j], own.beyond[j])] if self.hi[j] > end else []
        low, high = self.lo[j], min(self.hi[j], end)
        if published is None:
            at = (low + high) / 2
            fits = low < at < high
        else:
            known = sorted(row[j] for row in published if row[j] <= end)
            at = known[(len(known) - 1) // 2] if known else (low + high) / 2
            fits = low <= at < high
        return (
            [*([(low, at), (at, high)] if fits else [(low, high)]), *missing]
            if (fits or missing)
            else None
        )


def sky(own, values, people, k, delta, c0, cut, seed):
    """What becomes of each record: (record, kind, members of its cluster), in order of leaving."""
    low = [0.0 if tree else own.low[j] for j, tree in enumerate(own.trees)]
    high = [tree.leaves - 1.0 if tree else own.beyond[j] for j, tree in enumerate(own.trees)]
    root, held, out = Region(low, high), [], []
    most = max(8 * ceil(c0 * delta / k) + 1, 4)

    def waiting(node):
        return [i for i in held if root.leaf(values[i]) is node]

    def fold(spared):
        inner = [n for n in root.all() if n.children and not any(c.children for c in n.children)]
        inner = [n for n in inner if n is not spared]
        if inner:  # of those used at the same time, the one with the lowest number
            min(inner, key=lambda n: (n.used, n.number)).children = []
        return bool(inner)

    def refine(node, published):
        parts = node.parts(own, published if cut == "median" else None)
        if not parts:
            node.is_last = True
            return
        while len(root.all()) + len(parts) > most:
            if not fold(node.parent):
                return
        taken = {n.number for n in root.all()}
        free = (number for number in count() if number not in taken)
        node.children = [Region(lo, hi, node, next(free)) for lo, hi in parts]

    def arrive(i):
        held.append(i)
        leaf = root.leaf(values[i])
        ready = waiting(leaf)
        is_reused = leaf.members is not None
        if not (is_reused and leaf.is_last) and len({people[j] for j in ready}) < k:
            return
        leaf.members, leaf.used = leaf.members or tuple(ready), i
        for j in ready:
            out.append((j, "reuse" if is_reused else "new", leaf.members))
            held.remove(j)
        if not leaf.is_last:
            refine(leaf, values[ready])

    def leave(i, now):
        held.remove(i)
        for node in root.leaf(values[i]).upwards():
            if node.members is not None:
                node.used = now
                out.append((i, "reuse", node.members))
                return
        out.append((i, "suppress", None))

    for now in range(len(values)):
        arrive(now)
        if held and now - held[0] >= delta - 1:
            leave(held[0], now)
    while held:
        leave(held[0], len(values) - 1)
    return out
