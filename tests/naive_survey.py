"""The risks of a sample, plainly: sums as the paper has them, and people one by one."""

from collections import defaultdict
from decimal import Decimal, localcontext
from math import comb, prod


def exact_risk(people: int, p: float) -> Decimal:
    """p / f times the sum of n! / ((f + 1) .. (f + n)) q**n for many people, else q I(f + 1) =
    1 / f - p I(f) from I(1) = ln(1 / p) / q; in 80 digits."""
    with localcontext() as context:
        context.prec = 80
        share = Decimal(p)
        rest = 1 - share
        if people > 60 or share > Decimal("0.5"):
            term = total = Decimal(1)
            number = 0
            while term > Decimal(10) ** -40 * total:
                number += 1
                term *= number * rest / (people + number)
                total += term
            return share / people * total
        integral = -share.ln() / rest
        for number in range(1, people):
            integral = (1 / Decimal(number) - share * integral) / rest
        return share * integral


def summed_risk(people: int, p: float) -> float:
    """The mean of 1 / h over the negative binomial number h of those who fit."""
    total, h, q = 0.0, people, 1 - p
    while h < people + 40 * people / p:
        total += comb(h - 1, people - 1) * p**people * q ** (h - people) / h
        h += 1
    return total


def risks(keys, weights, households=None):
    """Own risk and, with households, the risk that everybody carries; a row a person."""
    members = defaultdict(list)
    for row, key in enumerate(keys):
        members[key].append(row)
    own = [0.0] * len(keys)
    for rows in members.values():
        weight = sum(weights[row] for row in rows)
        for row in rows:
            own[row] = float(exact_risk(len(rows), len(rows) / weight))
    if households is None:
        return own, own
    living = defaultdict(list)
    for row, home in enumerate(households):
        living[home].append(own[row])
    return own, [1 - prod(1 - r for r in living[home]) for home in households]
