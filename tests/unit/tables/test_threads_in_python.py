"""What is no number of threads is refused in one line."""

from __future__ import annotations

import pytest

from shoal.data import cores
from shoal.errors import InputError


@pytest.mark.parametrize("asked", ["2", True, 1.5])
def test_threads_that_are_no_whole_number_are_refused(asked):
    with (
        pytest.raises(InputError, match="threads: must be a whole number"),
        cores.using(asked),
    ):
        pass
