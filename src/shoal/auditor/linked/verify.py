"""Whether the files of linked tables are those that their certificate speaks of, and still hold."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.auditor.checks import K_ANONYMITY, Check, Stated, consistency
from shoal.auditor.linked.audit import audit_linked, has_exact_gaps
from shoal.auditor.measured_again import Reader, of_original
from shoal.connectors import files
from shoal.connectors.linked_tables import LinkedSources, table_places
from shoal.connectors.location import Location
from shoal.data.certificate import Certificate, is_close
from shoal.data.findings import some_named
from shoal.data.linked import PEOPLE
from shoal.data.progress import Progress
from shoal.data.regular_files import Json
from shoal.errors import InputError

MEASURED = ("promises", "people", "counted", "classes", "subjects", "together", "risk")
"""What an audit finds again in the files alone."""
BESIDE_ORIGINAL = ("records", "utility", "columns")
"""What it finds again beside the original, which also tells the ends of undeclared domains."""
OF_ORIGINAL = ("audited", "bundle_loss", "matching")
"""What is found of linked tables alone only beside the original."""
ANCHORED = ("render", "gaps", "least_hull_days")
"""What the files say of moved days also where gaps are exact."""
OF_PUBLISHER = "paid"
"""What only who made them says of linked tables."""


def linked_checks(stated: Stated, path: str, reader: Reader, progress: Progress) -> Iterator[Check]:
    """Every check of released tables against their certificate, in order; with the policy, all is
    measured again, and with the original as well, everybody is tried to be matched.
    """
    released = Location(path)
    if released.is_table and not released.is_database and len(stated.at("tables") or ()) > 1:
        raise InputError(
            f"table '{path}': is one of several that were released together; name the database"
            " without 'table'"
        )
    progress("reading the release")
    hashes = {name: files.table_sha256(p.path) for name, p in table_places(path).places.items()}
    if len(hashes) == 1:  # of one table that has nothing below it
        hashes = {PEOPLE: next(iter(hashes.values()))}
    as_certified = _files(stated, hashes)
    yield as_certified
    yield consistency(stated)
    if reader.policy is None:
        compared = "files were compared by their hashes, figures with one another"
        more = "all else needs the policy; name it with --policy"
        yield Check("measured again", None, f"nothing: {compared}; {more}")
        needed = "original; name it with --original"
        if reader.original is not None:
            needed = "policy, too; name it with --policy"
        yield Check("input", None, f"needs the {needed}")
        return
    # an audit of the files alone is found again in them, whatever else is at hand
    is_of_files = stated.verb == "audit" and stated.at("linked", "audited") == "files"
    original = None if is_of_files else reader.original
    is_whole = is_of_files or original is not None
    try:
        again = audit_linked(
            path, reader.policy, original, progress=progress, may_lack_dates=True
        ).certificate
    except InputError as unreadable:
        if as_certified.ok:
            raise
        said = "; ".join(unreadable.said)
        yield Check("output", False, f"can't be read as the certificate says; {said}")
        return
    keys: tuple[str, ...] = MEASURED
    if reader.original is not None:
        yield of_original(stated, (again["input"] or {}).get("sha256"))
    if is_whole:
        stated.note("faults")
        keys = (*MEASURED, *BESIDE_ORIGINAL)
    found: dict[tuple[str | int, ...], object] = {(key,): again[key] for key in keys}
    is_exact = has_exact_gaps(reader.policy.model)
    if is_exact:
        found |= {(key,): one for key, one in _with_known_dates(stated, again).items()}
    found |= _of_linked(stated, again, is_exact, is_whole)
    found |= _of_tables(again["tables"], is_whole)
    found |= {("output", key): one for key, one in again["output"].items()}
    if stated.at("output") is None:  # of frames, which the check of files has said
        found = {at: one for at, one in found.items() if at[0] != "output" and at[-1] != "sha256"}
    for place in found:
        stated.note(*place)
    different = [at for at, one in found.items() if not is_close(stated.at(*at), one)]
    asked = {*again["linked"], *([OF_PUBLISHER] if stated.verb == "publish" else [])}
    lacking = sorted(asked - {*stated.at("linked")})
    broken = [p["model"] for p in again["promises"] if not p["holds"]]
    faults = [name for name, count in again["faults"].items() if count]
    if different or lacking or broken or faults:
        parts = [f"{_named(at, again)} differs" for at in different]
        parts += [*(f"'{key}' is missing" for key in lacking), *broken, *faults]
        yield Check("promises", False, f"measured again, not as stated: {some_named(parts)}")
        return
    if stated.faults:
        yield Check(
            "promises", False, f"the certificate states faults: {some_named(stated.faults)}"
        )
        return
    count = len(again["promises"])
    held = f"{count} of {count} held, measured again from the files"
    if is_exact and original is None:
        more = "what a known date tells needs the original; name it with --original"
        yield Check("promises", None, f"{held} without known dates; {more}")
        return
    yield Check("promises", True, held)


def _of_linked(
    stated: Stated, again: Certificate, is_exact: bool, has_original: bool
) -> dict[tuple[str | int, ...], object]:
    """What is stated of linked tables alone, as found again. is_exact: whether gaps between dates
    are, of which only who knows whose dates are whose can tell everything.
    """
    unknown = {*([] if has_original else OF_ORIGINAL), *(["anchor"] if is_exact else [])}
    found: dict[tuple[str | int, ...], object] = {
        ("linked", key): one for key, one in again["linked"].items() if key not in unknown
    }
    if is_exact:
        anchor = again["linked"]["anchor"]
        found |= {("linked", "anchor", key): anchor[key] for key in ANCHORED}
    matching = ("linked", "matching")
    if has_original and stated.verb == "publish" and stated.at(*matching) is None:
        found[matching] = None  # nobody was matched when it was made
    return found


def _of_tables(tables: list[Json], has_original: bool) -> dict[tuple[str | int, ...], object]:
    """What is stated of each table, and that there is no further one."""
    found: dict[tuple[str | int, ...], object] = {("tables", len(tables)): None}
    for number, table in enumerate(tables):
        rows = table["rows"] if has_original else {"published": table["rows"]["published"]}
        found |= {("tables", number, key): table[key] for key in table if key != "rows"}
        found |= {("tables", number, "rows", key): one for key, one in rows.items()}
    return found


def _named(at: tuple[str | int, ...], again: Certificate) -> str:
    """What differs, and of which table, as a sentence has it."""
    last = at[-1]
    if at[0] != "tables" or last == len(again["tables"]):
        return f"'{at[0] if isinstance(last, int) else last}'"
    return f"'{last}' of table '{again['tables'][at[1]]['name']}'"


def _with_known_dates(stated: Stated, again: Certificate) -> Json:
    """Promises and risks that an audit may have found, where gaps between dates are exact: it does
    not know whose dates are whose, so k may be less than it measures, but not less than is asked.
    """
    promises: list[Json] = [dict(promise) for promise in again["promises"]]
    for promise, said in zip(promises, stated.promises, strict=False):
        least = said["measured"]
        if promise["model"] != K_ANONYMITY or not isinstance(least, int):
            continue
        if promise["asked"] <= least <= (promise["measured"] or 0):
            promise["measured"] = least
    known = [p["measured"] for p in promises if p["model"] == K_ANONYMITY and p["measured"]]
    most = dict.fromkeys(("prosecutor_max", "journalist_max"), 1 / min(known)) if known else {}
    return {"promises": promises, "risk": {**again["risk"], **most}}


def _files(stated: Stated, hashes: dict[str, str]) -> Check:
    stated.note("output", "sha256")
    tables = stated.at("tables") or []
    for number in range(len(tables)):
        stated.note("tables", number, "sha256")
    if stated.at("output") is None:
        return Check("file", False, "the certificate names none; certify the files with an audit")
    known = {table["name"]: table["sha256"] for table in tables if table["sha256"]}
    other = sorted(name for name in known.keys() | hashes if known.get(name) != hashes.get(name))
    if not other and stated.at("output", "sha256") == LinkedSources({}, hashes).sha256:
        return Check("file", True, f"{len(known)} tables are those certified, by their SHA-256")
    named = some_named(other) or "the certificate's own hash of all"
    return Check("file", False, f"not as certified: {named}; fetch all files again")
