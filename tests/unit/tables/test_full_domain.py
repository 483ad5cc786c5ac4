"""Global recoding against every node of the lattice, tried one by one."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import naive_lattice
import shoal
from sample_policies import content_of
from shoal.data.classes import Classes, SensitiveColumn
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.partition import Matrix
from shoal.errors import InfeasibleError, InputError
from shoal.privacy.alpha_k_anonymity import AlphaKAnonymity
from shoal.privacy.beta_likeness import BetaLikeness
from shoal.privacy.class_sizes import AverageRisk, PopulationUniqueness, SampleUniqueness
from shoal.privacy.delta_disclosure import DeltaDisclosure
from shoal.privacy.k_anonymity import KAnonymity
from shoal.privacy.k_l_diversity import KLDiversity
from shoal.privacy.l_diversity import LDiversity
from shoal.privacy.p_sensitive_k_anonymity import PSensitiveKAnonymity
from shoal.privacy.population import DeltaPresence, KMap
from shoal.privacy.promises import BoundPromises
from shoal.privacy.t_closeness import TCloseness
from shoal.search.lattice import Lattice
from shoal.search.lattice_costs import METRICS
from shoal.tables.methods.full_domain import FullDomain
from shoal_papers.baselines.datafly import Datafly
from shoal_papers.baselines.incognito import Incognito

# inner nodes that look like leaves or are integers, a root that is not `*`, uneven trees written as
# padded rows
TREES = [
    [["a", "1", "Any"], ["b", "1", "Any"], ["c", "2", "Any"], ["d", "2", "Any"]],
    [["1", "2", "*"], ["3", "2", "*"], ["4", "5", "*"]],
    [
        ["x", "x", "g", "*"],
        ["y", "h", "g", "*"],
        ["z", "h", "g", "*"],
        ["w", "w", "w", "*"],
        ["v", "i", "w2", "*"],
    ],
    [["p", "*"], ["q", "*"], ["r", "*"]],
    [["one", "all"]],
]
OTHERS = [
    LDiversity("s", 2),
    LDiversity("s", 2, "entropy"),
    LDiversity("s", 2, "recursive", 2.0),
    TCloseness("s", 0.3),
    AlphaKAnonymity("s", 0.6, 2),
    PSensitiveKAnonymity("s", 2, 2),
    KLDiversity("s", 2, 2),
    BetaLikeness("s", 1.0),
    DeltaDisclosure("s", 0.9),
    TCloseness("s", 0.3, reference="input"),
    BetaLikeness("s", 1.0, reference="input"),
]


@st.composite
def tables(draw, most=24):
    """Columns with hierarchies, the matrix that the method sees, and a sensitive value each."""
    records = draw(st.integers(2, most))
    trees = draw(st.lists(st.sampled_from(TREES), min_size=1, max_size=3))
    columns = []
    for j, rows in enumerate(trees):
        weight = draw(st.sampled_from([1.0, 2.0, 0.5]))
        leaves = st.sampled_from([row[0] for row in rows])
        values = draw(st.lists(leaves, min_size=records, max_size=records))
        columns.append(naive_lattice.Column(f"q{j}", {row[0]: row for row in rows}, values, weight))
    hierarchies = [Hierarchy.from_paths(rows) for rows in trees]
    codes = [tree.leaf_codes(c.values) for tree, c in zip(hierarchies, columns, strict=True)]
    matrix = Matrix.from_columns(
        np.column_stack(codes),
        hierarchies,
        weights=[c.weight for c in columns],
        names=tuple(c.name for c in columns),
    )
    secret = draw(st.lists(st.integers(0, 2), min_size=records, max_size=records))
    secret = np.array(secret, dtype=np.int32)
    return columns, matrix, {"s": SensitiveColumn("s", secret, 3, labels=("u", "v", "w"))}


def bound(models, matrix, sensitive):
    return BoundPromises(
        models, Classes(np.zeros(matrix.records, np.int32), 1, matrix.subjects, sensitive)
    )


def found_and_best(method, models, columns, matrix, sensitive):
    """The score that the method says, and the least of all nodes; None where there is no node."""
    promises = bound(models, matrix, sensitive)
    asked = {"metric": method.metric, "share": method.suppression, "k": promises.k}
    asked |= {"subjects": matrix.subjects, "sensitive": sensitive}
    best = naive_lattice.optimum(columns, models, **asked)
    try:
        cut = method.cut(matrix, promises, np.random.default_rng(0))
    except InfeasibleError:
        return None, best
    node = tuple(cut.levels)
    gone = naive_lattice.suppressed(columns, node, models, **asked)
    if promises.about_release:  # of classes that cost the same any may go
        shown = naive_lattice.cells(columns, node)
        assert naive_lattice.of_release(columns, models, shown, cut.suppressed)
        gone = cut.suppressed
    found = cut.search_statistics
    assert np.array_equal(gone, cut.suppressed)
    assert found["suppressed"] == gone.sum()
    score = naive_lattice.score(columns, node, gone, method.metric, promises.k)
    assert found["score"] == pytest.approx(score, abs=1e-9)
    assert found["every_node"]
    is_a_choice = method.suppression and (promises.relative or promises.about_release)
    assert found["proven"] or is_a_choice
    assert found["bound"] <= found["score"]
    return found["score"], best


SHARES = st.sampled_from([0.0, 0.1, 0.3, 1.0])


OF_RELEASE = [
    AverageRisk(0.4),
    SampleUniqueness(0.1),
    SampleUniqueness(0.0),
    PopulationUniqueness(0.05, 0.1, "zayatz"),
    PopulationUniqueness(0.1, 0.5, "snb"),
    PopulationUniqueness(0.1, 0.1, "pitman"),
]


def k_alone(draw):
    return *draw(tables()), [KAnonymity(draw(st.integers(2, 4)))]


def any_other_promise(draw):
    others = [draw(st.sampled_from(OTHERS))]
    return *draw(tables(16)), others + [KAnonymity(2)] * draw(st.integers(0, 1))


def counts_over_some_attributes(draw):
    columns, matrix, sensitive = draw(tables())
    names, ks = [c.name for c in columns], (draw(st.integers(2, 3)), draw(st.integers(2, 4)))
    qids = tuple(names[:1]), tuple(names[-2:])
    return columns, matrix, sensitive, [*map(KAnonymity, ks, qids)]


def people_with_several_records(draw):
    columns, matrix, sensitive = draw(tables())
    people = draw(st.lists(st.integers(0, 6), min_size=matrix.records, max_size=matrix.records))
    numbered = np.unique(people, return_inverse=True)[1].astype(np.int32)
    return columns, replace(matrix, subjects=numbered), sensitive, [KAnonymity(2)]


def about_the_release(draw):
    others = [draw(st.sampled_from(OF_RELEASE))]
    return *draw(tables(16)), others + [KAnonymity(2)] * draw(st.integers(0, 1))


def against_a_population(draw):
    columns, matrix, sensitive = draw(tables(14))
    people = draw(st.integers(0, 20))
    for column in columns:
        leaves = st.sampled_from(sorted(column.rows))
        more = draw(st.lists(leaves, min_size=people, max_size=people))
        column.population = [*column.values, *more]
    codes = [Hierarchy.from_paths(c.rows.values()).leaf_codes(c.population) for c in columns]
    matrix = replace(matrix, populations={"people": np.column_stack(codes).astype(np.int32)})
    least = draw(st.sampled_from([0.0, 0.2]))
    models = [KMap(3, "people"), DeltaPresence(0.7, "people", least)]
    return columns, matrix, sensitive, [draw(st.sampled_from(models))]


@pytest.mark.parametrize(
    ("drawn", "metrics"),
    [
        (k_alone, METRICS),
        (any_other_promise, METRICS),
        (counts_over_some_attributes, METRICS),
        (people_with_several_records, ["loss", "discernibility"]),
        (about_the_release, [metric for metric in METRICS if metric != "loss-geometric"]),
        (against_a_population, METRICS),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
@settings(max_examples=150)
@given(share=SHARES, data=st.data())
def test_the_score_is_the_least_of_all_nodes(drawn, metrics, share, data):
    columns, matrix, sensitive, models = drawn(data.draw)
    assume(matrix.people >= bound(models, matrix, sensitive).k)
    method = FullDomain(data.draw(st.sampled_from(metrics)), share)
    found, best = found_and_best(method, models, columns, matrix, sensitive)
    assert (found is None) == (best is None)
    assert found is None or found == pytest.approx(best, abs=1e-9)


@settings(max_examples=60)
@given(
    tables(6),
    st.sampled_from(METRICS),
    st.sampled_from([0.4, 1.0]),
    st.sampled_from([*OF_RELEASE[:4], SampleUniqueness(0.4), *OTHERS[3::9], OTHERS[9]]),
)
def test_what_is_proven_is_the_least_whoever_is_suppressed(table, metric, share, other):
    """Every node with every set of suppressed classes, one by one."""
    columns, matrix, sensitive = table
    promises = bound([other], matrix, sensitive)
    assume(matrix.records >= promises.k)
    best = naive_lattice.optimum_of_all(columns, [other], metric, share, promises.k, sensitive)
    try:
        said = FullDomain(metric, share).cut(matrix, promises, None).search_statistics
    except InfeasibleError:
        return
    assert said["bound"] <= best + 1e-9 <= said["score"] + 2e-9
    if said["proven"]:
        assert said["score"] == pytest.approx(best, abs=1e-9)
    else:
        assert not (other.model == "sample-uniqueness" and metric != "loss-geometric")
        assert not other.compares_with_input


def lone_records(alone, paired):
    """A table whose first records are alone in their classes, the others two by two."""
    rows = [[f"{i}", "*"] for i in range(alone + paired)]
    codes = np.concatenate([np.arange(alone), np.repeat(np.arange(alone, alone + paired), 2)])
    return Matrix.from_columns(codes[:, None], [Hierarchy.from_paths(rows)], names=("q",))


@pytest.mark.parametrize(
    ("model", "gone", "proven"),
    [(SampleUniqueness(0.05), 16, True), (AverageRisk(0.55), 12, False)],
)
def test_as_few_lone_records_go_as_a_share_needs(model, gone, proven):
    """(20 - s) / (100 - s) <= 0.05 first holds for s = 16, (60 - s) / (100 - s) <= 0.55 for 12."""
    matrix = lone_records(20, 40)
    promises = bound([model], matrix, {})
    cut = FullDomain("loss", 1.0).cut(matrix, promises, None)
    assert cut.suppressed.sum() == gone
    assert cut.search_statistics["every_node"]
    assert cut.search_statistics["proven"] == proven
    assert cut.search_statistics["bound"] <= cut.search_statistics["score"]
    short = FullDomain("loss", (gone - 1) / 100).cut(matrix, promises, None)
    assert short.levels == (1,)  # one record less would not be enough


@settings(max_examples=100)
@given(tables(), st.data())
def test_every_node_bounds_those_below_and_above_it(table, data):
    """What closes nodes: floors rise, and what suppression adds at a node is added below it."""
    _columns, matrix, sensitive = table
    metric = data.draw(st.sampled_from(METRICS))
    lattice = Lattice(matrix, bound([KAnonymity(2)], matrix, sensitive), metric, matrix.records)
    coarse = tuple(data.draw(st.integers(0, int(h))) for h in matrix.heights)
    fine = tuple(data.draw(st.integers(0, level)) for level in coarse)
    below, _ = lattice.rolled_up(lattice.bottom, fine)
    above, _ = lattice.rolled_up(below, coarse)
    one, other = lattice.judge(below, fine), lattice.judge(above, coarse)
    assert np.array_equal(above.first, lattice.rolled_up(lattice.bottom, coarse)[0].first)
    assert one.floor <= other.floor + 1e-9
    assert one.suppressed >= other.suppressed
    assert lattice.floors()[fine] <= one.floor + 1e-9
    if metric != "average-class-size":
        assert one.score >= one.floor + other.penalty - 1e-9


@settings(max_examples=60)
@given(tables(), st.sampled_from(["bottom-up", "top-down"]), SHARES)
def test_step_by_step_searches_keep_the_promises_and_never_beat_the_optimum(table, search, share):
    _columns, matrix, sensitive = table
    promises = bound([KAnonymity(2)], matrix, sensitive)
    cut = FullDomain("loss", share, search=search).cut(matrix, promises, np.random.default_rng(0))
    best = FullDomain("loss", share).cut(matrix, promises, np.random.default_rng(0))
    assert not cut.search_statistics["proven"]
    assert cut.search_statistics["score"] >= best.search_statistics["score"] - 1e-9
    assert cut.suppressed.sum() <= share * matrix.records


@settings(max_examples=60)
@given(tables(), st.data())
def test_levels_stay_between_minimum_and_maximum(table, data):
    columns, matrix, sensitive = table
    low = [data.draw(st.integers(0, c.height)) for c in columns]
    high = [data.draw(st.integers(a, c.height)) for a, c in zip(low, columns, strict=True)]
    texts = [
        tuple(f"{c.name}:{level}" for c, level in zip(columns, ends, strict=True))
        for ends in (low, high)
    ]
    method = FullDomain("loss", 0.2, minimum=texts[0], maximum=texts[1])
    best = naive_lattice.optimum(columns, [KAnonymity(2)], "loss", 0.2, 2, low, high)
    promises = bound([KAnonymity(2)], matrix, sensitive)
    if best is None:
        with pytest.raises(InfeasibleError, match="maximum"):
            method.cut(matrix, promises, np.random.default_rng(0))
    else:
        cut = method.cut(matrix, promises, np.random.default_rng(0))
        assert cut.search_statistics["score"] == pytest.approx(best, abs=1e-9)


@settings(max_examples=60)
@given(tables(), st.integers(2, 3))
def test_further_rounds_only_save_records(table, k):
    _columns, matrix, sensitive = table
    assume(matrix.records >= k)
    promises = bound([KAnonymity(k)], matrix, sensitive)
    once = FullDomain("loss", 1.0).cut(matrix, promises, np.random.default_rng(0))
    often = FullDomain("loss", 1.0, rounds=5).cut(matrix, promises, np.random.default_rng(0))
    assert (often.round_of_record() >= 0).sum() >= (once.round_of_record() >= 0).sum()
    assert np.array_equal(often.round_of_record() == 0, once.round_of_record() == 0)


def wide(attributes, records=200):
    rng = np.random.default_rng(1)
    tree = Hierarchy.from_paths([[f"{i}", f"{i // 2}x", f"{i // 4}y", "*"] for i in range(8)])
    codes = rng.integers(0, 8, (records, attributes)) // rng.integers(1, 5, attributes)
    names = tuple(f"q{j}" for j in range(attributes))
    return Matrix.from_columns(codes, [tree] * attributes, names=names)


def test_a_lattice_too_large_to_search_is_climbed_and_descended_and_said_so():
    matrix = wide(24)
    promises = bound([KAnonymity(3)], matrix, {})
    cut = FullDomain("loss", 0.1).cut(matrix, promises, np.random.default_rng(0))
    assert cut.search_statistics["nodes"] == 4**24
    assert not cut.search_statistics["proven"]
    assert cut.suppressed.sum() <= 20
    with pytest.raises(InputError, match="too many for search 'optimal'"):
        FullDomain("loss", 0.1, search="optimal").cut(matrix, promises, None)


def test_a_spent_budget_ends_with_the_best_so_far_and_a_bound():
    matrix = wide(7)
    promises = bound([KAnonymity(3)], matrix, {})
    cut = FullDomain("loss", 1.0, budget=0.0).cut(matrix, promises, np.random.default_rng(0))
    full = FullDomain("loss", 1.0).cut(matrix, promises, np.random.default_rng(0))
    assert not cut.search_statistics["proven"]
    assert full.search_statistics["proven"]
    bounds = (cut.search_statistics["bound"], cut.search_statistics["score"])
    assert bounds[0] <= full.search_statistics["score"] <= bounds[1]


def test_progress_tells_how_many_nodes_are_left(monkeypatch):
    monkeypatch.setattr("shoal.tables.methods.full_domain.TOLD_EVERY", 0.0)
    said, matrix = [], wide(5)
    FullDomain("loss", 0.3).cut(matrix, bound([KAnonymity(3)], matrix, {}), None, said.append)
    assert said
    assert all("of 1,024 nodes left" in text for text in said)


def test_levels_that_no_attribute_has_are_refused_all_at_once():
    matrix, method = wide(2), FullDomain(minimum=("q0:9", "zip:1", "q1"))
    with pytest.raises(InputError) as wrong:
        method.cut(matrix, bound([KAnonymity(2)], matrix, {}), None)
    assert "asks level 9 of 'q0'" in str(wrong.value)
    assert len(wrong.value.findings) == 1  # what is wrong with the other two is said once


def test_rounds_are_refused_where_a_promise_looks_at_the_whole_table():
    matrix, secret = wide(2), {"s": SensitiveColumn("s", np.zeros(200, np.int32), 1)}
    with pytest.raises(InputError, match="rounds"):
        FullDomain(rounds=1).cut(matrix, bound([TCloseness("s", 0.2)], matrix, secret), None)


@pytest.mark.parametrize(
    "attributes", [3, 24], ids=["one key tells classes apart", "keys of more than 64 bits"]
)
def test_rolled_up_classes_are_the_distinct_rows_of_spans(attributes):
    """Whatever finer node they are made from, and numbered by their first record."""
    matrix = wide(attributes, 500)
    lattice = Lattice(matrix, bound([KAnonymity(2)], matrix, {}))
    rng = np.random.default_rng(2)
    for _ in range(20):
        coarse = rng.integers(0, 4, attributes)
        fine = tuple(int(rng.integers(0, level + 1)) for level in coarse)
        classes, class_of = lattice.rolled_up(
            lattice.rolled_up(lattice.bottom, fine)[0], tuple(coarse.tolist())
        )
        spans = np.column_stack([matrix.codes[:, j] >> level for j, level in enumerate(coarse)])
        _, first, sizes = np.unique(spans, axis=0, return_index=True, return_counts=True)
        order = np.argsort(first)
        assert classes.first.tolist() == first[order].tolist()
        assert classes.size.tolist() == sizes[order].tolist()
        assert class_of.max() + 1 == len(first)


# Incognito, as optimal as trying every node, and Datafly, as its paper says


@settings(max_examples=100)
@given(tables(), st.sampled_from(METRICS), SHARES, st.booleans())
def test_incognito_finds_the_least_score_of_all_nodes(table, metric, share, diverse):
    columns, matrix, sensitive = table
    models = [KAnonymity(2), LDiversity("s", 2)] if diverse else [KAnonymity(2)]
    best = naive_lattice.optimum(columns, models, metric, share, 2, sensitive=sensitive)
    try:
        cut = Incognito(metric, share).cut(matrix, bound(models, matrix, sensitive), None)
    except InfeasibleError:
        assert best is None
    else:
        assert cut.search_statistics["score"] == pytest.approx(best, abs=1e-9)


@settings(max_examples=100)
@given(tables(), st.integers(2, 4))
def test_datafly_raises_the_attribute_with_most_values_until_k_records_stand_out(table, k):
    columns, matrix, sensitive = table
    assume(matrix.records >= k)
    promises, models = bound([KAnonymity(k)], matrix, sensitive), [KAnonymity(k)]
    cut = Datafly().cut(matrix, promises, np.random.default_rng(0))
    node, limit = [0] * len(columns), min(k, matrix.records - k)

    def values_shown(j):
        return len({columns[j].cell(value, node[j]) for value in columns[j].values}), -j

    while naive_lattice.suppressed(columns, node, models).sum() > limit:
        node[max((j for j, c in enumerate(columns) if node[j] < c.height), key=values_shown)] += 1
    assert list(cut.levels) == node
    assert np.array_equal(cut.suppressed, naive_lattice.suppressed(columns, node, models))


@pytest.mark.long
def test_on_adult_the_search_and_incognito_agree(adult, data_folder):
    """Two ways through one lattice, one score: ARX's hierarchies, k = 5 and 1 % suppressed."""
    places = ["age", "workclass", "education", "marital-status", "occupation", "race", "sex"]
    frame, folder = adult.select(places), data_folder / "adult" / "hierarchies_arx"
    hierarchies = {name: {"role": "quasi", "hierarchy": f"{folder}/{name}.csv"} for name in places}
    content, shown = content_of(hierarchies, 5), []
    for name in ("full-domain", "incognito"):
        asked = content | {"method": {"name": name, "suppression": 0.01}}
        shown.append(shoal.publish(frame, asked).certificate["method"]["search_statistics"])
    assert shown[0]["score"] == pytest.approx(shown[1]["score"])
    assert shown[0]["judged"] < shown[1]["judged"]
