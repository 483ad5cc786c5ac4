"""Fuse: all parties of an agreement as processes on this machine, talking as they would across
organisations.

Each party is `shoal party NAME`, with throw-away keys, a loopback port and a folder of its own; a
party that is killed is started again and goes on from its journal. The release is let out when all
parties ended with the same bytes.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from shoal import errors
from shoal.algorithms.fusion.secure_maximum import check_computing
from shoal.connectors import files
from shoal.connectors.frames import like, table_of
from shoal.data.certificate import Certificate
from shoal.data.progress import Progress, no_progress
from shoal.data.table import Table
from shoal.errors import InfeasibleError, InputError, PartyError, PromiseError
from shoal.jobs.audit.audit import audit_file, audit_table
from shoal.jobs.fuse.keys import Keys
from shoal.policy.agreement import Agreement, PartyModel, with_places

if TYPE_CHECKING:
    from shoal.jobs.publish.publish import Publication

RESTARTS = 3
HEARD = 5.0  # seconds for what a party said at its end
ADDED_DELAY = "SHOAL_ADDED_DELAY_MS"  # holds every message back, for experiments on one machine
ATTACHED = "SHOAL_ATTACHED"
_PREFIX = "shoal: "


@dataclass
class _Running:
    """A party's process and what it says."""

    name: str
    command: list[str]
    process: subprocess.Popen[bytes] | None = None
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=20))
    listener: threading.Thread | None = None
    starts: int = 0


def fuse(
    agreement: str | Path | dict[str, Any],
    tables: Mapping[str, Any] | None = None,
    *,
    transcript: str | Path | None = None,
    progress: Progress = no_progress,
) -> Publication:
    """One release from all parties' tables, with all parties as processes on this machine.

    agreement: a PARTIES.yaml, or its content. tables: pandas, polars or pyarrow frames by party; of
    whom none is named the agreement's own `table` is read. The same kind of frame as the first
    comes back. transcript: a folder for all messages, which `shoal audit --transcript` checks.
    Raises InputError, InfeasibleError, PromiseError or PartyError, and then returns nothing.
    """
    from shoal.jobs.publish.publish import Publication

    agreed = Agreement.of(agreement)
    frames = _frames_of(tables, agreed.owners)
    with tempfile.TemporaryDirectory(prefix="shoal-fuse-") as folder:
        places = {name: str(Path(folder) / f"{name}.parquet") for name in frames}
        for name, frame in frames.items():
            files.write(frame, Path(places[name]), ".parquet")
        output = str(Path(folder) / "fused.parquet")
        said = None if transcript is None else Path(transcript)
        certificate = _fuse(_with_tables(agreed, places), output, said, progress)
        published = files.read(output).frame
    classes = audit_table(Table(published), agreed.policy, None).release.classes
    kind = next(iter(tables.values()), published) if tables is not None else published
    return Publication(like(kind, published), certificate.extended(output=None), classes.labels)


def _frames_of(tables: Mapping[str, Any] | None, owners: Sequence[str]) -> dict[str, pl.DataFrame]:
    """The frames by party; raises InputError where one is no frame, or nobody's."""
    if tables is None:
        return {}
    if not isinstance(tables, Mapping):
        raise InputError("tables: is no mapping; give a dict of frames by party")
    strangers = sorted({str(name) for name in tables} - set(owners))
    if strangers:
        raise InputError(
            f"tables: {', '.join(strangers)} are no owners; the agreement has {', '.join(owners)}"
        )
    frames = {}
    for name, frame in tables.items():
        try:
            frames[name] = table_of(frame).frame
        except InputError as unfit:
            raise InputError(f"party '{name}', {unfit.args[0]}", unfit.findings) from None
    return frames


def _with_tables(agreement: Agreement, places: Mapping[str, str]) -> Agreement:
    parties = [party.model_dump(exclude_unset=True) for party in agreement.model.parties]
    return agreement.with_changes(
        parties=[
            party | ({"table": places[party["name"]]} if party["name"] in places else {})
            for party in parties
        ]
    )


def fuse_file(
    parties_path: str,
    output: str,
    *,
    transcript: Path | None = None,
    method: str | None = None,
    settings: dict[str, Any] | None = None,
    k: int | None = None,
    seed: int | None = None,
    report: Path | None = None,
    progress: Progress = no_progress,
) -> Certificate:
    """One release from all parties' tables; writes the output and its certificate.

    Raises InputError, InfeasibleError, PromiseError or PartyError, and then writes nothing.
    """
    agreement = changed(Agreement.load(parties_path), method, settings or {}, k, seed)
    if report is not None:
        _check_kept(agreement, str(report))
    certificate = _fuse(agreement, output, transcript, progress)
    if report is not None:
        from shoal.reports.release import write_audit_report

        progress("drawing the report")
        write_audit_report(audit_file(output, agreement.policy), agreement.policy, report)
    return certificate


def _fuse(
    agreement: Agreement, output: str, transcript: Path | None, progress: Progress
) -> Certificate:
    """Runs all parties of a whole agreement."""
    tables = {}
    for party in agreement.model.parties:
        if party.table is None:
            raise InputError(f"party '{party.name}': has no 'table'; name the file that it reads")
        tables[party.name] = str((agreement.base / party.table).resolve())
        if not Path(tables[party.name]).is_file():
            raise InputError(
                f"party '{party.name}': its table '{party.table}' is not there; check its name"
            )
    if agreement.model.maximum.name == "mpyc" and len(agreement.owners) > 1:
        check_computing(len(agreement.computing))
    _check_output(agreement, output)
    place = Path(output)
    folder = place.parent / f".{place.name}.fuse"
    local = _prepared(agreement, folder, tables)
    running = [_party(name, local, folder, place.name, transcript) for name in agreement.everybody]
    try:
        _run(running, progress)  # where a party is lost, the folder stays: the next run goes on
    except (InputError, InfeasibleError, PromiseError):
        shutil.rmtree(folder)
        raise
    _check_same(agreement, folder, place.name)
    proof = _release_of(agreement.owners[0], folder, place.name, ".certificate.json")
    certificate = Certificate(json.loads(proof.read_text()))
    for suffix in (".certificate.json", ""):
        with files.atomic_write(output + suffix) as draft:
            shutil.copyfile(_release_of(agreement.owners[0], folder, place.name, suffix), draft)
    shutil.rmtree(folder)
    return certificate


def _check_output(agreement: Agreement, output: str) -> None:
    """Raises InputError, before any work, where the release can't be written or would overwrite
    what is read.
    """
    files.format_of(output)
    parent = Path(output).parent
    if Path(output).is_dir() or not parent.is_dir() or not os.access(parent, os.W_OK):
        raise InputError(
            f"output '{output}': can't be written; name a file in a folder that exists and is"
            " writable"
        )
    _check_kept(agreement, output, f"{output}.certificate.json")


def _check_kept(agreement: Agreement, *outputs: str) -> None:
    tables = [
        str(agreement.base / party.table)
        for party in agreement.model.parties
        if party.table is not None
    ]
    read = {Path(name).resolve() for name in (*tables, *agreement.policy.files)}
    for output in outputs:
        if Path(output).resolve() in read:
            raise InputError(
                f"output '{output}': is read by a party; name another file, nothing that is read is"
                " overwritten"
            )


def changed(
    agreement: Agreement,
    method: str | None,
    settings: dict[str, Any],
    k: int | None,
    seed: int | None,
) -> Agreement:
    """The agreement with what the command line asks for."""
    changes: dict[str, Any] = {}
    if method is not None or settings:
        known = agreement.model.method
        base = {"name": method} if method is not None and method != known["name"] else dict(known)
        changes["method"] = base | settings
    if k is not None:
        changes["promises"] = [promise | {"k": k} for promise in agreement.model.promises]
    if seed is not None:
        changes["seed"] = seed
    return agreement.with_changes(**changes) if changes else agreement


def _prepared(agreement: Agreement, folder: Path, tables: dict[str, str]) -> Path:
    """The agreement as this machine runs it, in a folder with keys and journals; a broken run's is
    used again.
    """
    local = folder / "parties.json"
    asked = json.dumps(
        agreement.canonical
        | {"tables": [[n, files.file_sha256(t)] for n, t in sorted(tables.items())]}
    )
    mark = folder / "asked.json"
    if mark.exists() and mark.read_text() == asked and local.exists():
        return local
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(mode=0o700)
    places = {}
    for name, port in zip(agreement.everybody, free_ports(len(agreement.everybody)), strict=True):
        keys = Keys.of(name, folder)
        keys.make(name)
        places[name] = (
            agreement.party(name).address or f"127.0.0.1:{port}",
            str(keys.certificate.resolve()),
        )
    local.write_text(json.dumps(with_places(agreement, places, tables)))
    mark.write_text(asked)
    return local


def free_ports(count: int) -> list[int]:
    """Ports of this machine that nobody listens on."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def _party(name: str, local: Path, folder: Path, output: str, transcript: Path | None) -> _Running:
    command = [
        sys.executable,
        "-m",
        "shoal",
        "party",
        name,
        str(local),
        "--keys",
        str(folder),
        "--folder",
        str(folder / name),
    ]
    command += ["-o", str(folder / f"{name}.out" / output)]
    (folder / f"{name}.out").mkdir(exist_ok=True)
    if transcript is not None:
        command += ["--transcript", str(transcript)]
    return _Running(name, command)


def _run(running: Sequence[_Running], progress: Progress) -> None:
    """Runs all parties to their end; raises the first error that a party told, PartyError where one
    gives up.
    """
    try:
        for party in running:
            _start(party, running[0].name, progress)
        left = list(running)
        while left:
            for party in list(left):
                assert party.process is not None
                try:
                    status = party.process.wait(timeout=0.05)
                except subprocess.TimeoutExpired:
                    continue
                if status == 0:
                    left.remove(party)
                elif status < 0 and party.starts <= RESTARTS:
                    progress(f"{party.name} was killed; starting it again")
                    _start(party, running[0].name, progress)
                else:
                    raise _error_of(party, status)
    finally:
        for party in running:
            if party.process is not None and party.process.poll() is None:
                party.process.send_signal(signal.SIGTERM)
        for party in running:
            if party.process is not None:
                try:
                    party.process.wait(timeout=5)
                except subprocess.TimeoutExpired:
                    party.process.kill()
                    party.process.wait()


def _start(party: _Running, teller: str, progress: Progress) -> None:
    party.starts += 1
    # the pipe to its standard input breaks when this process dies, and the party dies with it
    attached = {**os.environ, ATTACHED: "1"}
    party.process = subprocess.Popen(
        party.command, stderr=subprocess.PIPE, stdin=subprocess.PIPE, env=attached
    )
    party.listener = threading.Thread(
        target=_listen, args=(party, party.process, party.name == teller, progress), daemon=True
    )
    party.listener.start()


def _listen(
    party: _Running, process: subprocess.Popen[bytes], tells: bool, progress: Progress
) -> None:
    assert process.stderr is not None
    for raw in process.stderr:
        line = raw.decode(errors="replace").rstrip()
        if line.startswith("progress: "):
            if tells:
                progress(line.removeprefix("progress: "))
        elif line:
            party.lines.append(line)


def _error_of(party: _Running, status: int) -> errors.ShoalError:
    """The error that a party ended with, as it told it."""
    if party.listener is not None:
        party.listener.join(HEARD)
    lines = [line.removeprefix(_PREFIX) for line in party.lines if line.startswith(_PREFIX)]
    kinds: dict[int, type[errors.ShoalError]] = {
        1: errors.PromiseError, 2: InputError, 3: errors.InfeasibleError, 4: PartyError,
    }  # fmt: skip
    kind = kinds.get(status, PartyError)
    return kind(
        (
            lines[0]
            if lines
            else f"party '{party.name}': ended with status {status}; run again to go on"
        ),
        lines[1:],
    )


def _release_of(name: str, folder: Path, output: str, suffix: str) -> Path:
    return folder / f"{name}.out" / f"{output}{suffix}"


def _check_same(agreement: Agreement, folder: Path, output: str) -> None:
    hashes = {files.file_sha256(_release_of(name, folder, output, "")) for name in agreement.owners}
    if len(hashes) > 1:
        raise PartyError(
            "the parties wrote different tables; nothing is published, report this as a bug"
        )


def _die_with_starter() -> None:
    """Ends this process when standard input does; the journal keeps what is done."""
    while os.read(0, 1):  # not sys.stdin: its lock would still be held when the interpreter ends
        pass
    os._exit(130)


def run_one(
    name: str,
    parties_path: str,
    output: str | None,
    *,
    keys: Path,
    folder: Path,
    agreed: str | None = None,
    transcript: Path | None = None,
    patience: float = 600.0,
    progress: Progress = no_progress,
) -> Certificate | None:
    """One party on its own machine, from its table to the release; None for a helper.

    agreed: the agreement's hash that was signed off; another one is refused.
    """
    from shoal.jobs.fuse.party import run_party, write_release

    if os.environ.get(ATTACHED):
        threading.Thread(target=_die_with_starter, daemon=True).start()
    agreement = Agreement.load(parties_path)
    party = agreement.party(name)
    if agreed is not None and agreed.lower().removeprefix("sha256:") != agreement.hash.hex():
        raise InputError(
            f"agreement '{parties_path}': its hash is not the one that was signed off; compare the"
            " files"
        )
    me = agreement.peer(name)
    identity = Keys.of(name, keys).identity(name, me.address, me.certificate)
    if isinstance(party, PartyModel) and (party.table is None or output is None):
        raise InputError(
            f"party '{name}': an owner needs a 'table' in the agreement and an output, -o"
        )
    if isinstance(party, PartyModel) and output is not None:
        _check_output(agreement, output)
    fused = run_party(
        name,
        agreement,
        identity,
        folder,
        _holdings(
            agreement, name
        ),  # named here alone, so that they are let go before the release is audited
        patience=patience,
        delay=float(os.environ.get(ADDED_DELAY, 0)) / 1000,
        transcript=transcript,
        progress=progress,
    )
    if fused is None:
        return None
    assert output is not None
    return write_release(fused, agreement, output, progress)


def _holdings(agreement: Agreement, name: str) -> Any:
    """What the party's file holds; None for a helper."""
    from shoal.jobs.fuse.party import PartyInput

    party = agreement.party(name)
    if not isinstance(party, PartyModel):
        return None
    assert party.table is not None
    coded = {*party.attributes, agreement.model.label.attribute}
    return PartyInput.read(
        agreement, name, Table(files.read(str(agreement.base / party.table), coded).frame)
    )
