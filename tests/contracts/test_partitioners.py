"""The same battery for every method from the registry, plug-ins included."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import shoal
from shoal.data.partition import Matrix
from shoal.policy import registry
from shoal.privacy.k_anonymity import KAnonymity
from shoal.protocols import Partitioner
from shoal.testing import check_partitioner, promises_on, small_matrices
from strategies import policies_with_tables
from thorough import comparators_long, examples, in_turn, long_where

PUBLISHING = [m for m in registry.methods().values() if m.verb == "publish"]
METHODS = [m for m in PUBLISHING if registry.socket_of(m.implementation, m.verb) is Partitioner]


def variants(method: registry.Method):
    """The method by default, and with every choice of every parameter that has choices."""
    yield method.implementation()
    for parameter in method.parameters:
        for choice in parameter.choices or ():
            if choice != parameter.default:
                brief = {"steps": 3} if choice == "thorough" else {}
                yield method.implementation(**{parameter.name: choice}, **brief)


VARIANTS = [variant for method in METHODS for variant in variants(method)]
DEFAULTS = [method.implementation() for method in METHODS]
OURS = [method.implementation() for method in METHODS if not method.is_comparator]


@pytest.mark.parametrize("variant", long_where(lambda v: v not in OURS, VARIANTS), ids=str)
def test_battery(variant):
    """By default with every k; a choice of a parameter with one k for each table, in turn."""
    for number, matrix in enumerate(small_matrices()):
        ks = (2, 3, 10)
        for k in ks if variant in DEFAULTS else in_turn(number + number // 3, ks):
            check_partitioner(variant, matrix, k)


@pytest.mark.parametrize("method", comparators_long(METHODS), ids=lambda m: m.name)
@settings(max_examples=examples(10, 50), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_published_table_keeps_every_promise_and_covers_the_truth(method, data):
    content, frame = data.draw(policies_with_tables())
    check_release(frame, shoal.Policy.from_dict(content | {"method": {"name": method.name}}))


def check_release(frame, policy: shoal.Policy) -> None:
    """A release, if there is one, has every record, and no audit with the original faults it."""
    try:
        published = shoal.publish(frame, policy)
    except shoal.InfeasibleError:
        return
    certificate = shoal.audit(published.data, policy, frame, trace=published.trace)
    assert certificate.holds
    assert certificate["faults"] == {"uncovered": 0, "changed": 0}
    assert len(published.data) == len(frame)
    assert certificate["records"]["withheld"] == int((published.classes < 0).sum())


@pytest.mark.parametrize("name", comparators_long(sorted(m.name for m in METHODS)))
def test_many_equal_records_are_no_trap(name):
    matrix = Matrix.from_columns(np.zeros((20_000, 3), dtype=np.int32), [1.0, 1.0, 0.0])
    method = registry.methods()[name].implementation()
    promises = promises_on(matrix, KAnonymity(10))
    partition = method.partition(matrix, promises, np.random.default_rng(0))
    assert partition.sizes().min() >= 10
