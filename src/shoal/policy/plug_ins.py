"""What other packages bring by entry points, before any of it is imported.

Verbs of the command line arrive by `shoal.commands`: a function each. One that can't be loaded or
takes a name that is taken is refused in one line that names its package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from typing import Any, cast

from shoal.errors import InputError
from shoal.policy import comparators


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
        if entry.name in comparators.COMMANDS and not is_of_papers(entry):
            raise taken(entry, entry.name, f"'{comparators.DISTRIBUTION}'")
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
    if entry is None and name in comparators.COMMANDS:
        raise InputError(
            f"{name}: comes with the papers' comparators, which are not installed; run"
            f" '{comparators.INSTALL}' in Shoal's repository"
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
    return entry.dist is not None and entry.dist.name == comparators.DISTRIBUTION
