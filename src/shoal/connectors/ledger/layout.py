"""Where everything of a ledger lies, and how its small files are read and written."""

import hashlib
import json
import os
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from shoal.connectors.location import LEDGER
from shoal.data.certificate import Certificate
from shoal.data.regular_files import file_sha256, sync
from shoal.errors import InputError, LedgerError

SCHEMA = "shoal.ledger/1"
PRIVATE_SCHEMA = "shoal.ledger-private/1"
GENESIS, POLICY, HIERARCHIES = LEDGER, "policy.json", "hierarchies"
DATA, CERTIFICATE = "data.csv", "certificate.json"
COUNTERFEITS = "counterfeits.csv"  # how many rows of each class are invented
SIGNATURE = f"{CERTIFICATE}.sig"  # if anybody signed; no hash names it, it speaks for itself
STATE, MARK, KEY, LOCK, INPUTS = "state.json", "published", "key", "lock", "inputs"
TABLE = "table.json"
RUN = "run.bin"
"""Sorted tokens of people's names and bare names, 64 bits each."""
RELEASE_NAME, STEP_NAME = "{:04d}", "{:06d}"


@dataclass(frozen=True)
class LedgerStep:
    """What an accepted increment left in the private part.

    release: the release it became, None where its records wait. input: hash of the increment.
    records: how many records were ever published. files: hashes by name; those in
    `transient_files` are removed once a later step has replaced them. runs: the steps whose file
    RUN is in use, with its hash. inputs: hash of the names of all noted increments, this one
    included. key: hash of the key of the subject tokens, empty where none was needed.
    """

    number: int = 0
    previous: str = ""
    release: int | None = None
    releases: int = 0
    head: str = ""
    records: int = 0
    input: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    transient_files: tuple[str, ...] = ()
    runs: tuple[tuple[int, str], ...] = ()
    inputs: str = ""
    key: str = ""


_STEP_FORM = TypeAdapter(LedgerStep)
_FORMER_NAMES = {"passing": "transient_files"}
"""Fields of steps that were written before they were renamed."""


@dataclass(frozen=True)
class ReleaseDraft:
    """Two folders to write the next step into; `commit` moves them into place."""

    published: Path
    private: Path


@dataclass(frozen=True)
class PolicyFiles:
    """The policy and hierarchy tables that every release is measured against, by file name."""

    files: Mapping[str, bytes]

    @property
    def genesis(self) -> str:
        """The file that the first release follows."""
        hashes = {name: hashlib.sha256(content).hexdigest() for name, content in self.files.items()}
        return json_text({"schema": SCHEMA, "files": hashes})

    @property
    def head(self) -> str:
        """The hash that the first release holds."""
        return sha256_of_text(self.genesis)


@dataclass
class Chain:
    """A ledger's releases and its private steps, read and never written, where there are any."""

    path: Path

    @property
    def exists(self) -> bool:
        return self.genesis.is_file()

    @property
    def genesis(self) -> Path:
        return self.path / GENESIS

    @cached_property
    def private(self) -> Path:
        """The private part: a sibling, so that the ledger's own folder can be handed on as it is.

        Of the folder itself: a link to it is another name of the same ledger.
        """
        whole = self.path.resolve()
        return whole.with_name(f"{whole.name}.private")

    def releases(self) -> list[int]:
        """The numbers of the releases that are there, rising."""
        return _numbers(self.path, RELEASE_NAME)

    def folder(self, release: int) -> Path:
        return self.path / RELEASE_NAME.format(release)

    def predecessor(self, release: int) -> Path:
        """What a release follows: the certificate of the one before, or how the ledger began."""
        return self.folder(release - 1) / CERTIFICATE if release > 1 else self.genesis

    @property
    def last(self) -> Path:
        """What the next release will follow, and whose hash tells whether there is a newer one."""
        return self.predecessor(max(self.releases(), default=0) + 1)

    def steps(self) -> list[int]:
        """The numbers of the private steps that are there, rising."""
        return _numbers(self.private, STEP_NAME)

    def step_before(self, number: int) -> Path:
        """What a step follows: the state of the one before, or how the ledger began."""
        return self.state_file(number - 1) if number > 1 else self.genesis

    def step_folder(self, number: int) -> Path:
        return self.private / STEP_NAME.format(number)

    def state_file(self, number: int) -> Path:
        return self.step_folder(number) / STATE

    def note(self, digest: str) -> Path:
        """The small file that notes an increment of this hash."""
        return self.private / INPUTS / digest

    def certificate(self, release: int) -> Certificate:
        """The certificate of a release; raises LedgerError where it can't be read."""
        try:
            return Certificate.load(self.folder(release) / CERTIFICATE)
        except InputError:
            raise LedgerError(
                f"ledger '{self.path}': release {release:04d}: its certificate is missing or"
                " damaged; restore it from a copy"
            ) from None

    def step(self, number: int) -> LedgerStep:
        """A step of the private part; raises LedgerError where it can't be read."""
        step = self._read_step(number)
        if step is None or step.number != number:
            raise LedgerError(
                f"private step {number:06d}: is missing or damaged; restore it from a copy"
            )
        return step

    def _read_step(self, number: int) -> LedgerStep | None:
        """A step that is byte for byte as it was written; else None."""
        path = self.state_file(number)
        content = read_json(path)
        if content is None or sha256_of(path) != sha256_of_text(json_text(content)):
            return None
        if content.pop("schema", None) != PRIVATE_SCHEMA:
            return None
        if content.pop("sha256", None) != sha256_of_state(content):
            return None
        content = {_FORMER_NAMES.get(name, name): value for name, value in content.items()}
        if set(content) != {part.name for part in fields(LedgerStep)}:
            return None
        try:
            return _STEP_FORM.validate_json(json.dumps(content), strict=True)
        except ValidationError:
            return None

    def last_step(self) -> LedgerStep:
        """The last step that was committed; an empty one where none was."""
        for number in reversed(self.steps()):
            if self.is_committed(number):
                return self.step(number)
        return LedgerStep(head=sha256_of(self.genesis), inputs=sha256_of_names(()))

    @property
    def last_folder(self) -> Path:
        """The folder of the last step that was committed; not there where none was."""
        return self.step_folder(self.last_step().number)

    def is_committed(self, number: int) -> bool:
        """Whether a step counts: marked, its increment noted, or its release is there."""
        if (self.step_folder(number) / MARK).exists():
            return True
        step = self.step(number)
        is_noted = self.note(step.input).exists()
        return step.release is None or is_noted or self.folder(step.release).is_dir()

    def step_of(self, release: int) -> Path:
        """The folder of the private step that led to a release; LedgerError if it is lost."""
        for number in reversed(self.steps()):
            if self.state_file(number).is_file() and self.step(number).release == release:
                return self.step_folder(number)
        raise LedgerError(
            f"release {release:04d}: its private step is missing; restore the private part"
        )


# Hashes


def sha256_of(path: Path) -> str:
    """The hash of a file; empty if it is unreadable or not a file: a pipe would never end."""
    try:
        return file_sha256(path) if path.is_file() else ""
    except (OSError, ValueError):
        return ""


def sha256_of_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def sha256_of_names(names: Iterable[str]) -> str:
    return hashlib.sha256(os.fsencode("\n".join(sorted(names)))).hexdigest()


def sha256_of_state(content: Mapping[str, Any]) -> str:
    return sha256_of_text(json.dumps(content, sort_keys=True))


# Small files


def json_text(content: Mapping[str, Any]) -> str:
    return json.dumps(content, indent=1) + "\n"


def read_json(path: Path) -> dict[str, Any] | None:
    """What a small JSON file holds, None where it can't be read or is not an object."""
    try:
        content = json.loads(path.read_bytes()) if path.is_file() else None
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def mapping_in(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A part of what was read; empty where it is not an object."""
    part = content.get(name)
    return part if isinstance(part, dict) else {}


def number_line(number: int) -> bytes:
    return f"{number}\n".encode()


def number_in(path: Path) -> int | None:
    """The number that a small file holds, None where it holds none."""
    try:
        line = path.read_bytes() if path.is_file() else b""
    except OSError:
        return None
    digits = line[:-1][:20]
    return int(digits) if digits.isdigit() and line == number_line(int(digits)) else None


# Folders


def names_in(folder: Path) -> set[str]:
    return set(os.listdir(folder)) if folder.is_dir() else set()


def _numbers(folder: Path, form: str) -> list[int]:
    if not folder.is_dir():
        return []
    with os.scandir(folder) as entries:  # which knows what is a folder without asking about each
        named = [e.name for e in entries if e.name.isascii() and e.name.isdigit() and e.is_dir()]
    return sorted(int(name) for name in named if name == form.format(int(name)))


# Drafts: files and folders that are written beside their place and moved into it whole.


def is_draft(name: str) -> bool:
    """Whether it is one, or a step that an append began to remove."""
    return re.fullmatch(r"\.(.+\.[0-9a-f]{16}|[0-9]{6,})\.part", name, re.DOTALL) is not None


def draft_of(parent: Path, name: str) -> Path:
    return parent / f".{name}.{secrets.token_hex(8)}.part"


def write_once(path: Path, content: bytes, private: Path) -> None:
    """A small file of the private part, whole or not there; one that is there stays."""
    if path.exists():
        return
    path.parent.mkdir(mode=0o700, exist_ok=True)
    write_anew(path, content, private)


def write_anew(path: Path, content: bytes, drafts: Path) -> None:
    """Replaces a small file of the private part by one rename. drafts: where it is written."""
    draft = draft_of(drafts, path.name)
    try:
        draft.touch(mode=0o600)
        draft.write_bytes(content)
        sync(draft)
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    sync(path.parent)


# Which table in a database takes a ledger's releases, and how far that is certain.
#
# A release is noted behind the commit of the database. So a table that lacks a noted release is
# an older copy, while one that lacks a later release was only not reached before a kill.


STEP_SCHEMA = "shoal.ledger-table/1"
KINDS = {"schema": str, "table": str, "releases": int, "head": str, "sha256": str}


@dataclass(frozen=True)
class TableNote:
    """table: its address without a password. releases: how many it held. head: the hash of the
    last of these, or of the ledger's beginning.
    """

    table: str
    releases: int
    head: str

    @classmethod
    def read(cls, private: Path) -> "TableNote | None":
        """The note in a private part; None where there is none, or it is not as it was written."""
        content = read_json(private / TABLE) or {}
        kinds = {name: type(value) for name, value in content.items()}
        if kinds != KINDS or content["releases"] < 0 or content["schema"] != STEP_SCHEMA:
            return None
        if content.pop("sha256") != sha256_of_state(content):
            return None
        del content["schema"]
        return cls(**content)

    @staticmethod
    def is_in(private: Path) -> bool:
        """Whether there is a note, damaged or not."""
        return (private / TABLE).exists()

    @staticmethod
    def remove(private: Path) -> None:
        (private / TABLE).unlink(missing_ok=True)

    def write(self, private: Path) -> None:
        """In place of an earlier note, whole or not at all."""
        content = {"schema": STEP_SCHEMA, **asdict(self)}
        content["sha256"] = sha256_of_state(content)
        write_anew(private / TABLE, json_text(content).encode(), private)
