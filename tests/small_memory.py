"""Tables of a few rows as if they did not fit into memory."""

import pytest

from shoal.auditor import in_parts
from shoal.data import coded_table, room
from shoal.policy.binding import past_memory
from shoal.search import large_tables


def make_every_table_too_large(patch: pytest.MonkeyPatch, times: int = 1) -> None:
    """And everything is done in many small parts, or in parts so many times as large."""
    patch.setattr(past_memory, "BASE", 0)
    patch.setattr(past_memory, "RECORD_BYTES", 0)
    patch.setattr(past_memory, "HELD_BYTES", 1e9)
    patch.setattr(in_parts, "RECORD_BYTES", 400)
    patch.setattr(in_parts, "JOINED_BYTES", 0)
    patch.setattr(room, "BLOCK", 70 * times)
    patch.setattr(coded_table, "SEGMENT", 90 * times)
    patch.setattr(coded_table, "CLASSES", 3 * times)
    patch.setattr(large_tables, "GRAIN", 50 * times)
