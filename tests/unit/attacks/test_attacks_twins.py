"""Every attack against its plain twin, on small releases whose boxes overlap at random."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_attacks as naive
from shoal.attacks.counts import class_values
from shoal.attacks.homogeneity import Homogeneity
from shoal.attacks.inference import Inference
from shoal.attacks.intersection import Intersection
from shoal.attacks.linkability import picks
from shoal.attacks.membership import membership_scores
from shoal.attacks.minimality import most_in_small_parts, tightness
from shoal.attacks.population import Population
from shoal.attacks.scores import ATTACKERS, Attackers, covering_pairs, people_fitting
from shoal.attacks.singling_out import Ends, alone, isolated, owned_ends
from shoal.attacks.skewness import LIFTED, Skewness
from shoal.data.attack_scene import (
    AttackScene,
    Axis,
    Boxes,
    EarlierRelease,
    People,
    ShownRelease,
    ShownRows,
    Surroundings,
    Trial,
)
from shoal.data.classes import Classes, SensitiveColumn
from shoal.privacy.reidentification import individual_risk

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


@pytest.mark.parametrize("classes", [1, 63, 64, 65, 130])
def test_all_pairs_of_a_person_and_a_covering_class_are_found_in_order(classes):
    rng = np.random.default_rng(classes)
    ends = np.sort(rng.integers(0, AXES, (2, classes, 2)), axis=0).astype(np.int32)
    axes = tuple(Axis(f"q{j}", size) for j, size in enumerate(AXES))
    boxes = Boxes(axes, *ends, (ends[1] - ends[0] + 1.0), np.ones(classes, dtype=np.int64))
    points = rng.integers(0, AXES, (40, 2)).astype(np.int32)
    cells = [list(zip(lo, hi, strict=True)) for lo, hi in zip(*ends.tolist(), strict=True)]
    for known in ((0, 1), (1,)):
        found = list(covering_pairs(boxes, points, known))
        person, label = (np.concatenate(part) for part in zip(*found, strict=True))
        expected = [
            (i, c)
            for i, point in enumerate(points.tolist())
            for c in range(classes)
            if naive.covers(cells[c], point, known)
        ]
        assert list(zip(person.tolist(), label.tolist(), strict=True)) == expected


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


def rows_of(scene, labels=None):
    """(person, class, value) of every row, as the twins take them."""
    labels = scene.release.labels if labels is None else labels
    persons, values = scene.release.persons.tolist(), scene.people.values["s"].tolist()
    classes = [None if label < 0 else label for label in labels.tolist()]
    return list(zip(persons, classes, values, strict=True))


def with_earlier(scene, labels, how="order"):
    """The scene beside another release of the same rows."""
    rows = ShownRows(labels, scene.release.persons, {"s": scene.people.values["s"]})
    unchanged = np.ones(len(labels), dtype=bool)
    earlier = EarlierRelease(rows, labels, unchanged, None, how)
    return replace(scene, earlier=(*scene.earlier, earlier))


def drawn_labels(data, scene):
    n = scene.release.records
    return np.array(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))


@settings(max_examples=60, deadline=None)
@given(scenes(), st.data())
def test_releases_give_away_what_the_twin_finds_where_rows_do_not_link(case, data):
    scene, _ = case
    others = [drawn_labels(data, scene) for _ in range(data.draw(st.integers(1, 2)))]
    for labels in others:
        scene = with_earlier(scene, labels)
    found = Intersection().run(scene)["unlinked"]["attributes"]["s"]
    own = {}
    for person, _, value in rows_of(scene):
        own.setdefault(person, []).append(value)
    expected = naive.unlinked(rows_of(scene), [rows_of(scene, part) for part in others], own)
    assert (found["certain"]["share"], found["right"]["share"]) == pytest.approx(expected)


@settings(max_examples=60, deadline=None)
@given(scenes(), st.data())
def test_releases_give_away_what_the_twin_finds_where_rows_link(case, data):
    scene, _ = case
    other = drawn_labels(data, scene)
    found = Intersection().run(with_earlier(scene, other))["linked"]
    values = found["attributes"]["s"]
    pairs = zip(rows_of(scene), other.tolist(), strict=True)
    joint = [(person, (label, before), value) for (person, label, value), before in pairs]
    shares = [found["alone"], found["below_k"], values["certain"], values["right"]]
    assert [share["share"] for share in shares] == pytest.approx(naive.linked(joint, 2))


@settings(max_examples=60, deadline=None)
@given(scenes())
def test_counted_guesses_are_those_of_the_twin(case):
    scene, plain = case
    found = Inference().run(scene)["s"]
    names = ("baseline", "class", "certain", "certain_right")
    expected = naive.guesses(plain)
    for name, share in zip(names, expected, strict=True):
        assert found[name]["share"] == (share if share is None else pytest.approx(share)), name


@settings(max_examples=60, deadline=None)
@given(scenes())
def test_shares_of_people_count_people(case):
    scene, plain = case
    everybody = len(naive.everybody_in(plain))
    rare, one = Skewness().run(scene)["s"]["lifted"], Homogeneity().run(scene)["s"]["people"]
    by_value = alone(scene.release)["s"]
    assert rare["of"] == one["of"] == by_value["of"] == everybody
    assert rare["share"] == pytest.approx(naive.lifted(plain, LIFTED))
    assert by_value["share"] == pytest.approx(naive.alone_with(plain))
    homogeneous = naive.in_such(plain, lambda members, _: len({v for _, v in members}) == 1)
    assert one["share"] == pytest.approx(homogeneous)


@settings(max_examples=60, deadline=None)
@given(scenes(), st.lists(st.tuples(*(st.integers(0, a - 1) for a in AXES)), max_size=30))
def test_a_population_fits_as_its_twin(case, crowd):
    scene, plain = case
    points = np.array(crowd, dtype=np.int32).reshape(-1, len(AXES))
    around = Surroundings("table", (0, 1), points, np.ones(len(crowd)))
    expected = naive.fitting(plain, crowd)
    assert people_fitting(scene.release.boxes, around).tolist() == expected
    found = Population().run(replace(scene, surroundings=around))
    sizes = [naive.people(members) for _, members in plain]
    if any(fits < size for fits, size in zip(expected, sizes, strict=True)):
        assert found["marketer"] is None
        return
    shares = [size / fits for fits, size in zip(expected, sizes, strict=True)]
    assert found["journalist_max"]["share"] == pytest.approx(1 / min(expected))
    assert found["marketer"]["share"] == pytest.approx(sum(shares) / sum(sizes))


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 30), st.sampled_from([0.2, 0.5, 0.9, 1.0]))
def test_the_expected_inverse_is_the_sum_of_its_terms(people, fraction):
    found = individual_risk(np.array([people]), np.array([people / fraction]))[0]
    assert found == pytest.approx(naive.expected_inverse(people, fraction), rel=1e-6)


@settings(max_examples=60, deadline=None)
@given(scenes())
def test_tight_cells_imply_what_the_twin_finds(case):
    scene, plain = case
    points = [
        scene.people.points[scene.people.classes == label].tolist() for label in range(len(plain))
    ]
    implied, false, cells = np.sum([naive.tight_ends(plain, points, j) for j in range(2)], axis=0)
    found = tightness(scene)
    assert found["false"] == false
    if false:
        assert found["implied"] is None
    else:
        assert found["implied"]["share"] == (pytest.approx(implied / cells) if cells else None)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 4), st.integers(0, 6), st.integers(1, 3))
def test_so_many_can_at_most_stand_in_small_parts(k, more, parts):
    people = k + more
    found = most_in_small_parts(np.array([people]), np.array([parts]), k)[0]
    assert found == naive.most_in_small_parts(people, parts, k)
