"""What a request must show before any route sees it, and what every answer carries (S2 to S6, S10).

In this order: it is for our address and of our account, it is small, its browser came in by a link,
it was not sent by another page; if it changes something, it comes from a form of ours.
"""

import hashlib
import hmac
import os
import secrets
import socket
import sys
import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse

from shoal.data.language import gettext

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Form = dict[str, list[str]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MOST_BYTES = 1_000_000  # of a request's body
MOST_FIELDS = 20_000
ENTER, LINK = "/enter", "/link"  # what somebody asks who is not in yet; both check a secret
FORM = "application/x-www-form-urlencoded"

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
REPORT_POLICY = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""An answer may carry another one of these in place of ours, as a report does."""


class Guard:
    """Lets through what one browser of ours sends, and nothing else."""

    def __init__(self, app: App, door: "Door") -> None:
        self._app, self._door = app, door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await send({"type": "websocket.close"})
            return
        sender = _with_headers(send)
        headers = _Headers(raw=[(name.lower(), value) for name, value in scope["headers"]])
        app, cookie = self._app, headers.cookie(COOKIE)
        form: Form | None = None
        if refusal := self._refusal(scope, headers):
            app = refusal
        elif (body := await _body(receive, headers)) is None:
            app = PlainTextResponse(gettext("This is more than a form holds."), 413)
        else:
            form = _fields(body, headers)
            if scope["method"] == "POST" and not self._is_ours(scope, cookie, form):
                said = gettext("This form is of an earlier visit. Load the page again.")
                app = PlainTextResponse(said, 403)
        scope.setdefault("state", {}).update(form=form or {}, cookie=cookie)
        await app(scope, receive, sender)

    def _is_ours(self, scope: Scope, cookie: str | None, form: Form | None) -> bool:
        """Whether a form has the key of its browser, or opens the door by a secret of its own."""
        if scope["path"] in (ENTER, LINK):
            return True
        key = (form or {}).get("key", [""])[-1]
        own = self._door.form_key(str(cookie))
        return form is not None and hmac.compare_digest(own.encode(), key.encode())

    def _refusal(self, scope: Scope, headers: "_Headers") -> PlainTextResponse | None:
        """The answer to a request that goes no further; None where it may."""
        if headers.getlist("host") != [self._door.address]:
            return PlainTextResponse("", 400)  # a name that leads here was not given by us
        if is_stranger(scope.get("client"), (self._door.host, self._door.port)):
            said = gettext("The page is for the account that has opened it.")
            return PlainTextResponse(said, 403)
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return PlainTextResponse("", 405)
        if scope["path"] in (ENTER, LINK) and scope["method"] == "POST":
            return None
        if not self._door.knows(headers.cookie(COOKIE)):
            said = gettext(
                "Not open. Type shoal ui in a shell: it opens this page in your browser."
            )
            return PlainTextResponse(said, 401)
        # a request that has none of these headers was made by no page
        site = headers.last("sec-fetch-site")
        if scope["method"] == "POST":
            is_ours = headers.getlist("origin") == [self._door.origin]
            if not is_ours or site not in (None, "same-origin"):
                said = gettext("Only a form of this page can change something.")
                return PlainTextResponse(said, 403)
            return None
        if site not in (None, "same-origin", "none"):
            return PlainTextResponse(gettext("Another page asked for this."), 403)
        return None


class _Headers(Headers):
    def last(self, name: str) -> str | None:
        return next(reversed(self.getlist(name)), None)

    def cookie(self, name: str) -> str | None:
        try:
            jar = SimpleCookie("; ".join(self.getlist("cookie")))
        except CookieError:
            return None
        return jar[name].value if name in jar else None


async def _body(receive: Receive, headers: _Headers) -> bytes | None:
    """The whole body; None where it is too large, which is noticed before it is read."""
    stated = headers.last("content-length")
    if stated is not None and not (stated.isdecimal() and int(stated[:20]) <= MOST_BYTES):
        return None
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return bytes(body)
        body += message.get("body", b"")
        if len(body) > MOST_BYTES:
            return None
        if not message.get("more_body"):
            return bytes(body)


def _fields(body: bytes, headers: _Headers) -> dict[str, list[str]] | None:
    """A form's fields; None if the body is not a form."""
    if (headers.last("content-type") or "").partition(";")[0].strip().lower() != FORM:
        return None
    try:
        pairs = parse_qsl(body.decode("utf-8"), keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        return None
    fields: dict[str, list[str]] = {}
    for name, value in pairs:
        fields.setdefault(name, []).append(value)
    return fields


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {"headers": [], **message}
            given = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                given.setdefault(name, value)
        await send(message)

    return sent


# Whose process is at the other end of a connection: on Linux, the system knows.
#
# Cookies ignore ports. Another account of this computer may listen at our address on a port of
# its own, lure the browser there and be sent the cookie; but its process can't hide whose it is.


TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
ROOT = 0
_MAPPED = "0000000000000000FFFF0000"  # of an IPv4 address, in the table of IPv6
_LOCAL, _REMOTE, _USER, _INODE = 1, 2, 7, 9

Address = tuple[str, int]


def is_stranger(client: Address | None, server: Address) -> bool:
    """Whether the process is of another account or not listed; False where no system can tell."""
    if not any(table.exists() for table in TABLES):
        return False
    return client is None or user_of(client, server) not in (os.getuid(), ROOT)


def user_of(client: Address, server: Address) -> int | None:
    """Whose process has the client's end of a connection; None where that is not known."""
    for table in TABLES:
        try:
            lines = table.read_text().splitlines()[1:]
        except OSError:
            continue
        for mapped in ("", _MAPPED):
            ends = [mapped + _written(client), mapped + _written(server)]
            for line in lines:
                fields = line.split()
                # without an inode, nobody has it any more
                if [fields[_LOCAL], fields[_REMOTE]] == ends and fields[_INODE] != "0":
                    return int(fields[_USER])
    return None


def _written(address: Address) -> str:
    """An address as the system's tables have it."""
    host, port = address
    order = -1 if sys.byteorder == "little" else 1
    return f"{socket.inet_aton(host)[::order].hex().upper()}:{port:04X}"


# Who may come in: links that open once, and the cookie that a browser gets for one (rule S3).


LINK_SECONDS = 60.0
TRIES, TRIES_SECONDS = 5, 60.0
IDLE_SECONDS = 12 * 3600.0
COOKIE = "shoal"


class TooManyTries(Exception):
    """Somebody tries links that open nothing; nobody gets in for a minute."""


@dataclass
class Door:
    """One address, the links to it that are still good, and the browsers that came in."""

    host: str
    port: int
    clock: Callable[[], float] = time.monotonic
    _links: dict[str, float] = field(default_factory=dict, repr=False)
    _browsers: dict[str, float] = field(default_factory=dict, repr=False)
    _missed: list[float] = field(default_factory=list, repr=False)
    _key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    @property
    def address(self) -> str:
        """What a browser's `Host` must say."""
        return f"{self.host}:{self.port}"

    @property
    def origin(self) -> str:
        return f"http://{self.address}"

    def new_link(self) -> str:
        """A token that lets one browser in, once, within a minute; earlier ones are void."""
        token = secrets.token_urlsafe(32)
        self._links = {_digest(token): self.clock() + LINK_SECONDS}
        return token

    def enter(self, token: str) -> str | None:
        """A cookie for a token that is good, None for any other; raises TooManyTries."""
        now = self.clock()
        self._missed = [when for when in self._missed if now - when < TRIES_SECONDS]
        if len(self._missed) >= TRIES:
            raise TooManyTries
        until = self._links.pop(_digest(token), None)
        if until is None or until < now:
            self._missed.append(now)
            return None
        cookie = secrets.token_urlsafe(32)
        self._browsers[_digest(cookie)] = now
        return cookie

    def knows(self, cookie: str | None) -> bool:
        """Whether a browser came in by a link and was here within twelve hours."""
        if not cookie:
            return False
        name, now = _digest(cookie), self.clock()
        if now - self._browsers.get(name, -IDLE_SECONDS) >= IDLE_SECONDS:
            self._browsers.pop(name, None)
            return False
        self._browsers[name] = now
        return True

    def form_key(self, cookie: str) -> str:
        """What every form of this browser carries."""
        return hmac.new(self._key, cookie.encode(), hashlib.sha256).hexdigest()

    def close(self) -> None:
        """Nobody is in any more."""
        self._browsers.clear()
        self._links.clear()


def _digest(text: str) -> str:
    """What is compared instead of a secret, so that the time it takes tells nothing."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
