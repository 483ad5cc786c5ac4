"""What a publish is asked beside its table and its policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from shoal.data.option import Option
from shoal.data.progress import Progress, no_progress

if TYPE_CHECKING:
    from shoal.attacks.beside.others import OthersLike
    from shoal.attacks.run.request import AttackRequest

TOGETHER = Option(
    "--require-together", "Fails unless the largest k holds over all quasi-identifiers together."
)


@dataclass(frozen=True)
class PublishOptions:
    """What words and flags ask, as the command line takes them."""

    plan: Annotated[
        str | None,
        Option("--plan FILE", "Applies the plan in FILE if it exists, else saves it there."),
    ] = None
    explain: Annotated[
        bool,
        Option(
            "--explain", "Says why records and columns were given up, and what would be cheaper."
        ),
    ] = False
    require_together: Annotated[bool, TOGETHER] = False
    trace: Annotated[
        str | None,
        Option("--trace FILE", "Whose row is whose (JSON lines); private. Audits count with it."),
    ] = None
    replace: Annotated[
        bool,
        Option("--replace", "Puts it in place of an earlier release of that folder or table."),
    ] = False


@dataclass(frozen=True)
class PublishRequest(PublishOptions):
    """All that is asked. attack: what is tried on it. others: as in `shoal.publish`."""

    attack: AttackRequest | None = None
    others: OthersLike | None = None
    progress: Progress = no_progress


NOTHING_ELSE = PublishRequest()
