"""Without a trace, an audit finds the rows for which the original has none of their own."""

from functools import cache

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from sample_policies import content_of
from shoal.auditor import audit
from shoal.data.certificate import Certificate

POLICY = content_of(
    {
        "age": {"role": "quasi", "type": "number", "domain": [0, 9]},
        "sex": {"role": "quasi", "type": "ordinal", "order": ["f", "m"]},
        "ward": {"role": "plain"},
        "ill": {"role": "sensitive"},
    },
    2,
    missing="value",
)
AGES = {"3": range(3, 4), "[2, 4]": range(2, 5), "[0, 9]": range(10), "*": range(-1, 10)}
ROW = st.tuples(
    st.sampled_from(["", *"02345"]),
    st.sampled_from("fm"),
    st.sampled_from("ab"),
    st.sampled_from("xy"),
)
SHOWN = st.tuples(
    st.sampled_from([*AGES]), st.sampled_from("fm*"), st.sampled_from("ab*"), st.sampled_from("xy*")
)


def fits(shown: tuple[str, ...], known: tuple[str, ...]) -> bool:
    """What the module says, written once more."""
    is_starred = shown[:2] == ("*", "*")
    age, sex = AGES[shown[0]], shown[1]
    others = zip(shown[2:], known[2:], strict=True)
    return (
        int(known[0] or -1) in age
        and sex in ("*", known[1])
        and all(one == other or (is_starred and one == "*") for one, other in others)
    )


def least_unmatched(shown: list[tuple[str, ...]], known: list[tuple[str, ...]]) -> int:
    """By trying every way to hand out the original's rows."""

    @cache
    def left(place: int, free: frozenset[int]) -> int:
        if place == len(shown):
            return 0
        chosen = [t for t in free if fits(shown[place], known[t])]
        tried = [left(place + 1, free - {t}) for t in chosen]
        return min([1 + left(place + 1, free), *tried])

    return left(0, frozenset(range(len(known))))


def frame_of(rows: list[tuple[str, ...]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=[*POLICY["attributes"]], orient="row")


def audited(shown: list[tuple[str, ...]], known: list[tuple[str, ...]]) -> Certificate:
    return shoal.audit(frame_of(shown), POLICY, original=frame_of(known))


def found(shown: list[tuple[str, ...]], known: list[tuple[str, ...]]) -> int | None:
    return (audited(shown, known).get("faults") or {}).get("unmatched")


@given(st.lists(st.tuples(SHOWN, ROW), min_size=1, max_size=6))
def test_it_is_what_trying_every_assignment_finds(rows) -> None:
    shown, known = [one for one, _ in rows], [other for _, other in rows]
    assert found(shown, known) == least_unmatched(shown, known)


@given(st.lists(ROW, min_size=4, max_size=40), st.integers(2, 4))
def test_what_was_published_can_be_matched(rows, k) -> None:
    policy = POLICY | {"promises": [{"model": "k-anonymity", "k": k}]}
    original = frame_of(rows)
    published = shoal.publish(original, policy)
    certificate = shoal.audit(published.data, policy, original=original)
    assert certificate["faults"]["unmatched"] == 0
    assert certificate.holds


def test_a_row_too_many_of_a_kind_breaks_the_audit() -> None:
    known = [("2", "f", "a", "x"), ("3", "f", "a", "x"), ("5", "f", "a", "x")]
    certificate = audited([("[2, 4]", "f", "a", "x")] * 3, known)
    assert certificate["faults"]["unmatched"] == 1
    assert not certificate.holds


@pytest.mark.parametrize("bound", ["MOST_WORK", "MOST_FITTING"])
def test_past_a_bound_it_is_not_judged(monkeypatch, bound: str) -> None:
    monkeypatch.setattr(audit, bound, 2)
    rows = [("2", "f", "a", "x"), ("3", "f", "a", "x"), ("5", "f", "a", "x")]
    assert found([("[0, 9]", "*", "a", "x")] * 2 + [rows[2]], rows) is None
