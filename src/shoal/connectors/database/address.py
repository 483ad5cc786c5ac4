"""Where a table in a database is, and how to name it without the password.

    sqlite:///file.db?table=NAME               four slashes before an absolute path
    postgresql://USER@HOST/DATABASE?table=NAME&schema=NAME

What else stands behind `?` is handed on to the client library, such as `service` or `sslmode`.
`order=A,B` names columns that tell all rows apart, of a table without a primary key. `release=N`
names one release of a table that a ledger writes.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, unquote

from shoal.data.regular_files import require_name
from shoal.errors import InputError

SQLITE, POSTGRESQL = "sqlite", "postgresql"
_KINDS = {"sqlite": SQLITE, "postgresql": POSTGRESQL, "postgres": POSTGRESQL}
_SCHEME = re.compile(r"(sqlite|postgres|postgresql)://", re.IGNORECASE)
_SHORT = re.compile(r"-[A-Za-z]")
_HOSTS = re.compile(r"(\[[^\]@]*\]|[^:@\[\]]*)(:\d*)?")
_OWN = ("table", "schema", "order", "release")
_RELEASE = re.compile(r"[1-9][0-9]{0,8}")
_SECRET = ("password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key")
CERTIFICATES = "shoal_certificates"
STREAMS = "shoal_streams"
RELEASES = "shoal_releases"

_secrets: dict[str, str] = {}
"""Passwords that stood on the command line, by the address without them: for this process alone."""


@dataclass(frozen=True)
class TableAddress:
    """A table in a database.

    shown: the address as messages have it. location: the file, or what the client library connects
    to, which may hold a password. schema: None for the server's usual one. release: the one of a
    ledger that is asked for; None for the whole table.
    """

    kind: str
    shown: str
    table: str
    schema: str | None = None
    order: tuple[str, ...] = ()
    location: str = field(default="", repr=False)
    release: int | None = None

    @property
    def where(self) -> str:
        """How messages begin."""
        return f"table '{self.shown}'"


def is_address(path: object) -> bool:
    """Whether a path names a table in a database, not a file."""
    return isinstance(path, str) and _SCHEME.match(path) is not None


def without_password(argument: str) -> str:
    """An argument of the command line without the password of a database, which is kept aside.

    Whatever shows the argument later can't show the password.
    """
    name, equals, address = argument.partition("=")
    if argument.startswith("-") and equals and is_address(address):
        return f"{name}={without_password(address)}"
    if _SHORT.match(argument) and is_address(argument[2:]):
        return argument[:2] + without_password(argument[2:])
    if not is_address(argument):
        return argument
    start, userinfo, rest, options = _parted(argument)
    user, colon, password = userinfo.partition(":")
    # the client library decodes names of options, too
    kept = [option for option in options if unquote(option[0]) not in _SECRET]
    if not colon and len(kept) == len(options):
        return argument
    bare = _joined(start, user, rest, kept)
    _secrets[bare] = _joined(start, f"{user}{colon}{password}", rest, options)
    return bare


def seen_from(folder: Path, name: str) -> str:
    """A file that is named relative to a folder; an address stays, its password kept aside."""
    return without_password(name) if is_address(name) else str(folder / name)


def parse(text: str) -> TableAddress:
    """The table that an address names; raises InputError, whose message holds no password."""
    require_name(text)
    bare = without_password(text)
    text = _secrets.get(bare, text)
    start, userinfo, rest, options = _parted(text)
    kind = _KINDS[start.lower()]
    own = {name: value for name, value in options if name in _OWN}
    table = own.get("table", "")
    named = "".join(f"&{name}={_quoted(own[name])}" for name in _OWN[1:] if name in own)
    user = f"{userinfo.partition(':')[0]}@" if userinfo else ""
    shown = f"{kind}://{user}{rest}?table={_quoted(table)}{named}"
    if not table:
        raise InputError(f"database '{bare}': no table is named; add ?table=NAME")
    others = [option for option in options if option[0] not in _OWN]
    if kind == SQLITE:
        _check_sqlite(shown, rest, own, others)
        location = unquote(rest.removeprefix("/"))
    else:
        location = _joined("postgresql", userinfo, rest, others)
    order = tuple(unquote(name) for name in own.get("order", "").split(",") if name)
    schema = unquote(own.get("schema", "")) or None
    release = _number(shown, own["release"]) if "release" in own else None
    return TableAddress(kind, shown, unquote(table), schema, order, location, release)


def of_file(path: str) -> str:
    return f"sqlite:///{quote(path)}"


def names_table(text: str) -> bool:
    return any(name == "table" for name, _ in _parted(text)[3])


def of_table(database: str, table: str) -> str:
    """The address of a table in a database that is named without one; its password goes along."""
    whole = _secrets.get(database, database)
    return without_password(f"{whole}{'&' if '?' in whole else '?'}table={quote(table, safe='')}")


def certificates_of(path: str) -> str:
    """The address of the table that holds the certificate of a release."""
    address = parse(path)
    schema = "" if address.schema is None else f"&schema={_quoted(quote(address.schema))}"
    table = CERTIFICATES if address.release is None else RELEASES
    return f"{address.shown.partition('?')[0]}?table={table}{schema}"


def require_whole(address: TableAddress) -> None:
    """Raises InputError where one release is named of what is written or looked at as a whole."""
    if address.release is not None:
        raise InputError(
            f"table '{address.shown}': names one release, but the whole table is meant; leave out"
            " 'release'"
        )


def _number(shown: str, text: str) -> int:
    if not _RELEASE.fullmatch(text):
        raise InputError(f"table '{shown}': 'release' takes the number of one, such as 1")
    return int(text)


def _check_sqlite(
    shown: str, rest: str, own: dict[str, str], others: list[tuple[str, str]]
) -> None:
    if not rest.startswith("/") or not rest.strip("/"):
        raise InputError(
            f"table '{shown}': names no file; write sqlite:///FILE, or sqlite:////FOLDER/FILE"
            " for an absolute path"
        )
    if "schema" in own or others:
        raise InputError(
            f"table '{shown}': SQLite takes 'table', 'order' and 'release' alone behind '?'"
        )


def _parted(text: str) -> tuple[str, str, str, list[tuple[str, str]]]:
    """Scheme, user and password, host and database, and the options; as written."""
    start, _, whole = text.partition("://")
    body, _, query = whole.partition("?")
    userinfo, _, rest = body.rpartition("@") if start.lower() != SQLITE else ("", "", body)
    hosts = rest.partition("/")[0].split(",")
    if "/" in userinfo or not all(_HOSTS.fullmatch(host) for host in hosts):
        raise InputError(
            "database: its address can't be read; write characters such as / ? @ : # of a password"
            " as %2F %3F %40 %3A %23, or leave the password to PGPASSWORD or ~/.pgpass"
        )
    options = [option.partition("=")[::2] for option in query.split("&") if option]
    return start, userinfo, rest, options


def _joined(start: str, userinfo: str, rest: str, options: list[tuple[str, str]]) -> str:
    query = "&".join(f"{name}={value}" for name, value in options)
    return f"{start}://{userinfo}{'@' if userinfo else ''}{rest}{'?' if query else ''}{query}"


def _quoted(text: str) -> str:
    """A name in an address, safe to show."""
    return quote(unquote(text), safe=" ,.~-_")
