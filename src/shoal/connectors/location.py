"""Where a table is read or written: what kind of place a name means, and the format there."""

import glob
from pathlib import Path
from typing import TYPE_CHECKING, Self

from shoal.connectors.database import address as database
from shoal.data.regular_files import path_text
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
            address = f"{database.of_file(file)}?{query}"
            raise InputError(f"file '{place}': lacks its scheme; name the table as '{address}'")
        return place

    @property
    def is_standard(self) -> bool:
        return self == STANDARD

    @property
    def is_table(self) -> bool:
        return database.is_address(self)

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
            place = self if database.names_table(self) else database.of_table(self, "any")
            address = database.parse(place)
            return Path(address.location) if address.kind == database.SQLITE else None
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
        if self.is_table:
            return False
        return Path(self).is_dir() or (glob.has_magic(self) and not Path(self).exists())

    @property
    def is_packed(self) -> bool:
        from shoal.connectors.formats import PACKED

        return self.endswith(PACKED)

    @property
    def address(self) -> database.TableAddress:
        """The table in a database; raises InputError where the address names none."""
        return database.parse(self)

    @property
    def kind(self) -> "Format":
        """The format by suffix, CSV for `-`; raises InputError where the suffix is no format's."""
        from shoal.connectors.formats import (
            PACKED,
            SUFFIXES,
            DatabaseFormat,
            FrameFormat,
            format_of,
            named,
        )

        if self.is_standard:
            return format_of(".csv")
        if self == FRAME:
            return FrameFormat(FRAME)
        if self.is_table:
            return DatabaseFormat(f".{self.address.kind}")
        name = Path(self).name.lower()
        if (found := named(name)) is not None:
            return found
        if self.is_many or self.is_folder:
            return format_of(PARQUET)
        if name.endswith((".xls", ".xlsb", ".xlsm", ".ods")):
            raise InputError(
                f"file '{self}': is a spreadsheet of a format that is neither read nor written; use"
                " .xlsx or .csv"
            )
        if name.endswith(DATABASES):
            raise InputError(
                f"file '{self}': is named like a database; name a table in it, such as"
                f" '{database.of_file(self)}?table=NAME'"
            )
        kinds = {suffix: format_of(suffix.removesuffix(PACKED)) for suffix in SUFFIXES}
        written = [suffix for suffix, kind in kinds.items() if kind.is_written]
        others = [suffix for suffix in kinds if suffix not in written]
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
                    f" as '{database.of_file(rest.partition('?')[0])}?table=NAME'"
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
            return database.certificates_of(self)
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
