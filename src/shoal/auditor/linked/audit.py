"""Audit of linked tables: measure, on nothing but the published files, who hides among how many.

With the originals beside the release, the matching attack is tried as well, and what was lost is
measured. The certificate names which table, and how many known rows of it, betray people.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from shoal.auditor.checks import mean_loss
from shoal.auditor.description import column_roles, provenance
from shoal.auditor.linked.kept import kept_of_original
from shoal.auditor.linked.known_dates import KnownDates
from shoal.auditor.linked.labels import exposures
from shoal.auditor.linked.matching import matching_attack
from shoal.auditor.linked.reading import LinkedRelease, described_output, read_linked_tables
from shoal.auditor.verdict import missing_counted, of_cells
from shoal.connectors.linked_tables import LinkedSources
from shoal.connectors.location import Location
from shoal.data.certificate import Certificate
from shoal.data.certificate_shape import KNOWN, RISK, UTILITY, ColumnReport, PromiseReport
from shoal.data.classes import Classes, Sizes
from shoal.data.linked import HULL, PEOPLE, Keys, LinkedTables, rows_column
from shoal.data.numbers import alike, run_entries
from shoal.data.progress import Progress, no_progress
from shoal.data.regular_files import Json
from shoal.data.table import Table
from shoal.data.warnings import ReleaseWarning
from shoal.errors import InputError
from shoal.policy.binding import linked
from shoal.policy.binding.linked import bound_linked
from shoal.policy.consistency import build_promise
from shoal.policy.linked import attributes_of, elements_of
from shoal.policy.model import AnchorPolicy, PolicyModel
from shoal.policy.policy import Policy
from shoal.policy.problem import LinkedProblem, Problem
from shoal.version import VERSION

MOST_ASKED = 2
"""Known rows, of whose candidates promises about values are asked."""

NOT_COVERED = "what other releases of the same people tell, unless they are named under 'beside'"


@dataclass(frozen=True)
class LinkedAudit:
    """What an audit of linked tables found, the release as it was read, and its original where it
    is at hand.
    """

    certificate: Certificate
    release: LinkedRelease
    truth: LinkedTables | None


def audit_linked(
    released: object,
    policy: Policy,
    original: object = None,
    *,
    progress: Progress = no_progress,
    may_lack_dates: bool = False,
) -> LinkedAudit:
    """The audit of a release in a folder, a workbook, a database or frames by name.

    released, original: a `LinkedSource`. original: what it was made of. may_lack_dates: whether the
    audit may go on without known dates, which then do not count in k. Raises InputError with every
    finding where tables can't be read, and where gaps are exact, the original is not given and it
    may not; what is wrong with a release that can be read is a fault on the certificate, and a
    promise that fails does not hold.
    """
    started = time.process_time()
    policy.require_answers()
    problem = LinkedProblem(policy)
    progress("reading the release")
    sources = linked.read_linked_release(released, problem)
    truth, own = None, None
    if has_exact_gaps(policy.model) and original is None and not may_lack_dates:
        raise InputError(
            "policy, anchor.gaps: what a known date tells where gaps are exact can't be judged on"
            " the release alone; add --original"
        )
    if original is not None:
        progress("reading the original")
        own = linked.read_linked(original, problem, warns=True)
        truth = bound_linked(own.tables, problem)
    audit = measure_linked(sources, problem, truth, progress)
    output = None
    if len(sources.hashes) == len(sources.tables):  # frames have none
        place = Location(linked.named_sources(released, problem, None)[-1])
        written = policy.notation.written
        output = described_output(place, sources.sha256, policy.render, written)
    certificate = audit.certificate.extended(
        input=None if own is None or not own.hashes else {"sha256": own.sha256},
        output=output,
        seconds={"total": time.process_time() - started, "method": None},
    )
    return replace(audit, certificate=certificate)


def has_exact_gaps(model: PolicyModel) -> bool:
    """Whether a known date tells something that needs the original to be judged."""
    return model.anchor is not None and model.anchor.gaps == "exact"


def measure_linked(
    sources: LinkedSources,
    problem: LinkedProblem,
    truth: LinkedTables | None,
    progress: Progress,
    *,
    owners: np.ndarray | None = None,
) -> LinkedAudit:
    """The certificate of a release that was read. truth: its original, where it is at hand.

    owners: (people,) the person of the original behind each published one, of a caller who knows
    it, and checks that every cell covers its true value. Then all who show the same fit each of
    them, and nobody has to be matched. Where gaps are exact, known dates count in k for such a
    caller alone; else they are judged by who is matched, and without the original not at all.
    """
    schemas = None if truth is None else {t.name: t.schema for t in truth.tree.tables}
    release = read_linked_tables(sources.tables, problem, schemas)
    progress("measuring the promises")
    model, k = problem.model, problem.policy.required_k or 2
    is_exact = has_exact_gaps(problem.model)
    dates = KnownDates(release, truth) if truth is not None and is_exact else None
    dated = None if dates is None or owners is None else dates.of_everybody(owners)
    promises = _promises(release, model, dated)
    columns = _columns(release, problem, sources)
    faults = dict(release.faults)
    measured: Json = {
        "keys": model.keys,
        "known_rows": release.tree.known_rows,
        "assumed": list(model.assume),
        "exposed": list(_exposed(release, k)),
        "audited": "files" if truth is None else "originals",
        "not_covered": [NOT_COVERED],
        "matching": None,
        "bundle_loss": None,
        "anchor": None if model.anchor is None else _anchor(release, model.anchor, dated),
    }
    if truth is not None:
        measured["bundle_loss"] = bundle_loss(release, truth)
        rows = [(release.tables[name].rows, own.count) for name, own in truth.rows.items()]
        faults["invented"] = sum(max(shown - own, 0) for shown, own in rows)
    kept: list[ReleaseWarning] = []
    if truth is not None and owners is None:
        progress("trying to match people")
        rng = np.random.default_rng([model.seed, 48])
        found, unmoved = matching_attack(release, truth, k, rng, dates)
        measured["matching"] = found
        faults["matched"] = found["below"]
        if release.moved is not None:
            faults["odd_days"] += unmoved
        faults |= {"kept_keys": 0, "kept_order": 0}
        for fault, count, finding in kept_of_original(release, truth, rng):
            faults[fault] += count
            kept.append(finding)
    certificate = Certificate(
        {
            "shoal": VERSION,
            **provenance("audit", problem),
            "verb": "audit",
            "method": None,
            "seed": None,
            "people": KNOWN,
            "counted": "subjects",
            **_sizes(release, truth),
            "promises": promises,
            "together": _together(release, k),
            "utility": dict.fromkeys(UTILITY) | {"gcp": mean_loss(columns)},
            "risk": dict.fromkeys(RISK) | _risk(release, promises),
            "columns": columns,
            "warnings": [],
            "faults": faults,
            "tables": [_table(release, name, problem, sources, truth) for name in release.tables],
            "linked": measured,
            "input": None,
            "output": None,
        }
    )
    cells = of_linked_cells(sources.tables, problem)
    said = [*kept, *_warnings(model), *cells, *missing_counted(certificate)]
    return LinkedAudit(certificate.warned(*said), release, truth)


# Promises.


def _promises(
    release: LinkedRelease, asked: PolicyModel, dated: np.ndarray | None
) -> list[PromiseReport]:
    """Every promise of the policy, k-anonymity over all tables, others slot by slot.

    dated: as `KnownDates.of_everybody`, where gaps are exact.
    """
    labels = np.where(release.withheld, -1, release.view.labels)
    _, dense = np.unique(labels, return_inverse=True)
    labels = dense.astype(np.int32) - np.int32(release.withheld.any())
    people = _PeopleClasses(release, labels)
    reports = []
    for promise in asked.promises:
        names = attributes_of(promise)
        if not names:
            report = build_promise(promise).report(people.classes)
            reports.append(_with_known_rows(report, release, dated) if "k" in promise else report)
            continue
        table = names[0].rpartition(".")[0] or PEOPLE
        own = release.tables[table].declared.own(promise)
        assert own is not None  # no promise is about several tables
        model = build_promise(own)
        is_by_person = model.model == "holder-share"
        shown = people.of_rows(table, is_by_person)
        among = people.candidates(table, is_by_person) if release.tree.known_rows else ()
        if not model.works_in_parts and release.tree.known_rows:
            raise InputError(
                f"promise '{model.model}': can't be asked of those whom known rows fit; say 'known:"
                " all', or leave it out"
            )
        parts = [shown, *among]
        report = model.total([model.part(one, shown) for one in parts])
        reports.append(report | {"attributes": names})
    return reports


def _with_known_rows(
    report: PromiseReport, release: LinkedRelease, dated: np.ndarray | None
) -> PromiseReport:
    """k-anonymity where any m rows are known, too, or a date: the fewest people who fit what is
    known, or by how many times the likeliest is less than certain.
    """
    if report["measured"] is None:
        return report
    fewest = release.view.fewest_alike[~release.withheld]
    likely = [] if dated is None or not len(dated) else [int((dated[:, 0] // dated[:, 1]).min())]
    measured = min(int(fewest.min()), int(report["measured"]), *release.loose.values(), *likely)
    return report | {"measured": measured, "holds": measured >= report["asked"]}


@dataclass(frozen=True)
class _PeopleClasses:
    """People who are alike in all tables, and their rows as promises about values see them.

    labels: (people,) int32, -1 who shows nothing.
    """

    release: LinkedRelease
    labels: np.ndarray

    @property
    def count(self) -> int:
        return int(self.labels.max(initial=-1)) + 1

    @property
    def classes(self) -> Classes:
        return Classes(self.labels, self.count, None, self.release.tables[PEOPLE].sensitive)

    def of_rows(self, name: str, is_by_person: bool) -> Classes:
        """The rows of a table by slot: those of a class that show the same, and hang from rows that
        do, can't be told apart.

        is_by_person: instead by class of people alone, of whom some may have no row.
        """
        table, person = self.release.tables[name], self.release.view.person_of[name]
        label = self.labels[person]
        if is_by_person:
            absent = np.setdiff1d(np.arange(len(self.labels)), person)
            sensitive = {n: c.with_none(len(absent)) for n, c in table.sensitive.items()}
            subjects = np.concatenate([person, absent]).astype(np.int32)
            return Classes(self.labels[subjects], self.count, subjects, sensitive)
        kept = label >= 0
        rows = self.release.view.slots_of(name)[kept]
        slots = np.full(len(label), -1, np.int32)
        slots[kept] = alike([label[kept], rows], len(rows))
        count = int(slots.max(initial=-1)) + 1
        return Classes(slots, count, person.astype(np.int32), table.sensitive)

    def candidates(self, name: str, is_by_person: bool) -> Iterator[Classes]:
        """The rows of a table of all whom known rows fit, at most two of them: by slot, or by set
        of known rows alone. Of a table with a number, and below, the rows that are known; of one
        above, also those from which a known one hangs.
        """
        view, shown = self.release.view, self.of_rows(name, is_by_person)
        subjects = np.arange(len(shown.labels)) if shown.subjects is None else shown.subjects
        levels = [0] if is_by_person else view.asked_levels(name)
        for size in range(1, min(self.release.tree.known_rows or 0, MOST_ASKED) + 1):
            sets = view.known_sets(size)
            for level in levels:
                owner = subjects if level == 0 else view.path(name)[level]
                by, known = view.known_rows(sets, level)
                order = np.argsort(owner, kind="stable")
                first, last = (
                    np.searchsorted(owner[order], known, side) for side in ("left", "right")
                )
                at, place = run_entries(first, last - first)
                rows = order[place]
                slots = () if is_by_person else (shown.labels[rows],)
                labels = alike([*(one[at] for one in by), *slots], len(rows))
                found = shown.only(rows, subjects[rows].astype(np.int32))
                count = int(labels.max(initial=-1)) + 1
                yield replace(found, labels=labels.astype(np.int32), count=count)


# Figures.


def _sizes(release: LinkedRelease, truth: LinkedTables | None) -> Json:
    people, withheld = release.tables[PEOPLE].rows, int(release.withheld.sum())
    labels = release.view.labels[~release.withheld]
    return {
        "records": {
            "in": None if truth is None else truth.people.count,
            "out": people,
            "suppressed": withheld,
            "withheld": withheld,
        },
        "subjects": people,
        "classes": Sizes.of(np.bincount(labels)).stated,
    }


def _together(release: LinkedRelease, k: int) -> Json:
    labels = release.view.labels[~release.withheld]
    alike = np.bincount(labels)[labels] if len(labels) else labels
    names = [
        table.qualified(column.name)
        for table in release.tree.tables
        for column in release.tables[table.name].columns
    ]
    return {
        "attributes": names,
        "asked": k,
        "min": int(alike.min()) if len(alike) else None,
        "alone": int((alike == 1).sum()),
        "below": int((alike < k).sum()),
        "people": len(alike),
    }


def _risk(release: LinkedRelease, promises: list[PromiseReport]) -> dict[str, float]:
    """The chance to pick a person out of those who fit, at most and on average over people."""
    measured = [p["measured"] for p in promises if p["model"] == "k-anonymity" and p["measured"]]
    if not measured:
        return {}
    fewest = release.view.fewest_alike[~release.withheld]
    most, mean = 1 / min(measured), float(np.mean(1 / fewest))
    return {
        "prosecutor_max": most,
        "prosecutor_mean": mean,
        "journalist_max": most,
        "marketer": mean,
    }


def _columns(
    release: LinkedRelease, problem: LinkedProblem, sources: LinkedSources
) -> list[ColumnReport]:
    """Every column by its name among those of all tables, but for links and keys of rows."""
    found: list[ColumnReport] = []
    for about in release.tree.tables:
        table = release.tables[about.name]
        losses = {
            c.name: float(c.widths[c.codes].mean()) if len(c.codes) else None for c in table.columns
        }
        own = Problem(about.schema, problem.alone(table.declared))
        names = sources.tables[about.name].names if about.name in sources.tables else []
        kept = [name for name in names if own.role_of(name) in ("sensitive", "plain")]
        links = {*own.policy.links, HULL, *(rows_column(one.name) for one in release.tree.tables)}
        shown = [name for name in (*losses, *kept) if name not in links]
        for column in column_roles(shown, own):
            if column["name"] in links:
                continue
            column["loss"] = losses.get(column["name"])
            if column["role"] == "subject" and release.tree.keys is Keys.KEYED:
                column["technique"] = "pseudonym"
            column["name"] = about.qualified(column["name"])
            found.append(column)
    return found


def _table(
    release: LinkedRelease,
    name: str,
    problem: LinkedProblem,
    sources: LinkedSources,
    truth: LinkedTables | None,
) -> Json:
    """What a certificate says of one table."""
    table, known = release.tables[name], release.tree[name].known
    rows = None if truth is None else truth.rows[name].count
    published, above = table.rows, sources.tables.get(table.declared.parent or PEOPLE)
    if name in sources.tables:
        published = sources.tables[name].records
    elif above is not None:  # a set, also one in a table whose rows no key joins
        found, _ = elements_of(table.declared, above, problem.model.missing_texts)
        published = found.records
    return {
        "name": name,
        "parent": table.declared.parent,
        "known": known if isinstance(known, int) else known.value,
        "rows": {
            "in": rows,
            "published": published,
            "withheld": None if rows is None else rows - published,
        },
        "columns": [column.name for column in table.columns],
        "sha256": sources.hashes.get(name),
    }


def _exposed(release: LinkedRelease, k: int) -> Iterator[Json]:
    """Who is betrayed by which table whose rows readers can join with people. What single dates
    tell, where gaps are exact, is judged apart; so it is said of rows that their dates are aside.
    """
    for one in exposures(release.view, k):
        if release.tree.is_joined(release.tree[one.table]):
            known = [one.table, *release.view.above(one.table)] if one.known != "count" else []
            is_dated = any(release.tables[name].dates for name in known)
            yield one._asdict() | ({"dates_aside": True} if is_dated else {})


def _anchor(release: LinkedRelease, anchor: AnchorPolicy, dated: np.ndarray | None) -> Json:
    """How dates were moved, the fewest days that an anchor was drawn from, and where gaps are exact
    the greatest probability with which a known date names somebody.
    """
    drawn = release.drawn_days[~release.withheld]
    days = drawn[np.isfinite(drawn)]
    least = int(days.min()) if len(days) else None
    found: Json = {"render": anchor.render, "gaps": anchor.gaps, "least_hull_days": least}
    if dated is not None and len(dated):
        found["worst_posterior"] = float((dated[:, 1] / dated[:, 0]).max())
    return found


def bundle_loss(release: LinkedRelease, truth: LinkedTables) -> float | None:
    """Widths of all published cells, and 1 for each cell of a withheld row, by all quasi cells of
    the original (in [0, 1]); None where rows can't be joined.
    """
    if release.loose:
        return None
    lost, cells = 0.0, 0
    for name, table in release.tables.items():
        rows, columns = truth.rows[name].count, len(table.columns)
        cells += rows * columns
        lost += sum(float(column.widths[column.codes].sum()) for column in table.columns)
        lost += max(rows - table.rows, 0) * columns
    return lost / cells if cells else 0.0


def of_linked_cells(
    tables: Mapping[str, Table], problem: LinkedProblem
) -> Iterator[ReleaseWarning]:
    """What cells that are published as they are give reason to ask, about columns by their names
    among those of all tables; but for those of counts and anchors, which no original has.
    """
    added = {HULL, *(rows_column(one.name) for one in problem.declared)}
    for about in (one for one in problem.given if one.name in tables):
        own = tables[about.name].without([*added & {*tables[about.name].names}])
        for one in of_cells(own, problem.alone(about)):
            column = one.column if about.name == PEOPLE else f"{about.name}.{one.column}"
            text = one.text.replace(f"'{one.column}'", f"'{column}'")
            yield ReleaseWarning(one.code, text, column, one.severity, one.figures)


def _warnings(model: PolicyModel) -> list[ReleaseWarning]:
    """What readers must know although every promise holds."""
    said = []
    if model.keys == "none":
        said.append(
            "keys are none, so no key joins rows with people: k was measured on people's own cells"
            " and counts, and on rows that show the same, which are not known to be of different"
            " people"
        )
    if model.anchor is not None and model.anchor.gaps == "exact":
        said.append("gaps between dates are exact: whoever knows two dates of a person undoes it")
    return [ReleaseWarning("linked-tables", text) for text in said]
