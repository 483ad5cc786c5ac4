"""Edits of a hierarchy: by hand, what stays, and every edit that can't be made."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal import Hierarchy, InputError
from shoal.cli.main import status_of
from shoal.data.hierarchies.table import read_hierarchy, write_hierarchy

ROWS = [
    ("none", "basic", "*"),
    ("primary", "basic", "*"),
    ("secondary", "middle", "*"),
    ("bachelor", "academic", "*"),
    ("master", "academic", "*"),
]
SCHOOL = Hierarchy.from_paths(ROWS)


def after(*edits: object) -> dict[str, tuple[str, ...]]:
    """By value, the labels above it."""
    rows = SCHOOL.edited(list(edits)).rows().tolist()
    return {value: tuple(above) for value, *above in rows}


def test_a_value_finds_its_place_and_all_others_keep_theirs():
    before = SCHOOL.rows().tolist()
    changed = after({"put": "vocational", "under": "middle"}, {"put": "other", "under": "*"})
    added = {"vocational": ("middle", "*"), "other": ("other", "*")}
    assert changed == {row[0]: row[1:] for row in ROWS} | added
    assert SCHOOL.rows().tolist() == before


STEP = {"step": 1}
SCHOOLS = {"group": "school", "of": ["basic", "middle"]}


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ([{"group": "higher", "of": ["master"]}], "master/higher/* bachelor/academic/*"),
        (
            [STEP, SCHOOLS],
            "none/basic/school/* secondary/middle/school/* master/academic/academic/*",
        ),
        (
            [{"group": "short", "of": ["none", "secondary"]}],
            "none/short/* secondary/short/* primary/basic/*",
        ),
        (
            [STEP, SCHOOLS | {"of": ["basic"]}, {"move": "middle", "under": "school"}],
            "secondary/middle/school/* none/basic/school/*",
        ),
        ([{"rename": "middle", "to": "mid"}], "secondary/mid/*"),
    ],
    ids=[
        "a group splits off, and what it leaves stays",
        "a new step takes groups of groups",
        "a group takes members of several groups under the node that holds them",
        "a group moves with all that is below it",
        "a renamed group",
    ],
)
def test_an_edit_by_hand(edits, expected):
    changed = after(*edits)
    for value, *above in (path.split("/") for path in expected.split()):
        assert changed[value] == tuple(above)


def test_a_new_step_alone_changes_only_the_height_and_a_value_that_means_nothing_goes():
    taller = SCHOOL.edited(STEP)
    assert taller.height == SCHOOL.height + 1
    assert taller.labels == SCHOOL.labels
    assert "none" not in after({"no_value": "none"})


def test_rare_values_become_one_group_and_at_a_step_rare_groups():
    counts = {"none": 2, "primary": 9, "secondary": 3, "bachelor": 9}
    changed = after({"rare": 4, "counts": counts})
    others = {value for value, above in changed.items() if above == ("other", "*")}
    assert others == {"none", "secondary", "master"}
    groups = after({"step": 1}, {"rare": 4, "counts": counts, "step": 2, "into": "rest"})
    assert groups["secondary"] == ("middle", "rest", "*")
    assert groups["none"] == ("basic", "basic", "*")


def test_a_group_may_have_the_name_of_a_member():
    rows = [("Other", "Other", "*"), ("x", "Other", "*"), ("y", "Y", "*"), ("z", "Y", "*")]
    tree = Hierarchy.from_paths(rows).edited({"move": "y", "under": "Other"})
    assert [row[1] for row in tree.rows().tolist() if row[0] in "xyOther"] == ["Other"] * 3


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        ({"put": "master", "under": "basic"}, "already has a place"),
        ({"put": "new", "under": "master"}, "is a value"),
        ({"put": "new", "under": "nowhere"}, "not in the hierarchy"),
        ({"put": True, "under": "basic"}, "in quotes"),
        ({"put": "new"}, "takes put, under"),
        ({"put": "new", "under": "basic", "at": 1}, "correct its keys"),
        ({"group": "basic", "of": ["master"]}, "another group"),
        ({"group": "big", "of": ["basic", "middle"]}, "no step for it"),
        ({"group": "big", "of": []}, "not a list of members"),
        ({"group": "big", "of": "master"}, "not a list of members"),
        ({"group": "big", "of": ["basic"], "step": 1}, "is as high"),
        ({"group": "big", "of": ["master"], "step": 5}, "no step for it"),
        ({"rename": "master", "to": "x"}, "value of the data"),
        ({"rename": "middle", "to": "basic"}, "another group"),
        ({"rename": "middle", "to": "none"}, "label"),
        ({"move": "basic", "under": "middle"}, "not above"),
        ({"move": "*", "under": "basic"}, "not above"),
        ({"step": 2}, "not below the root"),
        ({"step": "1"}, "not below the root"),
        ({"rare": 0, "counts": {}}, "at least 1"),
        ({"rare": 5, "counts": {}}, "everything is that rare"),
        ({"rare": 5, "counts": dict.fromkeys([r[0] for r in ROWS], 9)}, "nothing is that rare"),
        ({"colour": "red"}, "not a known edit"),
        ({}, "not a mapping"),
        ("put", "not a mapping"),
    ],
)
def test_an_edit_that_cannot_be_made_says_why_and_names_no_label(edit, why):
    with pytest.raises(InputError) as refused:
        SCHOOL.edited([edit])
    said = " ".join([str(refused.value.args[0]), *refused.value.findings])
    assert why in said
    assert not {"master", "middle", "nowhere"} & set(said.replace("'", " ").split())


def test_the_number_of_the_edit_is_said_and_the_last_value_stays():
    with pytest.raises(InputError, match="edit 2"):
        SCHOOL.edited([STEP, {"put": "a", "under": "b"}])
    with pytest.raises(InputError, match="no value"):
        Hierarchy.from_paths([("a", "*")]).edited({"no_value": "a"})


@given(data=st.data())
def test_moved_values_lose_nothing_and_the_table_reads_back(data, tmp_path_factory):
    tree = SCHOOL.edited({"step": 1})
    values = [row[0] for row in ROWS]
    for _ in range(3):
        value = data.draw(st.sampled_from(values))
        inner = sorted({label for row in tree.rows().tolist() for label in row[1:]} - {*values})
        tree = tree.edited({"move": value, "under": data.draw(st.sampled_from(inner))})
    assert sorted(row[0] for row in tree.rows().tolist()) == sorted(values)
    path = tmp_path_factory.mktemp("tree") / "t.csv"
    write_hierarchy(tree, path)
    assert read_hierarchy(path) == tree


def test_the_command_writes_another_table_and_leaves_the_first(tmp_path, capsys):
    source, target, data = tmp_path / "s.csv", tmp_path / "t.csv", tmp_path / "d.csv"
    write_hierarchy(SCHOOL, source)
    before = source.read_bytes()
    data.write_text("edu\nnone\nnone\nprimary\nmaster\nmaster\nbachelor\nbachelor\n")
    edits = ["{put: 7, under: middle}", "{rare: 2}", "{no_value: none}"]
    asked = ["hierarchies", "edit", str(source), *edits, "--data", str(data), "--column", "edu"]
    assert status_of([*asked, "-o", str(target)]) == 0
    rows = [line.split(";") for line in target.read_text().splitlines()]
    assert {row[0] for row in rows if row[1] == "other"} == {"primary", "secondary", "7"}
    assert source.read_bytes() == before
    assert "missing_values" in capsys.readouterr().err
    assert status_of([*asked, "-o", str(source)]) == 2
    assert status_of(["hierarchies", "edit", str(source), "{rare: 2}"]) == 2
    assert status_of(["hierarchies", "edit", str(source), "{put: canary"]) == 2
    assert "canary" not in capsys.readouterr().err
