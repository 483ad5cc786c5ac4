"""What a certificate must look like: every key of both schemas and of every verb, in one place; and
who it counts: people that are known, records that are taken to be people, or mere rows.

The types of its parts say what they hold, to readers and to the checks. `verify` lists the keys
that a later version or a plug-in adds as not measured again.
"""

import codecs
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple, NotRequired, TypedDict

from shoal.data.json_rules import (
    ANYTHING,
    FLAG,
    NOTHING,
    NUMBER,
    POSITIVE,
    SHA256,
    SHARE,
    TEXT,
    WHOLE,
    Rule,
    absent,
    keys_of,
    many,
    matching,
    named,
    nullable,
    one_of,
    record,
    rule_of,
    value,
)
from shoal.data.warnings import SEVERITIES

SINCE_2 = ("date", "build", "policy", "people", "together", "columns", "warnings")
BY_RELEASE = "release by release"
VERBS = ("publish", "stream", "republish", "fuse", "audit")
SHOWN_ROLES = ("quasi", "sensitive", "plain")
ROLES = (*SHOWN_ROLES, *"identifier subject time operation weight household drop derived".split())
TECHNIQUES = (
    "interval mean mean-and-interval median mode span node value-or-nothing pseudonym as-is derived"
    " removed"
).split()
UTILITY = (
    "average_class_size classification discernibility gcp generalized_loss "
    "information_loss_percent squared_error squared_error_normalised"
).split()
RISK = ("journalist_max", "marketer", "prosecutor_max", "prosecutor_mean")
SHARES = ("gcp", "generalized_loss", *RISK)

Share = Annotated[float, SHARE]
Sha256 = Annotated[str, SHA256]


class SizesReport(TypedDict):
    """How many classes, and how many people they have."""

    count: int | None
    min: int | None
    mean: float | None
    max: int | None
    bound: NotRequired[int]


class ClassRisk(TypedDict):
    """How likely a person is found in a class: at most, and on average."""

    max: Share | None
    mean: Share | None


class RisksReport(TypedDict):
    """How likely people are named: on average, at most, and how many people by how likely."""

    mean: Share
    max: Share
    people: list[int]


class SampleReport(TypedDict):
    """The risks of a sample in its population. edges: between which `people` are counted.

    household: of being re-identified oneself or by anybody of a household that is known.
    """

    edges: list[float]
    own: RisksReport
    household: NotRequired[RisksReport]


class PromiseReport(TypedDict):
    """A promise with what was measured; beside these keys, further parameters of its own."""

    model: str
    attributes: list[str]
    asked: float
    measured: float | None
    holds: bool | None
    classes: NotRequired[SizesReport]
    risk: NotRequired[ClassRisk]
    k: NotRequired[int]
    k_measured: NotRequired[int | None]
    measured_min: NotRequired[float | None]
    measured_with_missing: NotRequired[bool]
    measured_without_missing: NotRequired[float]
    expected: NotRequired[float]
    above: NotRequired[Share | None]
    kind: NotRequired[str]
    to: NotRequired[str]
    estimator: NotRequired[str]


class ColumnReport(TypedDict):
    """A column of the input: what it is, what became of it, and what that lost."""

    name: str
    role: Annotated[str, one_of(*ROLES)]
    type: Annotated[str, one_of("number", "ordinal", "category", "date")] | None
    technique: Annotated[str, one_of(*TECHNIQUES)]
    round: Annotated[float, POSITIVE] | None
    distinct_in: int | None
    distinct_out: int | None
    loss: Share | None
    single_ends: Share | None
    alone_in: Share | None
    derived_from: str | None
    alone_if_known: NotRequired[int | None]


class TogetherReport(TypedDict):
    """How many people are alike in all quasi-identifiers together."""

    attributes: list[str]
    asked: int | None
    min: int | None
    alone: int
    below: int | None
    people: int
    alone_if_known: NotRequired[int | None]
    in_several: NotRequired[int]


class MethodReport(TypedDict):
    """What made a release: a method with the value of each parameter, and what its search found."""

    name: str
    parameters: Mapping[str, Any]
    search_statistics: NotRequired[Mapping[str, Any]]


class PolicyFile(TypedDict):
    """A file that the policy names; attribute: of a hierarchy, whose it is."""

    attribute: str | None
    kind: Annotated[str, one_of("hierarchy", "population", "reference")]
    sha256: Sha256
    bytes: int


class PolicyIdentity(TypedDict):
    """The policy and the files that it names, by their hashes."""

    sha256: Sha256
    files: list[PolicyFile]


class AcceptedReport(TypedDict):
    """A threshold of the policy, and what an attack found."""

    measure: str
    attribute: str | None
    at_most: float
    measured: float | None
    upper: float | None
    holds: bool | None


class OtherRelease(TypedDict):
    """Another release of these people, and what of it was judged."""

    kind: Annotated[str, one_of("table", "stream", "ledger")]
    sha256: NotRequired[Annotated[str | None, ANYTHING]]
    people: int
    classes: int
    holds: NotRequired[Annotated[bool, ANYTHING]]


class SharedAttribute(TypedDict):
    """For how many people several releases together leave how few values of an attribute."""

    names: list[str]
    releases: list[int]
    people: int
    asked: int | None
    below: int | None
    certain: int
    none: int
    least: int | None


class BesideReport(TypedDict):
    """How many people several releases together hide among fewer than k."""

    k: int
    people: int
    below_k: int
    alone: int
    least: int | None
    releases: list[OtherRelease]
    attributes: NotRequired[list[SharedAttribute]]
    unjudged: NotRequired[list[str]]
    withheld: NotRequired[int]
    holds: bool


KNOWN_DATES = "anchor.gaps"
"""What stands among `unjudged` for what a known date tells, where gaps between dates are exact."""


def _is_codec(found: Any) -> bool:
    try:
        return isinstance(found, str) and bool(codecs.lookup(found))
    except (LookupError, ValueError):
        return False


def _has_ends(found: Any) -> bool:
    return isinstance(found, str) and 0 <= found.find("{lo}") < found.rfind("{hi}") - len("{lo}")


_DELIMITER = matching("one ASCII character that parts cells", r"[^\"\r\n\0\x80-\U0010ffff]")
_INTERVALS = value("a text with {lo} and then {hi}", _has_ends)


class DialectReport(TypedDict):
    """How a file of text is written."""

    delimiter: Annotated[str, _DELIMITER] | None
    encoding: Annotated[str, value("an encoding that Python knows", _is_codec)] | None
    newline: Annotated[str, matching("\\n or \\r\\n", r"\r?\n")] | None
    bom: bool | None
    decimal: Annotated[str, one_of(".", ",")]
    dates: str | None
    intervals: Annotated[str, _INTERVALS] | None
    mark: str | None
    missing: NotRequired[list[str]]
    order: NotRequired[Annotated[str, one_of("content", "input")] | None]


class OutputReport(TypedDict):
    """The published file, or the files of a folder."""

    sha256: str | None
    bytes: int | None
    format: str
    dialect: DialectReport
    files: NotRequired[list[dict[str, str | int]]]


FINDING = {"code": TEXT, "text": TEXT}
OF_FINDING = {"severity": one_of(*SEVERITIES), "column": TEXT, "figures": TEXT}
OBJECT = named(ANYTHING)
HASH_OF = record({"sha256": SHA256})
FIGURES = named(nullable(NUMBER))
SIZE, OF_SIZE = keys_of(SizesReport)
SIZES = record(SIZE, OF_SIZE)
PROMISE, OF_PROMISE = keys_of(PromiseReport)
OF_GROUPS = {key: OF_PROMISE[key] for key in ("classes", "risk")}
COLUMN, OF_LATER_COLUMNS = keys_of(ColumnReport)
OUTPUT = {"bytes": nullable(WHOLE), "format": TEXT, "dialect": rule_of(DialectReport)}
SECOND = record({"sha256": SHA256, "bytes": nullable(WHOLE)})
WITHHELD = {"withheld": WHOLE}
FAULTS = named(WHOLE)

OF_ALL: dict[str, Rule] = {
    "schema": TEXT,
    "shoal": TEXT,
    "verb": one_of(*VERBS),
    "counted": one_of("subjects", "rows"),
    "classes": SIZES,
    "risk": FIGURES,
    "seconds": record({"total": nullable(NUMBER), "method": nullable(NUMBER)}),
}
PANEL = dict.fromkeys(
    "people rounds founded waiting superseded withheld retired closed carried".split(), WHOLE
)
OPTIONAL: dict[str, Rule] = {
    "faults": FAULTS,
    "attacks": record({}, {"accept": many(rule_of(AcceptedReport)), "skipped": named(TEXT)}),
    "scale": record(
        {"threads": POSITIVE},
        {"memory": POSITIVE, "room_bytes": WHOLE, "parts": POSITIVE, "tasks": WHOLE},
    ),
    "beside": rule_of(BesideReport),
    "individual_risk": rule_of(SampleReport),
    "starred": record({}, others=POSITIVE),
    "plan": OBJECT,
    "explanation": OBJECT,
    "downstream": OBJECT,
    "counterfeits": record({"records": WHOLE, "classes": WHOLE}),
    "presence": one_of("disclosed"),
    "groups": SIZES,
    "tables": many(record({"name": TEXT, "rows": OBJECT, "sha256": nullable(SHA256)})),
    "linked": record({"keys": TEXT, "audited": TEXT, "exposed": many(OBJECT)}),
    "panel": record({"mode": one_of("lockstep", "together", "carried"), **PANEL}),
}
RETURNING = {"returning_people": WHOLE, "came_again": WHOLE}
OF_VERB: dict[str, dict[str, Rule]] = {
    "publish": {"faults": record({"uncovered": WHOLE, "changed": WHOLE}, others=WHOLE)},
    "stream": {"stream": OBJECT, "measured": one_of("whole", BY_RELEASE)},
    "republish": {
        "covers": one_of("increment", "table"),
        "guards": one_of("cells", "signatures", "company"),
        "history": record({"holds": FLAG, "allowed": FLAG, "findings": many(OBJECT)}),
        "ledger": record({"release": WHOLE, "previous": SHA256}, RETURNING),
        # an audit of signatures goes by m
        "method": record({"name": TEXT}, {"parameters": record({}, {"m": WHOLE})}),
    },
    "fuse": {"fusion": OBJECT},
    "audit": {},
}
OWN = {key for keys in OF_VERB.values() for key in keys} - {"faults", "method"}
MADE = {"method": record({"name": TEXT}, {"parameters": OBJECT}), "seed": WHOLE}
STREAMED = dict.fromkeys(("held", "dropped", "rejected", "waiting"), WHOLE)


def shape_findings(content: Mapping[str, Any], is_earlier: bool) -> list[str]:
    """All that is not as a certificate's verb says; empty for one that can be read.

    is_earlier: whether it is of schema 1, which has no keys that are newer.
    """
    verb = content.get("verb")
    if verb not in VERBS:  # nothing else can be judged
        return [*record({"verb": one_of(*VERBS)})(content, "")]
    by_release = verb == "stream" and content.get("measured") == BY_RELEASE
    rule = _certificate(str(verb), by_release, is_earlier, "linked" in content)
    return [*rule(content, "")]


def _certificate(verb: str, by_release: bool, is_earlier: bool, is_linked: bool) -> Rule:
    """The rule of a whole certificate. by_release: so a stream was measured, not as a whole.
    is_linked: of several tables, each of which states its own file.
    """
    made = {"method": NOTHING, "seed": NOTHING} if verb == "audit" else MADE
    required = {**OF_ALL, **made, **OF_VERB[verb]}
    required["records"] = _records(verb, is_earlier)
    required["subjects"] = nullable(WHOLE) if by_release else WHOLE
    required["promises"] = many(_promise(by_release or is_earlier))
    required["utility"] = _utility(by_release or is_earlier)
    required["output"] = nullable(HASH_OF) if is_linked else _output(verb, is_earlier)
    if not by_release:
        required["classes"] = record(SIZE | {"count": WHOLE}, OF_SIZE)
        required["risk"] = record(dict.fromkeys(RISK, nullable(SHARE)), others=nullable(NUMBER))
    optional = {**dict.fromkeys(OWN - {*required}, absent), **OPTIONAL, "input": _input(verb)}
    if is_earlier:
        optional |= dict.fromkeys(SINCE_2, absent)
    else:
        required |= _since_2(verb, by_release)
    return record(required, optional)


def _input(verb: str) -> Rule:
    """The hash of the original, which its owner may leave out; a fusion has none."""
    if verb == "stream":
        return nullable(record({"sha256": nullable(SHA256)}))
    return NOTHING if verb == "fuse" else nullable(HASH_OF)


def _records(verb: str, is_earlier: bool) -> Rule:
    came_in = {"publish": WHOLE, "stream": WHOLE, "fuse": NOTHING}.get(verb, nullable(WHOLE))
    required = {"in": came_in, "out": WHOLE, "suppressed": WHOLE}
    required |= STREAMED if verb == "stream" else {}
    if is_earlier:
        return record(required, dict.fromkeys(WITHHELD, absent))
    return record(required | WITHHELD)


def _promise(may_lack_groups: bool) -> Rule:
    """A promise; k-anonymity states its groups, but for streams by release and schema 1."""
    plain, grouped = record(PROMISE), record(PROMISE | OF_GROUPS)

    def rule(found: Any, path: str) -> Any:
        is_k = isinstance(found, Mapping) and found.get("model") == "k-anonymity"
        return (grouped if is_k and not may_lack_groups else plain)(found, path)

    return rule


def _utility(may_lack: bool) -> Rule:
    """The measures of utility; further ones are of plug-ins."""
    known = {name: nullable(SHARE if name in SHARES else NUMBER) for name in UTILITY}
    return record({}, known, nullable(NUMBER)) if may_lack else record(known, {}, nullable(NUMBER))


def _output(verb: str, is_earlier: bool) -> Rule:
    """The part about the file: nothing for a frame, for a topic its hash alone."""
    if is_earlier:
        return nullable(record({"sha256": nullable(SHA256)}, dict.fromkeys(OUTPUT, absent)))
    if verb == "stream":
        return record({"sha256": nullable(SHA256)}, OUTPUT)
    return nullable(record({"sha256": SHA256} | OUTPUT, {"sensitive": SECOND}))


def _since_2(verb: str, by_release: bool) -> dict[str, Rule]:
    unsaid = {"technique": nullable(COLUMN["technique"])} if verb == "audit" else {}
    people = (ASSUMED, KNOWN) if verb in ("publish", "fuse") else (ASSUMED, KNOWN, UNKNOWN)
    return {
        "date": matching("a time in UTC", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"),
        "build": named(nullable(TEXT)),
        "policy": rule_of(PolicyIdentity | None if verb == "audit" else PolicyIdentity),
        "people": one_of(*people),
        "together": NOTHING if by_release else rule_of(TogetherReport),
        "columns": many(record(COLUMN | unsaid, OF_LATER_COLUMNS)),
        "warnings": many(record(FINDING, OF_FINDING)),
    }


# Who was counted.


KNOWN, ASSUMED, UNKNOWN = "known", "assumed", "unknown"


class Unit(NamedTuple):
    """What figures about people are counted in. first: the word where it is first mentioned."""

    one: str
    many: str
    first: str

    def of(self, count: int) -> str:
        """The word behind a number."""
        return self.one if count == 1 else self.many

    def first_of(self, count: int) -> str:
        """The words behind the first number of a sentence."""
        return self.first.replace(self.many, self.of(count), 1)


UNITS = {
    KNOWN: Unit("person", "people", "people"),
    ASSUMED: Unit("record", "records", "records, each taken to be a person"),
    UNKNOWN: Unit("row", "rows", "rows"),
}


def span_text(sizes: Mapping[str, Any]) -> str:
    """How large classes or groups are: '2 to 5', or '2' where all are of one size."""
    least, most = sizes["min"], sizes["max"]
    return f"{least}" if least == most else f"{least} to {most}"


def people_key(subject: str | None, is_counted: bool) -> str:
    """The certificate's `people`.

    subject: the policy's. is_counted: whether the release or the original names every person.
    """
    if subject is None:
        return ASSUMED
    return KNOWN if is_counted else UNKNOWN


def rows_of_nobody(certificate: Mapping[str, Any]) -> int:
    """Published rows of nobody, by which a ledger's method keeps classes full."""
    return int((certificate.get("counterfeits") or {"records": 0})["records"])


def have_several_rows(certificate: Mapping[str, Any]) -> bool:
    """Whether people are known, and some have several published rows."""
    people, out = certificate.get("subjects"), (certificate.get("records") or {}).get("out")
    rows = None if out is None else out - rows_of_nobody(certificate)
    return unit(certificate) == UNITS[KNOWN] and people != rows


def unit(certificate: Mapping[str, Any]) -> Unit:
    """What a certificate counts in; one of the first schema tells rows from all else only."""
    stated = certificate.get("people")
    if stated in UNITS:
        return UNITS[stated]
    return UNITS[UNKNOWN if certificate.get("counted") == "rows" else KNOWN]
