"""What other packages bring by entry points, before any of it is imported.

Verbs of the command line arrive by `shoal.commands`: a function each. One that can't be loaded or
takes a name that is taken is refused in one line that names its package.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, make_dataclass
from functools import cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from typing import Any, cast

from shoal.data.option import build, values_of
from shoal.errors import InputError


@cache
def installed() -> EntryPoints:
    """All entry points of all packages; to find them reads a file of each."""
    return cast(EntryPoints, entry_points())  # in Python 3.11, their groups, which select alike


def brought(group: str) -> EntryPoints:
    """The entry points of a group."""
    return installed().select(group=group)


def commands(own: Iterable[str]) -> dict[str, EntryPoint]:
    """What brings each verb of the command line that is not one of Shoal's own, in order.

    Raises InputError for one that takes a name that is taken. Nothing is imported for it.
    """
    owner = dict.fromkeys(own, "Shoal itself")
    found: dict[str, EntryPoint] = {}
    for entry in sorted(brought("shoal.commands"), key=lambda entry: (entry.name, entry.value)):
        if entry.name in COMMANDS and not is_of_papers(entry):
            raise taken(entry, entry.name, f"'{DISTRIBUTION}'")
        if entry.name in owner:
            raise taken(entry, entry.name, owner[entry.name])
        owner[entry.name] = f"'{package_of(entry)}'"
        found[entry.name] = entry
    return found


def command(name: str, own: Iterable[str]) -> Callable[..., Any]:
    """The function of a verb that another package brings.

    Raises KeyError where there is none of that name, and InputError where it can't be used, or
    comes with a package of Shoal's that is not installed.
    """
    entry = commands(own).get(name)
    if entry is None and name in COMMANDS:
        raise InputError(
            f"{name}: comes with the papers' comparators, which are not installed; run"
            f" '{INSTALL}' in Shoal's repository"
        )
    if entry is None:
        raise KeyError(name)
    function = loaded(entry)
    if not callable(function):
        raise InputError(refusal(entry, "is not a function"))
    return cast("Callable[..., Any]", function)


def loaded(entry: EntryPoint) -> Any:
    """What it stands for; raises InputError where it can't be imported."""
    try:
        return entry.load()
    except (Exception, SystemExit) as broken:  # whatever a stranger's module does when imported
        what = " ".join(str(broken).split())[:200]
        reason = f"can't be loaded ({type(broken).__name__}: {what})"
        raise InputError(refusal(entry, reason)) from None


def refusal(entry: EntryPoint, reason: str) -> str:
    """The reason in one line, and how to go on without the plug-in."""
    name = "its package" if entry.dist is None else f"'{entry.dist.name}'"
    return (
        f"plug-in '{entry.name}' ({entry.group}) of '{package_of(entry)}': {reason}; update or"
        f" uninstall {name}"
    )


def package_of(entry: EntryPoint) -> str:
    """The package that brought it, with its version."""
    return "an unknown package" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"


def taken(entry: EntryPoint, name: str, owner: str) -> InputError:
    """The refusal of one that takes the name of another."""
    return InputError(refusal(entry, f"takes the name '{name}', which belongs to {owner}"))


def is_of_papers(entry: EntryPoint) -> bool:
    """Whether it came with the papers' comparators."""
    return entry.dist is not None and entry.dist.name == DISTRIBUTION


# The papers' comparators, which come with `shoal-papers`: what is known of them without it.
#
# A run that needs one says what to install. Whoever reads a release needs no method: the verb that
# made it, and the parameters that rules for traces and the hash of an agreement depend on, are
# here.


DISTRIBUTION = "shoal-papers"
INSTALL = "pip install ./papers"
COMMANDS = ("reproduce",)
"""The verbs of the command line that come with it."""


@dataclass(frozen=True)
class Comparator:
    """What is known of a method whose package need not be installed.

    defaults: its parameters, in their order; none where no reader of a release needs them.
    """

    verb: str
    recodes_globally: bool = False
    defaults: Mapping[str, Any] = field(default_factory=dict)


_OF_TABLES = (
    *("bottom-up", "k-member", "mondrian-relaxed", "oka", "top-down-greedy"),
    *("tcloseness-fcm", "tcloseness-k-first", "tcloseness-merge", "tcloseness-t-first"),
)
_WAITS: dict[str, str | int] = {"leftovers": "star", "snap": 0, "tick": 1}

COMPARATORS: Mapping[str, Comparator] = {
    **dict.fromkeys(_OF_TABLES, Comparator("publish")),
    **dict.fromkeys(("datafly", "incognito"), Comparator("publish", recodes_globally=True)),
    "b-castle": Comparator(
        "stream",
        defaults={"delta": 10_000, "beta": 50, "mu": 100, "alpha": 0, "keep": 1000} | _WAITS,
    ),
    "faanst": Comparator(
        "stream",
        defaults={"delta": 10_000, "tau": 0.5, "delay": "passive", "rounds": 20, "keep": 1000}
        | {"snap": 0, "tick": 1},
    ),
    "fads-tuple": Comparator("stream", defaults={"delta": 2000, "lifetime": 200} | _WAITS),
    "sky": Comparator("stream", defaults={"delta": 10_000, "c0": 1.0, "cut": "middle"} | _WAITS),
    "swaf": Comparator("stream", defaults={"delta": 10_000, "c0": 1.0, "split": "median"} | _WAITS),
    "zhou": Comparator("stream", defaults={"delta": 10_000, "c0": 1.0, "mu": 100} | _WAITS),
    **dict.fromkeys(("k-pprp", "static-1", "static-2"), Comparator("republish")),
    "party-tds-literal": Comparator(
        "fuse", defaults={"score": "gain-ratio", "ahead": 8, "runner_up": "told"}
    ),
    "party-tds-stepwise": Comparator("fuse", defaults={"score": "gain-ratio"}),
}


def settled(name: str, settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Every parameter of a comparator with the value that it takes, in the order of its fields.

    Raises InputError for a parameter that it does not have, or that is of another type.
    """
    defaults = COMPARATORS[name].defaults
    fields = [(each, type(value), field(default=value)) for each, value in defaults.items()]
    stand_in = make_dataclass("Comparator", fields, frozen=True)
    return values_of(build(stand_in, f"method '{name}'", settings))


def not_installed(name: str) -> InputError:
    """The refusal of a run that needs a comparator whose package is not there."""
    return InputError(
        f"method '{name}': is one of the papers' comparators, which are not installed; run"
        f" '{INSTALL}' in Shoal's repository, or choose another method"
    )
