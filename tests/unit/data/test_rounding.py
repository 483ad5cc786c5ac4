"""Ends of intervals moved outward to round numbers, and ends that are one person's own value."""

import itertools
import re
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from sample_policies import content_of
from shoal.cli.main import status_of
from shoal.data.classes import Classes
from shoal.data.recoding import interval_text, rounded_ends
from shoal.data.release import PublishedColumn
from shoal.data.schema import Attribute, Kind, Render, Role
from shoal.data.single_ends import (
    SINGLE_ENDS,
    _ends,
    outward_domain,
    shares_of_ends,
    single_end_warnings,
    step_of,
)
from shoal.errors import InputError


def number(step: float | None, domain=(0.0, 120.0)) -> Attribute:
    return Attribute("age", Role.QUASI, Kind.NUMBER, domain, round=step)


@pytest.mark.parametrize(
    ("lo", "hi", "step", "text"),
    [
        ("21", "29", None, "[21, 29]"),
        ("21", "29", 5, "[20, 30]"),
        ("20", "30", 5, "[20, 30]"),
        ("20", "20", 5, "20"),
        ("21", "21", 5, "[20, 25]"),
        ("118", "119", 5, "[115, 120]"),
        ("0.15", "0.29", 0.1, "[0.1, 0.3]"),
        ("20.0", "20.0", 5, "20.0"),
        ("-3", "-1", 2, "[-4, 0]"),
        ("119.5", "120", 7, "[119, 120]"),
    ],
)
def test_ends_go_outward_within_the_domain(lo, hi, step, text):
    domain = (-10.0, 120.0)
    assert interval_text(lo, hi, number(step, domain), Render()) == text


VALUES = st.decimals(-50, 50, allow_nan=False, places=3)


@given(VALUES, VALUES, st.sampled_from([0.1, 0.25, 1, 3, 5, 1000]))
def test_rounded_ends_cover_and_are_multiples_or_ends_of_the_domain(one, other, step):
    lo, hi = sorted([one, other])
    ends = rounded_ends(format(lo, "f"), format(hi, "f"), number(step, (-60.0, 60.0)))
    low, high = map(Fraction, ends)
    assert low <= Fraction(lo) <= Fraction(hi) <= high
    for end, limit in ((low, -60), (high, 60)):
        assert end == limit or end % Fraction(str(step)) == 0
    exact = Fraction(str(step))
    assert low > Fraction(lo) - exact
    assert high < Fraction(hi) + exact


AGE = {"role": "quasi", "type": "number", "domain": [0, 120]}


def policy(**more) -> dict:
    return content_of({"age": AGE | more, "ill": "sensitive"}, 3)


AGES = pl.DataFrame({"age": ["20", "20", "31"], "ill": ["a", "b", "c"]})


def column(release: shoal.Publication) -> dict:
    return release.certificate["columns"][0]


def test_single_ends_of_one_class_by_hand():
    release = shoal.publish(AGES, policy())
    assert release.data["age"].to_list() == ["[20, 31]"] * 3
    assert column(release)["single_ends"] == 0.5  # 31 is one person's age, 20 is two people's
    rounded = shoal.publish(AGES, policy(round=5))
    assert rounded.data["age"].to_list() == ["[20, 35]"] * 3
    assert column(rounded)["single_ends"] == 0.0
    assert column(rounded)["round"] == 5
    assert shoal.audit(rounded.data, policy(round=5), AGES, trace=rounded.trace).holds


@pytest.mark.parametrize("original", [None, AGES], ids=["alone", "with the original"])
@pytest.mark.parametrize("cell", ["[20, 31]", "[18, 35]", "31"])
def test_an_audit_finds_ends_that_are_not_rounded(cell, original):
    """The attack: a policy and a certificate that say 'round', beside a file of true ends."""
    forged = AGES.with_columns(age=pl.lit(cell))
    found = shoal.audit(forged, policy(round=5), original)
    assert found["faults"]["unrounded"] == 3
    assert not found.holds
    assert "unrounded" not in (shoal.audit(forged, policy(), None).get("faults") or {})


def test_an_end_of_the_domain_is_rounded():
    forged = AGES.with_columns(age=pl.lit("[17, 33]"))
    asked = policy(round=5, domain=[17, 33])
    assert shoal.audit(forged, asked, None).holds


def test_two_records_of_one_person_are_one_person():
    frame = {"age": ["20", "20", "31", "25", "26"], "ill": list("abcaa"), "p": list("xxyzw")}
    asked = content_of({"age": AGE, "ill": "sensitive", "p": "subject"}, 3)
    with pytest.warns(UserWarning, match="one person's"):
        release = shoal.publish(pl.DataFrame(frame), asked)
    assert column(release)["single_ends"] == 1.0


def test_ends_that_are_mostly_one_persons_own_are_warned_of():
    frame = AGES.with_columns(age=pl.Series(["19", "20", "31"]))
    with pytest.warns(UserWarning, match="one person's") as warned:
        release = shoal.publish(frame, policy())
    (warning,) = (one for one in release.certificate.warnings if one.code == "single-ends")
    assert warning.text == (
        "100 % of the ends of ranges are one person's age. Rounding to 5 leaves fewer"
    )
    assert warning.text in [str(one.message) for one in warned]


WHO = AGES.with_columns(age=pl.Series(["19", "20", "31"]), who=pl.Series(["a", "b", "c"]))


@pytest.mark.parametrize(
    ("method", "helps"),
    [
        ("crp", "A hierarchy of 'bins' hides them"),
        ("m-invariance", "A hierarchy table or 'tree' of ranges hides them"),
        ("fads", "With the parameter snap=N, 'fads' shows fewer"),
    ],
)
def test_only_what_a_method_takes_is_advised_against_true_ends(method, helps, tmp_path):
    asked = content_of({"age": AGE, "ill": "sensitive", "who": "subject"}, 3)
    asked["method"] = {"name": method} | ({"m": 3} if method == "m-invariance" else {})
    if method == "fads":
        table, out, trace = (str(tmp_path / name) for name in ("in.csv", "out.csv", "trace.jsonl"))
        WHO.write_csv(table)
        shoal.Policy.from_dict(asked).save(tmp_path / "p.yaml")
        options = ["-p", str(tmp_path / "p.yaml"), "-o", out, "--trace", trace, "-q"]
        assert status_of(["stream", table, *options]) == 0
        said = shoal.audit_file(out, asked, original=table, trace=trace).warnings
    else:
        said = shoal.republish(WHO, asked, tmp_path / "ledger").certificate.warnings
    (warning,) = (one for one in said if one.code == SINGLE_ENDS)
    assert warning.text.endswith(f"person's age. {helps}")


WAYS = itertools.product(["mondrian", "mdav", "top-down-greedy"], ["range", "both"])


@pytest.mark.parametrize(("method", "render"), [*WAYS, ("full-domain", "range")])
def test_every_end_of_every_method_is_round(method, render):
    rng = np.random.default_rng(1)
    frame = pl.DataFrame({"age": rng.integers(1, 119, 200), "ill": rng.choice(["a", "b"], 200)})
    asked = policy(round=4, render=render) | {"method": {"name": method}}
    release = shoal.publish(frame, asked)
    shown = set(release.data["age"].to_list())
    assert any("[" in cell for cell in shown)
    ends = (cell.partition("[")[2].strip("]") or cell for cell in shown)
    assert all(float(end) % 4 == 0 for pair in ends for end in pair.split(", "))
    assert shoal.audit(release.data, asked, frame, trace=release.trace).holds


def test_a_stream_refuses_to_round():
    with pytest.raises(InputError, match="'round' is for 'publish'; leave it out for 'stream'"):
        shoal.stream(policy(round=5), method="fads")


@pytest.mark.parametrize(
    ("width", "step"), [(120, 10), (80, 5), (90, 5), (4356, 500), (100, 5), (20, 1), (0.3, 0.02)]
)
def test_the_step_is_a_twentieth_rounded_up(width, step):
    assert step_of(width) == pytest.approx(step)


def published(*widths: float) -> PublishedColumn:
    """A column of one interval of each width, in as many records."""
    lo, hi = np.zeros(len(widths)), np.array(widths)
    return PublishedColumn("a%b", np.arange(len(widths)), tuple(map(str, widths)), lo, hi, hi)


@pytest.mark.parametrize(
    ("widths", "step"),
    [
        ((3.0,), "2"),  # multiples of 1 are the whole numbers themselves
        ((12.0, 14.0, 20.0, 0.0, np.nan), "5"),
        ((12.0, 14.0, 20.0, 9_999_987.0), "5"),  # one person earns ten million
        ((2e16,), "5000000000000000"),
        ((0.001,), "0.0002"),
    ],
)
def test_the_step_that_is_advised_follows_the_usual_width(widths, step):
    (warning,) = single_end_warnings({"a%b": 1.0}, {"a%b": published(*widths)})
    assert warning.text == (
        f"100 % of the ends of ranges are one person's a%b. Rounding to {step} leaves fewer"
    )
    assert warning.column == "a%b"


@pytest.mark.parametrize("grid", [0.1, 1, 5, 500])
def test_the_step_that_is_advised_leaves_fewer_whatever_the_grid_of_the_data(grid):
    rng = np.random.default_rng(1)
    numbers = [f"{grid * one:.1f}" for one in rng.integers(1, 2000, 400)]
    frame = pl.DataFrame({"age": numbers, "ill": rng.choice(["a", "b"], 400)})
    asked, shares, steps = policy(domain=None), [], []
    while found := [one for one in shoal.publish(frame, asked).warnings if one.code == SINGLE_ENDS]:
        shares.append(int(found[0].figures))
        steps.append(float(re.search(r"Rounding to (\S+) leaves", found[0].text)[1]))
        asked = policy(domain=None, round=steps[-1])
    assert shares == sorted(shares, reverse=True)
    assert steps == sorted({*steps})
    assert steps[0] > grid


def test_no_step_is_advised_where_none_is_coarser_than_the_grid_and_finer_than_ranges():
    (warning,) = single_end_warnings(
        {"a%b": 1.0}, {"a%b": published(10.0, 20.0)}, {"a%b": np.array([20.0, 30.0, 40.0])}
    )
    assert warning.text.endswith("person's a%b. A hierarchy of 'bins' hides them")


def test_without_a_domain_ends_are_moved_outward_from_what_was_seen():
    ages = [*map(str, range(21, 33)), "12345678901234567891"]
    frame = pl.DataFrame({"age": ages, "ill": ["a", "b", "c"] * 4 + ["a"]})
    asked = policy(round=5, domain=None)
    release = shoal.publish(frame, asked)
    ends = {end for cell in release.data["age"] for end in cell.strip("[]").split(", ")}
    assert "12345678901234567895" in ends
    assert all(int(end) % 5 == 0 for end in ends)
    assert shoal.audit(release.data, asked, frame).holds
    assert shoal.audit(release.data, asked).holds
    forged = release.data.with_columns(age=pl.lit("[21, 32]"))
    assert shoal.audit(forged, asked)["faults"]["unrounded"] == len(ages)


def counted(published, values, labels, people) -> float:
    """The share of ends that exactly one person of the class has, by going through all of them."""
    ends = single = 0
    for label in sorted({*labels} - {-1}):
        rows = [i for i, one in enumerate(labels) if one == label]
        lo, hi = (getattr(published, end)[published.codes[rows[0]]] for end in ("lo", "hi"))
        if not (np.isfinite(lo) and np.isfinite(hi) and lo < hi):
            continue
        ends += 2
        for end in (lo, hi):
            single += len({people[i] for i in rows if values[i] == end}) == 1
    return single / ends if ends else 0.0


@st.composite
def releases(draw):
    """Records of some classes, each with one interval or value, or in no class."""
    pair = st.tuples(st.integers(0, 3), st.integers(0, 3))
    intervals = draw(st.lists(pair, min_size=1, max_size=4))
    of_class = st.integers(-1, len(intervals) - 1)
    record = st.tuples(of_class, st.integers(0, 3), st.integers(0, 5))
    records = draw(st.lists(record, min_size=1, max_size=20))
    return [(min(pair), max(pair)) for pair in intervals], records, draw(st.booleans())


@given(releases())
def test_the_share_is_that_of_a_count_person_by_person(release):
    intervals, records, has_subjects = release
    labels, values, people = (np.array(part) for part in zip(*records, strict=True))
    lo, hi = (np.array(ends, dtype=float) for ends in zip(*intervals, strict=True))
    codes = np.maximum(labels, 0)
    cells = tuple(map(str, intervals))
    published = PublishedColumn("x", codes, cells, lo, hi, np.zeros(len(lo)))
    subjects = people.astype(np.int32) if has_subjects else None
    classes = Classes(labels.astype(np.int32), len(intervals), subjects)
    own = people if has_subjects else range(len(records))
    found = shares_of_ends([{"q": _ends(published, values.astype(float), classes)}])["q"]
    assert found == counted(published, values, labels.tolist(), own)


THOUSANDTHS = st.integers(-(10**9), 10**9).map(lambda n: n / 1000)


@given(st.lists(THOUSANDTHS, min_size=2, max_size=9, unique=True))
def test_nobodys_value_is_an_end_but_zero_and_little_is_added(values):
    seen = np.array(values)
    low, high = outward_domain(seen)
    least, greatest = seen.min(), seen.max()
    assert low < least or low == least == 0
    assert high > greatest
    step = max((greatest - least) / 20 * 2.5, 1 if (seen == np.rint(seen)).all() else 0)
    assert least - low <= step * (1 + 1e-9)
    assert high - greatest <= step * (1 + 1e-9)
    if least >= 0:
        assert low >= 0
