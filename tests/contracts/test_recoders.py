"""The same battery for every method of global recoding from the registry, plug-ins included."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_partitioners import check_release, variants

import shoal
from shoal.policy import registry
from shoal.privacy.k_anonymity import KAnonymity
from shoal.privacy.l_diversity import LDiversity
from shoal.privacy.t_closeness import TCloseness
from shoal.protocols import AnonymityRequirement
from shoal.reports.text import explanation_sentences
from shoal.testing import OnlyK, check_recoder, promises_on, small_matrices
from strategies import policies_with_tables, without_means
from thorough import comparators_long, examples, in_turn, long_where

METHODS = [m for m in registry.methods().values() if m.verb == "publish" and m.recodes_globally]
VARIANTS = [variant for method in METHODS for variant in variants(method)]
DEFAULTS = [method.implementation() for method in METHODS]


@pytest.mark.parametrize("variant", long_where(lambda v: v not in DEFAULTS, VARIANTS), ids=str)
def test_battery(variant):
    """By default with every k; a choice of a parameter with one k for each table, in turn."""
    for number, matrix in enumerate(small_matrices()):
        names = tuple(f"a{j}" for j in range(matrix.attributes))
        matrix = replace(matrix, names=names, label=matrix.codes[:, 0] % 3)
        ks = (2, 3, 10)
        for k in ks if variant in DEFAULTS else in_turn(number + number // 3, ks):
            check_recoder(variant, matrix, OnlyK(matrix, k))
        if matrix.records > 5:
            for more in (LDiversity("ill", 2), TCloseness(("income",), 0.4)):
                check_recoder(variant, matrix, promises_on(matrix, KAnonymity(2), more))
        if matrix.attributes > 1:
            check_recoder(
                variant,
                matrix,
                OnlyK(
                    matrix, 0, (AnonymityRequirement(("a0",), 2), AnonymityRequirement(("a1",), 3))
                ),
            )


@pytest.mark.parametrize("method", comparators_long(METHODS), ids=lambda m: m.name)
@settings(max_examples=examples(20, 40), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_published_table_keeps_every_promise_and_covers_the_truth(method, data):
    content, frame = data.draw(policies_with_tables())
    content = without_means(content)
    settings = {"name": method.name}
    if any(p.name == "suppression" for p in method.parameters):
        settings["suppression"] = data.draw(st.sampled_from([0.0, 0.3, 1.0]))
    policy = shoal.Policy.from_dict(content | {"method": settings, "label": "ill"})
    check_release(frame, policy)


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.name)
def test_a_plan_repeats_the_release_and_an_explanation_can_be_told(
    method, sample_table, sample_policy, tmp_path
):
    policy = sample_policy | {"method": {"name": method.name}, "label": "disease"}
    chosen = shoal.publish(sample_table, policy, plan=tmp_path / "plan.json", explain=True)
    again = shoal.publish(sample_table, policy, plan=tmp_path / "plan.json")
    assert again.data.equals(chosen.data)
    assert list(explanation_sentences(chosen.certificate["explanation"]))
