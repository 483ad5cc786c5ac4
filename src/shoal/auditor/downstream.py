"""Downstream utility of an audited release: what models learn, how well it answers counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.auditor.trained_models import Spans, prediction_errors, query_error
from shoal.data.release import Release
from shoal.data.schema import Schema
from shoal.data.truth import Truth
from shoal.errors import InputError

MOST_RECORDS = 100_000  # of a larger table that many are drawn


def downstream(release: Release, schema: Schema, truth: Truth | None, seed: int) -> dict[str, Any]:
    """The `downstream` part of a certificate.

    Raises InputError without the original's records, MissingExtraError without scikit-learn.
    """
    if truth is None:
        raise InputError(
            "downstream utility: compares records of the release with the original's; give"
            " --original, and leave rows unshuffled"
        )
    chosen = _chosen(release.records, seed)
    columns = _spans(release, schema, truth, chosen)
    measured: dict[str, Any] = {"records": len(chosen), "query_error": query_error(columns, seed)}
    if schema.label is not None:
        label = truth.aligned(truth.original.column(schema.label).codes)[chosen].astype(np.int64)
        kept = release.shown.labels[chosen] >= 0
        measured |= {"label": schema.label, **prediction_errors(columns, label, kept, seed)}
    return measured


def _chosen(records: int, seed: int) -> np.ndarray:
    if records <= MOST_RECORDS:
        return np.arange(records)
    return np.sort(np.random.default_rng([seed, 4]).permutation(records)[:MOST_RECORDS])


def _spans(release: Release, schema: Schema, truth: Truth, chosen: np.ndarray) -> list[Spans]:
    return [
        Spans(
            attribute,
            published.lo[published.codes[chosen]],
            published.hi[published.codes[chosen]],
            truth.values(encoded)[chosen],
        )
        for attribute, published, encoded in zip(
            schema.quasi, release.columns, truth.encoded.attributes, strict=True
        )
    ]
