"""The keys of an agreement file (PARTIES.yaml), and what each of them may hold."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from shoal.connectors.party.journal import MOST_NAME
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.numbers import EXACT_DIGITS, parse_numbers
from shoal.data.regular_files import Json
from shoal.data.schema import Kind, Taxonomy
from shoal.data.table import Column
from shoal.policy.consistency import open_questions
from shoal.policy.model import AttributePolicy, MethodPolicy, _Strict, setting

DEFAULT_METHOD = "party-tds"
SUBCOMMANDS = ("init", "run")  # of `shoal party`; no party can have such a name
_NAME = re.compile(r"[a-z][a-z0-9-]*")


class FusedAttribute(AttributePolicy):
    """An attribute as in a policy; for a number also the step of its public grid."""

    role: Literal["quasi", "plain", "drop"]
    grid: float | None = setting(
        "Step of the public grid that a number is split on; 1 by default.", gt=0
    )


class LabelModel(_Strict):
    """The class that the release is to predict; all parties see it."""

    attribute: str
    shared: bool


class PartyModel(_Strict):
    """One owner."""

    name: str
    table: str | None = None
    address: str | None = None
    certificate: str | None = setting("The party's public part, made by 'shoal party init NAME'.")
    attributes: dict[str, FusedAttribute]


class HelperModel(_Strict):
    """The party that computes the secure maximum with two owners, and compares keyed ids."""

    table: ClassVar[None] = None
    attributes: ClassVar[Mapping[str, FusedAttribute]] = {}
    name: str
    address: str | None = None
    certificate: str | None = None


class JoiningModel(_Strict):
    """How people in common are found."""

    name: Literal["masked", "keyed"] = "masked"
    helper_is_trusted: bool = setting(
        "Needed for 'keyed': the helper sees how many people two tables share, and together"
        " with one owner all ids.",
        False,
    )


class MaximumModel(_Strict):
    """How the winner of a round is found."""

    name: Literal["mpyc", "clear"] = "mpyc"
    scores_may_be_seen: bool = setting(
        "Needed for 'clear', which shows every bid to every party.", False
    )


class SensitiveModel(_Strict):
    """An owner's attribute whose values the others don't see before the rounds end."""

    attribute: str
    l: int = setting("Fewest different values in a group.", ..., ge=2)
    veto: Literal["seen"] | None = setting(
        "Needed: the owner sees one level more of what it refuses, the others that it refused."
    )


class AgreementModel(_Strict):
    """A PARTIES.yaml file."""

    version: Literal[1]
    join: str
    label: LabelModel
    parties: list[PartyModel] = Field(min_length=1, max_length=8)
    helper: HelperModel | None = None
    promises: list[Json] = Field(min_length=1)
    method: MethodPolicy = Field(default_factory=lambda: {"name": DEFAULT_METHOD})
    joining: JoiningModel = Field(default_factory=lambda: JoiningModel.model_validate({}))
    maximum: MaximumModel = Field(default_factory=lambda: MaximumModel.model_validate({}))
    minimum: int | None = setting("Fewest people in common; below it the run ends.", ge=2)
    seed: int = Field(0, ge=0, lt=2**63)
    before: str | None = setting(
        "The ledger of earlier fusions that this one continues: its hash, or 'start'.",
        pattern="^(start|[0-9a-f]{64})$",
    )
    sensitive: SensitiveModel | None = setting(
        "An attribute whose owner refuses groups with too few of its values."
    )

    @property
    def all_parties(self) -> list[PartyModel | HelperModel]:
        """The owners, then the helper."""
        return [*self.parties, *([self.helper] if self.helper else [])]

    def attributes(self) -> Iterator[tuple[str, FusedAttribute]]:
        """The attributes of all owners by name, in the order of the file."""
        for party in self.parties:
            yield from party.attributes.items()


def contradictions(model: AgreementModel) -> list[str]:
    """What no single field shows: parties, attributes and consents that don't fit each other."""
    return [
        *_party_findings(model),
        *_attribute_findings(model),
        *_consent_findings(model),
        *_promise_findings(model),
        *_sensitive_findings(model),
    ]


def name_findings(names: Iterable[str]) -> Iterator[str]:
    """What is wrong with the names of parties, each by itself."""
    yield from (
        f"party '{name}': a name is a letter and then letters, digits or '-', {MOST_NAME} at"
        " most, all small"
        for name in names
        if not _NAME.fullmatch(name) or len(name) > MOST_NAME
    )
    yield from (
        f"party '{name}': a name is not {' or '.join(SUBCOMMANDS)}, the commands of 'shoal party'"
        for name in names
        if name in SUBCOMMANDS
    )


def _party_findings(model: AgreementModel) -> Iterator[str]:
    names = [party.name for party in model.all_parties]
    yield from name_findings(names)
    yield from (f"party '{name}': is named twice" for name in _repeated(names))
    is_keyed = model.joining.name == "keyed"
    if is_keyed and (model.helper is None or len(model.parties) < 2):
        yield (
            "agreement, joining: keyed ids need a helper, who compares them for two and more owners"
        )
    elif model.helper is not None and len(model.parties) != 2 and not is_keyed:
        yield "helper: only two owners need one; three and more compute the maximum themselves"


def _attribute_findings(model: AgreementModel) -> Iterator[str]:
    names = [name for name, _ in model.attributes()]
    kept = {name for name, attribute in model.attributes() if attribute.role != "drop"}
    yield from (
        f"attribute '{name}': has two owners; one party owns it"
        for name in _repeated(names)
        if name in kept  # what nobody publishes needs no owner
    )
    common = {model.join: "the join column", model.label.attribute: "the label"}
    yield from (
        f"attribute '{name}': is {common[name]}; don't list it under a party"
        for name in names
        if name in common
    )
    for name, attribute in model.attributes():
        yield from (f"attribute '{name}': {why}" for why in _not_public(attribute))
    yield from open_questions(dict(model.attributes()))
    if not any(attribute.role == "quasi" for _, attribute in model.attributes()):
        yield "agreement: no quasi-identifier; give at least one attribute the role 'quasi'"


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


def _consent_findings(model: AgreementModel) -> Iterator[str]:
    """What shows more than the default, and has no explicit consent."""
    if not model.label.shared:
        yield (
            "agreement, label: every party needs the class of every person in common; consent"
            " by 'shared: true', nothing else is offered"
        )
    if model.maximum.name == "clear" and not model.maximum.scores_may_be_seen:
        yield (
            "agreement, maximum: 'clear' shows every party the scores of all others and is for"
            " tests; say 'scores_may_be_seen: true', or take mpyc"
        )
    if model.joining.name == "keyed" and not model.joining.helper_is_trusted:
        yield (
            "agreement, joining: with 'keyed' ids the helper sees how many people two tables"
            " share, and together with one owner all ids; say 'helper_is_trusted: true', or"
            " take masked"
        )
    if model.sensitive is not None and model.sensitive.veto is None:
        name, least = model.sensitive.attribute, model.sensitive.l
        yield (
            f"agreement, sensitive: the owner of '{name}' would see one level more of the steps"
            f" that it refuses, and the others that groups had fewer than {least} values; consent"
            " by 'veto: seen', or share the column before the rounds by the promise {model:"
            f" l-diversity, attribute: {name}, l: {least}}}"
        )


def _sensitive_findings(model: AgreementModel) -> list[str]:
    if model.sensitive is None:
        return []
    name = model.sensitive.attribute
    roles = {known: attribute.role for known, attribute in model.attributes()}
    if name == model.label.attribute:
        return [
            f"agreement, sensitive: '{name}' is the label, which all see; ask for it by a promise"
            " 'l-diversity'"
        ]
    if roles.get(name) != "plain":
        return [
            f"agreement, sensitive: '{name}' is not an attribute of the role 'plain'; only what is"
            " published unchanged has values to be diverse"
        ]
    if any(
        promise.get("model") == "l-diversity" and promise.get("attribute") == name
        for promise in model.promises
    ):
        return [
            f"agreement, sensitive: '{name}' is shared before the rounds by a promise"
            " 'l-diversity', so that all can judge; leave one of the two out"
        ]
    return []


def _promise_findings(model: AgreementModel) -> Iterator[str]:
    kinds = [promise.get("model") for promise in model.promises]
    yield from (
        "agreement, promises: a fusion keeps k-anonymity, one promise for each QID, and distinct"
        " l-diversity"
        for promise, kind in zip(model.promises, kinds, strict=True)
        if kind not in ("k-anonymity", "l-diversity")
        or promise.get("kind", "distinct") != "distinct"
    )
    if "k-anonymity" not in kinds:
        yield "agreement, promises: ask for k-anonymity, one promise for each QID"
    shown = {model.label.attribute} | {n for n, a in model.attributes() if a.role == "plain"}
    yield from (
        f"promise 'l-diversity': '{promise.get('attribute')}' is not the label, nor an attribute of"
        " the role 'plain'; only what is published unchanged has values to be diverse"
        for promise, kind in zip(model.promises, kinds, strict=True)
        if kind == "l-diversity" and promise.get("attribute") not in shown
    )


def _repeated(names: Iterable[str]) -> list[str]:
    names = list(names)
    return sorted({name for name in names if names.count(name) > 1})


# The public part of a quasi-identifier in a fusion: what all parties know beforehand.


MOST_CELLS = 1 << 20


@dataclass(frozen=True)
class Domain:
    """The cells of one quasi-identifier, and the text of every span of them.

    numbers: least value and step of a number's grid. order: labels of an ordinal. hierarchy: tree
    of a category.
    """

    name: str
    cells: int
    numbers: tuple[Decimal, Decimal] | None = None
    order: tuple[str, ...] = ()
    hierarchy: Hierarchy | None = None

    @classmethod
    def of(cls, name: str, attribute: FusedAttribute, hierarchy: Hierarchy | None) -> "Domain":
        """The domain of an attribute as it is agreed; hierarchy: the one that it names, if any."""
        if hierarchy is not None:
            return cls(name, hierarchy.leaves, hierarchy=hierarchy)
        if isinstance(attribute.order, list):
            return cls(name, len(attribute.order), order=tuple(attribute.order))
        assert attribute.domain is not None
        low, high = (Decimal(repr(end)) for end in attribute.domain)
        step = Decimal(repr(attribute.grid or 1.0))
        with localcontext(prec=EXACT_DIGITS):
            return cls(name, int((high - low) // step) + 1, numbers=(low, step))

    @property
    def taxonomy(self) -> Taxonomy:
        if self.hierarchy is not None:
            return Taxonomy.of_tree(self.hierarchy)
        return Taxonomy(self.cells, is_number=True)

    def text(self, lo: int, hi: int) -> str:
        """What is published for a node."""
        if self.hierarchy is not None:
            (node,) = self.hierarchy.covering(np.array([lo]), np.array([hi]))
            return self.hierarchy.labels[node]
        return self._point(lo) if lo == hi else f"[{self._point(lo)}, {self._point(hi)}]"

    def span(self, text: str) -> tuple[int, int]:
        """The cells that a published text means; raises ValueError."""
        if self.hierarchy is not None:
            node = self.hierarchy.node_of_label(text)
            if node < 0:
                raise ValueError("not a node")
            return int(self.hierarchy.first[node]), int(self.hierarchy.last[node])
        is_range = text.startswith("[") and text not in self.order
        ends = text[1:-1].split(", ") if is_range else [text, text]
        lo, hi = (self._cell_of_point(end) for end in ends)
        return lo, hi

    def _cell_of_point(self, text: str) -> int:
        if self.numbers is None:
            return self.order.index(text)
        least, step = self.numbers
        return int((Decimal(text) - least) / step)

    def _point(self, cell: int) -> str:
        if self.numbers is None:
            return self.order[cell]
        least, step = self.numbers
        return format((least + cell * step).normalize(), "f")

    def cells_of(self, column: Column, party: str) -> tuple[np.ndarray, list[str]]:
        """The cell of every record, and findings about values without one."""
        if self.numbers is None:
            values = np.array([self._cell(text) for text in column.cells])
        else:
            values = self._grid(column)
        outside = values < 0
        if not outside.any():
            return values.astype(np.min_scalar_type(self.cells - 1))[column.codes], []
        count = int(column.counts()[outside].sum())
        bounds = "its order" if self.order else "its domain and grid"
        bounds = bounds if self.hierarchy is None else "its hierarchy"
        message = (
            f"party '{party}', attribute '{self.name}': {count} records lie outside"
            f" {bounds}; fix them, or make a new agreement"
        )
        return values, [message]

    def _cell(self, text: str) -> int:
        cell = self._labels.get(text, -1)
        if cell < 0 and self.hierarchy is not None:  # an alias of a leaf, perhaps
            cell = self.hierarchy.node_of_label(text)
        return cell if cell < self.cells else -1

    @cached_property
    def _labels(self) -> dict[str, int]:
        labels = self.order if self.hierarchy is None else self.hierarchy.labels[: self.cells]
        return {label: cell for cell, label in enumerate(labels)}

    def _grid(self, column: Column) -> np.ndarray:
        assert self.numbers is not None
        least, step = (float(part) for part in self.numbers)
        points = (parse_numbers(column.cells) - least) / step
        cells = np.rint(points)
        with np.errstate(invalid="ignore"):
            fits = (np.abs(points - cells) < 1e-6) & (cells >= 0) & (cells < self.cells)
        return np.where(fits, cells, -1).astype(np.int64)
