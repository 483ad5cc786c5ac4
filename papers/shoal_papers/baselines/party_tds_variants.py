"""Two comparators of party TDS: the paper's rule to the letter, and one step to a round.

Yang, Wang. Research on data fusion algorithm for multi-party based on k-anonymity (in Chinese).
Computer Technology and Development 27(5):102-107, 2017. Its baseline: Mohammed, Fung, Debbabi.
Anonymity meets game theory: secure data integration with malicious participants. The VLDB Journal
20(4):567-588, 2011.
Promise and readings: as in `shoal.fusion.methods.party_tds`, whose parties run both.
Reading: line 8 of the listing compares the score of a new child with the best one of the others. So
the winner is told that bid, by consent of all owners, and plans one step at a time. A bid also says
on which attribute its step is, which decides among equal scores.
Reading: after 64 steps the winner ends its batch; the listing says nothing about that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from shoal.data.option import parameter
from shoal.fusion.ground import Ground
from shoal.fusion.methods.party_tds import MOST_AHEAD, PAPER, SCORE, USUAL_AHEAD, Party, TdsRule
from shoal.protocols import FusionMethod
from shoal.search.specialization import SCORES, Candidate


@dataclass(frozen=True)
class PartyTdsLiteral(TdsRule, FusionMethod):
    """The paper's rule to the letter: a batch continues with new children only, while they beat
    the runner-up, which its sender is told.
    """

    name: ClassVar[str] = "party-tds-literal"
    paper: ClassVar[str] = PAPER

    score: str = field(default="gain-ratio", metadata=SCORE)
    ahead: int = parameter(
        "with a hidden runner-up, steps that a party plans for each secure round",
        default=USUAL_AHEAD,
        low=1,
        high=MOST_AHEAD,
    )
    runner_up: str = parameter(
        "told: as printed, the winner of a round sees the second best bid; hidden, a variant of"
        " ours: it sees how many of its planned steps beat that bid",
        default="told",
        choices=("told", "hidden"),
    )

    @property
    def most_ahead(self) -> int:
        return 1 if self.runner_up == "told" else self.ahead

    def party(self, ground: Ground, own: Mapping[int, np.ndarray]) -> Party:
        """An owner in the rounds, with the cells of its own attributes."""
        return LiteralParty(self, ground, own)


class LiteralParty(Party):
    """An owner that chooses among the new children of what it has planned in this round."""

    def go_on(self, runner_up: int) -> int:
        """Plans on while steps are worth no less than the second best bid; how many steps then."""
        while len(self.plan) < MOST_AHEAD and self.plan_next():
            if self.worth(self.plan[-1]) < runner_up:
                self.keep(len(self.plan) - 1)
                break
        return len(self.plan)

    def eligible(self) -> list[Candidate] | None:
        """The children of planned steps; in the beginning None, for all candidates."""
        if not self.plan:
            return None
        children = [child for taken in self.plan for child in taken.admitted]
        return [child for child in children if child in self.candidates.open]


@dataclass(frozen=True)
class PartyTdsStepwise(TdsRule, FusionMethod):
    """The baseline: one step to a round."""

    name: ClassVar[str] = "party-tds-stepwise"
    paper: ClassVar[str] = (
        "Mohammed, Fung, Debbabi. Anonymity meets game theory: secure data integration with"
        " malicious participants. The VLDB Journal 20(4), 2011."
    )
    most_ahead: ClassVar[int] = 1

    score: str = parameter(
        "what makes a specialization good: gain ratio, gain, or gain per loss",
        default="gain-ratio",
        choices=SCORES,
    )
