"""Marginal: what each quasi-identifier costs, measured by publishing again without it."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, cast

from shoal.advise.risk import percent
from shoal.auditor.description import policy_sha256
from shoal.auditor.reading import read_release
from shoal.auditor.verdict import Publication
from shoal.connectors.linked_tables import LinkedSource
from shoal.data.classes import Classes
from shoal.data.notebook import Figures
from shoal.data.numbers import exact_sum
from shoal.data.partition import Matrix
from shoal.data.progress import Progress, no_progress, tell
from shoal.data.release import Release
from shoal.data.table import Table
from shoal.errors import InfeasibleError, InputError
from shoal.linked.publish import MeasuredDraft, measured_draft
from shoal.policy.binding.files import Source
from shoal.policy.binding.linked import read_linked
from shoal.policy.binding.table import bound_table
from shoal.policy.linked import usual_method
from shoal.policy.policy import Policy, PolicyLike
from shoal.policy.problem import LinkedProblem, Problem
from shoal.privacy.promises import BoundPromises
from shoal.tables.draft import Outcome, RecodedDraft, prepare
from shoal.tables.global_recoding import neighbourhood
from shoal.utility.gcp import GlobalCertaintyPenalty

SCHEMA = "shoal.marginal/1"


@dataclass(frozen=True)
class ColumnPrice(Figures):
    """A quasi-identifier of a release. Losses are means of cell widths (gcp), None where a width
    can't be told.

    exact: share of records that show its true value. others: loss of the other columns in this
    release; others_without: in a release of the same table without this column. why_not: why there
    is none.
    """

    name: str
    loss: float | None
    exact: float
    others: float | None
    others_without: float | None
    why_not: str | None = None

    def _figures(self) -> Mapping[str, object]:
        return {
            "column": self.name,
            "its loss (gcp)": percent(self.loss),
            "share of true values": percent(self.exact),
            "loss of the others": percent(self.others),
            "loss of the others without it": percent(self.others_without),
        } | ({} if self.why_not is None else {"why that is not known": self.why_not})


@dataclass(frozen=True)
class SmallerK:
    """The release with one person fewer in each class. loss: None where there is none."""

    k: int
    loss: float | None


@dataclass(frozen=True, repr=False)
class Marginal(Figures):
    """What every quasi-identifier costs, the column that loses most first.

    loss: of the release. smaller_k: None where the policy promises no k above 2.
    """

    method: str
    k: int | None
    loss: float | None
    columns: tuple[ColumnPrice, ...]
    smaller_k: SmallerK | None

    def _figures(self) -> Mapping[str, object]:
        return {"method": self.method, "k": self.k, "loss": percent(self.loss)} | (
            {}
            if self.smaller_k is None
            else {f"loss with k = {self.smaller_k.k}": percent(self.smaller_k.loss)}
        )

    def to_dict(self) -> dict[str, Any]:
        """All figures, as JSON can hold them."""
        return {"schema": SCHEMA, **asdict(self)}


def marginal(
    source: "Source | LinkedSource",
    policy: PolicyLike,
    *,
    release: Publication[Any] | None = None,
    on_column: Callable[[ColumnPrice], object] | None = None,
    read: Mapping[str, Any] | None = None,
    progress: Progress = no_progress,
) -> Marginal:
    """Which columns of a release suffer, and how much the others would gain without each.

    The table is published in memory once without each quasi-identifier, by the same method, and
    once with a smaller k; nothing is written. Of linked tables, a column is `table.column`, and a
    row that is withheld loses all of its cells. release: what `publish` made of the same table and
    policy, else it is made here. on_column: called with each price as it is measured. read:
    as of `shoal.audit`. Raises InputError and InfeasibleError as `publish` does.
    """
    policy = Policy.of(policy, read)
    policy.require_answers()
    if policy.model.is_linked:
        policy = policy.or_method(usual_method(policy.model))
        own = read_linked(source, LinkedProblem(policy))
        trials = _Trials(policy, lambda changed: _costs_of_several(measured_draft(own, changed)))
        progress("publishing as it is")
        now = trials.costs(policy)
    else:
        if not isinstance(release, Publication | None):
            raise InputError(f"release: is of type {type(release).__name__}; {WHAT_WAS_MADE}")
        found = None if release is None else release.found
        table = policy.tables.read_source(cast("Source", source), progress)
        if isinstance(found, Outcome):
            draft, shown = found.draft, found.release
            own = found.certificate["policy"]["sha256"]
            if not draft.truth.is_of(table):
                raise InputError(f"release: is of another table; {WHAT_WAS_MADE}")
            if own != policy_sha256(policy):
                raise InputError(
                    "release: was made under another policy, or with another k or method; give"
                    " policy=release.policy, or leave the release out"
                )
        else:
            progress("publishing as it is")
            draft, shown = _released(table, policy)
        policy = draft.asked.again(policy).with_default_method(draft.truth.encoded).policy
        trials = _Trials(policy, lambda changed: _costs_of_one(_released(table, changed)[1]))
        now = _costs_of_one(shown)
    losses, prices = now.losses, []
    for number, name in enumerate(losses, 1):
        stage = f"publishing without column {number} of {len(losses)}"
        tell(progress, stage, number - 1, len(losses) + 1)
        without, why_not = trials.without(name) if len(losses) > 1 else (None, ALONE)
        others = now.mean(but=name)
        prices.append(ColumnPrice(name, losses[name], now.exact[name], others, without, why_not))
        if on_column is not None:
            on_column(prices[-1])
    tell(progress, "publishing with a smaller k", len(losses), len(losses) + 1)
    k = policy.required_k
    smaller_k = SmallerK(k - 1, trials.with_k(k - 1)) if k is not None and k > 2 else None
    prices.sort(key=lambda price: -(price.loss or 0.0))
    return Marginal(policy.method_name, k, now.mean(), tuple(prices), smaller_k)


WHAT_WAS_MADE = "give what 'publish' made of this table under this policy, or leave it out"
ALONE = "a promise is about it alone, or it is the only quasi-identifier"


class _Costs(NamedTuple):
    """By quasi-identifier: its loss, the share of records that show one value, or that there is
    none, and its weight in a mean.
    """

    losses: dict[str, float | None]
    exact: dict[str, float]
    weights: dict[str, int]

    def mean(self, but: str | None = None) -> float | None:
        """The mean over the columns but one; None where there is no other, or one is not known."""
        kept = [name for name in self.losses if name != but]
        known = [loss * self.weights[n] for n in kept if (loss := self.losses[n]) is not None]
        total = sum(self.weights[name] for name in kept)
        return exact_sum(known) / total if total and len(known) == len(kept) else None


def _released(table: Table, policy: Policy) -> tuple[RecodedDraft, Release]:
    """What would be published, and what its readers would see of it."""
    policy.build_method("publish")
    draft = prepare(table, bound_table(table, policy))
    return draft, read_release(Table(draft.frame), draft.asked, draft.truth)


def _costs_of_one(release: Release) -> _Costs:
    losses = GlobalCertaintyPenalty().per_attribute(release)
    exact = {
        column.name: float(release.cell_counts[column.name][column.widths == 0].sum())
        / max(release.records, 1)
        for column in release.columns
    }
    return _Costs(losses, exact, dict.fromkeys(losses, 1))


def _costs_of_several(draft: MeasuredDraft) -> _Costs:
    """Costs in linked tables, where withheld rows lose all of their cells, and a column weighs as
    much as it has cells.
    """
    costs = _Costs({}, {}, {})
    for about in draft.tables.tree.tables:
        records = draft.tables.rows[about.name].count
        for column in draft.audit.release.tables[about.name].columns:
            name, widths = about.qualified(column.name), column.widths[column.codes]
            lost = float(widths.sum()) + records - len(widths)
            costs.losses[name] = lost / max(records, 1)
            costs.exact[name] = float((widths == 0).sum()) / max(records, 1)
            costs.weights[name] = records
    return costs


@dataclass(frozen=True)
class _Trials:
    """Releases of the same tables under the policy with one change. costs: of one under a policy.

    What would be lost is None where there is no such release.
    """

    policy: Policy
    costs: Callable[[Policy], _Costs]

    def without(self, name: str) -> tuple[float | None, str | None]:
        """What the other columns would lose, or why there is no such release."""
        fewer = self.policy.without_quasi(name)
        if fewer is None:
            return None, ALONE
        content = fewer.model.model_dump(exclude_unset=True)
        table, _, column = name.rpartition(".")
        if table in content.get("tables", {}):
            content["tables"][table]["attributes"][column] = {"role": "drop"}
        else:
            content["attributes"][name] = {"role": "drop"}
        try:
            return self.costs(Policy.from_dict(content, self.policy.base)).mean(), None
        except (InfeasibleError, InputError) as refused:
            return None, "; ".join(refused.said)

    def with_k(self, k: int) -> float | None:
        """What would be lost with another k."""
        with suppress(InfeasibleError, InputError):
            return self.costs(self.policy.with_k(k)).mean()
        return None


# Lattice walk: any levels of a global recoding, and each a step coarser or finer, measured.


class LatticeWalk(Figures):
    """A table whose levels are looked at one after the other; see `lattice_walk`."""

    def __init__(self, matrix: Matrix, whole_table: Classes, problem: Problem) -> None:
        self._matrix, self._problem = matrix, problem
        self._bound = BoundPromises(problem.promises, whole_table)

    def _figures(self) -> Mapping[str, object]:
        return {"heights": ", ".join(f"{name} {height}" for name, height in self.heights.items())}

    @property
    def heights(self) -> dict[str, int]:
        """The greatest level of each quasi-identifier, where it shows nothing."""
        return dict(zip(self._matrix.names, map(int, self._matrix.heights), strict=True))

    def around(self, levels: Mapping[str, int]) -> dict[str, Any]:
        """What these levels lose and whether they are safe, and each neighbour.

        As the certificate's `explanation` has it: `node` and `neighbours`. Raises InputError where
        levels are not one for every quasi-identifier, within its heights.
        """
        heights = self.heights
        if set(levels) != set(heights):
            raise InputError(f"levels: name one for each of {', '.join(heights)}")
        for name, level in levels.items():
            if not 0 <= level <= heights[name]:
                raise InputError(f"levels: '{name}' has levels from 0 to {heights[name]}")
        node = tuple(levels[name] for name in heights)
        return neighbourhood(self._matrix, self._bound, node, self._problem)


def lattice_walk(
    source: Source,
    policy: PolicyLike,
    *,
    read: Mapping[str, Any] | None = None,
    progress: Progress = no_progress,
) -> LatticeWalk:
    """The levels of a table under a policy of global recoding, to be looked at one by one.

    read: as of `shoal.audit`. Raises InputError where the table does not fit the policy, or its
    method recodes each class on its own.
    """
    asked = Policy.of(policy, read)
    asked.require_global("levels: there are none to walk")
    bound = bound_table(asked.tables.read_source(source, progress), asked)
    return LatticeWalk(*bound.method_input(), bound.problem)
