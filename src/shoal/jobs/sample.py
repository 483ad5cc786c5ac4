"""Sample: bundled generators of invented people."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl

import shoal.samples
from shoal.connectors import files
from shoal.errors import InputError


@cache
def generators() -> dict[str, ModuleType]:
    """Every generator by name."""
    names = (info.name for info in pkgutil.iter_modules(shoal.samples.__path__))
    return {name: importlib.import_module(f"shoal.samples.{name}") for name in sorted(names)}


def sample(name: str, n: int = 1000, seed: int = 0) -> pl.DataFrame:
    """n records of invented people, the same for the same seed; raises InputError for an unknown name."""
    return _generator(name).generate(n, seed)


def _generator(name: str) -> Any:
    known = generators()
    if name not in known:
        raise InputError(f"sample '{name}': no such generator; choose one of {', '.join(known)}")
    return known[name]


def write_sample(name: str, n: int, seed: int, output: str) -> list[str]:
    """Write n records, and a policy that fits them beside the table unless one is there already."""
    generator = _generator(name)
    kind = files.format_of(output)
    with files.written_whole(output) as draft:
        files.write(generator.generate(n, seed), draft, kind, compressed=output.endswith(".gz"))
    if output == files.STANDARD:
        return ["standard output"]
    policy = Path(output).parent / f"{Path(output).name.split('.')[0]}.policy.yaml"
    if policy.exists():
        return [output, f"left {policy} as it was"]
    with files.written_whole(str(policy)) as draft:
        draft.write_text(generator.POLICY)
    return [output, str(policy)]
