"""Ends of intervals, moved outward to round numbers: what is published is nobody's own value."""

from __future__ import annotations

from decimal import Context, Decimal, localcontext

from shoal.data.numbers import EXACT_DIGITS, plain_text
from shoal.data.schema import Attribute, Render

_EXACT = Context(prec=EXACT_DIGITS)


def interval_text(lo: str, hi: str, attribute: Attribute, render: Render) -> str:
    """The two ends as an interval; one value, if both are the same text."""
    head, middle, tail = render.parts
    if attribute.round is not None:
        lo, hi = rounded_ends(lo, hi, attribute)
    return lo if lo == hi else f"{head}{lo}{middle}{hi}{tail}"


def rounded_ends(lo: str, hi: str, attribute: Attribute) -> tuple[str, str]:
    """The nearest multiples of `round` outside the two ends, or the ends of the domain.

    A value that is a multiple itself stays as it is written.
    """
    assert attribute.round is not None
    assert attribute.domain is not None
    step = Decimal(str(attribute.round))
    least, greatest = (Decimal(str(end)) for end in attribute.domain)
    low, high = Decimal(lo.strip()), Decimal(hi.strip())
    with localcontext(_EXACT):
        below, above = _multiple_below(low, step), -_multiple_below(-high, step)
        if low == high == below:
            return lo, lo
        return plain_text(max(below, least)), plain_text(min(above, greatest))


def is_rounded(lo: float, hi: float, attribute: Attribute) -> bool:
    """Whether the ends of a published interval are multiples of `round` or ends of the domain."""
    assert attribute.round is not None
    assert attribute.domain is not None
    step = Decimal(str(attribute.round))
    least, greatest = attribute.domain
    return all(
        end == outermost or not Decimal(str(end)) % step
        for end, outermost in ((lo, least), (hi, greatest))
    )


def _multiple_below(number: Decimal, step: Decimal) -> Decimal:
    multiple = number // step * step  # rounded towards 0
    return multiple - step if multiple > number else multiple
