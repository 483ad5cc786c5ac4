"""The formats of files, one a module; `FORMATS` of each is found by looking."""

import importlib
import pkgutil

from shoal.connectors.format import Format
from shoal.errors import InputError

PACKED = ".gz"
"""Ends the name of a compressed file."""

FORMATS: tuple[Format, ...] = tuple(
    one
    for info in pkgutil.iter_modules(__path__)
    for one in importlib.import_module(f"{__name__}.{info.name}").FORMATS
)
SUFFIXES = tuple(
    f"{one}{packed}" for one in FORMATS for packed in ("", PACKED) if one.is_text or not packed
)
"""How the names of tables end."""
_BY_SUFFIX = {str(one): one for one in FORMATS}


def format_of(suffix: str) -> Format:
    """The format of a suffix without compression; raises InputError where none has it."""
    if suffix not in _BY_SUFFIX:
        raise InputError(f"format '{suffix}': is unknown; use one of {', '.join(FORMATS)}")
    return _BY_SUFFIX[suffix]


def named(name: str) -> Format | None:
    """The format that the end of a name says; None where it says none."""
    suffix = next((end for end in SUFFIXES if name.lower().endswith(end)), None)
    return None if suffix is None else format_of(suffix.removesuffix(PACKED))


def begun_as(start: bytes) -> Format | None:
    """The format whose files begin like this; None where none is known by its beginning."""
    return next((one for one in FORMATS if one.magic and start.startswith(one.magic)), None)


def is_alike(kind: Format, suffix: str) -> bool:
    """Whether two formats differ by name at most, as all delimited text does."""
    return suffix == kind or type(_BY_SUFFIX.get(suffix)) is type(kind)
