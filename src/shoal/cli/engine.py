"""The option of verbs whose work an engine can spread over many machines."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

Engine = Annotated[
    str | None,
    typer.Option(
        "--engine",
        metavar="spark",
        help="Who works on the files of a folder: Spark's executors. Extra: spark.",
    ),
]


def with_engine(command: Callable[..., None]) -> Callable[..., None]:
    """A command with the option --engine, behind its others."""
    signature = inspect.signature(command, eval_str=True)
    option = inspect.Parameter(
        "engine", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Engine
    )
    parameters = [*signature.parameters.values(), option]

    @wraps(command)
    def on_engine(engine: str | None = None, **given: Any) -> None:
        from shoal.connectors import engines

        with engines.using(engine):
            command(**given)

    on_engine.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    on_engine.__annotations__ = {one.name: one.annotation for one in parameters}
    return on_engine
