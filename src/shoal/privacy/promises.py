"""All promises of a policy, bound to one table: what a method asks while it works."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from shoal.data.classes import Classes, Closeness, Population, Sample, SensitiveColumn
from shoal.data.room import needs_whole
from shoal.privacy.class_sizes import SampleUniqueness
from shoal.privacy.k_anonymity import KAnonymity
from shoal.protocols import AnonymityRequirement, PrivacyModel, Promises, PromiseTerms


class BoundPromises(Promises):
    """Promises, asked about any labelling of the records of one table.

    k: the largest number of subjects that some promise can't do without in a class; at least 1.
    template: the table; its labels say which records belong to it at all.
    needs_more_than_k: whether classes of k records may still break something: another promise than
        a count of subjects is asked, or subjects have several records each.

    What refers to the whole table (the distribution that t-closeness compares with) is taken from
    the records that are in a class of the template, whichever of them are labelled later. Promises
    that merging can break, or that are about the release as a whole, are not checked in classes but
    by `release_holds`; those that compare with a population only where the caller says what fits a
    class.
    """

    def __init__(self, models: Sequence[PrivacyModel], template: Classes) -> None:
        several_records = _have_several_records(template.subjects)
        # the published cells are not known yet, and a subject's number is all that counting needs
        self.template = replace(
            template, subjects=template.subjects if several_records else None, quasi={}
        )
        self._models = tuple(models)
        self._asked = [model for model in models if _is_about_classes(model)]
        self._of_release = [model for model in models if not _is_about_classes(model)]
        for model in self._asked:
            self.template = model.extended(self.template)
        self._checks = [(model.population, model.against(self.template)) for model in self._asked]
        self.k = max([1, *(model.enough_among(self.template) for model in models)])
        people_only = all(model.counts_people_only for model in self._asked)
        self.needs_more_than_k = several_records or not people_only

    @cached_property
    def terms(self) -> tuple[PromiseTerms, ...]:
        """What each promise asks, in the order of the policy."""
        return terms_of(self._models)

    @property
    def sensitive(self) -> Mapping[str, SensitiveColumn]:
        """The sensitive columns by name; their `codes` are aligned with the records."""
        # methods compare values, and a second text for no value must not add another
        whole = self.template.sensitive.items()
        return {name: column.with_missing_as_one() for name, column in whole}

    @property
    def sample(self) -> Sample | None:
        """Whom the records stand for; None where the policy names no weight."""
        return self.template.sample

    @cached_property
    def qids(self) -> tuple[AnonymityRequirement, ...]:
        """Every count of people that is asked for; the last one holds for every class."""
        several = self.template.subjects is not None
        others = [model for model in self._models if not model.counts_people_only]
        least = max([1, *(model.least_subjects(several) for model in others)])
        counted = [
            AnonymityRequirement(model.attributes, model.least_subjects(several))
            for model in self._models
            if model.counts_people_only
        ]
        return (*counted, *([AnonymityRequirement((), least)] if least > 1 or not counted else []))

    @cached_property
    def relative(self) -> bool:
        """Whether some promise compares a class with all records that are in a class."""
        return any(
            model.compares_with_table and not model.compares_with_input for model in self._asked
        )

    def restricted_to(self, kept: np.ndarray) -> "BoundPromises":
        """The promises with these records for the whole table."""
        return BoundPromises(
            self._models, replace(self.template, labels=np.where(kept, self.template.labels, -1))
        )

    def of_classes(self, k: int) -> "BoundPromises":
        """What is asked of each class, with at least k people, and nothing about the release."""
        return BoundPromises([*([KAnonymity(k)] if k > 1 else []), *self._asked], self.template)

    @property
    def about_release(self) -> bool:
        """Whether some promise is about the release as a whole, or merging classes may break it."""
        return bool(self._of_release)

    @property
    def release_checks_are_monotone(self) -> bool:
        """Whether `release_holds` stays true when classes are merged."""
        return all(model.monotone for model in self._of_release)

    def release_holds(self, labels: np.ndarray, count: int) -> bool:
        """Whether the promises about the release as a whole hold; labels as for `holds`."""
        classes = _labelled(self.template, labels, count, {}, {})
        return all(bool(model.holds(classes).all()) for model in self._of_release)

    @property
    def about_lone_records(self) -> bool:
        """Whether `release_holds` asks nothing but how many records are alone in their class."""
        asks = all(isinstance(model, SampleUniqueness) for model in self._of_release)
        return asks and self.template.subjects is None

    @cached_property
    def closeness(self) -> tuple[Closeness, ...]:
        """What every t-closeness promise asks of each of its attributes."""
        return tuple(asked for model in self._asked for asked in model.closeness(self.template))

    def holds(
        self,
        labels: np.ndarray,
        count: int,
        quasi: Mapping[str, np.ndarray] | None = None,
        population: Mapping[str, Population] | None = None,
    ) -> np.ndarray:
        """For each class 0..count-1, whether every monotone promise holds; (count,) bool.

        labels: (n,) integers, class of each record of the table, -1 for records to leave out. A
        class without records holds nothing.
        quasi: (n,) codes of the cells by attribute, where they are known.
        population: by table, the people who fit each class, where that is known.
        """
        return self._hold(
            _labelled(self.template, labels, count, quasi or {}, population or {}), population
        )

    def holds_among(self, records: np.ndarray, labels: np.ndarray, count: int) -> np.ndarray:
        """`holds` for groups that may share records. records: (m,) the record of each label."""
        subjects = self.template.subjects
        shared = self.template.only(records, None if subjects is None else subjects[records])
        return self._hold(replace(shared, labels=labels, count=count))

    def _hold(
        self, classes: Classes, population: Mapping[str, Population] | None = None
    ) -> np.ndarray:
        result = np.bincount(classes.labels, minlength=classes.count) > 0
        for table, check in self._checks:
            if not table or population:
                result &= check(classes)
        return result


class CountedRows(BoundPromises):
    """Counts of people and nothing else, for a table of which each row stands for many records.

    What a method does not read off `k` and `qids` needs the records.
    """

    def holds(
        self,
        labels: np.ndarray,
        count: int,
        quasi: Mapping[str, np.ndarray] | None = None,
        population: Mapping[str, Population] | None = None,
    ) -> np.ndarray:
        raise needs_whole("the method asks more of its classes than how many they are")

    def restricted_to(self, kept: np.ndarray) -> "CountedRows":
        return CountedRows(
            self._models, replace(self.template, labels=np.where(kept, self.template.labels, -1))
        )


def terms_of(models: Sequence[PrivacyModel]) -> tuple[PromiseTerms, ...]:
    """What each promise asks, for methods."""
    return tuple(PromiseTerms(model.model, model.sensitive, model.parameters) for model in models)


def _is_about_classes(model: PrivacyModel) -> bool:
    """Whether it is checked in each class while a method works, and merging classes keeps it."""
    return model.monotone and not model.whole_table


def _have_several_records(subjects: np.ndarray | None) -> bool:
    return subjects is not None and len(np.unique(subjects)) < len(subjects)


def _labelled(
    table: Classes,
    labels: np.ndarray,
    count: int,
    quasi: Mapping[str, np.ndarray],
    population: Mapping[str, Population],
) -> Classes:
    """The labelled records only, as classes."""
    kept = np.flatnonzero(labels >= 0)
    if len(kept) == len(labels):
        return replace(table, labels=labels, count=count, quasi=quasi, population=population)
    classes = replace(table, labels=labels, count=count, quasi=quasi)
    subjects = None if table.subjects is None else table.subjects[kept]
    return replace(classes.only(kept, subjects), population=population)


# Which promises no release of a table can keep, and the nearest that one could.


def infeasible_promises(
    models: Sequence[PrivacyModel], classes: Classes, population: Mapping[str, int] | None = None
) -> list[str]:
    """A finding for every promise that fails when the whole table is one class; empty if all hold.

    All records that are in a class of `classes` are put into one. A monotone promise that fails
    there fails in every other way to divide the same people, too. No finding names a value of the
    data.
    population: how many people each table of a population has, where that is known.
    """
    labels = np.where(classes.labels >= 0, np.int32(0), np.int32(-1))
    whole_table = replace(classes, labels=labels, count=1, quasi={})
    findings: list[str] = []
    for model in models:
        if model.population:
            # who would fit the one class is not known here, but the population bounds it
            people = (population or {}).get(model.population)
            findings += model.nearest_among(people) if people is not None else []
        elif model.monotone and not model.holds(whole_table)[0]:
            findings += model.nearest(whole_table) or [
                f"promise '{model.model}': fails even with everybody in one class; relax it"
            ]
    return findings
