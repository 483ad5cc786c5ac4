"""The ledger: an append-only chain of releases, and beside it what only their owner may see.

    DIR/ledger.json, policy.json, hierarchies/       what every release is measured against
    DIR/0001/data.csv, certificate.json, ...         a release; its certificate holds the hash of the one before
    DIR.private/key                                  the key of the subject tokens
    DIR.private/000001/state.json, rows.parquet, ... a step: what an accepted increment left to
    remember
    DIR.private/inputs/HASH                          the step that an increment of this hash led to

Promise: releases 1..N are whole and follow each other, whatever instant a process is killed at. A
release is published by one rename. Its private step takes its place before that, and after it is
noted and marked, so that a step without any of them never happened, and a note or mark without
release is a release that was taken away.

An append lists both folders, and reads the end of the chain and every list of people that it looks
people up in: it hashes 8 bytes for everybody who was ever published, and costs the same otherwise,
however long the ledger is. `verify` checks every byte.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
import signal
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import numpy as np
from pydantic import TypeAdapter, ValidationError

from shoal.errors import InputError, LedgerError

SCHEMA = "shoal.ledger/1"
PRIVATE_SCHEMA = "shoal.ledger-private/1"
GENESIS, POLICY, HIERARCHIES = "ledger.json", "policy.json", "hierarchies"
DATA, CERTIFICATE = "data.csv", "certificate.json"
STATE, MARK, KEY, LOCK, INPUTS = "state.json", "published", "key", "lock", "inputs"
RUN = "run.bin"
"""Sorted tokens of people, 64 bits each."""
DRAFT = ".part"
_LOST_KEY = "private key: is missing or was changed"
KEY_BYTES = 32
MOST_TRIES = 1000

_RELEASE, _STEP = "{:04d}", "{:06d}"
_STEP_NAME = re.compile("[0-9]{6,}")


@dataclass(frozen=True)
class Step:
    """What an accepted increment left in the private part.

    release: the release it became, None where its records wait. input: hash of the increment.
    records: how many
    records were ever published. files: hashes by name; those in `passing` are removed once a later
    step has taken
    their place. runs: the steps whose file RUN is in use, with its hash. inputs: hash of the names
    of all noted
    increments, this one included. key: hash of the key of the subject tokens, empty where none was
    needed.
    """

    number: int = 0
    previous: str = ""
    release: int | None = None
    releases: int = 0
    head: str = ""
    records: int = 0
    input: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    passing: tuple[str, ...] = ()
    runs: tuple[tuple[int, str], ...] = ()
    inputs: str = ""
    key: str = ""


_STEP_FORM = TypeAdapter(Step)


@dataclass(frozen=True)
class Draft:
    """Two folders to write the next step into; they take their places in `commit`."""

    published: Path
    private: Path


@dataclass(frozen=True)
class Terms:
    """What every release of a ledger is measured against: the policy and the hierarchy tables, by
    file name.
    """

    files: Mapping[str, bytes]

    @property
    def genesis(self) -> str:
        """The file that the first release follows."""
        hashes = {name: hashlib.sha256(content).hexdigest() for name, content in self.files.items()}
        return _json({"schema": SCHEMA, "files": hashes})

    @property
    def head(self) -> str:
        """The hash that the first release holds."""
        return hashlib.sha256(self.genesis.encode()).hexdigest()


@dataclass
class Ledger:
    """A folder of releases, and its private part beside it."""

    path: Path
    _last: Step | None = field(default=None, init=False, repr=False, compare=False)
    """Under the lock, the last step: nobody else can append another."""
    _is_locked: bool = field(default=False, init=False, repr=False, compare=False)
    _runs: dict[int, np.ndarray] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @classmethod
    def at(cls, path: str | Path) -> Ledger:
        """The ledger in a folder; raises InputError where there is none."""
        if not isinstance(path, str | os.PathLike):
            raise InputError(f"ledger: a path is needed, this is of type {type(path).__name__}")
        ledger = cls(Path(path))
        if not ledger.exists:
            raise InputError(f"ledger '{path}': is no ledger; 'shoal republish' begins one")
        return ledger

    def check_place(self) -> None:
        """Raises where no ledger can begin: the folder may exist if it is empty, a private part may
        not be left.
        """
        if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            raise InputError(
                f"ledger '{self.path}': the folder holds other things; name a new or an empty one"
            )
        if self.steps():
            raise LedgerError(
                f"ledger '{self.path}': is missing, its private part is there; restore it, or begin"
                " another"
            )

    def begin(self, terms: Terms) -> None:
        """The ledger begins under these terms, whole or not there."""
        self.check_place()
        draft = _draft_of(self.path.parent, self.path.name)
        try:
            draft.mkdir(mode=0o700)
            for name, content in terms.files.items():
                (draft / name).parent.mkdir(exist_ok=True)
                (draft / name).write_bytes(content)
            (draft / GENESIS).write_text(terms.genesis)
            _open_to_readers(draft)
            _take_place(draft, self.path)
        except OSError as failed:
            why = failed.strerror or "no right"
            raise InputError(
                f"ledger '{self.path}': can't begin there ({why}); name a new folder"
            ) from None
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    @property
    def exists(self) -> bool:
        return (self.path / GENESIS).is_file()

    @cached_property
    def private(self) -> Path:
        """The private part: a sibling, so that the ledger's own folder can be handed on as it is.

        Of the folder itself: a link to it is another name of the same ledger.
        """
        whole = self.path.resolve()
        return whole.with_name(f"{whole.name}.private")

    # Reading

    def releases(self) -> list[int]:
        """The numbers of the releases that are there, rising."""
        return _numbers(self.path, _RELEASE)

    def folder(self, release: int) -> Path:
        return self.path / _RELEASE.format(release)

    def certificate(self, release: int) -> dict[str, Any]:
        """The certificate of a release; raises LedgerError where it can't be read."""
        content = _read_json(self.folder(release) / CERTIFICATE)
        if content is None:
            raise LedgerError(
                f"release {release:04d}: its certificate is missing or damaged; restore it from a"
                " copy"
            )
        return content

    def steps(self) -> list[int]:
        return _numbers(self.private, _STEP)

    def step_folder(self, number: int) -> Path:
        return self.private / _STEP.format(number)

    def step(self, number: int) -> Step:
        """A step of the private part; raises LedgerError where it can't be read."""
        damaged = LedgerError(
            f"private step {number:06d}: is missing or damaged; restore it from a copy"
        )
        content = _read_json(self.step_folder(number) / STATE)
        if content is None or sha256_of(self.step_folder(number) / STATE) != _sha256_of_text(
            _json(content)
        ):
            raise damaged
        if content.pop("schema", None) != PRIVATE_SCHEMA:
            raise damaged
        if content.pop("sha256", None) != _sha256_of_state(content):
            raise damaged
        if set(content) != {part.name for part in fields(Step)}:
            raise damaged
        try:
            step = _STEP_FORM.validate_json(json.dumps(content), strict=True)
        except ValidationError:
            raise damaged from None
        if step.number != number:
            raise damaged
        return step

    def last_step(self) -> Step:
        """The last step that happened; an empty one where none has."""
        if self._last is not None:
            return self._last
        for number in reversed(self.steps()):
            if self._is_committed(number):
                return self.step(number)
        return Step(head=sha256_of(self.path / GENESIS), inputs=_sha256_of_names(()))

    def step_of(self, release: int) -> Path:
        """The folder of the private step that led to a release; raises LedgerError where it is
        lost.
        """
        for number in reversed(self.steps()):
            if (self.step_folder(number) / STATE).is_file() and self.step(
                number
            ).release == release:
                return self.step_folder(number)
        raise LedgerError(
            f"release {release:04d}: its private step is missing; restore the private part"
        )

    def step_for(self, digest: str) -> Step | None:
        """The step that an increment of this hash led to, None where it is new; raises LedgerError
        where it is lost.
        """
        noted = self.private / INPUTS / digest
        if not noted.exists():
            return None
        number = _whole_number(noted)
        step = None if number is None else self.step(number)
        if step is None or step.input != digest:
            raise LedgerError(*_first_and_rest(self.verify()))
        return step

    @property
    def key(self) -> bytes:
        """The key of the subject tokens; made once, before the first step. Raises LedgerError where
        it is lost.
        """
        path = self.private / KEY
        if not path.exists():
            if self.steps():
                raise LedgerError(*_first_and_rest([_LOST_KEY]))
            self._note(path, secrets.token_bytes(KEY_BYTES))
        return path.read_bytes()

    # Appending

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One process at a time appends; what a killed one left half done is removed first.

        A file that can't be read or written is an InputError. Where no ledger began, no private
        part stays.
        """
        with self._held_lock(), self._told():
            last = self._sweep()
            self._last, self._is_locked = last if last.number else None, True
            try:
                yield
            finally:
                self._last, self._is_locked = None, False
                self._runs.clear()
                self._remove_empty_folders()

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except OSError as failed:
            why = failed.strerror or "no room or no right"
            raise InputError(
                f"ledger '{self.path}': reading or writing failed ({why}); make room or mend its"
                " rights, then run it again: no increment is published twice"
            ) from None

    def _remove_empty_folders(self) -> None:
        if self.exists or self.steps():
            return
        with suppress(OSError):
            (self.private / KEY).unlink(missing_ok=True)
            (self.private / LOCK).unlink(missing_ok=True)
            self.private.rmdir()  # only if it holds nothing else

    def _held_lock(self) -> IO[str]:
        """The lock, held; one that another process removed together with an empty private part is
        none.
        """
        import fcntl

        for _ in range(MOST_TRIES):
            with suppress(FileNotFoundError):  # removed between two of these lines
                lock = self._opened_lock()
                fcntl.flock(lock, fcntl.LOCK_EX)
                if os.path.samestat(os.fstat(lock.fileno()), os.stat(self.private / LOCK)):
                    return lock
        raise InputError(f"ledger '{self.path}': its folder comes and goes; name one that stays")

    def _opened_lock(self) -> IO[str]:
        if any((folder / GENESIS).is_file() for folder in (self.private, *self.private.parents)):
            raise InputError(
                f"ledger '{self.path}': would lie in another ledger; name a folder elsewhere"
            )
        if self.releases() and not self.private.exists():
            raise LedgerError(
                f"ledger '{self.path}': its private part '{self.private}' is missing; put it back,"
                " or restore it from a copy, nothing was appended"
            )
        made = [path for path in (self.private, *self.private.parents) if not path.exists()]
        try:
            self.private.mkdir(mode=0o700, parents=True, exist_ok=True)
            for path in made:
                _sync(path.parent)
            if self.private.stat().st_mode & 0o077:
                self.private.chmod(0o700)  # somebody else may have made it, so as to read it
            return open(self.private / LOCK, "a")
        except FileNotFoundError:
            raise
        except OSError as failed:
            why = failed.strerror or "no right"
            raise InputError(
                f"ledger '{self.path}': can't be written ({why}); name a folder that can"
            ) from None

    def check_end(self) -> None:
        """Raises LedgerError where the last release is not the one that the private part remembers.

        Looks at the end of the chain, and asks of what is before it only whether it is there, so
        that an append costs the same however long the ledger is.
        """
        step = self.last_step()
        findings = [*self._genesis_findings(), *self._key_findings(step)]
        if findings:
            raise LedgerError(*_first_and_rest(findings))
        whole = _has_exactly(self.path, _RELEASE, step.releases) and _has_exactly(
            self.private, _STEP, step.number
        )
        whole = whole and _sha256_of_names(_names(self.private / INPUTS)) == step.inputs
        end = self.folder(step.releases) / CERTIFICATE if step.releases else self.path / GENESIS
        whole = whole and sha256_of(end) == step.head and not self._changed_files(step, step.files)
        if whole and step.number > 1:
            whole = step.previous == sha256_of(self.step_folder(step.number - 1) / STATE)
        if whole and step.releases:
            links = {1: self.path / GENESIS, step.releases: self._before(step.releases)}
            links_hold = not any(
                self._link_findings(release, sha256_of(path)) for release, path in links.items()
            )
            whole = links_hold and not self._data_findings(step.releases)
        if not whole:
            raise LedgerError(*_first_and_rest(self.verify()))

    def runs(self) -> dict[int, np.ndarray]:
        """Everybody who was ever published, sorted tokens by step; raises LedgerError where they
        are not as they were.

        Under the lock only, where each file is opened and hashed once.
        """
        for number, digest in self.last_step().runs:
            if number in self._runs:
                continue
            run = _mapped(self.step_folder(number) / RUN)
            if run is None or hashlib.sha256(run.data).hexdigest() != digest:
                raise LedgerError(*_first_and_rest([_changed(number, RUN)]))
            self._runs[number] = run
        return {number: self._runs[number] for number, _ in self.last_step().runs}

    def _before(self, release: int) -> Path:
        """What a release follows: the certificate of the one before, or how the ledger began."""
        return self.folder(release - 1) / CERTIFICATE if release > 1 else self.path / GENESIS

    def follows(self, head: str) -> bool:
        """Whether the release of this hash, or the beginning, is in the chain."""
        ends = [
            self.path / GENESIS,
            *(self.folder(release) / CERTIFICATE for release in self.releases()),
        ]
        return head in map(sha256_of, ends)

    def check_whole(self) -> None:
        """Raises LedgerError with all damage; for what looks at all earlier releases anyway."""
        findings = self.verify()
        if findings:
            raise LedgerError(*_first_and_rest(findings))

    @contextmanager
    def draft(self) -> Iterator[Draft]:
        """Two folders for the next step; removed if they did not take their places."""
        home = self.path if self.exists else self.path.parent
        # named before they are there, so that no signal leaves one
        published, private = (
            _draft_of(home, f"{self.path.name}.release"),
            _draft_of(self.private, "step"),
        )
        try:
            published.mkdir(mode=0o700)
            private.mkdir(mode=0o700)
            yield Draft(published, private)
        finally:
            shutil.rmtree(published, ignore_errors=True)
            shutil.rmtree(private, ignore_errors=True)

    def commit(
        self,
        draft: Draft,
        digest: str,
        records: int,
        passing: tuple[str, ...],
        runs: tuple[int, ...],
        publishes: bool,
    ) -> Step:
        """Puts the draft in its place: with its release, or as a step whose records wait.

        digest: hash of the increment. records: how many the ledger has published then. passing: the
        private
        files that the next step replaces. runs: the earlier steps whose file RUN stays in use.
        Under the lock only.
        """
        before = self.last_step()
        release = before.releases + 1 if publishes else None
        head = sha256_of(draft.published / CERTIFICATE) if publishes else before.head
        previous = (
            sha256_of(self.step_folder(before.number) / STATE) if before.number else before.head
        )
        files = {path.name: sha256_of(path) for path in sorted(draft.private.iterdir())}
        stay = [(number, run) for number, run in before.runs if number in runs]
        fresh = [(before.number + 1, files[RUN])] if RUN in files else []
        step = Step(
            before.number + 1, previous, release, before.releases + int(publishes), head, records, digest, files,
            passing, (*stay, *fresh), _sha256_of_names(_names(self.private / INPUTS) | {digest}),
            sha256_of(self.private / KEY),
        )  # fmt: skip
        content = json.loads(json.dumps(vars(step)))
        content = {"schema": PRIVATE_SCHEMA, **content, "sha256": _sha256_of_state(content)}
        (draft.private / STATE).write_text(_json(content))
        with _signals_deferred():
            _take_place(draft.private, self.step_folder(step.number))
            if release is not None:
                _open_to_readers(draft.published)
                _take_place(draft.published, self.folder(release))
            self._finish(step)
        self._last = step
        return step

    def _finish(self, step: Step) -> None:
        """A step that happened: its increment is noted, it is marked, and files that it replaces
        are removed.
        """
        self._note(self.private / INPUTS / step.input, _line(step.number))
        self._note(self.step_folder(step.number) / MARK, b"")
        if step.number < 2:
            return
        before, kept = self.step(step.number - 1), {number for number, _ in step.runs}
        replaced = [self.step_folder(before.number) / name for name in before.passing]
        replaced += [self.step_folder(old) / RUN for old, _ in before.runs if old not in kept]
        for path in replaced:
            path.unlink(missing_ok=True)

    def _note(self, path: Path, content: bytes) -> None:
        """A small private file, whole or not there; one that is there stays."""
        if path.exists():
            return
        path.parent.mkdir(mode=0o700, exist_ok=True)
        draft = _draft_of(self.private, path.name)
        try:
            draft.touch(mode=0o600)
            draft.write_bytes(content)
            _sync(draft)
            os.rename(draft, path)
        finally:
            draft.unlink(missing_ok=True)
        _sync(path.parent)

    def _is_committed(self, number: int) -> bool:
        """Whether a step counts: marked, its increment noted, or its release is there."""
        if (self.step_folder(number) / MARK).exists():
            return True
        step = self.step(number)
        is_noted = (self.private / INPUTS / step.input).exists()
        return step.release is None or is_noted or self.folder(step.release).is_dir()

    def _sweep(self) -> Step:
        """Removes drafts and a last step that never happened; the last that did is finished, and
        told.
        """
        names = {folder: _names(folder) for folder in (self.path, self.private)}
        drafts = [folder / name for folder in names for name in names[folder] if _is_draft(name)]
        # drafts from before the ledger's folder was there; another ledger's name may begin like
        # this one's
        own = re.compile(
            rf"\.{re.escape(self.path.name)}(\.release)?\.[0-9a-f]{{16}}{re.escape(DRAFT)}"
        )
        for left in (
            *drafts,
            *(path for path in self.path.parent.iterdir() if own.fullmatch(path.name)),
        ):
            _remove(left)
        last = max(
            (int(name) for name in names[self.private] if _STEP_NAME.fullmatch(name)), default=0
        )
        if last and not self._is_committed(last):
            # renamed first: half a folder must not look like a step
            gone = self.private / f".{last:06d}{DRAFT}"
            os.rename(self.step_folder(last), gone)
            shutil.rmtree(gone)
            return self.last_step()
        step = self.step(last) if last else self.last_step()
        if last:
            self._finish(step)
        return step

    # Verifying

    def verify(self) -> list[str]:
        """Everything that is damaged, missing, added or out of order, each named; empty where all
        is whole.
        """
        with self._told():
            findings = self._damage()
            if findings and not self._is_locked:
                with self._held_still():
                    findings = self._damage()
            return findings

    @contextmanager
    def _held_still(self) -> Iterator[None]:
        """No append is half-way meanwhile, where its lock can be had."""
        import fcntl

        with ExitStack() as held:
            with suppress(OSError):
                if (self.private / LOCK).is_file():
                    fcntl.flock(held.enter_context(open(self.private / LOCK)), fcntl.LOCK_SH)
            yield

    def unmarked(self) -> list[str]:
        """A last step that happened and bears no mark: no damage, as an append that was killed
        leaves it so.
        """
        last = self.last_step().number if self.private.is_dir() else 0
        if not last or (self.step_folder(last) / MARK).exists():
            return []
        return [
            f"private step {last:06d}: its mark '{MARK}' is missing: an append is at work or was"
            " stopped at its end, or somebody removed it; the next append sets it again"
        ]

    def _damage(self) -> list[str]:
        findings = self._genesis_findings() + self._added()
        before: str | None = sha256_of(self.path / GENESIS)
        for release, lacking in _in_turn(self.releases(), self._remembered()):
            if lacking:
                findings.append(_missing("release", _RELEASE, release, lacking))
                before = None
                continue
            findings += self._release_findings(release, before)
            before = sha256_of(self.folder(release) / CERTIFICATE)
        return findings + (self._private_findings() if self.private.is_dir() else [])

    def _genesis_findings(self) -> list[str]:
        genesis = _read_json(self.path / GENESIS)
        if (
            genesis is None
            or genesis.get("schema") != SCHEMA
            or not isinstance(genesis.get("files"), dict)
        ):
            return [f"{GENESIS}: is missing or damaged"]
        return [
            f"{name}: is missing or was changed"
            for name, digest in genesis["files"].items()
            if sha256_of(self.path / name) != digest
        ]

    def _added(self) -> list[str]:
        """What stands in either folder without being part of the ledger; drafts of an append come
        and go.
        """
        terms = _mapping(_read_json(self.path / GENESIS) or {}, "files")
        published = {
            GENESIS,
            *(name.split("/")[0] for name in terms),
            *map(_RELEASE.format, self.releases()),
        }
        private = {KEY, LOCK, INPUTS, *map(_STEP.format, self.steps())}
        found = [(name, "ledger") for name in _names(self.path) - published]
        found += [(name, "private part") for name in _names(self.private) - private]
        found = [(name, whole) for name, whole in found if not _is_draft(name)]
        return [f"{name}: is no part of the {whole}" for name, whole in sorted(found)]

    def _key_findings(self, step: Step) -> list[str]:
        """Whether the key is the one that the steps were made with."""
        return [_LOST_KEY] if step.number and sha256_of(self.private / KEY) != step.key else []

    def _remembered(self) -> int:
        """How many releases the private part says there are."""
        try:
            return self.last_step().releases if self.private.is_dir() else 0
        except LedgerError:
            return 0

    def _release_findings(self, release: int, before: str | None) -> list[str]:
        name, content = f"release {release:04d}", _read_json(self.folder(release) / CERTIFICATE)
        if content is None or not isinstance(content.get("ledger"), dict):
            return [f"{name}: its certificate is missing or damaged"]
        stated = content["ledger"].get("release")
        if stated != release:
            return [f"{name}: is out of order, its certificate says release {stated}"]
        return self._data_findings(release) + (
            [] if before is None else self._link_findings(release, before)
        )

    def _link_findings(self, release: int, before: str) -> list[str]:
        """Whether a release follows what stands before it, given by its hash."""
        content = _read_json(self.folder(release) / CERTIFICATE) or {}
        if _mapping(content, "ledger").get("previous") == before:
            return []
        what = f"release {release - 1:04d}" if release > 1 else GENESIS
        return [
            f"release {release:04d}: does not follow {what} as it is; one of the two was changed or"
            " replaced"
        ]

    def _data_findings(self, release: int) -> list[str]:
        """What is wrong with a release's files against its certificate."""
        content = _read_json(self.folder(release) / CERTIFICATE) or {}
        stated = {
            DATA: _mapping(content, "output").get("sha256"),
            **_mapping(_mapping(content, "ledger"), "files"),
        }
        findings = [
            f"release {release:04d}: {name} is missing or was changed"
            for name, digest in stated.items()
            if sha256_of(self.folder(release) / name) != digest
        ]
        added = sorted(
            p.name for p in self.folder(release).iterdir() if p.name not in {*stated, CERTIFICATE}
        )
        return findings + [f"release {release:04d}: {name} is no part of it" for name in added]

    def _changed_files(self, step: Step, names: Iterable[str]) -> list[str]:
        """Which of these files of a private step are not as they were."""
        folder = self.step_folder(step.number)
        return [
            _changed(step.number, name)
            for name in names
            if sha256_of(folder / name) != step.files.get(name)
        ]

    def _private_findings(self) -> list[str]:
        """What is wrong with the private part: its chain of steps, its files, and what it remembers
        of releases.
        """
        steps, findings = self.steps(), list[str]()
        before: str | None = sha256_of(self.path / GENESIS)
        last = max(steps, default=0)
        try:
            runs = {number for number, _ in self.last_step().runs}
        except LedgerError:
            runs = set()
        noted = {
            name: _whole_number(self.private / INPUTS / name)
            for name in _names(self.private / INPUTS)
        }
        for number, lacking in _in_turn(steps):
            name = f"private step {number:06d}"
            try:
                step = self.step(number)
            except LedgerError:
                missing = _missing("private step", _STEP, number, lacking)
                findings.append(missing if lacking else f"{name}: is missing or damaged")
                before = None
                continue
            if number == last and not self._is_committed(number):
                break
            if before is not None and step.previous != before:
                findings.append(
                    f"{name}: does not follow the one before; one of the two was changed or"
                    " replaced"
                )
            before = sha256_of(self.step_folder(number) / STATE)
            is_noted = (self.step_folder(number) / MARK).exists()  # else an append may be about to
            if (is_noted or number < last) and sha256_of(
                self.step_folder(number) / MARK
            ) != _sha256_of_text(""):
                findings.append(f"{name}: {MARK} is missing or was changed")
            if noted.pop(step.input, None if is_noted else number) != number:
                findings.append(
                    f"{name}: its increment is not noted as it was; it could be published twice"
                )
            findings += self._key_findings(step) if number == last else []
            kept = [
                file
                for file in step.files
                if (number in runs if file == RUN else number == last or file not in step.passing)
            ]
            findings += self._changed_files(step, kept)
            if step.release is not None and sha256_of(
                self.folder(step.release) / CERTIFICATE
            ) not in (step.head, ""):
                findings.append(
                    f"release {step.release:04d}: is not the one that the private part remembers"
                )
        if noted:
            findings.append(f"{INPUTS}: increments are noted that led to no step: {len(noted)}")
        if self._remembered() < max(self.releases(), default=0):
            findings.append(
                "private part: is older than the ledger, or another one's; restore the one that"
                " belongs to it"
            )
        return findings


def _sha256_of_state(content: Mapping[str, Any]) -> str:
    return _sha256_of_text(json.dumps(content, sort_keys=True))


def _sha256_of_names(names: Iterable[str]) -> str:
    return hashlib.sha256(os.fsencode("\n".join(sorted(names)))).hexdigest()


def _sha256_of_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def sha256_of(path: Path) -> str:
    """The hash of a file; empty where it can't be read, or is no file: a pipe would never end."""
    try:
        if not path.is_file():
            return ""
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError):
        return ""


def _mapped(path: Path) -> np.ndarray | None:
    """A file of tokens, read as they are asked for; None where it can't be."""
    try:
        return np.memmap(path, dtype="<u8", mode="r") if path.is_file() else None
    except (OSError, ValueError):
        return None


def _changed(step: int, name: str) -> str:
    return f"private step {step:06d}: {name} is missing or was changed"


def _first_and_rest(findings: list[str]) -> tuple[str, list[str]]:
    found = findings or ["the ledger: is not as its private part remembers it"]
    return f"ledger is damaged: {found[0]}; restore it from a copy, nothing was appended", found[1:]


def _json(content: Mapping[str, Any]) -> str:
    return json.dumps(content, indent=1) + "\n"


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        content = json.loads(path.read_bytes()) if path.is_file() else None
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _mapping(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A part of what was read, empty where it is none."""
    part = content.get(name)
    return part if isinstance(part, dict) else {}


def _numbers(folder: Path, form: str) -> list[int]:
    """The numbers that folders in here are named by, rising."""
    if not folder.is_dir():
        return []
    with os.scandir(folder) as entries:  # which knows what is a folder without asking about each
        named = [e.name for e in entries if e.name.isascii() and e.name.isdigit() and e.is_dir()]
    return sorted(int(name) for name in named if name == form.format(int(name)))


def _in_turn(there: Sequence[int], end: int = 0) -> Iterator[tuple[int, int]]:
    """Every number that is there, with 0; and, where some are not, the first of them with how many,
    up to `end`.
    """
    following = 1
    for number in there:
        if number > following:
            yield following, number - following
        yield number, 0
        following = number + 1
    if end >= following:
        yield following, end + 1 - following


def _missing(what: str, form: str, first: int, count: int) -> str:
    if count == 1:
        return f"{what} {form.format(first)}: is missing"
    return f"{what}s {form.format(first)} to {form.format(first + count - 1)}: are missing"


def _has_exactly(folder: Path, form: str, count: int) -> bool:
    """Whether a folder holds the releases or steps up to a number, and nothing else that looks like
    one.
    """
    return {name for name in _names(folder) if name.isdigit()} == set(
        map(form.format, range(1, count + 1))
    )


def _whole_number(path: Path) -> int | None:
    """The number that a small file holds, None where it holds none."""
    try:
        line = path.read_bytes() if path.is_file() else b""
    except OSError:
        return None
    digits = line[:-1]
    return int(digits) if digits.isdigit() and line == _line(int(digits)) else None


def _line(number: int) -> bytes:
    return f"{number}\n".encode()


def _names(folder: Path) -> set[str]:
    """What stands in a folder."""
    return set(os.listdir(folder)) if folder.is_dir() else set()


def _is_draft(name: str) -> bool:
    return name.startswith(".") and name.endswith(DRAFT)


def _remove(left: Path) -> None:
    if left.is_dir() and not left.is_symlink():
        shutil.rmtree(left, ignore_errors=True)
    else:
        left.unlink(missing_ok=True)


def _draft_of(parent: Path, name: str) -> Path:
    return parent / f".{name}.{secrets.token_hex(8)}{DRAFT}"


def _open_to_readers(folder: Path) -> None:
    """A draft is its owner's alone; what is published follows the owner's own rule for new files."""
    mask = os.umask(0)
    os.umask(mask)
    folder.chmod(0o777 & ~mask)
    for path in folder.rglob("*"):
        path.chmod((0o777 if path.is_dir() else 0o666) & ~mask)


def _take_place(draft: Path, place: Path) -> None:
    """All of a folder on disk, then there by one rename, then the rename on disk."""
    for path in draft.rglob("*"):
        _sync(path)
    _sync(draft)
    os.rename(draft, place)
    _sync(place.parent)


@contextmanager
def _signals_deferred() -> Iterator[None]:
    """Ctrl-C and SIGTERM do nothing: who was told that nothing was written must not find a release."""
    if threading.current_thread() is not threading.main_thread():
        yield  # where no signal arrives
        return
    before = {stop: signal.signal(stop, signal.SIG_IGN) for stop in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for stop, handler in before.items():
            signal.signal(stop, handler or signal.SIG_DFL)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
