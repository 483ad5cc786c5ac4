"""What a release proves about itself, as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from copy import copy
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, overload

from shoal.data import notebook
from shoal.data.certificate_shape import SINCE_2, ColumnReport, PromiseReport, shape_findings, unit
from shoal.data.language import printable_lines
from shoal.data.regular_files import distinct_keys, readable, require_regular
from shoal.data.warnings import (
    CONTROL_IN_ORIGINAL,
    GRAVE,
    VALUES_UNPLACED,
    ReleaseWarning,
    fault_sentences,
    with_grave,
)
from shoal.errors import InputError

SCHEMA = "shoal.certificate/2"
EARLIER = "shoal.certificate/1"
READABLE = (EARLIER, SCHEMA)


class Certificate(Mapping[str, Any]):
    """The keys that the public contract names, read-only; holds no value of the data."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        self._content = {"schema": SCHEMA, **_plain(content)}
        if self._content["schema"] == EARLIER:
            self._content = {**self._content, **dict.fromkeys(SINCE_2)}

    @classmethod
    def load(cls, path: str | Path) -> Certificate:
        """The certificate in a file, of this schema or the one before.

        Of the one before, keys that are new in this schema are null. Raises InputError with every
        key that is not as its schema and its verb say.
        """
        return cls.parsed(cls.read(path), path)

    @staticmethod
    def read(path: str | Path) -> bytes:
        """The bytes of a certificate, for whoever needs them beside what they say."""
        require_regular(path, "certificate")
        with readable(f"certificate '{path}'"):
            try:
                content = Path(path).read_bytes()
            except FileNotFoundError:
                hint = "fetch it with the release, or name it behind the release"
                if str(path).lower().endswith(".html.certificate.json"):
                    hint = "a page is for people; name the released file, which is what is verified"
                raise InputError(f"certificate '{path}': is not there; {hint}") from None
        return content

    @classmethod
    def parsed(cls, content_bytes: bytes, path: str | Path) -> Certificate:
        """The certificate in these bytes, as `load`. path: what messages name."""
        try:
            content = json.loads(
                content_bytes.decode("utf-8"),
                object_pairs_hook=distinct_keys,
                parse_constant=int,  # NaN and Infinity are no JSON: a ValueError
            )
        except (ValueError, RecursionError):
            content = None
        schema = content.get("schema") if isinstance(content, dict) else None
        if not isinstance(schema, str) or not schema.startswith("shoal.certificate/"):
            raise InputError(f"certificate '{path}': is not a certificate of Shoal; fetch it again")
        if schema not in READABLE:
            raise InputError(
                f"certificate '{path}': is of a schema that this version can't read; use a newer"
                " version of Shoal"
            )
        findings = shape_findings(content, schema == EARLIER)
        if findings:
            first, *more = findings
            raise InputError(
                f"certificate '{path}': {first}; fetch it again, or certify the file with"
                " 'shoal audit'",
                more,
            )
        return cls(content)

    @overload
    def __getitem__(self, key: Literal["promises"]) -> list[PromiseReport]: ...
    @overload
    def __getitem__(self, key: Literal["columns"]) -> list[ColumnReport]: ...
    @overload
    def __getitem__(self, key: str) -> Any: ...

    def __getitem__(self, key: str) -> Any:
        return self._content[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._content)

    def __len__(self) -> int:
        return len(self._content)

    def __repr__(self) -> str:
        """The verb, the method, whether every promise holds, what makes attacks doubtful and what
        they found, worst first, and what is lost downstream; `to_json` has everything.
        """
        method = self.get("method")
        by = f" by {method['name']}" if method else ""
        verdict = "holds" if self.holds else "does not hold"
        first = f"<Certificate of {self.get('verb')}{by}: {verdict}>"
        broken = [p for p in self.get("promises") or [] if p.get("holds") is not True]
        failing = [
            "{} of {}: asked {}, measured {}".format(*_promise(promise)[:4]) for promise in broken
        ]
        doubts = [f"{one.text}." for one in self.doubts]
        more = [*fault_sentences(self), *doubts, *self.worst_found, *self._lost_downstream()]
        return printable_lines([first, *failing, *more])

    def _lost_downstream(self) -> list[str]:
        if not self.get("downstream"):
            return []
        words = import_module("shoal.reports.text")  # not below, and needed to show alone
        return [*words.downstream_sentences(self["downstream"])]

    def _repr_html_(self) -> str:
        """The verdict, the promises, what attacks found, the main figures and the warnings, for a
        notebook; everything escaped.
        """
        first, *grave = self.verdict
        other = [one.text for one in self.warnings if one.severity != GRAVE]
        return notebook.section(
            notebook.sentence(f"{with_grave(first, len(grave))}.", strong=True),
            *(notebook.sentence(f"{line}.") for line in grave),
            notebook.table(
                ("promise", "of", "asked", "measured", "holds"),
                [_promise(promise) for promise in self.get("promises") or []],
            ),
            *(notebook.sentence(line) for line in self.worst_found),
            notebook.table(("figure", "measured"), _figures(self)),
            *(notebook.sentence(f"{fault}.") for fault in fault_sentences(self)),
            *(notebook.sentence(f"{text}.") for text in other),
        )

    @property
    def warnings(self) -> tuple[ReleaseWarning, ...]:
        """What its readers must know although every promise holds."""
        stated = self._content.get("warnings") or []
        return tuple(ReleaseWarning.of(one) for one in stated)

    @property
    def holds(self) -> bool:
        """Whether every promise holds and, where that was checked, every cell is true, no attack
        found more than is accepted, and nothing is given away beside other or earlier releases.

        False for a certificate from anywhere that states no promise.
        """
        promises, faults = self.get("promises") or [], self.get("faults") or {}
        accepted = (self.get("attacks") or {}).get("accept", [])
        compared = [self.get(part) or {"holds": True} for part in ("beside", "history")]
        return (
            bool(promises)
            and all(promise.get("holds") is True for promise in promises)
            and all(count == 0 for count in faults.values())
            and all(row["holds"] is not False for row in accepted)
            and all(found.get("holds") is True for found in compared)
        )

    @property
    def found(self) -> list[str]:
        """What attacks found, worst first: how much, in which attempt, and what helps; then what
        the words mean, and whether rows were matched and people compared with others.
        """
        return self._found(every=True)

    @property
    def worst_found(self) -> list[str]:
        """The first of what attacks found, and how many findings more `found` has."""
        return self._found(every=False)

    def _found(self, every: bool) -> list[str]:
        if not self.get("attacks"):
            return []
        reports = import_module("shoal.reports.attacks")  # not below, and needed to show alone
        ranked = reports.ranked(self, most=None if every else reports.MOST_RANKED)
        found = [f"{one.headed}: {one.says} {one.remedy}".rstrip() for one in ranked]
        more = len(reports.rows_of(self)) - len(found)
        return [
            *found,
            *([f"{more} more, less grave: print certificate.found"] if more else []),
            *([reports.LEGEND, *reports.grounds(self)] if found else []),
        ]

    @property
    def doubts(self) -> tuple[ReleaseWarning, ...]:
        """The findings that make doubtful what attacks found."""
        codes = (CONTROL_IN_ORIGINAL, VALUES_UNPLACED)
        return tuple(one for one in self.warnings if one.code in codes)

    @property
    def grave(self) -> tuple[ReleaseWarning, ...]:
        """The findings for which a release whose promises hold is still not shown as green."""
        return tuple(one for one in self.warnings if one.severity == GRAVE)

    @property
    def removed(self) -> list[str]:
        """The columns of the input that are not in the release; of linked tables, not the one that
        says who, which has new numbers there.
        """
        columns = self.get("columns") or []
        has_keys = (self.get("linked") or {"keys": "none"})["keys"] != "none"
        return [
            column["name"]
            for column in columns
            if column["technique"] == "removed" and not (has_keys and column["role"] == "subject")
        ]

    @property
    def light(self) -> str:
        """`red` unless everything holds, `amber` if a finding is grave, else `green`."""
        if not self.holds:
            return "red"
        return "amber" if self.grave else "green"

    @property
    def loss(self) -> float | None:
        """The share of detail that is lost (gcp), of several tables with the rows withheld."""
        linked = self.get("linked") or {}
        found: float | None = linked.get("bundle_loss", (self.get("utility") or {}).get("gcp"))
        return found

    @property
    def rows_lost(self) -> int:
        """The rows that are suppressed, or of several tables withheld in all."""
        withheld = (table["rows"]["withheld"] or 0 for table in self.get("tables") or ())
        return int(self["records"]["suppressed"]) + sum(withheld)

    @property
    def verdict(self) -> tuple[str, ...]:
        """What its readers see first, and below it the grave findings."""
        first = "Every promise holds" if self.holds else "Not everything holds"
        return first, *(f"Grave: {one.text}" for one in self.grave)

    def extended(self, **more: Any) -> Certificate:
        extended = copy(self)
        extended._content = {**self._content, **_plain(more)}
        return extended

    def warned(self, *more: ReleaseWarning) -> Certificate:
        """The certificate with more warnings behind its own."""
        return self.extended(warnings=[one.report() for one in (*self.warnings, *more)])

    def to_json(self) -> str:
        return json.dumps(self._content, indent=2, allow_nan=False) + "\n"


_AS_IT_IS = frozenset({str, int, bool, type(None)})


def _plain(value: Any) -> Any:
    """The value in JSON's own types; what is not a number becomes null."""
    if type(value) in _AS_IT_IS:
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


# A certificate at a glance: each promise, size and loss.


def _promise(promise: PromiseReport) -> tuple[object, ...]:
    holds = "yes" if promise["holds"] else "NO"
    of = ", ".join(promise["attributes"]) or "all quasi-identifiers"
    return promise["model"], of, promise["asked"], _short(promise["measured"]), holds


def _figures(certificate: Mapping[str, Any]) -> list[tuple[str, str]]:
    records, classes = certificate.get("records") or {}, certificate.get("classes") or {}
    loss = (certificate.get("utility") or {}).get("gcp")
    risk = (certificate.get("risk") or {}).get("prosecutor_mean")
    many = unit(certificate).many
    return [
        (
            "records",
            f"{_short(records.get('out'))}, {_short(records.get('suppressed'))} suppressed",
        ),
        (
            f"classes of {many} who look alike" if many == "people" else f"classes of {many} alike",
            f"{_short(classes.get('count'))}, of {_short(classes.get('min'))} to"
            f" {_short(classes.get('max'))}",
        ),
        ("information loss (gcp)", _percent(loss)),
        ("prosecutor risk: the mean chance to name somebody known to be in it", _percent(risk)),
    ]


def _short(value: object) -> str:
    if value is None:
        return "not known"
    if isinstance(value, float):
        return f"{value:.6g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _percent(share: float | None) -> str:
    return "not known" if share is None else f"{100 * share:.2f} %"


CLOSE = 1e-9  # relative; sums in another order differ by less


def is_close(one: Any, other: Any) -> bool:
    """Whether two figures are equal but for rounding; all else must be equal."""
    numbers = (int, float)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return {*one} == {*other} and all(is_close(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_close, one, other))
    if isinstance(one, bool) or not isinstance(one, numbers) or not isinstance(other, numbers):
        return bool(one == other)
    return math.isclose(one, other, rel_tol=CLOSE, abs_tol=CLOSE)
