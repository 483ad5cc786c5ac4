"""The routes: read what was asked, call one thing, show. Every change answers with a redirect."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
import traceback
from collections.abc import AsyncIterator, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import (
    FileResponse,
    HTMLResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route

from shoal.errors import InputError
from shoal.web import (
    checked,
    policy_text,
    routes_of_edits,
    routes_of_hierarchies,
    routes_of_jobs,
    routes_of_ledgers,
    routes_of_release,
)
from shoal.web import watch as watching
from shoal.web.checked import beside as drafts_beside
from shoal.web.compared import compare_screen
from shoal.web.door import COOKIE, IDLE_SECONDS, TooManyTries
from shoal.web.frame import frame
from shoal.web.guard import ENTER, LINK, REPORT_POLICY, App, Guard
from shoal.web.pages import page, plain_page
from shoal.web.policy_text import has_comments
from shoal.web.project import Entry
from shoal.web.result import result_screen
from shoal.web.screens import columns_screen, open_screen, promises_screen
from shoal.web.server import MOST_STREAMS, Server
from shoal.web.work import Refused

STATIC = {
    "shoal.css": "text/css; charset=utf-8",
    "shoal.js": "text/javascript; charset=utf-8",
    "shoal.svg": "image/svg+xml",
}
BEAT = 15.0  # seconds between signs of life in a stream of events


def application(server: Server, second: Callable[[str], bool] = lambda secret: False) -> App:
    """The page of a project. second: whether a second `shoal ui` may have a new link."""

    async def new_link(request: Request) -> Response:
        if not second(_field(request, "secret")):
            return PlainTextResponse("", 401)
        return PlainTextResponse(opening_page(server))

    routes = [
        Route("/", home),
        Route(ENTER, enter, methods=["POST"]),
        Route(LINK, new_link, methods=["POST"]),
        Route("/open", opened),
        Route("/columns", columns),
        Route("/promises", promises),
        Route("/compare", compare),
        Route("/watch", watch),
        Route("/watch", add_watch, methods=["POST"]),
        Route("/stream/{n}", stream),
        Route("/result", result),
        Route("/result/{run}", result),
        Route("/runs/{run}/report", report),
        Route("/text", text),
        Route("/history", history),
        Route("/help", helped),
        Route("/jobs/{id}/events", events),
        Route("/static/{name}", static),
        Route("/quit", quit_page, methods=["POST"]),
        *routes_of_edits.ROUTES,
        *routes_of_release.ROUTES,
        *routes_of_hierarchies.ROUTES,
        *routes_of_jobs.ROUTES,
        *checked.ROUTES,
        *routes_of_ledgers.ROUTES,
    ]
    handlers = {
        InputError: refused,
        Refused: refused,
        policy_text.NotThere: missing,
        404: missing,
        500: broken,
    }
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.state.server = server
    app.add_middleware(_Noticing, server=server)
    return Guard(app, server.door)


class _Noticing:
    """Remembers when somebody was last here, and what was changed by hand meanwhile."""

    def __init__(self, app: App, server: Server) -> None:
        self._app, self._server = app, server

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            self._server.used = time.monotonic()
            if scope["method"] == "GET" and not scope["path"].startswith(("/static", "/jobs")):
                self._server.project.notice_hand_edits()
        await self._app(scope, receive, send)


def opening_page(server: Server) -> str:
    """A page that lets one browser in: the token is in it, and in no address."""
    return plain_page("opening.html.j2", origin=server.door.origin, token=server.door.new_link())


def server_of(request: Request) -> Server:
    found: Server = request.app.state.server
    return found


def _field(request: Request, name: str) -> str:
    values = request.scope["state"]["form"].get(name)
    return values[-1] if values else ""


# Coming in and going


async def enter(request: Request) -> Response:
    """A token for a cookie; the page it answers with leads on, as a Strict cookie needs."""
    try:
        cookie = server_of(request).door.enter(_field(request, "token"))
    except TooManyTries:
        return PlainTextResponse("Too many tries. Wait a minute.", 429)
    if cookie is None:
        return PlainTextResponse("This link is used or too old. Type shoal ui for a new one.", 401)
    answer = HTMLResponse(plain_page("entered.html.j2"))
    answer.set_cookie(
        COOKIE, cookie, max_age=int(IDLE_SECONDS), httponly=True, samesite="strict", path="/"
    )
    return answer


async def quit_page(request: Request) -> Response:
    server = server_of(request)
    server.door.close()
    server.quit()
    answer = PlainTextResponse("Shoal has ended. You may close this window.")
    answer.headers["clear-site-data"] = '"cache", "cookies", "storage"'
    return answer


# Screens


async def home(request: Request) -> Response:
    server = server_of(request)
    place = "/columns" if server.table_key() else "/open"
    if server.project.runs:
        place = "/result"
    return RedirectResponse(place, 303)


async def opened(request: Request) -> Response:
    context = await open_screen(server_of(request), request.query_params.get("t", ""))
    return page(request, "open.html.j2", context)


async def columns(request: Request) -> Response:
    asked = request.query_params
    number = int(asked["p"]) if asked.get("p", "").isdecimal() else 1
    context = await columns_screen(server_of(request), asked.get("q", ""), number)
    return page(request, "columns.html.j2", context)


async def promises(request: Request) -> Response:
    return page(request, "promises.html.j2", await promises_screen(server_of(request)))


async def compare(request: Request) -> Response:
    asked = request.query_params
    wanted = (asked.get(name, "") for name in ("m", "k", "at"))
    context = await compare_screen(server_of(request), *wanted)
    return page(request, "compare.html.j2", context)


async def watch(request: Request) -> Response:
    server = server_of(request)
    context = {
        **await frame(server, "watch"),
        "title": "Watch",
        "kinds": watching.KINDS,
        "start": str(server.project.start),
    }
    return page(request, "watch.html.j2", context)


async def add_watch(request: Request) -> Response:
    return RedirectResponse(watching.add(server_of(request), routes_of_edits.form_of(request)), 303)


async def stream(request: Request) -> Response:
    context = await watching.stream_screen(server_of(request), request.path_params["n"])
    return page(request, "stream.html.j2", context)


async def result(request: Request) -> Response:
    server, other = server_of(request), request.query_params.get("with")
    context = await result_screen(server, request.path_params.get("run"))
    if other and context["run"] and context["run"].state == "done":
        context["beside"] = drafts_beside(context["run"], server.project.run(other))
    return page(request, "result.html.j2", context)


async def report(request: Request) -> Response:
    """A report, which has styles of its own and therefore a policy of its own."""
    run = server_of(request).project.run(request.path_params["run"])
    path = run.folder / "report.html"
    if run.state != "done" or not path.is_file():
        raise policy_text.NotThere
    return FileResponse(
        path, media_type="text/html", headers={"content-security-policy": REPORT_POLICY}
    )


async def text(request: Request) -> Response:
    server = server_of(request)
    policy = server.project.policy_text
    context = {
        **await frame(server, "text"),
        "title": "Policy",
        "text": policy,
        "has_comments": has_comments(policy),
    }
    return page(request, "text.html.j2", context)


async def history(request: Request) -> Response:
    server = server_of(request)
    entries = server.project.history.entries()
    position = server.project.history.position(entries)
    context = {
        **await frame(server, "history"),
        "title": "Changes",
        "entries": list(reversed(entries)),
        "position": position,
        "chain": _chain(entries, position),
    }
    return page(request, "history.html.j2", context)


def _chain(entries: list[Entry], position: int) -> set[int]:
    """The entries that the present state was made on, one after the other."""
    parents = {entry.number: entry.parent for entry in entries}
    found = set()
    while position in parents:
        found.add(position)
        position = parents[position]
    return found


async def helped(request: Request) -> Response:
    context = {**await frame(server_of(request), "help"), "title": "Help"}
    return page(request, "help.html.j2", context)


async def static(request: Request) -> Response:
    from importlib.resources import files as resources

    name = request.path_params["name"]
    if name not in STATIC:
        raise policy_text.NotThere
    content = (resources("shoal.web") / "static" / name).read_bytes()
    return Response(content, headers={"content-type": STATIC[name]})


# Events


async def events(request: Request) -> Response:
    """What a job tells, from behind the last event that the browser has."""
    server = server_of(request)
    job = server.jobs.find(request.path_params["id"])
    if job is None:
        raise policy_text.NotThere
    if server.streams >= MOST_STREAMS:
        return PlainTextResponse("Too many windows listen.", 503)
    last = request.headers.get("last-event-id", "0")
    after = int(last) if last.isascii() and last.isdigit() else 0

    async def messages() -> AsyncIterator[str]:
        server.streams += 1
        try:
            source = job.events_after(min(after, len(job.events)))
            waiting = asyncio.ensure_future(anext(source, None))
            while True:
                done, _ = await asyncio.wait({waiting}, timeout=BEAT)
                if not done:
                    yield ": still here\n\n"
                    continue
                event = waiting.result()
                if event is None:
                    return
                yield f"id: {event['id']}\ndata: {json.dumps(event)}\n\n"
                waiting = asyncio.ensure_future(anext(source, None))
        finally:
            server.streams -= 1

    return StreamingResponse(messages(), media_type="text/event-stream")


# What goes wrong


async def refused(request: Request, error: Exception) -> Response:
    """An error as a sentence on a page; the form that was sent changed nothing."""
    if isinstance(error, Refused):
        said = {"message": error.message, "findings": error.findings}
    else:
        findings = list(getattr(error, "findings", ()))
        said = {"message": str(error.args[0]), "findings": findings}
    context = {**await frame(server_of(request), "problem"), "title": "Not done", "error": said}
    return page(request, "problem.html.j2", {**context, "heading": "Not done"}, 422)


async def missing(request: Request, error: Exception) -> Response:
    context = {**await frame(server_of(request), "problem"), "title": "Not found"}
    return page(request, "problem.html.j2", {**context, "heading": "There is no such page"}, 404)


async def broken(request: Request, error: Exception) -> Response:
    """A bug: only its kind is shown, since its text may hold values."""
    if os.environ.get("SHOAL_DEBUG") == "1":
        traceback.print_exception(error, file=sys.stderr)
    kind = type(error).__name__
    return PlainTextResponse(f"internal error ({kind}); run with SHOAL_DEBUG=1 and report it", 500)
