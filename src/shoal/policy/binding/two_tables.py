"""A release of two tables, read as one: each row with its group and a value of the group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from shoal.connectors import files
from shoal.connectors.files import SourceFile
from shoal.connectors.frames import Frame, table_of
from shoal.data.table import Table
from shoal.data.two_tables import sensitive_path
from shoal.errors import InputError
from shoal.policy.policy import Policy
from shoal.privacy.two_tables import joined


def second_of(path: str) -> str:
    """Where the second table is; raises InputError where there can be none, or is none."""
    if path == files.STANDARD:
        raise InputError("file '-': a release of two tables is two files; name the first")
    second = sensitive_path(path)
    if not Path(second).exists():
        raise InputError(
            f"file '{second}': is not there; the release has two tables, keep both in one folder"
        )
    return second


def with_second(source: SourceFile, second: SourceFile, name: str) -> SourceFile:
    """Both files as one table, `joined`. name: the sensitive attribute."""
    return replace(source, frame=joined(source.frame, second.frame, name), second=second.sha256)


def read_both(path: str, name: str, read: Callable[[str], SourceFile]) -> SourceFile:
    """The same of a path, each of the two read by the same function."""
    return with_second(read(path), read(second_of(path)), name)


def released_table(released: Frame | tuple[Frame, Frame], policy: Policy) -> Table:
    """A released frame; of two tables both, as one; raises InputError where it is not as many."""
    is_pair = isinstance(released, tuple)
    if is_pair != policy.is_in_two_tables:
        raise InputError(
            "released: is a pair of tables, the policy's method publishes one; give that"
            if is_pair
            else "released: the policy's method publishes two tables; give both as a pair, the"
            " quasi-identifiers first"
        )
    if not isinstance(released, tuple):
        return table_of(released)
    first, second = (table_of(frame).frame for frame in released)
    return Table(joined(first, second, policy.hidden))
