"""The papers' comparators, which come with `shoal-papers`: what is known of them without it.

A run that needs one says what to install. Whoever reads a release needs no method: the verb that
made it, and the parameters that rules for traces and the hash of an agreement depend on, are here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, make_dataclass
from typing import Any

from shoal.errors import InputError
from shoal.policy.parameters import build, parameters_of

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


_TABLE, _GLOBAL, _LEDGER = (
    Comparator("publish"),
    Comparator("publish", recodes_globally=True),
    Comparator("republish"),
)
_WAITS: dict[str, Any] = {"leftovers": "star", "snap": 0, "tick": 1}

COMPARATORS: Mapping[str, Comparator] = {
    "bottom-up": _TABLE,
    "datafly": _GLOBAL,
    "incognito": _GLOBAL,
    "k-member": _TABLE,
    "mondrian-relaxed": _TABLE,
    "oka": _TABLE,
    "tcloseness-fcm": _TABLE,
    "tcloseness-k-first": _TABLE,
    "tcloseness-merge": _TABLE,
    "tcloseness-t-first": _TABLE,
    "top-down-greedy": _TABLE,
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
    "k-pprp": _LEDGER,
    "static-1": _LEDGER,
    "static-2": _LEDGER,
    "party-tds-literal": Comparator("fuse", defaults={"score": "gain-ratio", "ahead": 8}),
    "party-tds-stepwise": Comparator("fuse", defaults={"score": "gain-ratio"}),
}


def settled(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Every parameter of a comparator with the value that it takes, in the order of its fields.

    Raises InputError for a parameter that it does not have, or that is of another type.
    """
    defaults = COMPARATORS[name].defaults
    fields = [(each, type(value), field(default=value)) for each, value in defaults.items()]
    stand_in = make_dataclass("Comparator", fields, frozen=True)
    built = build(stand_in, f"method '{name}'", dict(settings))
    return {each.name: getattr(built, each.name) for each in parameters_of(stand_in)}


def not_installed(name: str) -> InputError:
    """The refusal of a run that needs a comparator whose package is not there."""
    return InputError(
        f"method '{name}': is one of the papers' comparators, which are not installed; run"
        f" '{INSTALL}' in Shoal's repository, or choose another method"
    )
