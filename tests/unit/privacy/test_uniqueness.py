"""Promises about a release as a whole: class sizes, uniqueness in the sample and in the
population.
"""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import optimize, special

from shoal.data.classes import Classes
from shoal.privacy.class_sizes import (
    ESTIMATORS,
    AverageRisk,
    PopulationUniqueness,
    SampleUniqueness,
    pitman,
    snb,
    zayatz,
)


def classes_of(sizes):
    return Classes(np.repeat(np.arange(len(sizes)), sizes).astype(np.int32), len(sizes))


SIZES = st.lists(st.integers(1, 6), min_size=1, max_size=12)


def average_risk(sizes):
    """The mean over people of one by the size of their class."""
    return sum(Fraction(1, s) for s in sizes for _ in range(s)) / sum(sizes)


def share_alone(sizes):
    return Fraction(sizes.count(1), sum(sizes))


@pytest.mark.parametrize(
    ("model", "truth", "thresholds"),
    [
        (AverageRisk, average_risk, [0.1, 0.25, 0.5, 1.0]),
        (SampleUniqueness, share_alone, [0.0, 0.1, 0.25, 1.0]),
    ],
)
@given(sizes=SIZES, data=st.data())
def test_a_risk_of_the_release_is_that_of_a_count_over_all(model, truth, thresholds, sizes, data):
    promise, expected = model(data.draw(st.sampled_from(thresholds))), truth(sizes)
    assert promise.measure(classes_of(sizes)) == pytest.approx([float(expected)] * len(sizes))
    assert promise.holds(classes_of(sizes)).all() == (expected <= Fraction(str(promise.threshold)))


@pytest.mark.parametrize("threshold", [1.0, 0.5, 0.3, 0.15])
def test_enough_subjects_in_every_class_keep_a_low_risk_and_one_fewer_need_not(threshold):
    promise = AverageRisk(threshold)
    enough = promise.enough_subjects(False)
    assert promise.holds(classes_of([enough] * 3)).all()
    assert enough == 1 or not promise.holds(classes_of([enough - 1] * 3)).any()


@pytest.mark.parametrize(
    "promise_of",
    [SampleUniqueness, lambda threshold: PopulationUniqueness(threshold, 0.1, "snb")],
    ids=["sample", "population"],
)
def test_two_subjects_are_enough_where_nobody_may_be_alone(promise_of):
    assert [promise_of(t).enough_subjects(False) for t in (0.0, 0.9, 1.0)] == [2, 2, 1]


def test_the_average_risk_named_as_nearest_holds():
    everybody = classes_of([7])
    (finding,) = AverageRisk(0.1).nearest(everybody)
    named = float(finding.rsplit("= ", 1)[1])
    assert named == pytest.approx(1 / 7, abs=1e-6)
    assert AverageRisk(named).holds(everybody).all()


def test_a_single_subject_is_alone_whatever_is_asked():
    assert len(SampleUniqueness(0.5).nearest(classes_of([1]))) == 1


def test_an_estimate_of_exactly_the_threshold_holds():
    share = PopulationUniqueness(1.0, 0.5, "zayatz").measure(classes_of([1, 2, 2, 2]))[0]
    assert PopulationUniqueness(share, 0.5, "zayatz").holds(classes_of([1, 2, 2, 2])).all()
    below = math.nextafter(share, 0)
    assert not PopulationUniqueness(below, 0.5, "zayatz").holds(classes_of([1, 2, 2, 2])).any()


def test_merging_may_break_population_uniqueness_so_it_is_not_monotone():
    assert not PopulationUniqueness.monotone
    promise = PopulationUniqueness(0.2, 0.5, "zayatz")
    fine, merged = [1, 2, 2, 2], [1, 6]
    assert promise.measure(classes_of(merged))[0] > promise.measure(classes_of(fine))[0]


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
@example([1] * 500 + [2] * 300 + [5] * 380, 0.1)  # more ways to draw it than floats count
def test_zayatz_is_bayes_over_hypergeometric_draws(sizes, fraction):
    n, population = sum(sizes), round(sum(sizes) / fraction)

    def one_of(j):
        return Fraction(j * math.comb(population - j, n - 1), math.comb(population, n))

    weight = {j: count * one_of(j) for j, count in Counter(sizes).items()}
    total, found = sum(weight.values()), zayatz(*sample(sizes), fraction)
    if total:
        assert found == pytest.approx(float(Fraction(sizes.count(1), n) * weight[1] / total))
    else:
        assert math.isnan(found)


def log_likelihood(sizes, alpha, theta):
    """Pitman's sampling formula, written out."""
    seats = sum(np.log(theta + i * alpha) for i in range(1, len(sizes)))
    people = sum(np.log(theta + i) for i in range(1, sum(sizes)))
    return seats - people + sum(np.log(i - alpha) for s in sizes for i in range(1, s))


def expected_unique(sizes, fraction, alpha, theta):
    """The share of the population that is unique."""
    grown = (sum(sizes) / fraction) ** (alpha - 1)
    return special.gamma(theta + 1) / special.gamma(theta + alpha) * grown


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=4, max_size=20).filter(lambda s: 1 in s and max(s) > 1))
def test_pitman_takes_parameters_than_which_no_point_of_a_grid_is_likelier(sizes):
    found = pitman(*sample(sizes), 0.1)
    if math.isnan(found):
        return
    grid = np.meshgrid(np.linspace(0.01, 0.99, 50), np.geomspace(0.01, 100, 60))
    likelihood = log_likelihood(sizes, *grid)
    near = expected_unique(sizes, 0.1, *grid)[likelihood > likelihood.max() - 0.05]
    assert near.min() * 0.8 <= found <= near.max() * 1.25 + 1e-3


@pytest.mark.parametrize(
    "sizes",
    [
        [1, 1, 1, 1, 2, 2, 3, 5],
        [1] * 12 + [2] * 5 + [3, 3, 4, 9],
        [1] * 3 + [4] * 6 + [7, 11, 30],
        [1] * 6 + [2, 2, 2, 20],
        [1] * 40 + [2] * 9 + [3] * 4 + [25],
    ],
)
@pytest.mark.parametrize("fraction", [0.02, 0.5])
def test_pitman_equals_a_general_search_for_the_most_likely_parameters(sizes, fraction):
    def parameters(at):
        alpha = 1 / (1 + math.exp(-at[0]))
        return alpha, math.exp(at[1]) - alpha

    best = optimize.minimize(
        lambda at: -log_likelihood(sizes, *parameters(at)),
        [0.0, 1.0],
        method="Nelder-Mead",
        options={"xatol": 1e-9, "fatol": 1e-13, "maxiter": 4000},
    )
    found, (alpha, theta) = pitman(*sample(sizes), fraction), parameters(best.x)
    if alpha < 1e-3:  # the likelihood still rises at the edge of the domain
        assert math.isnan(found)
        return
    assert found == pytest.approx(expected_unique(sizes, fraction, alpha, theta), rel=1e-5)


@pytest.mark.parametrize(
    ("r", "p", "fraction"), [(1.0, 0.25, 0.5), (0.6, 0.1, 0.05), (2.5, 0.5, 0.2), (3.0, 0.7, 0.9)]
)
def test_snb_finds_the_model_whose_expected_sample_it_is_given(r, p, fraction):
    """Classes and uniques of the sample are summed over all sizes, not taken in closed form."""
    people = 10**9
    further = np.arange(1500)  # members beyond the first
    chance = np.exp(
        special.gammaln(further + r) - special.gammaln(r) - special.gammaln(further + 1)
    ) * (p**r * (1 - p) ** further)
    classes = people / (chance @ (1 + further))
    missed = 1 - fraction
    seen = round(classes * (chance @ (1 - missed ** (1 + further))))
    alone = round(classes * (chance @ ((1 + further) * fraction * missed**further)))
    others, rest = seen - alone, round(people * fraction) - alone
    size = rest // others
    sizes = np.array([1, size, size + 1])
    counts = np.array([alone, others - rest % others, rest % others])
    truth = classes * chance[0] / people
    assert snb(sizes, counts, fraction) == pytest.approx(truth, rel=1e-4)


@pytest.mark.parametrize("estimator", [zayatz, snb])
def test_of_a_whole_population_the_uniques_are_counted(estimator):
    assert estimator(*sample([1, 1, 1, 2, 5]), 1.0) == pytest.approx(3 / 10)


@pytest.mark.parametrize("sizes", [[4], [1], [1, 1, 1]])
def test_pitman_has_no_fit_for_one_class_or_for_everybody_alone(sizes):
    assert math.isnan(pitman(*sample(sizes), 0.1))


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
