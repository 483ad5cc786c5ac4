"""Republish: the next release of a growing table, safe beside all earlier ones, or withheld.

read > split by operation > join what waited > place > recode > write > read back > audit the
release and the history > append to the ledger
"""

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, cast

import polars as pl

from shoal.auditor.ledger.release_view import disagreements
from shoal.auditor.ledger.terms import WITH_OPERATIONS, check_policy, check_same, policy_files
from shoal.auditor.verdict import require_kept
from shoal.connectors import files, outputs
from shoal.connectors.database import release_tables
from shoal.connectors.frames import Frame, FrameT, like, nan_in
from shoal.connectors.ledger import CERTIFICATE, DATA, Ledger, TableNote, sha256_of
from shoal.connectors.ledger.private import REPLACED, DeferredRecords, write_private_state
from shoal.connectors.location import SQLITE, Location, TableAddress, parse_address
from shoal.data import person_names, regular_files
from shoal.data.certificate import Certificate
from shoal.data.notebook import Figures
from shoal.data.progress import Progress, no_progress
from shoal.data.table import Table, texts_of
from shoal.data.warnings import ReleaseWarning, nan_remarks
from shoal.errors import ANOTHER_LEDGER, InputError, LedgerError, PromiseError
from shoal.ledgers.increment import DELETE, UPDATE, Terms, check_operations
from shoal.ledgers.next_release import plan, write_and_audit
from shoal.policy.binding.columns import check_increment, input_warnings
from shoal.policy.binding.files import PolicyTables
from shoal.policy.linked import one_table_findings
from shoal.policy.policy import Policy, PolicyLike
from shoal.privacy.l_diversity import LDiversity

LEAST_M = 2
"""Values of a signature, where nothing asks for more."""


@dataclass(frozen=True, repr=False)
class Republication(Figures, Generic[FrameT]):
    """What became of an increment.

    release: its number, None where all of it waits. certificate: of that release.
    waiting: how many records wait now. reasons: why records wait.
    repeated: whether it had been appended before, and nothing was done.
    returning: people of the increment whose earlier records waited already; they have the records
    of both, and count once.
    head: hash of the last release, to be noted elsewhere: `verify_ledger` finds by it whether a
    ledger is an older copy, or one that was continued twice. Empty where nothing was appended.
    unfinished: what could not be written behind the release, in a line; empty where all was.
    data: the release as it was published, where a frame was given; None where nothing was.
    left_out: records that waited to the deadline among fewer than k people, and are gone.
    caught_up: earlier releases of the ledger that were written into its table now.
    deleted, updated: people whom the increment deletes or updates.
    remarks: what was said of an increment that only waits; that of a release is in its certificate.
    """

    release: int | None
    certificate: Certificate | None
    waiting: int
    repeated: bool = False
    reasons: Sequence[str] = ()
    data: FrameT | None = field(default=None, repr=False)
    returning: int = 0
    head: str = ""
    unfinished: str = ""
    left_out: int = 0
    caught_up: int = 0
    deleted: int = 0
    updated: int = 0
    remarks: Sequence[ReleaseWarning] = ()

    @property
    def again(self) -> int:
        """The former name of `returning`."""
        return self.returning


def republish(
    frame: FrameT,
    policy: PolicyLike,
    ledger: str | Path,
    *,
    output: str | None = None,
    allow_leaks: bool = False,
    progress: Progress = no_progress,
) -> Republication[FrameT]:
    """Append new records, a pandas, polars or pyarrow frame, as the next release of a ledger.

    The ledger, a folder, is begun if it is not there. The release and the whole history are audited
    on the written bytes before these are published; nothing is appended if it is not safe beside
    all earlier releases. The same records in the same order are not published again. Raises
    InputError, PromiseError, InfeasibleError or LedgerError. `data` is of the same kind as the
    frame, with cells as text, as in the file.

    output: the address of a table in a database that takes the releases, too, in step with the
    ledger.
    """
    policy = Policy.of(policy)
    done = republish_file(
        increment_of(frame, policy.tables),
        policy,
        ledger,
        output=output,
        allow_leaks=allow_leaks,
        progress=progress,
    )
    if done.release is None or done.repeated:
        return cast(Republication[FrameT], done)
    written = files.read_as(Ledger(Path(ledger)).folder(done.release) / DATA).frame
    return cast(Republication[FrameT], replace(done, data=like(frame, written)))


def republish_file(
    increment: str | files.SourceFile,
    policy: Policy,
    ledger_path: str | Path,
    *,
    output: str | None = None,
    allow_leaks: bool = False,
    progress: Progress = no_progress,
) -> Republication[Frame]:
    """Append the records of a file as the next release; a file is not published twice.

    increment: its path, or what was read already.
    """
    ledger = Ledger(Path(regular_files.path_text(ledger_path, "ledger")))
    output = None if output is None else regular_files.path_text(output, "output")
    check_table(output, ledger, increment)
    InputError.raise_for(one_table_findings(policy.model, "republish"))
    source = increment
    if isinstance(source, str):
        progress("reading the increment")
        source = policy.tables.read_original(source, allow_empty=True)
    started = time.process_time()
    policy.require_answers()
    if policy.tables.absent_from(source.frame.columns):
        source = with_deletions_filled(source, policy)
    policy = with_its_method(policy, ledger).with_shuffled_rows()
    terms = Terms(policy, policy.build_method("republish"), ledger)
    check_policy(policy, terms.method)
    check_increment(source.frame, policy.tables, ledger.exists)
    progress("waiting for the ledger")
    with ledger.locked():
        check_ledger(ledger, policy.tables, terms.looks_back)
        if output is None:
            require_no_table(ledger)
            table, caught_up = None, 0
        else:
            progress("reading the table of the ledger")
            table = LedgerTable(ledger, parse_address(output))
            caught_up = table.catch_up()
        repeated = ledger.step_for(source.sha256)
        if repeated is not None or not source.frame.height:
            release = None if repeated is None else repeated.release
            return Republication(
                release,
                None if release is None else ledger.certificate(release),
                DeferredRecords.of(ledger).records,
                repeated=repeated is not None,
                reasons=("the increment is empty",) if repeated is None else (),
                caught_up=caught_up,
            )
        terms = terms.beside_the_table()
        stay, name = source.table, terms.policy.operation
        if name is not None:  # who leaves needs no values
            stays = pl.col(name).cast(pl.String).ne_missing(DELETE)
            stay = Table(source.frame.filter(stays))
        remarks = (*source.remarks, *input_warnings(stay, terms.policy.model))
        texts = texts_of(source.frame)
        planned, waiting = plan(texts, terms, progress)
        certificate, records = None, ledger.last_step().records
        identities = originals = None
        with ledger.draft() as draft:
            if planned is not None:
                audited = write_and_audit(
                    planned, waiting.returning, terms, draft.published, source.sha256, progress
                )
                by_itself = audited.certificate.extended(history=None)
                require_kept(by_itself, "the ledger is as it was")
                if audited.violations and not allow_leaks:
                    first, *more = map(str, audited.violations)
                    raise PromiseError(
                        f"{first}; the release is withheld, the ledger is as it was."
                        f" {terms.method.remedy}",
                        more,
                    )
                seconds = {"total": time.process_time() - started, "method": planned.seconds}
                certificate = audited.certificate.extended(seconds=seconds).warned(*remarks)
                (draft.published / CERTIFICATE).write_text(certificate.to_json())
                identities = planned.identities
                records = max(records, int(identities.records.max()) + 1)
                originals = planned.originals if terms.method.needs == "originals" else None
            runs = write_private_state(ledger, waiting, identities, originals, draft.private)
            target = None if planned is None else table  # which waiting records never see
            with nullcontext() if target is None else target.putting(draft.published):
                if not ledger.exists:
                    ledger.begin(policy_files(policy.tables))
                if target is not None:
                    target.bind()
                step, refused = ledger.commit(
                    draft, source.sha256, records, REPLACED, runs, publishes=planned is not None
                )
    return Republication(
        step.release,
        certificate,
        waiting.records,
        reasons=waiting.reasons,
        returning=waiting.returning,
        head="" if planned is None else step.head,
        unfinished=_unfinished(step.release, refused),
        left_out=waiting.left_out,
        caught_up=caught_up,
        deleted=0 if name is None else int((texts[name] == DELETE).sum()),
        updated=0 if name is None else int((texts[name] == UPDATE).sum()),
        remarks=() if certificate is not None else remarks,
    )


def increment_of(frame: Frame, tables: PolicyTables) -> files.SourceFile:
    """The increment in a frame of any kind, recognized by the text of its cells; may be empty."""
    records = tables.table_given(frame, allow_empty=True).frame
    text = texts_of(records).write_csv()
    digest = hashlib.sha256(text.encode()).hexdigest()
    records, remarks = person_names.without_nobody(records, *tables.nobody(records.columns))
    remarks += nan_remarks(nan_in(frame, tables.reading_of(tables.model.read)))
    return files.SourceFile(Table(tables.original_frame(records)), digest, remarks=remarks)


def with_its_method(policy: Policy, ledger: Ledger, *, explicit: bool = True) -> Policy:
    """The policy with the method of a ledger's last release, where it names none; of a new ledger
    with `m-invariance` if records may leave or change, else `crp`.

    explicit: whether a policy that names another method than the ledger's changes it; else that
    raises InputError, as a method always does that would end updates and deletions in the ledger.
    """
    last = max(ledger.releases(), default=0)
    default = "crp" if policy.operation is None else WITH_OPERATIONS
    stated = ledger.certificate(last).get("method") if last else None
    known: Mapping[str, Any] = {"name": default, "parameters": {}, **(stated or {})}
    policy = _for_its_promises(policy.or_method(known["name"], known["parameters"]))
    keeps_changes = known["name"] == WITH_OPERATIONS and policy.operation is not None
    if last and keeps_changes and not policy.build_method("republish").changes:
        raise InputError(
            f"ledger '{ledger.path}': after a release by '{policy.method_name}', nobody could be"
            f" deleted or updated any more; keep '{WITH_OPERATIONS}', or {ANOTHER_LEDGER}"
        )
    if last and not explicit and policy.method_name != known["name"]:
        raise InputError(
            f"ledger '{ledger.path}': its last release is by '{known['name']}', and the policy"
            f" names '{policy.method_name}'; keep the ledger's with --method {known['name']}, or"
            f" change it with --method {policy.method_name}"
        )
    return policy


def _for_its_promises(policy: Policy) -> Policy:
    """With signatures of as many values as l-diversity asks for, where `m` is left open."""
    if policy.method_name != WITH_OPERATIONS or "m" in policy.method_settings:
        return policy
    asked = [one.l for one in policy.build_promises() if isinstance(one, LDiversity)]
    m = max([LEAST_M, *asked])
    return policy.with_method(None, {"m": m}) if m > LEAST_M else policy


def with_deletions_filled(source: files.SourceFile, policy: Policy) -> files.SourceFile:
    """The increment; where it only deletes people, columns that it leaves out are empty.

    Raises InputError for operations that there are not.
    """
    frame, operation = source.frame, policy.operation
    lacking = policy.tables.absent_from(frame.columns)
    if not lacking or operation not in frame.columns:
        return source
    check_operations(frame[operation])
    if not (frame[operation] == DELETE).all():
        return source
    empty = [pl.lit(None, pl.String).alias(column) for column in lacking]
    return replace(source, table=Table(frame.with_columns(empty)))


def check_ledger(ledger: Ledger, tables: PolicyTables, looks_back: bool) -> None:
    """Raises LedgerError or InputError where nothing can be appended under this policy.

    looks_back: whether all earlier releases will be read, and so must be whole; else only the last
    one must be.
    """
    if ledger.exists:
        if looks_back:
            ledger.check_whole()
        else:
            ledger.check_end()
        check_same(tables, ledger)
    else:
        ledger.check_can_begin()


def _unfinished(release: int | None, refused: str) -> str:
    """What was kept although a later write failed; empty where none failed.

    Not an error: after a message that the append failed, nobody would expect the release that is
    there.
    """
    if not refused:
        return ""
    done = (
        "the increment was accepted" if release is None else f"release {release:04d} is published"
    )
    return (
        f"{done}, but not its last private file ({refused}); free some space or check the"
        " permissions, the next append writes it"
    )


# The table in a database that takes the releases of a ledger, too: in step with it, or refused.
#
# The ledger decides: a release counts once its folder is renamed. The table's transaction is open
# meanwhile, with the same rows read back in it, and is committed behind. So after a kill the
# table lacks at most what the ledger holds, and the next run writes that from the ledger's own
# file. A table that lacks what was noted as committed is an older copy, and one that holds more
# than the ledger shows that the ledger is: nothing is appended beside either.


def check_table(output: str | None, ledger: Ledger, increment: str | files.SourceFile) -> None:
    """Raises InputError where releases can't go there; looks at no database yet."""
    if "?table=" in str(ledger.path):  # not shown, as an address may hold a password
        raise InputError(
            "ledger: is a folder, not a table; name one, and with -o the table in a database that"
            " takes its releases, too"
        )
    if output is None:
        return
    place = Location(output)
    if not place.is_table:
        raise InputError(
            f"output '{output}': a ledger has its own folder; -o names a table in a database that"
            " takes its releases, too"
        )
    if place.address.kind == SQLITE:
        findings = [*ledger.around(place.address.location), *outputs.in_ledgers(output)]
        InputError.raise_for(findings[:1])
    if isinstance(increment, str):
        outputs.check_not_read(output, increment, [])


def require_no_table(ledger: Ledger) -> None:
    """Raises InputError where the releases of a ledger go into a table, and none is named."""
    note = _note_of(ledger)
    if note is None:
        return
    if not ledger.releases():  # what was begun there was never appended
        TableNote.remove(ledger.private)
        return
    raise InputError(
        f"ledger '{ledger.path}': its releases go into a table, too; name it with -o '{note.table}'"
    )


def _note_of(ledger: Ledger) -> TableNote | None:
    note = TableNote.read(ledger.private)
    if note is None and TableNote.is_in(ledger.private):
        raise LedgerError(
            f"ledger '{ledger.path}': the note about its table is damaged; restore the private"
            " part, nothing was appended"
        )
    return note


@dataclass
class LedgerTable:
    """The table that a ledger writes, under its lock. last: the last release in it."""

    ledger: Ledger
    address: TableAddress
    last: release_tables.ListedRelease | None = None

    def catch_up(self) -> int:
        """Writes the releases that the ledger holds and the table lacks; how many these were.

        Raises InputError or LedgerError where the two don't belong together, or one of them is an
        older copy, or the table was changed.
        """
        note = _note_of(self.ledger)
        state = release_tables.state_of(self.address, writing=True)
        if note is None or not (state.releases or note.releases):
            release_tables.check_begin(self.address)
        elif findings := disagreements(self.ledger, state, note):
            raise LedgerError(
                f"output '{self.address.shown}': {findings[0]}; nothing was appended. The ledger's"
                f" table was '{note.table}'",
                findings[1:],
            )
        self.last = state.releases[-1] if state.releases else None
        missing = self.ledger.releases()[len(state.releases) :]
        self._require_same_columns(missing)
        for number in missing:
            with self.putting(self.ledger.folder(number)):
                self.bind()
        if note is not None and note.releases < len(state.releases) and not missing:
            self._confirm(len(state.releases))
        return len(missing)

    @contextmanager
    def putting(self, folder: Path) -> Iterator[None]:
        """Has the rows of a release in the table, committed and noted if the block succeeds.

        folder: of the release. The block appends it to the ledger.
        """
        frame = files.read_as(folder / DATA).frame
        certificate = (folder / CERTIFICATE).read_bytes().decode()
        with release_tables.putting(self.address, self.last, frame, certificate) as line:
            yield
        self.last = line
        self._confirm(line.release)

    def bind(self) -> None:
        """Notes that releases go into the table from now on, so that none is appended without."""
        if _note_of(self.ledger) is None:
            self._confirm(0)

    def _confirm(self, releases: int) -> None:
        """Notes up to which release it is certain that the table holds them."""
        head = sha256_of(self.ledger.predecessor(releases + 1))
        TableNote(self.address.shown, releases, head).write(self.ledger.private)

    def _require_same_columns(self, releases: Sequence[int]) -> None:
        """Of a ledger that gets a table: else the table would stay behind at some release."""
        names = {
            frozenset(files.read_as(self.ledger.folder(number) / DATA).frame.columns)
            for number in releases
        }
        if len(names) > 1:
            raise InputError(
                f"output '{self.address.shown}': the ledger's releases differ in their columns,"
                " and no table can hold all of them; leave out -o"
            )
