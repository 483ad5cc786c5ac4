"""The agreement: one file that says who fuses what with whom; all parties sign off its hash.

The hash covers everything that bears on what is published or shown - names, addresses,
certificates, who owns which attribute, hierarchies by their content, domains and grids, QIDs with
k, the consent to share the label, the method, how the maximum is computed - and nothing that
concerns one party alone, such as where its table is stored.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from shoal.connectors.files import file_sha256
from shoal.connectors.party.tls import Peer, fingerprint_of
from shoal.data.regular_files import Json, readable, require_regular
from shoal.data.schema import IndexedRequirement
from shoal.errors import InputError
from shoal.policy import given_trees, loading, registry
from shoal.policy.agreement_model import (
    MOST_CELLS,
    AgreementModel,
    Domain,
    FusedAttribute,
    HelperModel,
    PartyModel,
    contradictions,
)
from shoal.policy.checked import checked
from shoal.policy.policy import Policy
from shoal.privacy.k_anonymity import KAnonymity
from shoal.privacy.l_diversity import LDiversity
from shoal.protocols import FusionMethod

PROTOCOL = 1
LARGEST_CERTIFICATE = 1 << 20  # bytes that are read of one
_KEYS = "compare with the agreement that 'shoal sample bank' writes"


AgreementLike: TypeAlias = str | Path | Json
"""A file, or its content."""


@dataclass(frozen=True)
class Agreement:
    """A complete, checked agreement. base: the folder that its paths are relative to.

    path: the file that it was read from; None where it was made in Python.
    """

    model: AgreementModel
    base: Path = Path()
    path: Path | None = field(default=None, compare=False)

    @classmethod
    def load(cls, path: str | Path) -> Agreement:
        """The agreement in a YAML, JSON or TOML file; raises InputError with every finding."""
        content = loading.read_mapping(path, "agreement")
        if "attributes" in content and "parties" not in content:
            if "tables" in content:
                raise InputError(
                    f"agreement '{path}': is the policy of linked tables, which a fusion does not"
                    " take; let each owner join theirs into one table, a row a person, or publish"
                    " them with 'shoal publish FOLDER'"
                )
            raise InputError(
                f"agreement '{path}': is the policy of one table, not an agreement of several"
                f" owners; {_KEYS}"
            )
        agreement = cls.from_dict(content, base=Path(path).parent, what=f"agreement '{path}'")
        return replace(agreement, path=Path(path))

    @classmethod
    def of(cls, agreement: Agreement | AgreementLike) -> Agreement:
        """The agreement itself, or the one in a file or in plain dicts."""
        if isinstance(agreement, Agreement):
            return agreement
        if isinstance(agreement, dict):
            return cls.from_dict(agreement)
        if not isinstance(agreement, (str, Path)):
            raise InputError(
                "agreement: is not an agreement; give the path of one, or its content as dicts"
            )
        return cls.load(agreement)

    @classmethod
    def from_dict(cls, content: Json, base: str | Path = ".", what: str = "agreement") -> Agreement:
        """An agreement from plain dicts; raises InputError with every finding. what: its name."""
        agreement = cls(checked(AgreementModel, content, what, _KEYS), Path(base))
        InputError.raise_for(contradictions(agreement.model) or agreement._unfit())
        return agreement

    def with_changes(self, **changes: Any) -> Agreement:
        content = self.model.model_dump(exclude_unset=True) | changes
        return replace(Agreement.from_dict(content, self.base), path=self.path)

    def with_overrides(
        self, method: str | None, settings: Json, k: int | None, seed: int | None
    ) -> Agreement:
        """The agreement with another method, parameters, k or seed, where one is given."""
        changes: Json = {}
        if method is not None or settings:
            known = self.model.method
            is_other = method is not None and method != known["name"]
            changes["method"] = ({"name": method} if is_other else dict(known)) | settings
        if k is not None:
            changes["promises"] = [
                promise | ({"k": k} if promise["model"] == "k-anonymity" else {})
                for promise in self.model.promises
            ]
        if seed is not None:
            changes["seed"] = seed
        return self.with_changes(**changes) if changes else self

    # Who takes part

    @property
    def owners(self) -> list[str]:
        return [party.name for party in self.model.parties]

    @property
    def participants(self) -> list[str]:
        """The owners, then the helper."""
        return [party.name for party in self.model.all_parties]

    @property
    def computing(self) -> list[str]:
        """Who computes the secure maximum: the owners, with the helper where they are two."""
        return self.participants if len(self.owners) <= 2 else self.owners

    @property
    def collector(self) -> str:
        """Who compares the points of the ids."""
        return self.participants[-1] if self.model.joining.name == "keyed" else self.owners[0]

    def party(self, name: str) -> PartyModel | HelperModel:
        """The party of that name; raises InputError."""
        for party in self.model.all_parties:
            if party.name == name:
                return party
        raise InputError(
            f"party '{name}': is not in the agreement; it names {', '.join(self.participants)}"
        )

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
        require_regular(self.base / name, "certificate")
        with readable(f"certificate '{name}'"), open(self.base / name, "rb") as file:
            content = file.read(LARGEST_CERTIFICATE)  # a longer one is none, and is refused as such
        return content

    # What is published

    @property
    def quasi(self) -> list[str]:
        """All quasi-identifiers by name, which decides among equal scores, whoever owns them."""
        return sorted(name for name, a in self.model.attributes() if a.role == "quasi")

    def owner_of(self, attribute: str) -> str:
        return next(party.name for party in self.model.parties if attribute in party.attributes)

    def numbers_of(self, owner: str) -> list[int]:
        """The quasi-identifiers of an owner, by number."""
        return [j for j, name in enumerate(self.quasi) if self.owner_of(name) == owner]

    def attribute(self, name: str) -> FusedAttribute:
        return next(attribute for known, attribute in self.model.attributes() if known == name)

    @cached_property
    def domains(self) -> list[Domain]:
        """The public part of every quasi-identifier, in the order of `quasi`."""
        return [self._domain(name, self.attribute(name)) for name in self.quasi]

    def _domain(self, name: str, attribute: FusedAttribute) -> Domain:
        tree = attribute.hierarchy
        hierarchy = None if tree is None else given_trees.declared_hierarchy(name, tree, self.base)
        return Domain.of(name, attribute, hierarchy)

    @property
    def published(self) -> list[str]:
        """The columns of the fused table, as the agreement lists them; the label last."""
        columns = [name for name, a in self.model.attributes() if a.role != "drop"]
        return [*columns, self.model.label.attribute]

    def qids(self) -> list[IndexedRequirement]:
        """The QIDs by attribute number, with k."""
        number = {name: j for j, name in enumerate(self.quasi)}
        return [
            IndexedRequirement(
                tuple(number[name] for name in promise.attributes or self.quasi), promise.k
            )
            for promise in self.policy.build_promises()
            if isinstance(promise, KAnonymity)
        ]

    @cached_property
    def diverse(self) -> dict[str, int]:
        """How many different values every group has at least, by name: what all owners see."""
        asked: dict[str, int] = {}
        judged = None if self.model.sensitive is None else self.model.sensitive.attribute
        for promise in self.policy.build_promises():
            if isinstance(promise, LDiversity) and promise.attribute != judged:
                asked[promise.attribute] = max(promise.l, asked.get(promise.attribute, 1))
        return asked

    @property
    def judge(self) -> str | None:
        """The owner who refuses what leaves too few values of an attribute of its own."""
        sensitive = self.model.sensitive
        return None if sensitive is None else self.owner_of(sensitive.attribute)

    @property
    def least_common(self) -> int:
        """Fewest people that the tables must have in common."""
        return max([self.model.minimum or 2, *(qid.k for qid in self.qids())])

    def rule(self) -> FusionMethod:
        """The method with its parameters."""
        return registry.build_method(self.model.method["name"], "fuse", self._settings)

    @property
    def bids(self) -> bool:
        """Whether owners bid for rounds, whose winner is computed; otherwise they take turns."""
        return not self._says("takes_turns")

    @property
    def is_secret(self) -> bool:
        """Whether the winner of a round is computed so that nobody sees a bid."""
        return self.bids and self.model.maximum.name == "mpyc"

    @property
    def tells_runner_up(self) -> bool:
        """Whether the winner of a round sees the second best bid."""
        return self._parameters().get("runner_up") == "told"

    @property
    def is_paced(self) -> bool:
        """Whether the first owner measures how many steps ahead pay off."""
        return self.is_secret and len(self.owners) > 1 and self._parameters().get("ahead") == 0

    @property
    def has_hulls(self) -> bool:
        """Whether owners narrow all groups at the end."""
        return bool(self._parameters().get("hulls"))

    @property
    def weights(self) -> list[float]:
        """How much the loss of each quasi-identifier matters, in the order of `quasi`."""
        return [self.attribute(name).weight for name in self.quasi]

    def _says(self, mark: str) -> bool:
        """What the method says of itself; a comparator that is not installed says no to all."""
        return not registry.is_missing(self.model.method["name"]) and bool(
            getattr(self.rule(), mark)
        )

    @property
    def _settings(self) -> Json:
        return {name: value for name, value in self.model.method.items() if name != "name"}

    def _parameters(self) -> Mapping[str, Any]:
        return registry.parameters_taken(self.model.method["name"], "fuse", self._settings)

    @cached_property
    def policy(self) -> Policy:
        """The policy under which anybody can audit the fused table."""
        attributes: Json = {
            name: self.attribute(name).model_dump(mode="json", exclude_unset=True, exclude={"grid"})
            for name in self.published[:-1]
        }
        label = self.model.label.attribute
        attributes[label] = {"role": "plain"}
        promises = list(self.model.promises)
        if self.model.sensitive is not None:
            asked = self.model.sensitive.model_dump(exclude={"veto"})
            promises.append({"model": "l-diversity"} | asked)
        for promise in promises:
            if promise["model"] == "l-diversity":
                attributes[promise["attribute"]] |= {"role": "sensitive"}
        content = {
            "version": 1,
            "attributes": attributes,
            "promises": promises,
            "label": label,
            "missing": "reject",
            "render": {"order": "shuffled"},
            "seed": self.model.seed,
        }
        return replace(Policy.from_dict(content, self.base), path=self.path)

    # What is signed off

    @cached_property
    def canonical(self) -> Json:
        """What the hash covers."""
        return {
            "protocol": PROTOCOL,
            "join": self.model.join,
            "label": self.model.label.model_dump(),
            "parties": [
                self._signed_party(party)
                | {
                    "attributes": {
                        name: self._signed_attribute(attribute)
                        for name, attribute in party.attributes.items()
                    }
                }
                for party in self.model.parties
            ],
            "helper": self._signed_party(self.model.helper) if self.model.helper else None,
            "promises": self.model.promises,
            "method": {"name": self.model.method["name"], **self._parameters()},
            "joining": self.model.joining.model_dump(),
            "maximum": self.model.maximum.model_dump(),
            "minimum": self.least_common,
            "seed": self.model.seed,
            **self.model.model_dump(include={"before", "sensitive"}, exclude_none=True),
        }

    @property
    def hash(self) -> bytes:
        """SHA-256 of the canonical form: what the parties sign off."""
        return hashlib.sha256(json.dumps(self.canonical, sort_keys=True).encode()).digest()

    def _signed_party(self, party: PartyModel | HelperModel) -> Json:
        fingerprint = (
            None
            if party.certificate is None
            else fingerprint_of(self._certificate(party.certificate), party.certificate)
        )
        return {"name": party.name, "address": party.address, "certificate": fingerprint}

    def _signed_attribute(self, attribute: FusedAttribute) -> Json:
        signed = attribute.model_dump(mode="json", exclude_unset=True)
        if isinstance(attribute.hierarchy, str):
            signed["hierarchy"] = "sha256:" + file_sha256(self.base / attribute.hierarchy)
        return signed

    def _unfit(self) -> list[str]:
        """What only the built method, promises and domains show."""
        try:
            self._parameters()
            promises = self.policy.build_promises()
            domains = self.domains
        except InputError as unfit:
            return unfit.said
        qids = [promise for promise in promises if isinstance(promise, KAnonymity)]
        covered = {name for qid in qids for name in qid.attributes or self.quasi}
        findings = [
            f"attribute '{name}': is in no QID, so nothing would hide it; add it to one, or give it"
            " the role 'plain' to publish it as it is"
            for name in self.quasi
            if name not in covered
        ]
        is_over_all = any(set(qid.attributes or self.quasi) >= set(self.quasi) for qid in qids)
        needs_all = [
            *(["promise 'l-diversity': counts values"] if self.diverse else []),
            *(["agreement, sensitive: counts values"] if self.judge else []),
            *(["agreement, before: compares people"] if self.model.before else []),
        ]
        if not is_over_all and not self._says("over_all"):
            findings += [
                f"{what} in groups over all quasi-identifiers; ask for k-anonymity over all of"
                " them, too, by a promise without 'attributes'"
                for what in needs_all
            ]
        findings += [
            f"attribute '{domain.name}': its grid has {domain.cells} points, {MOST_CELLS} are"
            " possible; take a wider 'grid'"
            for domain in domains
            if not 2 <= domain.cells <= MOST_CELLS
        ]
        if self.tells_runner_up and (self.judge or "runner_up" not in self._settings):
            findings.append(
                f"method '{self.model.method['name']}': shows the winner of each round the second"
                " best bid; consent by 'runner_up: told', which goes without 'sensitive', or say"
                " 'runner_up: hidden'"
            )
        return findings


def with_endpoints(
    agreement: Agreement, endpoints: dict[str, tuple[str, str]], tables: dict[str, str]
) -> Json:
    """The agreement's content with these addresses, certificates and tables, by party; its paths
    made absolute.
    """
    content = agreement.model.model_dump(mode="json", exclude_unset=True)
    for party in [*content["parties"], *([content["helper"]] if content.get("helper") else [])]:
        if party["name"] in endpoints:
            party["address"], party["certificate"] = endpoints[party["name"]]
        if party["name"] in tables:
            party["table"] = tables[party["name"]]
        for attribute in party.get("attributes", {}).values():
            if isinstance(attribute.get("hierarchy"), str):
                attribute["hierarchy"] = str((agreement.base / attribute["hierarchy"]).resolve())
    return content
