"""Every fault that is put into a sound hierarchy is found, and no message tells a label."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given

from shoal.data.findings import AttributeFinding, Fault
from shoal.data.hierarchies.labels import Order
from shoal.data.hierarchies.paths import Paths, diagnose, values_without_leaf
from unit.cli.test_hierarchies import trees

SOUND = [
    ["<leaf a>", "<group x>", "<area p>", "<root>"],
    ["<leaf b>", "<group x>", "<area p>", "<root>"],
    ["<leaf c>", "<group y>", "<area p>", "<root>"],
    ["<leaf d>", "<group z>", "<area q>", "<root>"],
    ["<leaf e>", "<group z>", "<area q>", "<root>"],
]


def found(rows) -> dict[Fault, AttributeFinding]:
    findings = diagnose(rows, "job")
    assert len({finding.kind for finding in findings}) == len(findings)
    return {finding.kind: finding for finding in findings}


def planted(row: int, column: int, label: str) -> list[list[str]]:
    rows = [list(labels) for labels in SOUND]
    rows[row][column] = label
    return rows


@given(trees())
def test_a_sound_hierarchy_has_no_fault_but_uneven_rows(rows):
    assert {finding.kind for finding in diagnose(rows)} <= {Fault.UNEVEN_ROWS}


UNEVEN = [["<leaf f>", "<root>"], ["<leaf g>", "<group x>", "<area p>", "<root>", "<root>"]]
IN_TWO = ["<leaf a>", *SOUND[3][1:]]
BY_HAND = {
    "a leaf listed twice": ([*SOUND, SOUND[0]], {Fault.DUPLICATE_LEAVES: ("<leaf a>",)}),
    "a leaf in two groups is listed twice and has two parents": (
        [*SOUND, IN_TWO],
        {Fault.DUPLICATE_LEAVES: ("<leaf a>",), Fault.TWO_PARENTS: ("<leaf a>",)},
    ),
    "a group with two parents": (planted(1, 2, "<area q>"), {Fault.TWO_PARENTS: ("<group x>",)}),
    "several roots, once": (
        planted(3, 3, "<other root>"),
        {Fault.SEVERAL_ROOTS: ("<root>", "<other root>"), Fault.TWO_PARENTS: 1},
    ),
    "a row that ends too early has another root": (
        [*SOUND, ["<leaf f>", "<group x>"]],
        {Fault.SEVERAL_ROOTS: 2, Fault.UNEVEN_ROWS: 1},
    ),
    "rows of unequal length": ([*SOUND, *UNEVEN], {Fault.UNEVEN_ROWS: 2}),
    "a separator at the end of every row": (
        [[*row, ""] for row in SOUND],
        {Fault.EMPTY_LABELS: len(SOUND)},
    ),
    "only the label that is torn, and not those below it": (
        [[row[0], f"<ward of {row[1]}>", *row[1:]] for row in planted(1, 2, "<area q>")],
        {Fault.TWO_PARENTS: ("<group x>",)},
    ),
    **{
        f"two unrelated nodes of one label, one in column {column}, {label}": (
            planted(row, column, label),
            {Fault.TWO_NODES: (label,)},
        )
        for row, column, label in ((4, 0, "<group x>"), (2, 1, "<leaf d>"), (0, 0, "<area q>"))
    },
    **{
        f"none where a leaf bears the name of what it is in, {label}": (planted(0, 0, label), {})
        for label in ("<group x>", "<area p>", "<root>")
    },
}


@pytest.mark.parametrize("claim", BY_HAND)
def test_faults_are_found_with_their_labels_or_count_and_no_others(claim):
    rows, expected = BY_HAND[claim]
    faults = found(rows)
    assert set(faults) == set(expected)
    for fault, shown in expected.items():
        assert shown in (faults[fault].count, faults[fault].values)


def test_a_table_without_rows_is_a_fault_and_lengths_are_counted():
    assert set(found([])) == {Fault.NO_ROWS}
    message = found([*SOUND, *UNEVEN])[Fault.UNEVEN_ROWS].message
    assert "(1 row has 2, 5 rows have 4, 1 row has 5)" in message


@pytest.mark.parametrize("column", range(4))
def test_an_empty_label_is_found_in_any_column(column):
    faults = found(planted(2, column, ""))
    assert faults[Fault.EMPTY_LABELS].count == 1
    assert Fault.EMPTY_LABELS in found([[], ["a", "*"]])


def test_all_faults_are_reported_at_once_and_no_message_tells_a_label():
    rows = [
        *SOUND,
        SOUND[0],
        ["<leaf f>", "<group x>", "<area q>", "<root>"],
        ["<leaf g>", "", "<area q>", "<root>"],
        ["<leaf h>", "<area p>", "<area q>", "<root>"],
        ["<leaf i>", "<other root>"],
    ]
    findings = diagnose(rows, "job")
    assert {finding.kind for finding in findings} == set(Fault) - {Fault.POLICY} - {
        Fault.NO_ROWS,
        Fault.MANY_STEPS,
        Fault.MISFIT,
    }
    for finding in findings:
        assert not any(value in repr(finding) for value in finding.values)
        assert "<" not in finding.message
        assert finding.message.startswith("attribute 'job': ")
        with pytest.raises(dataclasses.FrozenInstanceError):
            finding.count = 0


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ([1, 2, 3], "5 records have 2 distinct values that are not in the listed order; list them"),
        ([1, 2, 0], "2 records have a value that is not in the listed order; list it too"),
        ([1, 1, 0], "1 record has a value that is not in the listed order; list it too"),
    ],
)
def test_misfits_count_records_where_they_are_known(counts, said):
    values, held = np.array(["low", "<odd>", "<even>"], dtype=object), np.array(counts)
    order, values = Order(("low", "high")), values[held > 0]
    (finding,) = values_without_leaf(order, "grade", values, held[held > 0])
    assert finding.count == sum(counts[1:])
    assert finding.message.startswith(f"attribute 'grade': {said}")
    assert finding.values == tuple(values[1:])


def test_a_hierarchy_of_very_many_columns_is_refused_before_a_tree_is_grown():
    (finding,) = diagnose([[*(f"{value}{step}" for step in range(1000)), "*"] for value in "ab"])
    assert finding.kind is Fault.MANY_STEPS
    assert finding.message.startswith("the hierarchy has 1,001 columns, more than 1,000; leave out")


@pytest.mark.parametrize(
    ("columns", "rows", "shown"),
    [
        (1_001, 30_000, "has 1,001 columns, more than 1,000; leave out steps or correct its sep"),
        (999, 30_000, "has 30,001 rows of up to 999 columns, more than 20,000,000 cells together"),
    ],
)
def test_one_long_row_takes_no_room_in_all_others(columns, rows, shown):
    wide = [*(f"step {step}" for step in range(columns - 1)), "*"]
    paths = Paths.of([wide, *([str(row), "*"] for row in range(rows))])
    assert paths.codes.nbytes < 1_000_000
    (finding,) = diagnose(paths)
    assert finding.kind is Fault.MANY_STEPS
    assert shown in finding.message
