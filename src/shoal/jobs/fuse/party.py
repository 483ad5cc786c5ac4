"""One party of a fusion: joins, specializes in rounds with the others, and ends with the table that
all have.

The program below reads as if nothing ever broke. Everything it hears, and what it drew at random,
is in the party's journal; after a break, or a new start, it runs again from its begin, hears the
same from the journal, and so comes to where it was. What it said already is not said again.
"""

from __future__ import annotations

import hashlib
import json
import struct
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.algorithms.fusion.party_tds import (
    MOST_LABELS,
    Party,
    pack,
    packed_size,
    unpack,
    worth_bits,
)
from shoal.algorithms.fusion.secure_maximum import check_computing, colluding_parties
from shoal.algorithms.steps.specialization import MOST_CHILDREN, Step
from shoal.binding.release import bind_release
from shoal.connectors import files
from shoal.connectors.party.journal import Journal
from shoal.connectors.party.link import PartyLink
from shoal.connectors.party.messages import LinkLost, MessageKind
from shoal.connectors.party.tls import Identity
from shoal.data.certificate import Certificate
from shoal.data.progress import Progress, no_progress
from shoal.data.release import Release, label_classes
from shoal.data.table import Column, Table
from shoal.errors import InfeasibleError, InputError, PartyError, PromiseError
from shoal.jobs.audit.audit import measure
from shoal.jobs.fuse.id_join import IdJoin, checked_ids
from shoal.jobs.fuse.secure_rounds import ClearRounds, MpycRounds
from shoal.jobs.fuse.transcript import Recorder
from shoal.policy.agreement import Agreement, PartyModel
from shoal.protocols import FusionParty

_LENGTH = struct.Struct("<Q")
_SLICE = 1 << 18  # rows


@dataclass(frozen=True)
class PartyInput:
    """What an owner brings: checked ids, the cells of its quasi-identifiers, plain columns and
    perhaps the label.
    """

    ids: pl.Series
    cells: dict[int, np.ndarray]
    plain: dict[str, Column]
    label: Column | None

    @classmethod
    def read(cls, agreement: Agreement, name: str, table: Table) -> PartyInput:
        """What the agreement asks of this party's table; raises InputError with every finding."""
        party = agreement.party(name)
        assert isinstance(party, PartyModel)
        join, label = agreement.model.join, agreement.model.label.attribute
        absent = [column for column in (join, *party.attributes) if column not in table.names]
        if absent:
            listed = ", ".join(f"'{column}'" for column in absent)
            raise InputError(
                f"party '{name}': its table has no column {listed}; mend the table, or agree anew"
            )
        findings: list[str] = []
        cells = {}
        for j, domain in enumerate(agreement.domains):
            if domain.name in party.attributes:
                cells[j], found = domain.cells_of(table.column(domain.name), name)
                findings += found
        ids = checked_ids(table.frame[join], name)
        labels = table.column(label) if label in table.names else None
        if labels is not None and "" in labels.cells:
            missing = int(labels.counts()[labels.cells.index("")])
            findings.append(
                f"party '{name}', label '{label}': {missing} records have none; complete the data"
            )
        if findings:
            raise InputError.from_findings(findings)
        plain = {n: table.column(n) for n, a in party.attributes.items() if a.role == "plain"}
        return cls(ids, cells, plain, labels)


@dataclass
class Account:
    """What a run took: seconds by phase, of the clock and of this process's processors, rounds and
    steps.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    processor: dict[str, float] = field(default_factory=dict)
    rounds: int = 0
    steps: int = 0
    people: int = 0
    touched: int = 0

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        started, used = time.monotonic(), time.process_time()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - started
        self.processor[name] = self.processor.get(name, 0.0) + time.process_time() - used


@dataclass(frozen=True)
class FusionResult:
    """The fused table as it is published, in an order that says nothing; and what the run took."""

    published: pl.DataFrame
    account: dict[str, Any]


def run_party(
    name: str,
    agreement: Agreement,
    identity: Identity,
    folder: Path,
    holdings: PartyInput | None,
    *,
    joined: np.ndarray | None = None,
    patience: float = 600.0,
    delay: float = 0.0,
    transcript: Path | None = None,
    progress: Progress = no_progress,
) -> FusionResult | None:
    """Takes part until the table is finished; None for a helper. Goes on where an earlier run in
    `folder` stopped.

    holdings: what the party brings, None for a helper. joined: its row behind every joint one,
    where the parties have agreed on ids before; nothing is joined then. transcript: folder for all
    messages and the table by row. Raises InputError, InfeasibleError or PartyError.
    """
    if agreement.model.maximum.name == "mpyc" and len(agreement.owners) > 1:
        check_computing(len(agreement.computing))
    journal = _journal(folder, agreement)
    recorder = Recorder(transcript, name) if transcript is not None else None
    record = recorder.record if recorder is not None else (lambda receiver, content: None)
    others = [agreement.peer(other) for other in agreement.everybody if other != name]
    helper = agreement.model.helper.name if agreement.model.helper else None
    link = PartyLink(
        identity,
        others,
        agreement.hash,
        journal,
        helper=helper,
        patience=patience,
        delay=delay,
        record=record,
    )
    run = _Run(
        name,
        agreement,
        holdings,
        journal,
        link,
        progress,
        joined,
        keeps_rows=transcript is not None,
    )
    run.warm_up()
    try:
        while True:
            try:
                fused = run.attempt()
            except InfeasibleError:
                with suppress(LinkLost):
                    link.finish()  # the others need to hear what makes it so
                raise
            except (InputError, PartyError):
                link.leave(seconds=2)
                raise
            except LinkLost:
                progress("a channel broke; waiting for the others")
            else:
                if recorder is not None:
                    recorder.close(journal, agreement, run.by_row)
                return fused
    finally:
        link.stop()
        journal.close()


def _journal(folder: Path, agreement: Agreement) -> Journal:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    journal = Journal(folder / "journal")
    if (known := journal.get(b"A")) is None:
        journal.append(b"A", agreement.hash)
    elif known != agreement.hash:
        raise PartyError(
            f"folder '{folder}': holds the journal of another agreement; name another folder"
        )
    return journal


class _Run:
    """The program of one party."""

    def __init__(
        self,
        name: str,
        agreement: Agreement,
        holdings: PartyInput | None,
        journal: Journal,
        link: PartyLink,
        progress: Progress,
        joined: np.ndarray | None = None,
        keeps_rows: bool = False,
    ) -> None:
        self.by_row: pl.DataFrame | None = None
        self._joined, self._keeps_rows = joined, keeps_rows
        self._name, self._agreement, self._link, self._journal = name, agreement, link, journal
        self._holdings, self._progress = holdings, progress
        self._owners = agreement.owners
        self._others = [owner for owner in self._owners if owner != name]
        self._account = Account()

    def warm_up(self) -> None:
        """Loads the compiled loops before anybody waits for them."""
        if self._holdings is None or self._holdings.ids.is_empty():
            return
        everybody = np.zeros(4, dtype=np.int64)
        own = {j: cells[everybody] for j, cells in self._holdings.cells.items()}
        party = self._party(own, np.arange(4))
        party.bid()
        state = party.state
        for j, domain in enumerate(self._agreement.domains):
            spans = domain.taxonomy.children.get((0, domain.cells - 1), np.array([0, 1]))
            if state.cut(j) == [(0, domain.cells - 1)]:
                state.step(Step(j, 0, domain.cells - 1, tuple(spans.tolist())))

    def _party(self, own: Mapping[int, np.ndarray], classes: np.ndarray) -> Party:
        taxonomies = [domain.taxonomy for domain in self._agreement.domains]
        return Party(self._agreement.rule(), taxonomies, own, classes, self._agreement.qids())

    def attempt(self) -> FusionResult | None:
        """One session, from the begin of the program to its end; raises LinkLost if the session
        breaks.
        """
        self._account = Account()
        rounds = self._rounds()
        try:
            self._progress("waiting for the other parties")
            self._link.establish(is_last=self._journal.get(b"F") is not None)
            if rounds is not None:
                rounds.open()
            self._link.rewind()
            fused = None
            if self._holdings is None:
                self._help(rounds)
            else:
                fused = self._fuse(rounds)
            if self._journal.get(b"F") is None:
                self._journal.append(b"F", b"")  # all is heard
            self._link.finish()
            return fused
        finally:
            if rounds is not None:
                rounds.close()

    def _rounds(self) -> MpycRounds | ClearRounds | None:
        if len(self._owners) == 1 or self._name not in self._agreement.computing:
            return None
        if self._agreement.model.maximum.name == "clear":
            return ClearRounds(self._link, self._name, self._owners)
        bits = worth_bits(self._agreement.rule().score, len(self._agreement.quasi))
        return MpycRounds(
            self._link, self._name, self._agreement.computing, len(self._owners), bits
        )

    def _help(self, rounds: MpycRounds | ClearRounds | None) -> None:
        """A helper's part: compare keyed ids, and compute with two owners until they say that it is
        over.
        """
        if self._agreement.collector == self._name:
            self._progress("helping to join the ids")
            IdJoin(self._name, self._agreement, self._link, self._journal, self._progress).help()
        teller = self._owners[0]
        while isinstance(rounds, MpycRounds) and not self._link.has_more(teller):
            self._progress("helping to compute the rounds")
            rounds.maximum(
                [0] * self._agreement.rule().ahead, unless=lambda: self._link.has_more(teller)
            )
        self._link.receive(teller, MessageKind.END)

    def _fuse(self, rounds: MpycRounds | ClearRounds | None) -> FusionResult:
        assert self._holdings is not None
        phase = self._account.phase
        with phase("join"):
            roll = self._roll()
            rows = self._joined
            if rows is None:
                join = IdJoin(
                    self._name, self._agreement, self._link, self._journal, self._progress
                )
                rows = join.rows(
                    self._holdings.ids, {owner: told["records"] for owner, told in roll.items()}
                )
            self._account.people = len(rows)
        with phase("label"):
            labels, classes = self._label(
                rows, next(owner for owner in self._owners if roll[owner]["label"])
            )
        with phase("scoring"):
            party = self._party(
                {j: cells[rows] for j, cells in self._holdings.cells.items()}, classes
            )
        self._specialize(party, rounds)
        self._account.touched = party.state.touched
        with phase("table"):
            columns = self._quasi(party)
            del party  # its columns' place is needed
            table = self._table(columns, rows, labels, classes)
            published = mixed(table, self._agreement.model.seed)
            self._seal(published)
        self.by_row = table if self._keeps_rows else None
        return FusionResult(published, self._told())

    # The join

    def _roll(self) -> dict[str, dict[str, Any]]:
        """How many records each owner has, and whether it has the label."""
        assert self._holdings is not None
        mine = {"records": len(self._holdings.ids), "label": self._holdings.label is not None}
        for other in self._others:
            self._link.send(other, MessageKind.ROLL, json.dumps(mine).encode())
        roll = {
            other: _told_roll(other, self._link.receive(other, MessageKind.ROLL))
            for other in self._others
        }
        roll |= {self._name: mine}
        if not any(told["label"] for told in roll.values()):
            label = self._agreement.model.label.attribute
            raise InputError(f"label '{label}': is in no party's table; one owner must have it")
        return roll

    # Rounds

    def _label(self, rows: np.ndarray, teller: str) -> tuple[list[str], np.ndarray]:
        """The classes' names, and the class of every row."""
        assert self._holdings is not None
        mine = None if self._holdings.label is None else _shown(self._holdings.label, rows)
        if self._name == teller:
            assert mine is not None
            if len(mine[0]) > MOST_LABELS:
                raise InputError(
                    "label: takes too many values to be a class; name another attribute"
                )
            for other in self._others:
                self._link.send_long(other, MessageKind.LABEL, _packed_column("", *mine))
            return mine[0], mine[1].astype(np.int64)
        _, names, codes = _unpacked_column(
            self._link.receive_long(teller, MessageKind.LABEL), len(rows)
        )
        if mine is not None and (mine[0] != names or not np.array_equal(mine[1], codes)):
            raise PartyError(
                f"label '{self._agreement.model.label.attribute}': parties '{teller}' and"
                f" '{self._name}' differ on some people; agree whose column counts, and take it out"
                " of the other table"
            )
        return names, codes.astype(np.int64)

    def _specialize(self, party: FusionParty, rounds: MpycRounds | ClearRounds | None) -> None:
        names = [domain.name for domain in self._agreement.domains]
        while True:
            with self._account.phase("scoring"):
                bids = party.bid()
            with self._account.phase("secure rounds"):
                winner, steps = self._winner(bids, rounds)
            if not steps:
                break
            self._account.rounds += 1
            self._account.steps += steps
            who = self._owners[winner]
            with self._account.phase("instructions"):
                if who == self._name:
                    batch = party.specialize(steps)
                    for other in self._others:
                        self._link.send(other, MessageKind.BATCH, batch)
                else:
                    party.lose()
                    party.apply(self._link.receive(who, MessageKind.BATCH))
            done = ", ".join(sorted({names[step.attribute] for step in party.steps[-steps:]}))
            self._progress(
                f"round {self._account.rounds}: {who} specializes {done}, steps: {steps}"
            )
        if self._name == self._owners[0] and self._agreement.model.helper is not None:
            self._link.send(self._agreement.model.helper.name, MessageKind.END, b"")

    def _winner(self, bids: list[int], rounds: MpycRounds | ClearRounds | None) -> tuple[int, int]:
        """Who won the round and with how many steps: as the journal knows it, else as it is
        computed now.
        """
        number = self._account.rounds
        if rounds is None:
            return 0, sum(bid > 0 for bid in bids)
        put_in = json.dumps(bids).encode()
        known = self._journal.get(b"B", "", number)
        if known is None:
            self._journal.append(b"B", put_in, "", number)
        elif known != put_in:
            raise PartyError(
                "journal: this round's bids were others; the table or Shoal's version changed,"
                " agree anew"
            )
        if isinstance(rounds, ClearRounds):
            return rounds.maximum(bids)  # its messages are in the journal
        found = self._journal.get(b"M", "", number)
        if found is None:
            found = bytes(rounds.maximum(bids))
            self._journal.append(b"M", found, "", number)
        if found[0] >= len(self._owners) or found[1] > len(bids):
            raise PartyError("another party: told of a round that can't have been; the run ends")
        return found[0], found[1]

    # The table

    def _quasi(self, party: Party) -> dict[str, pl.Series]:
        """The quasi-identifiers as they are published, in the order of the joint rows."""
        return {
            domain.name: _coded(
                [domain.text(*span) for span in party.state.cut(j)], party.state.nodes(j)
            )
            for j, domain in enumerate(self._agreement.domains)
        }

    def _table(
        self,
        columns: dict[str, pl.Series],
        rows: np.ndarray,
        labels: list[str],
        classes: np.ndarray,
    ) -> pl.DataFrame:
        """The fused table in the order of the joint rows."""
        for owner in self._owners:
            columns |= self._plain(owner, rows)
        columns[self._agreement.model.label.attribute] = _coded(labels, classes)
        return pl.DataFrame({name: columns[name] for name in self._agreement.published})

    def _plain(self, owner: str, rows: np.ndarray) -> dict[str, pl.Series]:
        """The columns of an owner that are published as they are."""
        assert self._holdings is not None
        found = {}
        model = self._agreement.party(owner)
        assert isinstance(model, PartyModel)
        for name in (n for n, a in model.attributes.items() if a.role == "plain"):
            if owner == self._name:
                told, (texts, codes) = name, _shown(self._holdings.plain[name], rows)
                for other in self._others:
                    self._link.send_long(
                        other, MessageKind.PLAIN, _packed_column(name, texts, codes)
                    )
            else:
                told, texts, codes = _unpacked_column(
                    self._link.receive_long(owner, MessageKind.PLAIN), len(rows)
                )
            if told != name:
                raise PartyError(
                    f"party '{owner}': sent another column than comes next; the run ends"
                )
            found[name] = _coded(texts, codes)
        return found

    def _seal(self, table: pl.DataFrame) -> None:
        """Everybody has the same table, or nobody publishes."""
        digest = hashlib.sha256()
        for piece in table.iter_slices(_SLICE):
            digest.update(piece.write_csv().encode())
        seal = digest.digest()
        for other in self._others:
            self._link.send(other, MessageKind.SEAL, seal)
        differing = [
            other for other in self._others if self._link.receive(other, MessageKind.SEAL) != seal
        ]
        if differing:
            raise PartyError(
                f"parties {', '.join(differing)}: ended with another table; nothing is published"
            )

    def _told(self) -> dict[str, Any]:
        """The run in figures, without a value of the data."""
        account, link = self._account, self._link
        computing = len(self._agreement.computing)
        return {
            "agreement": self._agreement.hash.hex(),
            "party": self._name,
            "people": account.people,
            "rounds": account.rounds,
            "steps": account.steps,
            "touched": account.touched,
            "bytes": dict(sorted(link.bytes_sent.items())),
            "messages": dict(sorted(link.messages_sent.items())),
            "seconds": {name: round(seconds, 4) for name, seconds in account.seconds.items()},
            "processor": {name: round(seconds, 4) for name, seconds in account.processor.items()},
            "colluding_parties": (
                colluding_parties(computing)
                if self._agreement.model.maximum.name == "mpyc"
                else None
            ),
        }


def mixed(table: pl.DataFrame, seed: int) -> pl.DataFrame:
    """The rows in an order that follows from what they show alone."""
    by_content = table.sort(table.columns)
    return by_content[np.random.default_rng([seed, 1]).permutation(by_content.height)]


def _told_roll(party: str, content: bytes) -> dict[str, Any]:
    try:
        told = json.loads(content)
        if type(told["records"]) is int and told["records"] >= 0 and type(told["label"]) is bool:
            return {"records": told["records"], "label": told["label"]}
    except (ValueError, TypeError, KeyError):
        pass
    raise PartyError(
        f"party '{party}': sent a roll that can't be read; run the same version everywhere"
    )


def _shown(column: Column, rows: np.ndarray) -> tuple[list[str], np.ndarray]:
    """The texts of these rows, sorted, and which of them each row has: nothing of the other rows."""
    codes = column.codes[rows]
    used = np.flatnonzero(np.bincount(codes, minlength=len(column.cells)))
    place = np.zeros(len(column.cells), dtype=np.min_scalar_type(max(len(used) - 1, 0)))
    place[used] = np.arange(len(used))
    return [column.cells[code] for code in used], place[codes]


def _coded(texts: list[str], codes: np.ndarray) -> pl.Series:
    """A column of few texts, each held once; they sort as texts do."""
    return pl.Series(texts, dtype=pl.Enum(sorted(set(texts)))).gather(codes)


def _packed_column(name: str, texts: list[str], codes: np.ndarray) -> bytes:
    head = json.dumps([name, texts]).encode()
    dtype = np.uint16 if len(texts) <= MOST_CHILDREN else np.uint32
    body = (
        pack(codes.astype(dtype), len(texts))
        if dtype == np.uint16
        else codes.astype("<u4").tobytes()
    )
    return _LENGTH.pack(len(head)) + head + body


def _unpacked_column(content: bytearray, rows: int) -> tuple[str, list[str], np.ndarray]:
    try:
        end = _LENGTH.size + _LENGTH.unpack_from(content)[0]
        name, texts = json.loads(content[_LENGTH.size : end])
        few = len(texts) <= MOST_CHILDREN
        codes = (
            unpack(content[end:], rows, len(texts))
            if few
            else np.frombuffer(content[end:], dtype="<u4")
        )
        if (
            len(codes) != rows
            or (rows and int(codes.max()) >= len(texts))
            or len({str(t) for t in texts}) < len(texts)
        ):
            raise ValueError
        if not all(isinstance(text, str) for text in (name, *texts)):
            raise TypeError
        assert not few or len(content) - end == packed_size(rows, len(texts))
    except (ValueError, TypeError, struct.error, AssertionError):
        raise PartyError(
            "another party: sent a column that can't be read; run the same version everywhere"
        ) from None
    return name, texts, codes


# Publishing


def write_release(
    fused: FusionResult, agreement: Agreement, output: str, progress: Progress = no_progress
) -> Certificate:
    """Writes the table, its certificate and the policy to audit it with; all whole or none.

    The table is audited from the bytes that were written. Raises PromiseError where it breaks a
    promise.
    """
    kind = files.format_of(output)
    policy = agreement.policy
    with files.atomic_write(output) as draft:
        progress("writing the release")
        files.write(fused.published, draft, kind, compressed=output.endswith(".gz"))
        written = files.read_as(draft, kind, policy.audited_columns)
        released = Table(written.frame)
        schema, findings = bind_release(released, policy)
        if schema is None or findings:
            raise InputError.from_findings(findings)
        certificate, release = measure(released, schema, policy, None, progress)
        certificate = certificate.extended(
            verb="fuse",
            method=agreement.canonical["method"],
            seed=agreement.model.seed,
            seconds={"total": sum(fused.account["seconds"].values()), "method": None},
            output={"sha256": written.sha256},
            fusion=fused.account
            | {
                "qids": groups_by_qid(agreement, release),
                "learned": learned(agreement),
            },
        )
        broken = [p for p in certificate["promises"] if not p["holds"]]
        if broken:
            raise PromiseError(
                f"promise '{broken[0]['model']}' does not hold on the fused table: asked"
                f" {broken[0]['asked']}, measured {broken[0]['measured']}; the release is withheld,"
                " nothing was written"
            )
        with files.atomic_write(f"{output}.certificate.json") as proof:
            proof.write_text(certificate.to_json())
    return certificate


def groups_by_qid(agreement: Agreement, release: Release) -> list[dict[str, Any]]:
    """The groups of people who share their published values, QID by QID; `classes` has those of all
    QIDs together.
    """
    told = []
    for promise in agreement.policy.build_promises():
        attributes = promise.attributes or tuple(agreement.quasi)
        columns = tuple(column for column in release.columns if column.name in attributes)
        labels, count = label_classes(columns, np.zeros(release.records, dtype=bool))
        people = np.bincount(labels, minlength=count)
        groups = {"count": count, "min": people.min(), "mean": people.mean(), "max": people.max()}
        told.append({"attributes": list(attributes), "k": promise.k, "groups": groups})
    return told


def learned(agreement: Agreement) -> dict[str, list[str]]:
    """What each party comes to know beyond the published table, in words."""
    told = {}
    for owner in agreement.owners:
        told[owner] = [
            "who is in all tables, and how many records each owner has",
            "the label of every person in common",
            (
                "for every person in common, the published values of all attributes: k protects"
                " from readers alone"
            ),
            "which specializations were chosen, in which order, and in which rounds",
        ]
    if agreement.collector == agreement.owners[0] and len(agreement.owners) > 2:
        told[agreement.owners[0]].append(
            "as collector, which of its own people are in which other table"
        )
    if agreement.model.maximum.name == "clear":
        for facts in told.values():
            facts.append("every bid of every party, for the maximum was computed in the clear")
    if agreement.model.helper is not None:
        facts = told[agreement.model.helper.name] = []
        if agreement.collector == agreement.model.helper.name:
            facts.append(
                "how many people any two tables have in common; with the key of one owner, who"
                " they are"
            )
        if agreement.model.helper.name in agreement.computing:
            facts.append("how many rounds there were and when; no bid, no result, no record")
    return told
