"""Every attack against its plain twin, on small releases whose boxes overlap at random."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_attacks as naive
from shoal.attacks.counts import class_values
from shoal.attacks.ends import Ends, isolated, owned_ends
from shoal.attacks.homogeneity import Homogeneity
from shoal.attacks.intersection import Intersection
from shoal.attacks.linkability import picks
from shoal.attacks.membership import membership_scores
from shoal.attacks.scores import ATTACKERS, Attackers
from shoal.attacks.skewness import Skewness
from shoal.data.attack_scene import (
    AttackScene,
    EarlierRelease,
    People,
    ShownRelease,
    Trial,
)
from shoal.data.boxes import Axis, Boxes
from shoal.data.classes import Classes, SensitiveColumn

AXES = (6, 4)


@st.composite
def scenes(draw, shared=True):
    """A scene, and the same release and people as the twins take them."""
    n = draw(st.integers(1, 12))
    labels = np.array(draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))
    labels = np.unique(labels, return_inverse=True)[1].astype(np.int32)
    points = np.array([[draw(st.integers(0, a - 1)) for a in AXES] for _ in range(n)])
    values = np.array(draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    subjects = None
    if shared and draw(st.booleans()):
        drawn = draw(st.lists(st.integers(0, 6), min_size=n, max_size=n))
        subjects = np.unique(drawn, return_inverse=True)[1].astype(np.int32)
    count = int(labels.max()) + 1
    lo, hi = np.zeros((count, 2), np.int32), np.zeros((count, 2), np.int32)
    for label in range(count):
        for j, size in enumerate(AXES):
            own = points[labels == label, j]
            lo[label, j] = max(own.min() - draw(st.integers(0, 1)), 0)
            hi[label, j] = min(own.max() + draw(st.integers(0, 1)), size - 1)
    persons = np.arange(n) if subjects is None else subjects
    classes = Classes(labels, count, subjects)
    axes = tuple(Axis(f"q{j}", size) for j, size in enumerate(AXES))
    boxes = Boxes(axes, lo, hi, (hi - lo + 1).astype(float), classes.people())
    column = SensitiveColumn("s", values.astype(np.int32), 3)
    release = ShownRelease(boxes, labels, subjects, {"s": column})
    people = People(points.astype(np.int32), {"s": values}, persons, labels)
    scene = AttackScene(1, release, people, (Trial(release, people),), required_k=2)
    plain = [
        (
            [(int(lo[c, j]), int(hi[c, j])) for j in range(2)],
            [(int(persons[i]), int(values[i])) for i in range(n) if labels[i] == c],
        )
        for c in range(count)
    ]
    return scene, plain


def normalised(row):
    return np.array(row) / sum(row)


@settings(max_examples=60, deadline=None)
@given(scenes(), st.tuples(*(st.integers(0, size - 1) for size in AXES)))
def test_attackers_score_as_their_twins(case, point):
    scene, plain = case
    counts = class_values(scene.release, "s")
    found = Attackers.on(scene.release.boxes, counts)._scores(np.array([point], dtype=np.int32))
    truth = [naive.scores(plain, AXES, point, value) for value in range(3)]
    for i, attacker in enumerate(ATTACKERS):
        expected = normalised([row[i] for row in truth])
        assert normalised(found[attacker][0]) == pytest.approx(expected, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(scenes(), st.sampled_from([(0,), (1,), (0, 1)]))
def test_a_list_picks_as_its_twin(case, known):
    scene, plain = case
    people = scene.people
    success, candidates = picks(scene.release.boxes, people.points, people.classes, known)
    for i, point in enumerate(people.points.tolist()):
        expected = naive.picked(plain, point, people.classes[i], known)
        assert (success[i], candidates[i]) == pytest.approx(expected)
    assert success.max() <= 1 / scene.release.boxes.people.min() + 1e-12


@settings(max_examples=60, deadline=None)
@given(scenes(), st.tuples(*(st.integers(0, size - 1) for size in AXES)))
def test_membership_scores_as_its_twin(case, point):
    scene, plain = case
    found = membership_scores(scene.release.boxes, np.array([point], dtype=np.int32))[0]
    assert found == pytest.approx(naive.membership(plain, AXES, point), abs=1e-8)


@settings(max_examples=60, deadline=None)
@given(scenes())
def test_lifts_are_those_of_the_twin(case):
    scene, plain = case
    found = Skewness().run(scene)["s"]
    lifts = naive.lifts(plain)
    assert found["max"] == pytest.approx(max(lift for lift, _ in lifts))
    supported = [lift for lift, count in lifts if count >= 2]
    assert found["supported"] == (pytest.approx(max(supported)) if supported else None)


@settings(max_examples=30, deadline=None)
@given(scenes(shared=False))
def test_the_chance_of_one_value_is_that_of_dealing_values_out(case):
    scene, plain = case
    values = scene.people.values["s"].tolist()
    found = Homogeneity().run(scene)["s"]
    sizes = [len(members) for _, members in plain]
    assert found["chance"]["share"] == pytest.approx(naive.chance_of_one_value(values, sizes))
    alone = sum(len(m) for _, m in plain if len({value for _, value in m}) == 1)
    assert found["people"]["share"] == pytest.approx(alone / len(values))


@settings(max_examples=60, deadline=None)
@given(scenes())
def test_owned_ends_are_those_of_the_twin(case):
    scene, plain = case
    people = scene.people
    points = [
        [
            (int(people.persons[i]), people.points[i].tolist())
            for i in np.flatnonzero(people.classes == label)
        ]
        for label in range(len(plain))
    ]
    for j in range(2):
        found = owned_ends(scene.release.boxes, people, people.classes, [j])
        assert found[:2] == naive.owned(plain, points, j)


@settings(max_examples=60, deadline=None)
@given(scenes(), st.integers(0, 1), st.integers(0, 5))
def test_an_end_isolates_whom_its_twin_isolates(case, j, place):
    scene, plain = case
    people = scene.people
    labels = np.arange(len(plain))
    ends = Ends(labels, np.full(len(labels), j), np.zeros(len(labels), dtype=bool))
    found = isolated(scene.release.boxes, ends, people, np.full(len(labels), place))
    points = list(zip(people.persons.tolist(), people.points.tolist(), strict=True))
    expected = [naive.isolated(cells, j, place, points) for cells, _ in plain]
    assert found.tolist() == expected


@settings(max_examples=60, deadline=None)
@given(scenes(shared=False), st.data())
def test_two_releases_give_away_what_the_twin_finds(case, data):
    scene, _ = case
    n = scene.release.records
    second = np.array(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    earlier = EarlierRelease(second, np.ones(n, dtype=bool), None, "order")
    together = AttackScene(
        1, scene.release, scene.people, scene.trials, earlier=(earlier,), required_k=2
    )
    found = Intersection().run(together)["unlinked"]["attributes"]["s"]
    labels, values = scene.release.labels.tolist(), scene.people.values["s"].tolist()
    expected = naive.unlinked(labels, second.tolist(), values)
    assert (found["certain"]["share"], found["right"]["share"]) == pytest.approx(expected)
