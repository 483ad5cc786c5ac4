"""Plain-Python truth: slow, obvious restatements of what the library computes fast.

Dictionaries, loops and fractions only, straight from the definitions, so that a reader can check
them by eye; tests compare the two.

Records are given column by column: `labels[i]` is the class of record i (-1: suppressed),
`subjects` the person of each record or None where every record is its own person.
"""

import math
from collections import Counter
from fractions import Fraction

# ----- who and what is in a class


def person(subjects, record):
    return record if subjects is None else subjects[record]


def records_of(labels, which):
    return [i for i, label in enumerate(labels) if label == which]


def people_in(labels, subjects, which):
    return {person(subjects, i) for i in records_of(labels, which)}


def pairs_in(labels, subjects, values, which):
    """Every (person, value) of a class once."""
    return {(person(subjects, i), values[i]) for i in records_of(labels, which)}


def pairs_of_table(labels, subjects, values):
    """Every (person, value) of all records that are in some class, once."""
    return {(person(subjects, i), values[i]) for i in range(len(labels)) if labels[i] >= 0}


def frequencies(pairs):
    """How many people have each value."""
    return Counter(value for _, value in pairs)


# ----- promises: each measured on one class


def k_measured(labels, subjects, which):
    return len(people_in(labels, subjects, which))


def k_measured_on_cells(labels, subjects, cells, which):
    """People who share the cells of this class; `cells[i]` is a tuple. The least, if it shows
    several.
    """
    counts = []
    for shown in {cells[i] for i in records_of(labels, which)}:
        sharing = {
            person(subjects, i) for i in range(len(labels)) if labels[i] >= 0 and cells[i] == shown
        }
        counts.append(len(sharing))
    return min(counts, default=0)


def is_entropy_diverse(counts, least):
    """entropy >= log(least), multiplied out: s**s >= least**s * product of c**c."""
    total = sum(counts)
    return total > 0 and total**total >= least**total * math.prod(count**count for count in counts)


def effective_values(counts):
    total = sum(counts)
    return (
        math.exp(-sum(count / total * math.log(count / total) for count in counts))
        if total
        else 0.0
    )


def is_recursive_diverse(counts, c, least):
    """r_1 < c * (r_l + ... + r_m), most frequent first; false where there are fewer than l
    values.
    """
    ranked = sorted(counts, reverse=True)
    return len(ranked) >= least and ranked[0] < c * sum(ranked[least - 1 :])


def largest_frequency(labels, subjects, values, which, designated=None):
    """The greatest share of the people of a class who have one (designated) value; None if
    empty.
    """
    people = people_in(labels, subjects, which)
    counts = frequencies(pairs_in(labels, subjects, values, which))
    wanted = [counts[value] for value in counts if designated is None or value in designated]
    return Fraction(max(wanted, default=0), len(people)) if people else None


def largest_owner(labels, subjects, which):
    """The share of the records of whoever owns most; None for an empty class."""
    there = records_of(labels, which)
    owned = Counter(person(subjects, i) for i in there)
    return Fraction(max(owned.values()), len(there)) if there else None


def fewest_distinct(labels, subjects, columns, which):
    """Different values in a class, of the column that has the fewest."""
    return min(len(frequencies(pairs_in(labels, subjects, values, which))) for values in columns)


def ratios(labels, subjects, values, which):
    """Share in the class / share in the table, of every value of the table; None for an empty
    class.
    """
    mine, table = (
        pairs_in(labels, subjects, values, which),
        pairs_of_table(labels, subjects, values),
    )
    if not mine:
        return None
    inside, outside = frequencies(mine), frequencies(table)
    return {v: (Fraction(inside[v], len(mine)), Fraction(outside[v], len(table))) for v in outside}


def greatest_gain(labels, subjects, values, which):
    """max of (q - p) / p over the values that are more frequent in the class; 0 where none is."""
    return max(
        [(q - p) / p for q, p in ratios(labels, subjects, values, which).values() if q > p],
        default=Fraction(0),
    )


def stretched_gain(labels, subjects, values, which, beta):
    """The greatest gain, each stretched by as much as -ln p falls short of beta."""
    pairs = ratios(labels, subjects, values, which).values()
    gains = ((q - p) / p * max(1.0, beta / -math.log(p)) for q, p in pairs if q > p)
    return max(gains, default=0.0)


def is_enhanced_beta_like(labels, subjects, values, which, beta):
    """(q - p) / p <= min(beta, -ln p) for every value with q > p."""
    pairs = ratios(labels, subjects, values, which).values()
    return all(
        (q - p) / p <= beta and float((q - p) / p) <= -math.log(p) + 1e-12
        for q, p in pairs
        if q > p
    )


def disclosure(labels, subjects, values, which):
    """max of |ln(q / p)| over all values of the table; infinite where the class lacks one."""
    pairs = ratios(labels, subjects, values, which).values()
    return max(abs(math.log(q / p)) if q else math.inf for q, p in pairs)


# ----- earth mover's distance


def shares(pairs, places):
    """The distribution over places 0..places-1, as fractions."""
    counts = frequencies(pairs)
    return [Fraction(counts[place], len(pairs)) for place in range(places)]


def equal_ground(places):
    return [[Fraction(int(i != j)) for j in range(places)] for i in range(places)]


def ordered_ground(places, occurring):
    """Steps between two values among those that occur in some class; others are nobody's and no
    step.
    """
    rank = {place: i for i, place in enumerate(sorted(occurring))}
    whole = max(len(rank) - 1, 1)
    return [
        [Fraction(abs(rank.get(i, 0) - rank.get(j, 0)), whole) for j in range(places)]
        for i in range(places)
    ]


def halved_ground(places, occurring):
    """The shortest of 1, 2, 4, ... nearly equal runs of the occurring values that holds both: how
    long, at most.
    """
    rank = {place: i for i, place in enumerate(sorted(occurring))}
    values = len(rank)

    def between(i, j):
        runs = 1
        while values > runs:
            runs *= 2
        while rank[i] * runs // values != rank[j] * runs // values:
            runs //= 2
        return Fraction(math.ceil(Fraction(values, runs)) - 1, max(values - 1, 1))

    return [
        [between(i, j) if i in rank and j in rank else Fraction(0) for j in range(places)]
        for i in range(places)
    ]


def joint_ground(grounds, units):
    """Between two combinations, the greatest of the distances of their parts, rounded up to 1 /
    units.
    """

    def between(one, other):
        farthest = max(ground[i][j] for ground, i, j in zip(grounds, one, other, strict=True))
        return Fraction(math.ceil(farthest * units), units)

    return between


def ground_of(column, labels, in_halves=False):
    """Between the values of a sensitive column, by its kind of distance; in_halves: as it is
    compared together with other columns.
    """
    if column.distance == "equal":
        return equal_ground(column.values)
    if column.distance == "hierarchical":
        return tree_ground(column.hierarchy.parent.tolist(), column.values)
    occurring = {c for c, label in zip(column.codes.tolist(), labels, strict=True) if label >= 0}
    return (halved_ground if in_halves else ordered_ground)(column.values, occurring)


def tree_ground(parent, leaves):
    """Height of the lowest common ancestor over height of the root; heights are longest ways
    down.
    """
    heights = [0] * len(parent)
    for leaf in range(leaves):
        for steps, node in enumerate(ancestors(parent, leaf)):
            heights[node] = max(heights[node], steps)
    whole = max(max(heights), 1)

    def between(i, j):
        above = set(ancestors(parent, i))
        return Fraction(
            next(heights[node] for node in ancestors(parent, j) if node in above), whole
        )

    return [[between(i, j) for j in range(leaves)] for i in range(leaves)]


def ancestors(parent, node):
    """The node itself, its parent, ... up to the root."""
    way = []
    while node >= 0:
        way.append(node)
        node = parent[node]
    return way


def earth_movers_distance(p, q, ground):
    """Least total of mass * distance that turns p into q: cheapest augmenting paths, in
    fractions.
    """
    places = range(len(p))
    left, open_ = list(p), list(q)
    flow = [[Fraction(0)] * len(p) for _ in places]
    while any(left):
        way = _cheapest_way(left, open_, flow, ground)
        amount = min(left[way[0]], open_[way[-1]])
        # a way alternates: source, target, (back from that target to) source, target, ...
        back = [(way[i + 1], way[i]) for i in range(1, len(way) - 1, 2)]
        amount = min([amount, *(flow[i][j] for i, j in back)])
        for i in range(0, len(way), 2):
            flow[way[i]][way[i + 1]] += amount
        for i, j in back:
            flow[i][j] -= amount
        left[way[0]] -= amount
        open_[way[-1]] -= amount
    return sum((flow[i][j] * ground[i][j] for i in places for j in places), Fraction(0))


def _cheapest_way(left, open_, flow, ground):
    """Bellman and Ford over sources and targets, back along what flows already."""
    places = range(len(left))
    cost = {("source", i): Fraction(0) for i in places if left[i]}
    way = {("source", i): [i] for i in places if left[i]}
    changed = True
    while changed:
        changed = False
        for i in places:
            for j in places:
                steps = [(("source", i), ("target", j), ground[i][j], j)]
                if flow[i][j]:
                    steps.append((("target", j), ("source", i), -ground[i][j], i))
                for start, end, price, name in steps:
                    if start in cost and (end not in cost or cost[start] + price < cost[end]):
                        cost[end], way[end], changed = (
                            cost[start] + price,
                            [*way[start], name],
                            True,
                        )
    ends = [("target", j) for j in places if open_[j] and ("target", j) in cost]
    return way[min(ends, key=lambda end: cost[end])]


def li_tree_distance(p, q, parent):
    """The formula of Li, Li and Venkatasubramanian for a hierarchy, node by node.

    cost(N) = height(N) / height(root) * min(surplus, deficit of the children of N), summed.
    """
    children = {
        node: [c for c in range(len(parent)) if parent[c] == node] for node in range(len(parent))
    }

    def height(node):
        return max((1 + height(child) for child in children[node]), default=0)

    def extra(node):
        return (
            p[node] - q[node]
            if not children[node]
            else sum(extra(child) for child in children[node])
        )

    whole = max(height(parent.index(-1)), 1)
    total = Fraction(0)
    for node in range(len(parent)):
        surplus = sum(max(extra(child), 0) for child in children[node])
        deficit = sum(max(-extra(child), 0) for child in children[node])
        total += Fraction(height(node), whole) * min(surplus, deficit)
    return total


def t_measured(labels, subjects, values, places, ground, which):
    """Distance of a class from all records that are in a class; None if the class is empty."""
    mine = pairs_in(labels, subjects, values, which)
    if not mine:
        return None
    table = pairs_of_table(labels, subjects, values)
    return earth_movers_distance(shares(mine, places), shares(table, places), ground)


# ----- utility and risk


def class_sizes_in_records(labels):
    return [labels.count(which) for which in sorted(set(labels)) if which >= 0]


def discernibility(labels):
    suppressed = labels.count(-1)
    return sum(size * size for size in class_sizes_in_records(labels)) + suppressed * len(labels)


def classification(labels, classes_of_interest):
    errors = labels.count(-1)
    for which in set(labels) - {-1}:
        counts = Counter(classes_of_interest[i] for i in records_of(labels, which))
        errors += sum(counts.values()) - max(counts.values())
    return errors


def gcp(labels, cells, widths):
    """cells[j][i]: published cell of record i on attribute j; widths[j][cell]."""
    losses = [
        1.0 if labels[i] < 0 else widths[j][cells[j][i]]
        for j in range(len(cells))
        for i in range(len(labels))
    ]
    return sum(losses) / len(losses)


def generalized_loss(labels, spans):
    """spans[i]: (lo, hi) that record i publishes on one attribute, infinite for the mark."""
    kept = [spans[i] for i in range(len(labels)) if labels[i] >= 0 and spans[i][1] < float("inf")]
    whole = max((hi for _, hi in kept), default=0) - min((lo for lo, _ in kept), default=0)
    losses = [(hi - lo) / whole if whole else 0.0 for lo, hi in kept]
    return (sum(losses) + len(labels) - len(kept)) / len(labels)


def squared_error(labels, values):
    """Against the class mean; suppressed records against the mean of everybody. None is missing."""
    known = [value for value in values if value is not None]
    total = 0.0
    for which in set(labels):
        mine = [values[i] for i in records_of(labels, which) if values[i] is not None]
        mean = sum(known) / len(known) if which < 0 and known else sum(mine) / max(len(mine), 1)
        total += sum((value - mean) ** 2 for value in mine)
    return total


def risks(labels, subjects):
    """Greatest and mean chance that a record of a class is named, over everybody in each class."""
    sizes = [k_measured(labels, subjects, which) for which in set(labels) - {-1}]
    everyone = [1 / size for size in sizes for _ in range(size)]
    return max(everyone), sum(everyone) / len(everyone)


# ----- rows that show nothing


def is_starred(row, quasi, mark="*"):
    return all(row[name] == mark for name in quasi)


def classes_by_cells(rows, quasi, sensitive, mark="*"):
    """The class of each row, -1 where it is withheld: starred, as are its sensitive cells, while
    some other row shows something. rows: dicts.
    """
    starred = [is_starred(row, quasi, mark) for row in rows]
    hidden = all(row[name] == mark for row in rows if is_starred(row, quasi) for name in sensitive)
    withheld = hidden and not all(starred)
    number, labels = {}, []
    for row, star in zip(rows, starred, strict=True):
        cells = tuple(row[name] for name in quasi)
        labels.append(-1 if star and withheld else number.setdefault(cells, len(number)))
    return labels


# ----- several texts for no value


def t_with_missing_texts(labels, cells, missing, which, distance, order):
    """Distance of a class from the table. Of equal distance, every text is a value. Else all texts
    for no value have one last place (one leaf more under the root), and if the table shows several,
    the distance is at least half the sum of |p - q| over "has a value" and each of them.

    order: the values; as a tree, the first two are under one node.
    """
    if which not in labels:
        return None
    texts = sorted(set(cells) - set(missing)) if distance != "hierarchical" else list(order)
    gone = sorted({c for c, label in zip(cells, labels, strict=True) if label >= 0} & set(missing))
    if distance == "equal":
        every = sorted(set(cells))
        values = [every.index(cell) for cell in cells]
        return t_measured(labels, None, values, len(every), equal_ground(len(every)), which)
    last = len(texts)
    values = [last if cell in missing else texts.index(cell) for cell in cells]
    if distance == "ordered":
        occurring = {v for v, label in zip(values, labels, strict=True) if label >= 0}
        ground = ordered_ground(last + 1, occurring)
    else:
        leaves = last + any(cell in missing for cell in cells)
        # leaves 1, 2, 3 and perhaps nothing; low over 1 and 2, high over 3, the root over all
        low, high, root = leaves, leaves + 1, leaves + 2
        parent = [low, low, high] + [root] * (leaves - 3) + [root, root, -1]
        ground = [row + [0] * (last + 1 - leaves) for row in tree_ground(parent, leaves)]
        ground += [[0] * (last + 1)] * (last + 1 - leaves)
    far = t_measured(labels, None, values, last + 1, ground, which)
    if len(gone) < 2:
        return far
    kinds = [1 + gone.index(cell) if cell in gone else 0 for cell in cells]
    places = 1 + len(gone)
    return max(far, t_measured(labels, None, kinds, places, equal_ground(places), which))


def people_by_cells(rows, labels, people, names):
    """The people who are alike in these cells, group by group, among rows that are in a class."""
    groups = {}
    for row, label, who in zip(rows, labels, people, strict=True):
        if label >= 0:
            groups.setdefault(tuple(row[name] for name in names), set()).add(who)
    return list(groups.values())
