"""The program of one party: join, specialize in rounds with the others, end with the same table.

It reads as if nothing ever broke. All that a party receives, and what it drew at random, is in its
journal. After a break, or a new start, the program runs again from the beginning and receives the
same from the journal, until it is where it was. What it has sent already is not sent again.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl

from shoal.connectors.party.tls import Identity
from shoal.data import numba_kernels, person_names, row_order
from shoal.data.progress import Progress, no_progress
from shoal.errors import InfeasibleError, InputError, PartyError
from shoal.fusion import limits, secure_maximum
from shoal.fusion.columns import Codes, PartyInput, SharedColumns, require_values, series_of
from shoal.fusion.conversation import (
    Conversation,
    FusionResult,
    Recorder,
    RunStatistics,
    open_journal,
)
from shoal.fusion.ground import REFUSED, VALID, Ground
from shoal.fusion.id_join import IdJoin
from shoal.fusion.ledger import NO_FUSIONS, Recalled, recalled_by_all
from shoal.fusion.secure_rounds import ClearRounds, MpycRounds, Rounds, Won, rounds_of, steps_ahead
from shoal.fusion.wire.link import PartyLink
from shoal.fusion.wire.messages import LinkLost, MessageKind, said_by
from shoal.policy.agreement import Agreement
from shoal.protocols import BiddingParty, FusionParty, TurnParty

FEW_ROWS = 2_000  # a step on no more takes less time than compiling its loops
_SLICE = 1 << 18  # rows
_FINISHED = b"F"  # journal: everything was received
_BIDS = b"B"  # journal: this party's bids in a round
_RESULT = b"M"  # journal: winner and number of steps of a round, and the bid that it was told
_BID = 16  # bytes of a bid


def run_party(
    agreement: Agreement,
    identity: Identity,
    folder: Path,
    party_input: PartyInput | None,
    *,
    joined: np.ndarray | None = None,
    past: Callable[[], bytes] = NO_FUSIONS.packed,
    patience: float = 600.0,
    delay: float = 0.0,
    transcript: Path | None = None,
    progress: Progress = no_progress,
) -> FusionResult | None:
    """Takes part until the table is finished; resumes where an earlier run in `folder` stopped.

    party_input: what the party brings, None for a helper. joined: its row behind every joint one,
    where the parties have agreed on ids before; nothing is joined then. past: reads the ledger of
    earlier fusions. transcript: folder for all messages and the table by row. Returns None for a
    helper. Raises InputError, InfeasibleError or PartyError.
    """
    if agreement.is_secret and len(agreement.owners) > 1:
        secure_maximum.check_computing(len(agreement.computing))
    name = identity.name
    journal = open_journal(folder, agreement)
    if journal.torn:
        progress("the journal's last entry was not written to its end, and is dropped")
    recorder = Recorder(transcript, name) if transcript is not None else None
    link = PartyLink(
        identity,
        [agreement.peer(other) for other in agreement.participants if other != name],
        limits.terms_of(agreement, name, 0 if party_input is None else len(party_input.ids)),
        journal,
        patience=patience,
        delay=delay,
        record=recorder.record if recorder is not None else (lambda receiver, content: None),
    )
    conversation = Conversation(name, agreement, link, journal, progress)
    protocol = PartyProtocol(conversation, party_input, joined, past, transcript is not None)
    protocol.warm_up()
    try:
        fused = _until_done(protocol, conversation)
        if recorder is not None:
            recorder.close(journal, agreement, None if fused is None else fused.by_row)
        return fused
    finally:
        link.stop()
        journal.close()


def _until_done(protocol: "PartyProtocol", conversation: Conversation) -> FusionResult | None:
    """Runs the program in one session after another, until one reaches the end."""
    link = conversation.link
    while True:
        try:
            return protocol.attempt()
        except InfeasibleError:
            with suppress(LinkLost):
                link.finish()  # the others need the messages that make it so
            raise
        except (InputError, PartyError):
            link.leave(seconds=2)
            raise
        except LinkLost:
            conversation.progress("a channel broke; waiting for the others")


class PartyProtocol:
    """The program of one party. keeps_rows: whether its table by row is for a transcript."""

    def __init__(
        self,
        conversation: Conversation,
        party_input: PartyInput | None,
        joined: np.ndarray | None,
        past: Callable[[], bytes],
        keeps_rows: bool,
    ) -> None:
        self._conversation = conversation
        self._agreement = conversation.agreement
        self._link = conversation.link
        self._name = conversation.name
        self._input = party_input
        self._joined = joined
        self._past = past
        self._keeps_rows = keeps_rows
        self._statistics = RunStatistics()

    def warm_up(self) -> None:
        """Loads the compiled loops before anybody waits for them; a small table needs none."""
        if self._input is None or len(self._input.ids) <= FEW_ROWS:
            return
        own = {j: cells[np.zeros(4, dtype=np.int64)] for j, cells in self._input.cells.items()}
        with numba_kernels.always(compiled=True):
            self._party(own, np.arange(4), {}, None, None).warm_up()

    def attempt(self) -> FusionResult | None:
        """One session, from the beginning to the end; raises LinkLost if the session breaks."""
        self._statistics = RunStatistics()
        journal = self._conversation.journal
        with rounds_of(self._conversation) as rounds:
            self._conversation.progress("waiting for the other parties")
            self._link.establish(is_last=journal.get(_FINISHED) is not None)
            if isinstance(rounds, MpycRounds):
                rounds.open()
            self._link.rewind()
            fused = None
            if self._input is None:
                self._help(rounds)
            else:
                fused = self._fuse(self._input, rounds)
            self._conversation.remember(_FINISHED, bytes)
            self._link.finish()
            return fused

    def _help(self, rounds: Rounds | None) -> None:
        """A helper's part: compare keyed ids, and compute with two owners until the rounds end."""
        if self._agreement.collector == self._name:
            self._conversation.progress("helping to join the ids")
            IdJoin(self._conversation).help()
        first_owner = self._agreement.owners[0]

        is_over = partial(self._link.has_more, first_owner)
        ahead = steps_ahead(self._conversation) if isinstance(rounds, MpycRounds) else 0
        while isinstance(rounds, MpycRounds) and not is_over():
            self._conversation.progress("helping to compute the rounds")
            rounds.maximum([0] * ahead, unless=is_over)
        self._link.receive(first_owner, MessageKind.END)

    def _fuse(self, party_input: PartyInput, rounds: Rounds | None) -> FusionResult:
        phase = self._statistics.phase
        with phase("join"):
            sizes, sender = self._roll(party_input)
            rows = self._joined
            if rows is None:
                rows = IdJoin(self._conversation).rows(party_input.ids, sizes)
            recalled = None
            if self._agreement.model.before is not None:
                ids = party_input.ids.gather(rows).to_list()
                recalled = recalled_by_all(self._conversation, self._past, ids)
                rows = rows[recalled.published]
            self._statistics.people = len(rows)
        shared = SharedColumns(self._conversation, party_input, rows)
        with phase("label"):
            labels, classes = shared.label(sender)
            diverse = shared.unchanged(MessageKind.SENSITIVE)
            diverse[self._agreement.model.label.attribute] = labels, classes
            for name, asked in self._agreement.diverse.items():
                require_values(name, asked, holds=len(diverse[name][0]) >= asked)
            judged = shared.judged()
            ahead = steps_ahead(self._conversation)  # a verdict begins the messages of the rounds
            self._require_judged(judged)
        with phase("scoring"):
            own = {j: cells[rows] for j, cells in party_input.cells.items()}
            party = self._party(own, classes, diverse, recalled, judged)
            del own
        self._specialize(party, rounds, ahead)
        self._statistics.touched = party.touched
        with phase("table"):
            self._narrow(party)
            columns = self._quasi(party)
            del party  # its memory is needed
            plain = shared.unchanged(MessageKind.PLAIN)
            columns |= {name: series_of(*column) for name, column in (plain | diverse).items()}
            table = pl.DataFrame({name: columns[name] for name in self._agreement.published})
            policy = self._agreement.policy
            published = table[row_order.published_order(table, policy.quasi, policy.render)]
            people = party_input.ids.gather(rows)
            warnings = person_names.spelled_apart(people, "subject", [])
            self._seal(published)
        by_row = table if self._keeps_rows else None
        report, ledger = self._report(), None
        if recalled is not None:
            after = recalled.after(table.select(self._agreement.quasi), self._agreement.hash)
            report["ledger"], ledger = recalled.facts(after), after.packed()
        return FusionResult(published, report, ledger, by_row, warnings)

    # The join

    def _roll(self, party_input: PartyInput) -> tuple[dict[str, int], str]:
        """How many records each owner has, and the first owner who has the label."""
        own = {"records": len(party_input.ids), "label": party_input.label is not None}
        received = self._conversation.exchange(MessageKind.ROLL, json.dumps(own).encode())
        roll = {owner: limits.parse_roll(content) for owner, content in received.items()}
        roll[self._name] = own
        labelled = [owner for owner in self._agreement.owners if roll[owner]["label"]]
        if not labelled:
            label = self._agreement.model.label.attribute
            raise InputError(f"label '{label}': is in no party's table; one owner must have it")
        return {owner: entry["records"] for owner, entry in roll.items()}, labelled[0]

    # The rounds

    def _party(
        self,
        own: Mapping[int, np.ndarray],
        classes: np.ndarray,
        columns: Mapping[str, Codes],
        recalled: Recalled | None,
        judged: tuple[np.ndarray, int] | None,
    ) -> FusionParty:
        agreement = self._agreement
        ground = Ground(
            [domain.taxonomy for domain in agreement.domains],
            classes,
            agreement.qids(),
            agreement.weights,
            [agreement.owners.index(agreement.owner_of(name)) for name in agreement.quasi],
            [(columns[n][1].astype(np.int64), l) for n, l in agreement.diverse.items() if columns],
            None if recalled is None else recalled.atoms[recalled.published],
            None if agreement.judge is None else agreement.owners.index(agreement.judge),
            judged,
        )
        return agreement.rule().party(ground, own)

    def _specialize(self, party: FusionParty, rounds: Rounds | None, ahead: int) -> None:
        """Rounds until no step is valid; then the helper gets a message."""
        statistics, names = self._statistics, self._agreement.quasi
        turns = (
            self._turns(cast(TurnParty, party))
            if self._agreement.rule().takes_turns
            else self._won(cast(BiddingParty, party), rounds, ahead)
        )
        for owner, instruct in turns:
            before = len(party.steps)
            with statistics.phase("instructions"):
                instruct()
            done = party.steps[before:]
            statistics.rounds += 1
            statistics.steps += len(done)
            attributes = ", ".join(sorted({names[step.attribute] for step in done})) or "nothing"
            self._conversation.progress(
                f"round {statistics.rounds}: {owner} specializes {attributes}, steps: {len(done)}"
            )
        helper = self._agreement.model.helper
        if self._name == self._agreement.owners[0] and helper is not None:
            self._link.send(helper.name, MessageKind.END, b"")

    def _turns(self, party: TurnParty) -> Iterator[tuple[str, Callable[[], None]]]:
        """The owner whose turn it is, who decides and tells the others, until nobody can."""
        while (number := party.turn()) is not None:
            owner = self._agreement.owners[number]
            yield owner, partial(self._instruct_turn, party, owner)

    def _won(
        self, party: BiddingParty, rounds: Rounds | None, ahead: int
    ) -> Iterator[tuple[str, Callable[[], None]]]:
        """All bid, the winner does its best steps and passes them on, until nobody has any."""
        while True:
            with self._statistics.phase("scoring"):
                bids = party.bid(ahead)
            with self._statistics.phase("secure rounds"):
                won = self._winner(bids, rounds)
            if not won[1]:
                return
            owner = self._agreement.owners[won[0]]
            yield owner, partial(self._instruct_steps, party, owner, won)

    def _winner(self, bids: list[int], rounds: Rounds | None) -> Won:
        """Who won the round; from the journal where it is known there."""
        number = self._statistics.rounds
        if rounds is None:
            return 0, sum(bid > 0 for bid in bids), 0
        own = json.dumps(bids).encode()
        if self._conversation.remember(_BIDS, lambda: own, number) != own:
            raise PartyError(
                "journal: this round's bids differ from those it holds; the table or Shoal's"
                " version changed, make a new agreement"
            )
        if isinstance(rounds, ClearRounds):
            return rounds.maximum(bids)  # its messages are in the journal
        known = self._conversation.journal.get(_RESULT, "", number)
        if known is not None:
            return known[0], known[1], int.from_bytes(known[2:])
        won = rounds.maximum(bids)
        is_own = self._agreement.owners[won[0]] == self._name
        if is_own or not won[1] or not self._agreement.tells_runner_up:
            self._keep_result(won)
        return won

    def _keep_result(self, won: Won) -> None:
        """Writes down who won.

        Where the winner is told the second best bid, the others do so when they have its batch:
        until then it may have lost what it was told, and they repeat the round with it.
        """
        content = bytes(won[:2]) + (won[2].to_bytes(_BID) if won[2] else b"")
        self._conversation.remember(_RESULT, lambda: content, self._statistics.rounds)

    # The table

    def _narrow(self, party: FusionParty) -> None:
        """The last message about groups, where the method has one: each owner's own hulls."""
        own = party.hulls()
        if own is None:
            return
        for owner in self._agreement.owners:
            if numbers := self._agreement.numbers_of(owner):
                content = self._conversation.said(owner, MessageKind.HULLS, lambda: own)
                with said_by(owner, MessageKind.HULLS):
                    party.narrow(content, numbers)

    def _quasi(self, party: FusionParty) -> dict[str, pl.Series]:
        """The quasi-identifiers as they are published, in the order of the joint rows."""
        columns = {}
        for j, domain in enumerate(self._agreement.domains):
            spans, codes = party.published(j)
            columns[domain.name] = series_of([domain.text(*span) for span in spans], codes)
        return columns

    def _seal(self, table: pl.DataFrame) -> None:
        """Compares the hash of the table; raises PartyError where parties ended differently."""
        digest = hashlib.sha256()
        for piece in table.iter_slices(_SLICE):
            digest.update(piece.write_csv().encode())
        self._conversation.require_same(
            MessageKind.SEAL, digest.digest(), "ended with another table"
        )

    def _report(self) -> dict[str, Any]:
        agreement = self._agreement
        figures = self._statistics.report(self._link.bytes_sent, self._link.messages_sent)
        return {
            "agreement": agreement.hash.hex(),
            "party": self._name,
            **figures,
            "colluding_parties": (
                secure_maximum.colluding_parties(len(agreement.computing))
                if agreement.is_secret
                else None
            ),
        }

    # What the winner of a round, or whose turn it is, tells the others; and what the judge says
    # first.
    #
    # A judge is an owner who refuses what leaves too few values of an attribute of its own, which
    # the others don't see before the rounds end. It is asked before anybody else. Promise: of what
    # it refuses it sees one level of nodes, and nothing behind them; the others see no more than
    # that it refused.

    def _require_judged(self, judged: tuple[np.ndarray, int] | None) -> None:
        """Raises InfeasibleError where all people have too few values, as the judge says."""
        sensitive, judge = self._agreement.model.sensitive, self._agreement.judge
        if judge is None:
            return
        assert sensitive is not None

        def verdict_on_all() -> bytes:
            assert judged is not None
            return VALID if len(np.unique(judged[0])) >= judged[1] else REFUSED

        verdict = self._conversation.said(judge, MessageKind.VERDICT, verdict_on_all)
        require_values(sensitive.attribute, sensitive.l, holds=verdict == VALID)

    def _instruct_steps(self, party: BiddingParty, winner: str, won: Won) -> None:
        """Does the winner's steps: its own ones are sent to the others, another's are received."""
        _, steps, runner_up = won
        if winner == self._name:
            if self._agreement.tells_runner_up:
                steps = party.go_on(runner_up)
            valid = self._asked(party, steps)
            self._conversation.send_to_owners(
                MessageKind.BATCH, party.specialize(valid, valid < steps)
            )
            return
        party.lose()
        if self._agreement.judge == self._name:
            self._answer(party, winner, steps)
        self._follow(party, winner)
        if self._agreement.is_secret:
            self._keep_result(won)

    def _instruct_turn(self, party: TurnParty, owner: str) -> None:
        """Does what the owner decides whose turn it is."""
        asks = self._agreement.judge not in (None, owner)
        if owner == self._name:
            if asks:
                verdict = self._verdict(party.propose())
                with said_by(self._agreement.judge or "", MessageKind.VERDICT):
                    batch = party.decide(verdict)
            else:
                batch = party.decide()
            self._conversation.send_to_owners(MessageKind.BATCH, batch)
            return
        if asks and self._agreement.judge == self._name:
            self._judged(party, owner)
        self._follow(party, owner)

    def _follow(self, party: FusionParty, owner: str) -> None:
        batch = self._link.receive(owner, MessageKind.BATCH)
        with said_by(owner, MessageKind.BATCH):
            party.apply(batch)

    def _asked(self, party: BiddingParty, steps: int) -> int:
        """How many of the planned steps are valid: all, or those before the first refused one."""
        if self._agreement.judge in (None, self._name):
            return steps
        for number in range(steps):
            if self._verdict(party.propose(number)) != VALID:
                return number
        return steps

    def _answer(self, party: BiddingParty, winner: str, steps: int) -> None:
        """Judges the winner's steps one by one, up to the first that is refused."""
        for _ in range(steps):
            if self._judged(party, winner) != VALID:
                return

    def _verdict(self, proposal: bytes) -> bytes:
        """What the judge says of a proposal."""
        assert self._agreement.judge is not None
        self._link.send(self._agreement.judge, MessageKind.PROPOSAL, proposal)
        return bytes(self._link.receive(self._agreement.judge, MessageKind.VERDICT))

    def _judged(self, party: BiddingParty | TurnParty, asks: str) -> bytes:
        """What this party, the judge, says of another one's proposal."""
        proposal = self._link.receive(asks, MessageKind.PROPOSAL)
        with said_by(asks, MessageKind.PROPOSAL):
            verdict = party.judge(proposal)
        self._link.send(asks, MessageKind.VERDICT, verdict)
        return verdict
