"""The ledger: an append-only chain of releases, and beside it what only their owner may see.

    DIR/ledger.json, policy.json, hierarchies/       what every release is measured against
    DIR/0001/data.csv, certificate.json, ...         a release; its certificate holds the hash of
                                                     the one before
    DIR.private/key                                  the key of the subject tokens
    DIR.private/000001/state.json, rows.parquet, ... a step: what an accepted increment left to
                                                     remember
    DIR.private/table.json                           the table in a database that takes the
                                                     releases, too, if there is one
    DIR.private/inputs/HASH                          the step that an increment of this hash led to

Promise: releases 1..N are whole and follow each other, whatever instant a process is killed at. A
release is published by one rename. Its private step takes its place before that, and is noted and
marked afterwards. So a step without release, note and mark was never committed, and a note or mark
without its release means that the release was taken away.

An append lists both folders, and reads the end of the chain and every list of people that it looks
people up in: it hashes 16 bytes for everybody who was ever published, and costs the same otherwise,
however long the ledger is. `verify` checks every byte.

    layout.py    where everything lies, the chain as it is read, and small files
    verify.py    what is damaged, missing, added or out of order
    private.py   what the private part remembers of people
"""

import hashlib
import json
import os
import secrets
import signal
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import numpy as np

from shoal.connectors import outputs
from shoal.connectors.files import move_into_place, open_to_readers
from shoal.connectors.ledger import layout, verify
from shoal.connectors.ledger.layout import CERTIFICATE as CERTIFICATE
from shoal.connectors.ledger.layout import COUNTERFEITS as COUNTERFEITS
from shoal.connectors.ledger.layout import DATA as DATA
from shoal.connectors.ledger.layout import GENESIS as GENESIS
from shoal.connectors.ledger.layout import HIERARCHIES as HIERARCHIES
from shoal.connectors.ledger.layout import POLICY as POLICY
from shoal.connectors.ledger.layout import RUN as RUN
from shoal.connectors.ledger.layout import PolicyFiles as PolicyFiles
from shoal.connectors.ledger.layout import ReleaseDraft as ReleaseDraft
from shoal.connectors.ledger.layout import TableNote as TableNote
from shoal.connectors.ledger.layout import sha256_of as sha256_of
from shoal.data.regular_files import absent_folders, path_text, sync
from shoal.errors import ANOTHER_LEDGER, STOPS, InputError, LedgerError, os_errors_as_input_errors

KEY_BYTES = 32
MOST_TRIES = 1000
REMEDY = (
    "free some space or check the permissions, then run it again: no increment is published twice"
)


@dataclass
class Ledger(layout.Chain):
    """A folder of releases, and its private part beside it."""

    _last: layout.LedgerStep | None = field(default=None, init=False, repr=False, compare=False)
    """Under the lock, the last step: nobody else can append another."""
    _lock: IO[str] | None = field(default=None, init=False, repr=False, compare=False)
    _runs: dict[int, np.ndarray] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @classmethod
    def at(cls, path: str | Path) -> "Ledger":
        """The ledger in a folder; raises InputError where there is none."""
        ledger = cls(Path(path_text(path, "ledger")))
        if not ledger.exists:
            raise InputError(f"ledger '{path}': is not a ledger; 'shoal republish' begins one")
        return ledger

    # Beginning

    def check_can_begin(self) -> None:
        """Raises where no ledger can begin: its folder may be there if empty, no private part."""
        if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            raise InputError(
                f"ledger '{self.path}': the folder holds other things; name a new or an empty one"
            )
        if self.steps():
            raise LedgerError(
                f"ledger '{self.path}': is missing, but its private part is there; restore it, or"
                f" {ANOTHER_LEDGER}"
            )

    def around(self, output: str | Path | None) -> Iterator[str]:
        """A finding where an output would lie in this ledger, which may not have begun."""
        return outputs.misplaced("ledger", [self.path, self.private], output)

    def begin(self, policy_files: layout.PolicyFiles) -> None:
        """Begin the ledger under these policy files, as a whole or not at all."""
        self.check_can_begin()
        try:
            with self._draft_beside(self.path.parent, "ledger") as draft:
                for name, content in policy_files.files.items():
                    (draft / name).parent.mkdir(exist_ok=True)
                    (draft / name).write_bytes(content)
                (draft / layout.GENESIS).write_text(policy_files.genesis)
                open_to_readers(draft)
                move_into_place(draft, self.path)
        except OSError as failed:
            why = failed.strerror or "no permission"
            raise InputError(
                f"ledger '{self.path}': can't begin there ({why}); name a new folder"
            ) from None

    # Reading

    def last_step(self) -> layout.LedgerStep:
        """The last step that was committed; an empty one where none was."""
        return super().last_step() if self._last is None else self._last

    def step_for(self, digest: str) -> layout.LedgerStep | None:
        """The step that this increment led to, None if it is new; LedgerError if it was changed."""
        note = self.note(digest)
        if not note.exists():
            return None
        number = layout.number_in(note)
        step = None if number is None else self.step(number)
        if step is None or step.input != digest or not self._has_its_release(step):
            raise verify.damaged(self.verify())
        return step

    @property
    def key(self) -> bytes:
        """The key of the subject tokens, made once; raises LedgerError where it is lost."""
        path = self.private / layout.KEY
        if not path.exists():
            if self.steps():
                raise verify.damaged([verify.LOST_KEY])
            layout.write_once(path, secrets.token_bytes(KEY_BYTES), self.private)
        return path.read_bytes()

    def runs(self) -> dict[int, np.ndarray]:
        """Everybody who was ever published: sorted tokens by step.

        Under the lock only, where each file is opened and hashed once. Raises LedgerError where
        they are not as they were.
        """
        for number, digest in self.last_step().runs:
            if number in self._runs:
                continue
            run = _mapped(self.step_folder(number) / layout.RUN)
            if run is None or hashlib.sha256(run.data).hexdigest() != digest:
                raise verify.damaged([verify.changed(number, layout.RUN)])
            self._runs[number] = run
        return {number: self._runs[number] for number, _ in self.last_step().runs}

    # Verifying

    def verify(self) -> list[str]:
        """Everything that is damaged, missing, added or out of order; empty where all is whole."""
        remedy = "run as its owner, or look at a copy of the folder without its private part"
        with os_errors_as_input_errors(f"ledger '{self.path}'", remedy):
            findings = verify.damage(self)
            if findings and self._lock is None:
                with self.appends_held_off():
                    findings = verify.damage(self)
            return findings

    def unmarked(self) -> list[str]:
        """A last step that was committed and bears no mark: no damage, a kill leaves it."""
        last = self.last_step().number
        if not last or (self.step_folder(last) / layout.MARK).exists():
            return []
        return [
            f"private step {last:06d}: its mark '{layout.MARK}' is missing: an append is running or"
            " was stopped at its end, or somebody removed it; the next append sets it again"
        ]

    def check_whole(self) -> None:
        """Raises LedgerError with all damage; for what looks at all earlier releases anyway."""
        findings = self.verify()
        if findings:
            raise verify.damaged(findings)

    def check_end(self) -> None:
        """Raises LedgerError unless the last release is the remembered one, at constant cost."""
        if not verify.is_whole_at_end(self):
            raise verify.damaged(self.verify())

    # Appending

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One process at a time appends; what a killed one left half done is removed first.

        A file that can't be read or written is an InputError. Where no ledger began, no private
        part stays.
        """
        with self._held_lock() as lock, os_errors_as_input_errors(f"ledger '{self.path}'", REMEDY):
            try:
                last = self._sweep()
                self._last = last if last.number else None
                self._lock = lock
                yield
            finally:
                self._last = None
                self._lock = None
                self._runs.clear()
                self._remove_empty_folders()

    @contextmanager
    def draft(self) -> Iterator[layout.ReleaseDraft]:
        """Two folders for the next step; removed if they were not committed."""
        home = self.path if self.exists else self.path.parent
        published = self._draft_beside(home, "release")
        with published as release, self._draft_beside(self.private, "step") as step:
            yield layout.ReleaseDraft(release, step)

    def _draft_beside(self, home: Path, what: str) -> AbstractContextManager[Path]:
        """A locked folder, which nobody who writes beside it takes for what a kill left."""
        target = home / f"{self.path.name}.{what}"
        return outputs.draft_beside(target, f"ledger '{self.path}'", is_folder=True, remedy=REMEDY)

    def commit(
        self,
        draft: layout.ReleaseDraft,
        digest: str,
        records: int,
        transient_files: tuple[str, ...],
        runs: tuple[int, ...],
        publishes: bool,
    ) -> tuple[layout.LedgerStep, str]:
        """Move the draft into place: with its release, or as a step whose records wait.

        digest: hash of the increment. records: how many the ledger has published then.
        transient_files: the private files that the next step replaces. runs: the earlier steps
        whose file RUN stays in use. Under the lock only. Returns the step, and what the system
        refused behind it, which the next append makes good; an OSError is raised only where nothing
        was appended.
        """
        before = self.last_step()
        number = before.number + 1
        files = {path.name: layout.sha256_of(path) for path in sorted(draft.private.iterdir())}
        kept_runs = [(earlier, run) for earlier, run in before.runs if earlier in runs]
        own_run = [(number, files[layout.RUN])] if layout.RUN in files else []
        step = layout.LedgerStep(
            number=number,
            previous=layout.sha256_of(self.step_before(number)),
            release=before.releases + 1 if publishes else None,
            releases=before.releases + int(publishes),
            head=layout.sha256_of(draft.published / layout.CERTIFICATE)
            if publishes
            else before.head,
            records=records,
            input=digest,
            files=files,
            transient_files=transient_files,
            runs=(*kept_runs, *own_run),
            inputs=layout.sha256_of_names(layout.names_in(self.private / layout.INPUTS) | {digest}),
            key=layout.sha256_of(self.private / layout.KEY),
        )
        content = json.loads(json.dumps(vars(step)))
        seal = layout.sha256_of_state(content)
        state = layout.json_text({"schema": layout.PRIVATE_SCHEMA, **content, "sha256": seal})
        (draft.private / layout.STATE).write_text(state)
        refused = ""
        with signals_deferred():
            self._require_lock()
            try:
                move_into_place(draft.private, self.step_folder(number))
                if step.release:
                    open_to_readers(draft.published)
                    move_into_place(draft.published, self.folder(step.release))
                self._finish(step)
            except OSError as failed:
                if not self._is_appended(step, state):
                    raise
                refused = failed.strerror or "no space or no permission"
        self._last = step
        return step, refused

    def _is_appended(self, step: layout.LedgerStep, state: str) -> bool:
        """Whether this very step counts, not another one of its number; state: as it was noted."""
        with suppress(FileNotFoundError):
            is_noted = self.state_file(step.number).read_text() == state
            return is_noted and self._has_its_release(step)
        return False

    def _has_its_release(self, step: layout.LedgerStep) -> bool:
        """Whether the release of a step, if it led to one, is as the step remembers it."""
        release = step.release and self.folder(step.release) / layout.CERTIFICATE
        return not release or layout.sha256_of(release) == step.head != ""

    def _finish(self, step: layout.LedgerStep) -> None:
        """Note and mark a committed step, and remove the files that it replaces."""
        layout.write_once(self.note(step.input), layout.number_line(step.number), self.private)
        layout.write_once(self.step_folder(step.number) / layout.MARK, b"", self.private)
        if step.number < 2:
            return
        before = self.step(step.number - 1)
        kept = {number for number, _ in step.runs}
        replaced = [self.step_folder(before.number) / name for name in before.transient_files]
        replaced += [
            self.step_folder(old) / layout.RUN for old, _ in before.runs if old not in kept
        ]
        for path in replaced:
            path.unlink(missing_ok=True)

    def _sweep(self) -> layout.LedgerStep:
        """Remove drafts and an uncommitted last step; finish and return the last committed one."""
        for folder in (self.path.parent, self.path, self.private):
            if folder.is_dir():
                outputs.sweep(folder)
        for name in filter(layout.is_draft, layout.names_in(self.private)):
            if (self.private / name).is_dir():  # of a step, from an earlier build
                outputs.remove_folder(self.private / name)
        last = max(self.steps(), default=0)
        if last and self.is_committed(last):
            step = self.step(last)
            self._finish(step)
            return step
        if last:
            outputs.remove_folder(self.step_folder(last))
        return self.last_step()

    # The lock

    def _held_lock(self) -> IO[str]:
        """The lock, held; not one that another process removed with an empty private part."""
        import fcntl

        for _ in range(MOST_TRIES):
            with suppress(FileNotFoundError):  # removed between two of these lines
                lock = self._opened_lock()
                fcntl.flock(lock, fcntl.LOCK_EX)
                if self._is_there(lock):
                    return lock
        raise InputError(
            f"ledger '{self.path}': its folder keeps being removed; name one that stays"
        )

    def _is_there(self, lock: IO[str]) -> bool:
        return os.path.samestat(os.fstat(lock.fileno()), os.stat(self.private / layout.LOCK))

    def _require_lock(self) -> None:
        """Raises InputError where the lock was removed since: then others may append, too."""
        with suppress(FileNotFoundError):
            if self._lock is not None and self._is_there(self._lock):
                return
        raise InputError(
            f"ledger '{self.path}': its lock was removed while this run was at work, nothing was"
            " appended; leave the private part alone, and run it again"
        )

    def _opened_lock(self) -> IO[str]:
        if any(
            (folder / layout.GENESIS).is_file() for folder in (self.private, *self.private.parents)
        ):
            raise InputError(
                f"ledger '{self.path}': would lie in another ledger; name a folder elsewhere"
            )
        if self.releases() and not self.private.exists():
            raise LedgerError(
                f"ledger '{self.path}': its private part '{self.private}' is missing; put it back,"
                " or restore it from a copy, nothing was appended"
            )
        made = absent_folders(self.private)
        try:
            if not self.exists and verify.strangers_in_private(self):
                raise InputError(
                    f"ledger '{self.path}': its private part would be '{self.private}', which holds"
                    " other things; name another ledger, or move that folder away"
                )
            self.private.mkdir(mode=0o700, parents=True, exist_ok=True)
            for path in made:
                sync(path.parent)
            if self.private.stat().st_mode & 0o077:
                self.private.chmod(0o700)  # somebody else may have made it, so as to read it
            return open(self.private / layout.LOCK, "a")
        except FileNotFoundError:
            raise
        except OSError as failed:
            why = failed.strerror or "no permission"
            raise InputError(
                f"ledger '{self.path}': can't be written ({why}); run as the owner of one"
                " that has begun, or name a new folder where you may write"
            ) from None

    @contextmanager
    def appends_held_off(self) -> Iterator[None]:
        """No append is half-way meanwhile, where the lock can be had."""
        import fcntl

        with ExitStack() as held:
            with suppress(OSError):
                if (self.private / layout.LOCK).is_file():
                    fcntl.flock(held.enter_context(open(self.private / layout.LOCK)), fcntl.LOCK_SH)
            yield

    def _remove_empty_folders(self) -> None:
        if self.exists or self.steps():
            return
        with suppress(OSError):
            for name in (layout.KEY, layout.TABLE):
                (self.private / name).unlink(missing_ok=True)
            (self.private / layout.LOCK).unlink(missing_ok=True)
            self.private.rmdir()  # only if it holds nothing else


def _mapped(path: Path) -> np.ndarray | None:
    """A file of tokens, read as they are asked for; None where it can't be."""
    try:
        return np.memmap(path, dtype="<u8", mode="r") if path.is_file() else None
    except (OSError, ValueError):
        return None


@contextmanager
def signals_deferred() -> Iterator[None]:
    """No stop does anything: whoever stopped an append must not find a release of it."""
    if threading.current_thread() is not threading.main_thread():
        yield  # where no signal arrives
        return
    before = {stop: signal.signal(stop, signal.SIG_IGN) for stop in STOPS}
    try:
        yield
    finally:
        for stop, handler in before.items():
            signal.signal(stop, handler or signal.SIG_DFL)
