"""Every method, promise, metric and hierarchy maker, found by looking.

A module in `shoal.algorithms.<verb>` whose public dataclass names itself (`name`) and says what it
does is a method: nothing has to be listed anywhere. Plug-ins arrive by the entry points
`shoal.algorithms` and `shoal.privacy`.
"""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from shoal.errors import InputError
from shoal.policy.parameters import Parameter, parameters_of, suggestion

ROOMS = {"table": "publish", "stream": "stream", "republication": "republish", "fusion": "fuse"}


@dataclass(frozen=True)
class Method:
    """A method, its verb, and the class that implements it."""

    name: str
    verb: str
    paper: str
    implementation: Any

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return parameters_of(self.implementation)

    @property
    def recodes_globally(self) -> bool:
        """Whether it finds a cut, not a partition."""
        return callable(getattr(self.implementation, "cut", None))


@cache
def methods() -> dict[str, Method]:
    """Every method by name."""
    found: dict[str, Method] = {}
    for entry in entry_points(group="shoal.algorithms"):
        implementation = entry.load()
        found[implementation.name] = Method(
            implementation.name,
            getattr(implementation, "verb", "publish"),
            implementation.paper,
            implementation,
        )
    for room, verb in ROOMS.items():
        for module in _modules_of(f"shoal.algorithms.{room}"):
            found |= _methods_of(module, verb)
    return dict(sorted(found.items()))


def _methods_of(module: ModuleType, verb: str) -> dict[str, Method]:
    return {
        name: Method(name, verb, found.paper, found)
        for name, found in _named_classes(module, "name")
    }


@cache
def _by_file_name(name: str, verb: str) -> Method | None:
    """The method whose file has its name: no other file has to be imported for it."""
    for room in (room for room, its_verb in ROOMS.items() if its_verb == verb):
        file_name = name.replace("-", "_")
        package = find_spec(f"shoal.algorithms.{room}")
        if package and file_name.isidentifier() and find_spec(f"{package.name}.{file_name}"):
            return _methods_of(importlib.import_module(f"{package.name}.{file_name}"), verb).get(
                name
            )
    return None


@cache
def models() -> dict[str, Any]:
    """Every promise by the name policies use."""
    found = {
        name: model
        for module in _modules_of("shoal.privacy")
        for name, model in _named_classes(module, "model")
    }
    for entry in entry_points(group="shoal.privacy"):
        model = entry.load()
        found[model.model] = model
    return dict(sorted(found.items()))


@cache
def metrics() -> dict[str, Any]:
    """Every measure of utility or risk by name."""
    return dict(
        sorted(
            (name, metric)
            for module in _modules_of("shoal.utility")
            for name, metric in _named_classes(module, "name")
        )
    )


def method(name: str, verb: str) -> Method:
    """The method of that name, which must serve the verb."""
    if found := _by_file_name(name, verb):
        return found
    known = methods()
    if name not in known or known[name].verb != verb:
        fitting = [m.name for m in known.values() if m.verb == verb]
        hint = f"it serves '{known[name].verb}'; " if name in known else suggestion(name, fitting)
        raise InputError(
            f"method '{name}': not a method of '{verb}'; {hint}choose one of {', '.join(fitting)}"
        )
    return known[name]


def _modules_of(package_name: str) -> Iterator[ModuleType]:
    try:
        package = importlib.import_module(package_name)
    except ModuleNotFoundError:
        return
    for info in pkgutil.iter_modules(package.__path__):
        yield importlib.import_module(f"{package_name}.{info.name}")


def _named_classes(module: ModuleType, mark: str) -> Iterator[tuple[str, Any]]:
    """The public dataclasses defined in this module that carry a text under `mark`."""
    for thing in vars(module).values():
        if (
            isinstance(thing, type)
            and thing.__module__ == module.__name__
            and dataclasses.is_dataclass(thing)
            and isinstance(vars(thing).get(mark), str)
        ):
            yield vars(thing)[mark], thing
