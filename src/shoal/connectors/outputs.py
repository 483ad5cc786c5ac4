"""Where outputs go: over nothing that is read, a certificate and its release both or neither."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from shoal.connectors import folder_manifest
from shoal.connectors.database.address import SQLITE, certificates_of, is_address, parse
from shoal.connectors.files import STANDARD
from shoal.data.two_tables import sensitive_path
from shoal.errors import InputError


def certificate_path(output_path: str) -> str:
    """Where the certificate of a release lies: beside its file, in its folder or its database."""
    if is_address(output_path):
        return certificates_of(output_path)
    return folder_manifest.certificate_path(output_path)


def signature_path(certificate: str | Path) -> str:
    """Where the signature of a certificate lies."""
    return f"{certificate}.sig"


def check_not_read(output_path: str, input_path: str, read_by_policy: Iterable[str]) -> None:
    """Raises InputError where a release or its certificate would overwrite a file that is read."""
    if output_path == STANDARD:
        return
    if is_address(output_path):
        if is_address(input_path) and _table(output_path) == _table(input_path):
            raise InputError(f"output '{output_path}': is the input; name another table")
        return
    for output in (Path(output_path), Path(certificate_path(output_path))):
        what = None
        if any(_is_same(output, name) for name in read_by_policy):
            what = "a file that the policy reads"
        if _is_same(output, input_path):
            what = "the input"
        if any(_is_same(folder, input_path) for folder in _folders_read_with(output)):
            what = "in the folder that is read"
        if any(_is_same(output, str(folder)) for folder in Path(input_path).absolute().parents):
            what = "the folder of the input"
        if what is not None:
            raise InputError(
                f"output '{output}': is {what}; name another file, nothing that is read is"
                " overwritten"
            )


def second_output(output_path: str, input_path: str, read_by_policy: Iterable[str]) -> str:
    """Where the second of two tables goes; raises InputError as `check_not_read`, and where the
    first goes to what holds one table alone.
    """
    if output_path == STANDARD:
        raise InputError("-o -: two tables can't share standard output; name a file for the first")
    if is_address(output_path) or folder_manifest.is_folder(output_path):
        raise InputError(f"output '{output_path}': two tables are two files; name the first")
    second = sensitive_path(output_path)
    check_not_read(second, input_path, read_by_policy)
    return second


def refuse_table(source: str) -> None:
    """Raises InputError where a stream would read a table in a database."""
    if is_address(source):
        raise InputError(
            f"source '{parse(source).shown}': a stream reads files and topics; publish a table with"
            " 'shoal publish'"
        )


def _table(address: str) -> tuple[str, str, str | None]:
    known = parse(address)
    if known.kind == SQLITE:  # one file has many names, and its tables have no capitals
        return str(Path(known.location).resolve()), known.table.lower(), None
    return known.location, known.table, known.schema


def _folders_read_with(output: Path) -> Iterator[Path]:
    """The folder of an output, and those that are read together with it."""
    folder = output.absolute().parent
    while folder.exists():
        yield folder
        if "=" not in folder.name:  # only what holds values in its name is part of another's table
            return
        folder = folder.parent


def _is_same(output: Path, read: str) -> bool:
    return read != STANDARD and output.exists() and Path(read).exists() and output.samefile(read)


def certificate_beside(output_path: str) -> bytes | None:
    """The certificate of a release where it lies; None where there is none."""
    if is_address(output_path):
        from shoal.connectors.database import release_tables

        return release_tables.certificate_beside(parse(output_path))
    path = Path(certificate_path(output_path))
    return path.read_bytes() if path.is_file() else None


@contextmanager
def remove_uncommitted_certificate(output_path: str, second: str | None = None) -> Iterator[None]:
    """Remove the new certificate if the release could not be moved into place.

    A signature of the certificate before goes with it: it is about another release. second: of two
    tables the one that is moved first; it is removed as well.
    """
    certificate = Path(certificate_path(output_path))
    uncommitted = [certificate, *([] if second is None else [Path(second)])]
    before = [path.stat().st_ino if path.exists() else None for path in uncommitted]
    try:
        yield
    except BaseException:
        for path, inode in zip(uncommitted, before, strict=True):
            if path.exists() and path.stat().st_ino != inode:
                path.unlink()
                if path == certificate:
                    remove_stale_signature(certificate)
        raise
    if output_path != STANDARD:
        remove_stale_signature(certificate)


def remove_stale_signature(certificate: str | Path) -> None:
    """Remove the signature of what was at this path before; call it after every write there.

    Whoever is killed in between leaves a signature that does not fit, which `verify` refuses.
    """
    Path(signature_path(certificate)).unlink(missing_ok=True)
