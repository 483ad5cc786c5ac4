"""What the winner of a round, or whose turn it is, tells the others; and what the judge says first.

A judge is an owner who refuses what leaves too few values of an attribute of its own, which the
others don't see before the rounds end. It is asked before anybody else. Promise: of what it
refuses it sees one level of nodes, and nothing behind them; the others see no more than that it
refused.
"""

from __future__ import annotations

import numpy as np

from shoal.connectors.party.messages import MessageKind, said_by
from shoal.fusion.conversation import Conversation
from shoal.fusion.ground import REFUSED, VALID
from shoal.fusion.shared_columns import require_values
from shoal.protocols import BiddingParty, TurnParty


class Instructions:
    """One owner's part: it instructs the others, or follows their instructions."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._link = conversation.link
        self._name = conversation.name
        self._judge = conversation.agreement.judge

    def require_judged(self, judged: tuple[np.ndarray, int] | None) -> None:
        """Raises InfeasibleError where all people together have too few values, as the judge says.

        judged: what the judge alone knows.
        """
        if self._judge is None:
            return
        sensitive = self._conversation.agreement.model.sensitive
        assert sensitive is not None
        if judged is not None:
            verdict = VALID if len(np.unique(judged[0])) >= judged[1] else REFUSED
            self._conversation.send_long_to_owners(MessageKind.VERDICT, verdict)
        else:
            verdict = bytes(self._link.receive_long(self._judge, MessageKind.VERDICT))
        require_values(sensitive.attribute, sensitive.l, holds=verdict == VALID)

    def steps(self, party: BiddingParty, winner: str, steps: int) -> None:
        """Does the winner's steps: its own ones are sent to the others, another's are received."""
        if winner == self._name:
            valid = self._asked(party, steps)
            batch = party.specialize(valid, valid < steps)
            self._conversation.send_to_owners(MessageKind.BATCH, batch)
            return
        party.lose()
        if self._judge == self._name:
            self._answer(party, winner, steps)
        batch = self._link.receive(winner, MessageKind.BATCH)
        with said_by(winner, MessageKind.BATCH):
            party.apply(batch)

    def turn(self, party: TurnParty, owner: str) -> None:
        """Does what the owner decides whose turn it is."""
        asks = self._judge not in (None, owner)
        if owner == self._name:
            if asks:
                verdict = self._verdict(party.propose())
                with said_by(self._judge or "", MessageKind.VERDICT):
                    batch = party.decide(verdict)
            else:
                batch = party.decide()
            self._conversation.send_long_to_owners(MessageKind.BATCH, batch)
            return
        if asks and self._judge == self._name:
            self._judged(party, owner)
        content = self._link.receive_long(owner, MessageKind.BATCH)
        with said_by(owner, MessageKind.BATCH):
            party.apply(content)

    def _asked(self, party: BiddingParty, steps: int) -> int:
        """How many of the planned steps are valid: all, or those before the first refused one."""
        if self._judge in (None, self._name):
            return steps
        for number in range(steps):
            if self._verdict(party.propose(number)) != VALID:
                return number
        return steps

    def _answer(self, party: BiddingParty, winner: str, steps: int) -> None:
        """Judges the winner's steps one by one, up to the first that is refused."""
        for _ in range(steps):
            if self._judged(party, winner) != VALID:
                return

    def _verdict(self, proposal: bytes) -> bytes:
        """What the judge says of a proposal."""
        assert self._judge is not None
        self._link.send_long(self._judge, MessageKind.PROPOSAL, proposal)
        return bytes(self._link.receive_long(self._judge, MessageKind.VERDICT))

    def _judged(self, party: BiddingParty | TurnParty, asks: str) -> bytes:
        """What this party, the judge, says of another one's proposal."""
        proposal = self._link.receive_long(asks, MessageKind.PROPOSAL)
        with said_by(asks, MessageKind.PROPOSAL):
            verdict = party.judge(proposal)
        self._link.send_long(asks, MessageKind.VERDICT, verdict)
        return verdict
