"""Whatever a party says, the others end with the table of the fusion or with one line about it."""

import json
import os
import random
import struct
import time

import polars as pl
import pytest

from recorded_fusion import in_memory, packed_frames, record
from shoal.errors import InfeasibleError, InputError, PartyError, ShoalError
from shoal.fusion.wire.messages import MessageKind

# as many as one likes: SHOAL_MUTATIONS=20000 pytest tests/services/test_hostile_messages.py
MUTATIONS = int(os.environ.get("SHOAL_MUTATIONS", "240"))
SEED = int(os.environ.get("SHOAL_SEED", "0")) or random.randrange(1, 10**9)
LONG = {MessageKind.GATHERED, MessageKind.COMMON, MessageKind.LABEL, MessageKind.PLAIN}
STRANGE = [
    b"null",
    b"true",
    b"-1",
    b"1000000000",
    b"1" + b"0" * 400,
    b"1" + b"0" * 5000,
    b"1.5",
    b"NaN",
    b'"text"',
    b'"\\ud800"',
    b"[]",
    b"{}",
    b"[" * 100_000,
    b'{"records": 1, "records": 2, "label": true}',
    b'"\xff\xfe"',
]


@pytest.fixture(scope="module", params=[False, True], ids=["masked", "keyed"])
def recorded(tmp_path_factory, request):
    return record(tmp_path_factory.mktemp("recorded"), request.param)


@pytest.fixture(autouse=True)
def memory(monkeypatch):
    in_memory(monkeypatch)


def test_what_was_said_gives_the_table_again(recorded):
    for party in recorded.heard:
        table = recorded.replay(party, recorded.heard[party])
        assert table is None or table.cast(pl.String).equals(recorded.table)


def test_every_mutation_of_a_fusion_is_refused_in_one_line_or_changes_nothing(recorded):
    assert refused_mutations(recorded, MUTATIONS // 2) > MUTATIONS // 4


def refused_mutations(recorded, count: int) -> int:
    """How many mutations are refused, in one line; the others change nothing."""
    rng = random.Random(SEED)
    refused = 0
    for number in range(count):
        where = f"SHOAL_SEED={SEED}, mutation {number}"
        begun = time.monotonic()
        refused += refuses_a_mutation(recorded, rng, where)
        assert time.monotonic() - begun < 10, where
    return refused


def refuses_a_mutation(recorded, rng, where: str) -> bool:
    """Whether a mutation is refused, in one line; if not, it changes nothing."""
    party = rng.choice(list(recorded.heard))
    mutation, said, frames = mutated(rng, recorded, party)
    where = f"{where}: {mutation} to {party}"
    try:
        table = recorded.replay(party, said, frames)
    except ShoalError as ended:
        check_words(ended, where)
        return True
    except Exception as bug:
        pytest.fail(f"{where}: {bug!r}")
    assert table is None or table.cast(pl.String).equals(recorded.table), where
    return False


def check_words(ended: ShoalError, where: str) -> None:
    """One line; it names a party, or what the mutation means if it were true."""
    text = str(ended)
    assert "\n" not in text, where
    if isinstance(ended, PartyError):
        assert text.startswith(("party '", "parties ", "label ")), f"{where}: {text}"
    else:
        assert isinstance(ended, (InfeasibleError, InputError)), f"{where}: {text}"
        assert "people in common" in text or "in no party's table" in text, f"{where}: {text}"


def mutated(rng, recorded, party):
    """One change to what one of the others says: its name, all messages, perhaps other frames."""
    said = {name: list(messages) for name, messages in recorded.heard[party].items()}
    sender = rng.choice([name for name in said if said[name]])
    messages = said[sender]
    at = rng.randrange(len(messages))
    kind, content = messages[at]
    name = rng.choice(["content", "content", "content", "json", "json", "order", "kind", "frame"])
    frames = None
    if name == "content":
        messages[at] = (kind, changed(rng, content))
    elif name == "json":
        replace_json(rng, messages, at)
    elif name == "order":
        reorder(rng, messages, at)
    elif name == "kind":
        messages[at] = (rng.choice([*range(16), 255]), content)
    else:
        whole = packed_frames(recorded.agreement.hash, messages)
        at = rng.randrange(len(whole))
        head = rng.random() < 0.7
        whole[at] = (
            changed(rng, whole[at][:37]) + whole[at][37:] if head else changed(rng, whole[at])
        )
        frames = {sender: whole}
    return f"{name} of message {at} ({kind}) of {sender}", said, frames


def changed(rng, content: bytes) -> bytes:
    """Other bytes."""
    if not content:
        return rng.randbytes(rng.randrange(1, 9))
    at = rng.randrange(len(content))
    return rng.choice(
        [
            lambda: content[:at] + bytes([content[at] ^ 1 << rng.randrange(8)]) + content[at + 1 :],
            lambda: content[:at] + rng.randbytes(1) + content[at + 1 :],
            lambda: content[:at],
            lambda: content + rng.randbytes(rng.randrange(1, 40)),
            lambda: b"",
            lambda: bytes(len(content)),
            lambda: b"\xff" * len(content),
            lambda: rng.randbytes(len(content)),
            lambda: content[:at] + content[at + 1 :],
            lambda: content[:at] + rng.randbytes(1) + content[at:],
            lambda: rng.choice(STRANGE),
            lambda: struct.pack("<Q", rng.choice([0, 1, 7, 32, 2**20, 2**32, 2**63, 2**64 - 1])),
        ]
    )()


def reorder(rng, messages, at) -> None:
    other = rng.randrange(len(messages))
    how = rng.randrange(5)
    if how == 0:
        messages.insert(other, messages[at])
    elif how == 1:
        del messages[at]
    elif how == 2:
        messages[at], messages[other] = messages[other], messages[at]
    elif how == 3:
        messages[at:] = []
    else:
        messages.insert(at, (rng.choice(list(MessageKind)), rng.randbytes(rng.randrange(40))))


def replace_json(rng, messages, at) -> None:
    """Another value somewhere in a message of JSON; in a column, all lengths are made to fit."""
    kind, content = messages[at]
    if kind in (MessageKind.ROLL, MessageKind.BIDS):
        messages[at] = (kind, with_strange_value(rng, content))
    elif kind in (MessageKind.LABEL, MessageKind.PLAIN) and len(content) > 8:
        (length,) = struct.unpack_from("<Q", content)
        head = with_strange_value(rng, content[8 : 8 + length])
        column = struct.pack("<Q", len(head)) + head + content[8 + length :]
        messages[at - 1 : at + 1] = [(kind, struct.pack("<Q", len(column))), (kind, column)]
    else:
        messages[at] = (kind, rng.choice(STRANGE))


def with_strange_value(rng, content: bytes) -> bytes:
    """JSON in which one value, at random depth, is another one."""
    whole = json.loads(content)
    place = b'"here it goes"'
    marked = put(rng, whole, json.loads(place))
    return json.dumps(marked).encode().replace(place, rng.choice(STRANGE))


def put(rng, value, mark):
    if isinstance(value, dict) and value and rng.random() < 0.8:
        key = rng.choice(list(value))
        return {**value, key: put(rng, value[key], mark)}
    if isinstance(value, list) and value and rng.random() < 0.8:
        at = rng.randrange(len(value))
        return [*value[:at], put(rng, value[at], mark), *value[at + 1 :]]
    return mark


GREETINGS = [
    b"",
    b"\xff\xfe",
    b"[" * 100_000,
    b"[]",
    b"{}",
    b"null",
    lambda hash: [hash, "0" * 16, 0],
    lambda hash: [hash, "0" * 16, 0, [], 1],
    lambda hash: [hash, 7, 0, []],
    lambda hash: [hash, "\ud800", 0, []],
    lambda hash: [hash, "z" * 16, 0, []],
    lambda hash: [hash, "0" * 10_000, 0, []],
    lambda hash: [7, "0" * 16, 0, []],
    lambda hash: [hash, "0" * 16, -1, []],
    lambda hash: [hash, "0" * 16, True, []],
    lambda hash: [hash, "0" * 16, 1.0, []],
    lambda hash: [hash, "0" * 16, "0", []],
    lambda hash: [hash, "0" * 16, 10**9, []],
    lambda hash: [hash, "0" * 16, 0, {}],
    lambda hash: [hash, "0" * 16, 0, [[0, 256]]],
    lambda hash: [hash, "0" * 16, 0, [[-1, 0]]],
    lambda hash: [hash, "0" * 16, 0, [[3, 1]]],
    lambda hash: [hash, "0" * 16, 0, [[0]]],
    lambda hash: [hash, "0" * 16, 0, [0]],
    lambda hash: [hash, "0" * 16, 0, [[0, [1]]]],
    lambda hash: [hash, "0" * 16, 0, [[0, 1]] * 200_000],
]


@pytest.mark.parametrize("greets", GREETINGS, ids=range(len(GREETINGS)))
def test_a_greeting_that_can_not_be_right_ends_the_run(recorded, greets):
    if callable(greets):
        greets = json.dumps(greets(recorded.agreement.hash.hex())).encode()
    with pytest.raises(PartyError, match="party 'insurer', greeting: ") as ended:
        recorded.replay("bank", recorded.heard["bank"], insurer=greets)
    assert "\n" not in str(ended.value)


def test_a_greeting_that_is_right_is_taken(recorded):
    greets = json.dumps([recorded.agreement.hash.hex(), "1" * 16, 0, []]).encode()
    table = recorded.replay("bank", recorded.heard["bank"], insurer=greets)
    assert table.cast(pl.String).equals(recorded.table)
