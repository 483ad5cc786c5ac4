"""One party on its own machine: from its agreement, keys and table to the release."""

from __future__ import annotations

import math
import os
from pathlib import Path

from shoal.connectors import files
from shoal.data.certificate import Certificate
from shoal.data.progress import Progress, no_progress
from shoal.data.table import Table
from shoal.errors import InputError, LostPartyError
from shoal.fusion.keys import Keys
from shoal.fusion.ledger import START, PastFusions, ledger_path, write_ledger
from shoal.fusion.outputs import check_output
from shoal.fusion.party_input import PartyInput
from shoal.fusion.processes import die_with_starter, say_recoverable
from shoal.fusion.protocol import run_party
from shoal.fusion.release import write_release
from shoal.policy.agreement import Agreement
from shoal.policy.agreement_model import PartyModel

ADDED_DELAY = "SHOAL_ADDED_DELAY_MS"  # holds every message back, for experiments on one machine


def take_part(
    name: str,
    parties_path: str,
    output: str | None,
    *,
    keys: Path,
    folder: Path,
    agreed: str | None = None,
    transcript: Path | None = None,
    ledger: Path = Path(),
    patience: float = 600.0,
    progress: Progress = no_progress,
) -> Certificate | None:
    """Runs one party to its end and writes its release; returns None for a helper.

    agreed: the agreement's hash that was signed off; another one is refused. ledger: the folder of
    NAME.ledger, where the agreement continues earlier fusions.
    """
    die_with_starter()
    if not math.isfinite(patience):
        raise InputError("patience: must be a number of seconds; no party waits for ever")
    agreement = Agreement.load(parties_path)
    agreement.rule()  # refused where it is not installed
    party = agreement.party(name)
    if agreed is not None and agreed.lower().removeprefix("sha256:") != agreement.hash.hex():
        raise InputError(
            f"agreement '{parties_path}': its hash is not the one that was signed off; compare the"
            " files"
        )
    identity = Keys.of(name, keys).identity(name, agreement)
    if isinstance(party, PartyModel) and (party.table is None or output is None):
        raise InputError(
            f"party '{name}': an owner needs a 'table' in the agreement and an output, -o"
        )
    if isinstance(party, PartyModel) and output is not None:
        check_output(agreement, output)
    book = ledger_path(ledger, name)
    try:
        fused = run_party(
            agreement,
            identity,
            folder,
            _input_of(agreement, name),  # not named here, so that it is freed before the audit
            past=lambda: PastFusions.load(book, agreement.model.before or START, name),
            patience=patience,
            delay=float(os.environ.get(ADDED_DELAY, 0)) / 1000,
            transcript=transcript,
            progress=progress,
        )
    except LostPartyError:
        say_recoverable()
        raise
    if fused is None:
        return None
    assert output is not None
    certificate = write_release(fused, agreement, output, progress)
    if fused.ledger is not None:
        write_ledger(book, fused.ledger)
    return certificate


def _input_of(agreement: Agreement, name: str) -> PartyInput | None:
    """What the party's file holds; None for a helper."""
    party = agreement.party(name)
    if not isinstance(party, PartyModel):
        return None
    assert party.table is not None
    categorical = {*party.attributes, agreement.model.label.attribute}
    table = Table(files.read(str(agreement.base / party.table), categorical).frame)
    return PartyInput.read(agreement, name, table)
