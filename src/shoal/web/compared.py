"""What comparisons have measured so far, kept beside the project so that they can go on later."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shoal.web.server import Server


def compared_points(server: Server) -> Iterator[tuple[str, int, float]]:
    """Every measured point of the policy as it is: method, k, loss."""
    yield from ()
