"""Seeded generators of invented people, one file each; none of them holds anybody's data.

A generator is a module with `generate(n, seed) -> polars.DataFrame`, or `generate_tables` for
several tables of n people by name, and `POLICY`, the text of a policy that fits it.
"""

import importlib
import pkgutil
from functools import cache
from numbers import Integral
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, overload

import polars as pl

from shoal.connectors import files
from shoal.connectors.linked_tables import place_in_folder
from shoal.connectors.location import Location
from shoal.errors import InputError


@cache
def generators() -> dict[str, ModuleType]:
    """Every generator by name."""
    names = (info.name for info in pkgutil.iter_modules(__path__))
    return {name: importlib.import_module(f"{__name__}.{name}") for name in sorted(names)}


@overload
def sample(  # type: ignore[overload-overlap]  # one name among all
    name: Literal["clinic"], n: int = 1000, seed: int = 0
) -> dict[str, pl.DataFrame]: ...
@overload
def sample(name: str, n: int = 1000, seed: int = 0) -> pl.DataFrame: ...


def sample(name: str, n: int = 1000, seed: int = 0) -> pl.DataFrame | dict[str, pl.DataFrame]:
    """n records of invented people, the same for the same seed; of several tables, n people with
    all of their rows, by the name of each table.

    Raises InputError for an unknown name or n < 1.
    """
    for what, number in (("n", n), ("seed", seed)):
        is_number = isinstance(number, Integral) and not isinstance(number, bool)
        if not is_number or (what == "seed" and number < 0):
            raise InputError(
                f"sample '{name}': {what} is not a whole number; give one, such as {what}=7"
            )
    if n < 1:
        raise InputError(f"sample '{name}': n = {n} records; ask for 1 or more")
    generator = _generator(name)
    make = getattr(generator, "generate_tables", None) or generator.generate
    return make(n, seed)


def _generator(name: str) -> Any:
    known = generators()
    if not isinstance(name, str) or name not in known:
        raise InputError(f"sample '{name}': no such generator; choose one of {', '.join(known)}")
    return known[name]


def write_sample(name: str, n: int, seed: int, output: str, replace: bool = False) -> list[str]:
    """Write n records, and a policy that fits them beside the table unless one is there already.

    replace: whether a table that is there gives way. Raises InputError.
    """
    generator = _generator(name)
    if hasattr(generator, "generate_tables"):
        return _write_tables(generator, n, seed, output, replace)
    if (
        hasattr(generator, "generate_parts")
        and not Path(output).suffix
        and not Location(output).is_standard
    ):
        Path(output).mkdir(parents=True, exist_ok=True)  # a folder for all of its tables
        output = place_in_folder(Path(output), name)
    files.check_writable(output, replace)
    files.write_table(generator.generate(n, seed), output)
    if Location(output).is_standard:
        return ["standard output"]
    stem = Path(output).name.split(".")[0]
    written = [output, _unless_there(Path(output).parent / f"{stem}.policy.yaml", generator.POLICY)]
    if hasattr(generator, "generate_parts"):
        written += _write_parts(generator, n, seed, Path(output), stem)
    return written


def _write_tables(
    generator: ModuleType, n: int, seed: int, output: str, replace: bool
) -> list[str]:
    """A folder with a file for each table, and a policy beside it unless one is there."""
    folder = Path(output)
    if Location(output).is_standard or not Location(output).is_path or folder.suffix:
        raise InputError(
            f"output '{output}': several tables are written; name a folder, as clinic/"
        )
    tables = {
        place_in_folder(folder, name): frame
        for name, frame in generator.generate_tables(n, seed).items()
    }
    folder.mkdir(parents=True, exist_ok=True)
    for path in tables:
        files.check_writable(path, replace)
    for path, frame in tables.items():
        files.write_table(frame, path)
    policy = folder.parent / f"{folder.name}.policy.yaml"
    return [*tables, _unless_there(policy, generator.POLICY)]


def _write_parts(generator: ModuleType, n: int, seed: int, output: Path, stem: str) -> list[str]:
    """The people as several owners hold them: a table each, and their agreement."""
    tables = {}
    for owner, frame in generator.generate_parts(n, seed).items():
        tables[owner] = f"{stem}.{owner}{output.name.removeprefix(stem)}"
        files.write_table(frame, output.parent / tables[owner])
    agreement = _unless_there(output.parent / f"{stem}.parties.yaml", generator.parties(tables))
    return [*(str(output.parent / table) for table in tables.values()), agreement]


def _unless_there(path: Path, text: str) -> str:
    if path.exists():
        return f"left {path} as it was"
    with files.atomic_write(str(path)) as draft:
        draft.write_text(text)
    return str(path)
