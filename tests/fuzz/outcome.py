"""What a case came to, and how a certificate compares with the checker's verdict."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import isclose
from pathlib import Path
from typing import Any

from fuzz.draw import Case
from fuzz.judge import Verdict
from shoal.auditor.audit import audit_file
from shoal.auditor.verify import verify
from shoal.errors import InfeasibleError, InputError, PromiseError
from shoal.policy.policy import Policy

CLOSE = 1e-9


@dataclass
class Outcome:
    """status: published, refused, infeasible or withheld. problems: by kind, what is wrong."""

    status: str = "published"
    problems: list[tuple[str, str]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, kind: str, text: str) -> None:
        self.problems.append((kind, text))

    def require(self, is_so: bool, kind: str, text: str) -> None:
        if not is_so:
            self.add(kind, text)

    @contextmanager
    def of(self, verb: str) -> Iterator[None]:
        """Notes how the work ends that publishes, where there is no release."""
        try:
            yield
        except InfeasibleError:
            self.status = "infeasible"
        except InputError as unfit:
            self.status = "refused"
            self.counts[_without_names(unfit)] += 1
        except PromiseError as broken:
            self.status = "withheld"
            self.add(f"{verb}: withholds its own release", str(broken))

    def audit(
        self, who: str, policy: Policy, out: Any, verdict: Verdict, original: str | None = None
    ) -> None:
        """An audit of one's own release must find what the checker found."""
        try:
            certificate = audit_file(str(out), policy, original).certificate
        except InputError as unfit:
            self.add(f"{who}: refuses its own release", str(unfit))
            return
        compare(self, who, certificate, verdict)
        is_so = certificate.holds == verdict.holds
        self.require(is_so, f"{who}: verdicts differ", f"{certificate.holds}, {verdict}")

    def verify(self, out: Any, *known: dict[str, Any], certificate: Path | None = None) -> None:
        """No check may fail, whatever is known beside the release."""
        for given in known:
            for check in verify(out, certificate, **given):
                self.require(check.ok is not False, f"verify: {check.name} fails", str(check))


def write_inputs(case: Case, folder: Path) -> Policy:
    """The case as files that the commands read too; returns its policy."""
    write_files(case, folder)
    return Policy.load(folder / "policy.json")


def write_files(case: Case, folder: Path) -> None:
    """The case as files; the table ends with a row without any value, which is nobody."""
    for name, text in case.files.items():
        (folder / name).write_text(text, encoding="utf-8", newline="")
    (folder / "policy.json").write_text(json.dumps(case.policy, ensure_ascii=False, indent=1))
    nobody = [case.policy.get("missing_values", [""])[-1]] * len(case.table.names)
    table = replace(case.table, rows=[*case.table.rows, nobody])
    (folder / "table.csv").write_text(table.text(), encoding="utf-8", newline="")


def compare(outcome: Outcome, who: str, certificate: Mapping[str, Any], verdict: Verdict) -> None:
    """Whether a certificate finds what the checker found; every difference is a problem."""
    if verdict.unfit:
        outcome.add(f"{who}: reads what is unfit", "; ".join(verdict.unfit))
        return
    for stated, found in zip(certificate["promises"], verdict.promises, strict=True):
        if stated["holds"] != found.holds or not _same(stated["measured"], found.measured):
            text = f"{stated['measured']} ({stated['holds']}), {found.measured} ({found.holds})"
            outcome.add(f"{who}: {found.model} differs", text)
    faults = certificate.get("faults") or {}
    for name, rows in (("uncovered", verdict.uncovered), ("changed", verdict.changed)):
        stated = faults.get(name, len(rows) if "faults" not in certificate else 0)
        if bool(stated) != bool(rows) and name in faults:
            outcome.add(f"{who}: {name} differs", f"{stated}, {len(rows)}")
    outcome.require(
        certificate["records"]["suppressed"] == verdict.starred,
        f"{who}: starred rows differ",
        f"{certificate['records']['suppressed']}, {verdict.starred}",
    )
    if "withheld" in certificate["records"]:
        stated = certificate["records"]["withheld"]
        outcome.require(stated == verdict.withheld, f"{who}: withheld rows differ", f"{stated}")
    sizes = certificate["classes"]
    least = min(verdict.sizes, default=None)
    outcome.require(
        (sizes["count"], sizes["min"]) == (len(verdict.sizes), least),
        f"{who}: classes differ",
        f"{sizes['count']} of {sizes['min']}, {len(verdict.sizes)} of {least}",
    )


def _without_names(unfit: InputError) -> str:
    """Its first finding, without the names in it."""
    return "'...'".join(str(unfit.args[0]).split("'")[::2])[:100]


def _same(stated: Any, found: Any) -> bool:
    if stated is None or found is None:
        return True  # infinite, or not compared
    return isclose(float(stated), float(found), rel_tol=CLOSE, abs_tol=CLOSE)
