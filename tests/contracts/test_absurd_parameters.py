"""Numbers beyond reason are refused for every parameter of every method, promise and attack."""

from __future__ import annotations

import pytest

from shoal.errors import InputError
from shoal.policy import registry
from shoal.policy.parameters import MOST, build, coerce_parameter, parameters_of

ABSURD = [-(10**30), 2**31, 2**63, 10**30, 1e300, "inf", "-inf", "nan", "9" * 40, "1e999"]
IMPLEMENTATIONS = [
    *((method.name, method.implementation) for method in registry.methods().values()),
    *registry.models().items(),
    *registry.attacks().items(),
]
NUMBERS = [
    (name, implementation, parameter)
    for name, implementation in IMPLEMENTATIONS
    for parameter in parameters_of(implementation)
    if parameter.kind in (int, float)
]


@pytest.mark.parametrize("absurd", ABSURD, ids=lambda value: str(value)[:9])
@pytest.mark.parametrize(
    ("name", "implementation", "parameter"), NUMBERS, ids=[f"{n} {p.name}" for n, _, p in NUMBERS]
)
def test_a_number_beyond_reason_is_refused(name, implementation, parameter, absurd):
    with pytest.raises(InputError) as refused:
        build(implementation, name, {parameter.name: absurd})
    assert any(f"parameter '{parameter.name}' must be" in said for said in refused.value.said)


@pytest.mark.parametrize("parameter", [p for *_, p in NUMBERS if p.high == MOST])
def test_the_greatest_number_that_may_be_is_taken(parameter):
    assert coerce_parameter(parameter, MOST) == MOST
