"""Two certificates of one file, figure by figure: the one that is stated, and an audit's own."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from shoal.auditor.checks import CLOSE, K_ANONYMITY, Stated
from shoal.data.certificate import Certificate
from shoal.data.people import UNKNOWN
from shoal.data.single_ends import SINGLE_ENDS
from shoal.data.table import Table
from shoal.data.warnings import (
    HIERARCHY_REPEATS,
    OF_CELLS,
    PLAIN_SINGLES_OUT,
    TOGETHER_BELOW,
    WITHHELD_FEW,
    ReleaseWarning,
)

BY_CELLS = ("discernibility",)
BY_RECORDS = (*BY_CELLS, "gcp", "generalized_loss", "classification")
SIZES = ("min", "mean", "max")
FROM_POLICY = ("role", "type", "technique", "round", "derived_from")
FROM_FILE = ("distinct_out", "loss")
FROM_PEOPLE = ("alone_if_known",)
FROM_ORIGINAL = ("distinct_in", "alone_in", "single_ends")
COUNTS_VALUES = ("l-diversity", "distinct")


@dataclass(frozen=True)
class Comparison:
    """What differs between a certificate and an audit; every figure that is compared is noted.

    found: the audit's. original: the table that the release was made of, where it is at hand.
    has_truth: whether its records could be matched with the release's. has_policy: else the audit
    knows no more than which columns the certificate names. warnings: by code, those that the file
    or the original gives beside the audit's own.
    """

    stated: Stated
    found: Certificate
    original: Table | None = None
    has_truth: bool = False
    has_policy: bool = True
    warnings: Mapping[str, list[ReleaseWarning]] = field(default_factory=dict)

    @property
    def is_counted_alike(self) -> bool:
        """Whether both certificates count people, or both count rows."""
        return bool(self.found["counted"] == self.stated.at("counted"))

    def same_people(self) -> Iterator[str]:
        """What differs where both count the same people."""
        stated, found = self.stated, self.found
        stated.note("counted")
        if stated.differs(found["subjects"], "subjects"):
            yield "subjects"
        # a fusion knows its people, which its table alone does not show
        shows_people = stated.at("people") is not None and stated.verb != "fuse"
        if shows_people and stated.differs(found["people"], "people"):
            yield "people"
        yield from self._records()
        risk = found["risk"]
        if stated.at("attacks", "population") is not None:
            risk = {key: risk[key] for key in risk if key.startswith("prosecutor")}
        yield from self._under("classes", found["classes"], found["classes"])
        yield from self._under("risk", risk, risk)
        if not stated.is_earlier:
            yield from self._under("together", found["together"], found["together"])
        yield from self._under("utility", found["utility"], self._comparable_utility())
        yield from self._groups()
        for index, one, other in self._promises():
            keys = ["holds", *filter(_is_measure, {*one, *other})]
            keys += [key for key in ("classes", "risk") if key in one or not stated.is_earlier]
            yield from self._promise(index, other, keys)
        yield from self._columns((*FROM_FILE, *FROM_PEOPLE))
        yield from self._warnings(exactly=True)

    def same_rows(self, has_classes: bool) -> Iterator[str]:
        """What differs where people are stated and rows are counted: rows bound people from above.

        has_classes: whether the stated classes are those of the whole file.
        """
        found = self.found
        if _is_larger(self.stated.at("classes"), found["classes"]):
            yield "classes"
        for index, one, other in self._promises():
            if one["model"] == K_ANONYMITY:
                groups = one.get("classes")
                if _is_above(one["measured"], other["measured"]) or (
                    groups is not None and _is_larger(groups, other["classes"])
                ):
                    yield K_ANONYMITY
            elif found.get("presence") is not None:  # of two tables, where a row is a person
                keys = ["holds", *filter(_is_measure, {*one, *other})]
                yield from self._promise(index, other, keys)
            elif has_classes and (one["model"], one.get("kind")) == COUNTS_VALUES:
                yield from self._promise(index, other, ["measured", "holds"])
        if not has_classes:
            return
        yield from self._records()
        yield from self._under("classes", found["classes"], ["count"])
        known = BY_RECORDS if self.has_policy else BY_CELLS
        scores = [key for key in self._comparable_utility() if key in known]
        yield from self._under("utility", found["utility"], scores)
        yield from self._groups()
        yield from self._columns(FROM_FILE)
        yield from self._warnings(exactly=False)

    def _under(self, part: str, found: Mapping[str, Any], keys: Iterable[str]) -> Iterator[str]:
        """Those of the keys of a part that differ."""
        for key in keys:
            if self.stated.differs(found[key], part, key):
                yield f"{part}.{key}"

    def _groups(self) -> Iterator[str]:
        """The groups of two tables, which anybody can count."""
        found, stated = self.found.get("groups") or {}, self.stated.at("groups") or {}
        self.stated.note("presence")
        if (self.stated.at("presence"), set(stated)) != (self.found.get("presence"), set(found)):
            yield "groups"
            return
        yield from self._under("groups", found, found)

    def _records(self) -> Iterator[str]:
        found = self.found["records"]
        keys = ["suppressed"] if self.stated.is_earlier else ["suppressed", "withheld"]
        came = None if self.original is None else self.original.records
        if came is not None and self.stated.at("records", "in") is not None:
            keys.append("in")
        yield from self._under("records", {**found, "in": came}, keys)

    def _comparable_utility(self) -> list[str]:
        """The measures of utility that an audit can compare; a plug-in's may be missing here."""
        utility, stated = self.found["utility"], self.stated.at("utility")
        known = [name for name in utility if name in stated]
        if self.has_truth:
            return known
        known = [name for name in known if utility[name] is not None]
        if utility.get("gcp") is None:  # then widths are taken of what occurs, not of the domain
            known = [name for name in known if name != "generalized_loss"]
        return known

    def _promises(self) -> Iterator[tuple[int, Mapping[str, Any], Mapping[str, Any]]]:
        """Every promise as it is stated and as it is measured, to the same reference."""
        again = {asked_of(promise): promise for promise in self.found["promises"]}
        for index, promise in enumerate(self.stated.promises):
            measured = again.get(asked_of(promise))
            if measured is None:
                continue  # without a policy, not every promise can be measured
            for key in _asking(promise):
                self.stated.note("promises", index, key)
            if promise.get("to") == measured.get("to"):
                yield index, promise, measured

    def _promise(
        self, index: int, measured: Mapping[str, Any], keys: Iterable[str]
    ) -> Iterator[str]:
        """The model of a promise of which one of the keys differs."""
        if [key for key in keys if self.stated.differs(measured.get(key), "promises", index, key)]:
            yield str(measured["model"])

    def _columns(self, from_file: tuple[str, ...]) -> Iterator[str]:
        """The columns that the certificate describes otherwise than file, policy and original.

        from_file: what the release alone tells of them.
        """
        described = self.stated.at("columns")
        if described is None:
            return
        found = {column["name"]: column for column in self.found["columns"]}
        for index, column in enumerate(described):
            measured = found.pop(column["name"], None)
            if column["technique"] == "derived" and not self.has_policy:
                continue  # such an audit takes it for a column like any other
            if measured is None:
                # only the original could tell that a column was there and was removed
                is_removed = self.original is None and column["technique"] == "removed"
                if not is_removed or (self.has_policy and column["role"] != "drop"):
                    yield f"column {index + 1}"
                continue
            before = self._before(column)
            measured = {**measured, **before}
            keys = ["name", *(key for key in from_file if measured[key] is not None), *before]
            keys += FROM_POLICY if self.has_policy else []
            keys += FROM_ORIGINAL if self.has_truth else []
            if [key for key in keys if self.stated.differs(measured[key], "columns", index, key)]:
                yield f"column '{column['name']}'"
        if self.has_policy:
            yield from (f"column '{name}'" for name in found)

    def _before(self, column: Mapping[str, Any]) -> dict[str, Any]:
        """What the original alone says of a published column, in whatever order its rows are."""
        original, name = self.original, column["name"]
        is_blank = column["technique"] in ("removed", "derived")
        if original is None or self.has_truth or is_blank or name not in original:
            return {}
        if column["distinct_in"] is None:  # it was not at hand, or could not be matched
            return {}
        distinct, alone = original.distinct_and_alone(name)
        return {"distinct_in": distinct, "alone_in": alone}

    def _warnings(self, exactly: bool) -> Iterator[str]:
        """Warnings that the file gives reason for and that are not stated, or the other way round.

        exactly: whether the same people were counted. A fusion counts other people than an audit.
        """
        stated = self.stated.at("warnings")
        if stated is None:
            return
        said = [ReleaseWarning.of(warning) for warning in stated]
        codes = [warning.code for warning in said]
        own = [TOGETHER_BELOW, WITHHELD_FEW]
        own += [HIERARCHY_REPEATS, *OF_CELLS, PLAIN_SINGLES_OUT] if self.has_policy else []
        own += [SINGLE_ENDS] if self.has_truth else []
        found: dict[str, list[ReleaseWarning]] = {code: [] for code in own}
        for warning in self.found.warnings:
            if self.has_policy or warning.code in own:
                found.setdefault(warning.code, []).append(warning)
        for code, given in {**found, **self.warnings}.items():
            if exactly and self.stated.verb != "fuse":
                differs = Counter(w.key for w in said if w.code == code) != Counter(
                    warning.key for warning in given
                )
            else:
                differs = codes.count(code) < len(given)
            if differs:
                yield f"the warnings '{code}'"
            if exactly:
                for index in (index for index, one in enumerate(codes) if one == code):
                    self.stated.note("warnings", index)


def asked_of(promise: Mapping[str, Any]) -> str:
    """What a promise asks, without what was found."""
    return json.dumps({key: promise[key] for key in _asking(promise)}, sort_keys=True)


def _asking(promise: Mapping[str, Any]) -> list[str]:
    """The keys of a promise that say what it asks."""
    found = ("holds", "to", "classes", "risk")
    return [key for key in promise if key not in found and not _is_measure(key)]


def counts_rows(stated: Stated) -> bool:
    """Whether the original was not at hand when it was measured."""
    return stated.at("people") == UNKNOWN or stated.at("counted") == "rows"


def _is_measure(key: str) -> bool:
    return key.startswith("measured") or key.endswith("_measured")


def _is_above(stated: Any, bound: Any) -> bool:
    return stated is not None and (bound is None or stated > bound * (1 + CLOSE))


def _is_larger(stated: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    """Whether groups of so many rows can't have such sizes."""
    return any(_is_above(stated[key], found[key]) for key in SIZES)
