"""Two comparators of party TDS: the paper's rule to the letter, and one step to a round.

Yang, Wang. Research on data fusion algorithm for multi-party based on k-anonymity (in Chinese).
Computer Technology and Development 27(5):102-107, 2017. Its baseline: Mohammed, Fung, Debbabi.
Anonymity meets game theory: secure data integration with malicious participants. The VLDB Journal
20(4):567-588, 2011.
Promise and readings: as in `shoal.fusion.methods.party_tds`, whose parties run both.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from shoal.data.parameters import parameter
from shoal.fusion.methods.party_tds import AHEAD, PAPER, SCORE, TdsRule
from shoal.protocols import FusionMethod
from shoal.search.specialization import SCORES


@dataclass(frozen=True)
class PartyTdsLiteral(TdsRule, FusionMethod):
    """The paper's rule to the letter: a batch continues with new children only."""

    name: ClassVar[str] = "party-tds-literal"
    paper: ClassVar[str] = PAPER
    only_new: ClassVar[bool] = True

    score: str = field(default="gain-ratio", metadata=SCORE)
    ahead: int = field(default=8, metadata=AHEAD)


@dataclass(frozen=True)
class PartyTdsStepwise(TdsRule, FusionMethod):
    """The baseline: one step to a round."""

    name: ClassVar[str] = "party-tds-stepwise"
    paper: ClassVar[str] = (
        "Mohammed, Fung, Debbabi. Anonymity meets game theory: secure data integration with"
        " malicious participants. The VLDB Journal 20(4), 2011."
    )
    only_new: ClassVar[bool] = False
    ahead: ClassVar[int] = 1

    score: str = parameter(
        "what makes a specialization good: gain ratio, gain, or gain per loss",
        default="gain-ratio",
        choices=SCORES,
    )
