"""Big inputs, made in a process of their own: the one that measures stays small, and nothing big is
committed.

python inputs.py table OUT.csv ROWS COLUMN,...     records of Adult, resampled where ROWS is not 0
python inputs.py amounts OUT.csv ROWS COLUMN,...   the same, but income is nearly unique
python inputs.py codes OUT.npz ROWS    the six quasi-identifiers as methods see them
python inputs.py arrow OUT.arrow IN.csv            a table as Polars holds it, all of it text
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import adult
import numpy as np
import polars as pl

from shoal import Policy
from shoal.connectors.frames import table_of
from shoal.data.partition import Matrix
from shoal.policy.binding.table import bound_table
from shoal.privacy.promises import BoundPromises


@dataclass(frozen=True)
class Problem:
    """What a method is given: the matrix and the promises of a policy, bound to one table.

    policy: with the method that suits such a table where it names none.
    """

    matrix: Matrix
    promises: BoundPromises
    policy: Policy


def problem(frame: pl.DataFrame, policy: Policy) -> Problem:
    bound = bound_table(table_of(frame), policy)
    matrix, whole_table = bound.method_input()
    return Problem(
        matrix, BoundPromises(policy.build_promises(), whole_table), bound.problem.policy
    )


def table(out: str, rows: str, columns: str) -> None:
    adult.records(int(rows) or None, columns.split(",")).write_csv(out)


def amounts(out: str, rows: str, columns: str) -> None:
    frame = adult.records(int(rows), columns.split(","))
    cents = np.random.default_rng(1).integers(0, frame.height, frame.height)
    frame.with_columns(income=pl.Series(cents / 100)).write_csv(out)


def codes(out: str, rows: str) -> None:
    frame = adult.resampled(int(rows), columns=[*adult.SIX, "income"])
    matrix = problem(frame, Policy.from_dict(adult.policy(adult.SIX, k=10))).matrix
    np.savez(out, codes=matrix.codes, scale=matrix.scale)


def arrow(out: str, source: str) -> None:
    pl.read_csv(source, infer_schema=False).write_ipc(out, compression="uncompressed")


def policy_file(path: Path, content: dict[str, Any]) -> Path:
    path.write_text(json.dumps(content))
    return path


if __name__ == "__main__":
    commands: dict[str, Callable[..., None]] = {
        "table": table,
        "amounts": amounts,
        "codes": codes,
        "arrow": arrow,
    }
    commands[sys.argv[1]](*sys.argv[2:])
