"""What a judge saw beyond the table: one level of each node that it refused, and nothing else.

A judge is asked before the others hear of it: step by step, or cut by cut. What it accepts must
be what the others then receive, in the same order. What it refuses is a fact that the table does
not show, agreed by `veto: seen`: it is counted, must be one level below what is published, and must
be right. A part of a group with too few values has no more of them in the finished table, so a
refusal that the table does not bear out is found. It shares no code with the parties. What the
check as a whole finds, and how it reads messages, is here, too.
"""

import struct
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from shoal.errors import UNREADABLE
from shoal.fusion.wire.messages import MessageKind
from shoal.policy.agreement import Agreement

_VALID = 1
Step = tuple[int, int, int, tuple[int, ...]]  # attribute, lo, hi, first cells of the children
Span = tuple[int, int]


@dataclass
class Containment:
    """What the check found: messages and bytes by kind, facts, and all that is wrong.

    names: of the attributes. final: of each of them, first and last cell of the published value of
    every row, (n, 2). vetoed: facts about people that the table does not show, which a judge saw by
    `veto: seen`.
    """

    names: Sequence[str]
    final: Sequence[np.ndarray]
    messages: Counter[str] = field(default_factory=Counter)
    bytes: Counter[str] = field(default_factory=Counter)
    facts: int = 0
    vetoed: int = 0
    wrong: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        return not self.wrong

    def demand(self, holds: bool, what: str) -> None:
        """Notes what is wrong, unless it holds."""
        if not holds:
            self.wrong.append(what)

    def compare(self, j: int, rows: np.ndarray, spans: Span | np.ndarray, who: str = "") -> None:
        """Demands that these rows are published in these cells or wider ones.

        spans: of all rows one, or of each, (rows, 2).
        """
        final, (first, last) = self.final[j][rows], np.transpose(spans)
        more = int(((final[:, 0] < first) | (last < final[:, 1])).sum())
        self.demand(not more, f"{who}{more} rows of '{self.names[j]}' more than is published")

    @contextmanager
    def reading(self, what: str) -> Iterator[None]:
        """Whatever broken messages raise is a finding about `what`."""
        try:
            yield
        except UNREADABLE as unread:
            self.wrong.append(f"{what} can't be read ({type(unread).__name__})")


class Questions:
    """All that the judge was asked, and what it said."""

    def __init__(self, agreement: Agreement, found: Containment, table: pl.DataFrame) -> None:
        sensitive = agreement.model.sensitive
        assert sensitive is not None
        self._found = found
        self._tops = [(j, 0, domain.cells - 1) for j, domain in enumerate(agreement.domains)]
        self._least = sensitive.l
        column = table[sensitive.attribute].fill_null("").to_numpy()
        self._values = np.unique(column.astype(str), return_inverse=True)[1].astype(np.int64)
        groups = np.concatenate(found.final, axis=1)
        self._groups = np.unique(groups, axis=0, return_inverse=True)[1].ravel().astype(np.int64)

    def steps(self, owner: str, asked: list[tuple[int, bytes]], verdicts: list[bytes]) -> None:
        """What a winner asked step by step, between its batches; raises what broken ones raise."""
        self.count(owner, asked, verdicts)
        said = iter(verdicts[1:])
        rows = {top: np.arange(len(self._values)) for top in self._tops}
        accepted: list[Step] = []
        is_refused = False
        for kind, content in asked:
            steps, codes = steps_of(content)
            if kind == MessageKind.BATCH:
                self._demand(steps == accepted, owner, "a batch of other steps than were judged")
                accepted, is_refused = [], False
                continue
            self._demand(len(steps) == 1 and not is_refused, owner, "more than was to be judged")
            j, lo, hi, starts = steps[0]
            under, children = rows[j, lo, hi], children_of(hi, starts)
            child = unpacked(codes, len(under), len(children))
            if next(said)[0] == _VALID:
                accepted += steps
                del rows[j, lo, hi]
                for c, span in enumerate(children):
                    rows[j, span[0], span[1]] = under[child == c]
                    who = f"{owner}: asked the judge about "
                    self._found.compare(j, under[child == c], span, who)
                continue
            is_refused = True
            is_published = bool((self._found.final[j][under] == (lo, hi)).all())
            self._demand(is_published, owner, "a step that was refused, and done all the same")
            self._refuse(owner, self._groups[under] * len(children) + child, under)
        self._demand(not accepted, owner, "steps to be judged that no batch says")

    def cuts(self, owner: str, proposal: bytes, verdict: bytes, groups: list[np.ndarray]) -> bytes:
        """The batch that must follow a proposal of cuts. groups: the rows of those of the turn."""
        said, at, cuts = [], 4, []
        for rows in groups:
            (parts,) = struct.unpack_from("<I", proposal, at)
            said.append(proposal[at : at + 4 + 8 * parts])
            cuts += [(len(said) - 1, rows, parts)] if parts else []
            at += 4 + 8 * parts
        self._demand(len(verdict) == len(cuts), owner, "another number of cuts than was judged")
        packed = []
        for (place, rows, parts), word in zip(cuts, verdict, strict=True):
            size = packed_size(len(rows), parts)
            codes, at = proposal[at : at + size], at + size
            part = unpacked(codes, len(rows), parts)
            if word == _VALID:
                packed.append(codes)
                continue
            said[place] = bytes(4)
            self._refuse(owner, part, rows)
        self._demand(at == len(proposal), owner, "bytes after the end of a proposal")
        return b"".join([proposal[:4], *said, *packed])

    def count(self, owner: str, asked: list[tuple[int, bytes]], verdicts: list[bytes]) -> None:
        """Every proposal has a verdict; the first one is about all people together."""
        proposals = sum(kind == MessageKind.PROPOSAL for kind, _ in asked)
        self._demand(
            verdicts[:1] == [bytes([_VALID])] and len(verdicts) == proposals + 1,
            owner,
            f"{proposals} proposals, where {max(len(verdicts) - 1, 0)} were judged",
        )

    def _refuse(self, owner: str, parts: np.ndarray, rows: np.ndarray) -> None:
        """Counts what a refused level would show; some part of it has too few values."""
        self._found.vetoed += len(rows)
        pairs = np.unique(np.stack([parts.astype(np.int64), self._values[rows]]), axis=1)
        least = int(np.unique(pairs[0], return_counts=True)[1].min())
        self._demand(least < self._least, owner, "what was refused, though no value is missing")

    def _demand(self, holds: bool, owner: str, what: str) -> None:
        self._found.demand(holds, f"{owner}: asked the judge about {what}")


# How messages are read


def steps_of(content: bytes) -> tuple[list[Step], bytes]:
    numbers = np.frombuffer(content[: len(content) // 4 * 4], dtype="<u4").tolist()
    steps: list[Step] = []
    at = 1
    for _ in range(numbers[0]):
        attribute, lo, hi, children = numbers[at : at + 4]
        steps.append((attribute, lo, hi, tuple(numbers[at + 4 : at + 4 + children])))
        at += 4 + children
    return steps, content[4 * at :]


def children_of(hi: int, starts: Sequence[int]) -> list[Span]:
    """The spans of a node's children, whose last cell is `hi`."""
    return [(lo, end - 1) for lo, end in zip(starts, [*starts[1:], hi + 1], strict=True)]


def packed_size(rows: int, values: int) -> int:
    """Bytes of codes of as few bits as `values` need."""
    return -(-rows * max(values - 1, 0).bit_length() // 8)


def unpacked(packed: bytes, rows: int, values: int) -> np.ndarray:
    """Codes of as few bits as `values` need; raises ValueError where they are not that many."""
    bits = max(values - 1, 0).bit_length()
    if len(packed) != packed_size(rows, values):
        raise ValueError("length")
    planes = np.unpackbits(np.frombuffer(packed, dtype=np.uint8), count=rows * bits)
    codes = (planes.reshape(rows, bits).astype(np.int64) << np.arange(bits)).sum(axis=1)
    if rows and int(codes.max()) >= values:
        raise ValueError("codes")
    return codes


# Containment where owners take turns: what all batches together say, replayed turn by turn.
#
# What a batch means depends on all turns before it. So the batches of all owners are put in the
# order of their numbers, and the groups are made again, from the agreement and the messages
# alone. Every fact - these people of a group are in this span - must follow from the finished
# table. It shares no code with the parties.


_UNIT = 1 << 24


class Replay:
    """The groups as the messages make them.

    asked: where there is a judge, each other owner's proposals and the judge's verdicts.
    """

    def __init__(
        self, agreement: Agreement, found: Containment, questions: Questions | None = None
    ) -> None:
        self._found = found
        self._questions = questions
        self._judge = agreement.judge
        self.asked: dict[str, list[tuple[bytes, bytes]]] = {}
        self._domains = agreement.domains
        self._owners = [agreement.owner_of(domain.name) for domain in agreement.domains]
        heaviest = max(agreement.weights)
        self._units = [max(1, round(w / heaviest * _UNIT)) for w in agreement.weights]
        self._trees = [domain.taxonomy.children for domain in agreement.domains]
        self._rows = {0: np.arange(len(found.final[0]))}
        self._spans: dict[int, list[Span]] = {0: [(0, d.cells - 1) for d in self._domains]}
        self._without: dict[int, set[int]] = {0: set()}
        self._following = 1

    def read(self, batches: Mapping[str, Sequence[bytes]], hulls: Mapping[str, bytes]) -> None:
        """All batches, and the last messages of all owners; raises what broken ones raise."""
        numbered = sorted(
            (struct.unpack_from("<I", batch)[0], owner, batch)
            for owner, said in batches.items()
            for batch in said
        )
        self._found.demand(
            [number for number, _, _ in numbered] == list(range(len(numbered))),
            "some turns are missing or come twice",
        )
        for _, owner, batch in numbered:
            self._turn(owner, batch)
        left = sum(self._next(group) is not None for group in self._rows)
        self._found.demand(not left, f"{left} groups whose cut no message states")
        for owner, content in hulls.items():
            self._narrow(owner, content)
        for group, rows in self._rows.items():
            for j, span in enumerate(self._spans[group]):
                self._found.demand(
                    bool((self._found.final[j][rows] == span).all()),
                    f"a group's '{self._domains[j].name}' is not published as messages state it",
                )

    def _turn(self, owner: str, batch: bytes) -> None:
        at = 4
        waiting = deque(
            group for group in sorted(self._rows) if self._owner_of(self._next(group)) == owner
        )
        self._found.demand(bool(waiting), f"{owner} had a turn without any group to cut")
        if self._questions is not None and owner != self._judge:
            proposal, verdict = self.asked[owner].pop(0)
            groups = [self._rows[group] for group in waiting]
            expected = self._questions.cuts(owner, proposal, verdict, groups)
            self._found.demand(
                batch == expected, f"{owner}: a batch of other cuts than were judged"
            )
        pending: list[tuple[int, int, list[Span], list[int]]] = []
        before = dict(self._rows)
        while waiting:
            group = waiting.popleft()
            j = self._next(group)
            assert j is not None
            (parts,) = struct.unpack_from("<I", batch, at)
            spans = _spans(struct.unpack_from(f"<{2 * parts}I", batch, at + 4))
            at += 4 + 8 * parts
            if not parts:
                self._without[group].add(j)
                fresh = [group]
            else:
                self._found.demand(
                    self._fits(j, self._spans[group][j], spans),
                    "a cut of a node that does not exist",
                )
                fresh = self._divide(group, j, spans)
                pending.append((group, j, spans, fresh))
            if self._judge is None:
                waiting.extend(g for g in fresh if self._owner_of(self._next(g)) == owner)
        below = {group: fresh for group, _, _, fresh in pending}
        self._distribute(batch[at:], before, below)
        for group, j, spans, fresh in pending:
            for span, part in zip(spans, fresh, strict=True):
                rows = [self._rows[end] for end in _ends(part, below)]
                self._compare(j, np.concatenate(rows), span)
            self._rows.pop(group, None)

    def _divide(self, group: int, j: int, spans: list[Span]) -> list[int]:
        fresh = list(range(self._following, self._following + len(spans)))
        for part, span in zip(fresh, spans, strict=True):
            self._spans[part] = list(self._spans[group])
            self._spans[part][j] = span
            self._without[part] = set()
        self._following += len(spans)
        return fresh

    def _distribute(
        self, packed: bytes, before: Mapping[int, np.ndarray], below: Mapping[int, list[int]]
    ) -> None:
        """Reads in which group each row ends."""
        for root in [group for group in below if group in before]:
            leaves = sorted(_ends(root, below))
            rows = before[root]
            size = packed_size(len(rows), len(leaves))
            codes = unpacked(packed[:size], len(rows), len(leaves))
            packed = packed[size:]
            for code, leaf in enumerate(leaves):
                self._rows[leaf] = rows[codes == code]
        self._found.demand(not packed, "bytes after the end of a batch")

    def _narrow(self, owner: str, content: bytes) -> None:
        own = [j for j, name in enumerate(self._owners) if name == owner]
        groups = sorted(self._rows)
        spans = iter(_spans(struct.unpack(f"<{2 * len(own) * len(groups)}I", content)))
        for j in own:
            for group in groups:
                self._spans[group][j] = next(spans)
                self._compare(j, self._rows[group], self._spans[group][j])

    def _compare(self, j: int, rows: np.ndarray, span: Span) -> None:
        """A fact: these people are in this span of cells."""
        self._found.compare(j, rows, span)
        self._found.facts += len(rows)

    def _next(self, group: int) -> int | None:
        """The attribute with the widest published span, times its weight, that is not refused."""
        widths = [
            (self._units[j] * (hi - lo) // (self._domains[j].cells - 1), -j)
            for j, (lo, hi) in enumerate(self._spans[group])
            if lo < hi and j not in self._without[group]
        ]
        return -max(widths)[1] if widths else None

    def _owner_of(self, attribute: int | None) -> str | None:
        return None if attribute is None else self._owners[attribute]

    def _fits(self, j: int, span: Span, parts: list[Span]) -> bool:
        if self._domains[j].hierarchy is None:
            (low, end), (start, high) = parts
            return (low, high) == span and low <= end and start == end + 1 <= high
        inside = [
            set(children_of(node[1], starts.tolist()))
            for node, starts in self._trees[j].items()
            if span[0] <= node[0] and node[1] <= span[1]
        ]
        return len(parts) > 1 and any(set(parts) <= children for children in inside)


def _spans(numbers: Sequence[int]) -> list[Span]:
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def _ends(group: int, below: Mapping[int, list[int]]) -> list[int]:
    """What is left of a group after a batch."""
    ends, left = [], [group]
    while left:
        group = left.pop()
        if group in below:
            left.extend(below[group])
        else:
            ends.append(group)
    return ends
