"""Where a table is read or written: what kind of place a name means, and the format there; and how
to name a table in a database without the password.

    sqlite:///file.db?table=NAME               four slashes before an absolute path
    postgresql://USER@HOST/DATABASE?table=NAME&schema=NAME

What else stands behind `?` is handed on to the client library, such as `service` or `sslmode`.
`order=A,B` names columns that tell all rows apart, of a table without a primary key. `release=N`
names one release of a table that a ledger writes.
"""

import glob
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self
from urllib.parse import quote, unquote

from shoal.data.regular_files import path_text, require_name
from shoal.errors import InputError

if TYPE_CHECKING:  # the formats read with Polars, which a name alone does not need
    from shoal.connectors.formats import Format

PARQUET, JSON_LINES = ".parquet", ".jsonl"
DATABASES = (".db", ".sqlite", ".sqlite3")
STANDARD = "-"
FRAME = "\0frame"
"""Names a frame, which no name of a file can."""
TOPIC = "kafka://"
MANIFEST = "_shoal.json"
"""The certificate of a released folder, in the folder."""
OF_TABLES = "certificate.json"
"""The certificate in a folder of linked tables."""
LEDGER = "ledger.json"
"""What a ledger begins with, in its folder."""
CERTIFICATE = ".certificate.json"
STEPS = PARQUET
"""Ends the name of a stream's folder, whose files are committed by its checkpoint."""


def is_taken(where: str, kind: str) -> InputError:
    """That a file, folder or table is there already, where `--replace` was not said."""
    return InputError(f"{where}: is there already; name a new {kind}, or say --replace")


class Location(str):
    """The name of a place: a file, a folder, several files, a table in a database, a topic, or
    standard input or output. Nothing is opened to find out which.
    """

    def __new__(cls, name: object) -> Self:
        """Raises InputError for what no file can be called, and for the file of a database with a
        query but without a scheme, which would be taken for a pattern or a new folder.
        """
        is_frame = isinstance(name, str) and name == FRAME
        place = super().__new__(cls, FRAME if is_frame else path_text(name, "file"))
        file, _, query = place.partition("?")
        is_bare = place.is_path and not file.startswith("sqlite:")
        if "=" in query and is_bare and file.lower().endswith(DATABASES):
            address = f"{of_file(file)}?{query}"
            raise InputError(f"file '{place}': lacks its scheme; name the table as '{address}'")
        return place

    @property
    def is_standard(self) -> bool:
        return self == STANDARD

    @property
    def is_table(self) -> bool:
        return is_address(self)

    @property
    def is_database(self) -> bool:
        """Whether it is an address that names no table."""
        return self.is_table and all(name != "table" for name, _ in _parted(self)[3])

    @property
    def is_topic(self) -> bool:
        return self.startswith(TOPIC)

    @property
    def is_path(self) -> bool:
        return not (self.is_standard or self.is_table or self.is_topic)

    @property
    def file(self) -> Path | None:
        """The file or folder that holds it; None where no path leads to it. Of a database, also
        where no table is named.
        """
        if self.is_table:
            place = of_table(self, "any") if self.is_database else self
            address = parse_address(place)
            return Path(address.location) if address.kind == SQLITE else None
        return Path(self) if self.is_path else None

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder of Parquet files: it ends with `/`, or such a release is there."""
        if self.is_table:
            return False
        return self.endswith("/") or (Path(self) / MANIFEST).is_file()

    @property
    def is_many(self) -> bool:
        """Whether an input is a folder, or a pattern and no file of that very name."""
        if self.is_table or self.is_standard:
            return False
        return Path(self).is_dir() or (glob.has_magic(self) and not Path(self).exists())

    @property
    def is_packed(self) -> bool:
        from shoal.connectors.formats import PACKED

        return self.endswith(PACKED)

    @property
    def address(self) -> "TableAddress":
        """The table in a database; raises InputError where the address names none."""
        return parse_address(self)

    @property
    def kind(self) -> "Format":
        """The format by suffix, CSV for `-`; raises InputError where the suffix is no format's."""
        from shoal.connectors import formats

        if self.is_standard:
            return formats.format_of(".csv")
        if self == FRAME:
            return formats.FrameFormat(FRAME)
        if self.is_table:
            return formats.DatabaseFormat(f".{self.address.kind}")
        name = Path(self).name.lower()
        if (found := formats.named(name)) is not None:
            return found
        if self.is_many or self.is_folder:
            return formats.format_of(PARQUET)
        if name.endswith((".xls", ".xlsb", ".xlsm", ".ods")):
            raise InputError(
                f"file '{self}': is a spreadsheet of a format that is neither read nor written; use"
                " .xlsx or .csv"
            )
        if name.endswith(DATABASES):
            raise InputError(
                f"file '{self}': is named like a database; name a table in it, such as"
                f" '{of_file(self)}?table=NAME'"
            )
        written = [suffix for suffix, kind in formats.BY_SUFFIX.items() if kind.is_written]
        others = [suffix for suffix in formats.SUFFIXES if suffix not in written]
        raise InputError(
            f"file '{self}': unknown format; use one of {', '.join(written)}, or to read only"
            f" {', '.join(others)}"
        )

    @property
    def kind_to_write(self) -> "Format":
        """The format of a table that is written; raises InputError where it can only be read."""
        kind = self.kind
        if not kind.is_written:
            raise InputError(
                f"output '{self}': {kind.label} is read, and not written; name a file of another"
                " format, such as .parquet or .csv"
            )
        return kind

    @property
    def kind_to_read(self) -> "Format":
        """The format of a table that is read; a file that is not there has none."""
        if not self.is_table:
            self.refuse_unknown_scheme("input", "read")
            scheme, separator, rest = self.partition(":")
            if separator and scheme.lower() == "sqlite" and not Path(self).exists():
                raise InputError(
                    f"file '{self}': is not there; name a table in SQLite with three slashes, such"
                    f" as '{of_file(rest.partition('?')[0])}?table=NAME'"
                )
        try:
            return self.kind
        except InputError:
            if self.is_table or Path(self).exists():
                raise
            raise InputError(f"file '{self}': is not there; check its name") from None

    def refuse_unknown_scheme(self, what: str, done: str) -> None:
        """Raises InputError for an address of what is not known here."""
        scheme, separator, _ = self.partition("://")  # what follows may hold a password
        if separator:
            raise InputError(
                f"{what} '{scheme}://...': is neither a file nor a database that can be {done};"
                " name a file, or a table in SQLite or PostgreSQL"
            )

    @property
    def certificate(self) -> str:
        """Where the certificate of a release lies: in its database or its folder, else beside the
        file. Raises InputError where a certificate itself is named.
        """
        if self.is_table:
            return certificates_of(self)
        bare = self.rstrip("/") or self
        if bare.endswith((CERTIFICATE, f"/{MANIFEST}")):
            released = bare.removesuffix(CERTIFICATE).removesuffix(MANIFEST)
            raise InputError(
                f"file '{bare}': is the certificate of '{released}'; name that instead"
            )
        beside = path_text(f"{bare}{CERTIFICATE}", "certificate")
        for inside in (MANIFEST, OF_TABLES):
            if (Path(self) / inside).is_file():
                return f"{bare}/{inside}"
        is_new = self.is_folder and not Path(beside).is_file()
        return f"{bare}/{MANIFEST}" if is_new and Path(bare).suffix != STEPS else beside


# A table in a database, and its name without the password.


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
OWN_TABLES = {
    CERTIFICATES: "certificates",
    STREAMS: "the steps of streams",
    RELEASES: "the releases of ledgers",
}
"""What the tables hold that Shoal keeps beside others."""

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


def parse_address(text: str) -> TableAddress:
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


def of_table(database: str, table: str) -> str:
    """The address of a table in a database that is named without one; its password goes along."""
    whole = _secrets.get(database, database)
    return without_password(f"{whole}{'&' if '?' in whole else '?'}table={quote(table, safe='')}")


def certificates_of(path: str) -> str:
    """The address of the table that holds the certificate of a release."""
    address = parse_address(path)
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
