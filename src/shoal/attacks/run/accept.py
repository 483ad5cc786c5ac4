"""What a policy accepts that attacks find, judged on the upper end of each interval."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from shoal.policy.consistency import MEASURES
from shoal.policy.policy import Policy

Found = Mapping[str, Any]

# the key of each measure of one number below its attack
SINGLE = {
    "ends_gain": "gain",
    "linkage": "success",
    "implied": "implied",
    "journalist": "journalist_max",
    "marketer": "marketer",
    "membership": "advantage",
}
WHOLE = ("alone",)  # one number stands for the greatest of all columns
BY_ATTRIBUTE = {
    "inference_gain": "gain",
    "certain": "certain",
    "lifted": "lifted",
    "homogeneous": "people",
}


Accepted: TypeAlias = Mapping[str, float | dict[str, float]]
"""The most of each measure that a policy accepts, of each attribute where it is by attribute."""


def attacks_for(policy: Policy) -> list[str]:
    """The attacks that the policy's thresholds, and its population, ask for."""
    names = [MEASURES[measure] for measure in policy.model.accept]
    names += ["population"] if policy.model.population is not None else []
    return list(dict.fromkeys(names))


def judged(accept: Accepted, found: Found) -> list[dict[str, Any]]:
    """Every threshold of the policy against what its attack found; one that could not be measured
    does not hold.
    """
    rows = []
    for measure, limit in accept.items():
        numbers = dict(_numbers(measure, found))
        named = (None,) if measure in WHOLE else numbers
        limits = limit if isinstance(limit, Mapping) else dict.fromkeys(named, limit)
        rows += [_row(measure, a, most, numbers.get(a)) for a, most in limits.items()]
    return rows


def unmeasured(accept: Accepted) -> list[dict[str, Any]]:
    """The thresholds where no attack could be tried; whether they hold stays open."""
    rows = []
    for measure, limit in accept.items():
        limits = limit if isinstance(limit, Mapping) else {None: limit}
        rows += [_row(measure, a, most, None) | {"holds": None} for a, most in limits.items()]
    return rows


def _row(measure: str, attribute: str | None, at_most: float, number: Any) -> dict[str, Any]:
    measured, upper = _ends(number)
    return {
        "measure": measure,
        "attribute": attribute,
        "at_most": at_most,
        "measured": measured,
        "upper": upper,
        "holds": upper is not None and upper <= at_most,
    }


def _ends(number: Any) -> tuple[float | None, float | None]:
    """The number, and the upper end of its interval where it has one."""
    if isinstance(number, Mapping):
        ends = number["ci"]
        return number["share"], number["share"] if ends is None else ends[1]
    return number, number


def _numbers(measure: str, found: Found) -> Iterator[tuple[str | None, Any]]:
    """What was measured, by attribute; None for one number of the whole release."""
    attack = found.get(MEASURES[measure]) or {}
    if measure in SINGLE:
        yield None, _at(attack, SINGLE[measure])
    elif measure == "alone":
        yield from _alone(attack.get("alone", {}))
    elif measure in ("alone_after", "certain_after"):
        yield from _after(measure.removesuffix("_after"), attack)
    elif measure == "excluded":
        replay = attack.get("replay") or {}
        yield from [(a, _at(row, "excluded")) for a, row in replay.items()] or [(None, None)]
    else:
        yield from [(a, _at(row, BY_ATTRIBUTE[measure])) for a, row in attack.items()]


def _alone(columns: Found) -> Iterator[tuple[str | None, Any]]:
    """Every column, and None for the greatest of them."""
    yield from columns.items()
    yield None, max(columns.values(), key=lambda found: found["share"] or 0.0, default=None)


def _after(measure: str, attack: Found) -> Iterator[tuple[str | None, Any]]:
    """What two releases give away together: by rows where these link, else by both classes."""
    joint = attack.get("linked") or {}
    if measure == "alone":
        yield None, joint.get("alone")
        return
    applies = attack.get(attack.get("applies") or "linked") or {}
    rows = applies.get("attributes", {})
    yield from [(a, row.get("certain")) for a, row in rows.items()] or [(None, None)]


def _at(found: Any, key: str) -> Any:
    return found.get(key) if isinstance(found, Mapping) else None
