"""Columns that owners tell each other: the label, and what is published unchanged."""

from __future__ import annotations

import numpy as np

from shoal.connectors.party.messages import MessageKind, refused, said_by
from shoal.errors import InfeasibleError, InputError
from shoal.fusion.columns import pack_column, restricted_column, unpack_column
from shoal.fusion.conversation import Conversation
from shoal.fusion.methods.party_tds import MOST_LABELS
from shoal.fusion.party_input import PartyInput
from shoal.policy.agreement_model import PartyModel

Codes = tuple[list[str], np.ndarray]
"""A column: its different texts, and which of them each row has."""


def require_values(name: str, asked: int, holds: bool) -> None:
    """Raises InfeasibleError unless all people together have as many values as are asked."""
    if not holds:
        raise InfeasibleError(
            f"promise 'l-diversity': '{name}' has fewer than {asked} different values among the"
            " people in common; ask for fewer"
        )


class SharedColumns:
    """One owner's part. rows: its row behind every joint one."""

    def __init__(
        self, conversation: Conversation, party_input: PartyInput, rows: np.ndarray
    ) -> None:
        self._conversation = conversation
        self._agreement = conversation.agreement
        self._name = conversation.name
        self._input = party_input
        self._rows = rows

    def label(self, sender: str) -> Codes:
        """The class of every row, as the first owner of the label has it.

        Raises InputError where this party has the label, too, and differs.
        """
        column = self._input.label
        own = None if column is None else restricted_column(column, self._rows)
        if self._name == sender:
            assert own is not None
            names, codes = own
            if len(names) > MOST_LABELS:
                raise InputError(
                    "label: takes too many values to be a class; name another attribute"
                )
            self._conversation.send_long_to_owners(MessageKind.LABEL, pack_column("", names, codes))
            return names, codes.astype(np.int64)
        names, codes = self._received(sender, "", MessageKind.LABEL)
        if own is not None and (own[0] != names or not np.array_equal(own[1], codes)):
            raise InputError(
                f"label '{self._agreement.model.label.attribute}': parties '{sender}' and"
                f" '{self._name}' differ on some people; agree whose column counts, and take it out"
                " of the other table"
            )
        return names, codes.astype(np.int64)

    def judged(self) -> tuple[np.ndarray, int] | None:
        """What this party alone knows as the judge: values, and how many a group has at least."""
        sensitive = self._agreement.model.sensitive
        if sensitive is None or self._agreement.judge != self._name:
            return None
        codes = restricted_column(self._input.plain[sensitive.attribute], self._rows)[1]
        return codes.astype(np.int64), sensitive.l

    def unchanged(self, kind: MessageKind) -> dict[str, Codes]:
        """The columns of all owners that are published unchanged: those said in this kind."""
        columns = {}
        for owner in self._agreement.owners:
            model = self._agreement.party(owner)
            assert isinstance(model, PartyModel)
            plain = [name for name, a in model.attributes.items() if a.role == "plain"]
            is_early = kind == MessageKind.SENSITIVE
            for name in (n for n in plain if (n in self._agreement.diverse) == is_early):
                if owner == self._name:
                    texts, codes = restricted_column(self._input.plain[name], self._rows)
                    packed = pack_column(name, texts, codes)
                    self._conversation.send_long_to_owners(kind, packed)
                else:
                    texts, codes = self._received(owner, name, kind)
                columns[name] = texts, codes
        return columns

    def _received(self, owner: str, name: str, kind: MessageKind) -> Codes:
        content = self._conversation.link.receive_long(owner, kind)
        with said_by(owner, kind):
            sent_name, texts, codes = unpack_column(content, len(self._rows))
        if kind != MessageKind.LABEL and sent_name != name:
            raise refused(owner, kind, "is not the column that comes next")
        return texts, codes
