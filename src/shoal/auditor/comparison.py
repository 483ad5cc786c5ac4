"""Two certificates of one file, figure by figure: the one that is stated, and an audit's own."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from shoal.auditor.checks import K_ANONYMITY, Stated
from shoal.data import warnings
from shoal.data.certificate import CLOSE, Certificate
from shoal.data.certificate_shape import UNKNOWN, ColumnReport
from shoal.data.single_ends import SINGLE_ENDS
from shoal.data.table import Table
from shoal.data.warnings import ReleaseWarning

BY_CELLS = ("discernibility",)
BY_RECORDS = (*BY_CELLS, "gcp", "generalized_loss", "classification")
SIZES = ("min", "mean", "max")
FROM_POLICY = ("role", "type", "technique", "round", "derived_from")
FROM_FILE = ("distinct_out", "loss")
FROM_PEOPLE = ("alone_if_known",)
STATED_LATELY = (*FROM_PEOPLE, "in_several")
FROM_ORIGINAL = ("distinct_in", "alone_in", "single_ends")
COUNTS_VALUES = ("l-diversity", "distinct")
BY_POLICY = (
    *(warnings.HIERARCHY_REPEATS, *warnings.OF_CELLS, warnings.PLAIN_SINGLES_OUT),
    *(warnings.ROWS_LINKED, warnings.HOUSEHOLD_JOINED),
)
"""Findings that an audit under the policy gives reason for."""
JUDGED_ANEW = (warnings.MISSING_COUNTED, warnings.READ_AS_TEXT)
"""Findings that builds of the same version state of other columns: no certificate tells which."""


@dataclass(frozen=True)
class Comparison:
    """Notes every figure of a certificate that an audit measures, and both where they differ.

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

    def people(self) -> None:
        """Compares where both count the same people."""
        stated, found = self.stated, self.found
        stated.note("counted")
        stated.compare(found["subjects"], "subjects")
        # a fusion knows its people, which its table alone does not show
        shows_people = stated.at("people") is not None and stated.verb != "fuse"
        if shows_people:
            stated.compare(found["people"], "people")
        self._records()
        risk = found["risk"]
        if stated.at("attacks", "population") is not None:
            risk = {key: risk[key] for key in risk if key.startswith("prosecutor")}
        self._figures(found["classes"], found["classes"], "classes")
        self._figures(risk, risk, "risk")
        if not stated.is_earlier:
            self._figures(found["together"], found["together"], "together")
        self._figures(found["utility"], self._comparable_utility(), "utility")
        if (by_weight := found.get("individual_risk")) is not None:
            self._figures(by_weight, by_weight, "individual_risk")
        self._starred()
        self._groups()
        for index, one, other in self._promises():
            keys = ["holds", *filter(_is_measure, {**one, **other})]
            keys += [key for key in ("classes", "risk") if key in one or not stated.is_earlier]
            self._figures(other, keys, "promises", index)
        self._columns((*FROM_FILE, *FROM_PEOPLE))
        self._warnings(exactly=True)

    def rows(self, has_classes: bool) -> None:
        """Compares where people are stated and rows are counted: rows bound people from above.

        has_classes: whether the stated classes are those of the whole file.
        """
        found = self.found
        self._bound_sizes(found["classes"], "classes")
        for index, one, other in self._promises():
            if one["model"] == K_ANONYMITY:
                self._bound(other["measured"], "promises", index, "measured")
                if one.get("classes") is not None:
                    self._bound_sizes(other["classes"], "promises", index, "classes")
            elif found.get("presence") is not None:  # of two tables, where a row is a person
                keys = ["holds", *filter(_is_measure, {**one, **other})]
                self._figures(other, keys, "promises", index)
            elif has_classes and (one["model"], one.get("kind")) == COUNTS_VALUES:
                self._figures(other, ["measured", "holds"], "promises", index)
        if not has_classes:
            return
        self._records()
        self._starred()
        self._figures(found["classes"], ["count"], "classes")
        known = BY_RECORDS if self.has_policy else BY_CELLS
        scores = [key for key in self._comparable_utility() if key in known]
        self._figures(found["utility"], scores, "utility")
        self._groups()
        self._columns(FROM_FILE)
        self._warnings(exactly=False)

    def _bound(self, bound: Any, *path: str | int) -> None:
        """Compares what stands there if it is more than rows allow."""
        stated = self.stated.at(*path)
        if stated is not None and (bound is None or stated > bound * (1 + CLOSE)):
            self.stated.compare(bound, *path)

    def _bound_sizes(self, found: Mapping[str, Any], *path: str | int) -> None:
        """Compares sizes that groups of these numbers of rows can't have."""
        for key in SIZES:
            self._bound(found[key], *path, key)

    def _figures(self, found: Mapping[str, Any], keys: Iterable[str], *path: str | int) -> None:
        """Compares these figures of what stands there; earlier versions lack STATED_LATELY."""
        stated = self.stated.at(*path) or {}
        for key in keys:
            if key in stated or key not in STATED_LATELY:
                self.stated.compare(found.get(key), *path, key)

    def _starred(self) -> None:
        """Suppressed cells by column; earlier versions do not state them."""
        stated = self.stated.at("starred") or {}
        self._figures(self.found.get("starred") or {}, stated, "starred")

    def _groups(self) -> None:
        """The groups of two tables, which anybody can count."""
        found, stated = self.found.get("groups") or {}, self.stated.at("groups") or {}
        self.stated.note("presence")
        if (self.stated.at("presence"), set(stated)) != (self.found.get("presence"), set(found)):
            self.stated.differences.append("groups: other ones stated than measured")
            return
        self._figures(found, found, "groups")

    def _records(self) -> None:
        found = self.found["records"]
        keys = ["suppressed"] if self.stated.is_earlier else ["suppressed", "withheld"]
        came = None if self.original is None else self.original.records
        if came is not None and self.stated.at("records", "in") is not None:
            keys.append("in")
        self._figures({**found, "in": came}, keys, "records")

    def _comparable_utility(self) -> list[str]:
        """The measures of utility that an audit can compare; a plug-in's may be missing here."""
        utility, stated = self.found["utility"], self.stated.at("utility")
        known = [name for name in utility if name in stated]
        if any((self.found.get("starred") or {}).values()):
            loss, least = stated.get("generalized_loss"), (utility.get("gcp") or 0) * (1 - CLOSE)
            if loss is not None and least <= loss <= (utility.get("generalized_loss") or 0):
                self.stated.note("utility", "generalized_loss")
                known.remove("generalized_loss")  # earlier builds took some domains for ranges
        return [name for name in known if self.has_truth or utility[name] is not None]

    def _promises(self) -> Iterator[tuple[int, Mapping[str, Any], Mapping[str, Any]]]:
        """Every promise as it is stated and as it is measured, to the same reference."""
        again = {asked_of(promise): promise for promise in self.found["promises"]}
        for index, promise in enumerate(self.stated.promises):
            measured = again.get(asked_of(promise))
            if measured is None:
                continue  # without a policy, not every promise can be measured
            for key in _asking(promise):
                self.stated.note("promises", index, key)
            is_known = measured["holds"] is not None  # else it needs the weights of the original
            if is_known and promise.get("to") == measured.get("to"):
                yield index, promise, measured

    def _columns(self, from_file: tuple[str, ...]) -> None:
        """The columns as file, policy and original have them.

        from_file: what the release alone tells of them.
        """
        described, differences = self.stated.at("columns"), self.stated.differences
        if described is None:
            return
        found = {column["name"]: {**column} for column in self.found["columns"]}
        for index, column in enumerate(described):
            measured = found.pop(column["name"], None)
            if column["technique"] == "derived" and not self.has_policy:
                continue  # such an audit takes it for a column like any other
            if measured is None:
                # only the original could tell that a column was there and was removed
                is_removed = self.original is None and column["technique"] == "removed"
                if not is_removed or (self.has_policy and column["role"] != "drop"):
                    differences.append(f"column {index + 1}: stated, not found")
                continue
            before = self._before(column)
            measured = {**measured, **before}
            keys = ["name", *(key for key in from_file if measured[key] is not None), *before]
            keys += FROM_POLICY if self.has_policy else []
            keys += FROM_ORIGINAL if self.has_truth else []
            self._figures(measured, keys, "columns", index)
        if self.has_policy:
            differences += [f"column '{name}': found, not stated" for name in found]

    def _before(self, column: ColumnReport) -> Mapping[str, float | None]:
        """What the original alone says of a published column, in whatever order its rows are."""
        original, name = self.original, column["name"]
        is_blank = column["technique"] in ("removed", "derived")
        if original is None or self.has_truth or is_blank or name not in original:
            return {}
        if column["distinct_in"] is None:  # it was not at hand, or could not be matched
            return {}
        distinct, alone = original.distinct_and_alone(name)
        return {"distinct_in": distinct, "alone_in": alone}

    def _warnings(self, exactly: bool) -> None:
        """Warnings that the file gives reason for and that are not stated, or the other way round.

        exactly: whether the same people were counted. A fusion counts other people than an audit.
        """
        stated = self.stated.at("warnings")
        if stated is None:
            return
        said = self.stated.findings
        codes = [warning.code for warning in said]
        is_exact = exactly and self.stated.verb != "fuse"
        own = [warnings.TOGETHER_BELOW, warnings.WITHHELD_FEW]
        own += BY_POLICY if self.has_policy else ()
        own += [SINGLE_ENDS, warnings.ORDER_KEPT] if self.has_truth else []
        found: dict[str, list[ReleaseWarning]] = {code: [] for code in own}
        for warning in self.found.warnings:
            if warning.code == warnings.MISSING_COUNTED and not exactly:
                continue  # shares of values, of people where they are stated and of rows here
            if self.has_policy or warning.code in own:
                found.setdefault(warning.code, []).append(warning)
        for code, given in {**found, **self.warnings}.items():
            name, count = f"findings '{code}'", codes.count(code)
            if code in JUDGED_ANEW:
                name += ", which earlier builds of Shoal judged differently"
            if count < len(given) or (is_exact and count > len(given)):
                self.stated.differ(name, count, len(given))
                continue
            places = [index for index, one in enumerate(codes) if one == code]
            for index in places if exactly else ():
                for key in stated[index].keys() - {"text"}:
                    self.stated.note("warnings", index, key)
            for measured in given if is_exact else ():
                place = next((i for i in places if measured.is_stated_by(said[i])), None)
                if place is None:
                    differs = f"{name}: not stated as found: {measured.text}"
                    self.stated.differences.append(differs)
                    continue
                places.remove(place)
                if measured.report() == said[place].report():
                    self.stated.note("warnings", place)
                said[place] = measured


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
    is_share = key in ("expected", "above")  # of a sample
    return key.startswith("measured") or key.endswith("_measured") or is_share
