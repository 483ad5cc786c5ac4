"""Promises about a release as a whole: class sizes, uniqueness in the sample and in the
population.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.data.classes import Classes
from shoal.privacy import AverageRisk, PopulationUniqueness, SampleUniqueness
from shoal.privacy.uniqueness import ESTIMATORS, pitman, snb, zayatz


def classes_of(sizes):
    return Classes(np.repeat(np.arange(len(sizes)), sizes).astype(np.int32), len(sizes))


SIZES = st.lists(st.integers(1, 6), min_size=1, max_size=12)


@given(SIZES, st.sampled_from([0.1, 0.25, 0.5, 1.0]))
def test_average_risk_is_the_mean_over_people_of_one_by_their_class(sizes, threshold):
    truth = sum(Fraction(1, s) for s in sizes for _ in range(s)) / sum(sizes)
    promise = AverageRisk(threshold)
    assert promise.measure(classes_of(sizes)) == pytest.approx([float(truth)] * len(sizes))
    assert promise.holds(classes_of(sizes)).all() == (truth <= Fraction(str(threshold)))


@given(SIZES, st.sampled_from([0.0, 0.1, 0.25, 1.0]))
def test_sample_uniqueness_is_the_share_of_people_alone(sizes, threshold):
    truth = Fraction(sizes.count(1), sum(sizes))
    promise = SampleUniqueness(threshold)
    assert promise.measure(classes_of(sizes)) == pytest.approx([float(truth)] * len(sizes))
    assert promise.holds(classes_of(sizes)).all() == (truth <= Fraction(str(threshold)))


@pytest.mark.parametrize(
    "promise", [AverageRisk(0.3), SampleUniqueness(0.2)], ids=lambda p: p.model
)
@given(sizes=SIZES, data=st.data())
def test_merging_classes_never_breaks_what_is_declared_monotone(promise, sizes, data):
    assert promise.monotone
    if not promise.holds(classes_of(sizes)).all() or len(sizes) < 2:
        return
    i, j = data.draw(st.permutations(range(len(sizes))))[:2]
    merged = [s for at, s in enumerate(sizes) if at not in (i, j)] + [sizes[i] + sizes[j]]
    assert promise.holds(classes_of(merged)).all()


def test_merging_may_break_population_uniqueness_so_it_is_not_monotone():
    assert not PopulationUniqueness.monotone
    promise = PopulationUniqueness(0.2, 0.5, "zayatz")
    fine, merged = [1, 2, 2, 2], [1, 6]
    assert promise.measure(classes_of(merged))[0] > promise.measure(classes_of(fine))[0]


def test_people_with_several_records_count_once():
    labels = np.array([0, 0, 1], dtype=np.int32)
    classes = Classes(labels, 2, np.array([4, 4, 5], dtype=np.int32))
    assert SampleUniqueness(0.5).measure(classes).tolist() == [1.0, 1.0]
    assert AverageRisk(0.5).measure(classes).tolist() == [1.0, 1.0]


def test_no_class_has_no_figure_and_suppressed_records_are_none():
    suppressed = Classes(np.full(3, -1, dtype=np.int32), 0)
    assert AverageRisk(0.1).report(suppressed)["measured"] is None
    assert SampleUniqueness(0.1).report(suppressed)["holds"]


def sample(sizes):
    counts = Counter(sizes)
    return np.array(sorted(counts)), np.array([counts[s] for s in sorted(counts)])


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=8).filter(lambda s: 1 in s),
    st.sampled_from([0.2, 0.5, 1.0]),
)
def test_zayatz_is_bayes_over_hypergeometric_draws(sizes, fraction):
    n, population = sum(sizes), round(sum(sizes) / fraction)

    def one_of(j):
        return Fraction(j * math.comb(population - j, n - 1), math.comb(population, n))

    weight = {j: Fraction(count, len(sizes)) * one_of(j) for j, count in Counter(sizes).items()}
    truth = (
        Fraction(sizes.count(1), n) * weight[1] / sum(weight.values())
        if sum(weight.values())
        else None
    )
    found = zayatz(*sample(sizes), fraction)
    assert math.isnan(found) if truth is None else found == pytest.approx(float(truth))


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=4, max_size=20).filter(lambda s: 1 in s and max(s) > 1))
def test_pitman_takes_the_most_likely_parameters(sizes):
    """No point of a grid is likelier than the fit, written out from the sampling formula."""
    fraction, n, u = 0.1, sum(sizes), len(sizes)
    found = pitman(*sample(sizes), fraction)
    if math.isnan(found):
        return

    def likelihood(theta, alpha):
        rise = sum(math.log(theta + i * alpha) for i in range(1, u)) - sum(
            math.log(theta + i) for i in range(1, n)
        )
        return rise + sum(math.log(i - alpha) for s in sizes for i in range(1, s))

    def unique(theta, alpha):
        return math.gamma(theta + 1) / math.gamma(theta + alpha) * (n / fraction) ** (alpha - 1)

    grid = [
        (theta, alpha)
        for alpha in np.linspace(0.01, 0.99, 50)
        for theta in np.geomspace(0.01, 100, 60)
    ]
    likeliest = max(grid, key=lambda at: likelihood(*at))
    near = [unique(*at) for at in grid if likelihood(*at) > likelihood(*likeliest) - 0.05]
    assert min(near) * 0.8 <= found <= max(near) * 1.25 + 1e-3


@pytest.mark.parametrize("fraction", [0.05, 0.3])
def test_estimates_come_near_the_truth_on_populations_they_model(fraction):
    """A population of slide negative binomial sizes, and one drawn from Pitman's own formula;
    samples of both.
    """
    rng = np.random.default_rng(3)
    sizes = 1 + rng.negative_binomial(0.8, 0.2, 30_000)
    truth = (sizes == 1).sum() / sizes.sum()
    assert snb(*sampled(sizes, fraction, rng), fraction) == pytest.approx(truth, rel=0.25)
    seats = pitman_population(60_000, 50.0, 0.5, rng)
    truth = (seats == 1).sum() / seats.sum()
    assert pitman(*sampled(seats, fraction, rng), fraction) == pytest.approx(truth, rel=0.25)


def sampled(sizes, fraction, rng):
    found = rng.binomial(sizes, fraction)
    return np.unique(found[found > 0], return_counts=True)


def pitman_population(people, theta, alpha, rng):
    """Classes of the two-parameter Chinese restaurant process."""
    sizes, draws = [], rng.random(people)
    seated = np.empty(people, dtype=np.int64)
    for i in range(people):
        new = (theta + alpha * len(sizes)) / (theta + i)
        if draws[i] < new:
            seated[i] = len(sizes)
            sizes.append(1)
            continue
        # a seated person's class, then accepted by (size - alpha) / size
        while True:
            table = seated[rng.integers(i)]
            if rng.random() < (sizes[table] - alpha) / sizes[table]:
                break
        seated[i] = table
        sizes[table] += 1
    return np.array(sizes)


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_a_model_that_can_not_be_fitted_keeps_no_promise(name):
    everybody_alone = classes_of([1] * 5)
    promise = PopulationUniqueness(1.0, 0.1, name)
    if math.isnan(promise.measure(everybody_alone)[0]):
        assert not promise.holds(everybody_alone).any()
    assert PopulationUniqueness(0.0, 0.1, name).holds(classes_of([2, 3])).all()
