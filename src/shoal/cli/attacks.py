"""What attacks are tried on a release: options that publish and audit share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.grouped import grouped
from shoal.errors import InputError

if TYPE_CHECKING:
    import numpy as np

    from shoal.attacks.run.earlier import Earlier
    from shoal.attacks.run.request import AttackRequest
    from shoal.policy.policy import Policy


@dataclass(frozen=True)
class Attacks:
    """What attacks are tried on a release, and what they are given."""

    attack: Annotated[
        list[str] | None,
        typer.Option(
            "--attack",
            metavar="all|NAME,...",
            help="Try these attacks; an audit needs --original.",
        ),
    ] = None
    control: Annotated[
        str | None,
        typer.Option(
            "--control", metavar="FILE", help="People who are not in the release, for comparison."
        ),
    ] = None
    external: Annotated[
        str | None,
        typer.Option(
            "--external", metavar="FILE", help="A list of people that an attacker may hold."
        ),
    ] = None
    earlier: Annotated[
        list[str] | None,
        typer.Option(
            "--earlier", metavar="FILE", help="Another release of the same people; repeatable."
        ),
    ] = None
    earlier_policy: Annotated[
        list[Path] | None,
        typer.Option(
            "--earlier-policy", metavar="FILE", help="The policy of each --earlier, if another."
        ),
    ] = None
    earlier_trace: Annotated[
        list[str] | None,
        typer.Option(
            "--earlier-trace",
            metavar="FILE",
            help="The trace of each --earlier, where these are streams of the same records.",
        ),
    ] = None
    folds: Annotated[
        int | None,
        typer.Option(
            "--folds", help="How often other people are left out as the control; 1.", min=1, max=5
        ),
    ] = None

    @property
    def files(self) -> list[str]:
        """All files that are read."""
        single = [name for name in (self.control, self.external) if name is not None]
        others = [*(self.earlier or []), *(self.earlier_trace or [])]
        return [*single, *others, *map(str, self.earlier_policy or [])]

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
            "--earlier": self.earlier,
            "--earlier-policy": self.earlier_policy,
            "--earlier-trace": self.earlier_trace,
            "--folds": self.folds,
        }

    def request(self, policy: Policy) -> AttackRequest:
        """What is asked, with its tables; raises InputError."""
        from shoal.attacks.run.request import AttackRequest, read_people

        given = self.files or ([] if self.folds is None else ["--folds"])
        if not self.attack and given and not policy.model.accept:
            raise InputError(
                "--control, --external, --earlier and --folds: belong to attacks; name them with"
                " --attack"
            )
        return AttackRequest(
            self.names,
            None if self.control is None else read_people(self.control, policy),
            None if self.external is None else read_people(self.external, policy),
            self._earlier(policy),
            self.folds or 1,
        )

    def _earlier(self, policy: Policy) -> tuple[Earlier, ...]:
        if not (self.earlier or self.earlier_policy or self.earlier_trace):
            return ()
        from shoal.attacks.run.earlier import Earlier
        from shoal.attacks.run.request import read_earlier
        from shoal.policy.policy import Policy

        names, paths = self.earlier or [], self.earlier_policy or []
        if len(paths) not in (0, 1, len(names)):
            raise InputError(
                f"--earlier-policy: {len(paths)} policies for {len(names)} earlier releases; give"
                " one for all, or one for each"
            )
        policies = [Policy.load(path) for path in paths] or [policy]
        policies = policies * len(names) if len(policies) == 1 else policies
        return tuple(
            Earlier(read_earlier(name, own), own, rows)
            for name, own, rows in zip(names, policies, self._traced_rows(), strict=True)
        )

    def _traced_rows(self) -> list[np.ndarray | None]:
        """By earlier release, the record behind each of its rows, where a trace tells."""
        from shoal.auditor.stream_trace import traced_records

        names, traces = self.earlier or [], self.earlier_trace or []
        if traces and len(traces) != len(names):
            raise InputError(
                f"--earlier-trace: {len(traces)} traces for {len(names)} earlier releases; give one"
                " for each, or none"
            )
        return [traced_records(trace) for trace in traces] or [None] * len(names)


NO_ATTACKS = Attacks()
with_attacks = grouped("attacks", Attacks)
"""A command with these options in place of its parameter `attacks`."""
