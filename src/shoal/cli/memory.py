"""The option of verbs that can keep to a limit on memory."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

Memory = Annotated[
    str | None,
    typer.Option(
        "--memory",
        metavar="SIZE",
        help="How much memory may be used, such as 700MB; more lies in nameless files (TMPDIR).",
    ),
]


def with_memory(command: Callable[..., None]) -> Callable[..., None]:
    """A command with the option --memory, behind its others; it keeps to that limit."""
    signature = inspect.signature(command, eval_str=True)
    option = inspect.Parameter(
        "memory", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Memory
    )
    parameters = [*signature.parameters.values(), option]

    @wraps(command)
    def within(memory: str | None = None, **given: Any) -> None:
        from shoal.data import room

        with room.using(memory):
            command(**given)

    within.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    within.__annotations__ = {one.name: one.annotation for one in parameters}
    return within
