"""Which attacks publish and audit are asked to try, and beside which other releases."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from shoal.data.option import Request, option
from shoal.errors import InputError

if TYPE_CHECKING:
    from shoal.attacks.beside.others import Others
    from shoal.attacks.run.request import AttackRequest
    from shoal.policy.policy import Policy


class Attacks(Request):
    """What attacks are tried on a release, what they are given, and other releases."""

    attack: list[str] | None = option(
        "--attack all|NAME,...",
        "Try these attacks; an audit needs --original.",
        needs=("original", "ledger"),
        why="--attack: is tried by whoever has the original, on the people in it; give it with"
        " --original",
    )
    control: str | None = option(
        "--control FILE", "People who are not in the release, for comparison."
    )
    external: str | None = option("--external FILE", "A list of people that an attacker may hold.")
    folds: int | None = option(
        "--folds", "How often other people are left out as the control; 1.", low=1, high=5
    )
    others: str | None = option(
        "--others FILE",
        "A file (YAML) that lists other releases of the same people.",
        needs=("original", "ledger"),
        why="audit --others: finds people again by the original; give it with --original",
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
        named = [self.control, self.external, self.others]
        named += [] if self.beside is None else self.beside.files
        return [name for name in named if name is not None]

    @property
    def names(self) -> tuple[str, ...]:
        """The attacks that are named."""
        from shoal.attacks.run.request import attack_names

        return attack_names(self.attack) if self.attack else ()

    def request(self, policy: Policy) -> AttackRequest:
        """What is asked, with its tables; raises InputError."""
        from shoal.attacks.run.request import AttackRequest

        is_given = (self.control, self.external, self.folds) != (None, None, None)
        if not self.attack and is_given and not policy.model.accept:
            raise InputError(
                "--control, --external and --folds: belong to attacks; name them with --attack"
            )
        control, external = (
            None if name is None else policy.tables.read_beside(name, f"file '{name}'")
            for name in (self.control, self.external)
        )
        return AttackRequest(self.names, control, external, folds=self.folds or 1)
