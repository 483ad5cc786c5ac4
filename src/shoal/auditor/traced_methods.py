"""What a stream's trace has to show of a method, where that is more or less than of every other.

Whoever audits a trace needs no method, and may not have the one that made it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class TracedMethod:
    """The rules of one method.

    publishes_hulls: a new cluster shows the exact hull of its members. spare: by how many records a
    record leaves before it would have waited `delta`. takes_best: a record goes into the cluster
    that loses least of those that are good and alive, and k people who wait get one of their own.
    expires: a cluster may be used again for `lifetime` records. may_wait_on: the setting under
    which a record may wait without limit.
    """

    publishes_hulls: bool = True
    spare: int = 1
    takes_best: bool = False
    expires: bool = False
    may_wait_on: tuple[str, Any] = ("leftovers", "hold")

    def waits_on(self, parameters: Mapping[str, Any]) -> bool:
        """Whether nothing limits how long a record waits."""
        name, value = self.may_wait_on
        return bool(parameters.get(name) == value)


_EVERY = TracedMethod()
_BY_NAME = {
    "castle": TracedMethod(spare=0),
    "b-castle": TracedMethod(spare=0),
    "faanst": TracedMethod(may_wait_on=("delay", "none")),
    "fads": TracedMethod(takes_best=True),
    "fads-tuple": TracedMethod(expires=True),
    "sky": TracedMethod(publishes_hulls=False),
}


def traced_method(name: str) -> TracedMethod:
    """The rules of the method of that name."""
    return _BY_NAME.get(name, _EVERY)
