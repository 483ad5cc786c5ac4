"""One party on its own machine: from its agreement, keys and table to the release."""

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from shoal.auditor.description import described
from shoal.auditor.measure import measure
from shoal.auditor.verdict import release_warnings
from shoal.connectors import files
from shoal.connectors.location import Location
from shoal.connectors.outputs import describe_file, remove_stale_signature
from shoal.data.certificate import Certificate
from shoal.data.certificate_shape import KNOWN
from shoal.data.progress import Progress, no_progress
from shoal.errors import InputError, LostPartyError, PromiseError
from shoal.fusion.columns import PartyInput
from shoal.fusion.conversation import FusionResult
from shoal.fusion.fuse import die_with_starter, say_recoverable
from shoal.fusion.ledger import START, PastFusions, ledger_path, write_ledger
from shoal.fusion.protocol import run_party
from shoal.fusion.request import Keys, PartyRequest, check_output
from shoal.policy.agreement import Agreement
from shoal.policy.binding.table import bound_release

ADDED_DELAY = "SHOAL_ADDED_DELAY_MS"  # holds every message back, for experiments on one machine


def take_part(asked: PartyRequest, progress: Progress = no_progress) -> Certificate | None:
    """Runs one party to its end and writes its release; returns None for a helper.

    Another agreement than the one that was signed off is refused.
    """
    die_with_starter()
    if not math.isfinite(asked.patience):
        raise InputError("patience: must be a number of seconds; no party waits for ever")
    name, output, agreed = asked.name, asked.output, asked.agreed
    agreement = Agreement.load(asked.parties)
    agreement.rule()  # refused where it is not installed
    if agreed is not None and agreed.lower().removeprefix("sha256:") != agreement.hash.hex():
        raise InputError(
            f"agreement '{asked.parties}': its hash is not the one that was signed off; compare the"
            " files"
        )
    folder = asked.folder or Path(f"{name}.journal")
    identity = Keys.of(name, asked.keys).identity(name, agreement)
    if name in agreement.owners:
        if agreement.party(name).table is None or output is None:
            raise InputError(
                f"party '{name}': an owner needs a 'table' in the agreement and an output, -o"
            )
        # a journal that is there is of a run that is gone on with, which may have ended here
        check_output(agreement, output, asked.replace or folder.exists())
    book = ledger_path(asked.ledger, name)
    try:
        fused = run_party(
            agreement,
            identity,
            folder,
            _input_of(agreement, name),  # not named here, so that it is freed before the audit
            past=lambda: PastFusions.load(book, agreement.model.before or START, name),
            patience=asked.patience,
            delay=float(os.environ.get(ADDED_DELAY, 0)) / 1000,
            transcript=asked.transcript,
            progress=progress,
        )
    except LostPartyError:
        say_recoverable()
        raise
    if fused is None:
        return None
    assert output is not None
    if fused.ledger is not None:  # before the release, so that none is not in it
        write_ledger(book, fused.ledger)
    return write_release(fused, agreement, output, progress)


def _input_of(agreement: Agreement, name: str) -> PartyInput | None:
    """What the party's file holds; None for a helper."""
    party = agreement.party(name)
    if party.table is None:
        return None
    categorical = {*party.attributes, agreement.model.label.attribute}
    table = files.read(str(agreement.base / party.table), categorical).table
    table.encode([column for column in table.names if column in categorical])
    return PartyInput.read(agreement, name, table)


# From the fused table to the release: written, audited, and described in its certificate.


def write_release(
    fused: FusionResult, agreement: Agreement, output: str, progress: Progress = no_progress
) -> Certificate:
    """Writes the table and its certificate; both or none.

    The table is audited from the bytes that were written. Raises PromiseError where it breaks a
    promise.
    """
    policy, place = agreement.policy, Location(output)
    kind = place.kind_to_write
    with files.atomic_write(output) as draft:
        progress("writing the release")
        files.write(fused.published, draft, kind, place.is_packed)
        written = files.read_as(draft, kind, policy.model.audited_columns)
        problem = bound_release(written.table, policy)
        measured = measure(written.table, problem, None, progress)
        # no owner's table names a person twice
        certificate = measured.certificate.extended(people=KNOWN, warnings=[])
        said = release_warnings(certificate, measured.release.withheld, problem)
        certificate = certificate.warned(*said, *fused.warnings)
        certificate = certificate.extended(
            verb="fuse",
            method=agreement.canonical["method"],
            seed=agreement.model.seed,
            seconds={"total": sum(fused.statistics["seconds"].values()), "method": None},
            output=describe_file(draft, output, written.sha256, problem.schema.render),
            fusion=fused.statistics
            | {"qids": groups_by_qid(agreement, certificate), "learned": learned(agreement)},
        )
        certificate = described(certificate, written.table, measured.figures, problem, None)
        broken = [promise for promise in certificate["promises"] if not promise["holds"]]
        if broken:
            raise PromiseError(
                f"promise '{broken[0]['model']}' does not hold on the fused table: asked"
                f" {broken[0]['asked']}, measured {broken[0]['measured']}; the release is withheld,"
                " nothing was written"
            )
        with files.atomic_write(f"{output}.certificate.json") as proof:
            proof.write_text(certificate.to_json())
        remove_stale_signature(f"{output}.certificate.json")
    return certificate


def groups_by_qid(agreement: Agreement, certificate: Certificate) -> list[dict[str, Any]]:
    """The groups of people with equal published values, by QID; `classes` are over all QIDs."""
    return [
        {
            "attributes": promise["attributes"] or list(agreement.quasi),
            "k": promise["asked"],
            "groups": promise["classes"],
        }
        for promise in certificate["promises"]
        if promise["model"] == "k-anonymity"
    ]


def learned(agreement: Agreement) -> dict[str, list[str]]:
    """What each party learns beyond the published table, in words."""
    helper = agreement.model.helper
    facts_by_party = {owner: list(_learned_by(agreement, owner)) for owner in agreement.owners}
    if helper is not None:
        facts_by_party[helper.name] = list(_learned_by_helper(agreement, helper.name))
    return facts_by_party


def _learned_by(agreement: Agreement, owner: str) -> Iterator[str]:
    yield "who is in all tables, and how many records each owner has"
    yield "the label of every person in common"
    yield (
        "for every person in common, the published values of all attributes: k protects from"
        " readers alone"
    )
    yield "which specializations were chosen, in which order, and in which rounds"
    yield from _learned_by_veto(agreement, owner)
    if not agreement.bids:
        yield "which groups could not be cut on which attribute, as the table shows, too"
    if agreement.tells_runner_up:
        yield "for each round that it won, the second best score, and on which attribute that was"
    if agreement.has_hulls:
        yield "the lowest and highest value of every group, which the table shows to all readers"
    if agreement.collector == owner and len(agreement.owners) > 2:
        yield "as collector, which of its own people are in which other table"
    if agreement.bids and not agreement.is_secret:
        yield "every bid of every party, for the maximum was computed in the clear"


def _learned_by_veto(agreement: Agreement, owner: str) -> Iterator[str]:
    sensitive = agreement.model.sensitive
    if sensitive is None:
        return
    if owner == agreement.judge:
        yield (
            "one level more of each step of the others that it refused, for every person there:"
            f" a group would have had fewer than {sensitive.l} values of '{sensitive.attribute}'"
        )
        return
    yield (
        "which of its own steps were refused: a group there would have had fewer than"
        f" {sensitive.l} values of '{sensitive.attribute}'"
    )
    if agreement.bids and len(agreement.owners) > 2:
        yield "in which rounds a step of another owner was refused for that"


def _learned_by_helper(agreement: Agreement, name: str) -> Iterator[str]:
    if agreement.collector == name:
        yield (
            "how many people any two tables have in common; with the key of one owner, who they are"
        )
    if agreement.bids and name in agreement.computing:
        yield "how many rounds there were and when; no bid, no result, no record"
