"""Every method, promise, metric, attack and hierarchy maker, found by looking.

A module among the methods of a product (`shoal.tables.methods` and so on) whose public dataclass
names itself (`name`) and says what it does is a method: nothing has to be listed anywhere. So it is
with promises (`model`), metrics and attacks (`name`) and hierarchy makers (`kind`) in their rooms.

Plug-ins arrive by the entry points `shoal.algorithms`, `shoal.privacy`, `shoal.metrics`,
`shoal.attacks` and `shoal.hierarchies`. One that can't be loaded, lacks a part or takes a name that
is taken is refused in one line that names the package it came with. A method that a program has
made itself is known until it ends, once it was given as an object.
"""

import dataclasses
import importlib
import inspect
import os
import pkgutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from pathlib import Path
from traceback import extract_tb
from types import ModuleType
from typing import Any, NoReturn

from shoal import protocols
from shoal.data.option import Parameter, build, parameters_of, suggestion, takes, values_of
from shoal.data.partition import UnfitAnswer
from shoal.data.single_ends import BINS
from shoal.errors import InputError, ShoalError
from shoal.policy.plug_ins import (
    COMPARATORS,
    DISTRIBUTION,
    brought,
    is_of_papers,
    loaded,
    not_installed,
    package_of,
    refusal,
    settled,
)

PRODUCTS = {
    "tables": "publish",
    "streams": "stream",
    "ledgers": "republish",
    "fusion": "fuse",
    "linked": "publish FOLDER",
}
"""The packages that hold methods, and the verb that these serve."""
SOCKETS: dict[str, type] = {
    "publish": protocols.Partitioner,
    "stream": protocols.StreamMethod,
    "republish": protocols.Republisher,
    "fuse": protocols.FusionMethod,
    "publish FOLDER": protocols.Bundler,
}


@dataclass(frozen=True)
class Method:
    """A method, its verb, and the class that implements it."""

    name: str
    verb: str
    paper: str
    implementation: type[protocols.NamedMethod]
    package: str = ""
    """The package that brought it, with its version; empty for Shoal's own."""

    @property
    def is_comparator(self) -> bool:
        """Whether it came with the papers, to compare with, and nobody chooses it to publish."""
        return self.package.partition(" ")[0] == DISTRIBUTION

    @property
    def owner(self) -> str:
        """Who brought it."""
        return f"'{self.package}'" if self.package else "Shoal itself"

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return parameters_of(self.implementation)

    @property
    def recodes_globally(self) -> bool:
        """Whether it finds a cut, not a partition."""
        return socket_of(self.implementation, self.verb) is protocols.Recoder

    @property
    def renders_two_tables(self) -> bool:
        """Whether it shows quasi-identifiers as they are, and sensitive values apart."""
        return socket_of(self.implementation, self.verb) is protocols.Bucketizer


@cache
def methods() -> dict[str, Method]:
    """Every method by name."""
    found: dict[str, Method] = {}
    for product, verb in PRODUCTS.items():
        for module in _modules_of(f"shoal.{product}.methods"):
            found |= _methods_of(module, verb)
    for name, plug_in in _plug_ins("shoal.algorithms", "name", set(found)):
        found[name] = _method_of(name, plug_in)
    return dict(sorted(found.items()))


@cache
def models() -> dict[str, type[protocols.PrivacyModel]]:
    """Every promise by the name policies use."""
    return _all_of("shoal.privacy", "model", protocols.PrivacyModel)


@cache
def model(name: str) -> type[protocols.PrivacyModel] | None:
    """The promise of that name; None where there is none.

    Where nobody brings others, and the file of one has its name, no other file is imported.
    """
    module = None if brought("shoal.privacy") else _module_named("shoal.privacy", name)
    own = {} if module is None else dict(_named_classes(importlib.import_module(module), "model"))
    return own[name] if name in own else models().get(name)


@cache
def metrics() -> dict[str, type[protocols.Metric]]:
    """Every measure of utility or risk by name."""
    return _all_of("shoal.utility", "name", protocols.Metric, group="shoal.metrics")


def build_metrics() -> dict[str, protocols.Metric]:
    """One of each measure, by name."""
    return {name: metric() for name, metric in metrics().items()}


@cache
def attacks() -> dict[str, type[protocols.Attack]]:
    """Every attack by name, in the order of their numbers."""
    found: dict[str, type[protocols.Attack]]
    found = _all_of("shoal.attacks", "name", protocols.Attack)
    return dict(sorted(found.items(), key=lambda item: (item[1].number, item[0])))


@cache
def makers() -> dict[str, type[protocols.HierarchyMaker]]:
    """Every hierarchy maker by its kind."""
    return _all_of("shoal.data.hierarchies", "kind", protocols.HierarchyMaker, "shoal.hierarchies")


def method(name: str, verb: str) -> Method:
    """The method of that name, which must serve the verb."""
    if found := _by_file_name(name, verb) or _by_entry_name(name):
        if found.verb == verb:
            return found
    elif name in COMPARATORS and COMPARATORS[name].verb == verb:
        raise not_installed(name)
    known = methods()
    if name not in known or known[name].verb != verb:
        fitting = [m.name for m in known.values() if m.verb == verb]
        choice = f"choose one of {', '.join(fitting)}"
        if served := verb_of(name):
            raise InputError(f"method '{name}': serves 'shoal {served}' only; {choice}")
        near = suggestion(name.partition(":")[0], fitting)
        raise InputError(f"method '{name}': is unknown; {near}{choice}{'' if near else _IF_YOURS}")
    return known[name]


def build_method(name: str, verb: str, settings: Mapping[str, Any]) -> Any:
    """The method with these parameters; raises InputError where it does not serve the verb, or some
    do not fit.
    """
    return build(method(name, verb).implementation, f"method '{name}'", settings)


def require_known(name: str) -> None:
    """Raises InputError for a method that serves no verb."""
    if verb_of(name) is None:
        near = suggestion(name.partition(":")[0], methods())
        ours = [m for m in methods().values() if m.name not in COMPARATORS]
        of_verbs = [
            f"{', '.join(m.name for m in ours if m.verb == verb)} for 'shoal {verb}'"
            for verb in PRODUCTS.values()
        ]
        choice = f"{near}choose one of {'; '.join(of_verbs)}{'' if near else _IF_YOURS}"
        raise InputError(f"method '{name}': is unknown; {choice}")


_IF_YOURS = "; if it is your own, install its package, or give it in Python as an object"
_made_here: dict[str, type] = {}
"""The methods that were given as objects, by name."""


def enlisted(made: object) -> Mapping[str, Any]:
    """The name and parameters of a method that is given as an object, as a policy says them.

    From now on the program finds it by its name, at which a later class takes the place of an
    earlier one, as where a cell of a notebook runs again. Raises InputError for what is no method,
    or takes a name that is taken.
    """
    kind: Any = type(made)
    if isinstance(made, type) or not hasattr(kind, "verb"):
        what = "a class" if isinstance(made, type) else f"of type {kind.__name__}"
        raise InputError(
            "method: give its name, its name and parameters as a dict, or a method of your own,"
            f" such as MyMethod(); this is {what}"
        )
    known = {name: m for name, m in methods().items() if name not in _made_here}
    name = getattr(kind, "name", None)
    if name not in known or known[name].implementation is not kind:
        plug_in = PlugIn(None, kind)
        name = plug_in.name_under("name", {n: m.owner for n, m in known.items()} | _RESERVED)
        methods()[name] = _method_of(name, plug_in)
        _made_here[name] = kind
    given = {p.name: (p.default, getattr(made, p.name)) for p in parameters_of(kind)}
    return {"name": name} | {n: value for n, (usual, value) in given.items() if value != usual}


def methods_that_take(settings: Mapping[str, Any], verb: str) -> list[str]:
    """The methods of a verb whose parameters can be set like that."""
    return [m.name for m in methods().values() if m.verb == verb and takes(m.parameters, settings)]


@contextmanager
def blaming_plug_in(name: str, verb: str) -> Iterator[None]:
    """Converts what a method of another package raises into an InputError that names the package;
    where the program itself has made the method, that names its line, and the trace stays.

    Shoal's own methods raise as they do. SHOAL_DEBUG=1 in the environment keeps the trace.
    """
    package = method(name, verb).package
    try:
        yield
    except ShoalError:
        raise
    except (Exception, SystemExit) as broken:
        if name in _made_here:
            what = _what_failed(broken) + _line_of(_made_here[name], broken)
            raise InputError(f"method '{name}': {what}; correct its class") from broken
        if not package or os.environ.get("SHOAL_DEBUG") == "1":
            raise
        raise InputError(
            f"method '{name}' of '{package}': {_what_failed(broken)}; report it to its author, with"
            " the trace that SHOAL_DEBUG=1 shows, or choose another method"
        ) from None


def _what_failed(broken: BaseException) -> str:
    """The error's kind: its own text may hold cell values."""
    return str(broken) if isinstance(broken, UnfitAnswer) else f"failed ({type(broken).__name__})"


def _line_of(kind: type, broken: BaseException) -> str:
    """Where in the files of a class an error came up; nothing where it came up in none."""
    bases = [base for base in kind.__mro__ if not base.__module__.startswith("shoal.")]
    parts = [part for base in bases for part in vars(base).values()]
    files = {part.__code__.co_filename for part in parts if hasattr(part, "__code__")}
    frames = [one for one in extract_tb(broken.__traceback__) if one.filename in files]
    return f" in line {frames[-1].lineno} of {Path(frames[-1].filename).name}" if frames else ""


def socket_of(implementation: type, verb: str) -> type:
    """The protocol that a method of this verb keeps."""
    if verb == "publish" and callable(getattr(implementation, "cut", None)):
        return protocols.Recoder  # a partitioner may well have a parameter of that name
    if verb == "publish" and callable(getattr(implementation, "bucketize", None)):
        return protocols.Bucketizer
    return SOCKETS[verb]


# What is here


def _all_of(package_name: str, mark: str, socket: type, group: str = "") -> dict[str, type[Any]]:
    """The classes of a room and of its plug-ins, by the name that each bears under `mark`."""
    found = {
        name: thing
        for module in _modules_of(package_name)
        for name, thing in _named_classes(module, mark)
    }
    for name, plug_in in _plug_ins(group or package_name, mark, set(found)):
        plug_in.require(socket)
        found[name] = plug_in.thing
    return dict(sorted(found.items()))


def _methods_of(module: ModuleType, verb: str) -> dict[str, Method]:
    return {
        name: Method(name, verb, found.paper, found)
        for name, found in _named_classes(module, "name")
    }


def is_known_method(name: str, verb: str) -> bool:
    """Whether a method of that name for the verb is Shoal's own or one of the papers' comparators,
    installed or not; nothing is imported for it.
    """
    return bool(_module_of_method(name, verb)) or (
        name in COMPARATORS and COMPARATORS[name].verb == verb
    )


def verb_of(name: str) -> str | None:
    """The verb that a method serves, installed or not; None where there is none of that name."""
    own = next((verb for verb in PRODUCTS.values() if is_known_method(name, verb)), None)
    if own is not None:
        return own
    return methods()[name].verb if name in methods() else None


def recodes_globally(name: str) -> bool:
    """Whether a method, installed or not, generalizes every value the same way in all records."""
    if name in COMPARATORS:
        return COMPARATORS[name].recodes_globally
    return name in methods() and methods()[name].recodes_globally


def hides_numbers(name: str) -> str:
    """What a method takes, besides `round`, so that no end of a range is one person's number."""
    verb = verb_of(name)
    if verb == "stream":
        return f"With the parameter snap=N, '{name}' shows fewer"
    kind: Any = None if verb is None or is_missing(name) else method(name, verb).implementation
    # of those that are not installed, some compare cells of two releases
    if verb == "republish" and getattr(kind, "covers", "table") == "table":
        return "A hierarchy table or 'tree' of ranges hides them"
    return BINS


def is_missing(name: str) -> bool:
    """Whether it is one of the papers' comparators, and they are not installed."""
    return name in COMPARATORS and _by_entry_name(name) is None


def parameters_taken(name: str, verb: str, settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Every parameter of a method, installed or not, with the value that it takes.

    Of a comparator that is not installed, those that readers of releases need. Raises InputError
    where one does not fit.
    """
    if is_missing(name) and is_known_method(name, verb):
        return settled(name, settings)
    return values_of(build_method(name, verb, settings))


def _module_of_method(name: str, verb: str) -> str | None:
    """The module that has a method's name, among those that serve the verb."""
    packages = [f"shoal.{own}.methods" for own, served in PRODUCTS.items() if served == verb]
    return next(filter(None, (_module_named(package, name) for package in packages)), None)


def _module_named(package_name: str, name: str) -> str | None:
    """The module of a package that has the name of what is looked for."""
    module = f"{package_name}.{name.replace('-', '_')}"
    is_there = find_spec(package_name) and name.replace("-", "_").isidentifier()
    return module if is_there and find_spec(module) else None


@cache
def _by_file_name(name: str, verb: str) -> Method | None:
    """The method whose file has its name: no other file has to be imported for it."""
    module = _module_of_method(name, verb)
    return None if module is None else _methods_of(importlib.import_module(module), verb).get(name)


@cache
def _by_entry_name(name: str) -> Method | None:
    """The comparator that an entry point names: no other method has to be imported for it."""
    if name not in COMPARATORS:
        return None
    entries = filter(is_of_papers, brought("shoal.algorithms").select(name=name))
    plug_ins = (PlugIn(entry, loaded(entry)) for entry in entries)
    return next((_method_of(name, plug_in) for plug_in in plug_ins), None)


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


# What comes from elsewhere

MOST_NAMED = 3  # parts of a protocol that a message lists
_RESERVED = dict.fromkeys(COMPARATORS, f"'{DISTRIBUTION}'")


@dataclass(frozen=True)
class PlugIn:
    """A class that another package brought, or the program itself, which has no entry point."""

    entry: EntryPoint | None
    thing: Any

    @property
    def package(self) -> str:
        """The package that brought it, with its version; empty for the program itself."""
        return "" if self.entry is None else package_of(self.entry)

    def refuse(self, reason: str) -> NoReturn:
        """Raises InputError: the reason in one line, and how to go on."""
        if self.entry is None:
            raise InputError(
                f"method of class '{self.thing.__name__}': {reason}; see 'Extending' in the"
                " documentation"
            )
        raise InputError(refusal(self.entry, reason))

    def name_under(self, mark: str, owner: Mapping[str, str]) -> str:
        """The name that the class bears; raises InputError where it has none that is free.

        owner: whom the names belong to that are taken.
        """
        if not dataclasses.is_dataclass(self.thing) or not isinstance(self.thing, type):
            self.refuse("is not a dataclass")
        name = getattr(self.thing, mark, None)
        if not isinstance(name, str) or not name:
            self.refuse(f"has no text as its '{mark}'")
        if name in owner:
            self.refuse(f"takes the name '{name}', which belongs to {owner[name]}")
        return name

    def require(self, socket: type) -> None:
        """Raises InputError unless the class has every part that the protocol names."""
        fields = {field.name for field in dataclasses.fields(self.thing)}
        lacking = [n for n in _parts_of(socket) if n not in fields and not self._has(n)]
        if lacking:
            more = f" and {len(lacking) - MOST_NAMED} more" if len(lacking) > MOST_NAMED else ""
            self.refuse(f"lacks {', '.join(lacking[:MOST_NAMED])}{more} of {socket.__name__}")

    def _has(self, name: str) -> bool:
        """Whether the class has this part itself, not only as a protocol declares it."""
        part = getattr(self.thing, name, None)
        return hasattr(self.thing, name) and not _is_only_declared(part)


def _is_only_declared(part: Any) -> bool:
    """Whether a function has no body but its docstring, as protocols declare their parts."""
    if not inspect.isfunction(part) or part.__code__.co_code != _declared.__code__.co_code:
        return False
    return part.__code__.co_consts == (part.__doc__, None)


def _declared() -> None:
    """Declared, not defined."""


def _plug_ins(group: str, mark: str, taken_names: set[str]) -> Iterator[tuple[str, PlugIn]]:
    """The classes of an entry point group by name; raises InputError for one that can't be used."""
    owner = dict.fromkeys(taken_names, "Shoal itself")
    reserved = _RESERVED if group == "shoal.algorithms" else {}
    for entry in sorted(brought(group), key=lambda entry: (entry.name, entry.value)):
        plug_in = PlugIn(entry, loaded(entry))
        name = plug_in.name_under(mark, owner if is_of_papers(entry) else owner | reserved)
        owner[name] = f"'{plug_in.package}'"
        yield name, plug_in


def _method_of(name: str, plug_in: PlugIn) -> Method:
    """The method that a plug-in is; raises InputError where it lacks a part."""
    verb = str(getattr(plug_in.thing, "verb", ""))
    if verb not in SOCKETS:
        plug_in.refuse(f"names no verb; it must be one of {', '.join(SOCKETS)}")
    plug_in.require(socket_of(plug_in.thing, verb))
    return Method(name, verb, plug_in.thing.paper, plug_in.thing, plug_in.package)


def _parts_of(socket: type) -> list[str]:
    """The names that a protocol declares, those that it inherits included."""
    declared: dict[str, None] = {}
    for base in socket.__mro__:
        if base.__module__ == socket.__module__:
            declared |= dict.fromkeys((*vars(base).get("__annotations__", {}), *vars(base)))
    return sorted(name for name in declared if not name.startswith("_"))
