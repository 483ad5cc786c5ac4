"""Messages about one thing speak of one thing."""

from __future__ import annotations

import pytest

from shoal.cli.attacks import Guard
from shoal.errors import InputError


def test_one_release_beside_is_not_several():
    with pytest.raises(InputError, match="0 for 1 release of --beside that is not a ledger; give"):
        _ = Guard(beside=["old.csv"]).releases
