"""What there is: methods and promises, as the command line and the docs show them."""

from __future__ import annotations

import dataclasses
from typing import Any

from shoal.policy import registry
from shoal.policy.parameters import Parameter, parameters_of


def methods(with_comparators: bool = True) -> list[dict[str, Any]]:
    """Every method with its verb, paper, parameters and the promises it can keep.

    with_comparators: those of the papers, too, where they are installed.
    """
    promises = sorted(registry.models())
    return [
        {
            "name": method.name,
            "verb": method.verb,
            "paper": method.paper,
            "promises": promises,
            "parameters": [_parameter(p) for p in method.parameters],
        }
        for method in registry.methods().values()
        if with_comparators or not method.is_comparator
    ]


def describe_promises() -> list[dict[str, Any]]:
    """Every promise with its exact definition, source and parameters."""
    return [
        {
            "model": name,
            "definition": model.definition,
            "source": model.source,
            "monotone": model.monotone,
            "parameters": [_parameter(p) for p in parameters_of(model)],
        }
        for name, model in registry.models().items()
    ]


def _parameter(parameter: Parameter) -> dict[str, Any]:
    described = dataclasses.asdict(parameter)
    return described | {
        "kind": parameter.kind.__name__,
        "choices": list(parameter.choices or ()) or None,
    }
