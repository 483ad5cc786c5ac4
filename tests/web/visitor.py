"""A browser without a screen: it keeps its cookie, follows redirects and sends the page's forms."""

import asyncio
import http.client
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlencode

import uvicorn

from page_text import on_one_line
from shoal.web import app as serving
from shoal.web.app import application
from shoal.web.guard import Door
from shoal.web.project import Project
from shoal.web.server import Server
from shoal.web.work import Desk

SECRET = "for a second command"


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """One loop for every page of these tests, in a thread of its own."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    return loop


def in_loop(call, *given) -> None:
    """Calls something where the pages run, as whatever they wait for asks."""
    _loop().call_soon_threadsafe(call, *given)


@cache
def _lender(which: str) -> Desk:
    return Desk()


class _LentDesk(Desk):
    """Asks a process that earlier pages have asked: starting one takes longer than most looks."""

    def __init__(self, which: str) -> None:
        super().__init__()
        self._lender = _lender(which)

    @property
    def pid(self) -> int | None:
        return self._lender.pid

    async def _asked(self, message: dict) -> dict:
        async with self._lender._turn:
            return await self._lender._asked(message)

    def stop(self) -> None:
        """Others go on asking."""


@contextmanager
def served(folder: Path, start: Path, own_desk: bool = False) -> Iterator[Server]:
    """A project's page in a thread of this process. own_desk: whether a new process answers it."""
    project = Project(folder, start)
    project.lock()
    project.sweep()
    begun = threading.Event()
    held: dict[str, Server] = {}

    async def run() -> None:
        listening = serving._listening()
        server = Server(project, Door(*listening.getsockname()[:2]))
        if not own_desk:
            server.desk, server.rules = _LentDesk("desk"), _LentDesk("rules")
        config = uvicorn.Config(
            application(server, lambda given: given == SECRET),
            access_log=False,
            log_level="critical",
            server_header=False,
            lifespan="off",
        )
        web = serving._Web(config)
        held["server"] = server
        task = asyncio.ensure_future(web.serve(sockets=[listening]))
        begun.set()
        await server.ended()
        web.should_exit = True
        await server.close()
        await task

    running = asyncio.run_coroutine_threadsafe(run(), _loop())
    assert begun.wait(10)
    server = held["server"]
    try:
        yield server
    finally:
        _loop().call_soon_threadsafe(server.quit)
        running.result(20)
        project.unlock()


class Answer:
    def __init__(self, status: int, headers: dict[str, str], body: bytes, path: str) -> None:
        self.status, self.headers, self.body, self.path = status, headers, body, path

    @property
    def page(self) -> str:
        return self.body.decode("utf-8", "replace")

    @property
    def text(self) -> str:
        """The page on one line, without white space beside its tags."""
        return on_one_line(self.page)

    @property
    def words(self) -> str:
        """What a person reads, on one line."""
        return _words(self.page)


def _words(page: str) -> str:
    text = re.sub(r"(?s)<(script|style|head).*?</\1>|<[^>]+>", " ", page)
    return " ".join(text.split())


class _Forms(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[dict] = []
        self._form: dict | None = None
        self._select: str | None = None
        self._area: str | None = None

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag == "form":
            self._form = {"id": given.get("id"), "action": given.get("action"), "fields": []}
            self.forms.append(self._form)
        if self._form is None:
            return
        fields = self._form["fields"]
        kind = given.get("type", "text")
        if (
            tag == "input"
            and given.get("name")
            and not (kind in ("radio", "checkbox") and "checked" not in given)
        ):
            otherwise = "on" if kind in ("radio", "checkbox") else ""
            fields.append((given["name"], given.get("value", otherwise)))
        elif tag == "select":
            self._select = given.get("name")
        elif tag == "option" and self._select and "selected" in given:
            fields.append((self._select, given.get("value", "")))
        elif tag == "textarea":
            self._area = given.get("name")
            fields.append((self._area, ""))

    def handle_data(self, data):
        if self._form is not None and self._area:
            name, value = self._form["fields"][-1]
            self._form["fields"][-1] = (name, value + data)

    def handle_endtag(self, tag):
        if tag == "form":
            self._form = None
        elif tag == "select":
            self._select = None
        elif tag == "textarea":
            self._area = None


def number_of(server: Server, column: str) -> int:
    """Which column of the open table has a name."""
    return server.project.about["columns"].index(column) + 1


class Visitor:
    """Someone at the page. come: whether they came in by a link."""

    words_of = staticmethod(_words)

    def __init__(self, server: Server, come: bool = True) -> None:
        self.server, self.cookie = server, None
        self.last: Answer | None = None
        if come:
            answer = self.request("POST", "/enter", {"token": server.door.new_link()})
            assert answer.status == 200
            self.cookie = answer.headers["set-cookie"].partition(";")[0]

    def request(self, method: str, path: str, form=None, headers=None) -> Answer:
        sent = {"Host": self.server.door.address}
        if self.cookie:
            sent["Cookie"] = self.cookie
        if method == "POST":
            sent |= {"Origin": self.server.door.origin, "Sec-Fetch-Site": "same-origin"}
            sent["Content-Type"] = "application/x-www-form-urlencoded"
        sent |= headers or {}
        body = urlencode(form, doseq=True) if form is not None else None
        connection = http.client.HTTPConnection(self.server.door.host, self.server.door.port, 60)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in sent.items():
            if value is not None:
                connection.putheader(name, value)
        if body is not None and "Content-Length" not in sent:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body.encode() if body is not None else None)
        answer = connection.getresponse()
        found = {name.lower(): value for name, value in answer.getheaders()}
        result = Answer(answer.status, found, answer.read(), path)
        connection.close()
        return result

    def get(self, path: str) -> Answer:
        answer = self.request("GET", path)
        while answer.status == 303:
            answer = self.request("GET", answer.headers["location"])
        self.last = answer
        return answer

    @property
    def key(self) -> str:
        """What each form of this visitor has to hold."""
        return self.server.door.form_key(self.cookie.partition("=")[2])

    def post(self, path: str, /, **fields) -> Answer:
        """A form of this visitor that no page shows."""
        form = {"key": self.key, **fields}
        answer = self.request("POST", path, form)
        return self.get(answer.headers["location"]) if answer.status == 303 else answer

    def send(self, form_id: str, /, **fields) -> Answer:
        """The form of this id on the page that was looked at last, with some fields filled in."""
        parser = _Forms()
        parser.feed(self.last.page)
        form = next(f for f in parser.forms if f["id"] == form_id)
        sent = [(name, value) for name, value in form["fields"] if name not in fields]
        sent += [
            (n, v)
            for n, given in fields.items()
            for v in ([given] if isinstance(given, str) else given)
        ]
        answer = self.request("POST", form["action"], sent)
        if answer.status == 303:
            return self.get(answer.headers["location"])
        self.last = answer
        return answer

    def edit(self, kind: str, /, **fields) -> Answer:
        """An edit of the policy as it is now."""
        base = fields.pop("base", self.server.project.policy_sha)
        return self.post("/policy", edit=kind, base=base, **fields)

    def give(self, column: str, role: str) -> Answer:
        """Gives the column of this name a role."""
        return self.edit("role", column=str(number_of(self.server, column)), role=role)

    def until(self, path: str, words: str, seconds: float = 60) -> Answer:
        """Looks again until the page says something."""
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            answer = self.get(path)
            if words in answer.words:
                return answer
            time.sleep(0.1)
        raise AssertionError(f"{path} never said {words!r}: {self.last.words[:2000]}")
