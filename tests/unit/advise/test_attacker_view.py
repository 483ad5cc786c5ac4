"""What an attacker sees of one row: by hand, after a shuffle, and against a plain twin."""

import json

import polars as pl
import pytest

import shoal
from sample_policies import content_of
from shoal.cli.main import status_of

POLICY = content_of(
    {
        "who": "subject",
        "age": {"role": "quasi", "type": "number", "domain": [0, 100]},
        "sex": "quasi",
        "ill": "sensitive",
    },
    2,
    render={"order": "input"},
    seed=7,
)
ORIGINAL = pl.DataFrame(
    {
        "who": ["a", "a", "b", "c", "d", "e"],
        "age": ["20", "20", "30", "70", "75", "90"],
        "sex": ["f", "f", "f", "m", "m", "m"],
        "ill": ["flu", "cold", "flu", "flu", "flu", "gout"],
    }
)
RELEASED = pl.DataFrame(
    {
        "age": ["[20, 30]"] * 3 + ["[70, 90]"] * 3,
        "sex": ["f"] * 3 + ["m"] * 3,
        "ill": ORIGINAL["ill"],
    }
)


def test_by_hand_people_and_not_rows():
    view = shoal.attacker_view(RELEASED, POLICY, ORIGINAL, 1)
    assert view.known == {"age": "20", "sex": "f"}
    assert view.shown == {"age": "[20, 30]", "sex": "f"}
    assert (view.people, view.unit, view.fitting_classes) == (2, "people", 1)
    (ill,) = view.learnt
    # a has flu and a cold, b the flu; of five people four have the flu
    assert [(v.value, v.people, v.share, v.base) for v in ill.values] == [
        ("flu", 2, 1.0, 0.8),
        ("cold", 1, 0.5, 0.2),
    ]
    assert (ill.best.value, ill.truth, ill.is_possible) == ("flu", "flu", True)


def test_the_most_exposed_row_is_the_one_whose_value_is_surest_and_the_widest_is_most_distorted():
    assert shoal.attacker_view(RELEASED, POLICY, ORIGINAL).row == 1
    assert shoal.attacker_view(RELEASED, POLICY, ORIGINAL, "most-distorted").row == 4
    lone = RELEASED.with_columns(ill=pl.Series(["flu", "cold", "gout", "flu", "flu", "flu"]))
    original = ORIGINAL.with_columns(ill=lone["ill"])
    assert shoal.attacker_view(lone, POLICY, original).row == 4


def test_that_rows_of_nobody_are_not_numbered_is_warned_of():
    gap = pl.concat([ORIGINAL.clear(1), ORIGINAL])
    with pytest.warns(shoal.ReleaseWarning, match="number the rows below without them"):
        assert shoal.attacker_view(RELEASED, POLICY, gap).row == 1
    with pytest.warns(shoal.ReleaseWarning, match="number the rows below without them"):
        assert len(shoal.risk(gap, POLICY).records["alike"]) == ORIGINAL.height


def test_a_withheld_row_is_found_by_nobody():
    released = RELEASED.with_columns(
        age=pl.Series(["*"] + ["[20, 30]"] * 2 + ["[70, 90]"] * 3),
        sex=pl.Series(["*", "f", "f", "m", "m", "m"]),
        ill=pl.Series(["*", *ORIGINAL["ill"][1:]]),
    )
    view = shoal.attacker_view(released, POLICY, ORIGINAL, 1)
    assert (view.people, view.shown, view.learnt[0].best) == (0, None, None)
    assert not view.learnt[0].is_possible
    assert shoal.attacker_view(released, POLICY, ORIGINAL, "most-distorted").row == 4


def test_classes_that_overlap_are_counted():
    released = RELEASED.with_columns(
        sex=pl.lit("*"), age=pl.Series(["[20, 80]"] * 3 + ["[70, 90]"] * 3)
    )
    view = shoal.attacker_view(released, POLICY, ORIGINAL, 4)
    assert (view.people, view.fitting_classes, view.fitting_people) == (3, 2, 5)


def test_a_shuffled_release_is_read_by_what_fits_and_known_from_its_publication():
    frame = shoal.sample("patients", 300, 3)
    policy = shoal.Policy.from_dict(
        content_of(
            {
                "patient": "subject",
                "age": {"role": "quasi", "type": "number", "domain": [0, 100]},
                "sex": "quasi",
                "disease": "sensitive",
            },
            5,
            render={"order": "input"},
            other="drop",
            method={"name": "mondrian"},
        )
    )
    plain = shoal.publish(frame, policy)
    shuffled = policy._with(render={"order": "content"})
    release = shoal.publish(frame, shuffled)
    for row in (1, 17, "most-exposed", "most-distorted"):
        known = shoal.attacker_view(release, shuffled, frame, row)
        assert known.unit == "people"
        assert known.people >= 5
        first = shoal.attacker_view(plain, policy, frame, known.row)
        assert first == shoal.attacker_view(plain.data, policy, frame, known.row)
        assert all(learnt.is_possible for learnt in (*known.learnt, *first.learnt))
        by_fit = shoal.attacker_view(release.data, shuffled, frame, known.row)
        assert by_fit.unit == "rows"
        assert by_fit.fitting_classes == known.fitting_classes
    with pytest.raises(shoal.InputError, match="nobody knows which row"):
        shoal.attacker_view(release.data, shuffled, frame)


@pytest.mark.parametrize("row", [0, 7, -1, True, "first", 1.0])
def test_a_row_that_is_not_there_is_refused(row):
    with pytest.raises(shoal.InputError, match="from 1 to 6"):
        shoal.attacker_view(RELEASED, POLICY, ORIGINAL, row)


def test_every_row_is_counted_as_by_a_plain_twin():
    frame = shoal.sample("patients", 200, 5)
    policy = content_of(
        {
            "patient": "subject",
            "age": {"role": "quasi", "type": "number", "domain": [0, 100]},
            "zip": {"role": "quasi", "hierarchy": {"prefix": 5}},
            "disease": "sensitive",
        },
        4,
        render={"order": "input"},
        other="drop",
    )
    release = shoal.publish(frame, policy)
    views = shoal.attacker_views(release.data, policy, frame)
    labels, who = release.classes.tolist(), frame["patient"].to_list()
    ill = frame["disease"].to_list()
    for row in range(0, 200, 9):
        alike = [i for i in range(200) if labels[i] == labels[row]]
        view = views.of_row(row + 1)
        assert view.people == len({who[i] for i in alike})
        counted = {v.value: v.people for v in view.learnt[0].values}
        assert counted == {
            value: len({who[i] for i in alike if ill[i] == value})
            for value in {ill[i] for i in alike}
        }
    chances = []
    for row in range(200):
        learnt = views.of_row(row + 1).learnt[0]
        chances.append(next(v.share for v in learnt.values if v.value == learnt.truth))
    assert chances[views.of_row("most-exposed").row - 1] == max(chances)


def test_the_command_shows_values_on_standard_output_alone(folder, capsys):
    RELEASED.write_csv("r.csv")
    ORIGINAL.write_csv("o.csv")
    (folder / "p.json").write_text(json.dumps(POLICY))
    asked = ["attack", "r.csv", "-p", "p.json", "--original", "o.csv", "--person", "6"]
    before = sorted(folder.iterdir())
    assert status_of(asked) == 0
    shown = capsys.readouterr()
    assert "who looks the same: 3 people" in shown.out
    assert "best guess: flu, right with 66.7 %" in shown.out
    assert "the truth is gout" in shown.out
    assert status_of([*asked, "--json"]) == 0
    view = shoal.attacker_view("r.csv", POLICY, "o.csv", 6).to_dict()
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(view))
    assert sorted(folder.iterdir()) == before
    assert "gout" not in shown.err
