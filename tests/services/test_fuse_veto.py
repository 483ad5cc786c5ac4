"""Real owners, one of whom refuses what leaves too few values of a column that it shows nobody: the
table of one owner, whatever is killed or mutated, and a transcript that says what it saw more.
"""

import numpy as np
import polars as pl
import pytest
import yaml

import shoal
from naive_party_mondrian import rows_by_turns
from party_processes import bank_fusion, bank_world
from recorded_fusion import in_memory, record
from services.test_hostile_messages import refused_mutations
from services.test_transcript import check_every_message_counts, records, write_records
from shoal.errors import PartyError
from shoal.fusion.containment import check_transcript
from shoal.fusion.ground import REFUSED, VALID
from shoal.fusion.limits import terms_of
from shoal.fusion.wire.messages import LENGTH, MessageKind, Parser
from shoal.policy.agreement import Agreement
from shoal.samples import bank

METHODS = ["party-tds", "party-mondrian"]
SENSITIVE = {"attribute": "district", "l": 4, "veto": "seen"}


def with_veto(content, method: str, k: int = 2) -> None:
    """The office's district is published as it is, and judged by the office alone."""
    office = next(party for party in content["parties"] if party["name"] == "office")
    office["attributes"]["district"] = {"role": "plain"}
    promises = [{"model": "k-anonymity", "k": k}]
    content |= {"promises": promises, "method": {"name": method}}
    content["sensitive"] = dict(SENSITIVE)


@pytest.fixture(scope="module", params=METHODS)
def fused(forked_parties, tmp_path_factory, request):
    folder = tmp_path_factory.mktemp("fused")
    path, certificate = bank_fusion(folder, 120, lambda content: with_veto(content, request.param))
    return folder, Agreement.load(path), certificate


def test_the_owners_end_with_the_table_of_one(fused):
    folder, agreement, certificate = fused
    joined = bank.generate(120, 4).cast(pl.String)
    names = [*agreement.quasi, "district", "loan"]
    if agreement.bids:
        policy = yaml.safe_load(bank.POLICY)
        policy["attributes"]["district"] = {"role": "sensitive"}
        asked = {"model": "l-diversity", "attribute": "district", "l": 4}
        policy["promises"] = [{"model": "k-anonymity", "k": 2}, asked]
        rows = shoal.publish(joined, policy).data.cast(pl.String).select(names).rows()
    else:
        districts = np.unique(joined["district"], return_inverse=True)[1]
        nobody = np.zeros(joined.height, dtype=np.int64)
        shown = joined.select("district", "loan")
        rows = rows_by_turns(agreement, joined, shown, nobody, veto=(districts, 4))
    published = pl.read_csv(folder / "out.csv", infer_schema=False)
    assert sorted(published.select(names).rows()) == sorted(rows)
    assert [promise["model"] for promise in certificate["promises"]] == [
        "k-anonymity",
        "l-diversity",
    ]
    assert certificate.holds
    learned = certificate["fusion"]["learned"]
    assert any("one level more" in fact for fact in learned["office"])
    assert any("of its own steps were refused" in fact for fact in learned["bank"])


def test_the_transcript_counts_what_the_judge_saw_more(fused, shoal):
    found = check_transcript(fused[0] / "said")
    assert found.wrong == []
    assert found.vetoed > 0
    assert {"proposal", "verdict"} <= set(found.messages)
    assert "sensitive" not in found.messages
    done = shoal("audit", "--trace", str(fused[0] / "said"), status=0)
    assert f"vetoed: {found.vetoed} facts" in done.err
    assert "no other message says more" in done.err


def test_only_the_judge_is_asked_and_only_who_asks_is_answered(fused):
    folder, _, _ = fused
    for name in ("bank", "insurer", "office"):
        for record_bytes in records(folder / "said" / f"{name}.messages")[:-1]:
            receiver, kind = record_bytes[:16].rstrip(b"\0").decode(), record_bytes[16]
            assert kind != MessageKind.PROPOSAL or (name != "office" and receiver == "office")
            assert kind != MessageKind.VERDICT or name == "office"


def test_whichever_message_is_missing_or_there_twice_it_is_found(said):
    kinds = (MessageKind.PROPOSAL, MessageKind.VERDICT, MessageKind.BATCH)
    check_every_message_counts(said, kinds)


def test_a_changed_verdict_or_proposal_is_found(said):
    """One bit: a refusal that nothing bears out, or a step that no batch says."""
    for path in said.glob("*.messages"):
        whole = records(path)
        for at, one in enumerate(whole):
            is_asked = one[16] in (MessageKind.PROPOSAL, MessageKind.VERDICT)
            if is_asked and len(one) > 21 and int.from_bytes(one[17:21], "little") != 8:
                changed = one[:21] + bytes([one[21] ^ 1]) + one[22:]
                write_records(path, [*whole[:at], changed, *whole[at + 1 :]])
                assert check_transcript(said).wrong, f"{path.name}, {at}: {one[:21]}"
        write_records(path, whole)


@pytest.mark.parametrize(
    ("method", "name"), [("party-tds", "office"), ("party-mondrian", "bank")], ids=METHODS
)
def test_killed_all_along_its_journal_a_party_goes_on_to_the_same_table(tmp_path, method, name):
    world = bank_world(tmp_path, n=40)
    with_veto(world.content, method, k=4)
    assert world.die_again_and_again(name, 20) > 2
    assert len({world.release(owner) for owner in world.names}) == 1


@pytest.mark.parametrize("method", METHODS)
def test_more_values_than_there_are_end_the_run_for_all(tmp_path, method):
    world = bank_world(tmp_path, n=40)
    with_veto(world.content, method, k=4)
    world.content["sensitive"]["l"] = 9
    assert set(world.run().values()) == {3}
    for name in world.names:
        assert "'district' has fewer than 9 different values" in world.message(name)


def test_a_verdict_that_is_neither_is_refused_and_not_taken_for_a_refusal(fused):
    """It would say more than was consented to, and only a transcript would show it."""
    agreement = fused[1]
    limits = terms_of(agreement, "bank", 120).limits["office"]

    def take(said):
        parser = Parser("office", limits)
        parser.take(MessageKind.VERDICT, LENGTH.pack(len(said)))
        parser.take(MessageKind.VERDICT, said)

    for said in (b"\2", b"\xff", *([b""] if agreement.bids else [])):
        with pytest.raises(PartyError, match="party 'office', message 'verdict'"):
            take(said)
    take(VALID)
    take(REFUSED)


@pytest.fixture(scope="module", params=METHODS)
def recorded(tmp_path_factory, request):
    def change(content):
        with_veto(content, request.param, k=4)

    return record(tmp_path_factory.mktemp("recorded"), change=change)


def test_every_mutation_is_refused_in_one_line_or_changes_nothing(recorded, monkeypatch):
    in_memory(monkeypatch)
    refused_mutations(recorded, 20)
