"""Measured again: whether an audit of the file finds what its certificate states.

Every figure that follows from the file alone is compared: promises, class sizes, risks, utility and
columns. With the original at hand, so is what needs the original.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from shoal.binding.files import published_table, read_original
from shoal.data.certificate import Certificate
from shoal.data.fault_words import fault_sentence
from shoal.data.table import Table
from shoal.errors import InputError
from shoal.jobs.audit.audit import AuditResult, audit_table
from shoal.jobs.audit.checks import Check, Stated
from shoal.policy.policy import Policy

NAME = "measured again"
CLOSE = 1e-9  # relative; sums in another order differ by less
RELEASED_IN_PARTS = ("stream", "republish")  # their rows can't be matched with an original's
BY_RELEASE = "release by release"
FIGURES = ("classes", "risk", "together")
OF_COLUMNS = ("role", "type", "technique", "distinct_out", "loss")
OF_COLUMNS_BEFORE = ("distinct_in", "alone_in")


def measured_again(
    stated: Stated,
    table: Table | None,
    unreadable: str,
    policy: Policy | None,
    original: str | Path | None,
) -> Check:
    """Whether an audit of the file finds what the certificate states.

    table: the release; None where it can't be read, and unreadable says why.
    """
    if policy is None:
        return Check(NAME, None, "needs the policy; name it with --policy")
    if table is None:
        return Check(NAME, False, unreadable)
    # a forged certificate must not talk anyone out of the comparison that they ask for
    unmeasured = None if original is None else False
    refusal = _unmeasurable(stated)
    if refusal is not None:
        return Check(NAME, unmeasured, refusal)
    matched = original is not None and stated.at("verb") not in RELEASED_IN_PARTS
    try:
        source = Table(read_original(str(original), policy).frame) if matched else None
        shown, contradicted = published_table(table, policy)
        found = audit_table(shown, policy, source)
    except InputError as unfit:
        return Check(NAME, False, str(unfit.args[0]))
    if contradicted:
        return Check(NAME, False, fault_sentence("derived", contradicted))
    return _compared(stated, found, original is not None)


def _unmeasurable(stated: Stated) -> str | None:
    """Why one file alone does not tell what the certificate states."""
    if stated.at("verb") == "republish":
        return "a ledger's releases are measured together; run 'shoal audit --ledger'"
    if stated.at("measured") == BY_RELEASE:
        return "a stream was measured release by release; run 'shoal audit --trace'"
    return None


def _compared(stated: Stated, result: AuditResult, has_original: bool) -> Check:
    """Compares two certificates: promises by what each asks, then every other figure."""
    found = result.certificate
    unmeasured = False if has_original else None
    before = {_asked(promise): promise for promise in stated.promises}
    if len(before) < len(stated.promises):
        return Check(NAME, False, "the certificate states a promise twice")
    again = {_asked(promise): promise for promise in found["promises"]}
    if set(before) != set(again):
        return Check(NAME, False, "the policy asks for other promises than the certificate states")
    if found["counted"] != stated.at("counted"):
        return Check(NAME, *_uncounted(has_original, result.schema.render.order != "input"))
    if any(before[key].get("to") != again[key].get("to") for key in before):
        return Check(
            NAME,
            unmeasured,
            "was measured to a reference; name it in the policy, under 'reference'",
        )
    other = [str(before[key]["model"]) for key in before if not _same(before[key], again[key])]
    other += _other_figures(stated, found, result.truth is not None)
    if other:
        return Check(
            NAME, False, f"{', '.join(other)}: an audit finds another value than the certificate"
        )
    if not found.holds:
        return Check(NAME, False, "an audit finds faults against the original")
    if has_original and result.truth is None:
        # nothing that needs the original was compared, whatever the certificate says of its verb
        return Check(
            NAME, None, "the file alone holds it; its rows can't be matched with the original"
        )
    return Check(NAME, True, "an audit finds the same")


def _uncounted(has_original: bool, is_shuffled: bool) -> tuple[bool | None, str]:
    """Whether it is a fault that people can't be counted, and why they can't.

    is_shuffled: by the reader's policy, not by what the certificate states.
    """
    if not has_original:
        return None, "people can't be counted; name the original with --original"
    why = "the release alone names none, and its rows can't be matched with the original"
    return (None if is_shuffled else False), f"people can't be counted; {why}"


def _asked(promise: Mapping[str, Any]) -> str:
    """What a promise asks, without what was found."""
    found = ("holds", "to", "classes", "risk")
    return json.dumps(
        {key: value for key, value in promise.items() if key not in found and not _is_measure(key)},
        sort_keys=True,
    )


def _is_measure(key: str) -> bool:
    return key.startswith("measured") or key.endswith("_measured")


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether what was measured is the same twice; one: as stated.

    Sizes and risks by promise are no part of an earlier schema, and then are not compared.
    """
    keys = {"holds", *filter(_is_measure, {*one, *other})}
    keys |= {key for key in ("classes", "risk") if one.get(key) is not None}
    return all(_close(one.get(key), other.get(key)) for key in keys)


def _other_figures(stated: Stated, found: Certificate, has_truth: bool) -> Iterator[str]:
    """The figures beside the promises in which the two certificates differ."""
    if not _close(stated.at("subjects"), found["subjects"]):
        yield "subjects"
    if _differs_in_people(stated, found):
        yield "people"
    for key in ("suppressed", "withheld"):
        known = found["records"].get(key)
        if known is not None and not _is_unstated(stated, key):
            yield from _differing("records", stated.at("records"), {key: known}, [key])
    for key in FIGURES:
        if found.get(key) is not None and not _is_unstated(stated, key):
            yield from _differing(key, stated.at(key), found[key], found[key])
    utility = _comparable(found, has_truth)
    yield from _differing("utility", stated.at("utility"), found["utility"], utility)
    yield from _differing_columns(stated, found, has_truth)


def _differs_in_people(stated: Stated, found: Certificate) -> bool:
    """Whether records are said to be people who were counted, or the other way round.

    A fusion knows its people, which its table alone does not show.
    """
    known = stated.at("people")
    return known is not None and stated.at("verb") != "fuse" and known != found["people"]


def _is_unstated(stated: Stated, key: str) -> bool:
    """Whether a key that an earlier schema lacks is null."""
    return key in ("together", "withheld") and stated.schema == "1"


def _comparable(found: Certificate, has_truth: bool) -> list[str]:
    """The measures of utility that an audit can compare."""
    utility = found["utility"]
    if has_truth:
        return list(utility)
    without = [name for name, value in utility.items() if value is not None]
    if utility.get("gcp") is None:  # then widths are taken of what occurs, not of the domain
        without = [name for name in without if name != "generalized_loss"]
    return without


def _differing(
    part: str, stated: Any, found: Mapping[str, Any], keys: Collection[str]
) -> Iterator[str]:
    """Those of the keys whose values differ. A measure of utility may be missing: a plug-in's."""
    for key in keys:
        if not isinstance(stated, Mapping):
            yield part
            return
        if key not in stated and part == "utility":
            continue
        if not _close(stated.get(key), found[key]):
            yield f"{part}.{key}"


def _differing_columns(stated: Stated, found: Certificate, has_truth: bool) -> Iterator[str]:
    """The published columns that the certificate describes otherwise than the file and policy."""
    described = stated.at("columns")
    if not isinstance(described, list):
        return  # of an earlier schema; or another check fails
    by_name = {
        column.get("name"): column
        for column in described
        if isinstance(column, Mapping) and isinstance(column.get("name"), str)
    }
    for column in found["columns"]:
        if column["technique"] == "removed":
            continue
        keys = [*OF_COLUMNS, *(OF_COLUMNS_BEFORE if has_truth else ())]
        before = by_name.get(column["name"], {})
        shown = [key for key in keys if column[key] is not None]
        if not all(_close(before.get(key), column[key]) for key in shown):
            yield f"column '{column['name']}'"


def _close(one: Any, other: Any) -> bool:
    numbers = (int, float)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return {*one} == {*other} and all(_close(one[key], other[key]) for key in one)
    if isinstance(one, bool) or not isinstance(one, numbers) or not isinstance(other, numbers):
        return bool(one == other)
    try:
        return math.isclose(one, other, rel_tol=CLOSE, abs_tol=CLOSE)
    except OverflowError:  # a whole number beyond all floats
        return False
