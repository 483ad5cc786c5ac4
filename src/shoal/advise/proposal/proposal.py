"""A proposed policy: every column's role with its reason, and what somebody has to decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import yaml

from shoal.data.person.decision import question_in_words
from shoal.data.progress import Progress, no_progress, tell
from shoal.privacy.table_risk import singled_out, value_keys

# How many people the quasi-identifiers single out: alone, in pairs, all together.
#
# A person is singled out by some columns if one of their records holds values there that no other
# person's record holds. More columns single out the same people and maybe more, so that what a
# column adds to all others is a difference of two counts.


WORST_PAIRS = 3
LONGEST_ORDER = 8
ENOUGH = 0.95  # share of all whom all columns single out, at which an order ends


@dataclass(frozen=True)
class Shares:
    """Shares of the people. alone: whom a column singles out by itself. adds: whom all single out
    and all others don't. together: whom all single out.
    """

    alone: dict[str, float]
    adds: dict[str, float]
    together: float


@dataclass(frozen=True)
class Order:
    """pairs: the worst ones, with the share that they single out. steps: columns, each the one that
    adds most to those before it, with the share that all up to it single out.
    """

    pairs: tuple[tuple[str, str, float], ...]
    steps: tuple[tuple[str, float], ...]


class SinglingOut:
    """Counts over a table's records.

    names: of the columns. codes: (n,) of each, which value a record holds. people: (n,) whose
    record it is, numbered densely; None where each is its own person's.
    """

    def __init__(
        self, names: Sequence[str], codes: Sequence[np.ndarray], people: np.ndarray | None = None
    ) -> None:
        self._names = list(names)
        self._keys = [value_keys(number, column) for number, column in enumerate(codes)]
        self._distinct = [int(column.max(initial=0)) + 1 for column in codes]
        self._people = people
        records = len(codes[0]) if len(codes) else 0
        self._count = records if people is None else int(people.max(initial=-1)) + 1

    def shares(self, progress: Progress = no_progress) -> Shares:
        """By column, and all together."""
        if not self._keys or not self._count:
            return Shares({}, {}, 0.0)
        every = np.bitwise_xor.reduce(self._keys, axis=0)
        together = self._share(every)
        alone, adds = {}, {}
        for number, (name, keys) in enumerate(zip(self._names, self._keys, strict=True), 1):
            stage = f"counting who is alone, column {number} of {len(self._names)}"
            tell(progress, stage, number - 1, len(self._names))
            alone[name] = self._share(keys)
            adds[name] = together - self._share(every ^ keys)
        return Shares(alone, adds, together)

    def order(self, progress: Progress = no_progress) -> Order:
        """The worst pairs, and the order in which columns single out most."""
        return Order(self._worst_pairs(progress), self._greedy(progress))

    def _worst_pairs(self, progress: Progress) -> tuple[tuple[str, str, float], ...]:
        pairs = list(combinations(range(len(self._keys)), 2))
        # no pair singles out more people than it has combinations of values
        most = {(a, b): self._distinct[a] * self._distinct[b] for a, b in pairs}
        worst: list[tuple[float, int, int]] = []
        for a, b in sorted(pairs, key=lambda pair: -most[pair]):
            if len(worst) == WORST_PAIRS and most[a, b] < -worst[-1][0] * self._count:
                break
            progress(f"counting who is alone in pairs, column {a + 1} of {len(self._names)}")
            worst.append((-self._share(self._keys[a] ^ self._keys[b]), a, b))
            worst = sorted(worst)[:WORST_PAIRS]
        return tuple((self._names[a], self._names[b], -share) for share, a, b in worst if share)

    def _greedy(self, progress: Progress) -> tuple[tuple[str, float], ...]:
        if not self._keys or not self._count:
            return ()
        together = self._share(np.bitwise_xor.reduce(self._keys, axis=0))
        steps: list[tuple[str, float]] = []
        chosen = np.zeros_like(self._keys[0])
        left = dict(enumerate(self._names))
        while left and len(steps) < LONGEST_ORDER:
            progress(f"ordering columns by whom they single out, step {len(steps) + 1}")
            gains = {i: self._share(chosen ^ self._keys[i]) for i in left}
            # where none gains yet, the one with most values is nearest to it
            best = max(gains, key=lambda i: (gains[i], self._distinct[i]))
            steps.append((left.pop(best), gains[best]))
            chosen = chosen ^ self._keys[best]
            if gains[best] >= ENOUGH * together:
                break
        return tuple(steps) if steps and steps[-1][1] else ()

    def _share(self, keys: np.ndarray) -> float:
        return singled_out(keys, self._people) / self._count


def share_text(share: float) -> str:
    """A share in percent."""
    if share in (0, 1):
        return f"{100 * share:.0f} %"
    return "below 0.1 %" if share < 0.001 else f"{min(100 * share, 99.9):.1f} %"


HEAD = """\
# A proposal: read every role before you rely on it. Roles: identifier, subject, quasi, sensitive,
# plain, drop. Nothing is published while a key 'ask' is there: answer it, then delete it. Beside a
# quasi-identifier stands how many {unit} are alone with what it says of them, and how many it
# adds to those whom all others single out.
"""


@dataclass(frozen=True)
class ProposedColumn:
    """A column's keys in the policy, why, and what it alone shows.

    alone: share of people whom it singles out; adds: share whom all quasi-identifiers single out
    and all others don't. Both are None for other roles.
    """

    name: str
    settings: dict[str, Any]
    reason: str
    alone: float | None = None
    adds: float | None = None

    @property
    def role(self) -> str:
        return str(self.settings["role"])

    @property
    def ask(self) -> str | None:
        """What somebody has to decide, in words; None where nothing is open."""
        return question_in_words(self.settings.get("ask"))

    @property
    def asks_who(self) -> bool:
        """Whether somebody has to say here who is one person."""
        return isinstance(self.settings.get("ask"), Mapping)

    @property
    def why(self) -> str:
        """The reason on one line, with both shares."""
        reason = " ".join(self.reason.split())
        if self.alone is None or self.adds is None:
            return reason
        return f"{reason}; alone {share_text(self.alone)}, adds {share_text(self.adds)}"


@dataclass(frozen=True)
class Proposal:
    """A first policy for a table.

    read: the policy's block of this name. missing_values: texts that seem to stand for no value.
    together: share of people whom all quasi-identifiers single out. order: who is singled out by
    few columns; None where it was not asked.
    """

    columns: tuple[ProposedColumn, ...]
    k: int
    read: Mapping[str, Any]
    missing_values: tuple[str, ...]
    together: float
    order: Order | None = None

    def __str__(self) -> str:
        return self.text

    @property
    def questions(self) -> dict[str, str]:
        """By column, what somebody has to decide before anything is published."""
        return {column.name: column.ask for column in self.columns if column.ask is not None}

    @property
    def subject(self) -> str | None:
        """The column that numbers the people; None where every record is its own."""
        return next((column.name for column in self.columns if column.role == "subject"), None)

    @property
    def asks_who(self) -> bool:
        """Whether somebody has to say who is one person."""
        return any(column.asks_who for column in self.columns)

    @property
    def unit(self) -> str:
        """What is counted."""
        return "records" if self.subject is None else "people"

    @property
    def content(self) -> dict[str, Any]:
        """The policy as plain dicts, as `Policy.from_dict` takes it."""
        content: dict[str, Any] = {
            "version": 1,
            "attributes": {column.name: dict(column.settings) for column in self.columns},
            "promises": [{"model": "k-anonymity", "k": self.k}],
        }
        if self.missing_values:
            content["missing_values"] = ["", *self.missing_values]
        return content | ({"read": dict(self.read)} if self.read else {}) | {"seed": 7}

    @property
    def text(self) -> str:
        """The policy file, in YAML, with the reason beside every role."""
        content = self.content
        lines = [HEAD.format(unit=self.unit) + "version: 1", "attributes:"]
        width = max(len(_scalar(column.name)) for column in self.columns) + 1
        for column in self.columns:
            key = f"{_scalar(column.name)}:"
            lines.append(f"  {key:<{width}} {_flow(column.settings)}  # {column.why}")
        lines += ["promises:", f"  - {_flow(content['promises'][0])}"]
        for column in self.columns:
            if column.role == "sensitive":
                promise = {"model": "l-diversity", "attribute": column.name, "l": 2}
                lines.append(f"  # - {_flow(promise | {'kind': 'distinct'})}")
        if self.missing_values:
            texts = _flow(content["missing_values"])
            lines.append(f"missing_values: {texts}  # texts that seem to stand for no value")
        if self.read:
            lines.append(f"read: {_flow(content['read'])}")
        return "\n".join([*lines, "seed: 7", ""])


def with_shares(columns: list[ProposedColumn], shares: Shares) -> tuple[ProposedColumn, ...]:
    """The columns, each quasi-identifier with what it shows."""
    return tuple(
        ProposedColumn(
            column.name,
            column.settings,
            column.reason,
            shares.alone.get(column.name),
            shares.adds.get(column.name),
        )
        for column in columns
    )


def _scalar(text: str) -> str:
    return _flow(text).removesuffix("\n...").strip()


def _flow(content: object) -> str:
    """On one line, as YAML."""
    return yaml.dump(
        content,
        Dumper=_OneLine,
        default_flow_style=True,
        sort_keys=False,
        width=float("inf"),
        allow_unicode=True,
    ).strip()


class _OneLine(yaml.SafeDumper):
    """Texts with line ends and other signs that no one sees are written with escapes."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None if text.isprintable() else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_OneLine.add_representer(str, _text)
