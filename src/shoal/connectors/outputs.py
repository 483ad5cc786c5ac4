"""Where outputs go: over nothing that is read, a certificate and its release both or neither, from
drafts beside them that the next run sweeps away where one was left.

Every draft has a random name, and whoever writes it holds its lock. The system frees the locks of
the dead, however they died, so that a draft that is locked is never deleted, and neither is one
where there are no locks. A release has another name.
"""

import codecs
import gzip
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, cast

from shoal.connectors.delimited import delimiter_of
from shoal.connectors.dialect import Dialect
from shoal.connectors.location import LEDGER, OF_TABLES, SQLITE, Location, parse_address
from shoal.data.certificate_shape import DialectReport, OutputReport
from shoal.data.numbers import PLAIN, Notation
from shoal.data.recoding import sensitive_path
from shoal.data.regular_files import Json, is_packed, is_pipe
from shoal.data.schema import Render
from shoal.errors import InputError, os_errors_as_input_errors


def signature_path(certificate: str | Path) -> str:
    return f"{certificate}.sig"


def check_not_read(output_path: str, input_path: str, read_by_policy: Iterable[str]) -> None:
    """Raises InputError where a release or its certificate would overwrite a file that is read."""
    place = Location(output_path)
    if place.is_standard:
        return
    if place.is_table:
        if Location(input_path).is_table and _table(output_path) == _table(input_path):
            raise InputError(f"output '{output_path}': is the input; name another table")
        return
    others = dict.fromkeys(read_by_policy, "the policy or a file that is read beside the input")
    for name, what in (others | {input_path: "the input"}).items():
        if (file := Location(name).file) is not None:
            for output in (Path(output_path), Path(place.certificate)):
                _refuse_read(output, file, what)


def _refuse_read(output: Path, read: Path, what: str) -> None:
    """Raises InputError where an output is a file or folder that is read, or lies around it."""
    found = None
    if any(_is_same(folder, read) for folder in _folders_read_with(output)):
        found = "in the folder that is read"
    if any(_is_same(output, folder) for folder in read.absolute().parents):
        found = f"the folder of {what}"
    if _is_same(output, read):
        found = what
    if found is not None:
        raise InputError(
            f"output '{output}': is {found}; name another file, nothing that is read is overwritten"
        )


def misplaced(what: str, places: Iterable[str | Path], *written: object) -> Iterator[str]:
    """A finding for each file that would lie in what holds nothing else: a release or a ledger.

    what: its kind. places: where it lies. written: names of other files; None and `-` are skipped.
    """
    files = [Location(place).file for place in places]
    own = {file.resolve() for file in files if file is not None}
    for name in written:
        if name is None or Location(name).is_standard:
            continue
        target = Path(str(name)).resolve()
        if own & {target, *target.parents}:
            yield (
                f"output '{name}': is or lies in the {what}, which holds nothing else; name another"
                " folder"
            )


def in_ledgers(*written: object) -> Iterator[str]:
    """A finding for each file that would lie in a ledger or its private part; but the signature of
    a certificate lies beside it there, too.
    """
    for name in written:
        file = None if name is None else Location(name).file
        if file is None or (file.name == f"{OF_TABLES}.sig" and file.with_suffix("").is_file()):
            continue
        folders = [file.resolve(), *file.resolve().parents]
        # of which any may be the private part of the ledger beside it
        folders += [folder.parent / folder.name.removesuffix(".private") for folder in folders]
        beginnings = [folder / LEDGER for folder in folders if os.access(folder / LEDGER, os.R_OK)]
        # others' files may have that name
        if any(one.is_file() and b'"shoal.ledger/' in _head(one) for one in beginnings):
            yield (
                f"output '{name}': is or lies in the ledger or its private part, which hold nothing"
                " else; name another folder, or take a copy of the release there first"
            )


def second_output(output_path: str, input_path: str, read_by_policy: Iterable[str]) -> str:
    """Where the second of two tables goes; raises InputError as `check_not_read`, and where the
    first goes to what holds one table alone.
    """
    place = Location(output_path)
    if place.is_standard:
        raise InputError("-o -: two tables can't share standard output; name a file for the first")
    if place.is_table or place.is_folder:
        raise InputError(f"output '{output_path}': two tables are two files; name the first")
    second = sensitive_path(output_path)
    check_not_read(second, input_path, read_by_policy)
    return second


def _table(address: str) -> tuple[str, str, str | None]:
    known = parse_address(address)
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


def _is_same(one: Path, other: Path) -> bool:
    return one.exists() and other.exists() and one.samefile(other)


def certificate_beside(output_path: str) -> bytes | None:
    """The certificate of a release where it lies; None where there is none."""
    place = Location(output_path)
    if place.is_table:
        from shoal.connectors.database import release_tables

        return release_tables.certificate_beside(place.address)
    path = Path(place.certificate)
    return path.read_bytes() if path.is_file() else None


@contextmanager
def remove_uncommitted_certificate(output_path: str, second: str | None = None) -> Iterator[None]:
    """Remove the new certificate if the release could not be moved into place.

    A signature of the certificate before goes with it: it is about another release. second: of two
    tables the one that is moved first; it is removed as well.
    """
    place = Location(output_path)
    certificate = Path(place.certificate)
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
    if not place.is_standard:
        remove_stale_signature(certificate)


def remove_stale_signature(certificate: str | Path) -> None:
    """Remove the signature of what was at this path before; call it after every write there.

    Whoever is killed in between leaves a signature that does not fit, which `verify` refuses.
    """
    Path(signature_path(certificate)).unlink(missing_ok=True)


# One writer for each output that grows: a lock beside it.
#
# The system frees it when its holder dies: what a killed run leaves is empty and holds nobody
# off.


try:
    import fcntl
except ImportError:  # not on Windows, where nobody is kept apart and killed runs leave drafts
    fcntl = None  # type: ignore[assignment]


def take_lock(file: IO[bytes] | int) -> bool:
    """Takes the lock of an open file; False where another process has it.

    Where a file system has no locks, processes are not kept apart.
    """
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as failed:
        return not isinstance(failed, BlockingIOError)
    return True


def lock_of(output: Path) -> Path:
    """The lock of an output: of the file itself, whatever links lead to it."""
    whole = output.resolve()
    return whole.with_name(f".{whole.name}.lock")


@contextmanager
def sole_writer(outputs: Sequence[Path]) -> Iterator[None]:
    """Nobody else writes these files meanwhile; raises InputError where somebody does already."""
    with ExitStack() as held:
        for output in outputs if fcntl is not None else ():
            held.enter_context(_locked(output))
        yield


@contextmanager
def _locked(output: Path) -> Iterator[None]:
    path = lock_of(output)
    handle = _acquired(path, output)
    try:
        yield
    finally:
        try:
            with suppress(OSError):
                path.unlink()  # while it is held, so that nobody waits for a file that is gone
        finally:
            os.close(handle)


def _acquired(path: Path, output: Path) -> int:
    """The lock, held; not one that its last holder has removed meanwhile."""
    while True:
        try:
            handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
        except OSError as failed:
            raise InputError(
                f"output '{output}': '{path.name}' can't be made beside it ({failed.strerror});"
                " check the permissions there"
            ) from None
        if not take_lock(handle):
            os.close(handle)
            raise InputError(
                f"output '{output}': another run writes it; name another file, or wait for that run"
                " or stop it"
            )
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), os.stat(path)):
                return handle
        os.close(handle)


# What a released file is, for whoever reads it: its format and how cells are written.


HEAD = 1 << 16  # bytes, more than any header


def describe_file(
    path: str | Path,
    name: str,
    sha256: str | None,
    render: Render | None,
    dialect: Dialect | None = None,
    notation: Notation = PLAIN,
) -> OutputReport:
    """The hash, size, format and dialect of a file.

    path: where its bytes are; null for what can be read only once. name: what it is called, which
    names the format. render, notation: how its cells are written. dialect: of delimited text, found
    in the file if it is not given.
    """
    place = Location(name)
    kind = place.kind
    packed = name.lower().endswith(".gz") and not place.is_table
    is_there = not Location(path).is_standard and Path(path).is_file() and not is_pipe(path)
    written = UNDELIMITED
    if is_there and kind.is_delimited:
        written = vars(dialect or _found(_head(path), kind))
    cells = {**written, **cells_written(notation, render)}
    cells |= {} if render is None else {"order": render.order}
    return {
        "sha256": sha256,
        "bytes": Path(path).stat().st_size if is_there else None,
        "format": kind[1:] + (".gz" if packed else ""),
        "dialect": cast(DialectReport, cells),
    }


def cells_written(notation: Notation, render: Render | None) -> Json:
    """How cells are written, as a dialect states it; signs for no value only if there are any."""
    found = {
        "decimal": notation.decimal,
        "dates": notation.dates,
        "intervals": None if render is None else render.intervals,
        "mark": None if render is None else render.suppressed,
    }
    missing = () if render is None else render.missing
    return {**found, **({"missing": [*missing]} if missing else {})}


def described_second(
    path: Path | None, sha256: str | None
) -> dict[str, dict[str, str | int | None]]:
    """The part about the second of two tables, written as the first is; empty without one."""
    if path is None:
        return {}
    size = path.stat().st_size if path.is_file() and not is_pipe(path) else None
    return {"sensitive": {"sha256": sha256, "bytes": size}}


UNDELIMITED = dict.fromkeys(("delimiter", "encoding", "newline", "bom"))


def _found(head: bytes, kind: str) -> Dialect:
    first, _, rest = head.partition(b"\n")
    ends = "\r\n" if first.endswith(b"\r") and (rest or head.endswith(b"\n")) else "\n"
    return Dialect(delimiter_of(head, kind), newline=ends, bom=head.startswith(codecs.BOM_UTF8))


def _head(path: str | Path) -> bytes:
    with gzip.open(path, "rb") if is_packed(path) else open(path, "rb") as file:
        return bytes(file.read(HEAD))


DRAFT_BYTES = 8
"""Of a draft's random name."""
_DRAFT = re.compile(rf"\..+\.[0-9a-f]{{{2 * DRAFT_BYTES}}}\.part", re.DOTALL)


@contextmanager
def draft_beside(
    target: Path, what: str, is_folder: bool = False, remedy: str = "name another place"
) -> Iterator[Path]:
    """A new file or folder, its owner's alone until it takes its place; else it is deleted at the
    end. What dead writers left in that folder, of any output, is deleted first.

    what: the target in messages. Raises InputError where nothing can be made there.
    """
    with suppress(OSError):  # a folder that may be written to, but not listed
        sweep(target.parent)
    lock = None
    while lock is None:
        # a fresh name that nobody could have prepared; who is stopped after its making deletes it
        draft = _draft_name(target)
        try:
            lock = _made_and_locked(draft, what, is_folder, remedy)
            if lock is not None:
                yield draft
        finally:
            if is_folder:
                shutil.rmtree(draft, ignore_errors=True)  # or what stood there before
            else:
                with suppress(OSError):  # none was made: that is said, not this
                    draft.unlink()
            if lock is not None:
                os.close(lock)


def _draft_name(target: Path) -> Path:
    return target.with_name(f".{target.name}.{secrets.token_hex(DRAFT_BYTES)}.part")


def remove_folder(folder: Path) -> None:
    """Removes a folder in one step, since half a folder may look like somebody else's. What a kill
    leaves of it is swept away like a draft.
    """
    dead = folder
    if fcntl is not None:  # else nobody would sweep it away
        dead = _draft_name(folder)
        os.rename(folder, dead)
    shutil.rmtree(dead)


def _made_and_locked(draft: Path, what: str, is_folder: bool, remedy: str) -> int | None:
    """Makes a draft; the descriptor whose lock says that its writer lives, None where another run
    has swept the draft away before it was locked.
    """
    with os_errors_as_input_errors(what, remedy, "writing"):
        if is_folder:
            draft.mkdir(mode=0o700)
            with suppress(FileNotFoundError):
                return _opened(draft, os.O_RDONLY)
            return None
        return _opened(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY)


def _opened(draft: Path, how: int) -> int | None:
    """The descriptor of a draft that is opened and locked; None where it was swept away between."""
    lock = os.open(draft, how, 0o600)
    take_lock(lock)
    if draft.exists():
        return lock
    os.close(lock)
    return None


def sweep(folder: Path) -> None:
    """Deletes the drafts of dead runs in a folder; never a release, nor the draft of a run at work.

    Raises OSError where the folder can't be listed.
    """
    if fcntl is None:
        return
    for name in os.listdir(folder):
        if _DRAFT.fullmatch(name):
            _delete_dead(folder / name)


def _delete_dead(draft: Path) -> None:
    """Deletes it, unless it is another's or its writer lives."""
    with suppress(OSError):
        handle = os.open(draft, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if stat.S_ISDIR(os.fstat(handle).st_mode):
                shutil.rmtree(draft)
            else:
                draft.unlink()
        finally:
            os.close(handle)
