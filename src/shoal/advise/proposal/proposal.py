"""A proposed policy: every column's role with its reason, and what somebody has to decide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from shoal.advise.proposal.singled_out import Order, Shares, share_text

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
        """What somebody has to decide; None where nothing is open."""
        return self.settings.get("ask")

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
