"""Datafly and Incognito: what their papers say, and Incognito as optimal as trying every node."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import naive_lattice
import shoal
from sample_policies import content_of
from shoal.errors import InfeasibleError
from shoal.privacy.k_anonymity import KAnonymity
from shoal.privacy.l_diversity import LDiversity
from shoal.search.lattice_costs import METRICS
from shoal_papers.baselines.datafly import Datafly
from shoal_papers.baselines.incognito import Incognito
from unit.tables.test_full_domain import SHARES, bound, tables


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
