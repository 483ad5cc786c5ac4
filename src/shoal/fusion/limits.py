"""What a party takes from each of the others, as it follows from the agreement alone."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from shoal.connectors.party.messages import MessageKind
from shoal.fusion import id_join
from shoal.fusion.batches import NOTHING
from shoal.fusion.columns import column_head, most_column
from shoal.fusion.ground import REFUSED, VALID
from shoal.fusion.secure_maximum import KEYS, SHARES, most_shares
from shoal.fusion.wire.parser import Limit, Terms, is_count, parse_json
from shoal.policy.agreement import Agreement
from shoal.policy.agreement_model import PartyModel

MOST_RECORDS = 1 << 27
SHARE = struct.Struct("<cq")  # what a message of a secure round is, and MPyC's program counter
_MOST_ROLL = 64  # bytes
_DIGEST = 32  # bytes of a seal, a key or what a ledger says
_SPAN = 8  # bytes of a hull

Limits = dict[MessageKind, Limit]


def terms_of(agreement: Agreement, me: str, records: int) -> Terms:
    """What the others may send to this party, which has so many records."""
    owners = agreement.owners
    return Terms(
        agreement.hash,
        {
            other: (_of_owner(agreement, other, me, records) if other in owners else {})
            | _of_collector(agreement, other, me, records)
            | _of_rounds(agreement, other, me)
            for other in agreement.participants
            if other != me
        },
        owners=len(owners),
        ahead=agreement.rule().ahead,
        helper=agreement.model.helper.name if agreement.model.helper else None,
    )


def _of_owner(agreement: Agreement, sender: str, me: str, records: int) -> Limits:
    """What an owner sends: to the collector its ids, to a helper the end, to owners the rest."""
    points = id_join.POINT * MOST_RECORDS
    gathered = Limit(points, unit=id_join.POINT, in_pieces=True)
    limits = {MessageKind.GATHERED: gathered} if me == agreement.collector else {}
    if me not in agreement.owners:
        is_first = sender == agreement.owners[0]
        return limits | ({MessageKind.END: Limit(0)} if is_first else {})
    column = Limit(most_column(records), 8, in_pieces=True, check=column_head)
    limits |= {
        MessageKind.ROLL: Limit(_MOST_ROLL, check=parse_roll),
        MessageKind.LABEL: column,
        MessageKind.SEAL: Limit(_DIGEST, _DIGEST),
        **_of_join(agreement, sender, me),
        **({MessageKind.ATOMS: Limit(_DIGEST, _DIGEST)} if agreement.model.before else {}),
        **_of_batches(agreement, sender, records),
        **_of_judge(agreement, sender, me, records),
    }
    party = agreement.party(sender)
    assert isinstance(party, PartyModel)
    plain = [name for name, attribute in party.attributes.items() if attribute.role == "plain"]
    sensitive = sum(name in agreement.diverse for name in plain)
    counts = {MessageKind.PLAIN: len(plain) - sensitive, MessageKind.SENSITIVE: sensitive}
    return limits | {
        kind: Limit(column.most, 8, count=count, in_pieces=True, check=column_head)
        for kind, count in counts.items()
        if count
    }


def _of_join(agreement: Agreement, sender: str, me: str) -> Limits:
    owners = agreement.owners
    if agreement.model.joining.name == "keyed":
        return {MessageKind.KEY: Limit(_DIGEST, _DIGEST)} if sender == owners[0] else {}
    if sender != owners[owners.index(me) - 1]:
        return {}
    chunks = len(owners) * -(-MOST_RECORDS // id_join.CHUNK)
    chunk = id_join.POINT * id_join.CHUNK
    return {MessageKind.MASKED: Limit(chunk, id_join.POINT, chunks, id_join.POINT)}


def _of_batches(agreement: Agreement, sender: str, records: int) -> Limits:
    rule, domains = agreement.rule(), agreement.domains
    own = {j: domains[j].cells for j in agreement.numbers_of(sender)}
    limits = {}
    if own:
        limits[MessageKind.BATCH] = _of_batch(agreement, records, own)
        if agreement.has_hulls:
            limits[MessageKind.HULLS] = Limit(_SPAN * records * len(own), _SPAN, in_pieces=True)
    if agreement.bids and agreement.model.maximum.name == "clear":
        bits = rule.worth_bits(len(domains))
        limits[MessageKind.BIDS] = Limit(
            2 + rule.ahead * bits,
            count=rule.most_batches(records, sum(_nodes(agreement))) + 1,
            check=lambda bids: parse_bids(bids, rule.ahead, bits),
        )
    return limits


def _of_batch(agreement: Agreement, records: int, own: Mapping[int, int]) -> Limit:
    """How large and many batches are. own: cells of the sender's attributes."""
    rule, is_judged = agreement.rule(), agreement.judge is not None

    def check(batch: bytes) -> None:
        if not is_judged or batch != NOTHING:
            rule.check_batch(batch, own)

    return Limit(
        rule.most_batch(records, own),
        count=rule.most_batches(records, sum(_nodes(agreement)[j] for j in own)),
        in_pieces=rule.takes_turns,
        check=None if rule.takes_turns else check,
    )


def _nodes(agreement: Agreement) -> list[int]:
    """Of each attribute, how many nodes can be specialized at most."""
    return [d.cells if d.hierarchy is None else len(d.hierarchy.labels) for d in agreement.domains]


def _of_judge(agreement: Agreement, sender: str, me: str, records: int) -> Limits:
    """What owners ask the judge, and what it says: as often as there can be batches, and once
    before them.
    """
    rule, domains = agreement.rule(), agreement.domains
    if agreement.judge not in (sender, me):
        return {}
    asks = me if sender == agreement.judge else sender
    own = {j: domains[j].cells for j in agreement.numbers_of(asks)}
    batches = _of_batch(agreement, records, own)
    if me == agreement.judge:
        return {MessageKind.PROPOSAL: replace(batches, in_pieces=True)} if own else {}
    # a turn may have no cut
    least, most = (0, 2 * records) if rule.takes_turns else (1, 1)
    count = batches.count + 1 if own else 1
    verdict = Limit(max(most, 1), least, count, in_pieces=True, check=_check_verdict)
    return {MessageKind.VERDICT: verdict}


def _check_verdict(content: bytes) -> None:
    if not set(content) <= set(VALID + REFUSED):
        raise ValueError


def _of_collector(agreement: Agreement, sender: str, me: str, records: int) -> Limits:
    if sender != agreement.collector or me not in agreement.owners:
        return {}
    common = Limit(id_join.POINT * records, unit=id_join.POINT, in_pieces=True)
    return {MessageKind.COMMON: common}


def _of_rounds(agreement: Agreement, sender: str, me: str) -> Limits:
    is_clear = agreement.model.maximum.name == "clear"
    if is_clear or not agreement.bids or not {sender, me} <= set(agreement.computing):
        return {}
    bits = agreement.rule().worth_bits(len(agreement.quasi))
    most = SHARE.size + most_shares(len(agreement.owners), agreement.rule().ahead, bits)
    return {MessageKind.SHARES: Limit(most, SHARE.size, check=_check_share)}


def _check_share(content: bytes) -> None:
    if SHARE.unpack_from(content)[0] not in (KEYS, SHARES):
        raise ValueError


def parse_roll(content: bytes) -> dict[str, Any]:
    """How many records an owner has, and whether it has the label; raises ValueError."""
    roll = parse_json(content, _MOST_ROLL)
    if type(roll) is not dict or set(roll) != {"records", "label"}:
        raise ValueError
    if not is_count(roll["records"]) or roll["records"] > MOST_RECORDS:
        raise ValueError
    if type(roll["label"]) is not bool:
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
