"""The table of message kinds: who says what to whom, by the agreement alone.

What a party takes from the others (`limits`) and what an audit expects in a transcript
(`containment`) follow from it.
"""

from shoal.connectors.party.messages import MessageKind
from shoal.policy.agreement import Agreement


def spoken(agreement: Agreement, sender: str, receiver: str) -> set[MessageKind]:
    """The kinds of messages that one party sends to another."""
    owners, model = agreement.owners, agreement.model
    own = agreement.numbers_of(sender)
    is_keyed = model.joining.name == "keyed"
    said = {
        MessageKind.GATHERED: sender in owners and receiver == agreement.collector,
        MessageKind.COMMON: sender == agreement.collector and receiver in owners,
        MessageKind.PACE: agreement.is_paced
        and {sender, receiver} <= set(agreement.computing)
        and owners[0] in (sender, receiver),
        MessageKind.SHARES: agreement.is_secret and {sender, receiver} <= set(agreement.computing),
        MessageKind.END: sender == owners[0] and receiver not in owners,
    }
    if {sender, receiver} <= set(owners):
        said |= {
            MessageKind.ROLL: True,
            MessageKind.KEY: is_keyed and sender == owners[0],
            MessageKind.MASKED: not is_keyed and sender == owners[owners.index(receiver) - 1],
            MessageKind.ATOMS: model.before is not None,
            MessageKind.LABEL: True,
            MessageKind.SENSITIVE: bool(unchanged(agreement, sender, MessageKind.SENSITIVE)),
            MessageKind.BIDS: agreement.bids and not agreement.is_secret,
            MessageKind.BATCH: bool(own),
            MessageKind.PROPOSAL: receiver == agreement.judge and bool(own),
            MessageKind.VERDICT: sender == agreement.judge,
            MessageKind.HULLS: agreement.has_hulls and bool(own),
            MessageKind.PLAIN: bool(unchanged(agreement, sender, MessageKind.PLAIN)),
            MessageKind.SEAL: True,
        }
    return {kind for kind, is_said in said.items() if is_said}


def in_pieces(agreement: Agreement) -> frozenset[MessageKind]:
    """The kinds of which a message can be of any length: its length comes before it."""
    always = {
        MessageKind.GATHERED,
        MessageKind.COMMON,
        MessageKind.LABEL,
        MessageKind.SENSITIVE,
        MessageKind.PROPOSAL,
        MessageKind.VERDICT,
        MessageKind.HULLS,
        MessageKind.PLAIN,
    }
    return frozenset(always if agreement.bids else always | {MessageKind.BATCH})


def unchanged(agreement: Agreement, owner: str, kind: MessageKind) -> list[str]:
    """The columns of an owner that are published unchanged and said in messages of this kind.

    Before the rounds those whose values groups must be diverse in, after them the others.
    """
    return [
        name
        for name, attribute in agreement.party(owner).attributes.items()
        if attribute.role == "plain"
        and (name in agreement.diverse) == (kind == MessageKind.SENSITIVE)
    ]
