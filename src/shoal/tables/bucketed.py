"""From a bound table to two: groups of a bucketizer, quasi-identifiers beside sensitive values."""

import time
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
import polars as pl

from shoal.data.row_order import published_order
from shoal.data.table import Table
from shoal.data.two_tables import SENSITIVE, TwoTables
from shoal.errors import InfeasibleError, InputError
from shoal.policy import registry
from shoal.policy.binding.table import BoundTable
from shoal.privacy.promises import BoundPromises, nearest_feasible
from shoal.search.repair import repair

ROWS = 1 << 16


@dataclass(frozen=True)
class Bucketed:
    """Both tables. rows: (n,) row of the original behind each row of the first."""

    quasi: pl.DataFrame
    sensitive: pl.DataFrame
    rows: np.ndarray
    seconds: float


def bucketed(table: Table, bound: BoundTable) -> Bucketed:
    """Groups that keep every promise, in two tables, the first sorted by what its rows show.

    Raises InputError where a person has several records, InfeasibleError where no groups keep the
    promises.
    """
    problem, encoded = bound.problem, bound.encoded
    several = 0 if encoded.subjects is None else int((np.bincount(encoded.subjects) > 1).sum())
    if several:
        raise InputError(
            f"method '{problem.method_name}': {several} people have several records, which"
            " different groups would show; publish one record of each"
        )
    promises = problem.promises
    InfeasibleError.raise_for(nearest_feasible(promises, bound.whole_table))
    (hidden,) = bound.whole_table.sensitive.values()
    matrix, asked = bound.matrix(), BoundPromises(promises, bound.whole_table)
    started = time.process_time()
    with registry.blaming_plug_in(problem.method_name, "publish"):
        method = problem.build_method()
        groups = method.bucketize(matrix, hidden, asked, _secret_rng(table, problem.seed))
        groups = repair(matrix, groups, asked)
    seconds = time.process_time() - started
    shown = TwoTables().tables(table, encoded, groups, bound.schema)
    rows = published_order(shown[""], problem.quasi, bound.schema.render)
    return Bucketed(shown[""][rows], shown[SENSITIVE], rows, seconds)


def _secret_rng(table: Table, seed: int) -> np.random.Generator:
    """Draws that follow from the seed and all that the table holds, columns that are removed too.

    The seed is published, and whoever could repeat the draws for any way to deal the values to the
    rows would find which of them leads to these groups.
    """
    digest = sha256()
    for piece in table.frame.iter_slices(ROWS):
        digest.update(piece.write_csv().encode())
    return np.random.default_rng([seed, int.from_bytes(digest.digest())])
