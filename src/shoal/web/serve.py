"""One server for one project, on an address of this computer that nobody else has (rule S1)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import signal
import socket
import sys
import time
import urllib.parse
import urllib.request
from asyncio import FIRST_COMPLETED
from collections.abc import Callable, Iterator
from pathlib import Path

import uvicorn

from shoal.errors import InputError
from shoal.web import policy_text
from shoal.web.app import application, opening_page
from shoal.web.door import IDLE_SECONDS, Door
from shoal.web.project import Busy, Project
from shoal.web.server import Server

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
    door, secret = Door(host, port), secrets.token_urlsafe(32)
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
        if _is_idle(server):
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


def _is_idle(server: Server) -> bool:
    return not server.jobs.open and time.monotonic() - server.used > IDLE_SECONDS


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
