"""What a publish is asked beside its table and its policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shoal.data.option import Request, option
from shoal.data.progress import Progress, no_progress

if TYPE_CHECKING:
    from shoal.attacks.beside.others import OthersLike
    from shoal.attacks.run.request import AttackRequest

TOGETHER = option(
    "--require-together",
    "Fails unless the largest k holds over all quasi-identifiers together.",
    False,
)


@dataclass(frozen=True)
class PublishOptions(Request):
    """What words and flags ask, as the command line takes them."""

    plan: str | None = option(
        "--plan FILE", "Applies the plan in FILE if it exists, else saves it there."
    )
    explain: bool = option(
        "--explain", "Says why records and columns were given up, and what would be cheaper.", False
    )
    require_together: bool = TOGETHER
    trace: str | None = option(
        "--trace FILE", "Whose row is whose (JSON lines); private. Audits count with it."
    )
    replace: bool = option(
        "--replace", "Puts it in place of an earlier release of that folder or table.", False
    )


@dataclass(frozen=True)
class PublishRequest(PublishOptions):
    """All that is asked. attack: what is tried on it. others: as in `shoal.publish`."""

    attack: AttackRequest | None = None
    others: OthersLike | None = None
    progress: Progress = no_progress


NOTHING_ELSE = PublishRequest()
