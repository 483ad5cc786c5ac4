"""What every promise of this folder answers, whatever it measures."""

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, replace
from fractions import Fraction
from inspect import formatannotation
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, cast

import numpy as np

from shoal.data.certificate_shape import PromiseReport
from shoal.data.classes import Classes, Closeness
from shoal.errors import InputError

INPUT = "input"
"""Compared with all records of the input, the suppressed ones, too."""

Settings: TypeAlias = Mapping[str, str | float]


@dataclass(frozen=True)
class Judgement:
    """What a promise found on some of the classes of a release; judgements add up.

    worst: the measured value that decides among them, None where there is no class. holds: whether
    it holds in all of them. more: what else the promise adds up. valued: as `worst`, without the
    records that have no value of a sensitive attribute; None where every record has one.
    with_missing: whether "no value" is one of the values that are compared with the table's.
    """

    worst: float | None
    holds: bool
    more: Any = None
    valued: float | None = None
    with_missing: bool = False


class Promise(ABC):
    """A privacy model with its parameters; a frozen dataclass derives from it.

    `judge` and `letter`, or `asked`, are what a promise must say; the rest has a default that is
    right for a promise about each class alone. A class without records keeps no promise: whoever
    splits off nobody has not hidden anybody.
    """

    model: ClassVar[str]
    letter: ClassVar[str]
    """The parameter that is the threshold."""

    source: ClassVar[str]
    definition: ClassVar[str]
    monotone: ClassVar[bool]
    """Whether a union of classes that hold always holds, for classes that share no subject."""

    higher_is_better: ClassVar[bool]
    counts_people_only: ClassVar[bool] = False
    """Whether nothing is asked but `least_subjects` in every class."""

    whole_table: ClassVar[bool] = False
    """Whether it is about the release as a whole, so that no class keeps or breaks it alone.

    Then `monotone` means that merging classes of a release that holds gives one that holds.
    """

    of_sample: ClassVar[bool] = False
    """Whether it needs to know whom the records stand for, by the weights of the original."""

    states: ClassVar[tuple[str, ...]] = ()
    """The parameters that a certificate always states besides `asked`."""

    states_if_chosen: ClassVar[tuple[str, ...]] = ()
    """Those that it states where they differ from their defaults."""

    population: str = ""
    """The table of the population that classes are compared with; none for most promises."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    if TYPE_CHECKING:  # a field or a property of each promise; one here would hide the fields

        @property
        def attributes(self) -> tuple[str, ...]:
            """The attributes that the promise is about, as a certificate lists them."""

    def __post_init__(self) -> None:
        """Takes every parameter that is of its type and within its bounds; raises InputError."""
        for one in fields(self):
            object.__setattr__(self, one.name, _taken(self, one))

    @abstractmethod
    def judge(self, classes: Classes) -> tuple[np.ndarray, np.ndarray]:
        """Measured value and whether it holds, for every class; (count,) float64 and bool."""

    @property
    def asked(self) -> float:
        """The threshold, in the unit of `measure`."""
        return getattr(self, self.letter)

    @property
    def sensitive(self) -> tuple[str, ...]:
        """The sensitive attributes whose values it needs."""
        return self.attributes

    @property
    def designated(self) -> tuple[str, ...]:
        """The sensitive values that it protects; empty where it protects all of them."""
        return ()

    @property
    def parameters(self) -> dict[str, Any]:
        """Every parameter by name, defaults included."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def settings(self) -> Settings:
        """Parameters that a certificate states besides `asked`."""
        given, default = self.parameters, {field.name: field.default for field in fields(self)}
        chosen = (name for name in self.states_if_chosen if given[name] != default[name])
        return {name: given[name] for name in (*self.states, *chosen)}

    @property
    def compares_with_table(self) -> bool:
        """Whether it compares a class with the whole table, as `against` says."""
        return type(self).against is not Promise.against

    @property
    def survives_additions(self) -> bool:
        """Whether one more member never breaks it in a class: it counts, and compares no shares."""
        return self.counts_people_only

    @property
    def compares_with_input(self) -> bool:
        """Whether suppressed records count in what a class is compared with."""
        return getattr(self, "reference", None) == INPUT

    def measure(self, classes: Classes) -> np.ndarray:
        """The measured value of every class, (count,) float64."""
        return self.judge(classes)[0]

    def holds(self, classes: Classes) -> np.ndarray:
        """Whether the promise holds in every class, compared exactly; (count,) bool."""
        return self.judge(classes)[1]

    def extended(self, table: Classes) -> Classes:
        """The table with whatever else about its records the promise compares."""
        return table

    def against(self, table: Classes) -> Callable[[Classes], np.ndarray]:
        """`holds` for classes of a part of this `extended` table, compared with the whole."""
        return self.holds

    def judged_against(self, table: Classes, classes: Classes) -> tuple[np.ndarray, np.ndarray]:
        """What `judge` finds of some of a table's classes, compared with the whole table."""
        return self.judge(classes)

    def closeness(self, table: Classes) -> tuple[Closeness, ...]:
        """The terms for each attribute, for methods that build classes towards it."""
        return ()

    def least_subjects(self, several_records: bool) -> int:
        """The number of subjects that no class can do without.

        several_records: whether a subject may have several records, and so several sensitive
        values.
        """
        return 1

    def enough_subjects(self, several_records: bool) -> int:
        """Subjects in every class that are enough for a promise about the whole.

        For methods that can't ask it.
        """
        return self.least_subjects(several_records)

    def enough_among(self, table: Classes) -> int:
        """`enough_subjects` for classes of this table, which has subjects where some have several
        records.
        """
        return self.enough_subjects(table.subjects is not None)

    def nearest(self, whole_table: Classes) -> list[str]:
        """Why the promise fails even when the whole table is one class, and what would hold."""
        return []

    def nearest_among(self, people: int) -> list[str]:
        """Why it fails in a population of this size; empty where it may hold."""
        return []

    def worst(self, measured: np.ndarray) -> float | None:
        """The measured value that decides; None where there is no class."""
        known = measured[~np.isnan(measured)]
        if not len(known):
            return None
        number = float(known.min() if self.higher_is_better else known.max())
        return int(number) if isinstance(self.asked, int) and number.is_integer() else number

    @property
    def works_in_parts(self) -> bool:
        """Whether `part` and `total` tell what `report` does where no table is held as a whole."""
        alone = not self.population and not self.compares_with_input
        return alone and type(self).report is Promise.report

    @property
    def groups_by(self) -> tuple[str, ...]:
        """The quasi-identifiers whose equal cells make its classes; none means all."""
        return ()

    def part(self, classes: Classes, table: Classes) -> Judgement:
        """What it finds on some of the classes of a table; each class is in one part, whole."""
        found = self._judgement(*self.judged_against(table, classes))
        names = self.sensitive if self.compares_with_table else ()
        return replace(found, with_missing=any(classes.lacks_values(name) for name in names))

    def total(self, parts: Sequence[Judgement]) -> PromiseReport:
        """The promise as a certificate states it, by the judgements on all parts, in any order."""
        known = [part.worst for part in parts if part.worst is not None]
        report = self.stated(
            self.worst(np.array(known, dtype=np.float64)), all(part.holds for part in parts)
        )
        if any(part.with_missing for part in parts):
            report["measured_with_missing"] = True
        return report

    def report(self, classes: Classes) -> PromiseReport:
        """The promise as a certificate states it."""
        return self.total([self.part(classes, classes)])

    def _judgement(self, measured: np.ndarray, holds: np.ndarray, more: Any = None) -> Judgement:
        return Judgement(self.worst(measured), bool(holds.all()), more)

    def stated(self, measured: float | None, holds: bool | None) -> PromiseReport:
        """What was judged, as a certificate states it."""
        stated = {
            "model": self.model,
            "attributes": list(self.attributes),
            **self.settings,
            "asked": self.asked,
            "measured": measured,
            "holds": holds,
        }
        return cast(PromiseReport, stated)


class GreatestShare(Promise):
    """No part of a class is more than a share of it, which `letter` names.

    A union of classes that hold holds: a part's share of it is at most the largest of their shares.
    """

    monotone: ClassVar[bool] = True
    higher_is_better: ClassVar[bool] = False
    too_much: ClassVar[str]
    """What is said of a table whose greatest part is more than the share of it."""

    @abstractmethod
    def greatest(self, classes: Classes) -> tuple[np.ndarray, np.ndarray]:
        """The greatest part of every class, and all of it; (count,) int64 both."""

    def judge(self, classes: Classes) -> tuple[np.ndarray, np.ndarray]:
        part, whole = self.greatest(classes)
        with np.errstate(invalid="ignore"):
            measured = part / whole
        return measured, (sign(part, whole, as_written(self.asked)) <= 0) & (whole > 0)

    def nearest(self, whole_table: Classes) -> list[str]:
        part, whole = (int(found[0]) for found in self.greatest(whole_table))
        if not whole or part <= as_written(self.asked) * whole:
            return []
        about = "".join(f" on '{name}'" for name in self.attributes)
        least = -(-part * 10**6 // whole) / 10**6
        return [
            f"promise '{self.model}'{about}: {self.letter} = {self.asked} asked, {self.too_much};"
            f" the nearest that holds is {self.letter} = {least}"
        ]


# What a promise may be asked with, refused early and in words.


def _taken(promise: Promise, asked: Field[Any]) -> Any:
    """A parameter as it is kept: a number, a word, the name of one column or of several."""
    given, bounds = (promise.model, asked.name, getattr(promise, asked.name)), asked.metadata
    # text, or a type itself where the file of a plug-in has its annotations evaluated
    kind = asked.type if isinstance(asked.type, str) else formatannotation(asked.type)
    if kind == "int" and "low" in bounds:
        return whole(*given, bounds["low"])
    if kind == "float" and "low" in bounds:
        return decimal(*given, bounds["low"], bounds.get("high", math.inf), "above" in bounds)
    if kind == "bool":
        return bool(given[-1])
    if "choices" in bounds:
        return choice(*given, bounds["choices"])
    if kind == "tuple[str, ...]":
        return names(*given, required=asked.default is MISSING)
    return one_name(*given) if asked.name in ("attribute", "population") else given[-1]


def whole(model: str, name: str, given: object, low: int) -> int:
    """A whole number of at least `low`; booleans and fractions are refused, 3.0 included."""
    unfit = _unfit(model, name, f"be a whole number of at least {low}")
    try:
        number = operator.index(given)  # type: ignore[arg-type]
    except TypeError:
        raise unfit from None
    if isinstance(given, bool) or number < low:
        raise unfit
    return number


def decimal(
    model: str, name: str, given: object, low: float, high: float, above: bool = False
) -> float:
    """A finite number from `low` to `high`, or strictly above `low`."""
    number = float(given) if _is_number(given) else math.nan  # type: ignore[arg-type]
    if not (math.isfinite(number) and low <= number <= high and not (above and number == low)):
        start = f"above {low:g}" if above else f"at least {low:g}"
        end = f" and at most {high:g}" if math.isfinite(high) else ""
        raise _unfit(model, name, f"be a number {start}{end}")
    return number


def as_written(number: float) -> Fraction:
    """The decimal that a person wrote: 0.15 is 15/100, not the nearest binary fraction."""
    return Fraction(str(number))


def names(model: str, name: str, given: object, required: bool = True) -> tuple[str, ...]:
    """Attribute names as a tuple; one name alone may stand without a list."""
    listed = (given,) if isinstance(given, str) else given
    if not isinstance(listed, Iterable) or not all(
        isinstance(entry, str) and entry for entry in listed
    ):
        raise _unfit(model, name, "list attribute names")
    found = tuple(listed)
    if required and not found:
        raise InputError(f"promise '{model}': {name} names no attribute; name at least one")
    if len(set(found)) < len(found):
        raise InputError(f"promise '{model}': {name} names an attribute twice; name it once")
    return found


def one_name(model: str, name: str, given: object) -> str:
    """The name of one attribute."""
    if not isinstance(given, str) or not given:
        raise _unfit(model, name, "be one attribute's name")
    return given


def choice(model: str, name: str, given: object, choices: Sequence[str]) -> str:
    """One of a few words."""
    if given not in choices:
        raise _unfit(model, name, f"be one of {', '.join(choices)}")
    return str(given)


def _unfit(model: str, name: str, must: str) -> InputError:
    return InputError(f"promise '{model}': {name} must {must}; correct it in the policy")


def _is_number(given: object) -> bool:
    return hasattr(given, "__float__") and not isinstance(given, (bool, str))


# Comparisons at a threshold, without rounding.


ROOM = 2**62
"""Integers below this never overflow int64 when two of them are added."""

NEARLY = 1e-9
"""Values closer to a threshold than this are compared with exact integers."""


def sign(left: np.ndarray, right: np.ndarray, factor: Fraction) -> np.ndarray:
    """-1, 0 or 1 where left is below, equal to or above factor * right, elementwise; (m,) int8.

    left, right: (m,) whole numbers >= 0, int64 or Python integers (object). Exact in all cases: the
    products are 64-bit integers where they fit, else Python integers wherever floats can't tell.
    """
    if not len(left):
        return np.zeros(0, dtype=np.int8)
    p, q = factor.numerator, factor.denominator
    most = max(q * max(int(left.max()), 1), p * max(int(right.max()), 1))
    fits = left.dtype != object and most < ROOM
    if fits:
        return np.sign(left * q - right * p).astype(np.int8)
    lower, upper = left.astype(np.float64), right.astype(np.float64) * float(factor)
    result = np.sign(lower - upper).astype(np.int8)
    for i in np.flatnonzero(np.abs(lower - upper) <= NEARLY * np.maximum(lower, upper)):
        difference = q * int(left[i]) - p * int(right[i])
        result[i] = (difference > 0) - (difference < 0)
    return result
