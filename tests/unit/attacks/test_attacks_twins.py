"""Every attack against its plain twin, on small releases whose boxes overlap at random."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive_attacks as naive
from shoal.attacks.counts import class_values, values_by_class
from shoal.attacks.homogeneity import Homogeneity
from shoal.attacks.inference import Inference, _window
from shoal.attacks.intersection import Intersection
from shoal.attacks.linkability import picks
from shoal.attacks.membership import membership_scores
from shoal.attacks.minimality import most_in_small_parts, tightness
from shoal.attacks.order import _by_chance
from shoal.attacks.population import Population
from shoal.attacks.scores import ATTACKERS, Attackers, Near, covering_pairs, people_fitting
from shoal.attacks.singling_out import Ends, alone, isolated, owned_ends
from shoal.attacks.skewness import LIFTED, Skewness
from shoal.auditor.reading import nearest_to_place
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


POINTS = st.tuples(*(st.integers(0, size - 1) for size in AXES))


@given(scenes(), POINTS)
def test_attackers_and_membership_score_as_their_twins(case, point):
    scene, plain = case
    boxes, points = scene.release.boxes, np.array([point], dtype=np.int32)
    found = Attackers.on(boxes, class_values(scene.release, "s"))._scores(points)
    truth = [naive.scores(plain, AXES, point, value) for value in range(3)]
    for i, attacker in enumerate(ATTACKERS):
        expected = normalised([row[i] for row in truth])
        assert normalised(found[attacker][0]) == pytest.approx(expected, abs=1e-9)
    member = membership_scores(boxes, points)[0]
    assert member == pytest.approx(naive.membership(plain, AXES, point), abs=1e-8)


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


@given(scenes())
def test_counted_figures_are_those_of_the_twins_and_count_people(case):
    scene, plain = case
    everybody = len(naive.everybody_in(plain))
    rare = Skewness().run(scene)["s"]
    lifts = naive.lifts(plain)
    assert rare["max"] == pytest.approx(max(lift for lift, _ in lifts))
    supported = [lift for lift, count in lifts if count >= 2]
    assert rare["supported"] == (pytest.approx(max(supported)) if supported else None)
    same = naive.in_such(plain, lambda members, _: len({value for _, value in members}) == 1)
    for found, expected in (
        (rare["lifted"], naive.lifted(plain, LIFTED)),
        (Homogeneity().run(scene)["s"]["people"], same),
        (alone(scene.release)["s"], naive.alone_with(plain)),
    ):
        assert (found["of"], found["share"]) == (everybody, pytest.approx(expected))
    guessed = Inference().run(scene)["s"]
    names = ("baseline", "class", "certain", "certain_right")
    for name, share in zip(names, naive.guesses(plain), strict=True):
        assert guessed[name]["share"] == (share if share is None else pytest.approx(share)), name


@given(scenes(shared=False))
def test_the_chance_of_one_value_is_that_of_dealing_values_out(case):
    scene, plain = case
    values = scene.people.values["s"].tolist()
    found = Homogeneity().run(scene)["s"]
    sizes = [len(members) for _, members in plain]
    assert found["chance"]["share"] == pytest.approx(naive.chance_of_one_value(values, sizes))
    alone = sum(len(m) for _, m in plain if len({value for _, value in m}) == 1)
    assert found["people"]["share"] == pytest.approx(alone / len(values))


@given(scenes(), st.integers(0, 1), st.integers(0, 5))
def test_ends_are_owned_by_and_isolate_whom_their_twins_say(case, j, place):
    scene, plain = case
    people, boxes = scene.people, scene.release.boxes
    points = list(zip(people.persons.tolist(), people.points.tolist(), strict=True))
    labels = np.arange(len(plain))
    members = [[points[i] for i in np.flatnonzero(people.classes == label)] for label in labels]
    assert owned_ends(boxes, people, people.classes, [j])[:2] == naive.owned(plain, members, j)
    ends = Ends(labels, np.full(len(labels), j), np.zeros(len(labels), dtype=bool))
    found = isolated(boxes, ends, people, np.full(len(labels), place))
    assert found.tolist() == [naive.isolated(cells, j, place, points) for cells, _ in plain]


def rows_of(scene, labels=None):
    """(person, class, value) of every row, as the twins take them."""
    labels = scene.release.labels if labels is None else labels
    persons, values = scene.release.persons.tolist(), scene.people.values["s"].tolist()
    classes = [None if label < 0 else label for label in labels.tolist()]
    return list(zip(persons, classes, values, strict=True))


def with_earlier(scene, labels):
    """The scene beside another release of the same rows."""
    rows = ShownRows(labels, scene.release.persons, {"s": scene.people.values["s"]})
    unchanged = np.ones(len(labels), dtype=bool)
    earlier = EarlierRelease(rows, labels, unchanged, None, "order")
    return replace(scene, earlier=(*scene.earlier, earlier))


def drawn_labels(data, scene):
    n = scene.release.records
    return np.array(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))


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


@given(scenes(), st.lists(POINTS, max_size=30))
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


@given(st.integers(2, 4), st.integers(0, 6), st.integers(1, 3))
def test_so_many_can_at_most_stand_in_small_parts(k, more, parts):
    people = k + more
    found = most_in_small_parts(np.array([people]), np.array([parts]), k)[0]
    assert found == naive.most_in_small_parts(people, parts, k)


@given(st.data())
def test_a_row_is_found_that_no_other_of_its_class_is_as_near_to_its_place_as(data):
    n = data.draw(st.integers(1, 30))
    labels = data.draw(st.lists(st.integers(-1, 4), min_size=n, max_size=n))
    place = data.draw(st.lists(st.integers(0, 2 * n), min_size=n, max_size=n))

    def is_found(row):
        rivals = [other for other in range(n) if labels[other] == labels[row] and other != row]
        own = abs(row - place[row] / 2)
        return labels[row] >= 0 and all(own < abs(other - place[row] / 2) for other in rivals)

    found = nearest_to_place(np.array(labels), np.array(place) / 2)
    assert found.tolist() == [is_found(row) for row in range(n)]


@given(st.data())
def test_a_guess_of_a_number_is_counted_once_for_each_person(data):
    n = data.draw(st.integers(1, 14))
    numbers = st.lists(st.integers(0, 2), min_size=n, max_size=n)
    label, persons = (np.array(data.draw(numbers)) for _ in range(2))
    values = np.array(data.draw(st.lists(st.integers(0, 5), min_size=n, max_size=n)))
    reach = data.draw(st.integers(0, 3))
    known = np.arange(6)
    near = Near(np.maximum(known - reach, 0), np.minimum(known + reach, 5) + 1, float(reach))
    counts = values_by_class(label, values, persons, 3)
    counts = replace(counts, totals=np.zeros(6, dtype=np.int64))
    most, _ = _window(counts, label, values, persons, near)
    for of in range(3):
        held = [(v, p) for c, v, p in zip(label, values, persons, strict=True) if c == of]
        people = [len({p for v, p in held if abs(v - guess) <= reach}) for guess in known]
        assert most[of] == max(people)


@given(st.lists(st.tuples(st.integers(-1, 2), st.integers(0, 4)), min_size=1, max_size=8))
def test_who_is_found_by_drawing_a_row_of_each_class(rows):
    label, person = (np.array(of) for of in zip(*rows, strict=True))
    classes = [person[label == of] for of in range(3) if (label == of).any()]
    if not classes:
        return
    drawn = [len(set(one)) for one in product(*classes)]
    share = np.mean(drawn) / len(np.unique(np.concatenate(classes)))
    assert _by_chance(label, person) == pytest.approx(share)
