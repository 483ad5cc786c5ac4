"""Check: the doctor for policies and hierarchies, before anything runs."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from shoal.auditor.ledger import terms
from shoal.auditor.linked.audit import of_linked_cells
from shoal.auditor.verdict import of_cells
from shoal.connectors.frames import Frame
from shoal.data.classes import Classes
from shoal.data.findings import AttributeFinding, Fault
from shoal.data.hierarchies.paths import diagnose
from shoal.data.hierarchies.table import read_paths
from shoal.data.table import Table
from shoal.data.warnings import ReleaseWarning
from shoal.errors import InputError, in_python
from shoal.policy import registry
from shoal.policy.binding.columns import check_columns, input_warnings, population_warnings
from shoal.policy.binding.files import PolicyTables
from shoal.policy.binding.linked import bound_linked, linked_warnings, read_linked
from shoal.policy.binding.table import bind_attributes, bound_table
from shoal.policy.checked import place_of
from shoal.policy.consistency import contradictions
from shoal.policy.linked import link_findings
from shoal.policy.loading import read_mapping
from shoal.policy.model import PolicyModel
from shoal.policy.policy import Policy, PolicyLike
from shoal.policy.problem import LinkedProblem
from shoal.privacy.promises import infeasible_promises
from shoal.recoding.recode import KEY_VARIABLE, keyed_columns
from shoal.streams.core import StreamCore


def check_files(
    path: Path,
    data_path: str | None,
    read: Mapping[str, Any] | None = None,
    further: Mapping[str, str] | None = None,
) -> list[AttributeFinding]:
    """Every finding about a policy and its data, if given; values apart from messages.

    read: overrides the policy's block of this name. further: tables beside the data, by name. A
    policy that is refused is compared with the data all the same, as far as it goes.
    """
    try:
        policy: Policy | None = Policy.load(path).with_files(read or {}, {})
        found = []
    except InputError as refused:
        found = refused.said
        policy, more = _left_of(path, read)
        found += more
    if policy is None:
        return _plain(found)
    is_sound, table = not found, None
    linked: list[AttributeFinding] = []
    if data_path is not None and policy.model.is_linked:
        # without sound links nobody knows whose a row is
        if not any(link_findings(policy.model)):
            linked = _linked_findings(LinkedProblem(policy), data_path, further)
    elif data_path is not None:
        try:
            table = policy.tables.read_original(data_path).table
        except InputError as unfit:
            found += unfit.said
    case = _PolicyWithTable(policy, table)
    if not is_sound:
        return _once([*_plain(found), *case.findings_by_name(), *linked])
    return _once([*case.method_findings(), *_plain(found), *case.findings(), *linked])


def _linked_findings(
    problem: LinkedProblem, source: object, further: Mapping[str, str] | None
) -> list[AttributeFinding]:
    """What is wrong with tables and the links between them, or what no release can keep."""
    try:
        bound = bound_linked(read_linked(source, problem, further).tables, problem)
    except InputError as unfit:
        return _plain(unfit.said)
    everybody = np.zeros(bound.people.count, dtype=np.int32)
    whole = Classes(everybody, 1, None, bound.people.sensitive)
    asked = [model for model in problem.policy.build_promises() if not model.sensitive]
    return _plain(infeasible_promises(asked, whole))


def _left_of(path: Path, read: Mapping[str, Any] | None) -> tuple[Policy | None, list[str]]:
    """What is left of a policy that is refused, and what else is wrong with it."""
    try:
        content = read_mapping(path)
    except InputError:
        return None, []
    block = content.get("read")
    if read:
        content["read"] = {**(block if isinstance(block, Mapping) else {}), **read}
    model, is_whole = sound_part(content)
    if model is None:
        return None, []
    found = list(contradictions(model)) if is_whole else []
    model.add_person()
    return Policy(model, path.parent), found


def key_remarks(policy: Policy) -> list[str]:
    """That a publication will need the owner's secret, where it publishes pseudonyms."""
    return [
        f"identifier '{name}': publish needs a secret in {KEY_VARIABLE}"
        for name in keyed_columns(policy.model)
    ]


def remarks(
    policy: Policy, data_path: str, further: Mapping[str, str] | None = None
) -> list[ReleaseWarning]:
    """What a sound policy's data give reason to say before anything is published."""
    if policy.model.is_linked:
        problem = LinkedProblem(policy)
        own = read_linked(data_path, problem, further)
        return [*linked_warnings(own, problem), *of_linked_cells(own.tables, problem)]
    source = policy.tables.read_original(data_path)
    of_table = (*input_warnings(source.table, policy.model), *population_warnings(policy.tables))
    return [*source.remarks, *of_table, *of_cells(source.table, policy)]


def check(
    policy: PolicyLike,
    frame: "Frame | Mapping[str, Frame] | None" = None,
    *,
    read: Mapping[str, Any] | None = None,
) -> list[AttributeFinding]:
    """Every finding about columns, hierarchies, values, numbers, domains, people and promises.

    frame: of linked tables, all of them by name. read: as of `shoal.audit`. Empty where the
    policy is sound and fits what is given. Raises InputError for what is not a policy.
    """
    found = findings_of(Policy.of(policy, read), frame)
    return [replace(one, message=in_python(one.message)) for one in found]


def findings_of(
    policy: PolicyLike, frame: "Frame | Mapping[str, Frame] | None" = None
) -> list[AttributeFinding]:
    """What `check` finds, in the words of the command."""
    policy = Policy.of(policy)
    if policy.model.is_linked:
        alone = _PolicyWithTable(policy, None)
        linked = [] if frame is None else _linked_findings(LinkedProblem(policy), frame, None)
        return _once([*alone.method_findings(), *alone.findings(), *linked])
    if isinstance(frame, Mapping):
        raise InputError("tables: several need a policy of linked tables; add 'tables' to it")
    table = None if frame is None else policy.tables.read_original(frame).table
    case = _PolicyWithTable(policy, table)
    return _once([*case.method_findings(), *case.findings()])


@dataclass(frozen=True)
class _PolicyWithTable:
    """A policy, and the table that it is compared with, if one is given."""

    policy: Policy
    table: Table | None

    def method_findings(self) -> list[AttributeFinding]:
        """Why the method does not fit the policy, whichever verb it serves."""
        policy = self.policy
        if policy.operation is not None:  # it is of a ledger, whichever method that has
            policy = policy.or_method(terms.WITH_OPERATIONS)
        verb = registry.verb_of(policy.method_name) or "publish"
        try:
            method = policy.build_method(verb)
            if verb == "republish":
                terms.check_policy(policy, method)
        except InputError as unfit:
            return _plain(unfit.said)
        return []

    def findings(self) -> list[AttributeFinding]:
        """All but what the method finds; faulty attributes are left out where others are bound."""
        findings = self.findings_by_name()
        if self.table is None:
            return findings
        if any(one.message.startswith("column") for one in findings):
            named = [n for n in self.table.names if n in self.policy.model.attributes]
            columns = ((name, self.table.column(name)) for name in named)
            try:
                bind_attributes(columns, self.policy)
            except InputError as wrong:
                findings += _plain(wrong.found)
            return findings
        rest = self._sound_part(findings)
        while rest is not None:
            findings += rest._bound_findings()
            before, rest = rest, rest._sound_part(findings)
            if rest is before:
                break
        return findings

    def findings_by_name(self) -> list[AttributeFinding]:
        """What can be said without binding the policy to the table."""
        policy, table = self.policy, self.table
        findings = _plain(policy.open_questions())
        findings += _plain([] if table is None else check_columns(table.names, policy.tables))
        findings += _table_findings(policy.tables)
        return findings

    def _bound_findings(self) -> list[AttributeFinding]:
        """What binding shows, and whether one class of all records keeps the promises."""
        assert self.table is not None
        try:
            bound = bound_table(self.table, self.policy)
        except InputError as wrong:
            return _plain(wrong.found)
        _, whole_table = bound.method_input()
        people = {name: len(codes) for name, codes in bound.populations.items()}
        findings = infeasible_promises(self.policy.build_promises(), whole_table, people)
        if registry.verb_of(self.policy.method_name) == "stream":
            try:
                StreamCore(self.policy, self.table.names, self.table)  # the table as its reference
            except InputError as unfit:
                findings += unfit.said
        return _plain(findings)

    def _sound_part(self, findings: Sequence[AttributeFinding]) -> "_PolicyWithTable | None":
        """Policy and table without the attributes that findings other than open questions are
        about, so that what is wrong elsewhere shows, too; None where no policy is left.
        """
        policy, asked = self.policy, set(self.policy.open_questions())
        said = [finding for finding in findings if finding.message not in asked]
        faulty = {
            name
            for name in policy.model.attributes
            for one in said
            if one.attribute == name or one.message.startswith(f"attribute '{name}':")
        }
        if not faulty or self.table is None:
            return self
        content = policy.model.model_dump(exclude_unset=True)
        content["attributes"] = {n: a for n, a in content["attributes"].items() if n not in faulty}
        content["promises"] = [
            promise
            for promise in content["promises"]
            if not faulty & {promise.get("attribute"), *(promise.get("attributes") or [])}
        ]
        people = {policy.subject, *policy.model.subject_columns}
        for key in ("label", "accept", *(["subject"] if faulty & people else [])):
            content.pop(key, None)
        try:
            rest = Policy.from_dict(content, policy.base)
        except InputError:
            return None
        return _PolicyWithTable(
            rest, Table(self.table.frame.drop(faulty & set(self.table.frame.columns)))
        )


def _table_findings(tables: PolicyTables) -> list[AttributeFinding]:
    """What is wrong with the hierarchy files themselves."""
    findings: list[AttributeFinding] = []
    for name, attribute in tables.model.attributes_of_all.items():
        if isinstance(attribute.hierarchy, str):
            try:
                findings += diagnose(read_paths(tables.base / attribute.hierarchy, name), name)
            except InputError as unfit:
                findings += _plain(unfit.said)
    return findings


def _plain(findings: Sequence[object]) -> list[AttributeFinding]:
    """Messages as findings about the policy; findings as they are."""
    return [
        one
        if isinstance(one, AttributeFinding)
        else AttributeFinding(Fault.POLICY, "", 1, str(one))
        for one in findings
    ]


def _once(findings: Sequence[AttributeFinding]) -> list[AttributeFinding]:
    """Each message once, in order; those with values first, where they say the same."""
    kept: dict[str, AttributeFinding] = {}
    for finding in findings:
        known = kept.get(finding.message)
        if known is None or (finding.values and not known.values):
            kept[finding.message] = finding
    return list(kept.values())


# What is left of a policy that its checker refuses, so that a check can go on and list more.
#
# Only for listing findings: nothing is ever published by what is left.


_ROUNDS = 5  # what is taken out may uncover more
_STAND_INS: Mapping[str, Any] = {
    "version": 1,
    "role": "plain",
    "promises": [{"model": "k-anonymity", "k": 2}],
}


def sound_part(content: Mapping[str, Any]) -> tuple[PolicyModel | None, bool]:
    """The policy without what is refused, None where nothing is left; and whether only keys that
    are unknown are missing from it, so that all else still means what was meant.
    """
    left, is_whole = deepcopy(dict(content)), True
    for _ in range(_ROUNDS):
        try:
            return PolicyModel.model_validate(left), is_whole
        except ValidationError as invalid:
            errors = invalid.errors()
            is_whole &= all(error["type"] == "extra_forbidden" for error in errors)
            # the last items of lists first, so that the others keep their numbers
            places = {place_of(error, left) for error in errors}
            for place in sorted(places, key=lambda place: [str(part) for part in place])[::-1]:
                _take_out(left, place)
    return None, False


def _take_out(content: Any, place: tuple[str | int, ...]) -> None:
    """Removes what stands at a place, or puts something sound where there must be something."""
    if not place:
        return
    *above, last = place
    for part in above:
        try:
            content = content[part]
        except (KeyError, IndexError, TypeError):
            return  # already gone
    if isinstance(content, list) and isinstance(last, int):
        del content[last : last + 1]
    elif isinstance(content, dict) and last in _STAND_INS:
        content[str(last)] = deepcopy(_STAND_INS[str(last)])
    elif isinstance(content, dict):
        removed = content.pop(last, None)
        if above == ["attributes"] and removed is not None:  # its column is still named
            content[last] = {"role": _STAND_INS["role"]}
