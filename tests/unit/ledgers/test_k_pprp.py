"""k-PPRP: published boxes only grow, and newcomers join in company."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from republish_cases import append, policy, wearers
from shoal.attacks.run.attack import audit_ledger
from shoal.data.ledger_view import LedgerView
from shoal.data.partition import Matrix
from shoal.errors import PromiseError
from shoal.testing import OnlyK
from shoal_papers.baselines.k_pprp import KPprp
from shoal_papers.baselines.kernels import join_boxes


def plain_join(item_lo, item_hi, weight, lo, hi, sizes, grows, scale):
    """The kernel's rule in plain Python, for numbers."""
    lo, hi, sizes, chosen = lo.tolist(), hi.tolist(), sizes.tolist(), []

    def cost(low, high):
        return sum((h - l) * s for l, h, s in zip(low, high, scale, strict=True))

    for low, high, many in zip(item_lo.tolist(), item_hi.tolist(), weight.tolist(), strict=True):
        covering, added = [], []
        for b in range(len(lo)):
            both = (
                [min(a, c) for a, c in zip(lo[b], low, strict=True)],
                [max(a, c) for a, c in zip(hi[b], high, strict=True)],
            )
            if both == (lo[b], hi[b]):
                covering.append((cost(lo[b], hi[b]), b))
            added.append(((sizes[b] + many) * cost(*both) - sizes[b] * cost(lo[b], hi[b]), b))
        best = min(covering or added)[1]
        chosen.append(best)
        if grows:
            lo[best], hi[best] = list(map(min, lo[best], low)), list(map(max, hi[best], high))
            sizes[best] += many
    return chosen, lo, hi, sizes


@given(st.integers(0, 10_000), st.booleans())
def test_items_join_the_box_that_the_rule_names(seed, grows):
    rng = np.random.default_rng(seed)
    m, boxes, d = rng.integers(1, 8), rng.integers(1, 5), rng.integers(1, 4)
    item, box = (
        np.sort(rng.integers(0, 9, (2, n, d)), axis=0).astype(np.int32) for n in (m, boxes)
    )
    weight, sizes = rng.integers(1, 4, m), rng.integers(1, 9, boxes)
    scale = np.full(d, 0.125)  # sums are exact, so ties are
    wanted = plain_join(item[0], item[1], weight, box[0], box[1], sizes, grows, scale)
    lo, hi, grown = box[0].copy(), box[1].copy(), sizes.copy()
    costs = np.column_stack([scale, np.full(d, -1.0), np.zeros(d)])
    found = join_boxes.join_boxes(item[0], item[1], weight, lo, hi, grown, grows, costs)
    assert (found.tolist(), lo.tolist(), hi.tolist(), grown.tolist()) == wanted


@given(st.integers(0, 1000), st.integers(2, 4))
def test_a_class_takes_at_least_k_newcomers_or_none(seed, k):
    rng = np.random.default_rng(seed)
    matrix = Matrix.from_columns(rng.integers(0, 30, (rng.integers(k, 40), 2)), [29.0, 29.0])
    ends = np.sort(rng.integers(0, 30, (2, 5, 2)), axis=0).astype(np.int32)
    view = LedgerView(lo=ends[0], hi=ends[1], people=np.full(5, k))
    placed = KPprp().publish(matrix, view, OnlyK(matrix, k), rng)
    arrivals = np.bincount(placed.labels, minlength=5)
    assert ((arrivals == 0) | (arrivals >= k)).all()
    assert placed.count == 5


def test_every_published_box_covers_the_one_before(tmp_path):
    """In the files, every row comes again, with cells that cover the earlier ones."""
    ledger, asked = tmp_path / "L", policy("k-pprp")
    first = wearers(60, 1).with_columns(beat=pl.int_range(60))
    second = wearers(60, 2).with_columns(beat=pl.int_range(100, 160))
    for frame in (first, second):
        append(ledger, frame, asked)
    shown = (
        pl.read_csv(ledger / release / "data.csv", infer_schema=False).to_dicts()
        for release in ("0001", "0002")
    )
    before, after = ({row["beat"]: row for row in rows} for rows in shown)
    assert set(before) < set(after)
    for beat, row in before.items():
        for name in ("age", "height"):
            (low, high), (lower, higher) = ends(row[name]), ends(after[beat][name])
            assert lower <= low
            assert high <= higher
        assert after[beat]["sex"] in (row["sex"], "*")


def ends(cell: str) -> tuple[int, int]:
    low, _, high = cell.strip("[]").partition(", ")
    return int(low), int(high or low)


def test_newcomers_one_by_one_are_withheld_with_the_way_out(tmp_path):
    ledger, asked = tmp_path / "L", policy("k-pprp", arrivals="any")
    append(ledger, wearers(80, 1), asked)
    with pytest.raises(PromiseError, match="arrivals=together"):
        append(ledger, wearers(20, 2), asked)
    done = append(ledger, wearers(20, 2), policy("k-pprp"))
    assert done.certificate["history"]["holds"]


def test_it_follows_increments_of_another_method(tmp_path):
    ledger = tmp_path / "L"
    for seed in (1, 2):
        append(ledger, wearers(30, seed))
    done = append(ledger, wearers(30, 3), policy("k-pprp"))
    assert done.certificate["records"]["out"] == 90
    append(ledger, wearers(30, 4))
    assert audit_ledger(ledger).holds


def test_newcomers_wait_beside_a_class_and_published_rows_never_change(tmp_path):
    ledger, asked = tmp_path / "L", policy("k-pprp", arrivals="subclass")
    append(ledger, wearers(40, 1), asked)
    waited = published = 0
    for seed in range(2, 8):
        done = append(ledger, wearers(7, seed), asked)
        waited = max(waited, done.waiting)
        if done.release is not None:
            published += 1
            before, now = (
                pl.read_csv(ledger / f"{release:04d}" / "data.csv", infer_schema=False)
                for release in (done.release - 1, done.release)
            )
            assert before.join(now, on=before.columns, how="anti", nulls_equal=True).is_empty()
            assert done.certificate["faults"] == {"uncovered": 0, "changed": 0}
            assert now.height + done.waiting == 40 + 7 * (seed - 1)
    assert waited
    assert published > 1
    assert audit_ledger(ledger).holds


def test_at_least_k_at_one_class_become_a_class_of_their_own():
    lo, hi = np.array([[0], [50]], dtype=np.int32), np.array([[9], [59]], dtype=np.int32)
    view = LedgerView(lo=lo, hi=hi, people=np.full(2, 4))
    matrix = Matrix.from_columns(np.array([[1], [12], [70], [3], [45]]), [100.0])
    placed = KPprp(arrivals="subclass").publish(
        matrix, view, OnlyK(matrix, 3), np.random.default_rng(0)
    )
    assert placed.labels.tolist() == [2, 2, -1, 2, -1], "two wait at the second"
    assert placed.count == 3
