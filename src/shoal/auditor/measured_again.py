"""Measured again: whether an audit of the file finds what its certificate states.

Every figure that follows from the file alone is compared: promises, class sizes, risks, utility,
columns and warnings. With the original at hand, so is what needs the original. Where the file does
not show who is behind its rows, rows are counted, and no group may have more people than rows.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from shoal.auditor.audit import AuditResult, audit_table, stated_policy
from shoal.auditor.checks import K_ANONYMITY, Check, Path, Stated, broken_text, figure
from shoal.auditor.comparison import Comparison, asked_of, counts_rows
from shoal.auditor.reading import NEEDS_WITHHELD
from shoal.auditor.stream_trace import read_source
from shoal.connectors.dialect import formula_sentences
from shoal.connectors.files import SourceFile
from shoal.connectors.location import Location
from shoal.data import warnings
from shoal.data.certificate import CLOSE, Certificate
from shoal.data.certificate_shape import BY_RELEASE
from shoal.data.classes import Classes, SensitiveColumn, pairs_of
from shoal.data.findings import some_named
from shoal.data.numbers import parse_numbers
from shoal.data.person.columns import NO_VALUE
from shoal.data.room import Room
from shoal.data.row_order import is_in_order
from shoal.data.table import Table
from shoal.data.warnings import ReleaseWarning
from shoal.errors import InputError
from shoal.policy import registry
from shoal.policy.binding import columns
from shoal.policy.binding.past_memory import is_about_memory
from shoal.policy.policy import Policy
from shoal.privacy.population import NEEDS_ORDER

NAME = "measured again"
RELEASED_IN_PARTS = {
    "stream": "'shoal audit RELEASED -p POLICY --original SOURCE --trace FILE'",
    "republish": "'shoal audit --ledger LEDGER'",
}
"""Verbs whose rows can't be matched with an original's, and the audit that counts their people."""
COUNTS_VALUES = ("l-diversity", "k-l-diversity", "p-sensitive-k-anonymity")
FAR_FROM_TABLE = ("t-closeness", "beta-likeness", "delta-disclosure")
MOST_SHOWN = 3  # differences in one line
UNREADABLE = "the file can't be read"


@dataclass(frozen=True)
class Reader:
    """What the reader of a certificate has beside it, which no forger of it can change.

    verb: the one that made the release; None where the reader does not know. is_certified: whether
    the policy is the one that the certificate names, as far as it names one. room: where tables go
    that don't fit into memory. trace: (n,) the original's row behind each published one.
    """

    policy: Policy | None
    original: str | None
    verb: str | None
    is_certified: bool
    room: Room | None = None
    trace: np.ndarray | None = None

    @cached_property
    def source(self) -> SourceFile:
        """The original; raises InputError where it can't be read."""
        assert self.original is not None
        assert self.policy is not None
        return self.policy.tables.read_original(self.original, self.room)

    @cached_property
    def table(self) -> Table | None:
        """The table of the original, if there is one."""
        return None if self.original is None else self.source.table

    def table_for(self, verb: str) -> Table | None:
        """The table of the original; None, too, where only a stream reads it, which sets records
        aside that no table may hold. Raises InputError where it can't be read.

        verb: the one that is stated.
        """
        try:
            return self.table
        except InputError as unfit:
            if is_about_memory(unfit) or (self.verb or verb) != "stream":
                raise
            assert self.policy is not None
            read_source(str(self.original), self.policy.fields)
            return None

    def other_audit(self, verb: str) -> str | None:
        """The audit of rows that can't be matched with the original's; None where they can.

        verb: the one that is stated.
        """
        return RELEASED_IN_PARTS.get(self.verb or verb)


def measured_again(stated: Stated, path: str, table: Table | None, reader: Reader) -> Check:
    """Whether an audit of the file finds what the certificate states.

    table: the release; None where it can't be read.
    """
    if table is None:
        return Check(NAME, False, UNREADABLE)
    if reader.policy is None:
        return _by_file_alone(stated, table)
    policy = reader.policy.as_certified(stated.at("output"))
    try:
        source = reader.table_for(stated.verb)
        shown, contradicted = policy.tables.published_table(table)
        matched = None if reader.other_audit(stated.verb) else source
        trace = None if matched is None else reader.trace
        strict = audit_table(shown, policy, matched, trace=trace)
        is_of_rows = matched is not None and counts_rows(stated)
        result = audit_table(shown, policy, None) if is_of_rows else strict
    except InputError as unfit:
        if is_about_memory(unfit):
            raise
        if reader.original is None and unfit.args[0] in (NEEDS_ORDER, NEEDS_WITHHELD):
            return Check(NAME, None, str(unfit.args[0]))
        why = some_named(unfit.said, most=1)
        fits = reader.is_certified
        return Check(NAME, False, why if fits else "this policy does not fit the file")
    if not _is_ordered(stated, shown, policy):
        return Check(NAME, False, "rows are not in the order that the certificate states")
    if contradicted:
        return Check(NAME, False, warnings.fault_sentence("derived", contradicted))
    if contradicted is not None:
        stated.note("faults", "derived")
        if stated.at("faults", "derived") is None:
            stated.unstated.add("faults")
    again = Comparison(
        stated,
        result.certificate,
        source,
        result.truth is not None,
        warnings=_more_warnings(stated, path, shown, policy, reader),
    )
    is_sorted = result.problem.schema.render.order != "input"
    return (
        _differing_or_broken(again, strict)
        or _unmatched(again, reader, is_sorted)
        or Check(NAME, True, "an audit finds the same")
    )


def _is_ordered(stated: Stated, shown: Table, policy: Policy) -> bool:
    """Whether rows that are said to be sorted are; not asked where they are moved afterwards."""
    order = stated.at("output", "dialect", "order")
    is_moved = stated.verb == "stream" or policy.model.write.formulas == "escape"
    if order is None:
        stated.unstated.add("output")
    if order != "content" or is_moved:
        return True
    stated.note("output", "dialect", "order")
    return is_in_order(shown, policy.quasi, policy.render)


def _by_file_alone(stated: Stated, table: Table) -> Check:
    """Whether the groups of equal cells are those stated; the certificate says of which columns."""
    needed = "needs the policy; name it with --policy"
    # not the same wherever the column is the same that they are said to be derived from
    telling = [
        f"column '{column['name']}'"
        for column in stated.at("columns") or []
        if column["derived_from"] in table
        and column["name"] in table
        and not table.follows(column["name"], column["derived_from"])
    ]
    if telling:
        text = "tells more than the column that it is said to be derived from"
        return Check(NAME, False, f"{some_named(telling)}: {text}")
    try:
        policy = stated_policy(stated)
        if policy is None:
            return Check(NAME, None, needed)
        result = audit_table(table, policy, None)
    except InputError as unfit:
        return Check(NAME, False, f"not by the columns that it names: {unfit.args[0]}")
    comparison = Comparison(stated, result.certificate, has_policy=False)
    comparison.rows(has_classes=_measured_together(stated) is None)
    if stated.differences:
        return _differing(stated)
    # a republication counts what earlier releases show as well; past memory, no row is held
    if stated.verb != "republish" and result.held is not None:
        denied = [*_denied_by_values(stated, result.release.classes)]
        if denied:
            return Check(NAME, False, some_named(denied))
    return Check(NAME, None, f"classes of rows agree; all else {needed}")


def _denied_by_values(stated: Stated, classes: Classes) -> Iterator[str]:
    """Promises whose figures no people behind the rows could have: a class has at most the values
    that it shows, and one that lacks a value of the table is not at no distance from it.
    """
    for promise in stated.promises:
        model, measured = promise["model"], promise["measured"]
        for column in (classes.sensitive.get(name) for name in promise["attributes"]):
            if column is None or measured is None:
                continue
            shown = _values_shown(column, classes)
            least = int(shown.min(initial=column.values))
            if model in COUNTS_VALUES and measured > least + CLOSE:
                yield (
                    f"{model}: {figure(measured)} stated, but a class shows {least}"
                    f" values of '{column.name}'"
                )
            if model in FAR_FROM_TABLE and measured <= CLOSE and len({*shown.tolist()}) > 1:
                yield f"{model}: a class lacks values of '{column.name}', so 0 was not measured"


def _values_shown(column: SensitiveColumn, classes: Classes) -> np.ndarray:
    """(classes,) how many different values each shows; numbers that are equal are the same, and so
    are the usual words for no value.
    """
    numbers = parse_numbers(column.labels).tolist()
    keys: dict[object, int] = {}
    place = [
        keys.setdefault(
            number if number == number else "" if label.strip() in NO_VALUE else label, len(keys)
        )
        for label, number in zip(column.labels, numbers, strict=True)
    ]
    kept = classes.labels >= 0
    shown = np.array(place, dtype=np.int64)[column.codes[kept]]
    return np.bincount(pairs_of(classes.labels[kept], shown)[0], minlength=classes.count)


def _differing(stated: Stated) -> Check:
    return Check(NAME, False, f"an audit finds something else: {_first(stated.differences)}")


def _first(differing: list[str]) -> str:
    """The first few of what differs, and how much more does."""
    more = len(differing) - MOST_SHOWN
    said = "; ".join(differing[:MOST_SHOWN])
    return said if more <= 0 else f"{said}; and {more} more"


def _more_warnings(
    stated: Stated, path: str, shown: Table, policy: Policy, reader: Reader
) -> dict[str, list[ReleaseWarning]]:
    """What publishing warns of beside an audit, as far as file and original tell it."""
    found: dict[str, list[ReleaseWarning]] = {}
    if stated.verb != "publish":
        return found
    keeps_order = reader.policy is not None and reader.policy.render.order == "input"
    if stated.at("output", "dialect", "order") is None and not keeps_order:
        # from when every release kept the input's order, and nothing was said of it
        found[warnings.ORDER_KEPT] = [
            one for one in stated.findings if one.code == warnings.ORDER_KEPT
        ]
    if Location(path).kind.is_delimited and policy.model.write.formulas == "keep":
        sentences = formula_sentences(shown)
        found[warnings.FORMULA_CELLS] = [
            ReleaseWarning(warnings.FORMULA_CELLS, text) for text in sentences
        ]
    if reader.table is not None:
        if policy.subject is None:
            found[warnings.PEOPLE_ASSUMED] = columns.people_assumed(reader.table, policy.model)
        found[warnings.WRITTEN_ALIKE] = columns.written_alike(reader.table, policy.model)
        found[warnings.READ_AS_TEXT] = columns.read_as_text(reader.table, policy.model)
        found[warnings.NAMES_LIKE_DATA] = columns.named_like_data(reader.table, policy.model)
        codes = {one.code for one in stated.findings}
        for remark in (*columns.population_warnings(policy.tables), *reader.source.remarks):
            # earlier builds never said it
            if remark.code != warnings.NAN_MISSING or remark.code in codes:
                found.setdefault(remark.code, []).append(remark)
    return found


def _differing_or_broken(again: Comparison, strict: AuditResult) -> Check | None:
    """Compares the figures of two certificates, promises by what each asks; None where all agree
    and hold.
    """
    stated, found = again.stated, again.found
    asked = {asked_of(promise) for promise in stated.promises}
    if len(asked) < len(stated.promises):
        return Check(NAME, False, "the certificate states a promise twice")
    if asked != {asked_of(promise) for promise in found["promises"]}:
        both = [
            ", ".join(f"{p['model']} {figure(p['asked'])}" for p in promises)
            for promises in (found["promises"], stated.promises)
        ]
        text = f"the policy asks for other promises ({both[0]}) than are stated ({both[1]})"
        return Check(NAME, False, text)
    is_alone = _measured_together(stated) is None
    is_counted = is_alone and again.is_counted_alike
    if is_counted:
        again.people()
        stated.unstated.update(_unstated(again))
    else:
        again.rows(is_alone)
    if stated.differences:
        return _differing(stated)
    if strict.truth is not None:
        if stated.at("output", "dialect", "order") == "input":
            stated.note("output", "dialect", "order")
        for name in strict.certificate["faults"]:
            stated.note("faults", name)
    if not _holds(strict.certificate, is_counted):
        promises = strict.certificate["promises"]
        broken = [broken_text(one) for one in promises if one["holds"] is False]
        return Check(NAME, False, _first([*broken, *warnings.fault_sentences(strict.certificate)]))
    return None


def _unstated(again: Comparison) -> Iterator[str]:
    """Parts of which the audit measured something that the certificate does not state."""
    for path in _leaves(again.found, ()):
        is_compared = path[0] in COMPARED_WHOLE or path[-1] == "unmatched"  # of audits alone
        if again.stated.at(*path) is None and not is_compared:
            yield str(path[0])


def _unmatched(again: Comparison, reader: Reader, is_sorted: bool) -> Check | None:
    """What kept figures from being compared; None where all were.

    is_sorted: by the reader's policy, not by what the certificate states.
    """
    stated = again.stated
    if reader.original is not None and reader.verb is None and stated.verb in RELEASED_IN_PARTS:
        # a forged certificate must not talk anyone out of the comparison that they ask for
        method = stated.at("method", "name")
        known = registry.is_known_method(str(method), stated.verb)
        text = (
            f"that 'shoal {stated.verb}' made it, whose rows can't be matched with the original, is"
            " the certificate's word alone; if you know it, name its method, --method"
        )
        return Check(NAME, False, f"{text} {method}" if known else text)
    has_original, other_audit = again.original is not None, reader.other_audit(stated.verb)
    together = _measured_together(stated)
    if together is not None:
        return Check(NAME, None, together)
    if not again.is_counted_alike:
        way_out = f"run {other_audit}" if other_audit else "name the original (--original)"
        if other_audit or not has_original:
            return Check(NAME, None, f"agrees as far as rows tell; to count people, {way_out}")
        text = "people can't be counted; the release alone names none, and its rows can't be"
        text = f"{text} matched with the original; give the trace (--trace)"
        return Check(NAME, None if is_sorted else False, text)
    to = {asked_of(promise): promise.get("to") for promise in again.found["promises"]}
    if any(promise.get("to") != to[asked_of(promise)] for promise in stated.promises):
        text = "was measured to a reference; name it in the policy, under 'reference'"
        return Check(NAME, False if has_original else None, text)
    if has_original and not again.has_truth and not counts_rows(stated):
        text = "the file alone holds it; its rows can't be matched with the original"
        if stated.verb != "fuse":  # which has no trace
            text += f"; run {other_audit}" if other_audit else "; give the trace (--trace)"
        return Check(NAME, None, text)
    return None


def _holds(found: Certificate, is_counted: bool) -> bool:
    """Whether what was measured is kept.

    is_counted: as the certificate counts, in this file alone; else rows may break what people keep,
    but not k-anonymity. Of two tables, rows are people.
    """
    if is_counted or found.get("presence") is not None:
        # what needs the weights of the original is stated, and not measured here
        judged = [{**one, "holds": one["holds"] is not False} for one in found["promises"]]
        return found.extended(promises=judged).holds
    faults = found.get("faults") or {}
    counted = [promise for promise in found["promises"] if promise["model"] == K_ANONYMITY]
    return all(promise["holds"] for promise in counted) and not any(faults.values())


def _measured_together(stated: Stated) -> str | None:
    """Why one file alone does not tell what the certificate states; None where it does."""
    if stated.verb == "republish":
        return f"a ledger's releases are measured together; run {RELEASED_IN_PARTS['republish']}"
    if stated.at("measured") == BY_RELEASE:
        return f"a stream was measured release by release; run {RELEASED_IN_PARTS['stream']}"
    return None


# What was not measured again, in words.


ABOUT = ("shoal", "build", "date", "verb", "method", "seed", "seconds", "scale")
"""Keys about how the release was made, which no file shows."""
OF_OTHER_CHECKS = ("schema", "policy", "input")
COMPARED_WHOLE = (*ABOUT, *OF_OTHER_CHECKS, "promises", "warnings")
"""Parts of a certificate in which no figure goes unstated unnoticed."""
WORDS = {
    "shoal": "version of Shoal",
    "build": "versions of libraries",
    "verb": "command",
    "seed": "seed of random numbers",
    "seconds": "run time",
    "scale": "threads and memory",
    "records": "numbers of records",
    "subjects": "number of people",
    "people": "how it is known who is one person",
    "counted": "whether people were counted",
    "classes": "sizes of classes",
    "together": "classes by all quasi-identifiers",
    "groups": "sizes of the second table's groups",
    "utility": "losses",
    "risk": "risks to be found",
    "output": "file format",
    "faults": "comparison with the original, record by record",
    "warnings": "findings",
    "columns": "figures of columns",
    "attacks": "findings of attacks",
    "beside": "comparison with other releases",
    "history": "comparison with earlier releases",
    "explanation": "reasons of suppression",
    "downstream": "use for learning",
    "counterfeits": "invented records",
    "presence": "whether it shows who is in it",
    "panel": "people who come again",
    "ledger": "place in the ledger",
    "covers": "coverage of the ledger",
    "guards": "what the ledger guards",
    "stream": "figures of the stream",
    "measured": "how its parts were measured",
    "tables": "what is said of each table",
    "linked": "figures of all tables together",
    "fusion": "figures of the fusion",
}
"""Parts of a certificate in words; others are called by their key."""


OF_FRAME = ", as of a frame; 'audit' compares the release with it"


def of_original(stated: Stated, digest: str | None) -> Check:
    """Whether the original is the one that was published. digest: its hash, None without it."""
    known = stated.at("input", "sha256")
    if known is None:
        return Check("input", None, f"the certificate names none{OF_FRAME}")
    if digest is None:
        return Check("input", None, "needs the original; name it with --original")
    stated.note("input")
    if known != digest:
        text = f"the original is not the one certified, {both_hashes(known, digest)}"
        return Check("input", False, text)
    return Check("input", True, f"the original is the one certified, SHA-256 {digest}")


def both_hashes(known: str, digest: str) -> str:
    """Two hashes by their beginnings."""
    return f"SHA-256 {known[:12]}… stated, {digest[:12]}… found"


def not_measured(stated: Stated, has_policy: bool, has_original: bool) -> Check:
    """What no check has compared, said plainly, and what would let it be.

    A reader takes it on the word of whoever wrote it.
    """
    left = [
        path
        for path in _leaves(stated.certificate, ())
        if path[0] not in OF_OTHER_CHECKS
        and not any(path[:end] in stated.compared for end in range(1, len(path) + 1))
    ]
    compared = {path[0] for path in stated.compared}
    keys = list(dict.fromkeys(str(path[0]) for path in left))
    words = {key: WORDS.get(key, key) for key in keys}
    words |= {key: f"{words[key]} (in part)" for key in keys if key in compared}
    method = stated.at("method", "name")
    verb = registry.PRODUCTS["linked"] if stated.at("linked") is not None else stated.verb
    if method is not None and not registry.is_known_method(method, verb):
        words["method"] = "method (not one of Shoal's)"
    lacking = [] if has_policy else ["the policy"]
    is_matched = stated.verb not in ("stream", "republish", "fuse")
    lacking += [] if has_original or not is_matched else ["the original"]
    remedy = f" (needs {' and '.join(lacking)})" if lacking else ""
    figures = [words[key] for key in keys if key not in ABOUT], remedy
    about = [words[key] for key in keys if key in ABOUT], " (what only its author knows)"
    is_tried = stated.at("attacks", "seed") is not None or stated.at("linked", "matching")
    attacks = [] if is_tried else ["attacks"], " (none was tried: what they would find is unknown)"
    unstated = [WORDS.get(key, key) for key in sorted(stated.unstated)]
    audited = unstated, " (not all of them stated; 'shoal audit' measures them)"
    parts = [part for part in (figures, audited, about, attacks) if part[0]]
    text = "; ".join(f"{', '.join(named)}{why}" for named, why in parts)
    short = [f"{some_named(named)}{why}" for named, why in parts]
    if "; ".join(short) != text:
        short.append("all of it is listed by 'shoal verify --json'")
    return Check("not measured again", None, text or "nothing", tuple(short))


def _leaves(value: Any, path: Path) -> Iterator[Path]:
    """The paths to all that is stated; lists of single values are one."""
    if isinstance(value, Mapping):
        for key, below in value.items():
            yield from _leaves(below, (*path, key))
    elif isinstance(value, list) and any(isinstance(one, Mapping) for one in value):
        for index, one in enumerate(value):
            yield from _leaves(one, (*path, index))
    elif value is not None and value != []:
        yield path
