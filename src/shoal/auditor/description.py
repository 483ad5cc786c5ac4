"""What a certificate says beside its measurements: when, by what, under which policy, on what."""

import hashlib
import json
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Any, cast

from shoal.auditor.verdict import of_cells, of_people
from shoal.connectors import files
from shoal.connectors.outputs import cells_written
from shoal.data.certificate import Certificate
from shoal.data.certificate_shape import UNKNOWN as ROWS
from shoal.data.certificate_shape import ColumnReport, PolicyFile, PolicyIdentity
from shoal.data.regular_files import Json, readable
from shoal.data.release import read_column
from shoal.data.schema import Attribute, Kind, Role, Schema, Shown
from shoal.data.single_ends import TOLERATED, possible_ends, single_end_warnings
from shoal.data.table import Table
from shoal.data.truth import Truth
from shoal.data.warnings import ALL_SUPPRESSED, HIERARCHY_REPEATS, ReleaseWarning
from shoal.errors import InputError
from shoal.policy import registry
from shoal.policy.binding.files import PolicyTables
from shoal.policy.binding.notation import derived_columns, is_number
from shoal.policy.consistency import NOT_HASHED
from shoal.policy.linked import usual_method
from shoal.policy.policy import Policy
from shoal.policy.problem import LinkedProblem, Problem
from shoal.utility.gcp import ColumnFigures

TAKE_ROUND = ("publish", "audit")
OF_FILE = ("name", "role", "type", "technique", "round", "derived_from")
CELLS = ("decimal", "dates", "intervals", "mark", "missing")


def described(
    certificate: Certificate,
    released: Table,
    figures: ColumnFigures,
    problem: Problem,
    truth: Truth | None,
) -> Certificate:
    """The certificate of a release, with its columns and with what made it.

    The certificate must name its verb already. figures: as the release was measured.
    """
    schema, original = problem.schema, None if truth is None else truth.original
    if certificate["people"] == ROWS:  # nobody knows whose they are
        figures = replace(figures, alone_if_known={})
    columns = measured_columns(released, figures, problem, original)
    made = certificate.extended(**provenance(certificate["verb"], problem), columns=columns)
    cells = of_cells(released, problem.policy)
    shares = {c["name"]: c["single_ends"] for c in columns if c["single_ends"] is not None}
    # neither streams nor ledgers take `round`
    may_round = certificate["verb"] in TAKE_ROUND and verb_of(problem.policy) in (None, "publish")
    asked = schema.quasi if may_round else ()
    warned = {a.name: a for a in asked if shares.get(a.name, 0) > TOLERATED}
    published = {n: read_column(a, released.column(n), schema) for n, a in warned.items()}
    known = () if truth is None else truth.encoded.attributes
    values = {e.attribute.name: possible_ends(e) for e in known if e.attribute.name in warned}
    hides = registry.hides_numbers(problem.policy.method_name)
    single = single_end_warnings(shares, published, values, hides)
    said = [*nothing_shown(made), *repeated_rows(schema), *single, *cells]
    return made.warned(*said, *of_people(made))


def verb_of(policy: Policy) -> str | None:
    """The verb whose method a policy names, as certificates state it; None where it names none."""
    served = None if policy.model.method is None else registry.verb_of(policy.method_name)
    return served and served.partition(" ")[0]  # `publish FOLDER` is `publish` of linked tables


def nothing_shown(certificate: Certificate) -> list[ReleaseWarning]:
    """That a release keeps its promises because it says nothing of anybody."""
    records = certificate["records"]
    if not 0 < records["out"] == records["suppressed"]:
        return []
    text = (
        f"all {records['out']} records are suppressed: their quasi-identifiers show nothing; take"
        " another method, or a smaller k"
    )
    return [ReleaseWarning(ALL_SUPPRESSED, text)]


def repeated_rows(schema: Schema) -> list[ReleaseWarning]:
    """A warning for each hierarchy table that says something twice."""
    return [
        ReleaseWarning(
            HIERARCHY_REPEATS,
            f"attribute '{attribute.name}': {attribute.hierarchy.repeated} repeated"
            f" row{'' if attribute.hierarchy.repeated == 1 else 's'} of its hierarchy; each taken"
            " once",
        )
        for attribute in schema.attributes
        if attribute.hierarchy is not None and attribute.hierarchy.repeated
    ]


def file_metadata(names: list[str], problem: Problem) -> dict[str, str]:
    """What a Parquet file says about its columns; nothing that was measured, and no date."""
    columns = with_derived(column_roles(names, problem), problem)
    content = file_content(columns, cells_written(problem.notation, problem.schema.render))
    return {"shoal": json.dumps(content, ensure_ascii=False)}


def file_content(
    columns: Sequence[Mapping[str, Any]], dialect: Mapping[str, Any]
) -> Mapping[str, Any]:
    """What a Parquet file says, of the columns and the dialect of its certificate."""
    return {
        "columns": [
            {key: column[key] for key in OF_FILE if column.get(key) is not None}
            for column in columns
            if column["technique"] != REMOVED
        ],
        "dialect": {key: dialect[key] for key in CELLS if key in dialect},
    }


def provenance(verb: str, problem: Problem | LinkedProblem) -> Mapping[str, Any]:
    """The keys that say what made a certificate."""
    return {"date": date(), "build": build(), "policy": policy_identity(problem.policy, verb)}


# The columns of a release, one by one: what each is for, what became of it, what it cost.
#
# Published ones come first, in their order; the removed ones follow.


REMOVED = "removed"
DERIVED = "derived"
NUMBERS = {Shown.RANGE: "interval", Shown.MEAN: "mean", Shown.BOTH: "mean-and-interval"}


def measured_columns(
    released: Table, figures: ColumnFigures, problem: Problem, original: Table | None
) -> list[ColumnReport]:
    """Every column with what was measured on it; null for what needs the original."""
    columns = column_roles(released.names, problem)
    for column in columns:
        name = column["name"]
        column["single_ends"] = figures.single_ends.get(name)
        if column["technique"] == REMOVED:
            continue
        column["distinct_out"] = released.distinct(name)
        column["loss"] = figures.losses.get(name)
        column["alone_if_known"] = figures.alone_if_known.get(name)
        if original is not None and name in original:
            column["distinct_in"], column["alone_in"] = original.distinct_and_alone(name)
    return with_derived(columns, problem)


def with_derived(columns: list[ColumnReport], problem: Problem) -> list[ColumnReport]:
    """The columns, each followed by those that its cells were turned into."""
    found, asked = [], derived_columns(problem.policy.model)
    for column in columns:
        found.append(column)
        for derived in asked:
            if derived.source != column["name"] or column["technique"] == REMOVED:
                continue
            said = dict.fromkeys(("role", "technique"), DERIVED)
            said |= {"name": derived.name, "type": derived.kind, "derived_from": derived.source}
            found.append(cast(ColumnReport, dict.fromkeys(ColumnReport.__annotations__) | said))
    return found


def column_roles(published: list[str], problem: Problem) -> list[ColumnReport]:
    """Every column with its role and technique alone."""
    known = {attribute.name: attribute for attribute in problem.schema.attributes}
    model = problem.policy.model
    shown = (*published, model.person)
    removed = [name for name in (*known, *model.attributes) if name not in shown]
    return [
        _stated(name, known.get(name), problem, is_published=name in published)
        for name in (*published, *dict.fromkeys(removed))
    ]


def _stated(
    name: str, attribute: Attribute | None, problem: Problem, *, is_published: bool
) -> ColumnReport:
    role = problem.role_of(name)
    declared = problem.policy.model.attributes.get(name)
    kind = None if attribute is None else str(attribute.kind)
    if role == "quasi" and declared is not None and is_number(declared):
        kind = str(Kind.NUMBER)  # bins of numbers, too
    has_type = role in ("quasi", "sensitive") or (role == "plain" and kind == Kind.NUMBER)
    stated = {
        "name": name,
        "role": role,
        "type": kind if has_type else None,
        "technique": _technique(attribute, problem) if is_published else REMOVED,
        "round": attribute.round if is_published and attribute is not None else None,
    }
    return cast(ColumnReport, dict.fromkeys(ColumnReport.__annotations__) | stated)


def _technique(attribute: Attribute | None, problem: Problem) -> str:
    """How the published cells of a column came about."""
    if attribute is None:
        return "as-is"
    if attribute.pseudonym is not None:
        return "pseudonym"
    if attribute.role is not Role.QUASI or problem.is_in_two_tables:
        return "as-is"
    if attribute.shown in (Shown.MEDIAN, Shown.MODE):
        return str(attribute.shown)
    if problem.policy.model.attributes[attribute.name].hierarchy is not None:
        return "node"
    if attribute.kind is Kind.NUMBER:
        return NUMBERS[attribute.shown]
    return "span" if attribute.kind is Kind.ORDINAL else "value-or-nothing"


# What made a certificate, and when; never on which machine, by whom or in which folder.


EPOCH = "SOURCE_DATE_EPOCH"
BUILT_WITH = ("numpy", "polars", "numba")


def date(environment: Mapping[str, str] = os.environ) -> str:
    """The time in UTC, to the second; SOURCE_DATE_EPOCH wins, so that builds can be repeated."""
    given = environment.get(EPOCH)
    if given is None:
        moment = datetime.now(UTC)
    else:
        try:
            moment = datetime.fromtimestamp(int(given), UTC)
        except (ValueError, OverflowError, OSError):
            raise InputError(
                f"{EPOCH}: is not a number of seconds since 1970; correct it, or unset it"
            ) from None
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


@cache
def build() -> dict[str, str | None]:
    """The versions that computed it; and what of Shoal itself is installed."""
    versions = {name: _version(name) for name in BUILT_WITH}
    return {"python": platform.python_version(), **versions, "wheel_sha256": _wheel()}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _wheel() -> str | None:
    """The hash of the list of installed files with their hashes; None in a clone."""
    try:
        installed = distribution("shoal")
    except PackageNotFoundError:
        return None
    record = installed.read_text("RECORD")
    here = Path(__file__).resolve()
    place = Path(str(installed.locate_file("shoal"))).resolve()
    if record is None or place not in here.parents or "shoal/version.py," not in record:
        return None
    return sha256(record.encode()).hexdigest()


# The SHA-256 by which a certificate names the policy that it was measured against.


DEFAULT_METHODS = {"stream": "fads"}
FREE = ("method", "seed", "read")
"""What may differ between the releases of one ledger, and does not belong to its policy."""

SURROUNDINGS = ("table", "frequencies")
"""The keys of `population` that name a file."""


def policy_identity(policy: Policy, verb: str) -> PolicyIdentity:
    """How a certificate names the effective policy, and the files that it was read with."""
    return {"sha256": policy_sha256(policy, verb), "files": list(_files(policy.tables))}


def policy_sha256(policy: Policy, verb: str = "publish", without: Sequence[str] = ()) -> str:
    """The hash of the effective policy: what was set, with files by content instead of by path.

    The same for YAML, JSON and TOML, for any order of keys, and wherever the files lie. What a verb
    does where the policy says nothing counts as set. without: keys that don't count.
    """
    if verb == "republish":
        without = FREE
        policy = policy.with_shuffled_rows()
    elif verb in DEFAULT_METHODS:
        policy = policy.or_method(DEFAULT_METHODS[verb])
    elif policy.model.is_linked:
        policy = policy.or_method(usual_method(policy.model), {})
    content = policy.model.model_dump(mode="json", exclude_unset=True)
    said = {block: content.pop(block) for block in NOT_HASHED if block in content}
    others = {
        block: {key: value for key, value in own.items() if key not in NOT_HASHED[block]}
        for block, own in said.items()
    }
    if others == said or any(others.values()):  # else nothing is said that counts
        content |= others
    content = {key: value for key, value in content.items() if key not in without}
    for table in (content, *content.get("tables", {}).values()):
        for attribute in table.get("attributes", {}).values():
            by_content(attribute, "hierarchy", policy.base)
    for promise in content.get("promises", ()):
        by_content(promise, "population", policy.base)
    by_content(content, "reference", policy.base)
    for kind in SURROUNDINGS:
        by_content(content.get("population") or {}, kind, policy.base)
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _files(tables: PolicyTables) -> Iterator[PolicyFile]:
    """The files that a policy reads, each with its hash; never with its name or folder."""
    model, base = tables.model, tables.base
    for name, attribute in model.attributes_of_all.items():
        if isinstance(attribute.hierarchy, str) and attribute.hierarchy:
            yield _file(base / attribute.hierarchy, "hierarchy", name)
    surroundings = (getattr(model.population, kind, None) for kind in SURROUNDINGS)
    for population in (*model.population_names, *filter(None, surroundings)):
        yield _file(base / population, "population")
    if model.reference:
        yield _file(base / model.reference, "reference")


def _file(path: Path, kind: str, attribute: str | None = None) -> PolicyFile:
    sha256, size = _sha256(path), path.stat().st_size
    return {"attribute": attribute, "kind": kind, "sha256": sha256, "bytes": size}


def by_content(settings: Json, key: str, base: Path) -> None:
    """Puts the hash of a file in the place of its path."""
    name = settings.get(key)
    if isinstance(name, str) and name:
        settings[key] = _sha256(base / name)


def _sha256(path: Path) -> str:
    with readable(f"policy: file '{path}'"):
        sha256 = files.file_sha256(path)
    return sha256
