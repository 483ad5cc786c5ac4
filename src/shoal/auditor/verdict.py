"""What becomes of a release that was measured: it keeps every promise and is handed back, with what
still gives reason to ask; or it is withheld.

Whoever knows a column that no promise covers may find people by it; a column may name people, or
be what others know. `alone_if_known` of a column, and of all of them together, counts the people
who are the only ones of their class with what they show there.
"""

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic

import numpy as np

from shoal.connectors.frames import FrameT, as_it_is, table_of
from shoal.data import notebook, warnings
from shoal.data.certificate import Certificate
from shoal.data.certificate_shape import KNOWN_DATES, AcceptedReport, Unit, span_text, unit
from shoal.data.column_words import (
    PERSONAL,
    mean,
    name_of,
    named_by_a_record,
    names_place,
    words_of,
)
from shoal.data.numbers import parse_numbers
from shoal.data.release import Release
from shoal.data.room import needs_whole
from shoal.data.schema import Role, Schema
from shoal.data.table import Column, Table
from shoal.data.warnings import ReleaseWarning
from shoal.errors import PromiseError
from shoal.policy.consistency import quoted
from shoal.policy.policy import Policy
from shoal.policy.problem import Problem
from shoal.policy.proposal.cells import ColumnCells, may_be_days
from shoal.policy.proposal.roles import FEW_RECORDS, MANY, PERSONAL_FORMS, guess_of


def require_kept(certificate: Certificate, consequence: str, together: bool = False) -> None:
    """Raises PromiseError with every promise that a release breaks and every fault that it has.

    consequence: what the error says has become of the outputs. together: whether k must hold over
    all quasi-identifiers, too.
    """
    if broken := what_fails(certificate):
        raise PromiseError(f"{broken[0]}; the release is withheld, {consequence}", broken[1:])
    if together:
        require_together_kept(certificate, consequence)


def what_fails(certificate: Certificate) -> list[str]:
    """A sentence for everything for which a certificate does not hold."""
    broken = [
        f"promise '{p['model']}' does not hold on the release: asked {p['asked']}, measured"
        f" {p['measured']}"
        for p in certificate["promises"]
        if not p["holds"]
    ]
    broken += warnings.fault_sentences(certificate)
    broken += [
        acceptance_text(row, certificate)
        for row in certificate.get("attacks", {}).get("accept", [])
        if row["holds"] is False
    ]
    broken += fails_together(certificate)
    if not broken and not certificate.holds:
        broken.append("the certificate does not hold")
    return broken


def fails_together(certificate: Mapping[str, Any]) -> list[str]:
    """What a release gives away beside others, and beside earlier ones of its ledger."""
    beside, history = (certificate.get(part) or {"holds": True} for part in ("beside", "history"))
    found = [] if beside["holds"] else [f"beside other releases: {fails_beside(beside)}"]
    if not history["holds"]:
        said = ["beside earlier releases: comparing them gives people away"]
        broken = [one for one in history["findings"] if one.get("breaks")]
        said += [f"{one.get('people') or 'some'} by '{one.get('check')}'" for one in broken]
        found.append(", ".join(said))
    return found


def fails_beside(beside: Mapping[str, Any]) -> str:
    """What releases of the same people tell together, where they fail. beside: as certified."""
    found = []
    if beside["below_k"]:
        few = "{below_k:,} are left among fewer than {k}, {alone:,} of these alone"
        found.append(few.format(**beside))
    found += [
        f"{' = '.join(dict.fromkeys(row['names']))} is certain for {row['certain']:,}, and has"
        f" fewer than {row['asked']} possible values for {row['below']:,}"
        for row in beside.get("attributes", ())
        if row["below"]
    ]
    found += unjudged_together(beside)
    if not found:
        found.append("some are given away by who is missing, or a release fails by itself")
    return f"of {beside['people']:,} people in several of them, {', and '.join(found)}"


def unjudged_together(beside: Mapping[str, Any]) -> list[str]:
    """What releases of the same people may tell together, and nobody has judged."""
    return [
        f"what {'a known date' if name == KNOWN_DATES else name} tells by all of them is not judged"
        for name in beside.get("unjudged", ())
    ]


def is_only_unjudged(beside: Mapping[str, Any]) -> bool:
    """Whether nothing was found to fail, but something was not judged. beside: as certified."""
    fails = beside["below_k"] or any(row["below"] for row in beside.get("attributes", ()))
    fails = fails or not all(release.get("holds", True) for release in beside["releases"])
    return bool(beside.get("unjudged")) and not fails


def require_together_kept(certificate: Certificate, consequence: str) -> None:
    """Raises PromiseError where k holds over some quasi-identifiers each, but not over all."""
    if is_below(certificate):
        found = certificate["together"]
        raise PromiseError(
            f"all quasi-identifiers together: k = {found['asked']} asked, {found['min']} measured,"
            f" {found['below']} of {found['people']} below; the release is withheld, {consequence}."
            " Promise k over all of them, or leave out what requires it (require_together)"
        )


REMEDIES = {
    "ends_gain": "round the ends of ranges more ('round'; in a stream, the method's 'snap')",
    "linkage": "raise k",
    "inference_gain": "raise k, or promise t-closeness",
    "certain": "promise holder-share",  # l-diversity lets nearly all of a class have one value
    "lifted": "promise beta-likeness",
    "implied": "use a method that recodes globally",
    "excluded": "use a method that does not look at sensitive values",
    "alone_after": "publish by a ledger, which compares all releases",
    "certain_after": "publish by a ledger, which compares all releases",
    "journalist": "raise k, or promise k-map",
    "marketer": "raise k",
    "membership": "promise delta-presence",
    "homogeneous": "promise l-diversity",
    "order": "leave 'order: input' out of the policy, if it is there: the order of what rows show"
    " tells no more than they do",
}
STRONGER = {
    "l-diversity": "ask for a larger l",
    "t-closeness": "ask for a smaller t",
    "beta-likeness": "ask for a smaller beta",
    "holder-share": "ask for a smaller share",
}
"""What helps instead where a column has the promise that would help."""


ALONE = {
    "sensitive": "raise k, coarsen its values before publishing, or drop it",
    "plain": "drop the column, or make it a quasi-identifier",
}


def acceptance_text(row: AcceptedReport, certificate: Mapping[str, Any]) -> str:
    """A threshold that an attack exceeds, and what helps; not another seed."""
    name = row["attribute"]
    if row["measure"] == "alone" and name is None:  # the worst column is judged
        columns = (certificate["attacks"].get("singling-out") or {}).get("alone", {})
        name = max(columns, key=lambda column: columns[column]["share"] or 0.0, default=None)
    helps = remedy(certificate, row["measure"], name)
    of = f" of '{name}'" if name else ""
    if row["upper"] is None:
        return f"accept '{row['measure']}'{of}: could not be measured; {helps}"
    return (
        f"accept '{row['measure']}'{of}: at most {row['at_most']}, an attack finds up to"
        f" {row['upper']}; {helps}"
    )


def unjudged_limits(certificate: Mapping[str, Any]) -> list[str]:
    """A sentence for each limit on attacks that nobody has judged, as without the original."""
    rows = (certificate.get("attacks") or {}).get("accept", [])
    named = dict.fromkeys(row["measure"] for row in rows if row["holds"] is None)
    return [
        f"accept '{name}': was not judged; audit the release with its original" for name in named
    ]


def remedy(certificate: Mapping[str, Any], measure: str, name: str | None) -> str:
    """What helps against an attack. measure, name: how `accept` names it and its column."""
    if measure != "alone":
        kinds = {column["name"]: column["type"] for column in certificate.get("columns") or []}
        if measure == "certain" and kinds.get(name) == "number":
            measure = "inference_gain"  # numbers that differ may still be near one another
        helps = REMEDIES.get(measure, "change the policy")
        for promise in certificate.get("promises") or []:
            if promise["model"] in STRONGER and name in (promise.get("attributes") or []):
                helps = helps.replace(f"promise {promise['model']}", STRONGER[promise["model"]])
        return helps
    roles = {column["name"]: column["role"] for column in certificate.get("columns") or []}
    return ALONE["sensitive" if roles.get(name) == "sensitive" else "plain"]


# All quasi-identifiers together, where promises are about some of them each.


def is_below(certificate: Mapping[str, Any]) -> bool:
    """Whether somebody hides among fewer than asked once all quasi-identifiers are known."""
    found = certificate.get("together") or {}
    asked, least = found.get("asked"), found.get("min")
    return asked is not None and least is not None and least < asked


def together_below(certificate: Mapping[str, Any], unit: Unit) -> ReleaseWarning:
    """What to say where every promise holds and `is_below`."""
    found, sizes = certificate["together"], certificate["classes"]
    few, what = found["alone"], "alone"
    if not few:
        few, what = found["below"], f"in classes of fewer than k = {found['asked']}"
    text = (
        "Every promise holds on its own columns. All quasi-identifiers together"
        f" ({', '.join(found['attributes'])}): classes of {span_text(sizes)}"
        f" {unit.of(sizes['max'])}, {few} of {found['people']} {what}; whoever knows them all can"
        " pick these out"
    )
    return ReleaseWarning(warnings.TOGETHER_BELOW, text)


# What a reader must know of a release that keeps its promises, in a sentence each.


def release_warnings(
    certificate: Certificate, withheld: int, problem: Problem
) -> list[ReleaseWarning]:
    """Everything that measuring a release gives reason to say.

    withheld: the people of the records that are in no class, as far as they are known.
    """
    counted = unit(certificate)
    said = open_question_warnings(problem.policy.open_questions())
    said += withheld_few(withheld, counted, problem.promises, problem.schema)
    if certificate.holds and is_below(certificate):
        said.append(together_below(certificate, counted))
    return said + missing_counted(certificate)


def missing_counted(certificate: Mapping[str, Any]) -> list[ReleaseWarning]:
    """Where a promise measures less once "no value" is not counted as a value, or compares it with
    the whole table's as it does values.
    """
    found = []
    for promise in certificate["promises"]:
        without, names = promise.get("measured_without_missing"), promise["attributes"]
        counts = (
            f"the promise of {promise['model']} on {quoted(names)} counts a missing value as a"
            " value of its own"
        )
        column = names[0] if len(names) == 1 else None
        if without is not None:
            text = (
                f"{counts}: {promise['measured']:.4g} measured with it, {without:.4g} without; ask"
                " for a stricter one if that is not enough"
            )
            found.append(ReleaseWarning(warnings.MISSING_COUNTED, text, column))
        elif promise.get("measured_with_missing"):
            text = f"{counts}; how close a class is by its values alone is not promised"
            found.append(ReleaseWarning(warnings.MISSING_COUNTED, text, column, warnings.NOTE))
    return found


def open_question_warnings(questions: list[str]) -> list[ReleaseWarning]:
    """What a policy itself still asks: its roles may not be what somebody decided."""
    return [ReleaseWarning(warnings.OPEN_QUESTION, text) for text in questions]


def withheld_few(
    people: int, unit: Unit, models: Sequence[Any], schema: Schema
) -> list[ReleaseWarning]:
    """Where fewer are withheld than hide anywhere else."""
    asked = (getattr(model, "k", None) for model in models)
    k = max((k for k in asked if isinstance(k, int)), default=0)
    if not 0 < people < k:
        return []
    # such a column still shows what it holds of somebody who is withheld
    shown = [f"'{a.name}'" for a in schema.published if a.role not in (Role.QUASI, Role.SENSITIVE)]
    more = f"; {', '.join(shown)} {'is' if len(shown) == 1 else 'are'} still shown" if shown else ""
    text = (
        f"{people} {unit.of(people)} withheld, fewer than k = {k}: whoever finds no class for a"
        f" person knows it is one of them{more}"
    )
    return [ReleaseWarning(warnings.WITHHELD_FEW, text)]


@dataclass(frozen=True)
class CertifiedRelease:
    """A release with its certificate. held: None where it does not fit into memory."""

    certificate: Certificate
    held: Release | None

    @property
    def release(self) -> Release:
        """The release; raises InputError where it was too large to be held."""
        if self.held is None:
            raise needs_whole("all records of the release are asked for at once")
        return self.held


@dataclass(frozen=True)
class Publication(Generic[FrameT]):
    """A release that kept its promises.

    data: the published frame, of the kind that came in. certificate: what was measured on it.
    classes: (n,) int32 class of each published row, -1 where it is withheld, in no class.
    policy: what was asked. found: what pages and figures are drawn from, the original included; it
        is left out where the publication is pickled or copied, so that what is stored or sent holds
        nothing that was not published. sensitive: of two tables, the second.
    trace: (n,) the row of the original, without rows that have no value, behind each published one;
        as private, and left out as well.
    measured: the data as they were measured, whatever was done to `data` since.
    """

    data: FrameT
    certificate: Certificate
    classes: np.ndarray
    policy: Policy = field(repr=False)
    found: CertifiedRelease | None = field(repr=False, compare=False)
    sensitive: FrameT | None = field(default=None, repr=False, compare=False)
    trace: np.ndarray | None = field(default=None, repr=False, compare=False)

    measured: FrameT | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.measured is None:
            object.__setattr__(self, "measured", copy.copy(self.data))

    def __getstate__(self) -> dict[str, object]:
        measured = self.measured if self.is_changed else None
        return {**self.__dict__, "found": None, "trace": None, "measured": measured}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self.__post_init__()

    @property
    def is_changed(self) -> bool:
        """Whether the data are others than the certificate is about."""
        assert self.measured is not None
        now, then = (table_of(one, allow_empty=True).frame for one in (self.data, self.measured))
        return not now.equals(then)

    @property
    def warnings(self) -> tuple[ReleaseWarning, ...]:
        """What its readers must know although every promise holds."""
        return self.certificate.warnings

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The published rows as a stream of Arrow, for any library that takes one."""
        return table_of(self.data, allow_empty=True).frame.__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        """The certificate at a glance and the first published rows, for a notebook."""
        published = notebook.first_rows(as_it_is(self.data))
        return self.certificate._repr_html_() + notebook.section(published)


TOLERATED, GRAVE_ABOVE = 0.01, 0.2
"""Shares of people who may be alone with a value before that is a finding, and a grave one."""

FAR = 10
"""Interquartile ranges to the nearest other number from which one is far from all others."""


def not_promised(released: Table, policy: Policy) -> list[str]:
    """A release's columns that no promise is about, plain or sensitive.

    Without those whose very name may be somebody's value, as messages name columns.
    """
    covered = {name for promise in policy.build_promises() for name in promise.attributes}
    named = policy.model.attributes
    unnamed = [name for name in released.names if name not in named]
    odd = named_by_a_record(released, unnamed) if unnamed else []
    roles = {name: policy.role_of(name) for name in released.names if name not in odd}
    return [
        name
        for name, role in roles.items()
        if role == "plain" or (role == "sensitive" and name not in covered)
    ]


def of_cells(released: Table, policy: Policy) -> list[ReleaseWarning]:
    """What columns that are published as they are show by their names and cells."""
    found: list[ReleaseWarning] = []
    is_open = {*not_promised(released, policy)}
    for name in released.names:
        role = policy.role_of(name)
        if role != "sensitive" and name not in is_open:
            continue
        if role == "sensitive" and name in is_open:
            text = (
                f"no promise covers '{name}', which is sensitive: k people who look alike may all"
                " have the same value; promise l-diversity or t-closeness of it"
            )
            found.append(ReleaseWarning(warnings.SENSITIVE_UNPROMISED, text, name))
        column = released.column(name)
        numbers = list(_about_numbers(column))
        about = _about_people(
            column, role == "plain" and name != policy.model.label, name in is_open
        )
        found += [about] if about else numbers
    return found


def _about_people(column: Column, is_plain: bool, is_open: bool) -> ReleaseWarning | None:
    """Whether a column names people, or is what others may know of them. is_open: no promise is
    about it.
    """
    name, said = column.name, name_of(column.name)
    could_be_known = is_plain or said.kind in PERSONAL or names_place(words_of(name))
    if len(column.texts) < FEW_RECORDS and not (could_be_known or may_be_days(column.cells)):
        return None
    cells = ColumnCells.of(column)
    guess = guess_of(cells)
    is_named = mean(cells.words, "identifier") or said.kind in ("civil", "contact", "name")
    is_text = cells.distinct > MANY and cells.numbers is None
    why = None
    if (is_named and not said.is_of_other) or cells.form in PERSONAL_FORMS:
        why = "names people or says how to reach them; remove it"
    elif is_text and guess.role in ("identifier", "subject", "drop"):
        why = "is text of which most differs, so it may name people; remove it"
    elif is_plain and names_place(cells.words):
        why = "says where people live; coarsen it"
    if why is not None and cells.distinct >= FEW_RECORDS:
        shown = "not protected: it is published as it is" if is_open else "published as it is"
        text = f"'{name}' is {shown}, and {why}"
        return ReleaseWarning(warnings.PLAIN_NAMES_PEOPLE, text, name)
    is_known = names_place(cells.words) or cells.are_iso_days or said.kind in PERSONAL
    if guess.role != "quasi" or not (is_plain or is_known):
        return None
    text = f"'{name}' is published as it is, though others may know it; recode it, or drop it"
    return ReleaseWarning(warnings.QUASI_LEFT_OUT, text, name)


NONE_ON_LINKED = "no attack tries this on linked tables"
WAY_OUT = "leave the column out, or make it one that others could know, to publish ranges"


def _about_numbers(column: Column) -> Iterator[ReleaseWarning]:
    numbers, counts = parse_numbers(column.cells), column.counts()
    is_number = np.isfinite(numbers) & (counts > 0)
    numbers, counts = numbers[is_number], counts[is_number]
    filled, once = int(counts.sum()), counts == 1
    if len(numbers) <= FEW_RECORDS or filled < len(column.codes) / 2:
        return
    name = column.name
    if 2 * int(once.sum()) > filled:
        text = (
            f"more than half of the numbers of '{name}' occur once, and are published as they are:"
            f" {WAY_OUT}"
        )
        yield ReleaseWarning(warnings.VALUES_UNIQUE, text, name)
    order = np.argsort(numbers)
    numbers, at = numbers[order], np.cumsum(counts[order])
    low, high = (numbers[np.searchsorted(at, filled * share)] for share in (0.25, 0.75))
    gaps = np.diff(numbers, prepend=-np.inf, append=np.inf)
    is_far = np.minimum(gaps[:-1], gaps[1:]) > FAR * (high - low)
    if high > low and (once[order] & is_far).any():
        text = (
            f"'{name}' shows a number far from all others that one record has, as it is: {WAY_OUT}"
        )
        yield ReleaseWarning(warnings.OUTLIER_PUBLISHED, text, name)


def of_people(certificate: Mapping[str, Any]) -> list[ReleaseWarning]:
    """What `alone_if_known` of the columns, and of all of them together, says."""
    together = certificate.get("together") or {}
    alone = {column["name"]: column.get("alone_if_known") for column in certificate["columns"]}
    known = {(name,): count for name, count in alone.items() if count is not None}
    if len(known) > 1:
        known[tuple(name for (name,) in known)] = together.get("alone_if_known")
    said = [_singled_out(names, count, certificate) for names, count in known.items()]
    return [one for one in said if one is not None]


def _singled_out(
    names: Sequence[str], alone: int | None, certificate: Mapping[str, Any]
) -> ReleaseWarning | None:
    people = certificate["together"]["people"]
    if alone is None or alone <= TOLERATED * people:
        return None
    are, they, them = ("are", "they", "them") if names[1:] else ("is", "it", "it")
    named = " and ".join(filter(None, (quoted([*names[:-1]]), quoted([*names[-1:]]))))
    text = (
        f"{named} {are} not protected: if {they} {are} known too, {alone} of {people}"
        f" {unit(certificate).of(people)} are alone; coarsen {them}, or drop {them}"
    )
    severity = warnings.GRAVE if alone > GRAVE_ABOVE * people else warnings.OPEN
    column = names[0] if len(names) == 1 else None
    return ReleaseWarning(warnings.PLAIN_SINGLES_OUT, text, column, severity)
