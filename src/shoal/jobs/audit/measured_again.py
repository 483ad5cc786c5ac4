"""Measured again: whether an audit of the file finds what its certificate states.

Every figure that follows from the file alone is compared: promises, class sizes, risks, utility,
columns and warnings. With the original at hand, so is what needs the original. Where the file does
not show who is behind its rows, rows are counted, and no group may have more people than rows.
"""

from __future__ import annotations

from shoal.binding.files import published_table, read_original
from shoal.connectors import files
from shoal.connectors.dialect import DELIMITED
from shoal.data.certificate import Certificate
from shoal.data.certificate_shape import BY_RELEASE
from shoal.data.fault_words import fault_sentence
from shoal.data.formulas import formula_sentences
from shoal.data.person_numbers import person_numbers
from shoal.data.table import Table
from shoal.data.warnings import FORMULA_CELLS, PEOPLE_ASSUMED, ReleaseWarning
from shoal.errors import InputError
from shoal.jobs.audit.audit import AuditResult, audit_table
from shoal.jobs.audit.checks import Check, Stated, listed
from shoal.jobs.audit.comparison import (
    Comparison,
    Remeasured,
    asked_of,
    counts_rows,
    is_counted_alike,
)
from shoal.jobs.audit.without_policy import stated_policy
from shoal.policy.policy import Policy

NAME = "measured again"
K_ANONYMITY = "k-anonymity"
RELEASED_IN_PARTS = ("stream", "republish")  # their rows can't be matched with an original's
UNREADABLE = "the file can't be read"


def measured_again(
    stated: Stated,
    path: str,
    table: Table | None,
    policy: Policy | None,
    original: str | None,
    is_certified: bool,
) -> Check:
    """Whether an audit of the file finds what the certificate states.

    table: the release; None where it can't be read. is_certified: whether the policy is the one
    that the certificate names, as far as it names one.
    """
    if table is None:
        return Check(NAME, False, UNREADABLE)
    if policy is None:
        return _by_file_alone(stated, table)
    try:
        source = None if original is None else Table(read_original(original, policy).frame)
        shown, contradicted = published_table(table, policy)
        result, strict = _audits(stated, shown, policy, source)
    except InputError as unfit:
        why = listed([str(unfit.args[0]), *unfit.findings], 1)
        return Check(NAME, False, why if is_certified else "this policy does not fit the file")
    if contradicted:
        return Check(NAME, False, fault_sentence("derived", contradicted))
    if contradicted is not None:
        stated.note("faults", "derived")
    again = Remeasured(
        result.certificate,
        source,
        result.truth is not None,
        warnings=_more_warnings(stated, path, shown, policy, source),
    )
    return _compared(stated, again, strict, result.schema.render.order != "input")


def _by_file_alone(stated: Stated, table: Table) -> Check:
    """Whether the groups of equal cells are those stated; the certificate says of which columns."""
    needed = "needs the policy; name it with --policy"
    try:
        policy = stated_policy(stated)
        if policy is None:
            return Check(NAME, None, needed)
        found = audit_table(table, policy, None).certificate
    except InputError as unfit:
        return Check(NAME, False, f"not by the columns that it names: {unfit.args[0]}")
    comparison = Comparison(stated, Remeasured(found, has_policy=False))
    differing = [*comparison.same_rows(has_classes=_measured_together(stated) is None)]
    if differing:
        return _differing(differing)
    return Check(NAME, None, f"groups of rows agree; all else {needed}")


def _differing(keys: list[str]) -> Check:
    more = listed(list(dict.fromkeys(_in_short(keys))))
    return Check(NAME, False, f"{more}: an audit finds another value than the certificate")


def _audits(
    stated: Stated, shown: Table, policy: Policy, source: Table | None
) -> tuple[AuditResult, AuditResult]:
    """An audit that measures as the certificate says that it was measured, and the strictest."""
    matched = source if stated.verb not in RELEASED_IN_PARTS else None
    strict = audit_table(shown, policy, matched)
    if matched is None or not counts_rows(stated):
        return strict, strict
    return audit_table(shown, policy, None), strict


def _more_warnings(
    stated: Stated, path: str, shown: Table, policy: Policy, source: Table | None
) -> dict[str, list[ReleaseWarning]]:
    """What publishing warns of beside an audit, as far as file and original tell it."""
    found: dict[str, list[ReleaseWarning]] = {}
    if stated.verb != "publish":
        return found
    if files.format_of(path) in DELIMITED and policy.model.write.formulas == "keep":
        sentences = formula_sentences(shown.frame)
        found[FORMULA_CELLS] = [ReleaseWarning(FORMULA_CELLS, text) for text in sentences]
    if source is not None and policy.subject is None:
        evidence = person_numbers(source)
        found[PEOPLE_ASSUMED] = [ReleaseWarning(PEOPLE_ASSUMED, str(one)) for one in evidence]
    return found


def _compared(stated: Stated, again: Remeasured, strict: AuditResult, is_shuffled: bool) -> Check:
    """Compares the figures of two certificates, promises by what each asks.

    is_shuffled: by the reader's policy, not by what the certificate states.
    """
    found = again.certificate
    asked = {asked_of(promise) for promise in stated.promises}
    if len(asked) < len(stated.promises):
        return Check(NAME, False, "the certificate states a promise twice")
    if asked != {asked_of(promise) for promise in found["promises"]}:
        return Check(NAME, False, "the policy asks for other promises than the certificate states")
    comparison, is_alone = Comparison(stated, again), _measured_together(stated) is None
    is_counted = is_alone and is_counted_alike(stated, found)
    if is_counted:
        differing = [*comparison.same_people()]
    else:
        differing = [*comparison.same_rows(has_classes=is_alone)]
    if differing:
        return _differing(differing)
    if strict.truth is not None:
        for name in strict.certificate["faults"]:
            stated.note("faults", name)
    if not _holds(strict.certificate, is_counted):
        return Check(NAME, False, "an audit finds broken promises, or faults against the original")
    return _unmatched(stated, again, is_shuffled) or Check(NAME, True, "an audit finds the same")


def _unmatched(stated: Stated, again: Remeasured, is_shuffled: bool) -> Check | None:
    """What kept figures from being compared; None where all were."""
    has_original = again.original is not None
    # a forged certificate must not talk anyone out of the comparison that they ask for
    unmeasured = False if has_original else None
    together = _measured_together(stated)
    if together is not None:
        return Check(NAME, unmeasured, together)
    if not is_counted_alike(stated, again.certificate):
        return Check(NAME, *_uncounted(has_original, is_shuffled))
    if _has_other_reference(stated, again):
        text = "was measured to a reference; name it in the policy, under 'reference'"
        return Check(NAME, unmeasured, text)
    if has_original and not again.has_truth and not counts_rows(stated):
        # nothing that needs the original was compared, whatever the certificate says of its verb
        text = "the file alone holds it; its rows can't be matched with the original"
        return Check(NAME, None, text)
    return None


def _holds(found: Certificate, is_counted: bool) -> bool:
    """Whether what was measured is kept.

    is_counted: as the certificate counts, in this file alone; else rows may break what people keep,
    but not k-anonymity.
    """
    if is_counted:
        return found.holds
    faults = found.get("faults") or {}
    counted = [promise for promise in found["promises"] if promise["model"] == K_ANONYMITY]
    return all(promise["holds"] for promise in counted) and not any(faults.values())


def _measured_together(stated: Stated) -> str | None:
    """Why one file alone does not tell what the certificate states; None where it does."""
    if stated.verb == "republish":
        return "a ledger's releases are measured together; run 'shoal audit --ledger'"
    if stated.at("measured") == BY_RELEASE:
        return "a stream was measured release by release; run 'shoal audit --trace'"
    return None


def _uncounted(has_original: bool, is_shuffled: bool) -> tuple[bool | None, str]:
    """Whether it is a fault that people can't be counted, and why they can't."""
    if not has_original:
        return None, "agrees as far as rows tell; to count people, name the original (--original)"
    why = "the release alone names none, and its rows can't be matched with the original"
    return (None if is_shuffled else False), f"people can't be counted; {why}"


def _has_other_reference(stated: Stated, again: Remeasured) -> bool:
    to = {asked_of(promise): promise.get("to") for promise in again.certificate["promises"]}
    return any(promise.get("to") != to[asked_of(promise)] for promise in stated.promises)


def _in_short(differing: list[str]) -> list[str]:
    """The keys that differ; of a part of which several do, its name alone."""
    parts = [key.partition(".")[0] for key in differing]
    return [
        part if parts.count(part) > 1 else key for part, key in zip(parts, differing, strict=True)
    ]
