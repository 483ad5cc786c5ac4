"""Check a released file: what it and its certificate say of each other, without any project."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from shoal.data.two_tables import sensitive_path
from shoal.web import folder as files
from shoal.web.edits import Form, one
from shoal.web.frame import frame
from shoal.web.pages import page
from shoal.web.routes_of_edits import form_of
from shoal.web.server import Server

Context = dict[str, Any]
CERTIFICATE = ".certificate.json"
MOST_LISTED = 50
FIELDS = {
    "certificate": "Its certificate",
    "policy": "Its policy",
    "original": "The table it was made of",
}


async def shown(request: Request) -> Response:
    return page(request, "check.html.j2", await check_screen(request.app.state.server))


async def check_screen(server: Server) -> Context:
    """Released files below the start folder, and what the last check found."""
    job = server.jobs.last("verify")
    asked = job.asked if job else {}
    is_same = asked.get("stamps") == _stamps(asked)
    checks = job.result.get("checks") if job and job.state == "done" and is_same else None
    return {
        **await frame(server, "check", _command(server, asked) if asked else None),
        "title": "Check a released file",
        "listed": await asyncio.to_thread(released_below, server.project.start),
        "start": str(server.project.start),
        "fields": FIELDS,
        "once": server.new_once(),
        "checked": asked.get("named"),
        "checks": checks,
        "is_good": checks is not None and all(check["ok"] is not False for check in checks),
        "trouble": job.result if job and job.state in ("refused", "failed") else None,
        "has_changed": bool(job) and not is_same,
        "is_running": job is not None and not job.is_over,
        "made_again": any(c["name"] == "measured" and c["ok"] for c in checks or ()),
    }


def released_below(start: Path) -> list[str]:
    """Files that have a certificate beside them, in the start folder and three levels below."""
    found: list[str] = []
    for place, folders, names in os.walk(start):
        depth = len(Path(place).relative_to(start).parts)
        folders[:] = sorted(f for f in folders if not f.startswith(".")) if depth < 3 else []
        known = set(names)
        for name in sorted(names):
            released = name.removesuffix(CERTIFICATE)
            if released != name and released in known:
                found.append(os.path.relpath(Path(place) / released, start))
        if len(found) >= MOST_LISTED:
            break
    return found[:MOST_LISTED]


async def started(request: Request) -> Response:
    """Begins a check of the file that a form names."""
    server, form = request.app.state.server, form_of(request)
    named = one(form, "typed") or one(form, "path")
    asked: Context = {"named": named, "file": str(files.within(named, server.project.start))}
    for field in FIELDS:
        asked[field] = _path(server, form, field)
    server.start("verify", one(form, "once"), **asked, stamps=_stamps(asked))
    return RedirectResponse("/check", 303)


def _stamps(asked: Context) -> list[list[int]]:
    """What changes when one of the files that a check reads does, found beside others or named."""
    named: list[str | None] = [asked.get(field) for field in ("file", *FIELDS)]
    if named[0]:
        named += [named[0] + CERTIFICATE, sensitive_path(named[0])]
    found = []
    for path in filter(None, named):
        with suppress(OSError):
            stat = os.stat(path)
            found.append([stat.st_ino, stat.st_mtime_ns, stat.st_size])
    return found


def _path(server: Server, form: Form, field: str) -> str | None:
    given = one(form, field)
    return str(files.within(given, server.project.start)) if given else None


def _command(server: Server, asked: Context) -> list[str]:
    def there(path: str) -> str:
        return Path(os.path.relpath(path, server.project.folder)).as_posix()

    words = ["shoal", "verify", there(asked["file"])]
    if asked.get("certificate"):
        words.append(there(asked["certificate"]))
    for field, option in (("policy", "-p"), ("original", "--original")):
        if asked.get(field):
            words += [option, there(asked[field])]
    return words


ROUTES = [
    Route("/check", shown),
    Route("/check", started, methods=["POST"]),
]
