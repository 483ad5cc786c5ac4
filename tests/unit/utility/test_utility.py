"""Utility and risk, and who is alone in a class with what is shown, against loops over records."""

import tracemalloc
from collections import defaultdict

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from shoal.data.classes import Classes
from shoal.data.release import PublishedColumn, Release
from shoal.data.table import Column
from shoal.data.true_values import TrueValues
from shoal.utility import tally
from shoal.utility.class_sizes import (
    AverageClassSize,
    Discernibility,
    JournalistMax,
    Marketer,
    ProsecutorMax,
    ProsecutorMean,
)
from shoal.utility.classification import Classification
from shoal.utility.gcp import GeneralizedLoss, GlobalCertaintyPenalty
from shoal.utility.squared_error import InformationLossPercent, SquaredError, SquaredErrorNormalised

DOMAIN = 10


def column(name, spans, shown):
    """A numeric column that publishes spans[shown[i]] for record i; domain 0..10."""
    lo, hi = np.array(spans, dtype=np.float64).reshape(-1, 2).T
    cells = tuple(f"[{a:g}, {b:g}]" for a, b in spans)
    return PublishedColumn(
        name, np.array(shown, dtype=np.uint16), cells, lo, hi, np.array([*map(width, spans)])
    )


def width(span):
    return min((span[1] - span[0]) / DOMAIN, 1.0)


def release(labels, columns=(), subjects=None, **known):
    labels = np.array(labels, dtype=np.int32)
    people = None if subjects is None else np.array(subjects, dtype=np.int32)
    if "originals" in known:
        known["originals"] = {n: TrueValues.of(v) for n, v in known["originals"].items()}
    return Release(
        tuple(columns), Classes(labels, int(labels.max(initial=-1)) + 1, people), **known
    )


bounds = st.tuples(st.integers(0, 10), st.integers(0, 10)).map(lambda pair: tuple(sorted(pair)))
bounds |= st.just((-np.inf, np.inf))  # the suppression mark
labellings = st.lists(st.integers(-1, 3), min_size=1, max_size=14)


def for_each(labels, value):
    """A list of a value for each record."""
    return st.lists(value, min_size=len(labels), max_size=len(labels))


@st.composite
def released_cells(draw):
    """Labels, two columns' spans, and which span each record shows."""
    labels = draw(labellings)
    spans = [draw(st.lists(bounds, min_size=1, max_size=4, unique=True)) for _ in range(2)]
    shown = [[draw(st.integers(0, len(found) - 1)) for _ in labels] for found in spans]
    return labels, spans, shown


@given(released_cells())
def test_gcp_is_the_mean_width_and_one_where_suppressed(drawn):
    labels, spans, shown = drawn
    table = release(labels, [column(f"q{j}", spans[j], shown[j]) for j in range(2)])
    widths = [[*map(width, found)] for found in spans]
    assert GlobalCertaintyPenalty().score(table) == pytest.approx(naive.gcp(labels, shown, widths))


@given(released_cells())
def test_generalized_loss_is_taken_of_the_range_that_is_published(drawn):
    labels, spans, shown = drawn
    table = release(labels, [column(f"q{j}", spans[j], shown[j]) for j in range(2)])
    expected = [
        naive.generalized_loss(labels, [spans[j][cell] for cell in shown[j]]) for j in range(2)
    ]
    assert GeneralizedLoss().score(table) == pytest.approx(sum(expected) / 2)


MARK, NONE = (-np.inf, np.inf), (np.nan, np.nan)


def each_span(labels, spans, widths):
    """A release in which each record has a span of its own."""
    lo, hi = np.array(spans).T
    cells = PublishedColumn(
        "q", np.arange(len(lo)), tuple(map(str, spans)), lo, hi, np.array(widths)
    )
    return release(labels, [cells])


@pytest.mark.parametrize(
    ("spans", "widths", "gcp", "loss"),
    [
        ([(0.0, 5.0), MARK], [0.5, 1.0], 0.75, 1.0),
        ([(0.0, 2.0), (4.0, 4.0), MARK], [np.nan, 0.0, 1.0], None, (0.5 + 0 + 1) / 3),
        ([(0.0, 4.0), NONE], [0.4, 0.0], 0.2, 0.5),
        ([(0.0, 1.0), (2.0, 4.0)], [np.nan, np.nan], None, (1 / 4 + 2 / 4) / 2),
        ([NONE], [np.nan], None, None),
    ],
    ids=["a mark with a domain", "a mark without one", "no value", "no width", "no span"],
)
def test_a_mark_loses_all_and_no_value_nothing_and_what_can_not_be_told_is_open(
    spans, widths, gcp, loss
):
    table = each_span(range(len(spans)), spans, widths)
    assert GlobalCertaintyPenalty().score(table) == pytest.approx(gcp)
    assert GeneralizedLoss().score(table) == pytest.approx(loss)


def test_a_width_that_no_published_record_shows_does_not_matter():
    table = each_span([0, -1], [(0.0, 5.0), MARK], [0.5, np.nan])
    assert GlobalCertaintyPenalty().score(table) == 0.75


@given(labellings)
def test_discernibility_squares_sizes_and_charges_the_table_for_suppression(labels):
    assert Discernibility().score(release(labels)) == naive.discernibility(labels)


# labels that lie far apart are sorted, as a table of all counts would be larger than the release
@pytest.mark.parametrize(("values", "dtype"), [([0, 1, 2], np.uint8), ([-7, 90, 250], np.int16)])
@given(labels=labellings, data=st.data())
def test_classification_counts_everybody_outside_the_majority(values, dtype, labels, data):
    of_interest = data.draw(for_each(labels, st.sampled_from(values)))
    table = release(labels, label=np.array(of_interest, dtype=dtype))
    assert Classification().score(table) == naive.classification(labels, of_interest)


@given(labellings, st.data())
def test_squared_error_is_taken_against_class_means(labels, data):
    drawn = data.draw(for_each(labels, st.none() | st.floats(-100, 100)))
    originals = {"q": np.array([np.nan if value is None else value for value in drawn])}
    truth = naive.squared_error(labels, drawn)
    assert SquaredError().score(release(labels, originals=originals)) == pytest.approx(
        truth, abs=1e-9
    )


def test_squared_error_keeps_its_digits_far_from_zero():
    originals = {"q": np.array([1e9, 1e9 + 1, 5e8, 5e8 + 2])}
    assert SquaredError().score(release([0, 0, 1, 1], originals=originals)) == pytest.approx(
        0.5 + 2.0
    )


@given(labellings, st.data())
def test_squared_error_in_percent_is_that_of_attributes_of_variance_one(labels, data):
    values = for_each(labels, st.integers(-9, 9))
    drawn = {name: np.array(data.draw(values), dtype=float) for name in ("a", "b")}
    table = release(labels, originals=drawn)
    varying = [v for v in drawn.values() if v.std() > 0]
    scaled = [naive.squared_error(labels, (v / v.std()).tolist()) for v in varying]
    assert SquaredErrorNormalised().score(table) == pytest.approx(
        sum(scaled) / len(labels), abs=1e-9
    )
    percent = InformationLossPercent().score(table)
    if not varying:
        assert percent is None
    else:
        assert percent == pytest.approx(100 * sum(scaled) / (len(varying) * len(labels)), abs=1e-7)


def test_everybody_in_one_class_loses_all_and_single_records_nothing():
    originals = {"a": np.array([1.0, 2.0, 9.0]), "constant": np.ones(3)}
    assert InformationLossPercent().score(release([0, 0, 0], originals=originals)) == pytest.approx(
        100
    )
    assert InformationLossPercent().score(release([0, 1, 2], originals=originals)) == 0
    assert SquaredErrorNormalised().score(release([0, 0, 0], originals=originals)) == pytest.approx(
        1
    )


def test_average_class_size_is_measured_in_subjects_and_in_units_of_k():
    table = release([0, 0, 0, 1, 1, -1], subjects=[1, 1, 2, 3, 4, 5], required_k=2)
    assert AverageClassSize().score(table) == 1.0


NEED_MORE = [AverageClassSize, Classification, SquaredError, SquaredErrorNormalised]
MEANS = [GlobalCertaintyPenalty, GeneralizedLoss, AverageClassSize, ProsecutorMax, ProsecutorMean]


@pytest.mark.parametrize(
    ("metric", "shown"),
    [
        *((metric, release([0, 0])) for metric in (*NEED_MORE, InformationLossPercent)),
        *((metric, release([], required_k=2)) for metric in (*MEANS, Marketer)),
        (ProsecutorMax, release([-1, -1])),
    ],
)
def test_nothing_is_measured_without_k_a_label_the_original_or_a_record(metric, shown):
    assert metric().score(shown) is None


@given(labellings.filter(lambda labels: max(labels) >= 0), st.data())
def test_risks_are_means_and_maxima_over_everybody_in_a_class(labels, data):
    subjects = data.draw(st.none() | for_each(labels, st.integers(0, 4)))
    table = release(labels, subjects=subjects)
    greatest, mean = naive.risks(labels, subjects)
    assert ProsecutorMax().score(table) == JournalistMax().score(table) == pytest.approx(greatest)
    assert ProsecutorMean().score(table) == Marketer().score(table) == pytest.approx(mean)


RECORDS = st.lists(
    st.tuples(st.integers(-1, 2), st.integers(0, 3), st.integers(0, 2), st.integers(0, 1)),
    min_size=1,
    max_size=25,
)


def alone(records: list[tuple[int, ...]], counts_people: bool) -> list[bool]:
    people = defaultdict(set)
    for number, (label, person, *shown) in enumerate(records):
        people[label, *shown].add(person if counts_people else number)
    return [label >= 0 and len(people[label, *shown]) == 1 for label, _, *shown in records]


@given(RECORDS, st.booleans(), st.sampled_from([0, 1 << 20]))
def test_who_is_alone_is_counted_by_people(records, counts_people, small):
    labels, persons, *shown = np.array(records, dtype=np.int32).T
    columns = [Column(str(i), codes, pl.Series(["u", "v", "w"])) for i, codes in enumerate(shown)]
    classes = Classes(labels, 3, persons if counts_people else None)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tally, "_TABLE", small or -4 * len(records))
        assert tally._is_alone(classes, columns).tolist() == alone(records, counts_people)


@given(RECORDS, st.lists(st.integers(0, 2), min_size=3, max_size=3))
def test_people_in_several_classes_are_counted_whichever_parts_hold_the_classes(records, part_of):
    labels, persons = np.array(records, dtype=np.int32).T[:2]
    in_classes = defaultdict(set)
    for label, person in zip(labels, persons, strict=True):
        in_classes[person] |= {label} - {-1}
    places = np.array([*part_of, 0])[labels]
    added, absorbed = tally.Several(), tally.Several()
    for part in range(3):
        part_classes = Classes(labels[places == part], 3, persons[places == part])
        added.add(part_classes)
        other = tally.Several()
        other.add(part_classes)
        absorbed.absorb(other)
    assert len(added.people) == len(absorbed.people)
    assert len(added.people) == sum(len(classes) > 1 for classes in in_classes.values())


def test_many_values_take_no_room_of_their_own():
    """A table of all classes and values would take 10^10 places."""
    many = 100_000
    number = np.arange(many, dtype=np.int32)
    column = Column("amount", number, pl.Series(map(str, range(many))))
    tracemalloc.start()
    found = tally._is_alone(Classes(number // 2, many // 2), [column])
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.all()
    assert most < 100 * many
