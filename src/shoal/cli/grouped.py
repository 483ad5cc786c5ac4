"""Options that belong together, as one parameter of a command."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from typing import Any


def grouped(name: str, group: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Puts the fields of a dataclass, options each, in the place of a command's parameter."""
    names = [field.name for field in fields(group)]
    options = inspect.signature(group, eval_str=True).parameters.values()

    def with_options(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command, eval_str=True)
        parameters: list[inspect.Parameter] = []
        for parameter in signature.parameters.values():
            parameters += options if parameter.name == name else [parameter]

        @wraps(command)
        def taken(**given: Any) -> None:
            values = group(**{option: given.pop(option) for option in names})
            command(**given, **{name: values})

        taken.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        taken.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return taken

    return with_options
