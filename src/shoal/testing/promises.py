"""What every promise must keep, whatever it measures."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from shoal.data.classes import Classes, Population
from shoal.data.sample import Sample
from shoal.errors import InputError
from shoal.protocols import PrivacyModel
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
