"""What everything that judges a release must keep: promises, measures, attacks, and makers of the
hierarchies that these go by.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from shoal.data.attack_scene import AttackScene, Axis, Boxes, Findings, People, ShownRelease, Trial
from shoal.data.certificate import Certificate
from shoal.data.classes import Classes, Population, Sample, SensitiveColumn
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.release import Release, is_starred, label_classes, read_columns
from shoal.data.schema import Attribute, Kind, Role, Schema
from shoal.data.table import Table
from shoal.data.true_values import TrueValues
from shoal.errors import InputError
from shoal.protocols import Attack, HierarchyMaker, Metric, PartedMetric, PrivacyModel
from shoal.testing.methods import SECRET, sensitive_column

DISTANCES = ("equal", "ordered", "hierarchical")
ROUNDING = 1e-9
"""How far a measured value may lie on the wrong side of a threshold that is compared exactly."""


def small_classes(
    attributes: Sequence[str],
    distance: str = "equal",
    population: str = "",
    seed: int = 0,
    of_sample: bool = False,
) -> Iterator[Classes]:
    """Small tables in classes, with sensitive columns of these names.

    distance: of the columns, `equal`, `ordered` or `hierarchical`. population: a table that people
    of each class are looked up in. of_sample: whether weights and households are known. Some have
    suppressed records, some have repeated people, each of whom stays in one class.
    """
    rng = np.random.default_rng(seed)
    for records, count in ((1, 1), (6, 2), (12, 3), (40, 4), (41, 8)):
        for has_subjects in (False, True):
            for suppresses in (False, True):
                labels = np.concatenate([np.arange(count), rng.integers(0, count, records - count)])
                subjects = None
                if has_subjects:  # people 0.. in class 0, then those in class 1, and so on
                    within = rng.integers(0, max(1, records // count), records)
                    pairs = labels * records + within
                    subjects = np.unique(pairs, return_inverse=True)[1].astype(np.int32)
                if suppresses:
                    labels[rng.random(records) < 0.1] = -1
                columns = {n: sensitive_column(n, distance, records, rng) for n in attributes}
                classes = Classes(labels.astype(np.int32), count, subjects, columns)
                people = classes.people() + rng.integers(0, 9, count)
                table = {population: Population(people)} if population else {}
                sample = _sample_of(classes, rng) if of_sample else None
                yield replace(classes, population=table, sample=sample)


def _sample_of(classes: Classes, rng: np.random.Generator) -> Sample:
    """A weight and a household for each person, at most three people in each."""
    records = len(classes.labels)
    person = np.arange(records) if classes.subjects is None else classes.subjects
    weights = 1 + rng.exponential(20, records)
    return Sample(weights[person], (person // 3).astype(np.int32))


def check_promise(promise: PrivacyModel, seed: int = 0) -> None:
    """Measures and judges alike, counts people, keeps its word on merging, and shows no value.

    The sensitive columns are tried as categories, as numbers and as leaves of a hierarchy; a
    promise may refuse those it can't measure by an InputError, but not all of them.
    """
    refusals = []
    for distance in DISTANCES:
        try:
            about = promise.population, seed, promise.of_sample
            for classes in small_classes(promise.sensitive, distance, *about):
                _check_on(promise, classes, seed)
        except InputError as refusal:
            _require_no_value(promise, str(refusal))
            refusals.append(str(refusal))
    assert len(refusals) < len(DISTANCES), f"{promise.model}: refuses every column: {refusals[0]}"


def _check_on(promise: PrivacyModel, classes: Classes, seed: int) -> None:
    measured, holds = promise.measure(classes), promise.holds(classes)
    name = promise.model
    assert measured.shape == holds.shape == (classes.count,), f"{name}: one answer for each class"
    assert measured.dtype == np.float64, f"{name}: measures float64"
    assert holds.dtype == bool, f"{name}: holds is bool"
    _check_report(promise, classes, measured, holds)
    _check_records(promise, classes, measured, holds, seed)
    _check_parts(promise, classes, holds)
    _check_merging(promise, classes, holds)
    check_sums(promise, promise.extended(classes), np.random.default_rng(seed))
    whole_table = replace(
        classes, labels=np.where(classes.labels >= 0, 0, -1).astype(np.int32), count=1
    )
    if not promise.population:
        _require_no_value(promise, *promise.nearest(whole_table))
    _require_no_value(promise, *promise.nearest_among(1))


def _check_report(
    promise: PrivacyModel, classes: Classes, measured: np.ndarray, holds: np.ndarray
) -> None:
    """`report`, `worst`, `measure` and `holds` tell the same story."""
    report = promise.report(classes)
    worst = promise.worst(measured)
    assert report["holds"] == bool(holds.all()), f"{promise.model}: report and holds disagree"
    assert report["measured"] == worst, f"{promise.model}: report and worst disagree"
    _require_no_value(promise, json.dumps(report, default=str))
    if worst is not None and holds.all():
        short = promise.asked - worst if promise.higher_is_better else worst - promise.asked
        assert short <= ROUNDING * max(1.0, abs(promise.asked)), (
            f"{promise.model}: holds, though {worst} was measured and {promise.asked} asked"
        )


def _check_records(
    promise: PrivacyModel, classes: Classes, measured: np.ndarray, holds: np.ndarray, seed: int
) -> None:
    """Neither the order of the records nor everybody's records twice change anything."""
    order = np.random.default_rng(seed).permutation(len(classes.labels))
    subjects = np.arange(len(order)) if classes.subjects is None else classes.subjects
    twice = np.concatenate([order, order])
    for rows, what in ((order, "the order of the records"), (twice, "a record that comes twice")):
        again = _taken(replace(classes, subjects=subjects.astype(np.int32)), rows)
        same = np.allclose(promise.measure(again), measured, rtol=ROUNDING, equal_nan=True)
        assert same, f"{promise.model}: {what} changes the measure; count people, not records"
        assert np.array_equal(promise.holds(again), holds), f"{promise.model}: {what} changes it"


def _check_parts(promise: PrivacyModel, classes: Classes, holds: np.ndarray) -> None:
    """An empty class keeps nothing, small ones neither, and `against` the table is `holds`."""
    one_more = replace(classes, count=classes.count + 1, population=_with_nobody(classes))
    assert not promise.holds(one_more)[-1], f"{promise.model}: a class without records holds"
    several = classes.subjects is not None
    few = classes.people() < promise.least_subjects(several)
    assert not (few & holds).any(), f"{promise.model}: fewer than its least_subjects hold"
    if promise.monotone and not promise.whole_table:
        table = promise.extended(classes)
        again = promise.against(table)(table)
        assert np.array_equal(again, holds), f"{promise.model}: against the table it says otherwise"


def check_sums(promise: PrivacyModel, table: Classes, rng: np.random.Generator) -> None:
    """Added up over parts of the classes, whatever parts, it says exactly what it says of all.

    table: as the promise has `extended` it.
    """
    is_whole = promise.of_sample and promise.whole_table  # whose households are in several parts
    if not hasattr(promise, "part") or is_whole or (promise.groups_by and table.quasi):
        return
    of_class = rng.integers(0, 3, table.count)
    # the last place is that of records in no class, which are a part's like all others
    of_record = np.append(of_class, 0)[table.labels]
    parts = [
        promise.part(_part(table, of_record == number, of_class == number), table)
        for number in rng.permutation(3).tolist()
    ]
    total, whole = promise.total(parts), promise.report(table)
    assert total == whole, f"{promise.model}: in parts it says {total}, of the whole {whole}"


def _part(table: Classes, records: np.ndarray, classes: np.ndarray) -> Classes:
    """Some classes of a table. records: (n,) bool, theirs. classes: (count,) bool."""
    number = np.append(np.cumsum(classes) - 1, -1)
    part = _taken(table, np.flatnonzero(records))
    population = {
        name: replace(fits, people=fits.people[classes]) for name, fits in table.population.items()
    }
    labels = number[part.labels].astype(np.int32)
    return replace(part, labels=labels, count=int(classes.sum()), population=population)


def _check_merging(promise: PrivacyModel, classes: Classes, holds: np.ndarray) -> None:
    """Merging keeps a monotone promise: of two classes that hold, or of a release that holds."""
    if not promise.monotone:
        return
    for a in range(classes.count):
        for b in range(a):
            if holds.all() if promise.whole_table else holds[a] and holds[b]:
                assert promise.holds(_merged(classes, a, b))[b], (
                    f"{promise.model}: says it is monotone, and a union of classes breaks it"
                )


def _merged(classes: Classes, a: int, b: int) -> Classes:
    """Class a joined to b < a, the later ones moved up."""
    labels = np.where(classes.labels == a, b, classes.labels)
    labels = np.where(labels > a, labels - 1, labels).astype(np.int32)
    population = {}
    for table, fits in classes.population.items():
        people = fits.people.copy()
        people[b] += people[a]
        population[table] = replace(fits, people=np.delete(people, a))
    return replace(classes, labels=labels, count=classes.count - 1, population=population)


def _taken(classes: Classes, rows: np.ndarray) -> Classes:
    subjects = None if classes.subjects is None else classes.subjects[rows]
    sensitive = {
        name: replace(column, codes=column.codes[rows])
        for name, column in classes.sensitive.items()
    }
    sample = None if classes.sample is None else classes.sample.take(rows)
    labels = classes.labels[rows]
    return replace(classes, labels=labels, subjects=subjects, sensitive=sensitive, sample=sample)


def _with_nobody(classes: Classes) -> dict[str, Population]:
    """The population with one more class that nobody fits."""
    return {
        table: replace(fits, people=np.append(fits.people, 0))
        for table, fits in classes.population.items()
    }


def _require_no_value(promise: PrivacyModel, *texts: str) -> None:
    for text in texts:
        assert SECRET not in text, f"{promise.model}: shows a sensitive value in '{text}'"


# Measures.


def small_releases(seed: int = 0) -> Iterator[Release]:
    """Releases of all kinds: with suppressed records, people, labels and originals, or without."""
    rng = np.random.default_rng(seed)
    for records in (0, 1, 7, 40):
        for share in (0.0, 0.2, 1.0):
            ages = rng.integers(0, 100, records)
            towns = rng.integers(0, 6, records)
            kept = rng.random(records) >= share
            release = _release(ages, towns, kept)
            yield release
            people = np.unique(rng.integers(0, max(1, records // 2), records), return_inverse=True)
            yield replace(
                release,
                classes=replace(release.classes, subjects=people[1].astype(np.int32)),
                required_k=3,
                label=rng.integers(0, 3, records),
                originals={"age": TrueValues.of(ages.astype(np.float64))},
            )


def _release(ages: np.ndarray, towns: np.ndarray, kept: np.ndarray) -> Release:
    """Ages in tens, towns as they are or by region; (n,) each, kept: who is not suppressed."""
    tree = Hierarchy.from_paths([[f"town-{i}", f"region-{i // 3}", "*"] for i in range(6)])
    attributes = (
        Attribute("age", Role.QUASI, Kind.NUMBER, domain=(0.0, 100.0)),
        Attribute("town", Role.QUASI, hierarchy=tree),
    )
    spans = [f"[{a // 10 * 10}, {a // 10 * 10 + 9}]" for a in ages.tolist()]
    places = [f"town-{t}" if t < 3 else f"region-{t // 3}" for t in towns.tolist()]
    cells = {
        name: [text if keep else "*" for text, keep in zip(texts, kept.tolist(), strict=True)]
        for name, texts in (("age", spans), ("town", places))
    }
    frame = pl.DataFrame(cells, schema={"age": pl.String, "town": pl.String})
    columns, findings = read_columns(Table(frame), Schema(attributes))
    assert not findings, findings
    labels, count = label_classes(columns, is_starred(columns, "*"))
    return Release(columns, Classes(labels, count))


def check_metric(metric: Metric, seed: int = 0) -> None:
    """A number or None on every release, the same for any order of the records."""
    rng = np.random.default_rng(seed)
    for release in small_releases(seed):
        score = metric.score(release)
        is_number = isinstance(score, (int, float)) and not isinstance(score, bool)
        assert score is None or is_number, f"{metric.name}: {score!r} is neither a number nor None"
        assert score is None or not np.isnan(score), f"{metric.name}: NaN; None says 'not known'"
        assert metric.score(release) == score, f"{metric.name}: asked twice, it answers differently"
        again = metric.score(_in_order(release, rng.permutation(release.records)))
        same = again == score if score is None or again is None else np.isclose(again, score)
        assert same, f"{metric.name}: the order of the records changes it"
        if isinstance(metric, PartedMetric):
            check_metric_sums(metric, release, rng)


def check_metric_sums(metric: PartedMetric, release: Release, rng: np.random.Generator) -> None:
    """Added up over parts of the classes, whatever parts, it is exactly what it is of all."""
    classes = release.classes
    of_class = np.append(rng.integers(0, 3, classes.count), 0)
    of_record = of_class[classes.labels]
    known = {
        name: replace(values, whole_table=np.bincount(values.codes, minlength=len(values.values)))
        for name, values in release.originals.items()
    }
    parts = []
    for number in rng.permutation(3).tolist():
        part = _in_order(replace(release, originals=known), np.flatnonzero(of_record == number))
        place = np.append(np.cumsum(of_class[:-1] == number) - 1, -1)
        labels = place[part.classes.labels].astype(np.int32)
        count = int((of_class[:-1] == number).sum())
        parts.append(replace(part, classes=replace(part.classes, labels=labels, count=count)))
    total, whole = metric.total([metric.part(part) for part in parts]), metric.score(release)
    assert total == whole, f"{metric.name}: {total} in parts, {whole} of the whole"


def _in_order(release: Release, rows: np.ndarray) -> Release:
    classes = release.classes
    subjects = None if classes.subjects is None else classes.subjects[rows]
    return replace(
        release,
        columns=tuple(replace(column, codes=column.codes[rows]) for column in release.columns),
        classes=replace(classes, labels=classes.labels[rows], subjects=subjects),
        label=None if release.label is None else release.label[rows],
        originals={name: values.take(rows) for name, values in release.originals.items()},
    )


# What every hierarchy maker must keep.


ODD_ARGUMENTS: tuple[Any, ...] = (None, True, -1, 0, 1.5, "", [], {}, [None], {"": None}, [[]])


# Makers of hierarchies.


ODD_VALUES = (f"{SECRET}-0", f" {SECRET}", f"{SECRET};|\t")


def check_hierarchy_maker(
    maker: type[HierarchyMaker], argument: Any, values: Sequence[str], seed: int = 0
) -> Hierarchy:
    """A leaf for every value, the same for any order of them; odd input refused by an InputError.

    argument: what a policy gives the maker. values: texts that its rule has a leaf for. Returns the
    hierarchy of these values.
    """
    kind = maker.kind
    rule = maker.from_spec(argument)
    texts = np.array(list(values), dtype=object)
    unmatched = rule.values_without_leaf(texts)
    assert unmatched.shape == (len(texts),), f"{kind}: says of each value whether it has a leaf"
    assert unmatched.dtype == bool, f"{kind}: values_without_leaf is bool"
    assert not unmatched.any(), f"{kind}: has no leaf for values that were to have one"
    hierarchy = rule.make(texts)
    assert (hierarchy.leaf_codes(texts) >= 0).all(), f"{kind}: a value has no leaf"
    mixed = np.random.default_rng(seed).permutation(len(texts))
    assert rule.make(texts[mixed]) == hierarchy, f"{kind}: the order of the values matters"
    rule.make(texts[:0])
    _check_odd_values(rule, texts)
    for odd in ODD_ARGUMENTS:
        _check_odd_argument(maker, odd)
    return hierarchy


def _check_odd_values(rule: HierarchyMaker, texts: np.ndarray) -> None:
    """A value without a leaf is refused by count, not by name."""
    odd = np.concatenate([texts, np.array(ODD_VALUES, dtype=object)])
    unmatched = rule.values_without_leaf(odd)
    made, message = None, ""
    try:
        made = rule.make(odd)
    except InputError as refusal:
        message = str(refusal)
    assert SECRET not in message, f"{rule.kind}: shows a value in '{message}'"
    assert (made is None) == unmatched.any(), (
        f"{rule.kind}: values_without_leaf and make disagree about which values have a leaf"
    )
    if made is not None:
        assert (made.leaf_codes(odd) >= 0).all(), f"{rule.kind}: a value has no leaf"


def _check_odd_argument(maker: type[HierarchyMaker], argument: Any) -> None:
    try:
        maker.from_spec(argument)
    except InputError:
        pass
    except Exception as broken:
        raise AssertionError(
            f"{maker.kind}: {argument!r} as its argument raises {type(broken).__name__}, not"
            " InputError"
        ) from broken


# Attacks.


AXES = (7, 5)  # values of two quasi-identifiers


def small_scenes(seed: int = 0) -> Iterator[AttackScene]:
    """Scenes of all kinds: one person, several rows a person, suppressed records, with people who
    are not in the release or without, with shuffled rows.
    """
    rng = np.random.default_rng(seed)
    for records in (1, 9, 60):
        for shares_people in (False, True):
            scene = _scene(records, shares_people, rng)
            yield scene
            outsiders = replace(scene.people.take(np.arange(records)), classes=None)
            trial = Trial(scene.release, scene.people, outsiders)
            yield replace(scene, trials=(trial,))
            yield replace(scene, people=replace(scene.people, classes=None))


def _scene(records: int, shares_people: bool, rng: np.random.Generator) -> AttackScene:
    """People in classes whose boxes hold them and may overlap."""
    points = np.column_stack([rng.integers(0, size, records) for size in AXES]).astype(np.int32)
    labels = np.unique(rng.integers(0, 1 + records // 4, records), return_inverse=True)[1]
    labels = labels.reshape(-1).astype(np.int32)
    count = int(labels.max()) + 1
    lo, hi = np.full((count, 2), 99, np.int32), np.full((count, 2), -1, np.int32)
    np.minimum.at(lo, labels, points)
    np.maximum.at(hi, labels, points)
    subjects = None
    if shares_people:
        drawn = rng.integers(0, 1 + records // 2, records)
        subjects = np.unique(drawn, return_inverse=True)[1].reshape(-1).astype(np.int32)
    axes = tuple(Axis(f"q{j}", size) for j, size in enumerate(AXES))
    people = Classes(labels, count, subjects).people()
    boxes = Boxes(axes, lo, hi, (hi - lo + 1).astype(np.float64), people)
    values = rng.integers(0, 3, records)
    column = SensitiveColumn("s", values.astype(np.int32), 3)
    release = ShownRelease(boxes, labels, subjects, {"s": column})
    members = People(points, {"s": values}, release.persons, labels)
    return AttackScene(1, release, members, (Trial(release, members),), required_k=2)


def check_attack(attack: Attack, seed: int = 0) -> None:
    """JSON on every scene that has what the attack needs, the same twice; exact numbers are the
    same for any order of the records, and without people's quasi-identifiers where the attack says
    that it does not use them.
    """
    rng = np.random.default_rng(seed)
    for scene in small_scenes(seed):
        if set(attack.needs) - ({"alignment"} if scene.is_aligned else set()):
            continue
        found = _plain(attack.run(scene))
        text = json.dumps(found, sort_keys=True, allow_nan=False)
        again = json.dumps(_plain(attack.run(scene)), sort_keys=True)
        assert again == text, f"{attack.name}: asked twice, it answers differently"
        moved = _plain(attack.run(_with_rows_moved(scene, rng.permutation(scene.release.records))))
        same = np.allclose(_exact(found), _exact(moved), equal_nan=True)
        assert same, f"{attack.name}: the order of the records changes an exact number"
        if not attack.uses_people:
            blind = _plain(attack.run(_without_people(scene)))
            assert blind == found, f"{attack.name}: it uses people's quasi-identifiers after all"


def _plain(found: Any) -> Findings:
    return dict(Certificate(found))


def _exact(found: Any) -> list[float]:
    """Every share that was counted."""
    if isinstance(found, dict) and found.get("how") == "exact":
        return [np.nan if found["share"] is None else found["share"]]
    below = found.values() if isinstance(found, dict) else found if isinstance(found, list) else ()
    return [number for item in below for number in _exact(item)]


def _without_people(scene: AttackScene) -> AttackScene:
    """The scene as a ledger that keeps no originals gives it: no boxes, no points."""
    none = np.zeros((scene.release.boxes.count, 0), dtype=np.int32)
    people = scene.release.boxes.people
    boxes = Boxes((), none, none, none.astype(np.float64), people)
    release = replace(scene.release, boxes=boxes)
    blind = replace(scene.people, points=scene.people.points[:, :0])
    return replace(
        scene,
        release=release,
        people=blind,
        trials=(Trial(release, blind),),
        no_people="they are left out",
    )


def _with_rows_moved(scene: AttackScene, rows: np.ndarray) -> AttackScene:
    release = scene.release
    moved = replace(
        release,
        labels=release.labels[rows],
        subjects=None if release.subjects is None else release.subjects[rows],
        sensitive={
            name: replace(column, codes=column.codes[rows])
            for name, column in release.sensitive.items()
        },
    )
    # people without a record of their own keep their order
    people = scene.people.take(rows) if scene.is_aligned else scene.people
    if release.subjects is None and scene.is_aligned:
        people = replace(people, persons=np.arange(len(rows)))
    trials = tuple(replace(trial, release=moved, members=people) for trial in scene.trials)
    return replace(scene, release=moved, people=people, trials=trials)
