"""Top-down specialization in plain Python: every candidate and every group computed anew at every
step.
"""

import math
from collections import Counter

UNIT = 1 << 24


def entropy(counts) -> float:
    total = sum(counts)
    return -sum(c / total * math.log2(c / total) for c in counts if c)


class NaiveTds:
    """rows: tuples of cells, one for each attribute. trees: by attribute span -> child spans, None
    for a number.
    """

    def __init__(self, rows, classes, trees, cells, qids, score="gain-ratio"):
        self.rows, self.classes, self.trees, self.qids, self.score = (
            rows,
            classes,
            trees,
            qids,
            score,
        )
        # a QID that another implies is none of its own, so it has no part in what a step costs
        self.apart = [
            q
            for i, q in enumerate(qids)
            if not any(self.implies(qids, j, i) for j in range(len(qids)))
        ]
        self.cuts = [[(0, m - 1)] for m in cells]
        self.steps = []

    @staticmethod
    def implies(qids, j, i) -> bool:
        """Whether QID j holds wherever QID i must; of two that are the same, the later one implies
        the earlier.
        """
        holds = set(qids[i][0]) <= set(qids[j][0]) and qids[i][1] <= qids[j][1]
        same = set(qids[i][0]) == set(qids[j][0]) and qids[i][1] == qids[j][1]
        return j != i and holds and (not same or j > i)

    def run(self):
        while self.step():
            pass
        return self

    def step(self) -> bool:
        valid = [c for c in self.candidates() if self.keeps(c)]
        if not valid:
            return False
        _, attribute, node, children = min(valid, key=lambda c: (-c[0], c[1], c[2]))
        self.cuts[attribute].remove(node)
        self.cuts[attribute] = sorted(self.cuts[attribute] + children)
        self.steps.append((attribute, *node, tuple(lo for lo, _ in children)))
        return True

    def candidates(self):
        for attribute, cut in enumerate(self.cuts):
            for node in cut:
                children = self.children(attribute, node)
                if children and self.under(attribute, node):
                    yield self.worth(attribute, node, children), attribute, node, children

    def under(self, attribute, span):
        return [i for i, row in enumerate(self.rows) if span[0] <= row[attribute] <= span[1]]

    def children(self, attribute, node):
        if self.trees[attribute] is not None:
            return self.trees[attribute].get(node)
        occupied = sorted({self.rows[i][attribute] for i in self.under(attribute, node)})
        splits = [[(node[0], at - 1), (at, node[1])] for at in occupied[1:]]
        return max(
            splits,
            key=lambda s: (round(self.gain(attribute, node, s) * UNIT), -s[1][0]),
            default=None,
        )

    def gain(self, attribute, node, children):
        whole = self.under(attribute, node)
        parts = [self.under(attribute, child) for child in children]
        after = sum(len(p) / len(whole) * entropy(self.labels(p)) for p in parts if p)
        return max(entropy(self.labels(whole)) - after, 0.0)

    def labels(self, rows):
        return list(Counter(self.classes[i] for i in rows).values())

    def worth(self, attribute, node, children):
        gain = self.gain(attribute, node, children)
        if self.score == "gain-ratio" and self.trees[attribute] is not None:
            split = entropy([len(self.under(attribute, child)) for child in children])
            gain = gain / split if split else 0.0
        if self.score == "gain-per-loss":
            losses = [
                self.least(qid, self.cuts) - self.least(qid, self.after(attribute, node, children))
                for qid, _ in self.apart
                if attribute in qid
            ]
            return round(round(gain * UNIT) / UNIT / (sum(losses) / len(losses) + 1) * (1 << 40))
        return round(gain * UNIT)

    def after(self, attribute, node, children):
        cuts = [list(cut) for cut in self.cuts]
        cuts[attribute] = [n for n in cuts[attribute] if n != node] + children
        return cuts

    def least(self, qid, cuts):
        return min(self.groups(qid, cuts).values())

    def groups(self, qid, cuts):
        return Counter(
            tuple(next(n for n in cuts[a] if n[0] <= row[a] <= n[1]) for a in qid)
            for row in self.rows
        )

    def keeps(self, candidate):
        _, attribute, node, children = candidate
        cuts = self.after(attribute, node, children)
        return all(self.least(qid, cuts) >= k for qid, k in self.qids)
