"""Joint tables for the tests of fusion, and a way to run all parties in one process."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.schema import IndexedRequirement, Taxonomy
from shoal.fusion.ground import REFUSED, Ground
from shoal.fusion.secure_maximum import plain_maximum
from shoal.search.specialization import Candidates, Specialization

BLUE = ("Janitor", "Mover", "Carpenter", "Technician")
JOB = Hierarchy.from_paths(
    [[job, "Blue-collar", "Any"] for job in BLUE]
    + [["Manager", "White-collar", "Any"]]
    + [[job, "Professional", "White-collar", "Any"] for job in ("Account", "Lawyer")]
)
SEX = Hierarchy.from_paths([["Male", "Any"], ["Female", "Any"]])
TABLE_1 = [
    ("Male", "Janitor", 30, 0, 3),
    ("Male", "Mover", 32, 0, 4),
    ("Male", "Carpenter", 35, 2, 3),
    ("Female", "Technician", 37, 3, 1),
    ("Female", "Manager", 42, 4, 2),
    ("Female", "Manager", 44, 3, 0),
    ("Male", "Account", 44, 3, 0),
    ("Female", "Account", 44, 3, 0),
    ("Male", "Lawyer", 44, 2, 0),
    ("Female", "Lawyer", 44, 1, 0),
]


def shown(party, attributes: int) -> list[tuple]:
    """What is published of every row."""
    columns = [party.published(j) for j in range(attributes)]
    return list(zip(*([spans[i] for i in of] for spans, of in columns), strict=True))


def values_by_group(groups: list[tuple], values: np.ndarray) -> list[int]:
    """How many different values each group has. groups: what is published of every row."""
    seen: dict[tuple, set[int]] = {}
    for group, value in zip(groups, values.tolist(), strict=True):
        seen.setdefault(group, set()).add(value)
    return [len(found) for found in seen.values()]


def whether_diverse(values: np.ndarray, least: int):
    """Whether every group over all attributes has so many of the values, slow; of a state."""

    def allows(state: Specialization) -> bool:
        nodes = np.stack([state.nodes(j) for j in range(len(state.codes))], axis=1).tolist()
        return min(values_by_group([*map(tuple, nodes)], values)) >= least

    return allows


@dataclass(frozen=True)
class Case:
    """A joint table in cells, its classes, and what must hold."""

    names: tuple[str, ...]
    codes: tuple[np.ndarray, ...]
    taxonomies: tuple[Taxonomy, ...]
    classes: np.ndarray
    qids: tuple[IndexedRequirement, ...]
    weights: tuple[float, ...] = ()

    def state(self, allows=None) -> Specialization:
        return Specialization(self.codes, [t.cells for t in self.taxonomies], self.qids, allows)

    def ground(self, owners, **more) -> Ground:
        """What all owners know; owners: attribute numbers by party."""
        whose = [
            next(p for p, own in enumerate(owners) if j in own) for j in range(len(self.codes))
        ]
        weights = self.weights or (1.0,) * len(self.codes)
        return Ground(self.taxonomies, self.classes, self.qids, weights, whose, **more)

    def parties(self, rule, owners, veto=None, **more):
        """All parties. veto: the judge by number, values that it alone knows, and how many."""
        shown = [{} if veto is None else {"judge": veto[0]} for _ in owners]
        if veto is not None:
            shown[veto[0]]["judged"] = veto[1:]
        return [
            rule.party(self.ground(owners, **more, **knows), {j: self.codes[j] for j in own})
            for own, knows in zip(owners, shown, strict=True)
        ]

    def in_turns(self, rule, owners, veto=None, **more):
        """All parties' runs of a method with turns, in one process: parties and batches."""
        parties = self.parties(rule, owners, veto, **more)
        batches = []
        while (owner := parties[0].turn()) is not None:
            assert {party.turn() for party in parties} == {owner}
            verdict = None
            if veto is not None and veto[0] != owner:
                verdict = parties[veto[0]].judge(parties[owner].propose())
            batches.append((owner, parties[owner].decide(verdict)))
            for party in parties:
                if party is not parties[owner]:
                    party.apply(batches[-1][1])
        hulls = [(p, sorted(own), parties[p].hulls()) for p, own in enumerate(owners) if own]
        for p, own, said in hulls:
            for party in parties:
                if said is not None and party is not parties[p]:
                    party.narrow(said, own)
        return parties, batches

    def alone(self, score="gain-ratio", allows=None):
        """One owner's run: the state and its steps."""
        state = self.state(allows)
        candidates = Candidates(state, dict(enumerate(self.taxonomies)), self.classes, score)
        steps = []
        while (taken := candidates.take_best()) is not None:
            steps.append(taken.done.step)
        return state, steps

    def together(self, rule, owners, veto=None, **more):
        """All parties' runs in one process; owners: attributes by party. Parties and batches."""
        parties = self.parties(rule, owners, veto, **more)
        batches = []
        while True:
            winner, steps, runner_up = plain_maximum([party.bid() for party in parties])
            if not steps:
                return parties, batches
            if getattr(rule, "runner_up", "") == "told":
                steps = parties[winner].go_on(runner_up)
            others = [party for p, party in enumerate(parties) if p != winner]
            for party in others:
                party.lose()
            valid = steps
            if veto is not None and veto[0] != winner:
                verdicts = (
                    parties[veto[0]].judge(parties[winner].propose(number))
                    for number in range(steps)
                )
                valid = next((n for n, verdict in enumerate(verdicts) if verdict == REFUSED), steps)
            batch = parties[winner].specialize(valid, valid < steps)
            batches.append((winner, batch))
            for party in others:
                party.apply(batch)


def paper_case() -> Case:
    """Table 1 of Yang and Wang with its QIDs; Technician is taken for blue-collar."""
    rows = [(s, j, w, c) for s, j, w, yes, no in TABLE_1 for c in [1] * yes + [0] * no]
    return Case(
        ("job", "salary", "sex"),
        (
            JOB.leaf_codes([r[1] for r in rows]),
            np.array([r[2] - 1 for r in rows]),
            SEX.leaf_codes([r[0] for r in rows]),
        ),
        (Taxonomy.of_tree(JOB), Taxonomy(99, is_number=True), Taxonomy.of_tree(SEX)),
        np.array([r[3] for r in rows]),
        (IndexedRequirement((0, 2), 4), IndexedRequirement((1, 2), 11)),
    )


TREES = [
    Hierarchy.from_paths(
        [
            [f"v{i}", f"g{i // 2}", f"h{i // 4}", "*"] if i < 6 else [f"v{i}", "rest", "*"]
            for i in range(8)
        ]
    ),
    Hierarchy.from_paths([["a", "*"], ["b", "*"], ["c", "d", "*"], ["e", "d", "*"]]),
]


@st.composite
def cases(draw):
    """A small joint table with several QIDs."""
    records = draw(st.integers(2, 60))
    kinds = draw(st.lists(st.sampled_from(["number", 0, 1]), min_size=1, max_size=4))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    taxonomies = [
        Taxonomy(12, is_number=True) if kind == "number" else Taxonomy.of_tree(TREES[kind])
        for kind in kinds
    ]
    codes = [rng.integers(0, t.cells, records) for t in taxonomies]
    classes = (sum(codes) + rng.integers(0, 5, records) > 8).astype(np.int64) + (
        rng.random(records) < 0.1
    )
    numbers = list(range(len(kinds)))
    qids = [IndexedRequirement(tuple(numbers), draw(st.integers(1, max(1, records // 4))))]
    for _ in range(draw(st.integers(0, 2))):
        some = draw(st.lists(st.sampled_from(numbers), min_size=1, unique=True))
        qids.append(
            IndexedRequirement(tuple(sorted(some)), draw(st.integers(1, max(1, records // 2))))
        )
    return Case(
        tuple(f"a{j}" for j in numbers), tuple(codes), tuple(taxonomies), classes, tuple(qids)
    )


@st.composite
def owners_of(draw, attributes: int):
    """Who owns which attribute: 1 to 5 parties, some perhaps without any."""
    parties = draw(st.integers(1, 5))
    whose = draw(st.lists(st.integers(0, parties - 1), min_size=attributes, max_size=attributes))
    return [[j for j in range(attributes) if whose[j] == p] for p in range(parties)]


@st.composite
def vetoes(draw, owners: int, records: int):
    """Who judges, its values, and how many different ones a group has at least."""
    values = draw(st.lists(st.integers(0, 3), min_size=records, max_size=records))
    return draw(st.integers(0, owners - 1)), np.array(values), draw(st.integers(1, 3))
