"""Addresses of databases that Shoal does not write to."""

from __future__ import annotations

import pytest

from shoal.connectors.files import check_writable
from shoal.errors import InputError


def test_the_address_of_an_unknown_database_is_refused_as_one_without_its_password():
    with pytest.raises(InputError) as refused:
        check_writable("mysql://ann:secret@host/clinic?table=patients")

    assert "SQLite or PostgreSQL" in str(refused.value)
    assert "secret" not in str(refused.value)
