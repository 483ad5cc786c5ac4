"""The walk of a table through a verb: which functions it is handed to, on which floors.

A step is a call that hands on the table, or what was made of its records, to another function of
the source: frames, columns, codes, partitions, releases. Each place of the code counts once,
however often it runs. Questions to the table itself (its methods) don't count as steps, nor do
properties, constructors, functions inside functions and compiled loops.

A climb is a step into a higher floor than that of the step before. What goes down, comes back and
is sent down again could often have been done in one visit. Floors are those of the import contracts
in `pyproject.toml`.
"""

import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from shoal.data import cores, numba_kernels

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "shoal"

MADE_OF_RECORDS = (
    "Table CodedTable Column EncodedTable EncodedAttribute Matrix Partition Cut Classes "
    "SensitiveColumn Recoding Release Truth"
).split()
"""Classes of `data/` that hold something about each record."""


class Step(NamedTuple):
    """A function that was handed the table, and who called it."""

    floor: int
    place: str
    caller: str

    def __str__(self) -> str:
        return f"{self.place} <- {self.caller}"


def floors() -> dict[str, int]:
    """The floor of each package: its layer in the import contracts.

    Methods are on the floor of what they share: like that, they see a matrix and nothing else.
    """
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = next(
        contract["layers"]
        for contract in contracts["contracts"]
        if contract["name"].startswith("Packages import downward")
    )
    found = {
        package.strip().removeprefix("shoal."): floor
        for floor, layer in enumerate(reversed(layers))
        for package in layer.split("|")
    }
    return found | {"methods": found["search"]}


@dataclass
class Walk:
    """Records the steps of a table while something runs. records: how many the table has."""

    records: int
    floors: dict[str, int] = field(default_factory=floors)
    _steps: dict[tuple[CodeType | None, CodeType], Step] = field(default_factory=dict)

    def through(self, work: Callable[[], object]) -> list[Step]:
        """The steps that the work took, in order, each place of the code once."""
        before = sys.getprofile()
        # threads are not seen; what runs uncompiled would be steps of a first run alone
        with cores.using(1), numba_kernels.always(compiled=True):
            sys.setprofile(self._on_event)
            try:
                work()
            finally:
                sys.setprofile(before)
        properties = _code_of_properties()
        return [step for (_, code), step in self._steps.items() if code not in properties]

    def _on_event(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event != "call" or code.co_name.startswith(("<", "__")):
            return
        floor = self._floor_of(code)
        if floor is None:
            return
        caller = frame.f_back
        while caller is not None and caller.f_code.co_name.startswith("<"):
            caller = caller.f_back  # Python 3.12 calls no comprehension
        key = (None if caller is None else caller.f_code, code)
        if key in self._steps or "<locals>" in code.co_qualname:
            return
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        if any(self._is_made_of_records(frame.f_locals.get(name)) for name in names):
            self._steps[key] = Step(floor, _place(code), "" if key[0] is None else _place(key[0]))

    def _floor_of(self, code: CodeType) -> int | None:
        parts = _parts_of(code.co_filename)
        if not parts:
            return None
        is_method = "." in code.co_qualname
        if {"kernels", "uncompiled"} & {*parts} or (parts[0] == "data" and is_method):
            return None  # a loop, compiled or not yet; a question to the table itself
        return self.floors.get("methods" if "methods" in parts else parts[0])

    def _is_made_of_records(self, value: object, depth: int = 0) -> bool:
        if isinstance(value, (pl.DataFrame, pl.Series)):
            return True
        if isinstance(value, np.ndarray):
            return value.size >= self.records
        kind = type(value)
        if kind.__module__.startswith("shoal.data."):
            return kind.__name__ in MADE_OF_RECORDS
        if depth == 2:
            return False
        inside: list[object] = []
        if isinstance(value, (list, tuple)):
            inside = list(value[:5])
        elif isinstance(value, dict):
            inside = list(value.values())[:5]
        elif kind.__module__.startswith("shoal.") and hasattr(kind, "__dataclass_fields__"):
            inside = list(getattr(value, "__dict__", {}).values())
        return any(self._is_made_of_records(one, depth + 1) for one in inside)


def climbs(steps: list[Step]) -> list[tuple[Step, Step]]:
    """Each step into a higher floor, behind the one before it."""
    return [(a, b) for a, b in pairwise(steps) if b.floor > a.floor]


@cache
def _parts_of(file: str) -> tuple[str, ...]:
    """Where a module of the source lies; nothing for any other, such as the compiler's."""
    path = Path(file)
    return path.relative_to(SOURCE).with_suffix("").parts if path.is_relative_to(SOURCE) else ()


def _place(code: CodeType) -> str:
    path = Path(code.co_filename)
    inside = path.relative_to(SOURCE) if path.is_relative_to(SOURCE) else Path(path.name)
    return f"{inside}:{code.co_qualname}"


def _code_of_properties() -> set[object]:
    found: set[object] = set()
    for name, module in list(sys.modules.items()):
        if name.startswith("shoal."):
            for kind in list(vars(module).values()):
                for member in vars(kind).values() if isinstance(kind, type) else ():
                    if isinstance(member, property):
                        found.add(getattr(member.fget, "__code__", None))
                    elif isinstance(member, cached_property):
                        found.add(getattr(member.func, "__code__", None))
    return found
