"""What a judge saw beyond the table: one level of each node that it refused, and nothing else.

A judge is asked before the others hear of it: step by step, or cut by cut. What it accepts must
be what the others then receive, in the same order. What it refuses is a fact that the table does
not show, agreed by `veto: seen`: it is counted, must be one level below what is published, and must
be right. A part of a group with too few values has no more of them in the finished table, so a
refusal that the table does not bear out is found. It shares no code with the parties.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
import polars as pl

from shoal.connectors.party.messages import MessageKind
from shoal.policy.agreement import Agreement

_VALID = 1
Step = tuple[int, int, int, tuple[int, ...]]  # attribute, lo, hi, first cells of the children


class Questions:
    """All that the judge was asked, and what it said. vetoed: facts about people that it saw more.

    final: of every attribute, first and last cell of the published value of every row, (n, 2).
    """

    def __init__(
        self, agreement: Agreement, final: Sequence[np.ndarray], table: pl.DataFrame
    ) -> None:
        sensitive = agreement.model.sensitive
        assert sensitive is not None
        self._final = final
        self._tops = [(j, 0, domain.cells - 1) for j, domain in enumerate(agreement.domains)]
        self._names = [domain.name for domain in agreement.domains]
        self._least = sensitive.l
        column = table[sensitive.attribute].fill_null("").to_numpy()
        self._values = np.unique(column.astype(str), return_inverse=True)[1].astype(np.int64)
        groups = np.concatenate(final, axis=1)
        self._groups = np.unique(groups, axis=0, return_inverse=True)[1].ravel().astype(np.int64)
        self.vetoed = 0
        self.wrong: list[str] = []

    def steps(self, owner: str, asked: list[tuple[int, bytes]], verdicts: list[bytes]) -> None:
        """What a winner asked step by step, between its batches; raises what broken ones raise."""
        self.count(owner, asked, verdicts)
        said = iter(verdicts[1:])
        rows = {top: np.arange(len(self._values)) for top in self._tops}
        accepted: list[Step] = []
        is_refused = False
        for kind, content in asked:
            steps, codes = _steps(content)
            if kind == MessageKind.BATCH:
                self._demand(steps == accepted, owner, "a batch of other steps than were judged")
                accepted, is_refused = [], False
                continue
            self._demand(len(steps) == 1 and not is_refused, owner, "more than was to be judged")
            j, lo, hi, starts = steps[0]
            under, children = rows[j, lo, hi], _children(hi, starts)
            child = _codes(codes, len(under), len(children))
            if next(said)[0] == _VALID:
                accepted += steps
                del rows[j, lo, hi]
                for c, span in enumerate(children):
                    rows[j, span[0], span[1]] = under[child == c]
                    self._compare(owner, j, under[child == c], span)
                continue
            is_refused = True
            is_published = (self._final[j][under] == (lo, hi)).all()
            self._demand(
                bool(is_published), owner, "a step that was refused, and done all the same"
            )
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
            size = -(-len(rows) * max(parts - 1, 0).bit_length() // 8)
            codes, at = proposal[at : at + size], at + size
            part = _codes(codes, len(rows), parts)
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
        """A refused level: so many facts more, and some part has too few values."""
        self.vetoed += len(rows)
        pairs = np.unique(np.stack([parts.astype(np.int64), self._values[rows]]), axis=1)
        least = int(np.unique(pairs[0], return_counts=True)[1].min())
        self._demand(least < self._least, owner, "what was refused, though no value is missing")

    def _compare(self, owner: str, j: int, rows: np.ndarray, span: tuple[int, int]) -> None:
        final = self._final[j][rows]
        more = int(((final[:, 0] < span[0]) | (span[1] < final[:, 1])).sum())
        self._demand(not more, owner, f"{more} rows of '{self._names[j]}' more than is published")

    def _demand(self, holds: bool, owner: str, what: str) -> None:
        if not holds:
            self.wrong.append(f"{owner}: asked the judge about {what}")


def _steps(content: bytes) -> tuple[list[Step], bytes]:
    """The steps of a batch, and the codes behind them."""
    numbers = np.frombuffer(content[: len(content) // 4 * 4], dtype="<u4").tolist()
    steps: list[Step] = []
    at = 1
    for _ in range(numbers[0]):
        attribute, lo, hi, children = numbers[at : at + 4]
        steps.append((attribute, lo, hi, tuple(numbers[at + 4 : at + 4 + children])))
        at += 4 + children
    return steps, content[4 * at :]


def _children(hi: int, starts: Sequence[int]) -> list[tuple[int, int]]:
    return [(lo, end - 1) for lo, end in zip(starts, [*starts[1:], hi + 1], strict=True)]


def _codes(packed: bytes, rows: int, values: int) -> np.ndarray:
    """Codes of as few bits as `values` need; raises ValueError where they are not that many."""
    bits = max(values - 1, 0).bit_length()
    if len(packed) != -(-rows * bits // 8):
        raise ValueError("length")
    planes = np.unpackbits(np.frombuffer(packed, dtype=np.uint8), count=rows * bits)
    codes = (planes.reshape(rows, bits).astype(np.int64) << np.arange(bits)).sum(axis=1)
    if rows and int(codes.max()) >= values:
        raise ValueError("codes")
    return codes
