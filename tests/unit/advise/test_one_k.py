"""One k is a list of one."""

from __future__ import annotations

import shoal
from shoal.advise.methods import checked_ks

POLICY = {
    "version": 1,
    "attributes": {"age": {"role": "quasi"}},
    "promises": [{"model": "k-anonymity", "k": 2}],
}


def test_one_k_is_a_list_of_one():
    assert checked_ks(5, shoal.Policy.from_dict(POLICY)) == [5]
