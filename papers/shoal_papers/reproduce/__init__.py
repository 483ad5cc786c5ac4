"""Reproduce: a paper's experiments, its figures, and a verdict on each of its claims.

Every module of this package that holds a `PAPER` is a paper; nothing has to be listed anywhere.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.errors import InputError

if TYPE_CHECKING:
    from shoal_papers.reproduce.paper import Paper

EVERYTHING = "all"


def papers() -> dict[str, Paper]:
    """Every paper by name."""
    modules = (
        importlib.import_module(f"{__name__}.{info.name}")
        for info in pkgutil.iter_modules(__path__)
    )
    found = [module.PAPER for module in modules if hasattr(module, "PAPER")]
    return {paper.name: paper for paper in sorted(found, key=lambda paper: paper.name)}


def reproduce_paper(
    name: str,
    out: Path,
    *,
    quick: bool = False,
    data: Path | None = None,
    fresh: bool = False,
    progress: Callable[[str], None],
) -> list[Path]:
    """Runs a paper's experiments into the folder `out/NAME`, or those of all papers; the files
    written.

    An interrupted run resumes where it stopped, unless `fresh`. data: the folder of data
    sets.
    quick: a small setting on made-up data. Raises InputError for an unknown name or absent data.
    """
    from shoal_papers.reproduce.harness import run

    known = papers()
    if name != EVERYTHING and name not in known:
        raise InputError(
            f"paper '{name}': unknown; choose one of {', '.join(known)} or {EVERYTHING}"
        )
    asked = list(known.values()) if name == EVERYTHING else [known[name]]
    return [
        path
        for paper in asked
        for path in run(
            paper, out / paper.name, quick=quick, data=data, fresh=fresh, progress=progress
        )
    ]
