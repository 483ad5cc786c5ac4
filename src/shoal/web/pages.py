"""Templates to pages: everything escaped, cells isolated, nothing fetched from elsewhere."""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, Undefined
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse

from shoal.data.printable import printable
from shoal.web.screens import size_text


class _Blank(Undefined):
    """What a screen does not have is false and empty; its parts are errors."""


@cache
def environment() -> Environment:
    found = Environment(
        loader=PackageLoader("shoal.web", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=_Blank,
        finalize=_visible,
    )
    found.filters |= {
        "shown": shown,
        "percent": percent,
        "ago": ago,
        "size": size_text,
        "yaml_line": yaml_line,
    }
    return found


def _visible(value: Any) -> Any:
    """Whatever a page says: signs that turn a line around or can't be seen become a mark."""
    if isinstance(value, Markup) or not isinstance(value, str) or value.isprintable():
        return value
    return "".join(sign if sign in "\n\t" else printable(sign) for sign in value)


def shown(text: object) -> str:
    """A name or a cell, with marks in place of what moves a cursor or turns the line around."""
    return printable(str(text))


def ago(seconds: float) -> str:
    """A time that has passed, in the unit that a person would use."""
    for unit, size in (("days", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size:.0f} {unit}"
    return f"{seconds:.0f} s"


def percent(share: float | None) -> str:
    if share is None:
        return "not measured"
    return f"{100 * share:.1f} %"


def yaml_line(line: str) -> Markup:
    """A line of YAML, its key marked where it is one of the file's own."""
    head, colon, rest = line.partition(":")
    if colon and head.isidentifier():
        return Markup("<em>{}</em>:{}").format(printable(head), printable(rest))
    return escape(printable(line))


def page(
    request: Request, template: str, context: dict[str, Any], status: int = 200
) -> HTMLResponse:
    """A screen, with what every one of them carries."""
    server = request.app.state.server
    notices = list(server.notices)
    if request.method == "GET":
        server.notices.clear()
    steps = context.get("steps") or []
    places = [step.slug for step in steps]
    here = places.index(context["screen"]) if context["screen"] in places else -1
    shared = {
        "key": server.door.form_key(request.scope["state"]["cookie"] or ""),
        "notices": notices,
        "next": steps[here + 1] if 0 <= here < len(steps) - 1 else None,
        "table_changed": server.table_key() is not None
        and server.project.about.get("stamp") not in (None, server.stamp()),
    }
    text = environment().get_template(template).render({**shared, **context})
    return HTMLResponse(text, status)


def plain_page(template: str, **context: Any) -> str:
    """A page without a frame."""
    return environment().get_template(template).render(context)
