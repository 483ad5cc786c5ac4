"""Party TDS: several owners specialize one table; none sees more of another's than is published.

Yang, Wang. Research on data fusion algorithm for multi-party based on k-anonymity (in Chinese).
Computer Technology and Development 27(5):102-107, 2017. Its baseline: Mohammed, Fung, Debbabi.
Anonymity meets game theory: secure data integration with malicious participants. The VLDB Journal
20(4):567-588, 2011.
Promise: every party ends with the same table, whose groups keep every QID's k (specialization.py
says how).
Paper: Tg, winner       Here: the state, who won the round
       (id, c)                a batch of child codes in row order
Reading: the paper lets the winner, who knows the runner-up's score, continue with a *new* child
while it beats that. An older candidate of the winner's that would beat all others is then passed
over, and the table may differ from that of single steps: `party-tds-literal`.
Reading: `party-tds` continues with its best valid candidate, old or new, while it beats the
runner-up at the beginning of the round. The others' scores don't rise, and what is invalid stays
so: what beats the stale runner-up beats the true one, and what does not only starts another round.
So the steps, and the table, are those of `party-tds-stepwise` and of `tds` on the joined table.
Reading: the runner-up's score stays hidden. Every party plans its next `ahead` steps on its own
copy and submits their scores (each at most the one before, zeros at the end). The secure maximum
yields who wins, and how many of its steps beat the first of every other party. Both can be seen in
the batch anyway. Losers undo their plans.
Reading: a batch carries packed child codes in the order of the rows, for the deepest nodes alone;
no record ids.
Reconstruction: a judge, the owner of a sensitive attribute that the others don't see, refuses steps
that leave too few of its values in a group. The winner asks it step by step, so that it sees
nothing behind a refused one, and drops that step for good. Whom the judge refuses stays refused: a
part of a group has no more values than the group. So bids are still at least what steps are worth
in truth, and the order of steps is that of one owner who knows all columns.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import ClassVar

import numpy as np

from shoal.data.option import parameter
from shoal.data.schema import Span
from shoal.fusion.ground import (
    BREAKS_OFF,
    NO_BATCH,
    OTHER_AGREEMENT,
    REFUSED,
    VALID,
    Ground,
    pack,
    packed_size,
    unfit,
    unpack_all,
)
from shoal.protocols import FusionMethod
from shoal.search import specialization
from shoal.search.kernels import specialize

MOST_LABELS = 1 << 16
MOST_AHEAD, USUAL_AHEAD = 64, 8
NOT_OWN = "sent a step on what is not its own"
_NUMBER = struct.Struct("<I")
_STEP = struct.Struct("<4I")  # attribute, lo, hi, children
NOTHING = _NUMBER.pack(0)  # the batch of a winner whose first step is refused
SCORE = {
    "help": "what makes a specialization good: the paper's gain ratio, or gain",
    "choices": specialization.SCORES[:2],
}
PAPER = (
    "Yang, Wang. Research on data fusion algorithm for multi-party based on k-anonymity. "
    "Computer Technology and Development 27(5), 2017."
)


class TdsRule:
    """What every rule for batches has in common: a party, and what others take from it."""

    score: str

    @property
    def most_ahead(self) -> int:
        """How many steps a party plans at most for each secure round."""
        raise NotImplementedError

    def party(self, ground: Ground, own: Mapping[int, np.ndarray]) -> "Party":
        """An owner in the rounds, with the cells of its own attributes."""
        return Party(self, ground, own)

    def worth_bits(self, attributes: int) -> int:
        """Bits that hold every bid and its sign: no gain is above log2 of the number of labels."""
        unit = specialization.FINE_UNIT if self.score == "gain-per-loss" else specialization.UNIT
        most = MOST_LABELS.bit_length() * unit * attributes + attributes
        return most.bit_length() + 1

    def most_batch(self, records: int, cells: Mapping[int, int]) -> int:
        """The most bytes of a batch on these attributes of this number of rows."""
        starts = min(specialization.MOST_CHILDREN, max(cells.values(), default=0))
        codes = len(cells) * packed_size(records, specialization.MOST_CHILDREN)
        return _NUMBER.size + MOST_AHEAD * (_STEP.size + 4 * starts) + codes

    def most_batches(self, records: int, nodes: int) -> int:
        """How many batches an owner can send whose attributes have this number of nodes."""
        return nodes

    def check_batch(self, batch: bytes, cells: Mapping[int, int]) -> None:
        """Raises PartyError where a batch can't be one of these attributes, whatever the rows."""
        for step in decode_steps(batch)[0]:
            if step.hi >= cells.get(step.attribute, 0):
                raise unfit(NOT_OWN)


@dataclass(frozen=True)
class PartyTds(TdsRule, FusionMethod):
    """Exact batching: the table of the step-by-step rule in fewer rounds."""

    name: ClassVar[str] = "party-tds"
    paper: ClassVar[str] = PAPER

    score: str = field(default="gain-ratio", metadata=SCORE)
    ahead: int = parameter(
        "steps that a party plans for each secure round, the winner does no more; 0: one where"
        " messages take less than 5 ms, else 8",
        default=0,
        low=0,
        high=MOST_AHEAD,
    )

    @property
    def most_ahead(self) -> int:
        return self.ahead or USUAL_AHEAD


class Party:
    """One owner in the loop: bids, then specializes if it wins or applies the winner's batch.

    own: the cells of this party's attributes, (n,) integers, by number. A party without attributes
    of its own only follows.
    """

    def __init__(self, rule: TdsRule, ground: Ground, own: Mapping[int, np.ndarray]) -> None:
        self._rule = rule
        self._own = frozenset(own)
        self._taxonomies = ground.taxonomies
        codes = [
            own[j] if j in own else np.zeros(ground.people, dtype=np.min_scalar_type(t.cells - 1))
            for j, t in enumerate(ground.taxonomies)
        ]
        cells = [t.cells for t in ground.taxonomies]
        keeps = _kept_by(ground) if ground.needs_more_than_k else None
        self.state = specialization.Specialization(codes, cells, ground.qids, None, keeps)
        self.candidates = specialization.Candidates(
            self.state, {j: ground.taxonomies[j] for j in sorted(own)}, ground.classes, rule.score
        )
        # steps of a batch at least; none where all may be refused
        self._fewest = 1 if ground.judge is None else 0
        self.plan: list[specialization.Taken] = []
        self._judged: list[specialization.Done] = []
        self.steps: list[specialization.Step] = []

    @property
    def touched(self) -> int:
        """How many rows all steps and trials have read."""
        return self.state.touched

    def warm_up(self) -> None:
        """Loads the compiled loops by a step on every attribute; then the party is spent."""
        self.bid()
        for j, taxonomy in enumerate(self._taxonomies):
            starts = taxonomy.children.get(taxonomy.root, np.array([0, 1]))
            if self.state.cut(j) == [taxonomy.root]:
                self.state.step(specialization.Step(j, *taxonomy.root, tuple(starts.tolist())))

    def hulls(self) -> bytes | None:
        """Nothing: a node is what all rows under it show."""
        return None

    def narrow(self, hulls: bytes | bytearray, attributes: Sequence[int]) -> None:
        """Nothing: no party sends hulls."""

    def published(self, attribute: int) -> tuple[list[Span], np.ndarray]:
        """The nodes of an attribute, and which of them each row has; (n,) int32."""
        return self.state.cut(attribute), self.state.nodes(attribute)

    def bid(self, ahead: int = 0) -> list[int]:
        """What the party's next steps are worth, never rising; 0 where it has no more.

        ahead: how many; 0 for as many as the rule plans at most. No two parties bid the same,
        unless both bid 0.
        """
        bids: list[int] = []
        ahead = ahead or self._rule.most_ahead
        while len(bids) < ahead and self.plan_next():
            bids.append(min([*bids[-1:], self.worth(self.plan[-1])]))
        return bids + [0] * (ahead - len(bids))

    def plan_next(self) -> bool:
        """Plans the best step; False where there is none."""
        taken = self.candidates.take_best(self.eligible())
        if taken is not None:
            self.plan.append(taken)
        return taken is not None

    def eligible(self) -> list[specialization.Candidate] | None:
        """What the next step is chosen among; None for all candidates."""
        return None

    def lose(self) -> None:
        self.keep(0)

    def propose(self, number: int) -> bytes:
        """One step of the plan, as a batch for the judge."""
        done = self.plan[number].done
        return encoded([done.step], {done.step: done.rows}, self.state.codes)

    def judge(self, proposal: bytes | bytearray) -> bytes:
        """Whether a step that another party proposes is valid; what is, is done until `apply`."""
        steps, packed = decode_steps(proposal, 1)
        self._place(steps, packed)
        done = self.state.step(steps[0])
        if done is not None:
            self._judged.append(done)
        return REFUSED if done is None else VALID

    def specialize(self, steps: int, is_refused: bool = False) -> bytes:
        """Keeps the first steps of the plan; returns them as a batch for the others.

        is_refused: whether the judge refused the step after these, which is then dropped for good.
        """
        refused = self.plan[steps].done.step if is_refused else None
        self.keep(steps)
        if refused is not None:
            self.candidates.close(refused)
        steps_done = [taken.done.step for taken in self.plan]
        rows = {taken.done.step: taken.done.rows for taken in self.plan}
        self.plan = []
        self.steps += steps_done
        return encoded(steps_done, rows, self.state.codes)

    def apply(self, batch: bytes | bytearray) -> None:
        """Does the steps of another party's batch; raises PartyError where they can't be right."""
        while self._judged:
            self.state.undo(self._judged.pop())
        steps, packed = decode_steps(batch, fewest=self._fewest)
        self._place(steps, packed)
        for step in steps:
            self._check(step)
            if self.state.step(step) is None:
                raise unfit("sent a step that breaks a promise", BREAKS_OFF)
        self.steps += steps

    def _place(self, steps: Sequence[specialization.Step], packed: bytes | bytearray) -> None:
        """Puts rows under the deepest nodes of a batch; raises PartyError where that can't be."""
        roots = batch_roots(steps)
        for root in roots:
            self._check(root)
        rows = [self.state.rows[root.attribute][root.lo, root.hi] for root in roots]
        first_cells = [final_nodes(root, steps) for root in roots]
        sizes = zip(map(len, rows), map(len, first_cells), strict=True)
        for i, codes in enumerate(unpack_all(packed, sizes)):
            self.state.codes[roots[i].attribute][rows[i]] = first_cells[i][codes]

    def _check(self, step: specialization.Step) -> None:
        known = step.attribute < len(self._taxonomies) and step.attribute not in self._own
        if not known or (step.lo, step.hi) not in self.state.rows[step.attribute]:
            raise unfit(NOT_OWN)
        taxonomy = self._taxonomies[step.attribute]
        children = taxonomy.children.get((step.lo, step.hi))
        if children is None:
            fits = len(step.starts) == 2 and taxonomy.is_number
        else:
            fits = step.starts == tuple(children)
        first, *others = step.starts
        if not fits or first != step.lo or any(not step.lo < one <= step.hi for one in others):
            raise unfit("sent a step that is not in its taxonomy", OTHER_AGREEMENT)

    def keep(self, steps: int) -> None:
        while len(self.plan) > steps:
            self.candidates.take_back(self.plan.pop())

    def worth(self, taken: specialization.Taken) -> int:
        """A positive whole number that orders all candidates; among equals the attribute does."""
        attributes = len(self._taxonomies)
        return taken.score * attributes + attributes - taken.done.step.attribute


def _kept_by(ground: Ground) -> Callable[[np.ndarray, np.ndarray], bool]:
    """What a step is asked beyond k: what all know and, of the judge, what it knows alone."""
    if ground.judged is None:
        return ground.keeps
    return lambda parts, rows: ground.keeps(parts, rows) and not ground.refuses(parts, rows)


# A batch on the wire: whole numbers of 4 bytes (steps; for each attribute, lo, hi, children and
# their first cells), then codes


def encoded(
    steps: Sequence[specialization.Step],
    rows: Mapping[specialization.Step, np.ndarray],
    codes: Sequence[np.ndarray],
) -> bytes:
    numbers = [len(steps)]
    for step in steps:
        numbers += [step.attribute, step.lo, step.hi, len(step.starts), *step.starts]
    packed = []
    for root in batch_roots(steps):
        first_cells = final_nodes(root, steps)
        whole = specialization.Step(root.attribute, root.lo, root.hi, tuple(first_cells.tolist()))
        child_codes = specialize.children_of(
            rows[root], codes[root.attribute], root.lo, specialization.child_of_cell(whole)
        )
        packed.append(pack(child_codes, len(first_cells)))
    return np.array(numbers, dtype="<u4").tobytes() + b"".join(packed)


def decode_steps(
    batch: bytes | bytearray, most: int = MOST_AHEAD, fewest: int = 1
) -> tuple[list[specialization.Step], bytes | bytearray]:
    """The steps of a batch, and the packed codes after them.

    Raises PartyError where it has fewer than `fewest` or more than `most`, or where one is not a
    step at all.
    """
    steps = []
    at = 4
    try:
        (count,) = _NUMBER.unpack_from(batch)
        if not fewest <= count <= most:
            raise ValueError
        for _ in range(count):
            attribute, lo, hi, children = _STEP.unpack_from(batch, at)
            if not 1 <= children <= specialization.MOST_CHILDREN:
                raise ValueError
            starts = struct.unpack_from(f"<{children}I", batch, at + _STEP.size)
            if starts[0] != lo or any(a >= b for a, b in pairwise((*starts, hi + 1))):
                raise ValueError
            steps.append(specialization.Step(attribute, lo, hi, starts))
            at += _STEP.size + 4 * children
    except (ValueError, struct.error):
        raise unfit(NO_BATCH) from None
    return steps, batch[at:]


def batch_roots(steps: Sequence[specialization.Step]) -> list[specialization.Step]:
    """The steps on nodes that existed before the batch."""
    made = {(step.attribute, *span) for step in steps for span in specialization.spans_of(step)}
    return [step for step in steps if (step.attribute, step.lo, step.hi) not in made]


def final_nodes(root: specialization.Step, steps: Sequence[specialization.Step]) -> np.ndarray:
    """First cells of the nodes that the batch leaves under one of its roots, ascending."""
    inside = [
        s for s in steps if s.attribute == root.attribute and root.lo <= s.lo and s.hi <= root.hi
    ]
    return np.array(sorted({start for step in inside for start in step.starts}))
