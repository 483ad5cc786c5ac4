"""The agreement: one file that says who fuses what with whom, which all parties sign off by its
hash.

The hash covers everything that bears on what is published or shown - names, addresses,
certificates, who owns which attribute, hierarchies by their content, domains and grids, QIDs with
k, the consent to share the label, the method, how the maximum is computed - and nothing that is a
party's own affair, such as where its table lies.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field, ValidationError, field_validator

from shoal.algorithms.fusion.party_tds import Rule
from shoal.algorithms.steps.specialization import AnonymityRequirement, Taxonomy
from shoal.connectors.files import file_sha256
from shoal.connectors.party.journal import MOST_NAME
from shoal.connectors.party.tls import Peer, fingerprint_of
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.numbers import parse_numbers
from shoal.data.schema import Kind
from shoal.data.table import Column
from shoal.errors import InputError
from shoal.policy import registry
from shoal.policy.hierarchies import declared_hierarchy
from shoal.policy.loading import _finding, _read
from shoal.policy.model import AttributePolicy, _Strict
from shoal.policy.parameters import build
from shoal.policy.policy import Policy

PROTOCOL = 1
MOST_CELLS = 1 << 20
DEFAULT_METHOD = "party-tds"
_NAME = re.compile(r"[a-z][a-z0-9-]*")
_KEYS = "compare with the agreement that 'shoal sample bank' writes"


class FusedAttribute(AttributePolicy):
    """As in a policy, and for a number the step of its public grid."""

    role: Literal["quasi", "plain", "drop"]
    grid: float | None = Field(
        None, gt=0, description="Step of the public grid that a number is split on; 1 by default."
    )


class LabelModel(_Strict):
    """The class, which all parties need to see."""

    attribute: str
    shared: bool


class PartyModel(_Strict):
    """One owner."""

    name: str
    table: str | None = None
    address: str | None = None
    certificate: str | None = Field(
        None, description="The party's public part, made by 'shoal party init NAME'."
    )
    attributes: dict[str, FusedAttribute]


class HelperModel(_Strict):
    """Who computes the secure maximum with two owners, and compares keyed ids."""

    name: str
    address: str | None = None
    certificate: str | None = None


class JoiningModel(_Strict):
    """How people in common are found."""

    name: Literal["masked", "keyed"] = "masked"
    helper_is_trusted: bool = Field(
        False,
        description=(
            "Needed for 'keyed': the helper sees how many people two tables share, and with one"
            " owner all ids."
        ),
    )


class MaximumModel(_Strict):
    """How the winner of a round is found."""

    name: Literal["mpyc", "clear"] = "mpyc"
    scores_may_be_seen: bool = Field(
        False, description="Needed for 'clear', which shows every bid to every party."
    )


class AgreementModel(_Strict):
    """A PARTIES.yaml file."""

    version: Literal[1]
    join: str
    label: LabelModel
    parties: list[PartyModel] = Field(min_length=1, max_length=8)
    helper: HelperModel | None = None
    promises: list[dict[str, Any]] = Field(min_length=1)
    method: dict[str, Any] = Field(default_factory=lambda: {"name": DEFAULT_METHOD})
    joining: JoiningModel = Field(default_factory=lambda: JoiningModel.model_validate({}))
    maximum: MaximumModel = Field(default_factory=lambda: MaximumModel.model_validate({}))
    minimum: int | None = Field(
        None, ge=2, description="Fewest people in common; below it the run ends."
    )
    seed: int = Field(0, ge=0)

    @field_validator("method")
    @classmethod
    def _method_is_named(cls, method: dict[str, Any]) -> dict[str, Any]:
        if not isinstance(method.get("name"), str):
            raise ValueError("needs a 'name'")
        return method


@dataclass(frozen=True)
class Domain:
    """The public part of one quasi-identifier: its cells, and the text of every span of them.

    numbers: least value and step of a number's grid. order: labels of an ordinal. hierarchy: tree
    of a category.
    """

    name: str
    cells: int
    numbers: tuple[Decimal, Decimal] | None = None
    order: tuple[str, ...] | None = None
    hierarchy: Hierarchy | None = None

    @property
    def taxonomy(self) -> Taxonomy:
        return (
            Taxonomy(self.cells, is_number=True)
            if self.hierarchy is None
            else Taxonomy.of_tree(self.hierarchy)
        )

    def text(self, lo: int, hi: int) -> str:
        """What is published for a node."""
        if self.hierarchy is not None:
            return self.hierarchy.labels[
                int(self.hierarchy.covering(np.array([lo]), np.array([hi]))[0])
            ]
        return self._point(lo) if lo == hi else f"[{self._point(lo)}, {self._point(hi)}]"

    def span(self, text: str) -> tuple[int, int]:
        """The cells that a published text means; raises ValueError."""
        if self.hierarchy is not None:
            node = self.hierarchy.node_of_label(text)
            if node < 0:
                raise ValueError("no node")
            return int(self.hierarchy.first[node]), int(self.hierarchy.last[node])
        ends = (
            text[1:-1].split(", ")
            if text.startswith("[") and text not in (self.order or ())
            else [text, text]
        )
        lo, hi = (self._cell_of_point(end) for end in ends)
        return lo, hi

    def _cell_of_point(self, text: str) -> int:
        if self.numbers is None:
            return (self.order or ()).index(text)
        least, step = self.numbers
        return int((Decimal(text) - least) / step)

    def _point(self, cell: int) -> str:
        if self.numbers is None:
            assert self.order is not None
            return self.order[cell]
        least, step = self.numbers
        return format((least + cell * step).normalize(), "f")

    def cells_of(self, column: Column, party: str) -> tuple[np.ndarray, list[str]]:
        """The cell of every record, and findings about values without one."""
        values = (
            np.array([self._cell(text) for text in column.cells])
            if self.numbers is None
            else self._grid(column)
        )
        lost = values < 0
        if not lost.any():
            return values.astype(np.min_scalar_type(self.cells - 1))[column.codes], []
        count = int(column.counts()[lost].sum())
        where = (
            "its hierarchy"
            if self.hierarchy is not None
            else "its order"
            if self.order
            else "its domain and grid"
        )
        message = (
            f"party '{party}', attribute '{self.name}': {count} records lie outside {where}; mend"
            " them, or agree anew"
        )
        return values, [message]

    def _cell(self, text: str) -> int:
        if self.hierarchy is not None:
            node = self.hierarchy.node_of_label(text)
            leaf = self._leaves.get(text, -1)
            return leaf if leaf >= 0 else node if 0 <= node < self.cells else -1
        assert self.order is not None
        return self.order.index(text) if text in self.order else -1

    @cached_property
    def _leaves(self) -> dict[str, int]:
        assert self.hierarchy is not None
        return {label: leaf for leaf, label in enumerate(self.hierarchy.labels[: self.cells])}

    def _grid(self, column: Column) -> np.ndarray:
        assert self.numbers is not None
        least, step = (float(part) for part in self.numbers)
        places = (parse_numbers(column.cells) - least) / step
        cells = np.rint(places)
        with np.errstate(invalid="ignore"):
            fits = (np.abs(places - cells) < 1e-6) & (cells >= 0) & (cells < self.cells)
        return np.where(fits, cells, -1).astype(np.int64)


@dataclass(frozen=True)
class Agreement:
    """A whole, checked agreement. base: the folder that its paths are relative to."""

    model: AgreementModel
    base: Path = Path()

    @classmethod
    def load(cls, path: str | Path) -> Agreement:
        """The agreement in a YAML, JSON or TOML file; raises InputError with every finding."""
        path = Path(path)
        try:
            content = _read(path)
        except InputError as failed:
            told = str(failed.args[0]).replace("policy", "agreement", 1)
            raise InputError(
                told.replace(
                    "holds no policy; 'shoal policy init DATA' proposes one",
                    f"holds no agreement; {_KEYS}",
                )
            ) from None
        return cls.from_dict(content, base=path.parent)

    @classmethod
    def of(cls, agreement: str | Path | dict[str, Any]) -> Agreement:
        """The agreement in a file or in plain dicts."""
        if isinstance(agreement, dict):
            return cls.from_dict(agreement)
        if not isinstance(agreement, (str, Path)):
            raise InputError(
                "agreement: is no agreement; give the path of one, or its content as dicts"
            )
        return cls.load(agreement)

    @classmethod
    def from_dict(cls, content: dict[str, Any], base: str | Path = ".") -> Agreement:
        """An agreement from plain dicts; raises InputError with every finding."""
        try:
            agreement = cls(AgreementModel.model_validate(content), Path(base))
        except ValidationError as invalid:
            findings = [
                _finding(error, AgreementModel, "agreement", _KEYS) for error in invalid.errors()
            ]
            raise InputError.from_findings(findings) from None
        findings = agreement._contradictions()
        if findings:
            raise InputError.from_findings(findings)
        return agreement

    def with_changes(self, **changes: Any) -> Agreement:
        return Agreement.from_dict(self.model.model_dump(exclude_unset=True) | changes, self.base)

    @property
    def owners(self) -> list[str]:
        return [party.name for party in self.model.parties]

    @property
    def everybody(self) -> list[str]:
        """The owners, then the helper."""
        return [*self.owners, *([self.model.helper.name] if self.model.helper else [])]

    @property
    def computing(self) -> list[str]:
        """Who computes the secure maximum: the owners, and the helper where they are two."""
        return self.everybody if len(self.owners) <= 2 else self.owners

    @property
    def collector(self) -> str:
        """Who compares the points of the ids."""
        return self.everybody[-1] if self.model.joining.name == "keyed" else self.owners[0]

    def party(self, name: str) -> PartyModel | HelperModel:
        """The party of that name; raises InputError."""
        everybody: list[PartyModel | HelperModel] = [*self.model.parties]
        for party in [*everybody, *([self.model.helper] if self.model.helper else [])]:
            if party.name == name:
                return party
        raise InputError(
            f"party '{name}': is not in the agreement; it names {', '.join(self.everybody)}"
        )

    @property
    def quasi(self) -> list[str]:
        """All quasi-identifiers by name: the order that decides among equal scores, whoever owns
        them.
        """
        return sorted(
            n
            for party in self.model.parties
            for n, a in party.attributes.items()
            if a.role == "quasi"
        )

    def owner_of(self, attribute: str) -> str:
        return next(party.name for party in self.model.parties if attribute in party.attributes)

    def attribute(self, name: str) -> FusedAttribute:
        return next(
            party.attributes[name] for party in self.model.parties if name in party.attributes
        )

    @cached_property
    def domains(self) -> list[Domain]:
        """The public part of every quasi-identifier, in the order of `quasi`."""
        return [self._domain(name, self.attribute(name)) for name in self.quasi]

    @property
    def published(self) -> list[str]:
        """The columns of the fused table, as the agreement lists them; the label last."""
        columns = [
            n
            for party in self.model.parties
            for n, a in party.attributes.items()
            if a.role != "drop"
        ]
        return [*columns, self.model.label.attribute]

    def qids(self) -> list[AnonymityRequirement]:
        """The QIDs by attribute number, with k."""
        place = {name: j for j, name in enumerate(self.quasi)}
        built = self.policy.build_promises()
        return [
            AnonymityRequirement(
                tuple(place[a] for a in promise.attributes or self.quasi), promise.k
            )
            for promise in built
        ]

    @property
    def least_common(self) -> int:
        """Fewest people that the tables must have in common."""
        return max([self.model.minimum or 2, *(qid.k for qid in self.qids())])

    def rule(self) -> Rule:
        """The method with its parameters."""
        settings = {name: value for name, value in self.model.method.items() if name != "name"}
        found = registry.method(self.model.method["name"], "fuse")
        return build(found.implementation, f"method '{found.name}'", settings)

    def _parameters(self) -> dict[str, Any]:
        rule = self.rule()
        known = registry.method(self.model.method["name"], "fuse").parameters
        return {parameter.name: getattr(rule, parameter.name) for parameter in known}

    @cached_property
    def policy(self) -> Policy:
        """The policy that the fused table is audited under, by anybody."""
        attributes: dict[str, Any] = {}
        for name in self.published[:-1]:
            given = self.attribute(name)
            kept = given.model_dump(exclude_unset=True, exclude={"grid"})
            attributes[name] = {
                key: list(v) if isinstance(v, tuple) else v for key, v in kept.items()
            }
        label = self.model.label.attribute
        attributes[label] = {"role": "plain"}
        content = {
            "version": 1, "attributes": attributes, "promises": self.model.promises, "label": label,
            "missing": "reject", "render": {"order": "shuffled"}, "seed": self.model.seed,
        }  # fmt: skip
        return Policy.from_dict(content, self.base)

    @cached_property
    def canonical(self) -> dict[str, Any]:
        """What the hash covers."""
        return {
            "protocol": PROTOCOL,
            "join": self.model.join,
            "label": self.model.label.model_dump(),
            "parties": [
                self._public(party)
                | {"attributes": {n: self._shown(n, a) for n, a in party.attributes.items()}}
                for party in self.model.parties
            ],
            "helper": self._public(self.model.helper) if self.model.helper else None,
            "promises": self.model.promises,
            "method": {"name": self.model.method["name"]} | self._parameters(),
            "joining": self.model.joining.model_dump(),
            "maximum": self.model.maximum.model_dump(),
            "minimum": self.least_common,
            "seed": self.model.seed,
        }

    @property
    def hash(self) -> bytes:
        """SHA-256 of the canonical form: what the parties sign off."""
        return hashlib.sha256(json.dumps(self.canonical, sort_keys=True).encode()).digest()

    def peer(self, name: str) -> Peer:
        """Address and certificate of a party; raises InputError where the agreement lacks them."""
        party = self.party(name)
        if party.address is None or party.certificate is None:
            raise InputError(
                f"party '{name}': the agreement lacks its address or certificate; 'shoal party init"
                f" {name}' makes one"
            )
        return Peer(name, party.address, self._certificate(party.certificate))

    def _certificate(self, name: str) -> bytes:
        try:
            return (self.base / name).read_bytes()
        except OSError as failed:
            raise InputError(
                f"certificate '{name}': can't be read ({failed.strerror}); check its name"
            ) from None

    def _public(self, party: PartyModel | HelperModel) -> dict[str, Any]:
        shown = (
            None
            if party.certificate is None
            else fingerprint_of(self._certificate(party.certificate))
        )
        return {"name": party.name, "address": party.address, "certificate": shown}

    def _shown(self, name: str, attribute: FusedAttribute) -> dict[str, Any]:
        shown = attribute.model_dump(mode="json", exclude_unset=True)
        if isinstance(attribute.hierarchy, str):
            shown["hierarchy"] = "sha256:" + file_sha256(self.base / attribute.hierarchy)
        return shown

    def _domain(self, name: str, attribute: FusedAttribute) -> Domain:
        if attribute.hierarchy is not None:
            hierarchy = declared_hierarchy(name, attribute.hierarchy, self.base)
            return Domain(name, hierarchy.leaves, hierarchy=hierarchy)
        if isinstance(attribute.order, list):
            return Domain(name, len(attribute.order), order=tuple(attribute.order))
        assert attribute.domain is not None
        low, high = (Decimal(repr(end)) for end in attribute.domain)
        step = Decimal(repr(attribute.grid or 1.0))
        return Domain(name, int((high - low) // step) + 1, numbers=(low, step))

    def _contradictions(self) -> list[str]:
        """What no single field shows."""
        findings = [*self._party_findings(), *self._attribute_findings()]
        if not self.model.label.shared:
            findings.append(
                "agreement, label: every party needs the class of every person in common; consent"
                " by 'shared: true', nothing else is offered"
            )
        if self.model.maximum.name == "clear" and not self.model.maximum.scores_may_be_seen:
            findings.append(
                "agreement, maximum: 'clear' shows every party the scores of all others and is for"
                " tests; say 'scores_may_be_seen: true', or take mpyc"
            )
        if self.model.joining.name == "keyed" and not self.model.joining.helper_is_trusted:
            findings.append(
                "agreement, joining: with 'keyed' ids the helper sees how many people two tables"
                " share, and together with one owner all ids; say 'helper_is_trusted: true', or"
                " take masked"
            )
        for promise in self.model.promises:
            if promise.get("model") != "k-anonymity":
                findings.append(
                    "agreement, promises: a fusion keeps k-anonymity alone; one promise for"
                    " each QID"
                )
        if findings:
            return findings
        try:
            rule, promises, domains = self.rule(), self.policy.build_promises(), self.domains
        except InputError as unfit:
            return [str(unfit.args[0]), *unfit.findings]
        covered = {name for promise in promises for name in promise.attributes or self.quasi}
        findings += [
            f"attribute '{name}': is in no QID, so nothing would hide it; add it to one, or give it"
            " the role 'plain' to publish it as it is"
            for name in self.quasi
            if name not in covered
        ]
        findings += [
            f"attribute '{d.name}': its grid has {d.cells} points, {MOST_CELLS} are possible; take"
            " a wider 'grid'"
            for d in domains
            if not 2 <= d.cells <= MOST_CELLS
        ]
        assert rule is not None
        return findings

    def _party_findings(self) -> list[str]:
        names = self.everybody
        findings = [
            f"party '{name}': a name is a letter and then letters, digits or '-', {MOST_NAME} at"
            " most, all small"
            for name in names
            if not _NAME.fullmatch(name) or len(name) > MOST_NAME or name in ("init", "show")
        ]
        findings += [
            f"party '{n}': is named twice" for n in sorted({n for n in names if names.count(n) > 1})
        ]
        keyed = self.model.joining.name == "keyed"
        if keyed and (self.model.helper is None or len(self.model.parties) < 2):
            findings.append(
                "agreement, joining: keyed ids need a helper, who compares them for two and more"
                " owners"
            )
        elif self.model.helper is not None and len(self.model.parties) != 2 and not keyed:
            findings.append(
                "helper: only two owners need one; three and more compute the maximum themselves"
            )
        return findings

    def _attribute_findings(self) -> list[str]:
        names = [name for party in self.model.parties for name in party.attributes]
        findings = [
            f"attribute '{n}': has two owners; one party owns it"
            for n in sorted({n for n in names if names.count(n) > 1})
        ]
        common = {self.model.join: "the join column", self.model.label.attribute: "the label"}
        findings += [
            f"attribute '{n}': is {common[n]}; don't list it under a party"
            for n in names
            if n in common
        ]
        for party in self.model.parties:
            for name, attribute in party.attributes.items():
                findings += [f"attribute '{name}': {why}" for why in _not_public(attribute)]
        if not any(
            a.role == "quasi" for party in self.model.parties for a in party.attributes.values()
        ):
            findings.append(
                "agreement: no quasi-identifier; give at least one attribute the role 'quasi'"
            )
        return findings


def _not_public(attribute: FusedAttribute) -> list[str]:
    """Why the other parties could not know the attribute's cells beforehand."""
    if attribute.role != "quasi":
        return []
    if attribute.follows_the_data:
        return [
            "its hierarchy or order would follow the data, which the others don't see; give a file,"
            " a tree or a list"
        ]
    if attribute.hierarchy is None and attribute.kind is Kind.CATEGORY:
        return ["a category needs a hierarchy, which all parties know"]
    if attribute.hierarchy is None and attribute.kind is Kind.NUMBER:
        if attribute.domain is None:
            return [
                "a number needs a 'domain', which all parties know; the data's own ends would show"
                " values"
            ]
        if attribute.grid is None and any(end != round(end) for end in attribute.domain):
            return ["its domain is not whole; give the step of its 'grid'"]
    return []


def with_places(
    agreement: Agreement, places: dict[str, tuple[str, str]], tables: dict[str, str]
) -> dict[str, Any]:
    """The agreement's content with addresses and certificates, and whole paths, for a run on one
    machine.
    """
    content = agreement.model.model_dump(mode="json", exclude_unset=True)
    for party in [*content["parties"], *([content["helper"]] if content.get("helper") else [])]:
        party["address"], party["certificate"] = places[party["name"]]
        if party["name"] in tables:
            party["table"] = tables[party["name"]]
        for attribute in party.get("attributes", {}).values():
            if isinstance(attribute.get("hierarchy"), str):
                attribute["hierarchy"] = str((agreement.base / attribute["hierarchy"]).resolve())
    return content
