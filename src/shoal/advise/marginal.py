"""Marginal: what each quasi-identifier costs, measured by publishing again without it."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from shoal.auditor.reading import read_release
from shoal.auditor.verdict import Publication
from shoal.data.classes import Classes
from shoal.data.matrix import Matrix
from shoal.data.notebook import Figures
from shoal.data.numbers import exact_sum
from shoal.data.progress import Progress, no_progress, tell
from shoal.data.release import Release
from shoal.data.table import Table
from shoal.errors import InfeasibleError, InputError
from shoal.policy.binding.files import Source
from shoal.policy.binding.table import bound_table
from shoal.policy.policy import Policy, PolicyLike
from shoal.policy.problem import Problem
from shoal.privacy.promises import BoundPromises
from shoal.tables.draft import Outcome, RecodedDraft, prepare
from shoal.tables.explain import neighbourhood
from shoal.utility.gcp import GlobalCertaintyPenalty

SCHEMA = "shoal.marginal/1"


@dataclass(frozen=True)
class ColumnPrice:
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

    def to_dict(self) -> dict[str, Any]:
        """All figures, as JSON can hold them."""
        return {"schema": SCHEMA, **asdict(self)}


def marginal(
    source: Source,
    policy: PolicyLike,
    *,
    release: Publication[Any] | None = None,
    on_column: Callable[[ColumnPrice], object] | None = None,
    progress: Progress = no_progress,
) -> Marginal:
    """Which columns of a release suffer, and how much the others would gain without each.

    The table is published in memory once without each quasi-identifier, by the same method, and
    once with a smaller k; nothing is written. release: what `publish` made of the same table and
    policy, else it is made here. on_column: called with each price as it is measured. Raises
    InputError and InfeasibleError as `publish` does.
    """
    policy = Policy.of(policy)
    policy.require_answers()
    found = None if release is None else release.found
    table = policy.tables.read_source(source, progress)
    if isinstance(found, Outcome):
        draft, now = found.draft, found.release
    else:
        progress("publishing as it is")
        draft, now = _released(table, policy)
    policy = draft.asked.again(policy).with_default_method(draft.truth.encoded).policy
    losses, exact = _losses(now), exact_shares(now)
    prices = []
    for number, name in enumerate(losses, 1):
        stage = f"publishing without column {number} of {len(losses)}"
        tell(progress, stage, number - 1, len(losses) + 1)
        without, why_not = _without(table, policy, name)
        others = mean_loss(losses, but=name)
        prices.append(ColumnPrice(name, losses[name], exact[name], others, without, why_not))
        if on_column is not None:
            on_column(prices[-1])
    tell(progress, "publishing with a smaller k", len(losses), len(losses) + 1)
    k, smaller_k = policy.required_k, None
    if k is not None and k > 2:
        smaller_k = SmallerK(k - 1, _loss_under(table, lambda: policy.with_k(k - 1))[0])
    return Marginal(
        policy.method_name,
        k,
        mean_loss(losses),
        tuple(sorted(prices, key=lambda price: -(price.loss or 0.0))),
        smaller_k,
    )


def _released(table: Table, policy: Policy) -> tuple[RecodedDraft, Release]:
    """What would be published, and what its readers would see of it."""
    policy.build_method("publish")
    draft = prepare(table, bound_table(table, policy))
    return draft, read_release(Table(draft.frame), draft.asked, draft.truth)


def _without(table: Table, policy: Policy, name: str) -> tuple[float | None, str | None]:
    """The loss of the other columns, or why there is no such release."""
    fewer = policy.without_quasi(name) if len(policy.quasi) > 1 else None
    if fewer is None:
        return None, "a promise is about it alone, or it is the only quasi-identifier"
    content = fewer.model.model_dump(exclude_unset=True)
    content["attributes"] = {**content["attributes"], name: {"role": "drop"}}
    return _loss_under(table, lambda: Policy.from_dict(content, policy.base))


def _loss_under(table: Table, change: Callable[[], Policy]) -> tuple[float | None, str | None]:
    """The loss of a release under another policy, or why there is none."""
    try:
        return mean_loss(_losses(_released(table, change())[1])), None
    except (InfeasibleError, InputError) as refused:
        return None, "; ".join(refused.said)


def _losses(release: Release) -> dict[str, float | None]:
    """The loss of every quasi-identifier by itself."""
    return GlobalCertaintyPenalty().per_attribute(release)


def mean_loss(losses: Mapping[str, float | None], but: str | None = None) -> float | None:
    """The mean over the columns but one; None where there is no other, or one is not known."""
    kept = [loss for name, loss in losses.items() if name != but]
    known = [loss for loss in kept if loss is not None]
    return exact_sum(known) / len(known) if known and len(known) == len(kept) else None


def exact_shares(release: Release) -> dict[str, float]:
    """By quasi-identifier, the share of records that show one value, or that there is none."""
    shares = {}
    for column in release.columns:
        shown = release.cell_counts[column.name]
        is_exact = column.widths == 0
        shares[column.name] = float(shown[is_exact].sum()) / max(release.records, 1)
    return shares


# Lattice walk: any levels of a global recoding, and each a step coarser or finer, measured.


class LatticeWalk(Figures):
    """A table whose levels are looked at one after the other; see `lattice_walk`."""

    def __init__(self, matrix: Matrix, whole_table: Classes, problem: Problem) -> None:
        self._matrix, self._problem = matrix, problem
        self._bound = BoundPromises(problem.promises, whole_table)

    def _figures(self) -> dict[str, object]:
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
    source: Source, policy: PolicyLike, *, progress: Progress = no_progress
) -> LatticeWalk:
    """The levels of a table under a policy of global recoding, to be looked at one by one.

    Raises InputError where the table does not fit the policy, or its method recodes each class on
    its own.
    """
    asked = Policy.of(policy)
    asked.require_global("levels: there are none to walk")
    table = asked.tables.read_source(source, progress)
    bound = bound_table(table, asked)
    return LatticeWalk(*bound.method_input(), bound.problem)
