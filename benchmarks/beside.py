"""Two releases of Adult made apart, judged together, and the second published beside the first.

The quasi-identifiers were chosen after trying 13 sets of them.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from typing import Any

import adult
import numpy as np
import polars as pl
from measure import Asked, Figure, Result, load, settings

import shoal

TITLE = "Releases beside one another"
CLAIM = (
    "Two releases of Adult, A over 6 and B over 5 quasi-identifiers, k = 10, made apart: how many"
    " of the people in both are left among fewer than 10 when all of their classes are intersected,"
    " for who knows in which releases everybody is (`presence`) and for who knows one person only"
    " (`own`); and what it costs to publish B beside A. No target: it depends on the columns."
)
PEOPLE, K, WIDE, SEED = 20_000, 10, 30, 0
FIRST = ("age", "workclass", "education-num", "marital-status", "race", "native-country")
SECOND = ("age", "education", "relationship", "hours-per-week", "sex")
SENSITIVE, LEAST = "occupation", 3
DOMAINS = {"age": [17, 90], "education-num": [1, 16], "hours-per-week": [1, 99]}
CASES = (("all of A", True, K), ("half of A", False, K), ("half of A, A with k = 30", False, WIDE))
ATTACKERS = ("presence", "own")
COLUMNS, DRAWN = (*FIRST, "relationship", "hours-per-week", "sex"), 20


def measure(asked: Asked) -> Result:
    count = asked.rows or PEOPLE
    found = Result("beside", TITLE, CLAIM, settings(asked, k=K, seed=SEED, rows=count))
    for name, columns in (("A", FIRST), ("B", SECOND)):
        note = f"{name} over {', '.join(columns)}, by `rounded-partition` with `refine=none`"
        found.notes.append(note)
    found.notes.append("The quasi-identifiers were chosen after trying 13 sets of them.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", shoal.ReleaseWarning)
        for name, is_all, k in CASES:
            asked.say(f"beside: {name}")
            found.figures += _case(name, *people(count, is_all), k, asked.repeats)
        asked.say(f"beside: {DRAWN} random pairs of sets")
        found.figures += _drawn(people(count, True)[0])
    found.notes.append(load())
    return found


def policy(quasi: tuple[str, ...], k: int) -> dict[str, Any]:
    """k-anonymity over these; categories by frequency, as orders."""
    attributes: dict[str, Any] = {"person": {"role": "subject"}, SENSITIVE: {"role": "sensitive"}}
    for name in quasi:
        number = {"type": "number", "domain": DOMAINS.get(name)}
        category = {"type": "ordinal", "order": "frequency"}
        attributes[name] = {"role": "quasi", **(number if name in DOMAINS else category)}
    return {
        "version": 1,
        "other": "drop",
        "attributes": attributes,
        "promises": [{"model": "k-anonymity", "k": k}],
        "method": {"name": "rounded-partition", "refine": "none"},
    }


def people(count: int, is_all: bool) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The people of both releases: the same, or half of them and as many others as there are."""
    frame = adult.complete().with_row_index("person")
    rows = np.random.default_rng(SEED).permutation(frame.height)
    first = frame[rows[:count]]
    if is_all:
        return first, first
    shared = np.random.default_rng(SEED + 1).random(count) < 0.5
    others = frame[rows[count : count + max(count // 2, frame.height - PEOPLE)]]
    return first, pl.concat([first.filter(pl.Series(shared)), others])


def _case(
    name: str, one: pl.DataFrame, other: pl.DataFrame, k: int, repeats: int
) -> Iterator[Figure]:
    """Both releases made apart, and the second beside the first."""
    asked, second = policy(FIRST, k), policy(SECOND, K)
    out = _with_trace(shoal.publish(one, asked), one)
    apart = shoal.publish(other, second)
    for attacker in ATTACKERS:
        seconds = []
        for _ in range(repeats):
            began = time.process_time()
            judged = _with_trace(apart, other)
            found = _together(out, judged, k=K, l=LEAST, attacker=attacker)
            seconds.append(time.process_time() - began)
        if attacker == ATTACKERS[0]:
            yield Figure(f"{name}: people in both", "people", (found["people"],))
            (values,) = found["attributes"]
            yield Figure(f"{name}: one {SENSITIVE} left", "people", (values["certain"],))
            yield Figure(f"{name}: fewer than {LEAST} of them", "people", (values["below"],))
        left = {f"among fewer than {K}": found["below_k"], "alone": found["alone"]}
        for what, count in left.items():
            yield Figure(f"{name}: left {what}, `{attacker}`", "people", (count,))
        yield Figure(f"{name}: a joint audit, `{attacker}`", "CPU s", tuple(seconds))
    yield Figure(f"{name}: gcp of B apart", "%", (100 * apart.certificate["utility"]["gcp"],))
    for attacker in ATTACKERS:
        yield from _published(f"{name}, `{attacker}`", out, other, attacker)


def _with_trace(release: Any, original: pl.DataFrame) -> shoal.OtherRelease:
    """A release as a joint audit takes it."""
    return shoal.OtherRelease(
        release=release.data, policy=release.policy, original=original, trace=release.trace
    )


def _together(out: shoal.OtherRelease, own: shoal.OtherRelease, **asked: Any) -> Any:
    """What is left of people in both."""
    others = {"releases": [out], **asked}
    found = shoal.audit(own.release, own.policy, own.original, trace=own.trace, others=others)
    return found["beside"]


def _published(
    name: str, out: shoal.OtherRelease, other: pl.DataFrame, attacker: str
) -> Iterator[Figure]:
    """B beside A; nothing where nobody could be published."""
    began = time.process_time()
    try:
        made = shoal.publish(
            other, policy(SECOND, K), others={"releases": [out], "attacker": attacker}
        )
    except shoal.InfeasibleError:
        return
    seconds = time.process_time() - began
    withheld = made.certificate["beside"]["withheld"]
    yield Figure(f"{name}: withheld of B beside A", "people", (withheld,))
    gcp = 100 * made.certificate["utility"]["gcp"]
    yield Figure(f"{name}: gcp of B beside A", "%", (gcp,))
    yield Figure(f"{name}: publishing B beside A", "CPU s", (seconds,))


def _drawn(frame: pl.DataFrame) -> Iterator[Figure]:
    """Random sets of quasi-identifiers, everybody in both: how far figures depend on them."""
    rng, alone, apart, aligned = np.random.default_rng(SEED), [], [], []
    for _ in range(DRAWN):
        one, other = (policy(tuple(rng.permutation(COLUMNS)[:d].tolist()), K) for d in (6, 5))
        out = _with_trace(shoal.publish(frame, one), frame)
        second = shoal.publish(frame, other)
        judged = _with_trace(second, frame)
        alone.append(_together(out, judged, k=K)["alone"])
        apart.append(100 * second.certificate["utility"]["gcp"])
        made = shoal.publish(frame, other, others={"releases": [out]})
        aligned.append(100 * made.certificate["utility"]["gcp"])
    named = f"{DRAWN} random pairs of sets"
    yield Figure(f"{named}: left alone, `presence`", "people", tuple(alone))
    yield Figure(f"{named}: gcp of B apart", "%", tuple(apart))
    yield Figure(f"{named}, `presence`: gcp of B beside A", "%", tuple(aligned))
