"""All verbs by name. Each is imported and built when it is first asked for: a run needs one, and to
build all takes longer than to publish a small table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
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
    "reproduce",
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
        if name not in VERBS:
            raise KeyError(name)
        return _built(name, self._markup)

    def __iter__(self) -> Iterator[str]:
        return iter(VERBS)

    def __len__(self) -> int:
        return len(VERBS)


@cache
def _built(name: str, markup: Any) -> Any:
    function = name.replace("-", "_")
    module = import_module(f"shoal.cli.{_BESIDE.get(function, function)}")
    alone = typer.Typer(add_completion=False, rich_markup_mode=markup)
    if name in GROUPS:
        alone.add_typer(module.app, name=name)
    else:
        alone.command(name, cls=getattr(module, "COMMAND_CLASS", None))(getattr(module, function))
    # with a callback, Typer makes a group of one command, too
    alone.callback()(lambda: None)
    return cast(TyperGroup, get_command(alone)).commands[name]
