"""Publish linked tables: all of them, once, proved on what was published or withheld.

read > bind > bundle > recode > write > read back > audit > publish
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
from shoal.auditor.linked.reading import described_output
from shoal.connectors import files, location, outputs, traces
from shoal.connectors.format import Format
from shoal.connectors.linked_drafts import LinkedOutput
from shoal.data.certificate import Certificate
from shoal.data.certificate_shape import MethodReport
from shoal.data.linked import PEOPLE, LinkedTables, Templates
from shoal.data.progress import Progress, no_progress
from shoal.errors import InputError
from shoal.linked.check import faults_of, paid_by_people
from shoal.linked.recode import DraftTable, key_map, recode
from shoal.linked.templates import LinkedPromises, bundles_of
from shoal.policy import registry
from shoal.policy.binding import linked_files
from shoal.policy.binding.linked import bound_linked
from shoal.policy.binding.linked_files import LinkedSource, LinkedSources
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
    read = linked_files.named_sources(source, problem, further)
    target.check([*read, *policy.files], replace)
    if trace is not None:
        for name in read:
            outputs.check_not_read(trace, name, policy.files)
        InputError.raise_for(outputs.misplaced("release", [target.place], trace))
    policy.build_method(VERB)
    progress("reading the tables")
    own = linked_files.read_linked(source, problem, further)
    tables, recoded, seconds = _recoded(own, problem, progress)
    with traces.private_draft(trace) as unfinished, target.draft(replace) as draft:
        progress("writing the release")
        frames = _as_written(recoded, problem, target.kind.kind)
        draft.write(frames, policy.tables.output_dialect(target.kind, None, target.kind))
        progress("reading the release back")
        back = linked_files.read_linked_drafts(draft.tables, problem)
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
        ).warned(*linked_files.linked_warnings(own, problem))
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
    back = linked_files.read_linked_release(_as_written(drafts, problem, None), problem)
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
