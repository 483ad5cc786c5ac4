"""Every parameter is explained, and none takes a number beyond reason."""

import pytest

from shoal.data.option import MOST, build, coerce_parameter, parameters_of
from shoal.errors import InputError
from shoal.policy import registry

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
def test_a_number_beyond_reason_is_refused(absurd):
    for name, implementation, parameter in NUMBERS:
        said = refusal(implementation, name, {parameter.name: absurd})
        assert f"parameter '{parameter.name}' must be" in said, name


def refusal(implementation, name, given):
    try:
        return f"{build(implementation, name, given)} is taken"
    except InputError as refused:
        return str(refused)


def test_the_greatest_number_that_may_be_is_taken():
    for *_, parameter in NUMBERS:
        if parameter.high == MOST:
            assert coerce_parameter(parameter, MOST) == MOST, parameter


def test_parameters_have_help_and_defaults_within_their_limits():
    for name, implementation in IMPLEMENTATIONS:
        for parameter in parameters_of(implementation):
            assert parameter.help, f"{name} {parameter.name}"
            if parameter.default is not None and not parameter.required:
                coerce_parameter(parameter, parameter.default)


def test_whoever_names_a_method_that_publishes_need_say_nothing_more():
    for method in registry.methods().values():
        if method.verb in ("publish", "stream"):
            assert not [p.name for p in method.parameters if p.required], method.name
