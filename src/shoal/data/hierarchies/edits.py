"""Edits of a hierarchy, one after the other, on the table that it is written as.

An edit is a mapping, as YAML or JSON can hold it. Nodes are named by their labels; values are the
leaves. Steps are columns of the table: the values are step 0.

    {put: VALUE, under: NODE}               a value that has no place yet
    {group: LABEL, of: [NODE, ...]}         a new group; step: where it stands, by default one above
                                            the highest of its members; under: the node it belongs
                                            to, by default the lowest that holds all of them
    {rename: GROUP, to: LABEL}
    {move: NODE, under: NODE}
    {step: N}                               a new step above step N, at first equal to it
    {no_value: VALUE}                       takes a value out; the policy's missing_values name it
    {rare: N, counts: {VALUE: ROWS, ...}}   groups what fewer than N rows have; into: its label,
                                            by default `other`; step: where, by default 1

Messages name edits by their numbers and no label, for labels are values.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from math import inf
from typing import Any, NoReturn

import numpy as np

from shoal.errors import InputError

Edit = Mapping[str, Any]
OTHER = "other"


def edited_rows(rows: np.ndarray, edits: Sequence[Edit]) -> np.ndarray:
    """The table after all edits. rows: (leaves, steps) objects, even, the value first, the root
    last. Raises InputError at the first edit that can't be made; the table itself stays as it is.
    """
    for number, edit in enumerate(edits, 1):
        rows = _Sheet(rows, f"edit {number}").after(edit)
    return rows


@dataclass(frozen=True)
class _Sheet:
    """A table that is edited once. where: how a message names the edit."""

    rows: np.ndarray
    where: str

    def after(self, edit: Edit) -> np.ndarray:
        """The table after one edit."""
        if not isinstance(edit, Mapping) or not edit:
            self._refuse("is not a mapping; write for instance {put: VALUE, under: NODE}")
        kind = next((name for name in _KINDS if name in edit), None)
        if kind is None:
            self._refuse(f"is not a known edit; choose one of {', '.join(_KINDS)}")
        make, required, optional = _KINDS[kind]
        unknown = [key for key in edit if key not in (kind, *required, *optional)]
        absent = [key for key in required if key not in edit]
        if unknown or absent:
            takes = ", ".join([kind, *required, *(f"{key} (optional)" for key in optional)])
            self._refuse(f"'{kind}' takes {takes}; correct its keys")
        return make(self, edit)

    def put(self, edit: Edit) -> np.ndarray:
        value, under = self._label(edit["put"]), self._node(edit["under"], "under")
        if value in self.rows[:, 0]:
            self._refuse("its value already has a place; move it")
        row, step = under
        added = np.empty((1, self.steps), dtype=object)
        added[0, :step] = value
        added[0, step:] = self.rows[row, step:]
        if not step:
            self._refuse("'under' is a value; put it under a group, or make one of both")
        return np.concatenate([self.rows, added])

    def group(self, edit: Edit) -> np.ndarray:
        label, members = self._label(edit["group"]), edit["of"]
        if not isinstance(members, (list, tuple)) or not members:
            self._refuse("'of' is not a list of members; name at least one")
        places = [self._node(member, "of") for member in members]
        step = self._step(edit.get("step", max(at for _, at in places) + 1))
        if any(at >= step for _, at in places):
            self._refuse("a member is as high as the group; name a higher step, or add one")
        chosen = np.zeros(len(self.rows), dtype=bool)
        for row, at in places:
            chosen |= self.rows[:, at] == self.rows[row, at]
        return self._grouped(chosen, label, step, edit.get("under"))

    def rename(self, edit: Edit) -> np.ndarray:
        row, step = self._node(edit["rename"], "rename")
        label = self._label(edit["to"])
        if not step:
            self._refuse("'rename' is a value of the data; only groups have other names")
        self._require_new(label)
        own = self.rows[:, 1:] == self.rows[row, step]
        rows = self.rows.copy()
        rows[:, 1:][own] = label
        return rows

    def move(self, edit: Edit) -> np.ndarray:
        row, step = self._node(edit["move"], "move")
        under, above = self._node(edit["under"], "under")
        if above <= step:
            self._refuse("'under' is not above what is moved; add a step, or group both")
        if step == self.steps - 1:
            self._refuse("the root can't be moved; move something below it")
        own = self.rows[:, step] == self.rows[row, step]
        rows = self.rows.copy()
        rows[own, step:above] = self.rows[row, step]
        rows[own, above:] = self.rows[under, above:]
        return rows

    def step(self, edit: Edit) -> np.ndarray:
        at = edit["step"]
        if not is_whole(at, 0, self.steps - 2):
            self._refuse(f"'step' is not below the root; choose one from 0 to {self.steps - 2}")
        return np.insert(self.rows, at + 1, self.rows[:, at], axis=1)

    def no_value(self, edit: Edit) -> np.ndarray:
        value = self._label(edit["no_value"])
        kept = self.rows[:, 0] != value
        if not kept.any():
            self._refuse("would leave no value; a hierarchy needs one")
        return self.rows[kept]

    def rare(self, edit: Edit) -> np.ndarray:
        least, counts = edit["rare"], edit["counts"]
        if not is_whole(least, 1) or not isinstance(counts, Mapping):
            self._refuse("takes a number of rows, at least 1, and the rows of each value")
        step = self._step(edit.get("step", 1))
        below = self.rows[:, step - 1]
        rows_of: dict[object, int] = {}
        for value, label in zip(self.rows[:, 0], below, strict=True):
            rows_of[label] = rows_of.get(label, 0) + int(counts.get(value, 0))
        chosen = np.array([rows_of[label] < least for label in below], dtype=bool)
        if not chosen.any():
            self._refuse("nothing is that rare; name a greater number of rows")
        if chosen.all():
            self._refuse("everything is that rare; name a smaller number of rows")
        return self._grouped(chosen, self._label(edit.get("into", OTHER)), step, edit.get("under"))

    @property
    def steps(self) -> int:
        return int(self.rows.shape[1])

    def _grouped(self, chosen: np.ndarray, label: str, step: int, under: Any) -> np.ndarray:
        """The chosen rows under a new label at a step. chosen: (rows,) bool."""
        self._require_new(label)
        if under is None:
            row = int(np.flatnonzero(chosen)[0])
            same = (self.rows[chosen, step + 1 :] == self.rows[row, step + 1 :]).all(axis=0)
            above = step + 1 + int(np.argmax(same))  # the root is the same for all
        else:
            row, above = self._node(under, "under")
        if above <= step:
            self._refuse("'under' is not above the group; name a lower step, or add one")
        rows = self.rows.copy()
        rows[chosen, step:above] = label
        rows[chosen, above:] = self.rows[row, above:]
        return rows

    def _step(self, step: Any) -> int:
        if not is_whole(step, 1, self.steps - 2):
            self._refuse(
                "there is no step for it between the values and the root; add one with {step: 0},"
                " or name another step"
            )
        return int(step)

    def _node(self, label: Any, key: str) -> tuple[int, int]:
        """A row and the highest step at which a label stands; groups come before values."""
        found = np.argwhere(self.rows == self._label(label))
        if not len(found):
            self._refuse(f"'{key}' is not in the hierarchy; name it as it is written there")
        highest = found[np.argmax(found[:, 1])]
        row, step = int(highest[0]), int(highest[1])
        while step and self.rows[row, step - 1] == self.rows[row, step]:
            inside = self.rows[:, step] == self.rows[row, step]
            if (self.rows[inside, step - 1] != self.rows[row, step]).any():
                break  # a group with the name of one of its members
            step -= 1  # a padded column: the node stands where it first appears
        return row, step

    def _label(self, label: Any) -> str:
        try:
            return as_label(label, "edit").strip()
        except InputError:
            self._refuse("takes labels as text; write every label in quotes")

    def _require_new(self, label: str) -> None:
        if (self.rows[:, 1:] == label).any():
            self._refuse("its new label names another group; choose a different one")

    def _refuse(self, why: str) -> NoReturn:
        raise InputError(f"{self.where}: {why}")


def is_whole(number: Any, low: int, high: float = inf) -> bool:
    """Whether it is a whole number from `low` to `high`, as YAML holds one."""
    return isinstance(number, int) and not isinstance(number, bool) and low <= number <= high


_KINDS: dict[str, tuple[Callable[[_Sheet, Edit], np.ndarray], tuple[str, ...], tuple[str, ...]]] = {
    "put": (_Sheet.put, ("under",), ()),
    "group": (_Sheet.group, ("of",), ("step", "under")),
    "rename": (_Sheet.rename, ("to",), ()),
    "move": (_Sheet.move, ("under",), ()),
    "no_value": (_Sheet.no_value, (), ()),
    "rare": (_Sheet.rare, ("counts",), ("into", "step", "under")),
    "step": (_Sheet.step, (), ()),
}
"""What makes each edit, and the keys that it needs and takes; `step` last, for others take one."""


# Labels as a policy writes them in YAML, as text.


def as_label(item: Any, maker: str) -> str:
    """The text of a label; raises InputError for what YAML did not read as text or a whole number.

    A bare `no` is a truth value in YAML and `1.50` a number that forgets its zero: both must be
    quoted.
    """
    if isinstance(item, str) and item.strip():
        return item
    if isinstance(item, int) and not isinstance(item, bool):
        return str(item)
    if isinstance(item, date):
        return item.isoformat()
    raise InputError(
        f"hierarchy maker '{maker}' takes labels as text, not {_what(item)}; write every label in"
        " quotes"
    )


def _what(item: Any) -> str:
    if isinstance(item, bool):
        return "a truth value (a bare yes, no, on or off is one)"
    if isinstance(item, float):
        return "a decimal number"
    if item is None or isinstance(item, str):
        return "nothing"
    return "a list or mapping"
