"""Channels among parties: each message once, in order, from whom it says, and of the agreement; or
the run ends.
"""

import threading
import time
from contextlib import suppress

import pytest

from shoal.connectors.party.journal import Journal
from shoal.connectors.party.tls import Identity, Peer, make_keys
from shoal.errors import PartyError
from shoal.fusion.fuse import free_ports
from shoal.fusion.wire.link import PartyLink
from shoal.fusion.wire.messages import Greeting, Limit, LinkLost, MessageKind, Terms

AGREEMENT = bytes(range(32))
TAKEN = {
    MessageKind.ROLL: Limit(3, count=3),
    MessageKind.SHARES: Limit(100),
    MessageKind.SEAL: Limit(32, 32),
}


@pytest.fixture
def make_pair(tmp_path):
    """Makes two parties with a session between them."""
    made = []

    def make(patience=20):
        links = _links(tmp_path, patience)
        made.extend(links.values())
        together(*(link.establish for link in made))
        return links["left"], links["right"]

    yield make
    for link in made:
        link.stop()


@pytest.fixture
def pair(make_pair):
    return make_pair()


def _links(folder, patience):
    links = {}
    keys = {name: make_keys(name) for name in ("left", "right")}
    places = dict(zip(keys, free_ports(2), strict=True))
    for name, (private, public) in keys.items():
        (other,) = set(keys) - {name}
        me = Identity(name, f"127.0.0.1:{places[name]}", public, private)
        peer = Peer(other, f"127.0.0.1:{places[other]}", keys[other][1])
        terms = Terms(AGREEMENT, {other: TAKEN})
        links[name] = PartyLink(me, [peer], terms, Journal(folder / name), patience=patience)
    return links


def together(*calls):
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)


def test_messages_arrive_once_and_in_order(pair):
    left, right = pair
    for content in (b"one", b"two", b""):
        left.send("right", MessageKind.ROLL, content)
    assert [right.receive("left", MessageKind.ROLL) for _ in range(3)] == [b"one", b"two", b""]


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        (lambda frame: frame, "a second time"),
        (lambda frame: frame[:33] + bytes([5]) + frame[34:], "out of order"),
        (lambda frame: bytes(32) + frame[32:], "another agreement"),
    ],
    ids=["replayed", "skips one", "of another agreement"],
)
def test_a_message_that_is_not_the_next_one_ends_the_run(pair, changed, says):
    left, right = pair
    left.send("right", MessageKind.ROLL, b"one")
    assert right.receive("left", MessageKind.ROLL) == b"one"
    left._outbox["right"].put(changed(left._journal.get(b"S", "right", 0)))
    with pytest.raises(PartyError, match=says):
        right.receive("left", MessageKind.ROLL)


def test_another_kind_than_comes_next_ends_the_run(pair):
    left, right = pair
    left.send("right", MessageKind.ROLL, b"one")
    with pytest.raises(PartyError, match="is not what comes next"):
        right.receive("left", MessageKind.SEAL)


def test_a_session_that_breaks_is_followed_by_another_and_nothing_is_lost_or_doubled(pair):
    left, right = pair
    left.send("right", MessageKind.ROLL, b"one")
    right.receive("left", MessageKind.ROLL)
    left._streams["right"].cancel()
    for _ in range(100):
        try:
            right._sessions.check()
            time.sleep(0.05)
        except LinkLost:
            break
    together(left.establish, right.establish)
    for link in pair:
        link.rewind()
    left.send("right", MessageKind.ROLL, b"something else")
    left.send("right", MessageKind.ROLL, b"two")
    assert [right.receive("left", MessageKind.ROLL) for _ in range(2)] == [b"one", b"two"]


def test_a_party_that_is_done_and_gone_breaks_no_session(pair, monkeypatch):
    """As a helper, who is done once ids are compared, does not make the owners begin again."""
    monkeypatch.setattr("shoal.fusion.wire.link.GOODBYES", 0.2)
    left, right = pair
    left.send("right", MessageKind.ROLL, b"one")
    right.receive("left", MessageKind.ROLL)
    right.finish()
    left._streams["right"].exception(timeout=30)
    left._sessions.check()
    left.finish()


def test_shares_of_a_session_that_died_while_it_was_established_are_dropped(pair):
    """The secure round of the next session would take them for its own."""
    left, right = pair
    heard, _ = session_that_is_half_open(left, right)
    left.send_shares("right", b"of the session that died")
    until_heard(right)
    left._sessions.lose()
    together(left.establish, right.establish)
    left.send_shares("right", b"of the session that stands")
    until_heard(right)
    assert heard == [b"of the session that stands"]


def session_that_is_half_open(left, right):
    """The right one has agreed to it, but not opened it yet. What it hears, and the session."""
    heard = []
    right.on_shares = lambda sender, content: heard.append(content)
    for link in (left, right):
        link._hang_up()
        link._sessions.lose()
    right._sessions._is_negotiating = True
    left._sessions._greet("right")
    session = left._sessions._session()
    assert left._sessions._begins("right", session)
    left._open(session)
    return heard, session


def until_heard(link):
    """Waits until the link has had the time to hear what was sent."""
    time.sleep(0.5)


def test_shares_that_arrive_before_this_party_opens_their_session_are_kept(pair):
    left, right = pair
    heard, session = session_that_is_half_open(left, right)
    left.send_shares("right", b"early")
    until_heard(right)
    right._open(session)
    assert heard == [b"early"]


def test_a_party_that_leaves_is_not_waited_for(pair):
    left, right = pair
    left.leave(seconds=5)
    with pytest.raises(PartyError, match="left before the end"):
        right.receive("left", MessageKind.ROLL)


@pytest.fixture
def deaf_pair(make_pair, monkeypatch):
    """Two parties, of which the right one takes no message in and knows that it is idle."""
    monkeypatch.setattr("shoal.fusion.wire.session.MOST_WAITING", 2)
    left, right = make_pair(patience=1)
    heard = threading.Event()
    monkeypatch.setattr(right, "_hear", lambda *said: (heard.wait(20), MessageKind.BYE)[1])

    def wait():
        with suppress(PartyError, LinkLost):
            right.receive("left", MessageKind.ROLL)

    waiting = threading.Thread(target=wait)
    waiting.start()
    yield left
    heard.set()
    left.leave()
    waiting.join(40)  # two dozen times its patience at most
    assert not waiting.is_alive()


def test_a_party_that_takes_nothing_in_is_not_sent_to_for_ever(deaf_pair):
    def send_much():
        for _ in range(4000):
            deaf_pair.send("right", MessageKind.ROLL, bytes(1 << 12))

    with pytest.raises(PartyError, match="party 'right': nothing came within"):
        send_much()


def test_a_party_that_takes_nothing_in_does_not_keep_another_from_finishing(deaf_pair):
    begun = time.monotonic()
    deaf_pair.send("right", MessageKind.ROLL, b"one")
    with pytest.raises(LinkLost):
        deaf_pair.finish()
    assert time.monotonic() - begun < 10, "patience is one second"


def frame(kind, content, number=0):
    return AGREEMENT + bytes([kind]) + number.to_bytes(4, "little") + content


@pytest.mark.parametrize(
    ("said", "says"),
    [
        (
            [frame(MessageKind.ROLL, bytes(200 << 20))],
            "'roll': is 209715200 bytes long; 0 to 3 are",
        ),
        ([frame(MessageKind.SEAL, bytes(31))], "'seal': is 31 bytes long; 32 to 32 are possible"),
        ([frame(MessageKind.BATCH, b"")], "'batch': is not for this party"),
        ([frame(77, b"")], "message of kind 77: is none that Shoal has"),
        ([frame(MessageKind.SHARES, bytes(101))], "'shares': is 101 bytes long"),
        ([frame(MessageKind.BYE, b"what")], "'bye': can't be read"),
        ([b"short"], "sent something that is not a message"),
        (
            [frame(MessageKind.SEAL, bytes(32)), frame(MessageKind.ROLL, b"", 1)],
            "'roll': comes out of order, after 'seal'",
        ),
        (
            [frame(MessageKind.ROLL, b"", number) for number in range(4)],
            "'roll': comes more often than 3 times",
        ),
    ],
    ids=[
        "200 MB",
        "short of a byte",
        "a kind that is not for it",
        "a kind that there is not",
        "shares too long",
        "a goodbye with words",
        "no message",
        "out of order",
        "too often",
    ],
)
def test_what_a_party_may_not_say_ends_the_run_and_is_not_journaled(pair, said, says):
    left, right = pair
    for one in said:
        left._outbox["right"].put(one)
    for _ in said[1:]:
        right.receive("left", MessageKind(said[0][32]))
    with pytest.raises(PartyError, match=r"^party 'left'") as ended:
        right.receive("left", MessageKind.LABEL)
    assert says in str(ended.value)
    assert len(right._journal) == len(said) - 1
    with pytest.raises(PartyError, match=r"^party 'left'"):
        right._sessions.check()
    with pytest.raises(PartyError, match="party 'right': refuses a message of this party"):
        left.receive("right", MessageKind.LABEL)


@pytest.mark.parametrize("greeting", [b"\xff\xfe", b"[" * 50_000, b"[" + b"0," * (1 << 20) + b"0]"])
def test_a_greeting_that_is_none_ends_the_run(pair, greeting):
    left, right = pair
    with pytest.raises(left._endpoint.rpc_error):
        left._endpoint.call("right", "Hello", greeting)
    with pytest.raises(PartyError, match="party 'left', greeting: can't be read"):
        right._sessions.check()
    assert left._endpoint.call("right", "Begin", b"\xff\xfe") == b"no"


def test_a_party_that_claims_more_than_was_sent_is_refused(pair):
    left, _ = pair
    left.send("right", MessageKind.ROLL, b"one")
    claims = Greeting("0" * 16, 1, ())
    assert left._sessions._parsed("right", claims.packed(AGREEMENT)) == claims
    with pytest.raises(PartyError, match="has 2 messages of this party, more than the journal"):
        left._sessions._parsed("right", Greeting("0" * 16, 2, ()).packed(AGREEMENT))


def test_a_party_whose_message_always_breaks_the_channel_is_not_waited_for_forever(
    make_pair, monkeypatch
):
    """Beyond what any message may have, gRPC breaks the channel before there is a sender."""
    monkeypatch.setattr("shoal.fusion.wire.messages._ROOMY", 1 << 12)
    monkeypatch.setattr("shoal.fusion.wire.session.MOST_AGAIN", 3)
    left, right = make_pair(patience=1)
    ended = {}

    def go_on(link, other):
        try:
            while True:
                link.rewind()
                with suppress(LinkLost):
                    if link is left:
                        link.send("right", MessageKind.ROLL, bytes(1 << 14))
                    link.receive(other, MessageKind.ROLL)
                link.establish()
        except PartyError as error:
            ended[other] = str(error)
            link.leave()

    together(lambda: go_on(left, "right"), lambda: go_on(right, "left"))
    assert len(ended) == 2
    assert any("sessions in a row broke before a message arrived" in ended[who] for who in ended)
    assert len(right._journal) == 0
