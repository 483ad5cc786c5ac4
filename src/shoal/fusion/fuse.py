"""Fuse: all parties run on this machine, and talk as they would across organisations.

Each party is `shoal party run NAME`, with throw-away keys, a loopback port and its own folder; a
party that is killed is started again and resumes from its journal. The release is published when
all parties ended with the same bytes.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from shoal.auditor.audit import audit_table
from shoal.auditor.together import is_below
from shoal.auditor.verdict import require_together_kept
from shoal.connectors import files
from shoal.connectors.frames import Frame, like, table_of
from shoal.connectors.output_locks import sole_writer
from shoal.connectors.outputs import remove_stale_signature
from shoal.data.certificate import Certificate
from shoal.data.progress import Progress, no_progress
from shoal.data.table import Table
from shoal.errors import InfeasibleError, InputError, PartyError, PromiseError
from shoal.fusion.keys import Keys
from shoal.fusion.ledger import START, PastFusions, ledger_path, write_ledger
from shoal.fusion.outputs import check_not_read, check_output, make_folder
from shoal.fusion.processes import PartyProcess, free_ports, run_to_end
from shoal.fusion.secure_maximum import check_computing
from shoal.policy.agreement import Agreement, with_endpoints

if TYPE_CHECKING:
    from shoal.auditor.publication import Publication


def fuse(
    agreement: str | Path | dict[str, Any],
    tables: Mapping[str, Frame] | None = None,
    *,
    transcript: str | Path | None = None,
    require_together: bool = False,
    progress: Progress = no_progress,
) -> Publication[Frame]:
    """`shoal.fuse`, without its pages and figures; what there is to warn about stands in its
    certificate.
    """
    from shoal.auditor.publication import Publication

    agreed = Agreement.of(agreement)
    frames = _frames_of(tables, agreed.owners)
    with tempfile.TemporaryDirectory(prefix="shoal-fuse-") as folder:
        paths = {name: str(Path(folder) / f"{name}.parquet") for name in frames}
        for name, frame in frames.items():
            files.write(frame, Path(paths[name]), ".parquet")
        output = str(Path(folder) / "fused.parquet")
        messages = None if transcript is None else Path(transcript)
        certificate = fuse_file(
            _with_tables(agreed, paths),
            output,
            transcript=messages,
            require_together=require_together,
            progress=progress,
        )
        published = files.read(output).frame
    certificate = certificate.extended(output=None)
    found = audit_table(Table(published), agreed.policy, None)
    kind = published if tables is None else next(iter(tables.values()), published)
    labels = found.release.classes.labels
    return Publication(like(kind, published), certificate, labels, agreed.policy, found)


def _frames_of(
    tables: Mapping[str, Frame] | None, owners: Sequence[str]
) -> dict[str, pl.DataFrame]:
    """The frames by party; raises InputError for what is not a frame, or has no owner."""
    if tables is None:
        return {}
    if not isinstance(tables, Mapping):
        raise InputError("tables: is not a mapping; give a dict of frames by party")
    strangers = sorted({str(name) for name in tables} - set(owners))
    if strangers:
        raise InputError(
            f"tables: {', '.join(strangers)} are not owners; the agreement has {', '.join(owners)}"
        )
    frames = {}
    for name, frame in tables.items():
        try:
            frames[name] = table_of(frame).frame
        except InputError as unfit:
            raise InputError(f"party '{name}', {unfit.args[0]}", unfit.findings) from None
    return frames


def _with_tables(agreement: Agreement, paths: Mapping[str, str]) -> Agreement:
    parties = [party.model_dump(exclude_unset=True) for party in agreement.model.parties]
    return agreement.with_changes(
        parties=[
            party | ({"table": paths[party["name"]]} if party["name"] in paths else {})
            for party in parties
        ]
    )


def fuse_file(
    agreement: Agreement | str | Path,
    output: str,
    *,
    transcript: Path | None = None,
    beside: Sequence[Path] = (),
    require_together: bool = False,
    progress: Progress = no_progress,
    notice: Progress = no_progress,
) -> Certificate:
    """One release from all parties' tables; writes the output and its certificate.

    beside: what the caller will write afterwards; refused where a party reads it.
    require_together: as in `publish`. notice: called with a line about each party that has to be
    started again. Raises InputError, InfeasibleError, PromiseError or PartyError, and then writes
    nothing.
    """
    agreement = Agreement.of(agreement)
    agreement.rule()  # a method that is not installed is refused before a party is started
    tables = _tables_of(agreement)
    if agreement.bids and agreement.model.maximum.name == "mpyc" and len(agreement.owners) > 1:
        check_computing(len(agreement.computing))
    check_output(agreement, output)
    check_not_read(agreement, *beside)
    if transcript is not None:
        make_folder(transcript, "transcript")
    with sole_writer([Path(output)]):
        return _fused(agreement, output, tables, transcript, require_together, progress, notice)


def _fused(
    agreement: Agreement,
    output: str,
    tables: dict[str, str],
    transcript: Path | None,
    require_together: bool,
    progress: Progress,
    notice: Progress,
) -> Certificate:
    """Runs the parties as processes of their own, and publishes what they agree on."""
    path = Path(output)
    folder = path.parent / f".{path.name}.fuse"
    local = _prepared(agreement, folder, tables)
    try:
        _copy_ledgers(agreement, folder / "ledgers")
    except InputError:
        shutil.rmtree(folder)
        raise
    parties = [
        PartyProcess(name, _command(name, local, folder, path.name, transcript))
        for name in agreement.participants
    ]
    try:
        # if a party is lost, the folder stays for the next run
        run_to_end(parties, progress, notice)
    except (InputError, InfeasibleError, PromiseError):
        shutil.rmtree(folder)
        raise
    releases = [_release_of(name, folder, path.name) for name in agreement.owners]
    _check_same(releases)
    proof = Certificate.load(f"{releases[0]}.certificate.json")
    if require_together and is_below(proof):
        shutil.rmtree(folder)
        require_together_kept(proof, "nothing was written")
    if agreement.model.before is not None:  # before the release, so that none is not in them
        for name in agreement.owners:
            content = ledger_path(folder / "ledgers", name).read_bytes()
            write_ledger(ledger_path(agreement.base, name), content)
    certificate = _publish(releases[0], output)
    shutil.rmtree(folder)
    return certificate


def _tables_of(agreement: Agreement) -> dict[str, str]:
    """Where each owner's table is stored; raises InputError where one has none."""
    tables = {}
    for party in agreement.model.parties:
        if party.table is None:
            raise InputError(f"party '{party.name}': has no 'table'; name the file that it reads")
        tables[party.name] = str((agreement.base / party.table).resolve())
        if not Path(tables[party.name]).is_file():
            raise InputError(
                f"party '{party.name}': its table '{party.table}' does not exist; check the name"
            )
    return tables


def _prepared(agreement: Agreement, folder: Path, tables: dict[str, str]) -> Path:
    """The agreement as this machine runs it, in a folder with keys and journals.

    The folder of an interrupted run of the same agreement on the same tables is used again.
    """
    local = folder / "parties.json"
    hashes = [[name, files.file_sha256(table)] for name, table in sorted(tables.items())]
    asked = json.dumps(agreement.canonical | {"tables": hashes})
    mark = folder / "asked.json"
    if _is_own(folder) and local.exists() and mark.read_bytes() == asked.encode():
        return local
    if _is_own(folder):
        shutil.rmtree(folder)
    elif folder.is_symlink() or folder.exists():
        raise InputError(
            f"'{folder}': is in the way of this fusion's journals and was not made by one; move it"
        )
    make_folder(folder, "folder")
    mark.write_text(asked)  # first, since it marks the folder as a fusion's
    endpoints = {}
    ports = free_ports(len(agreement.participants))
    for name, port in zip(agreement.participants, ports, strict=True):
        keys = Keys.of(name, folder)
        keys.make(name)
        address = agreement.party(name).address or f"127.0.0.1:{port}"
        endpoints[name] = (address, str(keys.certificate.resolve()))
    with files.atomic_write(str(local)) as draft:
        draft.write_text(json.dumps(with_endpoints(agreement, endpoints, tables)))
    return local


def _copy_ledgers(agreement: Agreement, folder: Path) -> None:
    """The ledgers that the parties will work on; the old ones stay until a release is there.

    All parties' ledgers are beside the agreement, as their tables are.
    Raises InputError where one is missing, or is not the one that the agreement continues.
    """
    if agreement.model.before is None or folder.exists():
        return
    contents = {
        name: PastFusions.load(ledger_path(agreement.base, name), agreement.model.before, name)
        for name in agreement.owners
    }
    make_folder(folder, "folder")
    for name, content in contents.items():
        if agreement.model.before != START:
            write_ledger(ledger_path(folder, name), content)


def _is_own(folder: Path) -> bool:
    """Whether a fusion made this folder, however far it came."""
    if folder.is_symlink() or not folder.is_dir():
        return False
    return (folder / "asked.json").is_file() or not any(folder.iterdir())


def _command(
    name: str, local: Path, folder: Path, output: str, transcript: Path | None
) -> list[str]:
    release = _release_of(name, folder, output)
    release.parent.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "shoal", "party", "run", name, str(local)]
    command += [
        "--ledger",
        str(folder / "ledgers"),
        "--keys",
        str(folder),
        "--folder",
        str(folder / name),
        "-o",
        str(release),
    ]
    if transcript is not None:
        command += ["--transcript", str(transcript)]
    return command


def _release_of(name: str, folder: Path, output: str) -> Path:
    return folder / f"{name}.out" / output


def _check_same(releases: Sequence[Path]) -> None:
    if len({files.file_sha256(release) for release in releases}) > 1:
        raise PartyError(
            "the parties wrote different tables; nothing is published, report this as a bug"
        )


def _publish(release: Path, output: str) -> Certificate:
    """Copies the certificate, then the release into place."""
    proof = Path(f"{release}.certificate.json")
    certificate = Certificate(json.loads(proof.read_text()))
    for source, target in ((proof, f"{output}.certificate.json"), (release, output)):
        with files.atomic_write(target) as draft:
            shutil.copyfile(source, draft)
    remove_stale_signature(f"{output}.certificate.json")
    return certificate
