"""The routes: read what was asked, call one thing, show. Every change answers with a redirect.

The server knows paths, counts and the policy; a process of its own, the desk, holds the table.
"""

import asyncio
import contextlib
import json
import os
import re
import secrets
import signal
import socket
import sys
import time
import traceback
import urllib.parse
import urllib.request
from asyncio import FIRST_COMPLETED
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import uvicorn
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

from shoal.data.language import gettext
from shoal.errors import InputError
from shoal.web import checked, guard, policy_text, result, routes_of_edits, routes_of_release, watch
from shoal.web.edits import one, whole
from shoal.web.frame import form_of, frame, page, plain_page, shows
from shoal.web.project import Busy, Project
from shoal.web.screens import columns_screen, open_screen, promises_screen
from shoal.web.server import MOST_STREAMS, Server
from shoal.web.work import Refused

STATIC = {
    "shoal.css": "text/css; charset=utf-8",
    "shoal.js": "text/javascript; charset=utf-8",
    "shoal.svg": "image/svg+xml",
}
BEAT = 15.0  # seconds between signs of life in a stream of events


def application(server: Server, second: Callable[[str], bool] = lambda secret: False) -> guard.App:
    """The page of a project. second: whether a second `shoal ui` may have a new link."""

    async def new_link(request: Request) -> Response:
        if not second(one(form_of(request), "secret")):
            return PlainTextResponse("", 401)
        return PlainTextResponse(opening_page(server))

    routes = [
        Route("/", home),
        Route(guard.ENTER, enter, methods=["POST"]),
        Route(guard.LINK, new_link, methods=["POST"]),
        Route("/open", shows(open_screen, "t")),
        Route("/columns", shows(columns_screen, "q", "p")),
        Route("/promises", shows(promises_screen)),
        Route("/runs/{run}/report", report),
        Route("/releases/{release}/{name:path}", report),
        Route("/text", shows(text_screen)),
        Route("/history", shows(history_screen)),
        Route("/help", shows(lambda server: frame(server, "help", gettext("Help")))),
        Route("/jobs/{id}/events", events),
        Route("/static/{name}", static),
        Route("/quit", quit_page, methods=["POST"]),
        *routes_of_edits.ROUTES,
        *routes_of_release.ROUTES,
        *result.ROUTES,
        *checked.ROUTES,
        *watch.ROUTES,
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
    return guard.Guard(app, server.door)


class _Noticing:
    """Remembers when somebody was last here, and what was changed by hand meanwhile."""

    def __init__(self, app: guard.App, server: Server) -> None:
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


# Coming in and going


async def enter(request: Request) -> Response:
    """A token for a cookie; the page it answers with leads on, as a Strict cookie needs."""
    try:
        cookie = request.app.state.server.door.enter(one(form_of(request), "token"))
    except guard.TooManyTries:
        return PlainTextResponse(gettext("Too many tries. Wait a minute."), 429)
    if cookie is None:
        return PlainTextResponse(
            gettext("This link is used or too old. Type shoal ui for a new one."), 401
        )
    answer = HTMLResponse(plain_page("entered.html.j2"))
    answer.set_cookie(
        guard.COOKIE,
        cookie,
        max_age=int(guard.IDLE_SECONDS),
        httponly=True,
        samesite="strict",
        path="/",
    )
    return answer


async def quit_page(request: Request) -> Response:
    server = request.app.state.server
    server.door.close()
    server.quit()
    answer = PlainTextResponse(gettext("Shoal has ended. You may close this window."))
    answer.headers["clear-site-data"] = '"cache", "cookies", "storage"'
    return answer


# Screens


async def home(request: Request) -> Response:
    server = request.app.state.server
    place = "/columns" if server.table_key() else "/open"
    if server.project.runs:
        place = "/result"
    return RedirectResponse(place, 303)


async def report(request: Request) -> Response:
    """A report or a dossier, by a policy of its own for its styles; or a file of a release."""
    project, asked = request.app.state.server.project, request.path_params
    run = project.run(asked["run"]) if "run" in asked else None
    folder = f"runs/{run.name}" if run else f"releases/{asked['release']}"
    name = asked.get("name", "report")
    if run is None and not re.fullmatch(r"2[\d-]+", asked["release"]):
        raise policy_text.NotThere
    if "." in name:
        path = policy_text.within(f"{folder}/{name}", project.folder)
        return FileResponse(path, filename=path.name)
    if name not in ("report", "dossier") or (run and run.state != "done"):
        raise policy_text.NotThere
    path = policy_text.within(f"{folder}/{name}.html", project.folder)
    return FileResponse(
        path, media_type="text/html", headers={"content-security-policy": guard.REPORT_POLICY}
    )


async def text_screen(server: Server) -> policy_text.Context:
    policy = server.project.policy_text
    context = await frame(server, "text", gettext("Policy"))
    return context | {"text": policy, "has_comments": policy_text.has_comments(policy)}


async def history_screen(server: Server) -> policy_text.Context:
    history = server.project.history
    return {
        **await frame(server, "history", gettext("Changes")),
        "entries": list(reversed(history.entries())),
        "chain": {entry.number for entry in history.chain()},
    }


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
    server = request.app.state.server
    job = server.jobs.find(request.path_params["id"])
    if job is None:
        raise policy_text.NotThere
    if server.streams >= MOST_STREAMS:
        return PlainTextResponse(gettext("Too many windows listen."), 503)
    after = whole(request.headers.get("last-event-id", "")) or 0

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
    more = error.said[1:] if isinstance(error, InputError) else getattr(error, "findings", ())
    said = {"message": str(error.args[0]), "findings": list(more)}
    context = await frame(request.app.state.server, "problem", gettext("Not done"))
    return page(request, context | {"heading": context["title"], "error": said, "http_status": 422})


async def missing(request: Request, error: Exception) -> Response:
    context = await frame(request.app.state.server, "problem", gettext("Not found"))
    heading = gettext("There is no such page")
    return page(request, context | {"heading": heading, "http_status": 404})


async def broken(request: Request, error: Exception) -> Response:
    """A bug: only its kind is shown, since its text may hold values."""
    if os.environ.get("SHOAL_DEBUG") == "1":
        traceback.print_exception(error, file=sys.stderr)
    kind = type(error).__name__
    return PlainTextResponse(f"internal error ({kind}); run with SHOAL_DEBUG=1 and report it", 500)


# One server for one project, on an address of this computer that nobody else has (rule S1).


Say = Callable[[str], None]
LOOK_AROUND = 60.0  # seconds


def serve(folder: Path, start: Path, say: Say, show: Callable[[Path], object]) -> None:
    """Serves a project until somebody quits; a second server on it shows the first one's page.

    say: gets a line with the page's address. show: opens a file in a browser.
    """
    project = Project(folder, start)
    try:
        project.lock()
    except Busy as other:
        _show_the_first(project, other, say, show)
        return
    try:
        project.sweep()
        asyncio.run(_serve(project, say, show))
    finally:
        project.unlock()


async def _serve(project: Project, say: Say, show: Callable[[Path], object]) -> None:
    listening = _listening()
    host, port = listening.getsockname()[:2]
    door, secret = guard.Door(host, port), secrets.token_urlsafe(32)
    server = Server(project, door)
    about = {"pid": os.getpid(), "origin": door.origin, "secret": secret}
    project.say_where(about)
    app = application(server, lambda given: secrets.compare_digest(given.encode(), secret.encode()))
    config = uvicorn.Config(
        app,
        access_log=False,
        log_level="critical",
        server_header=False,
        lifespan="off",
        proxy_headers=False,
        timeout_graceful_shutdown=2,
    )
    web = _Web(config)
    serving = asyncio.ensure_future(web.serve(sockets=[listening]))
    ended = asyncio.ensure_future(server.ended())
    with contextlib.suppress(NotImplementedError):
        for stop in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(stop, server.quit)
    say_and_show(server, say, show)
    while not ended.done() and not serving.done():
        await asyncio.wait({ended, serving}, timeout=LOOK_AROUND, return_when=FIRST_COMPLETED)
        if not server.jobs.open and time.monotonic() - server.used > guard.IDLE_SECONDS:
            server.quit()
    await asyncio.sleep(0.2)  # the last answer leaves
    web.should_exit = True
    await server.close()
    await serving


class _Web(uvicorn.Server):  # type: ignore[misc,unused-ignore]
    """Leaves signals to us: what a job has begun is cleared away first."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def say_and_show(server: Server, say: Say, show: Callable[[Path], object]) -> None:
    """A new link in a file of the project, which a browser opens: no list of processes has it."""
    path = server.project.folder / ".ui" / "open.html"
    policy_text.write(path, opening_page(server))
    say(f"{server.project.name}: the page is at {server.door.origin}, for one browser that opens")
    say(f"  {path}")
    say("within a minute; 'shoal ui' again makes a new link. Ctrl-C ends it.")
    show(path)


def _listening() -> socket.socket:
    """A random address of 127.0.0.0/8: cookies ignore ports, so no other local page shares ours."""
    for _ in range(20):
        parts = [secrets.randbelow(254) + 1 for _ in range(3)]
        host = "127.0.0.1" if sys.platform == "darwin" else "127.{}.{}.{}".format(*parts)
        found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            found.bind((host, 0))
            found.listen(128)
            return found
        except OSError:
            found.close()
    raise InputError("ui: no address of this computer is free; free one, or use the commands")


def _show_the_first(
    project: Project, other: Busy, say: Say, show: Callable[[Path], object]
) -> None:
    """Asks the server that has the project for a new link."""
    try:
        about = json.loads(str(other))
        form = urllib.parse.urlencode({"secret": about["secret"]}).encode()
        no_proxy = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with no_proxy.open(about["origin"] + "/link", form, timeout=5) as answer:
            text = answer.read().decode()
    except (ValueError, KeyError, OSError):
        raise InputError(
            f"project '{project.name}': another process has it and does not answer; end that"
            " process, or wait for it"
        ) from None
    path = project.folder / ".ui" / "open.html"
    policy_text.write(path, text)
    say(f"{project.name}: is open already; the page is at {about['origin']}, and this opens it")
    say(f"  {path}")
    show(path)
