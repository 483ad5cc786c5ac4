"""The clustering methods, asked for t-closeness: their promises, odd tables, and Census."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import naive_clustering
import shoal
from clustering_cases import TREE, Case, cases, classes_of
from sample_policies import content_of
from shoal.data.classes import SensitiveColumn
from shoal.data.partition import Matrix, Partition
from shoal.errors import InfeasibleError
from shoal.search.clustering import blocks_of, points_of, principal
from shoal.search.segments import loss_of, repair
from shoal.tables.methods.lattice_peeling import LatticePeeling
from shoal.tables.methods.mdav import Mdav
from shoal.tables.methods.rounded_partition import RoundedPartition
from shoal.tables.methods.tcloseness import TClosenessByExchange
from shoal.tables.methods.tcloseness_kmeanspp import TClosenessKMeansPP, squared_error
from shoal.testing import OnlyK
from shoal_papers.baselines.tcloseness_fcm import TClosenessFcm
from shoal_papers.baselines.tcloseness_k_first import TClosenessKFirst
from shoal_papers.baselines.tcloseness_merge import TClosenessMerge
from shoal_papers.baselines.tcloseness_t_first import TClosenessTFirst

METHODS = [
    TClosenessMerge(),
    TClosenessKFirst(),
    TClosenessTFirst(),
    TClosenessKMeansPP(),
    TClosenessKMeansPP(leftovers="spread"),
    TClosenessKMeansPP(leftovers="spread", scale="raw"),
    TClosenessFcm(),
    TClosenessByExchange(),
    TClosenessByExchange(scale="range"),
    TClosenessByExchange(aim="spans"),
]
every_method = pytest.mark.parametrize("method", METHODS, ids=str)


def run(method, case: Case, k: int, seed: int = 0):
    return method.partition(case.matrix, case.promises(k), np.random.default_rng(seed))


def case_of(values: list[list[int]], t: float, points: np.ndarray | None = None) -> Case:
    columns = []
    for s, column in enumerate(values):
        distinct, codes = np.unique(column, return_inverse=True)
        named = (f"s{s}", codes.astype(np.int32), len(distinct), "ordered")
        columns.append(SensitiveColumn(*named, numbers=distinct.astype(float)))
    places = np.arange(len(values[0]))
    points = np.stack([places * 7 % 9, places % 8]) if points is None else points
    return Case(points.astype(float), tuple(columns), tuple(t for _ in columns))


@every_method
@given(cases(least=4, attributes=3), st.integers(2, 4))
@settings(max_examples=60)
def test_every_class_has_k_people_and_is_close_enough_without_repair(method, case, k):
    partition, promises = run(method, case, k), case.promises(k)
    classes = classes_of(partition.labels)
    assert sorted(r for members in classes for r in members) == list(range(case.records))
    assert min(map(len, classes)) >= k
    assert all(naive_clustering.excess(case.asked, members) <= 1e-9 for members in classes)
    assert promises.holds(partition.labels, partition.count).all()


@every_method
@given(cases(least=6), st.integers(2, 3), st.data())
@settings(max_examples=40)
def test_people_with_several_records_are_hidden_among_k_after_the_repair(method, case, k, data):
    people = st.lists(st.integers(0, case.records), min_size=case.records, max_size=case.records)
    subjects = np.unique(data.draw(people), return_inverse=True)[1].astype(np.int32)
    assume(subjects.max() + 1 >= k)
    matrix, promises = replace(case.matrix, subjects=subjects), case.promises(k, subjects)
    found = method.partition(matrix, promises, np.random.default_rng(0))
    partition = repair(matrix, found, promises)
    assert promises.holds(partition.labels, partition.count).all()


@every_method
@pytest.mark.parametrize(
    ("case", "k", "least", "most"),
    [
        (case_of([list(range(60))], 1.0), 5, 11, 12),
        (case_of([[3] * 60, [4] * 60], 0.0), 5, 11, 12),
        (case_of([list(range(31))], 0.0), 4, 1, 1),
        *((case_of([list(range(n))], 0.3), 5, 1, 1) for n in (5, 7, 9)),
    ],
    ids=[
        "t of 1 asks nothing beyond k",
        "a constant attribute is always close",
        "t of 0 where no part is a replica",
        *(f"{n} records are too few for two" for n in (5, 7, 9)),
    ],
)
def test_how_many_classes_there_are(method, case, k, least, most):
    sizes = run(method, case, k).sizes()
    assert least <= len(sizes) <= most
    assert sizes.min() == k or most == 1
    assert len(sizes) == most or getattr(method, "leftovers", "") == "spread" or not case.limits[0]


def test_t_of_0_finds_replicas_where_exchange_can_reach_them():
    assert run(TClosenessByExchange(), case_of([[0, 1] * 20], 0.0), 2).count > 1


@every_method
def test_fewer_people_than_k_are_infeasible(method):
    with pytest.raises(InfeasibleError):
        run(method, case_of([list(range(4))], 0.3), 5)


MANY = np.random.default_rng(3)


@every_method
@pytest.mark.parametrize(
    ("case", "k", "block"),
    [
        (case_of([[0, 1, 2, 3] * 15], 0.3, np.zeros((2, 60))), 4, None),
        (case_of([MANY.integers(0, most, 400).tolist() for most in (500, 5)], 0.15), 5, 80),
    ],
    ids=["ties everywhere", "blocks"],
)
def test_classes_keep_every_promise_and_the_same_seed_gives_the_same(method, case, k, block):
    method = replace(method, block=block) if block else method
    partition, again = (run(method, case, k, seed=1) for _ in range(2))
    assert partition.sizes().min() >= k
    assert case.promises(k).holds(partition.labels, partition.count).all()
    assert partition.labels.tolist() == again.labels.tolist()


def test_promises_tell_what_t_closeness_asks_of_each_attribute():
    case = case_of([[2, 2, 5, 9], [1, 1, 1, 7]], 0.25)
    asked = case.promises(2).closeness
    assert [(a.column.name, a.t, a.frequencies.tolist()) for a in asked] == [
        ("s0", 0.25, [2, 1, 1]),
        ("s1", 0.25, [3, 1]),
    ]
    assert case_of([[1, 2, 3]], 0.5).promises(2).k == 2


def test_the_best_of_fifty_runs_is_at_least_as_good_as_one():
    rng = np.random.default_rng(2)
    case = case_of([rng.integers(0, 99, 120).tolist()], 0.1)
    points = points_of(case.matrix, "deviation")
    once, best = (run(TClosenessKMeansPP(preset=preset), case, 5) for preset in ("once", "paper"))
    assert squared_error(points, best) <= squared_error(points, once)


@given(cases(least=40, most=60), st.integers(1, 4))
@settings(max_examples=30)
def test_blocks_part_the_table_and_stay_within_half_of_t_or_are_dealt(case, k):
    blocks = blocks_of(case.points, case.targets, 8 * k, k)
    assert sorted(np.concatenate(blocks).tolist()) == list(range(case.records))
    assert sum(len(rows) % k > 0 for rows in blocks) <= 1
    assert max(map(len, blocks)) <= 8 * k


def test_without_t_closeness_exchange_improves_mdav():
    rng = np.random.default_rng(4)
    matrix = Matrix.from_columns(rng.integers(0, 1000, (300, 3)), [999.0] * 3)
    points = points_of(matrix, "deviation")
    ours, theirs = (
        m.partition(matrix, OnlyK(matrix, 4), rng) for m in (TClosenessByExchange(), Mdav())
    )
    assert ours.sizes().tolist() == theirs.sizes().tolist()
    assert squared_error(points, ours) < squared_error(points, theirs)


def test_aimed_at_spans_it_loses_less_over_many_tables_than_cutting_or_exchanging_alone():
    """On a single one it may lose more: no cut is tried where t is tight, and exchanges are few."""
    methods = [TClosenessByExchange(aim="spans"), TClosenessByExchange(), RoundedPartition()]
    losses = np.zeros(3)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        values, t = rng.integers(0, 9, 40).tolist(), (0.2, 0.3, 0.5, 1.0)[seed % 4]
        case = case_of([values], t, rng.integers(0, 9, (2, 40)))
        promises = case.promises(3)
        found = [repair(case.matrix, run(method, case, 3), promises) for method in methods]
        losses += [loss_of(case.matrix, partition) for partition in found]
    assert losses[0] < losses[1:].min()


def test_a_table_is_cut_too_where_most_records_hold_as_they_are_alone(adult, monkeypatch):
    """Cutting a large table for t takes longer than all else, and loses more where t is tight."""
    cut = []
    partition = LatticePeeling.partition
    monkeypatch.setattr(
        LatticePeeling,
        "partition",
        lambda self, *asked: cut.append(len(cut)) or partition(self, *asked),
    )
    for t in (0.05, 0.3):
        close = {"model": "t-closeness", "attributes": ["occupation"], "t": t}
        policy = content_of({"sex": "quasi", "race": "quasi", "occupation": "sensitive"}, 10, close)
        shoal.publish(adult.head(6_000).select("sex", "race", "occupation"), policy)
        assert len(cut) == (t == 0.3)


def test_where_records_that_are_alike_hold_already_the_default_loses_nothing(adult):
    """Men and women hold t, but classes of k drawn among them do not."""
    close = {"model": "t-closeness", "attributes": ["occupation"], "t": 0.3}
    policy = content_of({"sex": "quasi", "occupation": "sensitive"}, 10, close)
    released = shoal.publish(adult.head(6_000).select("sex", "occupation"), policy)
    assert released.certificate["utility"]["gcp"] == 0


def test_a_loss_of_spans_is_that_of_boxes_and_lowest_nodes():
    matrix = Matrix.from_columns(np.array([[0, 0], [4, 1], [8, 2], [8, 4]]), [8.0, TREE])
    partition = Partition.of(np.array([0, 0, 1, 1]))
    widths = TREE.widths()[TREE.covering(np.array([0, 2]), np.array([1, 4]))]
    assert loss_of(matrix, partition) == pytest.approx(
        2 * (0.5 + widths[0]) + 2 * (0.0 + widths[1])
    )


def test_many_coordinates_that_hang_together_become_few():
    rng = np.random.default_rng(1)
    cause = rng.normal(size=(3, 500))
    points = rng.normal(size=(40, 3)) @ cause
    few = principal(points)
    assert len(few) <= 3
    apart = ((few[:, 1:] - few[:, :-1]) ** 2).sum() / ((points[:, 1:] - points[:, :-1]) ** 2).sum()
    assert 0.95 < apart <= 1.0 + 1e-9
    assert principal(points[:8]) is not None
    assert len(principal(points[:8])) == 8


@pytest.fixture(scope="module")
def census(data_folder) -> pl.DataFrame:
    return pl.read_csv(data_folder / "casc" / "census.csv")


def census_case(census: pl.DataFrame, t: float, *sensitive: str) -> Case:
    values = [census[name].to_list() for name in sensitive]
    return case_of(values, t, census.select("TAXINC", "POTHVAL").to_numpy().T)


@pytest.mark.long
@pytest.mark.parametrize(
    ("k", "t"), [(5, 0.1), (5, 0.3), (10, 0.05), (10, 0.2), (20, 0.15), (30, 0.25)]
)
def test_on_census_ours_has_smaller_classes_and_loses_less_than_either_paper(census, k, t):
    case = census_case(census, t, "FEDTAX", "FICA")
    points = points_of(case.matrix, "deviation")
    methods = [TClosenessByExchange(), TClosenessKMeansPP(preset="paper"), TClosenessKFirst()]
    ours, *papers = (run(method, case, k) for method in methods)
    assert case.promises(k).holds(ours.labels, ours.count).all()
    assert ours.count >= max(paper.count for paper in papers)
    assert squared_error(points, ours) < min(squared_error(points, paper) for paper in papers)


@pytest.mark.long
@pytest.mark.parametrize("sensitive", ["FEDTAX", "FICA"])
@pytest.mark.parametrize("t", [0.05, 0.15])
def test_on_census_with_one_sensitive_attribute_classes_are_no_larger_than_those_of_t_first(
    census, sensitive, t
):
    case = census_case(census, t, sensitive)
    assert run(TClosenessByExchange(), case, 5).count >= run(TClosenessTFirst(), case, 5).count


@pytest.mark.parametrize(("k", "percent"), [(3, 5.6922), (4, 7.4947), (5, 9.0884), (10, 14.1559)])
def test_mdav_loses_on_census_what_the_literature_says(census, k, percent):
    """Over all 13 columns, and the certificate of a release of means states it."""
    values = census.to_numpy()
    codes = values - values.min(axis=0)
    matrix = Matrix.from_columns(codes, [float(np.ptp(column)) for column in values.T])
    partition = Mdav().partition(matrix, OnlyK(matrix, k), np.random.default_rng(0))
    points = points_of(matrix, "deviation")
    assert round(100 * squared_error(points, partition) / float((points**2).sum()), 4) == percent
    sizes = np.sort(partition.sizes())
    assert partition.count == 1080 // k
    assert (sizes[:-1] == k).all()
    assert k <= sizes[-1] < 2 * k
    if k == 10:
        number = {"role": "quasi", "type": "number", "render": "mean"}
        content = content_of(dict.fromkeys(census.columns, number), k, method={"name": "mdav"})
        certificate = shoal.publish(census, content).certificate
        assert round(certificate["utility"]["information_loss_percent"], 4) == percent
        assert certificate["classes"]["count"] == partition.count
