"""Who may come in: links that open once, and the cookie that a browser gets for one (rule S3)."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field

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

    def is_form_key(self, cookie: str, key: str) -> bool:
        return hmac.compare_digest(self.form_key(cookie).encode(), key.encode())

    def close(self) -> None:
        """Nobody is in any more."""
        self._browsers.clear()
        self._links.clear()


def _digest(text: str) -> str:
    """What is compared instead of a secret, so that the time it takes tells nothing."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
