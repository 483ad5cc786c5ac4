"""A fusion that was recorded, and one of its parties run again on what the others said, or on what
they did not say: in one process, over streams in memory instead of sockets.
"""

import json
import shutil
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from party_processes import World, bank_world
from shoal.connectors.party.journal import Journal
from shoal.connectors.party.tls import Identity
from shoal.fusion.party import _input_of
from shoal.fusion.protocol import run_party
from shoal.fusion.wire.link import PartyLink
from shoal.fusion.wire.messages import DONE, FRAME_HEAD, MessageKind, pack_frame
from shoal.policy.agreement import Agreement

Said = dict[str, list[tuple[int, bytes]]]  # kinds and contents by sender


@dataclass
class Recorded:
    """What every party heard from the others in a fusion, and the table that it ended with."""

    agreement: Agreement
    inputs: dict
    heard: dict[str, Said]
    secrets: dict[str, dict[bytes, bytes]]
    table: pl.DataFrame
    folder: Path

    def replay(
        self, party: str, said: Said, frames: dict[str, list[bytes]] | None = None, **words
    ) -> pl.DataFrame | None:
        """Runs a party on what the others say; raises what it raises.

        frames: instead of the messages of these senders. words: the others' greetings, by name.
        """
        folder = self.folder / "replay"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        journal = Journal(folder / "journal")
        journal.append(b"A", self.agreement.hash)
        for what, secret in self.secrets[party].items():
            journal.append(what, secret)
        journal.close()
        packed = {name: packed_frames(self.agreement.hash, said[name]) for name in said}
        Wire.frames = packed | (frames or {})
        Wire.greetings = {
            name: words.get(name, greeting(self.agreement.hash)) for name in Wire.frames
        }
        me = Identity(party, "", b"", b"")
        fused = run_party(self.agreement, me, folder, self.inputs[party], patience=2.0)
        return None if fused is None else fused.published


def greeting(agreement: bytes) -> bytes:
    return json.dumps([agreement.hex(), "0" * 16, 0, []]).encode()


def packed_frames(agreement: bytes, messages: list[tuple[int, bytes]]) -> list[bytes]:
    """Numbered as their sender would, with a goodbye behind them."""
    frames = [
        pack_frame(agreement, kind, number, content)
        for number, (kind, content) in enumerate(messages)
    ]
    return [*frames, pack_frame(agreement, MessageKind.BYE, 0, DONE)]


def record(
    folder: Path, keyed: bool = False, method: dict | None = None, change=lambda content: None
) -> Recorded:
    """Three owners, one of them with a column that is published as it is; a helper if keyed."""
    world = bank_world(folder, n=40, keyed=keyed, helper="recipient" if keyed else None)
    world.content["parties"][2]["attributes"]["district"] = {"role": "plain"}
    world.content["promises"] = [
        {"model": "k-anonymity", "attributes": ["age", "sex"], "k": 8},
        {"model": "k-anonymity", "attributes": ["salary", "education", "job"], "k": 8},
    ]
    if method is not None:
        world.content["method"] = method
    change(world.content)
    for name in world.names:
        world.start(name)
    assert set(world.statuses().values()) == {0}
    return _read(world)


def _read(world: World) -> Recorded:
    agreement = Agreement.load(world.agreement)
    heard: dict[str, Said] = {}
    secrets = {}
    for name in world.names:
        journal = Journal(world.folder / f"{name}.journal" / "journal")
        secrets[name] = {what: journal.get(what) for what in (b"K", b"H") if journal.get(what)}
        heard[name] = {}
        for other in world.names:
            frames = [journal.get(b"R", other, i) or b"" for i in range(journal.count(b"R", other))]
            if other != name:
                heard[name][other] = [(frame[32], frame[FRAME_HEAD:]) for frame in frames]
        journal.close()
    inputs = {name: _input_of(agreement, name) for name in world.names}
    table = pl.read_csv(world.folder / "bank.csv", infer_schema=False)
    return Recorded(agreement, inputs, heard, secrets, table, world.folder)


class _Status:
    FAILED_PRECONDITION = ABORTED = OK = UNAUTHENTICATED = "status"


class _Aborted(Exception):
    pass


@dataclass
class _Context:
    """Who calls, and in which session."""

    name: str
    session: str

    def invocation_metadata(self):
        return (("party", self.name), ("session", self.session))

    def abort(self, status, details):
        raise _Aborted


class _Sent:
    """A stream of what the party sends: nobody reads it."""

    def __init__(self, frames) -> None:
        self._ended = threading.Thread(target=lambda: [None for _ in frames], daemon=True)
        self._ended.start()

    def add_done_callback(self, call) -> None:
        pass

    def result(self, timeout) -> bytes:
        self._ended.join(timeout)
        return b""

    def cancel(self) -> None:
        pass


@dataclass
class Wire:
    """What stands for `Endpoint`: the others greet, agree to every session, and say their part."""

    identity: Identity
    peers: list
    most: int
    grpc: type = field(default=type("grpc", (), {"StatusCode": _Status}))
    rpc_error: type = _Aborted
    _speakers: list = field(default_factory=list)

    def serve(self, calls, streams) -> None:
        self._talk = streams["Talk"]

    def call(self, name: str, method: str, packed: bytes) -> bytes:
        return self.greetings[name] if method == "Hello" else b"yes"

    def stream(self, name: str, method: str, frames, session: str) -> _Sent:
        said, context = iter(self.frames[name]), _Context(name, session)
        self._speakers.append(threading.Thread(target=self._say, args=(said, context)))
        self._speakers[-1].start()
        return _Sent(frames)

    def _say(self, frames, context) -> None:
        with suppress(_Aborted):
            self._talk(frames, context)

    def caller(self, context) -> str:
        return context.name

    def why_unreached(self, name, failed) -> str:
        return ""

    def close(self) -> None:
        for speaker in self._speakers:
            speaker.join()


def in_memory(monkeypatch) -> None:
    """Parties talk over `Wire`, in chunks of few people, and nothing waits for a disk."""
    monkeypatch.setattr("shoal.fusion.wire.link.Endpoint", Wire)
    monkeypatch.setattr("shoal.fusion.id_join.CHUNK", 16)
    monkeypatch.setattr("shoal.fusion.wire.link.POLL", 0.01)
    monkeypatch.setattr("shoal.fusion.wire.session.POLL", 0.01)
    monkeypatch.setattr("os.fsync", lambda descriptor: None)
    monkeypatch.setattr(PartyLink, "leave", _leave_at_once(PartyLink.leave))


def _leave_at_once(leave):
    return lambda link, why=b"", seconds=0: leave(link, why)
