"""Pages for people: a rendered template, written whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from shoal.connectors import files
from shoal.data.printable import readable


def render_template(
    template: str,
    content: Mapping[str, Any],
    filters: Mapping[str, Callable[..., Any]] | None = None,
) -> str:
    """The page; the same for the same content. Whatever is put in is escaped, can't reorder or hide
    the text around it, and nothing may be missing.
    """
    environment = Environment(
        loader=PackageLoader("shoal.reports"),
        autoescape=True,
        finalize=_readable,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= dict(filters or {})
    return environment.get_template(template).render(content)


def _readable(content: Any) -> Any:
    """Text as a page may show it; charts are made of such text already."""
    return readable(content) if type(content) is str else content


def write_page(page: str, path: Path) -> None:
    """The page as a file."""
    with files.atomic_write(str(path)) as draft:
        draft.write_text(page, encoding="utf-8")
