"""Party Mondrian on the joined table, one group after the other: slow, plain, by one owner."""

from collections import Counter
from itertools import pairwise

from fusion_cases import Case
from shoal.data.table import Table


def rows_by_turns(agreement, joined, shown, classes, **asked):
    """What one owner of everything publishes under an agreement: the cells of every group beside
    what is shown of its people as it is. asked: of `groups_of`.
    """
    table, domains = Table(joined), agreement.domains
    codes = tuple(domain.cells_of(table.column(domain.name), "")[0] for domain in domains)
    taxonomies = tuple(domain.taxonomy for domain in domains)
    case = Case(tuple(agreement.quasi), codes, taxonomies, classes, tuple(agreement.qids()))
    return [
        (*(d.text(*span) for d, span in zip(domains, spans, strict=True)), *raw)
        for group, spans in groups_of(case, **asked)
        for raw in shown[list(group)].rows()
    ]


def groups_of(case, labels=1, atoms=None, hulls=False, others=(), veto=None):
    """The groups of rows, each with its span of every attribute; sorted.

    veto: values and how many; a cut that leaves fewer in a part is refused, and no other one tried.
    """
    k = max(qid.k for qid in case.qids)
    rows = [[int(codes[i]) for codes in case.codes] for i in range(len(case.classes))]

    def holds(part):
        seen = {int(case.classes[i]) for i in part}
        cells = Counter(int(atoms[i]) for i in part).values() if atoms is not None else []
        if any(len({int(values[i]) for i in part}) < l for values, l in others):
            return False
        return len(part) >= k and len(seen) >= labels and all(count >= k for count in cells)

    def parts_of_number(group, j, span):
        """All cuts between two values that occur, the one nearest to halves first."""
        values = sorted({rows[i][j] for i in group})
        cuts = []
        for below, above in pairwise(values):
            border = (below + above) // 2 + 1
            low = [i for i in group if rows[i][j] < border]
            high = [i for i in group if rows[i][j] >= border]
            far = abs(2 * len(low) - len(group))
            cuts.append((far, border, [(low, (span[0], border - 1)), (high, (border, span[1]))]))
        for _, _, parts in sorted(cuts, key=lambda cut: cut[:2]):
            if all(holds(part) for part, _ in parts):
                return parts
        return None

    def parts_of_tree(group, j, span):
        children = case.taxonomies[j].children
        while span in children:
            starts = [*children[span].tolist(), span[1] + 1]
            below = [(lo, end - 1) for lo, end in pairwise(starts)]
            parts = [([i for i in group if lo <= rows[i][j] <= hi], (lo, hi)) for lo, hi in below]
            parts = [(part, node) for part, node in parts if part]
            if len(parts) > 1:
                return parts if all(holds(part) for part, _ in parts) else None
            span = parts[0][1]
        return None

    def hull(group, j, span):
        values = [rows[i][j] for i in group]
        if case.taxonomies[j].is_number:
            return min(values), max(values)
        inside = [
            (lo, end - 1)
            for node, starts in case.taxonomies[j].children.items()
            for lo, end in zip(starts, [*starts[1:], node[1] + 1], strict=True)
        ] + [(0, case.taxonomies[j].cells - 1)]
        over = [node for node in inside if node[0] <= min(values) and max(values) <= node[1]]
        return min(over, key=lambda node: node[1] - node[0])

    def is_refused(parts):
        return veto is not None and any(
            len({int(veto[0][i]) for i in part}) < veto[1] for part, _ in parts
        )

    def cut(group, spans):
        weights = case.weights or [1.0] * len(spans)
        widths = [
            max(1, round(weights[j] / max(weights) * 2**24)) * (hi - lo) // (t.cells - 1)
            for j, ((lo, hi), t) in enumerate(zip(spans, case.taxonomies, strict=True))
        ]
        for j in sorted(range(len(spans)), key=lambda j: (-widths[j], j)):
            if spans[j][0] == spans[j][1]:
                continue
            find = parts_of_number if case.taxonomies[j].is_number else parts_of_tree
            parts = find(group, j, spans[j])
            if parts is not None and not is_refused(parts):
                return [
                    end
                    for part, span in parts
                    for end in cut(part, [*spans[:j], span, *spans[j + 1 :]])
                ]
        if hulls:
            spans = [hull(group, j, span) for j, span in enumerate(spans)]
        return [(tuple(group), tuple((int(lo), int(hi)) for lo, hi in spans))]

    return sorted(cut(list(range(len(rows))), [t.root for t in case.taxonomies]))
