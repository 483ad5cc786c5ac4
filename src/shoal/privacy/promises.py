"""All promises of a policy, bound to one table: what a partitioner asks while it works."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from shoal.data.classes import Classes, Population
from shoal.data.closeness import Closeness
from shoal.privacy.feasibility import nearest_feasible
from shoal.privacy.promise import Promise
from shoal.protocols import AnonymityRequirement, PrivacyModel

__all__ = ["BoundPromises", "nearest_feasible"]


class BoundPromises:
    """Promises, asked about any labelling of the records of one table.

    k: the largest number of subjects that some promise can't do without in a class; at least 1.
    template: the table; its labels say which records belong to it at all.
    needs_more_than_k: whether classes of k records may still break something: another promise than
        a count of subjects is asked, or subjects have several records each.

    What refers to the whole table (the distribution that t-closeness compares with) is taken from
    the records that are in a class of the template, whichever of them are labelled later. Promises
    that merging can break, or that are about the release as a whole, are not asked of classes but
    by `release_holds`; those that compare with a population only where it is told what fits a
    class.
    """

    def __init__(self, models: Sequence[PrivacyModel], template: Classes) -> None:
        several_records = _have_several_records(template.subjects)
        # the published cells are not known yet, and a subject's number is all that counting needs
        self.template = replace(
            template, subjects=template.subjects if several_records else None, quasi={}
        )
        asked = [model for model in models if model.monotone and not _of_release(model)]
        self._of_release = [model for model in models if not model.monotone or _of_release(model)]
        for model in asked:
            self.template = getattr(model, "extended", _as_it_is)(self.template)
        self._checks = [
            (
                getattr(model, "population", ""),
                getattr(model, "against", lambda _, m=model: m.holds)(self.template),
            )
            for model in asked
        ]
        self.k = max([1, *(_enough_subjects(model, several_records) for model in models)])
        people_only = all(getattr(model, "counts_people_only", False) for model in asked)
        self.needs_more_than_k = several_records or not people_only
        self._asked = asked
        self._models = tuple(models)

    @cached_property
    def qids(self) -> tuple[AnonymityRequirement, ...]:
        """Every count of people that is asked; no class can do without the people of the last one."""
        asked = [model for model in self._models if getattr(model, "counts_people_only", False)]
        others = [
            model for model in self._models if not getattr(model, "counts_people_only", False)
        ]
        several = self.template.subjects is not None
        least = max([1, *(_least_subjects(model, several) for model in others)])
        counted = [
            AnonymityRequirement(
                tuple(getattr(model, "attributes", ())), _least_subjects(model, several)
            )
            for model in asked
        ]
        return (*counted, *([AnonymityRequirement((), least)] if least > 1 or not counted else []))

    @cached_property
    def relative(self) -> bool:
        """Whether some promise compares a class with all records that are in a class."""
        return any(
            hasattr(model, "against") and type(model).against is not Promise.against
            for model in self._asked
        )

    def restricted_to(self, kept: np.ndarray) -> BoundPromises:
        """The same promises with these records for the whole table."""
        return BoundPromises(
            self._models, replace(self.template, labels=np.where(kept, self.template.labels, -1))
        )

    @property
    def about_release(self) -> bool:
        """Whether some promise is about the release as a whole, or may break where classes that
        keep it merge.
        """
        return bool(self._of_release)

    @property
    def release_checks_are_monotone(self) -> bool:
        """Whether merging classes of a release that holds always gives one that holds."""
        return all(model.monotone for model in self._of_release)

    def release_holds(self, labels: np.ndarray, count: int) -> bool:
        """Whether the promises about the release as a whole hold; labels as for `hold`."""
        classes = _labelled(self.template, labels, count, {}, {})
        return all(bool(model.holds(classes).all()) for model in self._of_release)

    @cached_property
    def closeness(self) -> tuple[Closeness, ...]:
        """What every t-closeness promise asks of each of its attributes."""
        asked = [model for model in self._asked if hasattr(model, "closeness")]
        return tuple(target for model in asked for target in model.closeness(self.template))

    def holds(
        self,
        labels: np.ndarray,
        count: int,
        quasi: Mapping[str, np.ndarray] | None = None,
        population: Mapping[str, Population] | None = None,
    ) -> np.ndarray:
        """For each class 0..count-1, whether every monotone promise holds; (count,) bool.

        labels: (n,) integers, class of each record of the table, -1 for records to leave out. A
        class
        without records holds nothing. quasi: (n,) codes of the cells by attribute, where they are
        known.
        population: by table, the people who fit each class, where that is known.
        """
        classes = _labelled(self.template, labels, count, quasi or {}, population or {})
        result = np.bincount(classes.labels, minlength=count) > 0
        for table, check in self._checks:
            if not table or population:
                result &= check(classes)
        return result


def _as_it_is(table: Classes) -> Classes:
    return table


def _have_several_records(subjects: np.ndarray | None) -> bool:
    return subjects is not None and len(np.unique(subjects)) < len(subjects)


def _of_release(model: PrivacyModel) -> bool:
    return bool(getattr(model, "whole_table", False))


def _least_subjects(model: PrivacyModel, several_records: bool) -> int:
    return int(model.least_subjects(several_records)) if hasattr(model, "least_subjects") else 1


def _enough_subjects(model: PrivacyModel, several_records: bool) -> int:
    if hasattr(model, "enough_subjects"):
        return int(model.enough_subjects(several_records))
    return _least_subjects(model, several_records)


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
    subjects = None if table.subjects is None else table.subjects[kept]
    sensitive = {
        name: replace(column, codes=column.codes[kept]) for name, column in table.sensitive.items()
    }
    shown = {name: codes[kept] for name, codes in quasi.items()}
    return Classes(labels[kept], count, subjects, sensitive, shown, population)
