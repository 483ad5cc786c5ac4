"""Which attacks a command is asked to try on a release, and beside which other releases."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from shoal.data.option import Request, option

if TYPE_CHECKING:
    from shoal.attacks.beside.others import Others
    from shoal.attacks.run.request import AttackRequest
    from shoal.policy.binding.files import PolicyTables


class OtherReleases(Request):
    """Other releases that a release stands beside."""

    others: str | None = option(
        "--others FILE",
        "A file (YAML) that lists other releases of the same people.",
        needs=("original", "ledger"),
        why="--others: finds people again by the original; give it with --original",
    )

    @cached_property
    def beside(self) -> Others | None:
        """The other releases that a file lists; raises InputError with every finding."""
        if self.others is None:
            return None
        from shoal.attacks.beside.others import Others

        return Others.of(self.others)

    @property
    def files(self) -> list[str]:
        """All files that are read."""
        beside = self.beside
        return [] if self.others is None or beside is None else [self.others, *beside.files]

    @property
    def names(self) -> tuple[str, ...]:
        """The attacks that are asked for."""
        return ()

    def request(self, tables: PolicyTables) -> AttackRequest:
        """What is asked of a release; raises InputError. tables: how its policy reads others."""
        from shoal.attacks.run.request import AttackRequest

        return AttackRequest(self.names, files=tuple(self.files))


class Attacks(OtherReleases):
    """What attacks are tried on a release."""

    attack: list[str] | None = option(
        "--attack all|NAME,...", "Try these attacks; 'shoal attack' tries all."
    )

    @property
    def names(self) -> tuple[str, ...]:
        """The attacks that are named."""
        from shoal.attacks.run.request import attack_names

        return attack_names(self.attack) if self.attack else ()


class AttackersTables(Attacks):
    """What attacks are tried, and what they are given."""

    control: str | None = option(
        "--control FILE", "People who are not in the release, for comparison."
    )
    external: str | None = option("--external FILE", "A list of people that an attacker may hold.")
    folds: int = option(
        "--folds", "How often other people are left out as the control.", 1, low=1, high=5
    )

    @property
    def names(self) -> tuple[str, ...]:
        """The attacks that are named; else all."""
        return super().names or ("all",)

    @property
    def files(self) -> list[str]:
        """All files that are read."""
        return [*super().files, *filter(None, (self.control, self.external))]

    def request(self, tables: PolicyTables) -> AttackRequest:
        """What is asked, with its tables; raises InputError."""
        control, external = (
            None if name is None else tables.read_beside(name, f"file '{name}'")
            for name in (self.control, self.external)
        )
        asked = super().request(tables)
        return replace(asked, control=control, external=external, folds=self.folds)
