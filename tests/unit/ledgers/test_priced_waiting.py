"""Priced waiting: small increments wait while more records would make their classes narrower."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from republish_cases import append, grown, policy, wearers
from shoal.attacks.run.attack import audit_ledger
from shoal.data.ledger_view import LedgerView
from shoal.data.partition import Matrix, Partition
from shoal.ledgers.methods.waiting import is_due
from sticky_cases import policy as again

QUICK = {"waiting": "priced", "price": 0.0001, "deadline": 2}


def test_classes_that_share_people_go_together():
    """Else one of them would be published later as somebody who was published before."""
    codes, partition = np.array([[1], [1], [0], [90], [0], [90]]), Partition.of(np.arange(6) // 2)

    def due(subjects, waited=0):
        view = LedgerView(waited=np.array([waited, 0, 0, 0, 0, 0]), arrivals=10.0)
        matrix = Matrix.from_columns(codes, [100.0], subjects)
        return is_due(matrix, partition, view, 0.005, 6).tolist()

    assert due([0, 1, 2, 3, 4, 5]) == [True, False, False]
    assert due([0, 1, 1, 2, 3, 4]) == [False, False, False]
    assert due([0, 1, 1, 2, 2, 3], waited=9) == [True] * 3


@given(st.integers(0, 1 << 30), st.sampled_from([0.0, 0.02, 0.1]), st.integers(0, 9))
def test_a_class_is_published_if_waiting_saves_too_little_or_somebody_waited_to_the_deadline(
    seed, price, deadline
):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 20)), int(rng.integers(1, 4))
    codes, labels = rng.integers(0, 100, (n, d)), rng.integers(0, 3, n)
    waited, e = rng.integers(0, 9, n), float(rng.integers(1, 30))
    partition = Partition.of(labels.astype(np.int32))
    matrix = Matrix.from_columns(codes, [100.0] * d)
    found = is_due(matrix, partition, LedgerView(waited=waited, arrivals=e), price, deadline)
    for c in range(partition.count):
        own = [i for i in range(n) if partition.labels[i] == c]
        spans = [max(codes[own, j]) - min(codes[own, j]) for j in range(d)]
        loss = sum(spans) / 100 / d
        later = loss * ((n + e) / n) ** (-1 / d)
        assert found[c] == (loss - later <= price or max(waited[own]) >= deadline)


# A class loses c * (w / w0) ** (-1 / d) once w records wait; each increment of waiting has a price


def losses(loss, d, waiting, arrivals, horizon):
    """Of a class, after 0, 1, ... increments of waiting."""
    wait = waiting + arrivals * np.arange(horizon)
    return loss * (wait / waiting) ** (-1 / d)


def stopped(loss, d, waiting, arrivals, price, horizon):
    """After how many increments the rule publishes the class."""
    domain = 1e8
    for turn, lost in enumerate(losses(loss, d, waiting, arrivals, horizon).tolist()):
        codes = np.zeros((waiting + turn * arrivals, d), dtype=np.int64)
        codes[0] = round(lost * domain)
        matrix = Matrix.from_columns(codes, [domain] * d)
        view = LedgerView(waited=np.zeros(len(codes), dtype=np.int32), arrivals=float(arrivals))
        everybody = Partition(np.zeros(len(codes), dtype=np.int32), 1)
        if is_due(matrix, everybody, view, price, horizon)[0]:
            return turn
    return horizon


@given(
    loss=st.floats(0.05, 1),
    d=st.integers(1, 4),
    waiting=st.integers(2, 40),
    arrivals=st.integers(1, 40),
    price=st.floats(0.004, 0.2),
)
def test_one_look_ahead_stops_where_trying_all_times_to_stop_would(
    loss, d, waiting, arrivals, price
):
    """As what is gained falls while more wait: who sees all increments to come does no better."""
    horizon = 60
    lost = losses(loss, d, waiting, arrivals, horizon)
    assert (np.diff(np.diff(lost)) > -1e-12).all()
    costs = lost + price * np.arange(horizon)
    turn = stopped(loss, d, waiting, arrivals, price, horizon)
    assert turn < horizon
    assert costs[turn] <= costs.min() + 1e-6
    assert (costs[:turn] > costs[turn] - 1e-6).all()


def test_the_best_time_to_stop_is_not_always_the_first_or_the_second():
    costs = losses(0.8, 2, 10, 10, 60) + 0.01 * np.arange(60)
    assert stopped(0.8, 2, 10, 10, 0.01, 60) == int(costs.argmin()) > 5


# In a ledger


@pytest.mark.parametrize("asked", [policy(**QUICK), again(k=4, size=8, **QUICK)])
def test_records_wait_to_the_deadline_and_are_then_published(tmp_path, asked):
    ledger = tmp_path / "L"
    waiting = [append(ledger, wearers(9, seed), asked) for seed in (1, 2)]
    assert [(w.release, w.waiting) for w in waiting] == [(None, 9), (None, 18)]
    done = append(ledger, wearers(9, 3), asked)
    assert done.release == 1, "somebody waited through two"
    assert done.certificate["records"]["out"] + done.waiting == 27
    assert audit_ledger(ledger).holds


def test_fewer_than_k_at_the_deadline_are_left_out_and_counted(folder, shoal):
    ledger = folder / "L"
    asked = policy(**QUICK)
    append(ledger, wearers(2, 1), asked)
    append(ledger, wearers(1, 2), asked)
    done = append(ledger, wearers(0, 3).cast(pl.String), asked)
    assert done.waiting == 3, "an empty increment is none"
    asked.save("p.yaml")
    wearers(1, 2).with_columns(who=pl.lit("2-0"), age=pl.lit(30)).write_csv("c.csv")
    shown = shoal("republish", "c.csv", "-p", "p.yaml", "--ledger", "L", status=0)
    assert "2 records waited to the deadline and can't be published: left out" in shown.err
    assert "2 records wait for the next increment" in shown.err
    assert append(ledger, wearers(4, 5), asked).certificate["records"]["out"] == 6


def test_fewer_newcomers_than_a_group_are_one_at_the_deadline(tmp_path):
    ledger, asked = tmp_path / "L", again(k=4, size=8, **QUICK)
    for seed in (1, 2):
        assert append(ledger, wearers(2, seed), asked).release is None
    done = append(ledger, wearers(1, 3), asked)
    assert (done.certificate["records"]["out"], done.certificate["classes"]["count"]) == (5, 1)


@pytest.mark.parametrize("method", ["crp", "sticky"])
def test_a_price_of_one_is_as_at_once(tmp_path, method):
    free = {"waiting": "priced", "price": 1.0}
    for name, parameters in (("A", {}), ("B", free)):
        grown(tmp_path / name, 2, asked=policy(method, **parameters))
    for release in ("0001", "0002"):
        a, b = (tmp_path / name / release / "data.csv" for name in "AB")
        assert a.read_bytes() == b.read_bytes()


def test_promises_that_compare_with_all_hold_without_those_who_wait(tmp_path):
    close = {"model": "t-closeness", "attributes": ["activity"], "t": 0.5}
    asked = policy(**(QUICK | {"price": 0.02}))
    asked = asked.with_promises([*asked.model.promises, close])
    found = audit_ledger(grown(tmp_path / "L", 5, 25, asked))
    assert found.holds
    assert len(found.releases) > 1
