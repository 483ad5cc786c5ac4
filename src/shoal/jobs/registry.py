"""Every method, promise, metric and hierarchy maker, found by looking.

A module in `shoal.algorithms.<verb>` whose public dataclass names itself (`name`) and says what it
does is a method: nothing has to be listed anywhere. Plug-ins arrive by the entry points
`shoal.algorithms` and `shoal.privacy`.
"""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import typing
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from shoal.errors import InputError

ROOMS = {"table": "publish", "stream": "stream", "republication": "republish", "fusion": "fuse"}


@dataclass(frozen=True)
class Parameter:
    """One parameter of a method or promise, as the command line and the docs show it."""

    name: str
    kind: type
    default: Any
    help: str
    choices: tuple[Any, ...] | None = None
    low: float | None = None
    high: float | None = None
    required: bool = False


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
            implementation.name, getattr(implementation, "verb", "publish"), implementation.paper, implementation
        )
    for room, verb in ROOMS.items():
        for module in _modules_of(f"shoal.algorithms.{room}"):
            found |= _methods_of(module, verb)
    return dict(sorted(found.items()))


def _methods_of(module: ModuleType, verb: str) -> dict[str, Method]:
    return {name: Method(name, verb, found.paper, found) for name, found in _named_classes(module, "name")}


@cache
def _by_file_name(name: str, verb: str) -> Method | None:
    """The method whose file has its name: no other file has to be imported for it."""
    for room in (room for room, its_verb in ROOMS.items() if its_verb == verb):
        file_name = name.replace("-", "_")
        package = find_spec(f"shoal.algorithms.{room}")
        if package and file_name.isidentifier() and find_spec(f"{package.name}.{file_name}"):
            return _methods_of(importlib.import_module(f"{package.name}.{file_name}"), verb).get(name)
    return None


@cache
def models() -> dict[str, Any]:
    """Every promise by the name policies use."""
    found = {name: model for module in _modules_of("shoal.privacy") for name, model in _named_classes(module, "model")}
    for entry in entry_points(group="shoal.privacy"):
        model = entry.load()
        found[model.model] = model
    return dict(sorted(found.items()))


@cache
def metrics() -> dict[str, Any]:
    """Every measure of utility or risk by name."""
    return dict(
        sorted(
            (name, metric) for module in _modules_of("shoal.utility") for name, metric in _named_classes(module, "name")
        )
    )


def method(name: str, verb: str) -> Method:
    """The method of that name, which must serve the verb."""
    if found := _by_file_name(name, verb):
        return found
    known = methods()
    if name not in known or known[name].verb != verb:
        fitting = [m.name for m in known.values() if m.verb == verb]
        hint = f"it serves '{known[name].verb}'; " if name in known else meant(name, fitting)
        raise InputError(f"method '{name}': not a method of '{verb}'; {hint}choose one of {', '.join(fitting)}")
    return known[name]


def build(implementation: type, label: str, given: dict[str, Any]) -> Any:
    """The frozen dataclass with these parameters; raises InputError with every unknown or unfit one."""
    known = {p.name: p for p in parameters_of(implementation)}
    findings = [
        f"{label}: unknown parameter '{name}'; {meant(name, known)}it takes {', '.join(known) or 'none'}"
        for name in given
        if name not in known
    ]
    findings += [
        f"{label}: parameter '{p.name}' is missing" for p in known.values() if p.required and p.name not in given
    ]
    values = {}
    for name, value in given.items():
        if name not in known:
            continue
        try:
            values[name] = fit(known[name], value)
        except ValueError as unfit:
            findings.append(f"{label}: parameter '{name}' {unfit}")
    if findings:
        raise InputError.from_findings(findings)
    return implementation(**values)


def meant(name: str, known: Iterable[str]) -> str:
    """The known name that is nearest to a misspelt one, as a question; nothing where none is near."""
    return f"did you mean '{near}'? " if (near := nearest(name, known)) else ""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is nearest to a misspelt one, in whatever case; None where none is near."""
    known = list(known)
    alike = [other for other in known if other.casefold() == name.casefold()]
    return next(iter(alike or get_close_matches(name, known, n=1)), None)


def fit(parameter: Parameter, value: Any) -> Any:
    """The value in the parameter's type and range; text is read as that type. Raises ValueError."""
    kind = parameter.kind
    if kind is bool:
        value = _as_bool(value)
    elif kind is int:
        value = _as_int(value)
    elif kind is float:
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            raise ValueError("must be a number")
        try:
            value = float(value)
        except ValueError:
            raise ValueError("must be a number") from None
    elif kind is str and not isinstance(value, str):
        raise ValueError("must be text")
    elif kind is tuple:
        value = tuple(value.split(",")) if isinstance(value, str) else tuple(value)
    if parameter.choices is not None and value not in parameter.choices:
        raise ValueError(f"must be one of {', '.join(str(c) for c in parameter.choices if c != '')}")
    if parameter.low is not None and not value >= parameter.low:
        raise ValueError(f"must be at least {parameter.low:g}")
    if parameter.high is not None and not value <= parameter.high:
        raise ValueError(f"must be at most {parameter.high:g}")
    return value


def _as_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "yes", "on", "1", "false", "no", "off", "0"):
        return value.lower() in ("true", "yes", "on", "1")
    raise ValueError("must be true or false")


def _as_int(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise ValueError("must be a whole number")
    try:
        return int(value)
    except ValueError:
        raise ValueError("must be a whole number") from None


@cache
def parameters_of(implementation: Any) -> tuple[Parameter, ...]:
    hints = typing.get_type_hints(implementation)
    found = []
    for field in dataclasses.fields(implementation):
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        default = None if field.default is dataclasses.MISSING else field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        kind = hints[field.name]
        options = [option for option in typing.get_args(kind) if option is not type(None)]
        if type(None) in typing.get_args(kind) and options:
            kind = options[0]
        found.append(
            Parameter(
                field.name,
                typing.get_origin(kind) or kind,
                default,
                field.metadata.get("help", ""),
                field.metadata.get("choices"),
                field.metadata.get("low"),
                field.metadata.get("high"),
                required,
            )
        )
    return tuple(found)


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
