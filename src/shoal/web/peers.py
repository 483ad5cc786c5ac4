"""Whose process is at the other end of a connection: on Linux, the system knows.

Cookies ignore ports. Another account of this computer may listen at our address on a port of its
own, lure the browser there and be sent the cookie; but its process can't hide whose it is.
"""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
ROOT = 0
_MAPPED = "0000000000000000FFFF0000"  # of an IPv4 address, in the table of IPv6
_LOCAL, _REMOTE, _USER, _INODE = 1, 2, 7, 9

Address = tuple[str, int]


def is_stranger(client: Address | None, server: Address) -> bool:
    """Whether a connection is of another account's process; False where that can't be found out."""
    user = None if client is None else user_of(client, server)
    return user is not None and user not in (os.getuid(), ROOT)


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
