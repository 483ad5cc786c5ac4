"""What every class publishes: one span per class and quasi-identifier, written as text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from shoal.data.encoding import EncodedAttribute
from shoal.data.schema import Render


@dataclass(frozen=True)
class Recoding:
    """Local recoding of n records.

    labels: (n,) int32 class of each record, -1 where suppressed.
    lo, hi: (classes, attributes) int32, least and greatest rank of each class.
    """

    labels: np.ndarray
    lo: np.ndarray
    hi: np.ndarray

    @classmethod
    def of(cls, labels: np.ndarray, count: int, attributes: tuple[EncodedAttribute, ...]) -> Recoding:
        """The tightest spans that cover the members of each of `count` classes."""
        lo = np.full((count, len(attributes)), np.iinfo(np.int32).max, dtype=np.int32)
        hi = np.full((count, len(attributes)), -1, dtype=np.int32)
        kept = labels >= 0
        members = labels if kept.all() else labels[kept]
        for j, encoded in enumerate(attributes):
            ranks = encoded.ranks if kept.all() else encoded.ranks[kept]
            np.minimum.at(lo[:, j], members, ranks)
            np.maximum.at(hi[:, j], members, ranks)
        return cls(labels, lo, hi)

    def column(self, j: int, encoded: EncodedAttribute, render: Render) -> pl.Series:
        """The published cells of attribute j: the value where the class agrees on it, else its span."""
        ranks = len(encoded.texts)
        spans, span_of_class = _distinct(self.lo[:, j].astype(np.int64) * ranks + self.hi[:, j], ranks * ranks)
        texts = span_texts(spans // ranks, spans % ranks, encoded, render)
        distinct: dict[str, int] = {}
        cell_of_span = np.array([distinct.setdefault(text, len(distinct)) for text in texts], dtype=np.uint32)
        mark = distinct.setdefault(render.suppressed, len(distinct))
        # the last place is what label -1, a suppressed record, leads to
        cell_of_class = np.append(cell_of_span[span_of_class], np.uint32(mark))
        # a class whose members all lack the value publishes just that: no value
        labelled = [text for text in distinct if text]
        cells = pl.Series(encoded.attribute.name, [text or None for text in distinct], dtype=pl.Enum(labelled))
        return cells.gather(cell_of_class[self.labels])


def _distinct(numbers: np.ndarray, below: int) -> tuple[np.ndarray, np.ndarray]:
    """The distinct numbers, ascending, and the place of each among them; a table instead of a sort if that is small."""
    if below > 4 * len(numbers) + (1 << 16):
        return np.unique(numbers, return_inverse=True)
    occurs = np.zeros(below, dtype=bool)
    occurs[numbers] = True
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[numbers]


def span_texts(lo: np.ndarray, hi: np.ndarray, encoded: EncodedAttribute, render: Render) -> list[str]:
    """The text of each span of ranks."""
    hierarchy = encoded.attribute.hierarchy
    whole = hi < encoded.present
    node = np.zeros(len(lo), dtype=np.int32)
    if hierarchy is not None and whole.any():
        leaves = encoded.values.astype(np.int32)
        node[whole] = hierarchy.covering(leaves[lo[whole]], leaves[hi[whole]])
    head, middle, tail = render.parts
    texts = []
    for i in range(len(lo)):
        if lo[i] == hi[i] or (whole[i] and encoded.values[lo[i]] == encoded.values[hi[i]]):
            texts.append(encoded.texts[lo[i]])
        elif not whole[i]:
            texts.append(render.suppressed)  # some have a value and some have none: nothing narrower covers both
        elif hierarchy is not None:
            texts.append(hierarchy.labels[node[i]])
        else:
            texts.append(f"{head}{encoded.texts[lo[i]]}{middle}{encoded.texts[hi[i]]}{tail}")
    return texts
