"""Publish: one table, once, proved on what was published or withheld.

read > bind > encode > partition > repair > recode > write > read back > audit > let out
                     > cut ------------------> recode
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from shoal.algorithms.table.repair import repair
from shoal.connectors import files
from shoal.connectors.frames import like, table_of
from shoal.data.certificate import Certificate
from shoal.data.classes import Classes, SensitiveColumn
from shoal.data.cut import Cut
from shoal.data.encoding import EncodedTable, encode
from shoal.data.hierarchies.doctor import Fault, Finding
from shoal.data.matrix import Matrix
from shoal.data.partition import Partition
from shoal.data.recoding import GlobalRecoding, Recoding
from shoal.data.release import Release
from shoal.data.schema import Render, Role, Schema
from shoal.data.sensitive import encode_sensitive
from shoal.data.table import Table
from shoal.errors import InfeasibleError, InputError, PromiseError
from shoal.jobs.audit import Progress, Truth, measure, silent
from shoal.jobs.explain import explain as explanation_of
from shoal.jobs.plan import Plan, follow
from shoal.jobs.policy import Policy
from shoal.jobs.populations import encode_populations
from shoal.jobs.pseudonyms import pseudonyms
from shoal.privacy.promises import BoundPromises, nearest_feasible


@dataclass(frozen=True)
class Publication:
    """A release that kept its promises.

    data: the published frame, of the kind that came in. certificate: what was measured on it.
    classes: (n,) int32 class of each published row, -1 where suppressed.
    """

    data: Any
    certificate: Certificate
    classes: np.ndarray


@dataclass(frozen=True)
class Draft:
    """What would be published, before anyone has measured it.

    plan: to be saved; None for local recoding, and where one was applied. told: more keys of the certificate.
    """

    frame: pl.DataFrame
    schema: Schema
    truth: Truth
    method: dict[str, Any]
    reasons: dict[str, int]
    seconds: float
    plan: Plan | None = None
    told: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """A published file: its certificate, and what a report needs to be drawn from it."""

    certificate: Certificate
    release: Release
    draft: Draft


def publish(
    frame: Any,
    policy: Policy | str | Path | dict[str, Any],
    *,
    plan: str | Path | None = None,
    explain: bool = False,
    progress: Progress = silent,
) -> Publication:
    """One release of a pandas, polars or pyarrow frame; the same kind of frame comes back.

    Every promise of the policy holds on `data`, measured on its cells; raises InputError,
    InfeasibleError or PromiseError and returns nothing otherwise. plan: a file; the plan in it is applied if
    it exists, else the one that was found is saved there. explain: why, in the certificate. Both are for
    methods of global recoding.
    """
    started = time.process_time()
    policy = Policy.of(policy)
    draft = prepare(table_of(frame), policy, progress, _existing(plan, policy, explain), explain)
    published = Table(draft.frame)
    certificate, release = measure(published, draft.schema, policy, draft.truth, progress)
    certificate = _complete(certificate, policy, draft, started)
    _demand(certificate)
    _save_plan(draft, plan)
    return Publication(like(frame, draft.frame), certificate, release.classes.labels)


def publish_file(
    input_path: str,
    policy: Policy,
    output_path: str,
    *,
    plan: str | None = None,
    explain: bool = False,
    progress: Progress = silent,
) -> Outcome:
    """One release from file to file; writes the output and its certificate, both whole or neither.

    The release is audited from the bytes that were written before they take their place. plan, explain: as
    in `publish`.
    """
    started = time.process_time()
    _check_paths(input_path, output_path, policy)
    known = _existing(plan, policy, explain)
    kind = files.format_of(output_path)
    progress("reading the table")
    table, digest = _read(input_path, policy)
    draft = prepare(table, policy, progress, known, explain)
    del table  # the quasi-identifiers' cells are no longer needed
    with unproved_removed(output_path), files.written_whole(output_path) as path:
        progress("writing the release")
        files.write(draft.frame, path, kind, compressed=output_path.endswith(".gz"))
        progress("reading the release back")
        written = files.read_as(path, kind, policy.measured)
        certificate, release = measure(Table(written.frame), draft.schema, policy, draft.truth, progress)
        certificate = _complete(certificate, policy, draft, started).extended(
            input={"sha256": digest}, output={"sha256": written.sha256}
        )
        _demand(certificate)
        _save_plan(draft, plan)
        if output_path != files.STANDARD:
            with files.written_whole(certificate_path(output_path)) as proof:
                proof.write_text(certificate.to_json())
    return Outcome(certificate, release, draft)


def _existing(path: str | Path | None, policy: Policy, explain: bool) -> Plan | None:
    """The plan in a file that exists already; raises InputError where a plan can be neither made nor applied."""
    if path is None:
        return None
    if not policy.recodes_globally:
        raise InputError("plan: the policy's method recodes each class on its own; name one such as full-domain")
    if not Path(path).exists():
        return None
    if explain:
        raise InputError(f"plan '{path}': exists and is applied, so nothing is searched; explain it where it is made")
    return Plan.load(path)


def _save_plan(draft: Draft, path: str | Path | None) -> None:
    """Writes the plan of a release that was let out, whole; one that was applied stays as it is."""
    if path is not None and draft.plan is not None:
        with files.written_whole(str(path)) as place:
            place.write_text(draft.plan.to_json(), encoding="utf-8")


def _read(path: str, policy: Policy) -> tuple[Table, str]:
    source = files.read(path, policy.measured)
    return Table(source.frame), source.sha256


def certificate_path(output_path: str) -> str:
    return f"{output_path}.certificate.json"


@contextmanager
def unproved_removed(output_path: str) -> Iterator[None]:
    """Where the release can't take its place after all, its certificate does not stay alone."""
    proof = Path(certificate_path(output_path))
    before = proof.stat().st_ino if proof.exists() else None
    try:
        yield
    except BaseException:
        if proof.exists() and proof.stat().st_ino != before:
            proof.unlink()
        raise


def _check_paths(input_path: str, output_path: str, policy: Policy) -> None:
    """Raises InputError where an output would overwrite what is read."""
    if output_path == files.STANDARD:
        return
    read = [Path(name) for name in (input_path, *policy.files) if name != files.STANDARD]
    for output in (Path(output_path), Path(certificate_path(output_path))):
        if any(output.exists() and name.exists() and output.samefile(name) for name in read):
            what = "the input" if output.exists() and output.samefile(read[0]) else "a file that the policy reads"
            raise InputError(f"output '{output}': is {what}; name another file, nothing that is read is overwritten")


def prepare(
    table: Table, policy: Policy, progress: Progress = silent, plan: Plan | None = None, explained: bool = False
) -> Draft:
    """The release as it would be published; not yet measured. plan: to be applied instead of a search."""
    policy.build_method("publish")  # a method that can't be is told before the data is looked at
    progress("checking the data against the policy")
    table = ordered(table, policy)
    fitting, found = bind(table, policy)
    if fitting is None:
        raise InputError.from_findings(found)
    policy = policy.with_default_method(fitting.schema)
    way = _way(fitting, policy, progress, plan, explained)
    table = table.without([attribute.name for attribute in fitting.schema.quasi])
    progress("recoding")
    recoded = recode(table, fitting, way.found, policy)
    missing = int(fitting.encoded.suppressed.sum())
    reasons = ({"missing quasi-identifier": missing} if missing else {}) | way.reasons
    return Draft(recoded.frame, fitting.schema, recoded.truth, way.method, reasons, way.seconds, way.plan, way.told)


class _Way(NamedTuple):
    """How a table is recoded, and what there is to say about it."""

    found: Partition | Cut | GlobalRecoding
    seconds: float
    method: dict[str, Any]
    reasons: dict[str, int]
    plan: Plan | None = None
    told: dict[str, Any] = {}


def _way(fitting: Bound, policy: Policy, progress: Progress, plan: Plan | None, explained: bool) -> _Way:
    """What the policy's method, or a plan, does with the table."""
    method = {"name": policy.method_name, "parameters": policy.method_parameters}
    if plan is not None:
        return _planned(fitting, policy, progress, plan)
    matrix = fitting.matrix()
    everybody = fitting.published(matrix.subjects)
    progress(f"finding classes by {policy.method_name}")
    found, seconds = find_classes(matrix, everybody, policy, progress)
    if not isinstance(found, Cut):
        if explained:
            raise InputError(
                f"method '{policy.method_name}': recodes each class on its own, so no level or column forced it; "
                "--explain is for methods of global recoding, such as full-domain"
            )
        return _Way(found, seconds, method, {})
    method["account"] = dict(found.account)
    given_up = int((found.turn() < 0).sum())
    reasons = {"suppressed by the method": given_up} if given_up else {}
    saved = Plan.of(found, fitting.encoded.attributes, fitting.schema.render, method)
    told: dict[str, Any] = {}
    if explained:
        progress("asking what would be cheaper")
        told["explanation"] = explanation_of(matrix, everybody, found, policy, _search)
    return _Way(found, seconds, method, reasons, saved, told)


def _search(matrix: Matrix, everybody: Classes, policy: Policy) -> Cut:
    found = find_classes(matrix, everybody, policy)[0]
    assert isinstance(found, Cut)
    return found


def _planned(fitting: Bound, policy: Policy, progress: Progress, plan: Plan) -> _Way:
    """The table recoded by a plan that another one gave."""
    progress("applying the plan")
    started = time.process_time()
    encoded = fitting.encoded
    followed = follow(
        plan, encoded.attributes, fitting.everybody, encoded.suppressed, policy.build_promises(), fitting.schema.render
    )
    not_covered = int((followed.recoding.turn < 0).sum()) - followed.broken - int(encoded.suppressed.sum())
    reasons = {"not covered by the plan": not_covered, "suppressed by the method": followed.broken}
    told = {"plan": {"uncovered": followed.uncovered, "suppressed": followed.broken}}
    reasons = {why: count for why, count in reasons.items() if count}
    made_by = {key: plan.method[key] for key in ("name", "parameters")}  # its account is about another table
    return _Way(followed.recoding, time.process_time() - started, made_by, reasons, None, told)


def ordered(table: Table, policy: Policy) -> Table:
    """The table as methods see it: as it came, or by content where the release is to be shuffled."""
    if policy.model.render.order == "input":
        return table
    # ties are broken by what records hold, so that nothing of the input's order is left
    return Table(table.frame[_by_content(table.frame)])


def find_classes(
    matrix: Matrix, everybody: Classes, policy: Policy, progress: Progress = silent
) -> tuple[Partition | Cut, float]:
    """The classes, every promise kept, and the CPU seconds it took; raises InfeasibleError where there are none.

    A method that recodes globally finds a cut, which tells the classes.
    """
    promises = policy.build_promises()
    findings = nearest_feasible(promises, everybody, {name: len(codes) for name, codes in matrix.populations.items()})
    if findings:
        raise InfeasibleError(findings[0], findings[1:])
    bound = BoundPromises(promises, everybody)
    method, rng = policy.build_method("publish"), np.random.default_rng(policy.model.seed)
    started = time.process_time()
    found: Partition | Cut
    if callable(getattr(method, "cut", None)):
        _require_covered(promises, matrix)
        found = method.cut(matrix, bound, rng, progress)
    else:
        found = repair(matrix, method.partition(matrix, bound, rng), bound)
    return found, time.process_time() - started


def _require_covered(promises: list[Any], matrix: Matrix) -> None:
    """Raises InputError where some quasi-identifier is in no promise: a cut would publish it as it is."""
    if any(promise.model != "k-anonymity" or not promise.attributes for promise in promises):
        return
    covered = {name for promise in promises for name in promise.attributes}
    left = [name for name in matrix.names if name not in covered]
    if left:
        raise InputError.from_findings(
            [
                f"attribute '{name}': is a quasi-identifier and in no k-anonymity promise, so it would be published as "
                "it is; add it to a promise, or give it the role 'plain'"
                for name in left
            ]
        )


@dataclass(frozen=True)
class Recoded:
    """The published frame, and what the owner knows about its rows."""

    frame: pl.DataFrame
    truth: Truth


def recode(table: Table, fitting: Bound, found: Partition | Cut | GlobalRecoding, policy: Policy) -> Recoded:
    """The release as it would be published, shuffled where the policy says so."""
    encoded = fitting.encoded
    recoding = _recoding(found, encoded, fitting.schema.render)
    suppressed = recoding.suppressed
    withheld = _must_withhold(policy.build_promises(), fitting.everybody, suppressed)
    frame = _recoded(table, fitting.schema, encoded, recoding, withheld)
    if fitting.schema.render.order == "input":
        return Recoded(frame, Truth(table, encoded, None, suppressed))
    rows = mixed(frame, policy.model.seed)
    return Recoded(frame[rows], Truth(table, encoded, rows, suppressed))


def _recoding(
    found: Partition | Cut | GlobalRecoding, encoded: EncodedTable, render: Render
) -> Recoding | GlobalRecoding:
    """What was found for the records that have all values, carried to the whole table."""
    if isinstance(found, GlobalRecoding):
        return found
    of_record = np.full(encoded.records, -1, dtype=np.int32)
    if isinstance(found, Cut):
        of_record[~encoded.suppressed] = found.turn()
        return GlobalRecoding.of(found, of_record, encoded.attributes, render)
    of_record[~encoded.suppressed] = found.labels
    return Recoding.of(of_record, found.count, encoded.attributes)


@dataclass(frozen=True)
class Bound:
    """A table that fits its policy. everybody: all records, suppressed ones too, in one class.

    label: (n,) what the classification metric predicts, or None. populations: as in `Matrix`.
    """

    schema: Schema
    encoded: EncodedTable
    everybody: Classes
    label: np.ndarray | None = None
    populations: dict[str, np.ndarray] = field(default_factory=dict)

    def matrix(self) -> Matrix:
        """The records that are not suppressed."""
        return replace(self.encoded.matrix(self.label), populations=self.populations)

    def published(self, subjects: np.ndarray | None) -> Classes:
        """The records that are not suppressed, in one class. subjects: theirs, numbered densely."""
        kept = ~self.encoded.suppressed
        return self.everybody if kept.all() else self.everybody.only(kept, subjects)


def bind(table: Table, policy: Policy) -> tuple[Bound | None, list[Any]]:
    """The table bound and encoded, or everything that is wrong with it."""
    schema, found = policy.bind(table)
    if schema is None:
        return None, list(found)
    findings: list[Any] = list(found)
    encoded, more = encode(table, schema)
    findings += more
    sensitive = {}
    for attribute in schema.sensitive:
        earlier = policy.earlier.get(attribute.name)
        column, more = encode_sensitive(attribute, table.column(attribute.name), schema, earlier)
        findings += more
        if column is not None:
            sensitive[attribute.name] = column
    findings += _undesignated(policy, sensitive)
    if encoded is None or findings:
        return None, findings
    populations, wrong = encode_populations(policy.populations, schema, encoded)
    if wrong:
        return None, list(wrong)
    labels = np.zeros(table.records, dtype=np.int32)
    label = None if schema.label is None else table.column(schema.label).codes
    return Bound(schema, encoded, Classes(labels, 1, encoded.subjects, sensitive), label, populations), []


def _undesignated(policy: Policy, sensitive: dict[str, SensitiveColumn]) -> list[Finding]:
    """Values that a promise designates and nobody has nor could have: a misspelt one would protect nothing."""
    findings = []
    for promise in policy.build_promises():
        for name in promise.attributes if getattr(promise, "values", ()) else ():
            if name not in sensitive:
                continue
            lost = tuple(value for value in promise.values if sensitive[name].place_of(value) is None)
            if lost:
                message = (
                    f"promise '{promise.model}': {len(lost)} of its designated values occur in no record of '{name}' "
                    "as they are written; mend them, or leave them out"
                )
                findings.append(Finding(Fault.POLICY, name, len(lost), message, lost))
    return findings


def _must_withhold(promises: list[Any], classes: Classes, suppressed: np.ndarray) -> bool:
    """Whether the suppressed records must hide their sensitive values, too.

    Who lies in no published class is known to be among the suppressed; they are safe only if they
    keep the promises as a class of their own.
    """
    if not suppressed.any():
        return False
    labels = np.where(suppressed, 0, -1).astype(np.int32)
    return not BoundPromises(promises, classes).hold(labels, 1)[0]


def _recoded(
    table: Table, schema: Schema, encoded: EncodedTable, recoding: Recoding | GlobalRecoding, withheld: bool
) -> pl.DataFrame:
    """The published columns, in the order of the input."""
    place = {e.attribute.name: j for j, e in enumerate(encoded.attributes)}
    columns = []
    for attribute in schema.published:
        if attribute.role is Role.QUASI:
            j = place[attribute.name]
            columns.append(recoding.column(j, encoded.attributes[j], schema.render))
        elif attribute.role is Role.IDENTIFIER:
            columns.append(pseudonyms(table.frame[attribute.name]))
        elif attribute.role is Role.SENSITIVE and withheld:
            columns.append(_starred(table.frame[attribute.name], recoding.suppressed, schema.render.suppressed))
        else:
            columns.append(table.frame[attribute.name])
    return pl.DataFrame(columns)


def mixed(frame: pl.DataFrame, seed: int) -> np.ndarray:
    """An order of the rows that follows from what they show alone: the seed, which is published, does not undo it."""
    return _by_content(frame)[np.random.default_rng([seed, 1]).permutation(frame.height)]


def _by_content(frame: pl.DataFrame) -> np.ndarray:
    """Rows in the order of what they show as text; which of several equal rows comes first shows nowhere."""
    text = frame.select(pl.all().cast(pl.String))
    return text.select(pl.arg_sort_by(text.columns)).to_series().to_numpy()


def _starred(series: pl.Series, rows: np.ndarray, mark: str) -> pl.Series:
    """The column without the values of these rows: the mark in text, no value in other types."""
    if series.dtype in (pl.Categorical, pl.Enum):
        series = series.cast(pl.String)
    star = pl.Series([mark if series.dtype == pl.String else None], dtype=series.dtype)
    return series.zip_with(~pl.Series(rows), star.new_from_index(0, len(series)))


def _complete(certificate: Certificate, policy: Policy, draft: Draft, started: float) -> Certificate:
    return certificate.extended(
        verb="publish",
        method=draft.method,
        seed=policy.model.seed,
        seconds={"total": time.process_time() - started, "method": draft.seconds},
        **draft.told,
    )


def _demand(certificate: Certificate) -> None:
    """Let nothing out that does not keep every promise."""
    broken = [
        f"promise '{p['model']}' does not hold on the release: asked {p['asked']}, measured {p['measured']}"
        for p in certificate["promises"]
        if not p["holds"]
    ]
    broken += [f"{count} published records are {fault}" for fault, count in certificate["faults"].items() if count]
    if broken:
        raise PromiseError(f"{broken[0]}; the release is withheld, nothing was written", broken[1:])
