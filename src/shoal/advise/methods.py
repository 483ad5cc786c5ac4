"""What there is: methods and promises, as the command line and the docs show them."""

from __future__ import annotations

import dataclasses
from typing import Any

from shoal.policy import registry
from shoal.policy.parameters import Parameter, parameters_of


def methods(every: bool = False) -> list[dict[str, Any]]:
    """The methods to choose from, each with its verb, paper, parameters and promises it can keep.

    every: the papers' comparators, too, where they are installed.
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
        if every or not method.is_comparator
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
