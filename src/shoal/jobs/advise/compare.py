"""Compare: which method, which k, at what loss. Measured as by publish; nothing is published.

read > bind > encode, once; then for every k and every method: partition > repair > recode > audit
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from shoal.binding.files import read_original
from shoal.binding.table import BoundTable, bind
from shoal.connectors import files
from shoal.connectors.frames import table_of
from shoal.data.certificate import Certificate
from shoal.data.classes import Classes
from shoal.data.cut import Cut
from shoal.data.matrix import Matrix
from shoal.data.partition import Partition
from shoal.data.progress import Progress, no_progress
from shoal.data.table import Table
from shoal.errors import InfeasibleError, InputError
from shoal.jobs.advise.attack_figures import FIGURES, TRIED, attack_figures
from shoal.jobs.attack.attack import AttackedRelease, attacked, with_attacks
from shoal.jobs.attack.request import AttackRequest
from shoal.jobs.audit.audit import measure
from shoal.jobs.audit.warnings import open_question_warnings
from shoal.jobs.publish.recode import find_classes, ordered, recode
from shoal.jobs.publish.second_release import republisher
from shoal.policy import registry
from shoal.policy.policy import Policy
from shoal.version import VERSION

SCHEMA = "shoal.comparison/1"
DEFAULT_KS = (5, 10, 25, 50)
WARM_UP = 300  # records


@dataclass(frozen=True)
class Row:
    """One method at one k: what its release measures, or the reason why there is none.

    settings: parameters that were asked for; parameters: all of them, as used. certificate: None
    where there is no release. seconds: CPU seconds of the method alone.
    """

    method: str
    settings: dict[str, Any]
    parameters: dict[str, Any]
    k: int
    certificate: Certificate | None = None
    seconds: float | None = None
    reason: str | None = None

    @property
    def label(self) -> str:
        """The method as `methods` names it."""
        return _label(self.method, self.settings)

    @property
    def holds(self) -> bool | None:
        """Whether every promise holds on the release; None where there is none."""
        return None if self.certificate is None else self.certificate.holds

    def score(self, name: str) -> float | None:
        """A measure of utility or risk; None where it does not apply."""
        if self.certificate is None:
            return None
        tried = attack_figures(self.certificate)
        return {**self.certificate["utility"], **self.certificate["risk"], **tried}.get(name)

    @property
    def loss(self) -> float:
        """What releases are ranked by: gcp; infinite where there is none."""
        loss = self.score("gcp")
        return float("inf") if loss is None else loss

    def as_dict(self) -> dict[str, Any]:
        """All figures by name; the same names in every row."""
        measured: Any = self.certificate or {}
        sizes = measured.get("classes", {})
        records = measured.get("records", {})
        return {
            "label": self.label,
            "method": self.method,
            "parameters": self.parameters,
            "k": self.k,
            "holds": self.holds,
            "reason": self.reason,
            **{name: self.score(name) for name in (*registry.metrics(), *FIGURES)},
            "classes": sizes.get("count"),
            "least_class": sizes.get("min"),
            "mean_class": sizes.get("mean"),
            "max_class": sizes.get("max"),
            "suppressed": records.get("suppressed"),
            "promises": measured.get("promises", []),
            "faults": measured.get("faults"),
            "seconds": self.seconds,
        }


@dataclass(frozen=True)
class Comparison:
    """Every method at every k on one table: rows by ascending k, methods as they were named.

    subjects: people in the table. quasi: what an attacker is taken to know. sha256: of the file, if
    it was one.
    """

    rows: tuple[Row, ...]
    seed: int
    records: int
    subjects: int
    quasi: tuple[str, ...]
    sha256: str | None = None

    @property
    def ks(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(row.k for row in self.rows))

    @property
    def methods(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row.label for row in self.rows))

    @property
    def releases(self) -> tuple[Row, ...]:
        """The rows that have a release."""
        return tuple(row for row in self.rows if row.certificate is not None)

    @property
    def broken(self) -> tuple[Row, ...]:
        """The rows whose release breaks a promise: a publish would withhold them."""
        return tuple(row for row in self.releases if not row.holds)

    def ranked(self, k: int) -> list[Row]:
        """The rows of this k that keep every promise, by ascending loss (gcp); ties as named."""
        return sorted(
            (row for row in self.rows if row.k == k and row.holds), key=lambda row: row.loss
        )

    def to_json(self) -> str:
        content = {
            "schema": SCHEMA,
            "shoal": VERSION,
            "seed": self.seed,
            "records": self.records,
            "subjects": self.subjects,
            "input": None if self.sha256 is None else {"sha256": self.sha256},
            "rows": [row.as_dict() for row in self.rows],
        }
        return json.dumps(content, indent=2, allow_nan=False) + "\n"


def compare(
    frame: Any,
    policy: Policy | str | Path | dict[str, Any],
    methods: Sequence[str] | None = None,
    ks: Sequence[int] = DEFAULT_KS,
    *,
    attack: bool = False,
    progress: Progress = no_progress,
) -> Comparison:
    """Every method at every k, each release measured as `publish` measures it; none is published.

    methods: `name` or `name:parameter=value`, several parameters parted by colons; all methods that
    publish a table when left out. The policy's own method keeps the policy's parameters. A promise
    that is broken and a k that can't be reached are rows of the table, not errors; raises
    InputError for what can't be read or asked. attack: also how much guessing, ends of intervals
    and lists of names gain on each release.
    """
    policy = Policy.of(policy)
    for warning in open_question_warnings(policy):
        warnings.warn(warning, stacklevel=2)
    return _compared(table_of(frame), policy, methods, ks, attack, progress)


def _compared(
    table: Table,
    policy: Policy,
    methods: Sequence[str] | None,
    ks: Sequence[int],
    attack: bool,
    progress: Progress,
) -> Comparison:
    policies = _with_methods(policy, methods)
    settings = [(k, own.with_k(k)) for k in _checked(ks) for own in policies]
    progress("checking the data against the policy")
    ground = _Ground.of(table, policy)
    for k, own in settings[: len(policies)]:
        progress(f"warming up {label_of(own)}")
        _warm_up(ground, own, k)
    rows = []
    for k, own in settings:
        progress(f"k={k} {label_of(own)}")
        rows.append(_row(ground, own, k, attack))
    quasi = tuple(attribute.name for attribute in ground.bound.schema.quasi)
    return Comparison(tuple(rows), policy.model.seed, ground.table.records, ground.people, quasi)


def compare_file(
    input_path: str,
    policy: Policy,
    methods: Sequence[str] | None = None,
    ks: Sequence[int] = DEFAULT_KS,
    output_path: str | None = None,
    *,
    attack: bool = False,
    progress: Progress = no_progress,
) -> Comparison:
    """`compare` of a file; writes the comparison as JSON to `output_path`, if given."""
    _with_methods(policy, methods)  # what is asked is judged before a large file is read
    _checked(ks)
    progress("reading the table")
    source = read_original(input_path, policy)
    comparison = _compared(Table(source.frame), policy, methods, ks, attack, progress)
    comparison = replace(comparison, sha256=source.sha256)
    if output_path is not None:
        with files.atomic_write(output_path) as draft:
            draft.write_text(comparison.to_json())
    return comparison


# What is asked


def label_of(policy: Policy) -> str:
    """The policy's method with the parameters asked of it, in the form that `methods` reads."""
    return _label(policy.method_name, policy.method_settings)


def _label(method: str, settings: dict[str, Any]) -> str:
    return ":".join([method, *(f"{name}={value}" for name, value in settings.items())])


def _with_methods(policy: Policy, methods: Sequence[str] | None) -> list[Policy]:
    """The policy with each of the methods; raises InputError with every finding about them."""
    if methods is None:
        methods = [
            method.name for method in registry.methods().values() if method.verb == "publish"
        ]
    if isinstance(methods, str) or not methods:
        raise InputError(
            "methods: no list of methods; name at least one, 'shoal methods' lists them"
        )
    policies: list[Policy] = []
    seen: set[Any] = set()
    findings: list[str] = []
    for text in methods:
        try:
            policies.append(_with_method(policy, text))
            built = policies[-1].build_method("publish")
            if (policies[-1].method_name, built) in seen:
                raise InputError(f"methods: '{text}' is asked for twice; name it once")
            seen.add((policies[-1].method_name, built))
        except InputError as unfit:
            findings += [str(unfit.args[0]), *unfit.findings]
    if findings:
        raise InputError.from_findings(findings)
    return policies


def _with_method(policy: Policy, text: str) -> Policy:
    name, *settings = (part.strip() for part in text.split(":"))
    odd = [
        setting
        for setting in settings
        if not setting.partition("=")[0].strip() or "=" not in setting
    ]
    if odd:
        raise InputError.from_findings(
            [
                f"methods: '{setting}' is not PARAM=VALUE; write for instance mondrian:cut=nearest"
                for setting in odd
            ]
        )
    given = [
        (key.strip(), value.strip())
        for key, _, value in (setting.partition("=") for setting in settings)
    ]
    if len(dict(given)) < len(given):
        raise InputError(f"methods: '{text}' sets a parameter twice; set it once")
    return policy.with_method(name, dict(given))


def _checked(ks: Sequence[int]) -> list[int]:
    """The ks, ascending; raises InputError with everything that is wrong with them."""
    findings = [] if len(ks) else ["ks: none is named; name at least one, for instance 5,10,50"]
    findings += [
        f"ks: {k} is not a whole number of 2 or more; nobody hides in a class of fewer"
        for k in ks
        if isinstance(k, bool) or not isinstance(k, Integral) or k < 2
    ]
    findings += [
        f"ks: {k} is asked for twice; name it once"
        for k in dict.fromkeys(ks)
        if list(ks).count(k) > 1
    ]
    if findings:
        raise InputError.from_findings(findings)
    return sorted(int(k) for k in ks)


# What is measured


@dataclass(frozen=True)
class _Ground:
    """The table as all releases see it: bound and encoded once.

    table: without the cells of its quasi-identifiers.
    """

    table: Table
    bound: BoundTable
    matrix: Matrix

    @classmethod
    def of(cls, table: Table, policy: Policy) -> _Ground:
        table = ordered(table, policy)
        bound, findings = bind(table, policy)
        if bound is None:
            raise InputError.from_findings(findings)
        rest = table.without([attribute.name for attribute in bound.schema.quasi])
        return cls(rest, bound, bound.matrix())

    @cached_property
    def whole_table(self) -> Classes:
        return self.bound.published(self.matrix.subjects)

    @property
    def people(self) -> int:
        subjects = self.bound.encoded.subjects
        return self.table.records if subjects is None else len(np.unique(subjects))

    def first(self, records: int) -> tuple[Matrix, Classes]:
        """The first records as a table of their own."""
        kept = np.arange(self.matrix.records) < records
        subjects = self.matrix.subjects
        if subjects is not None:
            subjects = np.unique(subjects[kept], return_inverse=True)[1].astype(np.int32)
        label = None if self.matrix.label is None else self.matrix.label[kept]
        matrix = replace(
            self.matrix, codes=self.matrix.codes[kept].copy(), subjects=subjects, label=label
        )
        return matrix, self.whole_table.only(kept, subjects)

    def certificate(
        self, policy: Policy, classes: Partition | Cut, attack: bool = False
    ) -> Certificate:
        """What readers of such a release would see, measured, and attacked if that is asked."""
        recoded = recode(self.table, self.bound, classes, policy)
        published = Table(recoded.frame)
        certificate, release = measure(published, self.bound.schema, policy, recoded.truth)
        if not attack:
            return certificate
        schema, encoded = self.bound.schema, self.bound.encoded
        republish = republisher(self.table, schema, encoded, policy)
        target = AttackedRelease(
            published, release, schema, self.table, encoded, recoded.truth, republish
        )
        found = attacked(target, policy, AttackRequest(TRIED))
        return with_attacks(certificate, found | {"accept": []})  # only publish withholds


def _row(ground: _Ground, policy: Policy, k: int, attack: bool) -> Row:
    """The policy's method at this k; a method that refuses says why."""
    row = Row(policy.method_name, policy.method_settings, policy.method_parameters, k)
    try:
        classes, seconds = find_classes(ground.matrix, ground.whole_table, policy)
    except (InfeasibleError, InputError) as refused:
        return replace(row, reason="; ".join([str(refused.args[0]), *refused.findings]))
    certificate = ground.certificate(policy, classes, attack)
    return replace(row, certificate=certificate, seconds=seconds)


def _warm_up(ground: _Ground, policy: Policy, k: int) -> None:
    """Runs the method on some records, so that nothing compiles or loads while time is taken."""
    with suppress(InfeasibleError, InputError):  # the row itself will say so
        find_classes(*ground.first(max(WARM_UP, 4 * k)), policy)
