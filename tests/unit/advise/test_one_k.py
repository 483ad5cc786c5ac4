"""One k is a list of one."""

from shoal.advise.methods import checked_ks


def test_one_k_is_a_list_of_one():
    assert checked_ks(5, 2) == [5]
