"""How much of a population is alone in its class, estimated from a sample's classes.

Here: sizes that occur among the classes of the sample, ascending; counts, how many classes have
each; fraction, the sample's share of the population. n people and u classes in the sample, f_1
classes of one, N = n / fraction people in the population. Every estimator returns a share of N, NaN
where its model can't be fitted.
"""

from collections.abc import Callable
from math import exp, lgamma, log, nan

import numpy as np

from shoal.data.numbers import weighted_sum

STEPS = 200  # of a bisection; floats hold still long before


def zayatz(sizes: np.ndarray, counts: np.ndarray, fraction: float) -> float:
    """Share of the population that is unique; Zayatz 1991.

    Takes the sample's distribution of sizes for the population's. By Bayes, a sample unique is a
    population unique with P = g(1) h(1) / sum of g(j) h(j), where g(j) is the share of classes of
    size j and h(j) the (hypergeometric) chance that of j people exactly one is sampled.
    """
    n = int(sizes @ counts)
    population = max(round(n / fraction), n)
    weights = [g * _one_of(int(j), n, population) for j, g in zip(sizes, counts, strict=True)]
    return _share(counts[0] * weights[0] / sum(weights) / n) if sum(weights) > 0 else nan


def _one_of(size: int, n: int, population: int) -> float:
    """Chance that exactly one of `size` people is among n drawn from the population."""
    rest = population - size
    if rest < n - 1:
        return 0.0
    return size * exp(_log_choose(rest, n - 1) - _log_choose(population, n))


def _log_choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def pitman(sizes: np.ndarray, counts: np.ndarray, fraction: float) -> float:
    """Share of the population that is unique; Hoshino 2001.

    Journal of Official Statistics 17(4):499-520.

    Pitman's sampling formula with 0 <= alpha < 1 and theta > -alpha, fitted by maximum likelihood;
    expected uniques of the population Gamma(theta + 1) / Gamma(theta + alpha) * N**alpha. Meant for
    small fractions. No maximum inside the domain means that the model does not fit.
    """
    n, u = int(sizes @ counts), int(counts.sum())
    if u < 2 or u == n:
        return nan  # one class only, or everybody alone: the likelihood has no maximum

    def classes_sum(alpha: float, theta: float) -> float:
        """Sum of 1 / (theta + i alpha) over i = 1..u-1."""
        return (_digamma(u + theta / alpha) - _digamma(1 + theta / alpha)) / alpha

    def best_theta(alpha: float) -> float:
        """Where the derivative to theta is 0; it falls once, from above to below."""

        def slope(theta: float) -> float:
            return classes_sum(alpha, theta) - (_digamma(n + theta) - _digamma(1 + theta))

        low = 1e-9 if slope(1e-9) > 0 else -alpha * (1 - 1e-9)
        return _root(slope, low, 1e9 * n)

    def slope(alpha: float) -> float:
        """Derivative of the likelihood to alpha, at the best theta."""
        theta = best_theta(alpha)
        harmonic = np.concatenate(([0.0], np.cumsum(1 / (np.arange(1, int(sizes[-1])) - alpha))))
        return float(
            (u - 1 - theta * classes_sum(alpha, theta)) / alpha
            - weighted_sum(counts, harmonic[sizes - 1])
        )

    alpha = _root(slope, 1e-6, 1 - 1e-6)
    theta = best_theta(alpha)
    if np.isnan(alpha) or np.isnan(theta):
        return nan
    population = n / fraction
    return _share(exp(lgamma(theta + 1) - lgamma(theta + alpha) + (alpha - 1) * log(population)))


def _digamma(x: float) -> float:
    """Derivative of log gamma for x > 0: its recurrence up to 10, then the asymptotic series."""
    below = 0.0
    while x < 10:
        below += 1 / x
        x += 1
    inverse = 1 / (x * x)
    return log(x) - 0.5 / x - inverse * (1 / 12 - inverse * (1 / 120 - inverse / 252)) - below


def snb(sizes: np.ndarray, counts: np.ndarray, fraction: float) -> float:
    """Share of the population that is unique; slide negative binomial, Chen, McNulty 1998.

    Class sizes of the population are 1 + NB(r, p). Reading: r and p by moments, such that K = N /
    (1 + r q / p) classes of the population, sampled person by person, give the u classes and the
    f_1 uniques of the sample. Then K p**r people are unique.
    """
    n, u, alone = int(sizes @ counts), int(counts.sum()), int(counts[0])
    if fraction >= 1:
        return _share(alone / n)
    missed = 1 - fraction

    def classes_of(r: float, p: float) -> float:
        return n / fraction / (1 + r * (1 - p) / p)

    def seen(r: float, p: float) -> float:
        """Expected classes of the sample."""
        return classes_of(r, p) * (1 - missed * (p / (1 - (1 - p) * missed)) ** r)

    def fitting_r(p: float) -> float:
        return _root(lambda r: seen(r, p) - u, 1e-9, 1e9)

    def surplus(p: float) -> float:
        """Expected uniques of the sample, less those there are."""
        r, q = fitting_r(p), 1 - p
        none = p / (1 - q * missed)
        return float(
            classes_of(r, p) * fraction * (none**r * (1 + missed * r * q / (1 - q * missed)))
            - alone
        )

    grid = np.concatenate((np.geomspace(1e-6, 0.1, 40), np.linspace(0.1, 1 - 1e-6, 60)))
    found = [surplus(p) for p in grid]
    for left, right, low, high in zip(found, found[1:], grid, grid[1:], strict=False):
        if left * right <= 0:
            p = _root(surplus, float(low), float(high))
            r = fitting_r(p)
            return _share(classes_of(r, p) * p**r / (n / fraction))
    return nan


def _share(estimate: float) -> float:
    return nan if np.isnan(estimate) else float(min(max(estimate, 0.0), 1.0))


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where the function is 0 between two ends at which its signs differ, NaN where they don't."""
    left, right = function(low), function(high)
    if not left * right <= 0:
        return nan
    for _ in range(STEPS):
        middle = (low * high) ** 0.5 if low > 0 and high > 4 * low else (low + high) / 2
        if not low < middle < high:
            break
        value = function(middle)
        if (value <= 0) == (left <= 0):
            low = middle
        else:
            high = middle
    return (low + high) / 2


ESTIMATORS = {"pitman": pitman, "zayatz": zayatz, "snb": snb}
