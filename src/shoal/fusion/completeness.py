"""Completeness: a fusion's transcript has every message that must have been sent, and no other.

How many there are and how long they are follows from public counts: the records that every owner
announced, the people in common, and the rounds, which are the batches and the last one without a
winner. It shares no code with the parties, but the table of who says what to whom.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from itertools import permutations

from shoal.connectors.party.messages import MessageKind
from shoal.fusion.kinds import spoken
from shoal.policy.agreement import Agreement

Said = dict[tuple[str, str], list[tuple[int, bytes]]]  # by sender and receiver: kind and content
_POINT = 32  # bytes, as of a seal and a key
_HEAD = 8  # bytes: the length before a long message
_KEYS = b"K"  # how a secure round's message begins that belongs to no round
_SINGLE = (MessageKind.SEAL, MessageKind.END, MessageKind.KEY, MessageKind.ATOMS)
_SAID_TO_ALL = (
    MessageKind.LABEL,
    MessageKind.SENSITIVE,
    MessageKind.BATCH,
    MessageKind.HULLS,
    MessageKind.PLAIN,
    MessageKind.BIDS,
)


def missing_or_more(agreement: Agreement, people: int, said: Said) -> list[str]:
    """What of all that must have been said is missing, or was said too often; one line each."""
    rolls, findings = _rolls(agreement, people, said)
    if findings:
        return findings
    return [
        *_by_length(agreement, rolls, _in_common(agreement, people, said), said),
        *_labels(agreement, rolls, said),
        *_equal_to_all(agreement, said),
        *_rounds(agreement, said),
    ]


def _in_common(agreement: Agreement, people: int, said: Said) -> int:
    """How many people the join found: those of the table, and those whom a ledger withholds."""
    if agreement.model.before is None:
        return people
    found = [sum(map(len, _of_kind(messages, MessageKind.COMMON))) for messages in said.values()]
    return max([people, *((size - _HEAD) // _POINT for size in found)])


def _of_kind(messages: list[tuple[int, bytes]], kind: MessageKind) -> list[bytes]:
    return [content for other, content in messages if other == kind]


def _rolls(
    agreement: Agreement, people: int, said: Said
) -> tuple[dict[str, Mapping[str, int]], list[str]]:
    """The roll of every owner; and what is wrong with it."""
    rolls: dict[str, Mapping[str, int]] = {}
    findings = []
    for sender, receiver in permutations(agreement.owners, 2):
        contents = _of_kind(said[sender, receiver], MessageKind.ROLL)
        first = said[sender, receiver][:1]
        try:
            roll = json.loads(contents[0])
            fits = type(roll["records"]) is int and type(roll["label"]) is bool
            fits = fits and roll["records"] >= people and rolls.setdefault(sender, roll) == roll
        except (ValueError, LookupError, TypeError, RecursionError):
            fits = False
        if not fits or len(contents) > 1 or first != [(MessageKind.ROLL, contents[0])]:
            findings.append(f"{sender} to {receiver}: does not begin with exactly one roll")
    return rolls, findings


def _by_length(
    agreement: Agreement, rolls: Mapping[str, Mapping[str, int]], people: int, said: Said
) -> list[str]:
    """Kinds of which every channel has a number of bytes that is known, and most have none."""
    everybody = sum(roll["records"] for roll in rolls.values())
    findings = []
    for (sender, receiver), messages in said.items():
        records = rolls[sender]["records"] if sender in rolls else 0
        sizes = {
            MessageKind.MASKED: _POINT * everybody or None,  # no chunk of nobody
            MessageKind.GATHERED: _HEAD + _POINT * records,
            MessageKind.COMMON: _HEAD + _POINT * people,
            MessageKind.KEY: _POINT,
            MessageKind.ATOMS: _POINT,
            MessageKind.SEAL: _POINT,
            MessageKind.END: 0,
            MessageKind.BYE: None,  # is not journaled, so none is here
        }
        expected = spoken(agreement, sender, receiver)
        for kind, usual in sizes.items():
            contents = _of_kind(messages, kind)
            size = usual if kind in expected else None
            found = sum(map(len, contents)) if contents else None
            if found != size:
                findings.append(
                    f"{sender} to {receiver}: {found or 0} bytes of '{kind.name.lower()}', where"
                    f" {size or 0} belong"
                )
            if kind in _SINGLE and len(contents) > 1:
                findings.append(f"{sender} to {receiver}: '{kind.name.lower()}' more than once")
    return findings


def _labels(agreement: Agreement, rolls: Mapping[str, Mapping[str, int]], said: Said) -> list[str]:
    """The first owner who has the label sends it to all other owners, and nobody else does."""
    first = next((owner for owner in agreement.owners if rolls.get(owner, {}).get("label")), None)
    return [
        f"{sender} to {receiver}: "
        + ("no label" if sender == first else "a label, though another party sends it")
        for sender, receiver in permutations(agreement.owners, 2)
        if bool(_of_kind(said[sender, receiver], MessageKind.LABEL)) != (sender == first)
    ]


def _equal_to_all(agreement: Agreement, said: Said) -> list[str]:
    """What an owner says to all other owners is the same; and all seal the same table, last."""
    findings = []
    seals = set()
    for sender, receiver in permutations(agreement.owners, 2):
        messages = said[sender, receiver]
        other = next(name for name in agreement.owners if name != sender)
        seals.update(_of_kind(messages, MessageKind.SEAL))
        spoken = [kind for kind, _ in messages if kind != MessageKind.SHARES]
        if spoken[-1:] != [MessageKind.SEAL]:
            findings.append(f"{sender} to {receiver}: does not end with a seal")
        findings += [
            f"{sender} to {receiver}: another '{kind.name.lower()}' than to {other}"
            for kind in _SAID_TO_ALL
            if _of_kind(messages, kind) != _of_kind(said[sender, other], kind)
        ]
    return [*findings, *(["the owners sealed different tables"] if len(seals) > 1 else [])]


def _rounds(agreement: Agreement, said: Said) -> list[str]:
    """Whether every round was computed: by shares of all who compute, or by bids in the clear."""
    owners = agreement.owners
    if len(owners) == 1:
        return []
    batches = [
        len(_of_kind(said[owner, next(o for o in owners if o != owner)], MessageKind.BATCH))
        for owner in owners
    ]
    rounds = sum(batches) + 1 if agreement.bids else 0
    findings = []
    for (sender, receiver), messages in said.items():
        expected = spoken(agreement, sender, receiver)
        bids = len(_of_kind(messages, MessageKind.BIDS))
        if bids != (rounds if MessageKind.BIDS in expected else 0):
            findings.append(f"{sender} to {receiver}: {bids} bids in {rounds} rounds")
        shares = _of_kind(messages, MessageKind.SHARES)
        is_whole = not shares
        if MessageKind.SHARES in expected:
            keys = _sessions(agreement, sender, receiver, said)
            is_whole = _is_whole(shares, rounds, keys, sender not in owners)
        if not is_whole:
            findings.append(f"{sender} to {receiver}: not the shares of {rounds} rounds")
    return findings


def _sessions(agreement: Agreement, one: str, other: str, said: Said) -> int:
    """In how many sessions two parties computed: in each the first one sends keys."""
    first, second = sorted((one, other), key=agreement.computing.index)
    shares = _of_kind(said[first, second], MessageKind.SHARES)
    return sum(share.startswith(_KEYS) for share in shares)


def _is_whole(shares: list[bytes], rounds: int, sessions: int, is_helper: bool) -> bool:
    """Whether the lengths are those of so many rounds, which are all computed alike.

    A helper has begun one more when it hears that there is none. After a break, rounds are
    computed again, and how far the broken one went is not known.
    """
    lengths = Counter(len(share) for share in shares if not share.startswith(_KEYS))
    if not sessions or not lengths:
        return False
    if sessions > 1:
        return sum(lengths.values()) >= rounds
    for count in lengths.values():
        begun = count % rounds
        if count < rounds or begun > (count // rounds if is_helper else 0):
            return False
    return True
