"""All verbs by name. Each is imported and built when it is first asked for: a run needs one, and to
build all takes longer than to publish a small table.

Other packages bring verbs by the entry point group `shoal.commands`: a function each, which is
loaded when it is asked for. To list them reads a file of every package, so only the help does, and
who asks for a verb that is not Shoal's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from functools import cache
from importlib import import_module
from typing import Any, cast

import typer
from typer.core import TyperGroup
from typer.main import get_command

# in the order of the help; groups have commands of their own
COMMANDS = (
    "publish",
    "republish",
    "stream",
    "stream-status",
    "audit",
    "verify",
    "sign",
    "dossier",
    "profile",
    "risk",
    "compare",
    "marginal",
    "levels",
    "attacker-view",
    "fuse",
    "ui",
    "methods",
    "sample",
    "sweep",
    "warmup",
    "estimate",
)
GROUPS = ("party", "policy", "hierarchies", "ledger", "key")
VERBS = (*COMMANDS, *GROUPS)
_BESIDE = {"sign": "key"}
"""Verbs that stand in the file of another."""


class Verbs(TyperGroup):
    """A command with all verbs below it."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        # which Typer only reads
        self.commands = cast("MutableMapping[str, Any]", _Built(self.rich_markup_mode))


class _Built(Mapping[str, Any]):
    """Every verb's command; those that nobody looks at are not built."""

    def __init__(self, markup: Any) -> None:
        self._markup = markup

    def __getitem__(self, name: str) -> Any:
        if name in VERBS:
            return _built(name, self._markup)
        from shoal.policy import plug_ins

        return _brought(plug_ins.command(name, VERBS), name, self._markup)

    def __contains__(self, name: object) -> bool:
        if name in VERBS:
            return True
        from shoal.policy import plug_ins

        return name in plug_ins.commands(VERBS)

    def __iter__(self) -> Iterator[str]:
        from shoal.policy import plug_ins

        return iter((*COMMANDS, *plug_ins.commands(VERBS), *GROUPS))

    def __len__(self) -> int:
        return len(list(iter(self)))


@cache
def _built(name: str, markup: Any) -> Any:
    function = name.replace("-", "_")
    module = import_module(f"shoal.cli.{_BESIDE.get(function, function)}")
    alone = typer.Typer(add_completion=False, rich_markup_mode=markup)
    if name in GROUPS:
        alone.add_typer(module.app, name=name)
    else:
        alone.command(name, cls=getattr(module, "COMMAND_CLASS", None))(getattr(module, function))
    return _command_of(alone, name)


@cache
def _brought(function: Callable[..., Any], name: str, markup: Any) -> Any:
    """The command that a function of another package makes."""
    alone = typer.Typer(add_completion=False, rich_markup_mode=markup)
    alone.command(name)(function)
    return _command_of(alone, name)


def _command_of(alone: typer.Typer, name: str) -> Any:
    # with a callback, Typer makes a group of one command, too
    alone.callback()(lambda: None)
    return cast(TyperGroup, get_command(alone)).commands[name]
