"""Publish linked tables: all of them, once, proved on what was published or withheld.

read > bind > bundle > recode > write > read back > audit > publish
"""

import hashlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from shoal.auditor.linked.audit import LinkedAudit, measure_linked
from shoal.auditor.verdict import require_kept
from shoal.connectors import files
from shoal.connectors.location import FORMATS, Location
from shoal.connectors.outputs import check_not_read
from shoal.connectors.release_drafts import folder_draft
from shoal.connectors.table_places import place_in_folder
from shoal.data.certificate import Certificate
from shoal.data.certificate_shape import MethodReport
from shoal.data.linked import LinkedTables
from shoal.data.progress import Progress, no_progress
from shoal.errors import InputError
from shoal.linked.check import faults_of
from shoal.linked.recode import DraftTable, key_map, recode
from shoal.linked.templates import LinkedPromises, bundles_of
from shoal.policy import registry
from shoal.policy.binding.files import PolicyTables
from shoal.policy.binding.linked import bound_linked
from shoal.policy.binding.linked_files import (
    LinkedSource,
    LinkedSources,
    read_linked,
    read_linked_release,
)
from shoal.policy.policy import Policy
from shoal.policy.problem import LinkedProblem

VERB = "publish FOLDER"
CERTIFICATE = "certificate.json"
WITHHELD = "nothing was written"
DEFAULT_METHOD = "bundles"


@dataclass(frozen=True)
class LinkedPublication:
    """A release of linked tables that kept its promises.

    data: by table, the published frame. certificate: what was measured on the written files.
    """

    data: Mapping[str, pl.DataFrame]
    certificate: Certificate


def publish_linked(
    source: LinkedSource,
    policy: Policy,
    output: str,
    *,
    further: Mapping[str, str] | None = None,
    trace: str | None = None,
    progress: Progress = no_progress,
) -> LinkedPublication:
    """One release of all tables: a new folder with a file of each and a certificate, or nothing.

    It is audited from the files that were written before the folder takes its name. further: more
    tables by name, beside the source. trace: a file that says which row was whose. Raises
    InputError, InfeasibleError or PromiseError, and then nothing is released.
    """
    started = time.process_time()
    policy.require_answers()
    policy = policy.or_method(DEFAULT_METHOD, {})
    problem = LinkedProblem(policy)
    InputError.raise_for(unserved(problem, output))
    if trace is not None:
        given = source.values() if isinstance(source, Mapping) else [source]
        for read in (*given, *(further or {}).values()):
            if isinstance(read, str | Path):
                check_not_read(trace, str(read), policy.files)
    method = policy.build_method(VERB)
    progress("reading the tables")
    own = read_linked(source, problem, further)
    progress("checking the data against the policy")
    tables = bound_linked(own.tables, problem)
    with folder_draft(output, False) as folder:
        progress(f"finding classes by {policy.method_name}")
        began = time.process_time()
        promises = LinkedPromises(tables, problem)
        rng = np.random.default_rng(policy.model.seed)
        with registry.blaming_plug_in(policy.method_name, VERB):
            templates = method.bundle(bundles_of(tables), promises, rng)
        seconds = time.process_time() - began
        progress("writing the release")
        drafts = recode(tables, templates, unforeseen(own, policy.model.seed))
        write(drafts, policy.tables, folder)
        progress("reading the release back")
        back = read_linked_release(str(folder), problem)
        audit = _audit(back, problem, tables, drafts, progress)
        certificate = audit.certificate.extended(
            verb="publish",
            method=MethodReport(name=policy.method_name, parameters=policy.parameters_for(VERB)),
            seed=policy.model.seed,
            input={"sha256": own.sha256} if own.hashes else None,
            output={"sha256": back.sha256},
            seconds={"total": time.process_time() - started, "method": seconds},
        ).warned(*own.remarks)
        require_kept(certificate, WITHHELD)
        if trace is not None:  # whose row is whose, for the owner alone
            with files.atomic_write(trace, is_private=True) as unfinished:
                key_map(tables, drafts).write_ndjson(unfinished)
        (folder / CERTIFICATE).write_text(certificate.to_json(), encoding="utf-8")
    return LinkedPublication({name: draft.frame for name, draft in drafts.items()}, certificate)


def unserved(problem: LinkedProblem, output: str) -> Iterator[str]:
    """What is asked of a release that can be measured, and not made."""
    place = Location(output)
    if not place.is_path or Path(output).suffix in FORMATS:
        yield f"output '{output}': linked tables go to a new folder, a file of each; name one"
    for table in problem.declared:
        if not isinstance(table.rows.known, str):
            yield (
                f"table '{table.name}': a release against attackers who know {table.rows.known} of"
                " its rows can be audited, and not made yet; say 'known: all', which promises more"
            )
    anchor = problem.model.anchor
    if anchor is not None and anchor.gaps == "exact":
        yield (
            "policy, anchor.gaps: exact gaps can be audited, and not made yet; say 'covered', which"
            " promises more"
        )


def unforeseen(own: LinkedSources, seed: int) -> np.random.Generator:
    """Random numbers for keys, order and days: the same for the same data and seed, which nobody
    can draw again who has not all of the data.
    """
    digest = hashlib.sha256(str(seed).encode())
    for name in sorted(own.tables):
        digest.update(name.encode())
        digest.update(own.tables[name].frame.write_csv().encode())
    return np.random.default_rng(list(digest.digest()))


def write(drafts: Mapping[str, DraftTable], tables: PolicyTables, folder: Path) -> None:
    """A file of each table, as the policy says that files are written."""
    for name, draft in drafts.items():
        place = place_in_folder(folder, name)
        dialect = tables.output_dialect(place, None, place)
        frame = tables.written_frame(draft.frame, place.kind)
        files.write(frame, Path(place), place.kind, place.is_packed, dialect)


def _audit(
    back: LinkedSources,
    problem: LinkedProblem,
    tables: LinkedTables,
    drafts: Mapping[str, DraftTable],
    progress: Progress,
) -> LinkedAudit:
    """The audit of what was written, with the faults that only who made it can find."""
    audit = measure_linked(back, problem, tables, progress, is_traced=True)
    faults = audit.certificate["faults"] | faults_of(back.tables, audit.release, tables, drafts)
    return LinkedAudit(audit.certificate.extended(faults=faults), audit.release)
