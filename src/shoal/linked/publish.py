"""Publish linked tables: all of them, once, proved on what was published or withheld.

read > bind > bundle > recode > write > read back > compare with the original > audit > publish
"""

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from dataclasses import replace as replaced

import numpy as np
import polars as pl

from shoal.auditor import description, verdict
from shoal.auditor.linked.audit import LinkedAudit, measure_linked
from shoal.auditor.linked.reading import LinkedRelease, ReleasedTable, described_output
from shoal.connectors import files, location, outputs, traces
from shoal.connectors.formats import Format
from shoal.connectors.linked_tables import LinkedOutput, LinkedSource, LinkedSources
from shoal.connectors.release_drafts import WrittenDraft
from shoal.data.certificate import Certificate
from shoal.data.certificate_shape import MethodReport
from shoal.data.linked import PEOPLE, Keys, LinkedRows, LinkedTables, Templates
from shoal.data.progress import Progress, no_progress
from shoal.data.regular_files import Json
from shoal.data.release import covers, spans_cover
from shoal.data.schema import Role
from shoal.data.table import Table
from shoal.data.truth import as_values
from shoal.errors import InputError
from shoal.linked.recode import DraftTable, key_map, recode
from shoal.linked.templates import LinkedPromises, bundles_of
from shoal.policy import registry
from shoal.policy.binding import linked
from shoal.policy.binding.linked import bound_linked
from shoal.policy.linked import usual_method
from shoal.policy.policy import Policy
from shoal.policy.problem import LinkedProblem
from shoal.recoding.recode import require_key

VERB = "publish FOLDER"
WITHHELD = "nothing was written"


@dataclass(frozen=True)
class LinkedPublication:
    """A release of linked tables that kept its promises.

    data: by table, the published frame. audit: of the written files, beside the original.
    certificate: what was measured.
    """

    data: Mapping[str, pl.DataFrame]
    audit: LinkedAudit = field(repr=False)

    @property
    def certificate(self) -> Certificate:
        return self.audit.certificate


def publish_linked(
    source: LinkedSource,
    policy: Policy,
    output: str,
    *,
    further: Mapping[str, str] | None = None,
    trace: str | None = None,
    replace: bool = False,
    progress: Progress = no_progress,
) -> LinkedPublication:
    """One release of all tables, in a new folder, a workbook or a database with its certificate, or
    nothing.

    It is audited from what was written before it takes its name. further: more tables by name,
    beside the source. trace: a private file that says which row was whose. replace: whether an
    earlier release gives way. Raises InputError, InfeasibleError or PromiseError, and then nothing
    is released.
    """
    started = time.process_time()
    policy.require_answers()
    require_key(policy.model)
    policy = policy.or_method(usual_method(policy.model), {})
    problem = LinkedProblem(policy)
    names = [table.name for table in problem.given]
    target = LinkedOutput.of(output, names, problem.model.write.types == "typed")
    read = linked.named_sources(source, problem, further)
    target.check([*read, *policy.files], replace)
    if trace is not None:
        for name in read:
            outputs.check_not_read(trace, name, policy.files)
        InputError.raise_for(outputs.misplaced("release", [target.place], trace))
    policy.build_method(VERB)
    progress("reading the tables")
    own = linked.read_linked(source, problem, further)
    tables, recoded, seconds = _recoded(own, problem, progress)
    with traces.private_draft(trace) as unfinished, target.draft(replace) as draft:
        progress("writing the release")
        frames = _as_written(recoded, problem, target.kind.kind)
        draft.write(frames, policy.tables.output_dialect(target.kind, None, target.kind))
        progress("reading the release back")
        back = _read_back(draft.tables, problem)
        audit = _audit(back, problem, tables, recoded, progress)
        certificate = audit.certificate.extended(
            verb="publish",
            method=MethodReport(name=policy.method_name, parameters=policy.parameters_for(VERB)),
            seed=policy.model.seed,
            input={"sha256": own.sha256} if own.hashes else None,
            output=described_output(
                target.kind, back.sha256, policy.render, policy.notation.written
            ),
            seconds={"total": time.process_time() - started, "method": seconds},
        ).warned(*linked.linked_warnings(own, problem))
        verdict.require_kept(certificate, WITHHELD)
        if unfinished is not None:  # whose row is whose, for the owner alone
            files.write(key_map(tables, recoded), unfinished, location.JSON_LINES)
        draft.certify(certificate.to_json())
    audit = replaced(audit, certificate=certificate)
    return LinkedPublication({name: one.frame for name, one in recoded.items()}, audit)


@dataclass(frozen=True)
class MeasuredDraft:
    """What readers would see of a release that is not written, beside the tables that it is of.

    seconds: CPU seconds of the method.
    """

    audit: LinkedAudit
    tables: LinkedTables
    seconds: float


def measured_draft(own: LinkedSources, policy: Policy) -> MeasuredDraft:
    """Measures a release of tables that were read, of which nothing is written; raises InputError
    and InfeasibleError as `publish_linked` does.
    """
    problem = LinkedProblem(policy.or_method(usual_method(policy.model), {}))
    tables, drafts, seconds = _recoded(own, problem, no_progress)
    back = linked.read_linked_release(_as_written(drafts, problem, None), problem)
    return MeasuredDraft(_audit(back, problem, tables, drafts, no_progress), tables, seconds)


def _recoded(
    own: LinkedSources, problem: LinkedProblem, progress: Progress
) -> tuple[LinkedTables, Mapping[str, DraftTable], float]:
    """The tables as they were bound, as they are to be published, and the method's CPU seconds."""
    policy = problem.policy
    method = policy.build_method(VERB)
    progress("checking the data against the policy")
    tables = bound_linked(own.tables, problem)
    progress(f"finding classes by {policy.method_name}")
    began = time.process_time()
    promises = LinkedPromises(tables, problem)
    rng = np.random.default_rng(policy.model.seed)
    with registry.blaming_plug_in(policy.method_name, VERB):
        templates = method.bundle(bundles_of(tables), promises, rng)
    seconds = time.process_time() - began
    progress("recoding")
    asked = description.policy_sha256(policy, VERB, without=("write",))
    drawn = unforeseen(own, f"{policy.model.seed} {asked}", require_key(policy.model), templates)
    return tables, recode(tables, templates, promises.k, drawn), seconds


def unforeseen(
    own: LinkedSources, asked: str, secret: bytes, templates: Templates
) -> np.random.Generator:
    """Random numbers for keys, order and days, which nobody can draw again who has not all of the
    data: the same for one release, however it is written, and unrelated where anything that decides
    it differs, as two releases that draw alike are joined by what they drew.

    asked: the seed and the effective policy. secret: of pseudonyms.
    """
    digest = hashlib.sha256(asked.encode())
    digest.update(secret)
    for slots in templates.slots:  # a tree's order may decide these, and not the policy's hash
        digest.update(slots.tobytes())
    for name in sorted(own.tables):
        digest.update(name.encode())
        digest.update(own.tables[name].frame.write_csv().encode())
    return np.random.default_rng(list(digest.digest()))


def _as_written(
    recoded: Mapping[str, DraftTable], problem: LinkedProblem, kind: Format | None
) -> dict[str, pl.DataFrame]:
    """All tables as the policy says that they are written. kind: of their files, if there are."""
    return {
        table.name: problem.alone(table).tables.written_frame(recoded[table.name].frame, kind)
        for table in problem.given
    }


def _read_back(drafts: Mapping[str, WrittenDraft], problem: LinkedProblem) -> LinkedSources:
    """The tables of a release that were just written and are not published yet."""
    found = {}
    for table in problem.given:
        tables, draft = problem.alone(table).tables, drafts[table.name]
        dialect = tables.output_dialect(draft.name, None, draft.name)
        found[table.name] = tables.read_draft(draft, dialect)
    return LinkedSources.of(found)


def _audit(
    back: LinkedSources,
    problem: LinkedProblem,
    tables: LinkedTables,
    drafts: Mapping[str, DraftTable],
    progress: Progress,
) -> LinkedAudit:
    """The audit of what was written, with faults that only its maker can find, and who pays."""
    owners = drafts[PEOPLE].rows
    audit = measure_linked(back, problem, tables, progress, owners=owners)
    behind = {name: one.rows for name, one in drafts.items()}
    wrong = faults_of(back.tables, audit.release, tables, behind)
    faults = audit.certificate["faults"] | {
        kind: sum(one[kind] for one in wrong.values()) for kind in wrong[PEOPLE]
    }
    paid = None if any(faults.values()) else paid_by_people(audit.release, tables, owners)
    linked = audit.certificate["linked"] | {"paid": paid}
    return replaced(audit, certificate=audit.certificate.extended(faults=faults, linked=linked))


# Beside the original, by who knows whose each row is.


def faults_of(
    published: Mapping[str, Table],
    release: LinkedRelease,
    tables: LinkedTables,
    behind: Mapping[str, np.ndarray],
) -> dict[str, dict[str, int]]:
    """By table, how many rows hang from another row than their own, show cells that do not cover
    their true values - days from their person's day, so gaps as well - or other values than the
    original.

    published: the files as read back. behind: by table, the row behind each row of its file.
    """
    grouped: dict[str, np.ndarray] = {}
    faults = {}
    for name, order in behind.items():
        rows, shown = tables.rows[name], release.tables[name]
        withheld = release.withheld if name == PEOPLE else np.zeros(len(order), dtype=bool)
        changed = _changed(published[name], rows, order, withheld)
        faults[name] = {"rows": 0, "uncovered": 0, "changed": changed}
        parent = rows.about.parent
        if parent is not None and (tables.tree.keys is Keys.NONE or parent not in grouped):
            continue  # it is not known to whom its rows belong
        by_parent = _by_parent(shown, rows, order, grouped)
        if by_parent is None:
            faults[name]["rows"] = len(order)
            continue
        grouped[name] = by_parent
        faults[name]["uncovered"] = _uncovered(shown, rows, by_parent, tables)
    return faults


def _by_parent(
    shown: ReleasedTable, rows: LinkedRows, order: np.ndarray, grouped: Mapping[str, np.ndarray]
) -> np.ndarray | None:
    """The rows behind those of a table, as they were read; None where some hang from another row
    than their own. grouped: those of the tables above.
    """
    if rows.about.parent is None:
        return order if shown.rows == len(order) else None
    above = grouped[rows.about.parent]
    place = np.full(len(rows.counts), -1)
    place[above] = np.arange(len(above))
    parents = place[rows.parents[order]]
    hanging = np.bincount(parents + 1, minlength=len(above) + 1)  # first, those from no row
    is_own = np.array_equal(np.append(0, np.diff(shown.starts)), hanging)
    return order[np.argsort(parents, kind="stable")] if is_own else None


def _uncovered(
    shown: ReleasedTable, rows: LinkedRows, order: np.ndarray, tables: LinkedTables
) -> int:
    """Rows with a cell or a count that does not cover the truth. order: as the rows were read."""
    wrong = np.zeros(len(order), dtype=bool)
    columns = {column.name: column for column in shown.columns}
    for encoded in rows.encoded.attributes:
        column = columns[encoded.attribute.name]
        wrong |= ~covers(column, encoded.value_of_code(), encoded.codes[order])
    for below, column in shown.counts.items():
        counts = tables.rows[below].counts[order].astype(np.float64)
        wrong |= ~spans_cover(column.lo[column.codes], column.hi[column.codes], counts)
    return int(wrong.sum())


def _changed(published: Table, rows: LinkedRows, order: np.ndarray, withheld: np.ndarray) -> int:
    """Rows with a sensitive or plain value that is not their own. order: of the file. withheld:
    (n,) bool, those of people who show nothing.
    """
    if published.records != len(order):
        return len(order)
    wrong = np.zeros(len(order), dtype=bool)
    for attribute in rows.about.schema.published:
        if attribute.role in (Role.SENSITIVE, Role.PLAIN):
            shown, own = as_values(attribute, published, rows.table)
            wrong |= (own.gather(order) != shown).to_numpy()
    return int((wrong & ~withheld).sum())


# Who pays: how unevenly the loss falls on people.


def paid_by_people(release: LinkedRelease, tables: LinkedTables, owners: np.ndarray) -> Json | None:
    """Mean loss of the tenth of people who lose most and of the half who lose least, each over all
    of their rows; by table below people, of how many people rows are withheld, and how many of
    these have none left. None where the release does not say whose a row is.

    owners: (people,) the person of the original behind each published one.
    """
    if tables.tree.keys is Keys.NONE:
        return None
    losses = np.sort(person_losses(release, tables, owners))
    found: Json = {
        "tenth": float(losses[-max(len(losses) // 10, 1) :].mean()),
        "half": float(losses[: max(len(losses) // 2, 1)].mean()),
        "people": {},
    }
    for name in release.tables:
        had, left = _rows_of_people(release, tables, owners, name)
        if name != PEOPLE:
            lose, have_none = had > left, (had > 0) & (left == 0)
            found["people"][name] = {"losing": int(lose.sum()), "without": int(have_none.sum())}
    return found


def person_losses(release: LinkedRelease, tables: LinkedTables, owners: np.ndarray) -> np.ndarray:
    """(people,) float64 in [0, 1], by person of the original: the widths of their published cells,
    and 1 for each cell of a withheld row, by all of their quasi cells; 0 for who has none. Tables
    whose rows are nobody's for their readers are left out.

    owners: as in `paid_by_people`.
    """
    lost, cells = np.zeros(len(owners)), np.zeros(len(owners))
    for about in filter(release.tree.is_joined, release.tree.tables):
        name, shown = about.name, release.tables[about.name]
        had, left = _rows_of_people(release, tables, owners, name)
        person = owners[release.view.person_of[name]]
        for column in shown.columns:
            lost += np.bincount(person, column.widths[column.codes], len(owners)) + (had - left)
            cells += had
    return lost / np.maximum(cells, 1)


def _rows_of_people(
    release: LinkedRelease, tables: LinkedTables, owners: np.ndarray, name: str
) -> tuple[np.ndarray, np.ndarray]:
    """(people,) int64, by person of the original: rows of a table, and those that are published."""
    had = np.bincount(tables.person_of(name), minlength=len(owners))
    return had, np.bincount(owners[release.view.person_of[name]], minlength=len(owners))
