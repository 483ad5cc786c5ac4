"""From a released table to its certificate: what is measured, and how it is stated."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from shoal.auditor import reading
from shoal.auditor.in_parts import measure_in_parts
from shoal.auditor.reading import Measures
from shoal.auditor.sharing import household_joined, household_shown, rows_linked
from shoal.auditor.verdict import CertifiedRelease, not_promised, release_warnings
from shoal.data import cores
from shoal.data.certificate import Certificate
from shoal.data.certificate_shape import RISK, UNKNOWN, PromiseReport, people_key
from shoal.data.classes import Classes
from shoal.data.coded_table import CodedTable
from shoal.data.encoding import encode, encode_subjects
from shoal.data.progress import Progress, no_progress
from shoal.data.release import Release
from shoal.data.room import SharedRoom
from shoal.data.row_order import Followed
from shoal.data.table import Table
from shoal.data.truth import Truth
from shoal.data.warnings import PRESENCE_DISCLOSED, REMOVED_ROLES, ReleaseWarning
from shoal.errors import InputError
from shoal.policy import registry
from shoal.policy.problem import Problem
from shoal.privacy.reidentification import sample_report
from shoal.privacy.two_tables import Groups, parted
from shoal.privacy.two_tables import contradicted as contradicted_by
from shoal.utility.gcp import ColumnFigures
from shoal.utility.tally import Tally
from shoal.version import VERSION


@dataclass(frozen=True)
class Measured(CertifiedRelease):
    """A released table as its readers see it, measured.

    figures: of its columns. scale: by what and in how many parts it was measured, as a certificate
    states it.
    """

    figures: ColumnFigures
    scale: dict[str, int | None]


def measure(
    released: Table,
    problem: Problem,
    truth: Truth | None,
    progress: Progress = no_progress,
    measures: Measures | Groups | None = None,
) -> Measured:
    """The certificate of a released table, and the table as its readers see it.

    measures: what promises are measured with, of a stream or of groups; by default, where there
    is a reference, it alone.
    """
    followed = reading.order_followed(truth, problem.schema.render)
    progress("reading the release")
    open_columns = not_promised(released, problem.policy)
    release: Release | None = None
    scale: dict[str, int | None] = {"threads": cores.threads()}
    if isinstance(released, CodedTable):
        room = released.room
        tally, promises, parts, classes = measure_in_parts(
            released, problem, truth, open_columns, followed, progress
        )
        scale |= {"memory": room.limit, "room_bytes": room.on_disk, "parts": parts}
        scale |= {"tasks": room.tasks} if isinstance(room, SharedRoom) else {}
    else:
        release = reading.read_release(released, problem, truth)
        classes = release.classes
        progress("measuring the promises")
        promises = reading.promise_reports(problem, release, released, measures)
        progress("measuring utility and risk")
        tally = Tally(problem.schema, registry.build_metrics(), open_columns)
        if truth is not None:
            progress("comparing with the original")
        near = (
            None if followed is None else reading.nearest_to_place(classes.labels, followed.place)
        )
        tally.take(released, release, truth, near)
    original = None if truth is None else truth.original
    certificate = _certificate_of(tally, promises, released, original, problem, followed, classes)
    if classes is not None and (risks := sample_report(classes)) is not None:
        certificate = certificate.extended(individual_risk=risks)
    return Measured(certificate, release, tally.figures(), scale)


def _certificate_of(
    tally: Tally,
    promises: list[PromiseReport],
    released: Table,
    original: Table | None,
    problem: Problem,
    followed: Followed | None,
    classes: Classes | None,
) -> Certificate:
    """The certificate of a release whose parts were added up.

    original: None if not at hand. followed: the column that rows in the input's order follow.
    classes: of the whole release; None where nothing is asked of several at once.
    """
    linked = None
    if classes is not None and problem.required_k is not None:
        plain = [name for name in tally.not_promised if problem.role_of(name) == "plain"]
        columns = {name: released.column(name).codes for name in plain}
        linked = rows_linked(classes, columns, problem.required_k)
    people = people_key(problem.subject, original is not None or problem.subject in released.names)
    scores = tally.scores()
    content = {
        "shoal": VERSION,
        **dict.fromkeys(("date", "build", "policy")),
        "verb": "audit",
        "method": None,
        "seed": None,
        "records": {
            "in": None if original is None else original.records,
            "out": tally.records,
            "suppressed": tally.suppressed,
            "withheld": tally.withheld,
        },
        "subjects": tally.subjects,
        "people": people,
        "counted": "rows" if people == UNKNOWN else "subjects",
        "classes": tally.classes(),
        "promises": promises,
        "together": tally.together(people),
        "utility": {name: scores[name] for name in scores if name not in RISK},
        "risk": {name: scores[name] for name in scores if name in RISK},
        "input": None,
        "output": None,
    }
    fault_counts: dict[str, int] = {} if original is None else dict(tally.faults)
    kept = unremoved_identifiers(released, original, problem)
    if kept:
        fault_counts["not_removed"] = len(kept)
    if tally.unrounded:
        fault_counts["unrounded"] = tally.unrounded
    if original is not None or fault_counts:
        content["faults"] = fault_counts
    if starred := tally.starred():
        content["starred"] = starred
    certificate = Certificate(content)
    said = release_warnings(certificate, tally.withheld_people, problem)
    said += [] if linked is None else [linked]
    home = household_shown(released.names, problem.schema)
    if classes is not None and home is not None:
        said.append(household_joined(home, released.column(home).codes, classes.labels))
    if followed is not None:
        everybody = certificate["together"]["people"]
        said.append(reading.order_kept(followed, len(tally.found_by_order), everybody))
    return certificate.warned(*said)


PSEUDONYM = re.compile(r"[0-9a-f]{32}")


def unremoved_identifiers(released: Table, original: Table | None, problem: Problem) -> list[str]:
    """Columns of a release that the policy removes, or names instead of giving pseudonyms.

    A subject column is left out of account: releases that still hold it are counted in people.
    """
    kept, declared = [], problem.policy.model.attributes
    if problem.policy.model.other == "drop":
        kept = [name for name in released.names if name not in declared]
    for name, attribute in declared.items():
        if name not in released.names:
            continue
        if attribute.pseudonym is not None:
            given = set(released.column(name).cells)
            named = not all(PSEUDONYM.fullmatch(cell) for cell in given)
            if named or (original is not None and given & set(original.column(name).cells)):
                kept.append(name)
        elif attribute.role in REMOVED_ROLES:
            kept.append(name)
    return kept


def measure_two_tables(
    released: Table,
    problem: Problem,
    truth: Truth | None,
    original: Table | None,
    progress: Progress = no_progress,
) -> tuple[Measured, Table]:
    """The certificate of two tables that were joined, and what is read of them without groups.

    Promises are measured by group, all else by what rows show: nothing of a person is changed, and
    whoever is alone with its quasi-identifiers is found. truth: of the owner, who knows the rows.
    original: in any order; at least no row may contradict it.
    """
    schema = replace(problem.schema, label=None)  # no row shows it
    hidden = schema.sensitive[0].name
    problem = replace(problem, schema=schema)
    table, groups = parted(released, hidden, truth)
    measured = measure(table, problem, truth, progress, groups)
    certificate = measured.certificate
    if original is not None:
        progress("comparing with the original")
        people, _ = encode_subjects(original, schema)
        several = 0 if people is None else int((np.bincount(people) > 1).sum())
        if several:  # rows of a group may be of one person, or a person in several
            raise InputError(
                f"original: {several} people have several records, so two tables of it promise"
                " nothing about people; publish one record of each"
            )
        found = contradicted_by(table, groups, original, schema)
        known = certificate.get("faults") or {"uncovered": 0, "changed": 0}
        certificate = certificate.extended(
            faults=known | {"changed": max(known["changed"], found)},
            utility=certificate["utility"]
            | {"query_error": _query_error(table, measured.release, groups, original, problem)},
        )
    alone = certificate["together"]["alone"]
    text = (
        "Quasi-identifiers are shown as they are: whoever knows a person's finds whether the person"
        f" is in the table, and its group. {alone} of {certificate['together']['people']} are alone"
        " with theirs"
    )
    certificate = certificate.extended(**groups.stated())
    certificate = certificate.warned(ReleaseWarning(PRESENCE_DISCLOSED, text))
    return replace(measured, certificate=certificate), table


def _query_error(
    table: Table, release: Release, groups: Groups, original: Table, problem: Problem
) -> float | None:
    """How far counts by group are from those of the original; None where it does not fit."""
    encoded, _ = encode(original, problem.schema)
    if encoded is None:
        return None
    name = problem.schema.sensitive[0].name
    shown, own = table.column(name), original.column(name)
    place = {cell: code for code, cell in enumerate(sorted({*shown.cells, *own.cells}))}
    published, people = (
        np.array([place[cell] for cell in column.cells], dtype=np.int64)[column.codes]
        for column in (shown, own)
    )
    return group_query_error(
        People([column.lo[column.codes] for column in release.columns], published),
        groups.labels,
        People([one.value_of_code()[one.codes] for one in encoded.attributes], people),
        problem.seed,
    )


# Counts asked of two tables: how many people in two ranges have one of three sensitive values.
#
# Xiao, Tao. VLDB 2006 (the estimate: in each group, the rows in the ranges times the share of the
# group that has the values). Which queries are asked is ours.


QUERIES = 500
ATTRIBUTES, VALUES = 2, 3  # of a query, if there are as many
SANITY = 0.001  # share of the records, or 1, below which no error is taken relative to the count
MOST_READ = 200_000_000  # rows that all queries read; large tables are asked fewer of them
FEWEST = 20


@dataclass(frozen=True)
class People:
    """Rows of a table, in any order.

    quasi: by attribute, (n,) float64, number, place or leaf, NaN for no value. sensitive: (n,)
    places of the values, 0..values-1, numbered alike in every table that is compared.
    """

    quasi: Sequence[np.ndarray]
    sensitive: np.ndarray


def group_query_error(
    published: People, labels: np.ndarray, original: People, seed: int
) -> float | None:
    """Mean of |estimate - truth| / max(truth, a thousandth of the records, 1) over random queries.

    published: each row with any value of its group; labels: (n,) its group. A range lies between
    two random records' values. Neither order of rows changes the queries. None without records.
    """
    records = len(labels)
    if not records:
        return None
    rng = np.random.default_rng([seed, 5])
    ranked = [np.sort(numbers[~np.isnan(numbers)]) for numbers in original.quasi]
    sizes = np.maximum(np.bincount(labels), 1)
    values = int(original.sensitive.max()) + 1
    errors = []
    for _ in range(max(FEWEST, min(QUERIES, MOST_READ // records))):
        inside, truth = np.ones(records, dtype=bool), np.ones(len(original.sensitive), dtype=bool)
        for j in rng.permutation(len(ranked))[:ATTRIBUTES]:
            known = ranked[j]
            low, high = np.sort(known[rng.integers(0, len(known), 2)]) if len(known) else (0, 0)
            inside &= (low <= published.quasi[j]) & (published.quasi[j] <= high)
            truth &= (low <= original.quasi[j]) & (original.quasi[j] <= high)
        asked = np.zeros(max(values, int(published.sensitive.max()) + 1), dtype=bool)
        asked[rng.permutation(values)[:VALUES]] = True
        truth &= asked[original.sensitive]
        having = np.bincount(labels, weights=asked[published.sensitive], minlength=len(sizes))
        rows = np.bincount(labels, weights=inside, minlength=len(sizes))
        counted = int(truth.sum())
        estimate = float((rows * having / sizes).sum())
        errors.append(abs(estimate - counted) / max(counted, SANITY * records, 1))
    return float(np.mean(errors))
