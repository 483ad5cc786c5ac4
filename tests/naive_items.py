"""Plain truth about any m known rows: sets of nodes by trying all, and nodes raised one by one."""

from collections import Counter
from itertools import combinations, pairwise, product


def holders(bundles, known):
    """Who has each of these nodes as often. bundles: the published nodes of each person."""
    asked = Counter(known)
    return [i for i, own in enumerate(bundles) if not asked - Counter(own)]


def fewest(bundles, m):
    """The fewest people who fit what may be known of one: m of the nodes at most."""
    known = {
        chosen
        for own in bundles
        for size in range(1, m + 1)
        for chosen in combinations(sorted(own), size)
    }
    return min((len(holders(bundles, chosen)) for chosen in known), default=len(bundles))


def covers(spans, row):
    return all(lo <= number <= hi for (lo, hi), number in zip(spans, row, strict=True))


def showing(people, known):
    """Who of people who look alike may be somebody of whom these rows are known.

    One way to publish rows holds for all of them: a row is shown by the cells that are its value,
    if somebody shows these, else by any that cover it, and nowhere if none do; nobody shows cells
    more often than whoever shows them most. people: the published rows of each, as tuples of spans.
    """
    cells = {cell for own in people for cell in own}
    most = {cell: max(own.count(cell) for own in people) for cell in cells}

    def ways(row):
        covering = [cell for cell in cells if covers(cell, row)]
        return [cell for cell in covering if all(lo == hi for lo, hi in cell)] or covering

    asked = {row: times for row, times in Counter(known).items() if ways(row)}
    found = set()
    for chosen in product(*map(ways, asked)):
        wanted = Counter()
        for cell, times in zip(chosen, asked.values(), strict=True):
            wanted[cell] += times
        found |= {
            i
            for i, own in enumerate(people)
            if all(own.count(cell) >= min(n, most[cell]) for cell, n in wanted.items())
        }
    return found


def rare_sets(bundles, m, k, stuck=()):
    """How many multisets of 2..m nodes that 1..k - 1 people hold each node is in."""
    known = {
        chosen
        for own in bundles
        for size in range(2, m + 1)
        for chosen in combinations(sorted(own), size)
    }
    found = Counter()
    for chosen in known:
        if len(holders(bundles, chosen)) < k:
            risers = [node for node in set(chosen) if node not in stuck]
            found.update(risers or set(chosen))
    return found


class Tree:
    """Values under parents. paths: for each value, its nodes from itself up to the root."""

    def __init__(self, paths, leaves):
        self.up = {a: b for path in paths for a, b in pairwise(path)}
        self.under = {}
        for path in paths:
            for node in path:
                self.under.setdefault(node, set()).add(path[0])
        self.place = {value: i for i, value in enumerate(leaves)}

    def width(self, node):
        return (len(self.under[node]) - 1) / max(len(self.place) - 1, 1)

    def first(self, node):
        return min(self.place[value] for value in self.under[node])


def published(people, tree, k, m):
    """By person, each row's node, None where withheld; how many rows at one node are kept."""
    at = [list(rows) for rows in people]

    def support():
        return Counter(node for rows in at for node in {*rows} - {None})

    def above_others(node, nodes):
        return any(o != node and tree.under[o] <= tree.under[node] for o in nodes)

    def most(node):
        counts = [rows.count(node) for rows in at]
        j = 1
        while j < m and sum(c > j for c in counts) >= k:
            j += 1
        return j if j < m else 10**6

    def capped():
        return [
            [node for node in {*rows} - {None} for _ in range(min(rows.count(node), most(node)))]
            for rows in at
        ]

    def rise(acting):
        nodes, held = set(support()), support()
        moved = {}
        for node in acting:
            if not above_others(node, nodes):
                moved[node] = tree.up.get(node)
                continue
            below = [
                o
                for o in nodes - set(acting)
                if o != node
                and tree.under[o] <= tree.under[node]
                and not any(
                    a not in (o, node) and tree.under[o] <= tree.under[a] <= tree.under[node]
                    for a in acting
                )
            ]
            if below:
                taken = min(below, key=lambda o: (held[o], tree.width(o), tree.first(o)))
                moved[taken] = node
        for rows in at:
            rows[:] = [moved.get(node, node) for node in rows]

    while True:
        held = support()
        few = [node for node in held if held[node] < k]
        few = [n for n in few if not any(o != n and tree.under[o] <= tree.under[n] for o in few)]
        if few:
            rise(few)
            continue
        nodes = set(held)
        stuck = {n for n in nodes if n not in tree.up and not above_others(n, nodes)}
        rare = rare_sets(capped(), m, k, stuck)
        if not rare:
            return at, most

        def score(node):
            goal = node if above_others(node, nodes) else tree.up.get(node)  # noqa: B023
            width = 1.0 if goal is None else tree.width(goal)
            return rare[node] / (held[node] * max(width, 1e-12))  # noqa: B023

        ranked = sorted(rare, key=lambda node: (-score(node), tree.first(node)))
        rise(ranked[: max(len(nodes) // 20, 1)])
