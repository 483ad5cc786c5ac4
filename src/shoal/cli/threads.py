"""The option of verbs that work on several cores."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

POLARS_THREADS = "POLARS_MAX_THREADS"

Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        metavar="N",
        min=1,
        help="How many threads may work at once; default the process's cores.",
    ),
]


def with_threads(command: Callable[..., None]) -> Callable[..., None]:
    """A command with the option --threads, behind its others; it works on so many threads."""
    signature = inspect.signature(command, eval_str=True)
    option = inspect.Parameter(
        "threads", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Threads
    )
    parameters = [*signature.parameters.values(), option]

    @wraps(command)
    def on_threads(threads: int | None = None, **given: Any) -> None:
        if threads is not None and "polars" not in sys.modules:
            os.environ.setdefault(POLARS_THREADS, str(threads))  # it counts cores when it is loaded
        from shoal.data import cores

        with cores.using(threads):
            command(**given)

    on_threads.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    on_threads.__annotations__ = {one.name: one.annotation for one in parameters}
    return on_threads
