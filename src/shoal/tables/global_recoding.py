"""Global recoding as it was chosen for one table: a plan to apply to others, and why it loses what
it does.

A plan says for every value what is published instead, so it holds values of the hierarchies: it
belongs to the owner and is not for publication. Applied to another table, records with a value that
it does not cover are suppressed and counted; classes that break a promise there are suppressed as
far as the plan allows. What comes out is audited like any release.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pydantic import TypeAdapter

from shoal.data import release
from shoal.data.certificate_shape import MethodReport
from shoal.data.classes import Classes
from shoal.data.encoding import EncodedAttribute
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.numbers import alike
from shoal.data.partition import Cut, Matrix
from shoal.data.recoding import GlobalRecoding, code_texts, span_ends
from shoal.data.regular_files import Json, readable, require_regular
from shoal.data.schema import Kind, Render
from shoal.errors import UNREADABLE, InfeasibleError, InputError, PromiseError
from shoal.policy.binding.table import BoundTable
from shoal.policy.problem import Problem
from shoal.privacy.promises import BoundPromises
from shoal.recoding.recode import find_classes
from shoal.search.lattice import Lattice
from shoal.search.lattice_costs import Node
from shoal.version import VERSION

SCHEMA = "shoal.plan/1"


@dataclass(frozen=True)
class ColumnMapping:
    """What becomes of one quasi-identifier's values.

    cells: published text of each value.
    numbers: [least, greatest, published text] of spans of numbers.
    unchanged: every number is published as it is.
    whole: the one text that is published of everything, None else.
    """

    cells: dict[str, str]
    numbers: list[tuple[float, float, str]]
    unchanged: bool = False
    whole: str | None = None

    def texts(self, encoded: EncodedAttribute, render: Render) -> list[str | None]:
        """The published text of each rank of a table, None where the plan does not cover it.

        A missing value stays missing, except where everything is generalized to one text.
        """
        some_missing = encoded.present < len(encoded.texts)
        if self.whole is not None:
            return [render.suppressed if some_missing else self.whole] * len(encoded.texts)
        known = [self._text(encoded, rank) for rank in range(encoded.present)]
        self._add_covered(known, encoded)
        return known + [encoded.texts[encoded.present] for _ in encoded.texts[encoded.present :]]

    def _add_covered(self, known: list[str | None], encoded: EncodedAttribute) -> None:
        """Values that the plan's own table lacked become the least group of it that covers them."""
        groups = tuple(dict.fromkeys(self.cells.values()))
        if encoded.attribute.hierarchy is None or None not in known:
            return
        lo, hi = release.tree_spans(encoded.attribute, groups)
        for rank in [rank for rank, text in enumerate(known) if text is None]:
            covering = np.flatnonzero(release.spans_cover(lo, hi, encoded.values[rank]))
            if len(covering):
                known[rank] = groups[min(covering, key=lambda group: hi[group] - lo[group])]

    def _text(self, encoded: EncodedAttribute, rank: int) -> str | None:
        if isinstance(encoded.reach, Hierarchy) or encoded.attribute.kind is Kind.ORDINAL:
            return self.cells.get(encoded.texts[rank])
        if self.unchanged:
            # numbers that are equal, however they were written, must read as one
            return encoded.texts[int(np.searchsorted(encoded.values, encoded.values[rank]))]
        value = encoded.values[rank]
        return next(
            (text for least, greatest, text in self.numbers if least <= value <= greatest), None
        )


_ROUND = TypeAdapter(dict[str, ColumnMapping])


@dataclass(frozen=True)
class Plan:
    """Columns by name for every round, and the share of the records that may be suppressed."""

    method: MethodReport
    suppression: float
    rounds: tuple[dict[str, ColumnMapping], ...]

    @classmethod
    def of(
        cls,
        cut: Cut,
        attributes: tuple[EncodedAttribute, ...],
        render: Render,
        method: MethodReport,
    ) -> "Plan":
        """What a cut does to the values of the table that it was made for."""
        rounds = tuple(
            {e.attribute.name: _column(one, j, e, render) for j, e in enumerate(attributes)}
            for one in cut.rounds
        )
        return cls(method, float(method["parameters"].get("suppression") or 0.0), rounds)

    @classmethod
    def load(cls, path: str | Path) -> "Plan":
        """The plan in a file; raises InputError where it holds none."""
        require_regular(path, "plan")
        with readable(f"plan '{path}'"):
            text = Path(path).read_bytes()
        try:
            content = json.loads(text.decode("utf-8"))
            if content["schema"] != SCHEMA:
                raise KeyError
            rounds = tuple(
                _ROUND.validate_json(json.dumps(one), strict=True) for one in content["rounds"]
            )
            suppression = float(content["suppression"])
            if not 0 <= suppression <= 1 or len({frozenset(one) for one in rounds}) != 1:
                raise ValueError
            method = content["method"]
            if not isinstance(method["name"], str) or not isinstance(method["parameters"], dict):
                raise ValueError
            return cls(method, suppression, rounds)
        except UNREADABLE:
            raise InputError(
                f"plan '{path}': holds no plan of this version; save it again with --plan"
            ) from None

    def to_json(self) -> str:
        rounds = [{name: vars(column) for name, column in one.items()} for one in self.rounds]
        content = {
            "schema": SCHEMA,
            "shoal": VERSION,
            "method": self.method,
            "suppression": self.suppression,
        }
        return json.dumps(content | {"rounds": rounds}, ensure_ascii=False, indent=1) + "\n"


def apply_plan(plan: Plan, bound: BoundTable) -> tuple[GlobalRecoding, dict[str, int], Json]:
    """The table recoded by a plan that was made for another; why it suppresses how many records;
    and what a certificate says of that: by attribute, what the plan does not cover.

    Raises InputError and PromiseError where the plan doesn't fit or suppresses too much.
    """
    attributes, render = bound.encoded.attributes, bound.schema.render
    _require_same(plan, attributes)
    missing = bound.encoded.suppressed
    rounds = [texts_of_round(columns, attributes, render) for columns in plan.rounds]
    covered = [_everywhere(ranks_covered, attributes) for _, ranks_covered in rounds]
    promises = BoundPromises(bound.problem.promises, bound.whole_table)
    round_of_record = np.full(len(missing), -1, dtype=np.int32)
    remaining = ~missing
    for number, (texts, _) in enumerate(rounds):
        kept = _keeping(promises, attributes, texts, remaining & covered[number])
        round_of_record[kept] = number
        remaining &= ~kept
    uncovered = {
        encoded.attribute.name: {
            "values": int((~is_covered).sum()),
            "records": int((~is_covered[encoded.ranks] & ~missing).sum()),
        }
        for encoded, is_covered in zip(attributes, rounds[0][1], strict=True)
        if not is_covered.all()
    }
    suppressed = round_of_record < 0
    broken = int((covered[0] & suppressed & ~missing).sum())
    allowed = int(Fraction(str(plan.suppression)) * len(missing))
    if broken > allowed:
        raise PromiseError(
            f"plan: {broken} of {len(missing)} records are in classes that break a promise, and it"
            f" allows to suppress {allowed}; find a new plan for this table"
        )
    not_covered = int(suppressed.sum()) - broken - int(missing.sum())
    reasons = {"not covered by the plan": not_covered, "suppressed by the method": broken}
    recoding = GlobalRecoding(tuple(texts for texts, _ in rounds), round_of_record)
    stated = {"uncovered": uncovered, "suppressed": broken}
    return recoding, {why: count for why, count in reasons.items() if count}, stated


def texts_of_round(
    columns: dict[str, ColumnMapping], attributes: tuple[EncodedAttribute, ...], render: Render
) -> tuple[tuple[tuple[str, ...], ...], list[np.ndarray]]:
    """What one round publishes of each rank, by attribute, and which ranks it covers.

    Where it does not, the text is the suppression mark.
    """
    published = [columns[e.attribute.name].texts(e, render) for e in attributes]
    covered = [np.array([text is not None for text in texts], dtype=bool) for texts in published]
    shown = [
        tuple(render.suppressed if text is None else text for text in texts) for texts in published
    ]
    return tuple(shown), covered


def _everywhere(covered: list[np.ndarray], attributes: tuple[EncodedAttribute, ...]) -> np.ndarray:
    """The records whose every value is covered; (n,) bool."""
    return np.logical_and.reduce(
        [is_covered[e.ranks] for is_covered, e in zip(covered, attributes, strict=True)]
    )


def _require_same(plan: Plan, attributes: tuple[EncodedAttribute, ...]) -> None:
    """Raises InputError with every quasi-identifier that the plan or the policy lacks."""
    asked = {e.attribute.name for e in attributes}
    known = set(plan.rounds[0]) if plan.rounds else set()
    findings = [
        f"plan: says nothing of attribute '{name}'; save a plan under this policy"
        for name in asked - known
    ]
    findings += [
        f"plan: attribute '{name}' is not a quasi-identifier of the policy; correct one of them"
        for name in known - asked
    ]
    InputError.raise_for(sorted(findings))


def _keeping(
    bound: BoundPromises,
    attributes: tuple[EncodedAttribute, ...],
    texts: tuple[tuple[str, ...], ...],
    known: np.ndarray,
) -> np.ndarray:
    """The records whose classes keep every promise, the whole table being these; (n,) bool."""
    cells = {
        e.attribute.name: _numbered(shown)[e.ranks]
        for e, shown in zip(attributes, texts, strict=True)
    }
    key = alike(cells.values(), len(known))
    kept = known.copy()
    while kept.any():
        labels = np.full(len(kept), -1, dtype=np.int32)
        distinct, labels[kept] = np.unique(key[kept], return_inverse=True)
        asked = bound.restricted_to(kept) if bound.relative else bound
        holds = asked.holds(labels, len(distinct), cells)
        if holds.all():
            return kept
        kept[kept] = holds[labels[kept]]
    return kept


def _numbered(texts: tuple[str, ...]) -> np.ndarray:
    number: dict[str, int] = {}
    return np.array([number.setdefault(text, len(number)) for text in texts], dtype=np.int64)


def _column(cut: Cut, j: int, encoded: EncodedAttribute, render: Render) -> ColumnMapping:
    """What a cut does to the values that attribute j may have."""
    if len(cut.starts[j]) == 1:
        return ColumnMapping(
            {}, [], whole=code_texts(cut, j, encoded, np.zeros(1, dtype=np.int64), render)[0]
        )
    unchanged = cut.levels is not None and cut.levels[j] == 0 and encoded.attribute.round is None
    if isinstance(encoded.attribute.hierarchy, Hierarchy):
        values = encoded.attribute.hierarchy.labels[: encoded.attribute.hierarchy.leaves]
    elif encoded.attribute.kind is Kind.ORDINAL:
        values = encoded.attribute.order or ()
    else:
        return ColumnMapping({}, [] if unchanged else _spans(cut, j, encoded, render), unchanged)
    texts = code_texts(cut, j, encoded, np.arange(len(values)), render)
    return ColumnMapping(dict(zip(values, values if unchanged else texts, strict=True)), [])


def _spans(
    cut: Cut, j: int, encoded: EncodedAttribute, render: Render
) -> list[tuple[float, float, str]]:
    """Ends and text of every span of a number."""
    starts = [int(start) for start in cut.starts[j] if start <= encoded.end]
    ends = [start - 1 for start in starts[1:]] + [encoded.end]
    texts = code_texts(cut, j, encoded, np.array(starts), render)
    numbers = [span_ends(encoded, start, end) for start, end in zip(starts, ends, strict=True)]
    return [(float(lo), float(hi), text) for (lo, hi), text in zip(numbers, texts, strict=True)]


# Why a release of global recoding loses what it does, and what would be cheaper.
#
# Every figure is measured by taking the same table again under one change. Nothing here names a
# value.


def explain(matrix: Matrix, whole_table: Classes, cut: Cut, problem: Problem) -> Json:
    """Why records are suppressed and columns fully generalized, and the nearest cheaper settings.

    whole_table: the matrix's records in one class.
    """
    explanation: Json = {
        "suppressed": None,
        "generalized": [],
        "looser": [],
        "cheaper": [],
        "node": None,
        "neighbours": [],
    }
    if cut.levels is not None:
        bound = BoundPromises(problem.promises, whole_table)
        lattice = Lattice(
            matrix, bound, problem.method_parameters.get("metric", "loss"), matrix.records
        )
        if cut.suppressed.any():
            explanation["suppressed"] = _suppressed(lattice, cut, whole_table, problem)
        for j, name in enumerate(matrix.names):
            if 0 < cut.levels[j] == lattice.high[j]:
                lower = _raised(lattice, cut.levels, j, cut.levels[j] - 1)
                broken = _broken(lattice, lower, whole_table, problem)
                explanation["generalized"].append({"attribute": name, "promises": broken})
        explanation["looser"] = _looser(lattice, cut)
        explanation |= neighbourhood(matrix, bound, cut.levels, problem)
    explanation["cheaper"] = [
        {**easier._asdict(), "setting": setting, "now": now._asdict()}
        for setting, easier, now in _changed(matrix, whole_table, cut, problem)
        if easier.is_cheaper_than(now)
    ]
    return explanation


def _suppressed(lattice: Lattice, cut: Cut, whole_table: Classes, problem: Problem) -> Json:
    """Which promises the suppressed records would break, and which columns set them apart."""
    assert cut.levels is not None
    records = int(cut.suppressed.sum())
    columns = []
    for j, name in enumerate(lattice.matrix.names):
        raised = [
            _raised(lattice, cut.levels, j, to) for to in (cut.levels[j] + 1, lattice.high[j])
        ]
        saved = [max(records - int(lattice.suppressed(node).sum()), 0) for node in raised]
        columns.append({"attribute": name, "one_level_higher": saved[0], "left_out": saved[1]})
    return {
        "records": records,
        "promises": _broken(lattice, cut.levels, whole_table, problem),
        "columns": columns,
    }


def _raised(lattice: Lattice, levels: Node, j: int, to: int) -> Node:
    return (*levels[:j], min(to, lattice.high[j]), *levels[j + 1 :])


def _broken(lattice: Lattice, node: Node, whole_table: Classes, problem: Problem) -> dict[str, int]:
    """Records in classes that break each promise at a node where nothing is suppressed."""
    classes, _ = lattice.rolled_up(lattice.bottom, node)
    labels, count = lattice.labels(node)
    broken = {}
    for model in problem.promises:
        bound = BoundPromises([model], whole_table)
        holds = bound.holds(labels, count, lattice.cells(node), lattice.population(classes, node))
        if not bound.release_holds(labels, count):
            holds[:] = False
        title = model.model + (f" of {', '.join(model.attributes)}" if model.attributes else "")
        broken[title] = int((~holds[labels]).sum())
    return broken


def _looser(lattice: Lattice, cut: Cut) -> list[Json]:
    """The node above along each attribute: what it suppresses and scores."""
    assert cut.levels is not None
    steps = []
    for j, name in enumerate(lattice.matrix.names):
        node = _raised(lattice, cut.levels, j, cut.levels[j] + 1)
        if node != cut.levels:
            judged = lattice.judge(lattice.rolled_up(lattice.bottom, node)[0], node)
            score = lattice.reported(judged.score)
            steps.append({"attribute": name, "suppressed": judged.suppressed, "score": score})
    return steps


def neighbourhood(matrix: Matrix, bound: BoundPromises, levels: Node, problem: Problem) -> Json:
    """The chosen levels, and each a step coarser or finer along one attribute.

    breaking: records in classes that break a promise, which a release would suppress. is_safe:
    whether it may suppress that number. loss: with these records suppressed, whatever the metric.
    """
    lattice = Lattice(matrix, bound, "loss", matrix.records)
    share = problem.method_parameters.get("suppression", 0)
    most = min(bound.k, matrix.total - bound.k)  # datafly's own limit, where none is set
    if share is not None:
        most = int(Fraction(str(share)) * matrix.total)

    def measured(node: Node) -> Json:
        judged = lattice.judge(lattice.rolled_up(lattice.bottom, node)[0], node)
        return {
            "levels": dict(zip(matrix.names, map(int, node), strict=True)),
            "breaking": judged.suppressed,
            "is_safe": bool(judged.holds and judged.suppressed <= most),
            "loss": min(judged.score, 1.0),
        }

    neighbours = [
        {"attribute": name, "step": step} | measured((*levels[:j], to, *levels[j + 1 :]))
        for j, name in enumerate(matrix.names)
        for step in (1, -1)
        if 0 <= (to := levels[j] + step) <= lattice.high[j]
    ]
    return {"node": measured(levels), "neighbours": neighbours}


class CutScore(NamedTuple):
    """How many records a cut suppresses, and its score; None where no score compares."""

    suppressed: int
    score: float | None

    @classmethod
    def of(cls, cut: Cut) -> "CutScore":
        return cls(int((cut.round_of_record() < 0).sum()), cut.search_statistics.get("score"))

    def is_cheaper_than(self, other: "CutScore") -> bool:
        """Whether less is suppressed, or as much at a lower score."""
        has_less = self.suppressed < other.suppressed
        if self.score is None or other.score is None:
            return has_less
        return has_less or self.score < other.score


def _changed(
    matrix: Matrix, whole_table: Classes, cut: Cut, problem: Problem
) -> Iterator[tuple[str, CutScore, CutScore]]:
    """What comes of asking one less, and of leaving one quasi-identifier out.

    Each beside what is now.
    """
    for setting, changed in problem.policy.eased():
        easier = _tried(matrix, whole_table, problem.again(changed))
        if easier is not None:
            yield setting, CutScore.of(easier), CutScore.of(cut)
    for j, name in enumerate(matrix.names):
        fewer = problem.policy.without_quasi(name) if len(matrix.names) > 1 else None
        if fewer is None:
            continue
        narrowed = _narrowed(matrix, j)
        easier = _tried(narrowed, whole_table, problem.again(fewer))
        if easier is not None:
            now = _now_without(narrowed, whole_table, cut, problem.again(fewer), j)
            yield f"without '{name}'", CutScore.of(easier), now


def _now_without(
    narrowed: Matrix, whole_table: Classes, cut: Cut, problem: Problem, left_out: int
) -> CutScore:
    """The present levels judged on the columns that stay, for only these scores compare."""
    if cut.levels is None:
        return CutScore.of(cut)._replace(score=None)
    bound = BoundPromises(problem.promises, whole_table)
    lattice = Lattice(
        narrowed, bound, problem.method_parameters.get("metric", "loss"), narrowed.records
    )
    node = (*cut.levels[:left_out], *cut.levels[left_out + 1 :])
    judged = lattice.judge(lattice.rolled_up(lattice.bottom, node)[0], node)
    return CutScore(judged.suppressed, judged.score)


def _tried(matrix: Matrix, whole_table: Classes, problem: Problem) -> Cut | None:
    try:
        cut = find_classes(matrix, whole_table, problem)[0]
    except (InfeasibleError, InputError):
        return None
    assert isinstance(cut, Cut)
    return cut


def _narrowed(matrix: Matrix, left_out: int) -> Matrix:
    """The matrix without one attribute; nodes of its tree stay and are not used."""
    kept = np.arange(matrix.attributes) != left_out
    return replace(
        matrix,
        codes=np.ascontiguousarray(matrix.codes[:, kept]),
        scale=matrix.scale[kept],
        base=matrix.base[kept],
        heights=matrix.heights[kept],
        reach=matrix.reach[kept],
        missing=matrix.missing[kept],
        names=tuple(name for name, stays in zip(matrix.names, kept, strict=True) if stays),
        populations={name: codes[:, kept] for name, codes in matrix.populations.items()},
    )
