"""Options that publish and audit share: which attacks are tried, and other releases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shoal.data.option import Request, option
from shoal.errors import InputError

if TYPE_CHECKING:
    from shoal.attacks.beside.others import Others
    from shoal.attacks.run.request import AttackRequest
    from shoal.policy.policy import Policy

OTHERS = option("--others FILE", "A file (YAML) that lists other releases of the same people.")


def others_in(path: str | None) -> Others | None:
    """The other releases that a file lists; raises InputError with every finding."""
    if path is None:
        return None
    from shoal.attacks.beside.others import Others

    return Others.of(path)


@dataclass(frozen=True)
class Attacks(Request):
    """What attacks are tried on a release, and what they are given."""

    attack: list[str] | None = option(
        "--attack all|NAME,...", "Try these attacks; an audit needs --original."
    )
    control: str | None = option(
        "--control FILE", "People who are not in the release, for comparison."
    )
    external: str | None = option("--external FILE", "A list of people that an attacker may hold.")
    folds: int | None = option(
        "--folds", "How often other people are left out as the control; 1.", low=1, high=5
    )

    @property
    def files(self) -> list[str]:
        """All files that are read."""
        return [name for name in (self.control, self.external) if name is not None]

    @property
    def names(self) -> tuple[str, ...]:
        """The attacks that are named."""
        from shoal.attacks.run.request import attack_names

        return attack_names(self.attack) if self.attack else ()

    def given(self) -> dict[str, object]:
        """What attacks on one table are given besides, by option; None where it isn't."""
        return {
            "--control": self.control,
            "--external": self.external,
            "--folds": self.folds,
        }

    def request(self, policy: Policy) -> AttackRequest:
        """What is asked, with its tables; raises InputError."""
        from shoal.attacks.run.request import AttackRequest
        from shoal.policy.binding.files import read_beside

        given = self.files or ([] if self.folds is None else ["--folds"])
        if not self.attack and given and not policy.model.accept:
            raise InputError(
                "--control, --external and --folds: belong to attacks; name them with --attack"
            )
        control, external = (
            None if name is None else read_beside(name, policy, f"file '{name}'")
            for name in (self.control, self.external)
        )
        return AttackRequest(self.names, control, external, folds=self.folds or 1)


NO_ATTACKS = Attacks()
