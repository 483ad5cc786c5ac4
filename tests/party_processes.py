"""Parties as real processes for tests, each killed at an entry of its journal where a test asks for
it.

They are forked from a server that has imported everything, so that a test needs no seconds to start
one.
"""

import json
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing import forkserver
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import yaml

from shoal.data.certificate import Certificate
from shoal.fusion.fuse import free_ports, fuse_file
from shoal.samples import bank, write_sample
from warm_interpreters import WarmInterpreters

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["party_processes", "warm_parties"])
HERE = Path(__file__).parent


def forked(target: Callable[..., None], arguments: tuple) -> ForkServerProcess:
    """A process that runs the function, forked from the server; not started yet."""
    before = os.environ.get("PYTHONPATH")
    # the server's interpreter does not get `sys.path`, and says nothing about what it can't import
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), *([before] if before else [])])
    try:
        forkserver.ensure_running()
    finally:
        del os.environ["PYTHONPATH"]
        if before:
            os.environ["PYTHONPATH"] = before
    return _CONTEXT.Process(target=target, args=arguments, daemon=True)


@dataclass
class World:
    """A folder with tables, keys and an agreement of several parties; and the processes that run
    them.
    """

    folder: Path
    content: dict
    running: dict = field(default_factory=dict)

    @property
    def agreement(self) -> Path:
        path, text = self.folder / "parties.yaml", yaml.safe_dump(self.content)
        if not path.exists() or path.read_text() != text:  # a party may be reading it
            path.write_text(text)
        return path

    @property
    def names(self) -> list[str]:
        helper = [self.content["helper"]["name"]] if "helper" in self.content else []
        return [party["name"] for party in self.content["parties"]] + helper

    def start(
        self, name: str, die_at: int | None = None, patience: float = 40.0, lie: str | None = None
    ) -> None:
        arguments = (str(self.folder), str(self.agreement), name, die_at, patience, lie)
        self.running[name] = forked(_party, arguments)
        self.running[name].start()

    def run(self, **more) -> dict[str, int]:
        """Starts every party alike; how each of them ended."""
        for name in self.names:
            self.start(name, **more)
        return self.statuses()

    def statuses(self, seconds: float = 60.0) -> dict[str, int]:
        """How every party ended: 0, or 9 below 0 for a kill, or the status of its error."""
        until = time.monotonic() + seconds
        for process in self.running.values():
            process.join(max(0.1, until - time.monotonic()))
        for process in self.running.values():
            if process.is_alive():
                process.kill()
                process.join()
        return {name: process.exitcode for name, process in self.running.items()}

    def kill(self) -> None:
        """Ends all that still run; frozen ones, too, which nothing else does."""
        for process in self.running.values():
            if process.is_alive():
                process.kill()
                process.join()

    def die_again_and_again(self, name: str, entries: int = 1, **others) -> int:
        """Starts the others, and a party that is killed whenever its journal has that many entries
        more, until all end well; its lives.
        """
        for other in self.names:
            if other != name:
                self.start(other, **others)
        lives = 0
        while not lives or self.running[name].exitcode == -9:
            self.start(name, die_at=entries)
            self.running[name].join(60)
            lives += 1
        assert set(self.statuses().values()) == {0}
        return lives

    def release(self, name: str) -> bytes:
        return (self.folder / f"{name}.csv").read_bytes()

    def message(self, name: str) -> str:
        return (self.folder / f"{name}.error").read_text()


def _party(
    folder: str, agreement: str, name: str, die_at: int | None, patience: float, lie: str | None
) -> None:
    """One party in its process; killed after `die_at` entries of its journal, or one that lies."""
    WarmInterpreters().replace_by_forks_of_this()
    from shoal.connectors.party.journal import Journal
    from shoal.errors import ShoalError
    from shoal.fusion import id_join
    from shoal.fusion.party import take_part
    from shoal.fusion.request import PartyRequest
    from shoal.fusion.wire import session

    session.LAST_CALL, id_join.CHUNK = 2.0, 16  # several chunks of few people
    if lie is not None and lie.startswith("mutates:"):
        _mutate(int(lie.removeprefix("mutates:")))
    elif lie is not None and ":" in lie:
        _end_at(*lie.split(":"))
    elif lie is not None:
        _lie(lie)
    if die_at is not None:
        append, count = Journal.append, [0]

        def counted(self, *content, **more):
            append(self, *content, **more)
            count[0] += 1
            if count[0] == die_at:
                os.kill(os.getpid(), signal.SIGKILL)

        Journal.append = counted
    place = Path(folder)
    try:
        take_part(
            PartyRequest(
                name,
                agreement,
                str(place / f"{name}.csv"),
                keys=place,
                folder=place / f"{name}.journal",
                ledger=place,
                replace=True,  # a folder's second fusion
                patience=patience,
            )
        )
    except ShoalError as error:
        (place / f"{name}.error").write_text(str(error))
        os._exit(error.exit_status)
    os._exit(0)


def _lie(about: str) -> None:
    """Changes what this process says: how many records it has, who is in common, or which round was
    computed; or leaves it no room for its ledger.
    """
    from shoal.fusion import party
    from shoal.fusion.wire.link import PartyLink
    from shoal.fusion.wire.messages import MessageKind

    if about == "no room":
        party.write_ledger = _refuse

    send = PartyLink.send

    def lying(self, to, kind, content):
        if kind == MessageKind.ROLL and about == "records":
            content = json.dumps(json.loads(content) | {"records": 5000}).encode()
        elif kind == MessageKind.ROLL and about == "roll":
            content = b'{"records": "many"}'
        elif kind == MessageKind.COMMON and about == "common" and len(content) >= 64:
            # a person twice
            content = bytes(content[:32]) * 2 + bytes(content[64:])
        send(self, to, kind, content)

    PartyLink.send = lying


def _refuse(path: Path, content: bytes) -> None:
    from shoal.errors import InputError

    raise InputError(f"ledger '{path}': there is no room")


def _end_at(how: str, kind: str) -> None:
    """Before this process sends its first message of a kind, it is frozen or killed, it leaves, or
    it goes on without sending anything any more.
    """
    from shoal.errors import PartyError
    from shoal.fusion.wire.link import PartyLink
    from shoal.fusion.wire.messages import MessageKind

    is_silent = False

    def ending(send, is_it):
        def sent(self, to, *content):
            nonlocal is_silent
            if is_it(content):
                if how == "frozen":
                    os.kill(os.getpid(), signal.SIGSTOP)
                if how == "killed":
                    os.kill(os.getpid(), signal.SIGKILL)
                if how == "leaves":
                    raise PartyError("this party: has had enough")
                is_silent = True
            if not is_silent:
                send(self, to, *content)

        return sent

    wanted = MessageKind[kind]
    PartyLink.send = ending(PartyLink.send, lambda content: content[0] == wanted)
    PartyLink.send_shares = ending(
        PartyLink.send_shares, lambda content: wanted == MessageKind.SHARES
    )


def _mutate(seed: int) -> None:
    """Changes one in a few of the frames and greetings that this process sends."""
    import random

    from shoal.connectors.party.tls import Endpoint

    rng = random.Random(seed)
    often = rng.choice([0.02, 0.1, 0.5])
    call, stream = Endpoint.call, Endpoint.stream

    def changed(frame: bytes) -> list[bytes]:
        if rng.random() >= often:
            return [frame]
        at = rng.randrange(len(frame) + 1)
        flipped = bytes([frame[at] ^ 1 << rng.randrange(8)]) if at < len(frame) else b"?"
        return rng.choice(
            [
                [frame[:at]],
                [frame, frame],
                [],
                [frame[:at] + flipped + frame[at + 1 :]],
                [frame[:at] + rng.randbytes(rng.choice([1, 40, 1 << 20])) + frame[at:]],
                [frame[:33] + rng.randbytes(len(frame) - 33)],
            ]
        )

    def lying_call(self, name, method, packed):
        frames = changed(packed)
        return call(self, name, method, frames[0] if frames else b"")

    def lying_stream(self, name, method, frames, session):
        mutated = (one for frame in frames for one in changed(frame))
        return stream(self, name, method, mutated, session)

    Endpoint.call, Endpoint.stream = lying_call, lying_stream


def bank_fusion(folder: Path, n: int, change: Callable[[dict], object]) -> tuple[Path, Certificate]:
    """The sample's owners fuse their tables to `out.csv`, and write down what they `said`. The
    agreement, as it was changed, and the certificate.
    """
    write_sample("bank", n, 4, str(folder / "demo"))
    agreement = folder / "demo" / "bank.parties.yaml"
    content = yaml.safe_load(agreement.read_text())
    change(content)
    agreement.write_text(yaml.safe_dump(content))
    certificate = fuse_file(str(agreement), str(folder / "out.csv"), transcript=folder / "said")
    return agreement, certificate


def bank_world(
    folder: Path,
    n: int = 90,
    maximum: str = "clear",
    helper: str | None = None,
    keyed: bool = False,
) -> World:
    """The sample's owners with small k; two of them and a helper where one is named, who compares
    all ids if keyed.
    """
    from shoal.fusion.request import Keys

    tables = {}
    for owner, frame in bank.generate_parts(n, 5).items():
        tables[owner] = f"{owner}.table.csv"
        frame.write_csv(folder / tables[owner])
    content = yaml.safe_load(bank.parties(tables))
    content["promises"] = [
        {"model": "k-anonymity", "attributes": ["age", "sex"], "k": 4},
        {"model": "k-anonymity", "attributes": ["salary", "education", "job", "district"], "k": 3},
    ]
    if maximum == "clear":
        content["maximum"] = {"name": "clear", "scores_may_be_seen": True}
    if helper is not None:
        content["helper"] = {"name": helper}
    if helper is not None and not keyed:
        content["parties"] = content["parties"][:2]
        content["promises"] = [{"model": "k-anonymity", "k": 3}]
    if keyed:
        content["joining"] = {"name": "keyed", "helper_is_trusted": True}
    world = World(folder, content)
    parties = [*content["parties"], *([content["helper"]] if helper else [])]
    for party, port in zip(parties, free_ports(len(parties)), strict=True):
        Keys.of(party["name"], folder).make(party["name"])
        party |= {"address": f"127.0.0.1:{port}", "certificate": f"{party['name']}.crt"}
    return world
