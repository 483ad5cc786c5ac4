"""Dates and time stamps in calendar periods."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

import numpy as np

from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.hierarchies.paths import refuse_values_without_leaf
from shoal.data.option import parameter
from shoal.errors import InputError

# Each period lies inside the next; weeks are left out because they lie across months and years.
PERIODS: dict[str, Callable[[datetime], str]] = {
    "hour": lambda time: f"{time.date().isoformat()}T{time.hour:02}",
    "day": lambda time: time.date().isoformat(),
    "month": lambda time: f"{time.year:04}-{time.month:02}",
    "quarter": lambda time: f"{time.year:04}-Q{(time.month + 2) // 3}",
    "year": lambda time: f"{time.year:04}",
    "decade": lambda time: f"{time.year // 10:03}0s",
}
_PERIOD = re.compile(r"\d{4}-\d\d-\d\dT\d\d|\d{4}-\d\d|\d{4}-Q[1-4]|\d{4}|\d{3}0s")


def is_period(text: str) -> bool:
    """Whether a text is the name of an hour, month, quarter, year or decade."""
    return _PERIOD.fullmatch(text) is not None


@dataclass(frozen=True)
class Dates:
    """`2013-05-17 -> 2013-05 -> 2013-Q2 -> 2013 -> 2010s -> *`.

    Values are ISO 8601 dates or time stamps; a stamp belongs to the day it names, whatever its
    zone.
    """

    kind: ClassVar[str] = "dates"
    by_value: ClassVar[bool] = True
    unmatched_message: ClassVar[str] = (
        "[is not an ISO date or time stamp|are not ISO dates or time stamps]; correct [it|them],"
        " say how dates are written, such as --read dates=%d.%m.%Y, or list [it|them] under"
        " 'missing_values'"
    )

    periods: tuple[str, ...] = parameter("calendar periods, finest first", choices=tuple(PERIODS))

    @classmethod
    def from_spec(cls, argument: Any) -> "Dates":
        """`{dates: [day, month, quarter, year, decade]}`, or some of them in this order."""
        names = [argument] if isinstance(argument, str) else argument
        known = list(PERIODS)
        if isinstance(names, list | tuple) and names and all(name in known for name in names):
            places = [known.index(name) for name in names]
            if places == sorted(set(places)):
                return cls(tuple(names))
        raise InputError(
            f"hierarchy maker 'dates' takes some of {', '.join(known)}, in this order, each at most"
            " once"
        )

    def values_without_leaf(self, values: np.ndarray) -> np.ndarray:
        """Which values are not ISO dates or time stamps; (n,) bool."""
        return np.array([time_of(value) is None for value in values], dtype=bool)

    def make(self, values: np.ndarray) -> Hierarchy:
        """Every distinct value under its periods, by time; without values the root alone."""
        refuse_values_without_leaf(self, values)
        times = sorted((time, value) for value in set(values) if (time := time_of(value)))
        namers = [PERIODS[name] for name in self.periods]
        paths = [[value, *(name(time) for name in namers), "*"] for time, value in times]
        return Hierarchy.from_paths(paths or [["*"]])


def time_of(text: str) -> datetime | None:
    """The time of a date or stamp in ISO, as its own clock shows it; None where a text is none."""
    try:
        return datetime.fromisoformat(text.strip()).replace(tzinfo=None)
    except ValueError:
        return None
