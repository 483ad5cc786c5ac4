"""What a party takes from each of the others, as it follows from the agreement alone."""

import struct
from dataclasses import replace
from typing import Any

from shoal.fusion import columns, conversation, ground, id_join, secure_maximum
from shoal.fusion.methods.party_tds import NOTHING
from shoal.fusion.wire.messages import Limit, MessageKind, Terms, is_count, parse_json
from shoal.policy.agreement import Agreement

MOST_RECORDS = 1 << 27
SHARE = struct.Struct("<cq")  # what a message of a secure round is, and MPyC's program counter
_MOST_ROLL = 64  # bytes
_DIGEST = 32  # bytes of a seal, a key or what a ledger says
_SPAN = 8  # bytes of a hull
PINGS = 3  # round trips by which the delay is measured


def terms_of(agreement: Agreement, me: str, records: int) -> Terms:
    """What the others may send to this party. records: how many it has."""
    return Terms(
        agreement.hash,
        {
            other: _limits(agreement, other, me, records)
            for other in agreement.participants
            if other != me
        },
        owners=len(agreement.owners),
        ahead=agreement.rule().most_ahead,
        helper=agreement.model.helper.name if agreement.model.helper else None,
        in_pieces=conversation.in_pieces(agreement),
    )


def _limits(agreement: Agreement, sender: str, me: str, records: int) -> dict[MessageKind, Limit]:
    """How large and how many messages of each kind are that one party sends to another."""
    rule, owners = agreement.rule(), len(agreement.owners)
    bits = rule.worth_bits(len(agreement.quasi))
    everybody = id_join.POINT * MOST_RECORDS
    chunk, chunks = id_join.POINT * id_join.CHUNK, owners * -(-MOST_RECORDS // id_join.CHUNK)
    digest = Limit(_DIGEST, _DIGEST)
    column = Limit(columns.most_column(records), 8, check=columns.column_head)
    batch = _of_batches(agreement, sender, records)
    # of a turn as many as there are cuts, perhaps none; the first one is before the rounds
    least, most = (0, max(2 * records, 1)) if rule.takes_turns else (1, 1)
    verdicts = 1 + _of_batches(agreement, me, records).count
    rounds = 1 + rule.most_batches(records, sum(_nodes(agreement)))
    shares = SHARE.size + secure_maximum.most_shares(owners, rule.most_ahead, bits)
    hulls = _SPAN * records * len(agreement.numbers_of(sender))
    limits = {
        MessageKind.ROLL: Limit(_MOST_ROLL, check=parse_roll),
        MessageKind.KEY: digest,
        MessageKind.MASKED: Limit(chunk, id_join.POINT, chunks, id_join.POINT),
        MessageKind.GATHERED: Limit(everybody, unit=id_join.POINT),
        MessageKind.COMMON: Limit(id_join.POINT * records, unit=id_join.POINT),
        MessageKind.ATOMS: digest,
        MessageKind.LABEL: column,
        **{
            kind: replace(column, count=len(conversation.unchanged(agreement, sender, kind)))
            for kind in (MessageKind.SENSITIVE, MessageKind.PLAIN)
        },
        MessageKind.PACE: Limit(1, 1, PINGS + 1),
        MessageKind.BIDS: Limit(
            2 + rule.most_ahead * bits,
            count=rounds,
            check=lambda bids: parse_bids(bids, rule.most_ahead, bits),
        ),
        MessageKind.SHARES: Limit(shares, SHARE.size, check=_check_share),
        MessageKind.BATCH: batch,
        MessageKind.PROPOSAL: batch,
        MessageKind.VERDICT: Limit(most, least, verdicts, check=_check_verdict),
        MessageKind.END: Limit(0),
        MessageKind.HULLS: Limit(hulls, _SPAN),
        MessageKind.SEAL: digest,
    }
    pieces = conversation.in_pieces(agreement)
    return {
        kind: replace(limits[kind], in_pieces=kind in pieces)
        for kind in conversation.spoken(agreement, sender, me)
    }


def _of_batches(agreement: Agreement, sender: str, records: int) -> Limit:
    """How large and how many batches are, about the sender's attributes."""
    rule, nodes = agreement.rule(), _nodes(agreement)
    own = {j: agreement.domains[j].cells for j in agreement.numbers_of(sender)}

    def check(batch: bytes) -> None:
        if agreement.judge is None or batch != NOTHING:
            rule.check_batch(batch, own)

    return Limit(
        rule.most_batch(records, own),
        count=rule.most_batches(records, sum(nodes[j] for j in own)) if own else 0,
        check=None if rule.takes_turns else check,
    )


def _nodes(agreement: Agreement) -> list[int]:
    """Of each attribute, how many nodes can be specialized at most."""
    return [d.cells if d.hierarchy is None else len(d.hierarchy.labels) for d in agreement.domains]


def _check_verdict(content: bytes) -> None:
    if not set(content) <= set(ground.VALID + ground.REFUSED):
        raise ValueError


def _check_share(content: bytes) -> None:
    if SHARE.unpack_from(content)[0] not in (secure_maximum.KEYS, secure_maximum.SHARES):
        raise ValueError


def parse_roll(content: bytes) -> dict[str, Any]:
    """How many records an owner has, and whether it has the label; raises ValueError."""
    roll = parse_json(content, _MOST_ROLL)
    if type(roll) is not dict or set(roll) != {"records", "label"}:
        raise ValueError
    is_known = is_count(roll["records"]) and roll["records"] <= MOST_RECORDS
    if not is_known or type(roll["label"]) is not bool:
        raise ValueError
    return dict(roll)


def parse_bids(content: bytes, ahead: int, bits: int) -> list[int]:
    """The bids of a round, never rising; raises ValueError."""
    bids = parse_json(content, 2 + ahead * bits)
    if type(bids) is not list or len(bids) != ahead or not all(is_count(bid) for bid in bids):
        raise ValueError
    if any(bid >= 1 << bits for bid in bids) or bids != sorted(bids, reverse=True):
        raise ValueError
    return bids
